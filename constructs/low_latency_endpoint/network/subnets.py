"""Subnets of a VPC: one chosen for each client zone, and room in them for the fleets."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..facts.rules import (
    NETWORK_FROM_TWO,
    SUBNET_OF_TWO_ZONES,
    SUBNETS_OF_OTHER_ZONES,
    ZONE_WITHOUT_SUBNET,
    ZONES_UNKNOWN_AT_SYNTH,
)
from ..facts.subnets import check_fleets_fit, check_fleets_fit_existing
from ..facts.zones import is_stand_in, zone_name_of
from ..options.network import SUBNETS_NOT_STATED, ClientZones
from ..synthesis.annotations import acknowledge, warn
from ..synthesis.construct_tree import kept, path_of, root_of
from ..synthesis.template_values import is_token

LOOKUP_PENDING = "vpc-12345"
"""CDK's stand-in for every VPC whose lookup is pending."""

_JUDGEMENTS_OF_STAND_INS = (
    "CloudFormation-Validate::E1151",  # vpc-12345 is no VPC's ID
    "CloudFormation-Validate::E1154",  # p-12345 is no subnet's
    "CloudFormation-Validate::F3031",  # the same, of another property
    "CloudFormation-Validate::F3037",  # two VPCs have the same stand-in
)

_UNNAMED = "undefined"  # as CDK calls the groups of an import after the first, without names


def is_pending(vpc: ec2.IVpc) -> bool:
    """Whether the CLI is still to look the VPC up, and will run the app again with it."""
    return vpc.vpc_id == LOOKUP_PENDING


def allow_stand_ins(owner: Construct, vpc: ec2.IVpc) -> None:
    """While a VPC is pending, let CDK judge no template of the app by what stands for it."""
    if is_pending(vpc):
        acknowledge(
            root_of(owner), *_JUDGEMENTS_OF_STAND_INS, reason="A VPC was not looked up yet."
        )


def is_subnet_of_pending_lookup(subnet: ec2.ISubnet) -> bool:
    """Whether the subnet's zone is a stand-in."""
    return is_stand_in(zone_name_of(subnet) or "")


def choose_subnets(
    owner: Construct,
    vpc: ec2.IVpc,
    client_zones: ClientZones,
    subnets: Mapping[str, ec2.ISubnet] | None,
    selection: ec2.SubnetSelection | None,
) -> list[ec2.ISubnet]:
    """One subnet per client zone, in their order; the network ``owner`` bears the warnings."""
    where = path_of(owner)
    if subnets is not None and selection is not None:
        raise NETWORK_FROM_TWO.error(
            got="subnets and subnet_selection",
            allowed="one of the two",
            where=where,
            fix="Leave subnet_selection out: subnets= names each zone's subnet.",
        )
    if subnets is not None:
        return _given(vpc, client_zones, subnets, where)
    if client_zones.ids:
        raise ZONES_UNKNOWN_AT_SYNTH.error(
            got=f"zone IDs {', '.join(client_zones.zones)}",
            allowed="zone names, or subnets= with the subnet of each zone ID",
            where=where,
        )
    isolated = list(vpc.isolated_subnets) if selection is None else []
    candidates = (
        [*isolated, *vpc.private_subnets] if selection is None else _selected(vpc, selection)
    )
    by_zone: dict[str, list[ec2.ISubnet]] = {}
    for subnet in candidates:
        by_zone.setdefault(subnet.availability_zone, []).append(subnet)
    pending = any(map(is_stand_in, (*by_zone, *client_zones.zones))) or (
        not by_zone and is_pending(vpc)  # CDK knows no groups by their names yet
    )
    if pending and (stand_ins := _stand_ins(vpc, candidates, client_zones)):
        return stand_ins
    if any(is_token(zone) for zone in by_zone):
        raise ZONES_UNKNOWN_AT_SYNTH.error(
            got="a VPC whose zones are tokens",
            allowed="a VPC with known zones, or subnets= with the subnet of each zone",
            where=where,
        )
    missing = [zone for zone in client_zones.zones if zone not in by_zone]
    if missing:
        kind = "is not public" if selection is None else "subnet_selection selects"
        raise ZONE_WITHOUT_SUBNET.error(
            got=f"client zones {', '.join(client_zones.zones)}; without subnet: "
            f"{', '.join(missing)}",
            allowed=f"zones with a subnet that {kind}: {', '.join(sorted(by_zone)) or '-'}",
            where=where,
            fix=SUBNETS_NOT_STATED if not by_zone and selection is None else "",
        )
    if selection is None:
        _warn_of_others(owner, {zone: by_zone[zone] for zone in client_zones.zones}, isolated)
    return [by_zone[zone][0] for zone in client_zones.zones]


