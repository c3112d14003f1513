"""How large the subnets must be, and which block each zone's subnet takes."""

from __future__ import annotations

import ipaddress
import re
import zlib
from collections.abc import Sequence

from ..errors import rule
from .limits import MAX_INSTANCES, VPC_PREFIX_LENGTH
from .rules import FLEETS_SHARE_SUBNETS, ZONE_NAMED_TWICE
from .token_values import is_token
from .zones import zone_ordinal

FLEETS = 2  # a blue/green update runs the old and the new fleet side by side
ADDRESSES_PER_INSTANCE = 2
RESERVED_ADDRESSES = 5  # AWS keeps the first four and the last of every subnet
INTERFACE_ENDPOINT_ADDRESSES = 1
SPARE_ADDRESSES = 16  # interfaces of callers and warm-up functions in the same subnets
LARGEST_SUBNET = 16  # prefix lengths that AWS takes
SMALLEST_SUBNET = 28
_IN_EACH_SUBNET = RESERVED_ADDRESSES + INTERFACE_ENDPOINT_ADDRESSES
ROOMY_SUBNET = 24  # what is made when less would do: resizing a subnet replaces it

_SIZING = "/vpc/latest/userguide/subnet-sizing.html"

VPC_BLOCK = rule(
    "LLE111",
    "the VPC's address block is not an IPv4 block in CIDR notation",
    fix="Give a block whose host bits are zero, such as 10.0.0.0/16.",
    source="/vpc/latest/userguide/vpc-cidr-blocks.html",
)
SUBNETS_FIT = rule(
    "LLE112",
    "the subnets do not fit into the VPC's address block",
    fix="Use a larger VPC block, fewer client zones or a lower maximum of instances.",
    source=_SIZING,
)
SUBNET_HOLDS_FLEET = rule(
    "LLE113",
    "no subnet is large enough for the fleet",
    fix="Make the subnets larger (subnet_prefix_length) if they are smaller than a /16, or lower the "
    "maximum number of instances.",
    source=_SIZING,
)


def addresses_per_subnet(max_instances: int, *, interface_endpoint: bool = True) -> int:
    """Addresses that each client zone's subnet must have.

    Two addresses per instance; twice the maximum, because a blue/green update runs two fleets;
    all of them possibly in one zone, because nothing forces SageMaker to spread them evenly; the
    five that AWS keeps; one for the interface endpoint; and a spare.
    """
    MAX_INSTANCES.check(max_instances, "max_instances")
    return (
        FLEETS * int(max_instances) * ADDRESSES_PER_INSTANCE
        + RESERVED_ADDRESSES
        + (INTERFACE_ENDPOINT_ADDRESSES if interface_endpoint else 0)
        + SPARE_ADDRESSES
    )


def subnet_prefix_length(addresses: int) -> int:
    """Prefix length of the smallest subnet with that many addresses, between /28 and /16."""
    prefix_length = 32 - max(addresses - 1, 1).bit_length()
    if prefix_length < LARGEST_SUBNET:
        raise SUBNET_HOLDS_FLEET.error(
            got=f"{addresses} addresses per subnet",
            allowed=f"at most {2 ** (32 - LARGEST_SUBNET)}, the addresses of a /{LARGEST_SUBNET}",
        )
    return min(prefix_length, SMALLEST_SUBNET)


def roomy_prefix_length(addresses: int) -> int:
    """Prefix length with that many addresses, but of no subnet smaller than a /24."""
    return min(subnet_prefix_length(addresses), ROOMY_SUBNET)


def check_fleet_fits(prefix_length: int, max_instances: int, where: str = "") -> None:
    """Raise unless subnets of this size hold the largest fleet."""
    needed = addresses_per_subnet(max_instances)
    there = 2 ** (32 - prefix_length)
    if needed > there:
        raise SUBNET_HOLDS_FLEET.error(
            what="the largest fleet does not fit into the subnets",
            got=f"{max_instances} instances, {needed} addresses, in a /{prefix_length} of {there}",
            allowed=f"/{subnet_prefix_length(needed)} or larger",
            where=where,
        )


def check_fleets_fit(
    prefix_lengths: Sequence[int], instances: int, in_update: int, where: str = ""
) -> None:
    """Raise unless each subnet holds all instances, as :func:`addresses_per_subnet` counts them."""
    smallest = max(prefix_lengths)
    needed = in_update * ADDRESSES_PER_INSTANCE + _IN_EACH_SUBNET + SPARE_ADDRESSES
    there = 2 ** (32 - smallest)
    if needed > there:
        raise FLEETS_SHARE_SUBNETS.error(
            got=f"{instances} instances, {in_update} in updates, {needed} addresses, in a "
            f"/{smallest} of {there}",
            allowed=f"/{subnet_prefix_length(needed)} or larger",
            where=where,
        )


