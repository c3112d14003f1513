"""Room in a network's subnets for the fleets of all its endpoints, where the blocks are known."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..facts.subnets import check_fleets_fit, check_fleets_fit_existing
from ..synthesis.findings import warn
from ..synthesis.validation import is_token
from .vpc_zones import is_subnet_of_pending_lookup


@dataclass
class FleetRoom:
    """What the endpoints of one set of subnets have together, against the subnets' addresses."""

    prefix_lengths: Sequence[int]  # sizes of the subnets that are known at synth
    # whether the subnets were there before. Their owner may know that instances spread over them,
    # so only what does not fit at all is refused
    existing: bool = False
    _held: dict[str, tuple[int, int]] = field(default_factory=dict)
    _warned: bool = False

    def hold(
        self, fleet: str, instances: int, *, in_update: int, network: Construct, where: str
    ) -> None:
        """Hold room for a fleet, or more room for one that has some."""
        if is_token(instances):
            return
        self._held[fleet] = max(self._held.get(fleet, (0, 0)), (instances, in_update))
        total, in_update = map(sum, zip(*self._held.values(), strict=True))
        if not self.prefix_lengths:
            return
        if not self.existing:
            check_fleets_fit(self.prefix_lengths, total, in_update, where)
            return
        doubt = check_fleets_fit_existing(self.prefix_lengths, total, in_update, where)
        if doubt and not self._warned:
            self._warned = True
            warn(network, "subnetRoom", doubt)


# Two networks in the same subnets of the same VPC share what room there is. No value may refer to
# its VPC, or none would ever be freed.
_SHARED: WeakKeyDictionary[ec2.IVpc, dict[frozenset[str], FleetRoom]] = WeakKeyDictionary()


def shared_room(vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> FleetRoom:
    """The room in subnets of a VPC that exists; the same for whoever else takes these subnets."""
    lengths = [_prefix_length(subnet) for subnet in subnets]
    known = [length for length in lengths if length is not None]
    made = FleetRoom(known if len(known) == len(lengths) else (), existing=True)
    key = frozenset(subnet.subnet_id for subnet in subnets)
    return _SHARED.setdefault(vpc, {}).setdefault(key, made)


def _prefix_length(subnet: ec2.ISubnet) -> int | None:
    """None where the block is a token, unknown to CDK, or a stand-in of a pending lookup."""
    if is_subnet_of_pending_lookup(subnet):
        return None
    try:
        block = subnet.ipv4_cidr_block
    except RuntimeError:  # imported without its block, and CDK throws when asked
        return None
    if not block or is_token(block):
        return None
    try:
        return ipaddress.IPv4Network(block).prefixlen
    except ValueError:
        return None