def _selected(vpc: ec2.IVpc, selection: ec2.SubnetSelection) -> list[ec2.ISubnet]:
    return list(
        vpc.select_subnets(
            availability_zones=selection.availability_zones,
            one_per_az=selection.one_per_az,
            subnet_filters=selection.subnet_filters,
            subnet_group_name=selection.subnet_group_name,
            subnets=selection.subnets,
            subnet_type=selection.subnet_type,
        ).subnets
    )


def _stand_ins(
    vpc: ec2.IVpc, candidates: Sequence[ec2.ISubnet], client_zones: ClientZones
) -> list[ec2.ISubnet]:
    """Any subnets, as the CLI runs the app again once it has looked up what it needs; or none."""
    stand_ins = candidates or [*vpc.private_subnets, *vpc.isolated_subnets, *vpc.public_subnets]
    count = len(stand_ins)
    return [stand_ins[at % count] for at in range(len(client_zones.zones))] if count else []


def _warn_of_others(
    owner: Construct, by_zone: Mapping[str, Sequence[ec2.ISubnet]], isolated: Sequence[ec2.ISubnet]
) -> None:
    """Say which group of subnets was taken, where a zone has several that are not public."""
    several = {zone: subnets for zone, subnets in by_zone.items() if len(subnets) > 1}
    if not several:
        return
    groups: dict[str, str] = {}  # name -> name and kind, those that were taken first
    taken: dict[str, None] = {}
    for subnets in several.values():
        taken[_group_of(subnets[0])] = None
        for subnet in subnets:
            name = _group_of(subnet)
            kind = "isolated" if subnet in isolated else "with a way out"
            groups.setdefault(name, f"{name} ({kind})")
    others = [name for name in groups if name not in taken and name != _UNNAMED]
    by_group = (
        f'subnet_selection=ec2.SubnetSelection(subnet_group_name="{others[0]}"), for instance, '
        f'or subnet_group_name="{next(iter(taken))}" if it is meant so; or '
        if others
        else ""
    )
    warn(
        owner,
        "ambiguousSubnets",
        f"The VPC has several subnets that are not public in {', '.join(several)}, of the groups "
        f"{', '.join(groups.values())}. Those of {', '.join(taken)} were taken for the model and "
        "the interface endpoint: isolated ones come first, then the first ones of the VPC. A tier "
        "of databases is isolated too, so say which are meant: "
        f"{by_group}subnets={{zone: subnet}} (network.subnets in a settings file).",
    )


def _group_of(subnet: ec2.ISubnet) -> str:
    """The name of the subnet's group, as CDK reads it from the construct's ID."""
    return re.sub(r"Subnet\d+$", "", subnet.node.id)


def _given(
    vpc: ec2.IVpc, client_zones: ClientZones, subnets: Mapping[str, ec2.ISubnet], where: str
) -> list[ec2.ISubnet]:
    if set(subnets) != set(client_zones.zones):
        if is_pending(vpc):  # which has two subnets of each kind for now
            return [
                subnets.get(zone) or stand_in
                for zone, stand_in in zip(
                    client_zones.zones, _stand_ins(vpc, (), client_zones), strict=True
                )
            ]
        raise SUBNETS_OF_OTHER_ZONES.error(
            got=f"subnets for {', '.join(sorted(subnets)) or 'no zone'}",
            allowed=f"one subnet for each of {', '.join(client_zones.zones)}",
            where=where,
        )
    zone_of: dict[str, str] = {}
    for zone in client_zones.zones:
        subnet_id = subnets[zone].subnet_id
        if subnet_id in zone_of:
            raise SUBNET_OF_TWO_ZONES.error(
                got=f"for {zone} the subnet of {zone_of[subnet_id]}",
                allowed="a subnet for each zone",
                where=where,
            )
        zone_of[subnet_id] = zone
    if client_zones.names:
        for zone in client_zones.zones:
            actual = zone_name_of(subnets[zone])
            if actual is None or is_token(actual) or is_stand_in(actual) or is_stand_in(zone):
                continue
            if actual != zone:
                raise SUBNETS_OF_OTHER_ZONES.error(
                    got=f"for {zone} a subnet in {actual}",
                    allowed=f"a subnet in {zone}",
                    where=where,
                )
    return [subnets[zone] for zone in client_zones.zones]


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


def shared_room(vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> FleetRoom:
    """The room in subnets of a VPC that exists; the same for whoever else takes these subnets."""
    lengths = [_prefix_length(subnet) for subnet in subnets]
    known = [length for length in lengths if length is not None]
    room = FleetRoom(known if len(known) == len(lengths) else (), existing=True)
    # With the app, as an object that stands for a VPC of Node.js keeps no attributes.
    rooms: dict[tuple[str, frozenset[str]], FleetRoom] = kept(root_of(vpc), "fleet_rooms", dict)
    return rooms.setdefault((path_of(vpc), frozenset(subnet.subnet_id for subnet in subnets)), room)


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