def check_fleets_fit_existing(
    prefix_lengths: Sequence[int], instances: int, in_update: int, where: str = ""
) -> str:
    """Raise unless existing subnets hold all instances between them; return what is doubtful.

    Nothing forces SageMaker to spread instances evenly, but neither is it known not to, and the
    subnets are as they are: only what does not fit at all is refused.
    """
    needed = in_update * ADDRESSES_PER_INSTANCE
    free = [2 ** (32 - length) - _IN_EACH_SUBNET for length in prefix_lengths]
    blocks = ", ".join(f"/{length}" for length in prefix_lengths)
    if needed > sum(free):
        raise FLEETS_SHARE_SUBNETS.error(
            got=f"{instances} instances, {in_update} in updates, {needed} addresses, in subnets "
            f"of {blocks}",
            allowed=f"at most {sum(free)} addresses: AWS reserves five per subnet, and the "
            "interface endpoint uses one",
            where=where,
        )
    if needed <= min(free):
        return ""
    return (
        f"the subnets ({blocks}) have room for all instances in an update only when SageMaker "
        "spreads them, which it does not promise: an update may find no address"
    )


def vpc_block(vpc_cidr: str) -> ipaddress.IPv4Network:
    """The block of a VPC."""
    if is_token(vpc_cidr):
        raise VPC_BLOCK.error(got="a token", allowed="such as 10.0.0.0/16, known at synth")
    try:
        if not isinstance(vpc_cidr, str) or not re.fullmatch(r"[0-9.]+/[0-9]{1,2}", vpc_cidr):
            raise ValueError("not an address, a slash and a prefix length")
        block = ipaddress.IPv4Network(vpc_cidr)
    except ValueError as problem:
        raise VPC_BLOCK.error(
            got=f"{vpc_cidr!r} ({problem})", allowed="such as 10.0.0.0/16"
        ) from None
    VPC_PREFIX_LENGTH.check(block.prefixlen)
    return block


def network_blocks(
    vpc_cidr: str,
    zones: Sequence[str],
    max_instances: int,
    prefix_length: int | None = None,
    where: str = "",
) -> dict[str, str]:
    """The block of each zone's subnet in a new VPC, with room for the largest fleet."""
    vpc_block(vpc_cidr)
    if prefix_length is not None:
        check_fleet_fits(prefix_length, max_instances, where)
    needed = prefix_length or roomy_prefix_length(addresses_per_subnet(max_instances))
    return plan_subnets(vpc_cidr, zones, needed)


def plan_subnets(vpc_cidr: str, zones: Sequence[str], prefix_length: int) -> dict[str, str]:
    """The block of each zone's subnet, in the order of ``zones``.

    The block follows from the zone itself (its place in the Region), so that adding, removing or
    reordering zones leaves the other zones' blocks alone: another block would replace the subnet
    and everything in it. Local zones, and zones whose place is taken or lies past the end of the
    VPC's block, get a block of their own from the upper half, chosen by their name; only those
    can move, when another zone claims the same block.
    """
    try:
        vpc = ipaddress.IPv4Network(vpc_cidr)
    except (ValueError, TypeError) as problem:
        raise VPC_BLOCK.error(got=f"{vpc_cidr!r} ({problem})", allowed=VPC_BLOCK.fix) from None
    if len(set(zones)) < len(zones):
        raise ZONE_NAMED_TWICE.error(got=", ".join(zones), allowed="each zone once")
    blocks = 2 ** (prefix_length - vpc.prefixlen) if prefix_length >= vpc.prefixlen else 0
    if len(zones) > blocks or prefix_length > 32:
        raise SUBNETS_FIT.error(
            got=f"{len(zones)} subnets of /{prefix_length} in {vpc}",
            allowed=f"{vpc} holds {blocks} blocks of /{prefix_length}",
        )
    places = _places(zones, blocks)
    step = 2 ** (32 - prefix_length)
    return {zone: f"{vpc.network_address + places[zone] * step}/{prefix_length}" for zone in zones}


def _places(zones: Sequence[str], blocks: int) -> dict[str, int]:
    """Index of each zone's block; sorted first, so that the order given does not matter."""
    taken: dict[int, str] = {}
    homeless: list[str] = []
    for zone in sorted(zones):
        ordinal = zone_ordinal(zone)
        if ordinal is None or ordinal >= blocks or ordinal in taken:
            homeless.append(zone)
        else:
            taken[ordinal] = zone
    upper = blocks // 2
    for zone in homeless:
        # crc32, not hash(): the same in every process
        place = upper + zlib.crc32(zone.encode()) % max(blocks - upper, 1)
        while place in taken:
            place = (place + 1) % blocks
        taken[place] = zone
    return {zone: place for place, zone in taken.items()}
