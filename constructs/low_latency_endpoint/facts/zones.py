"""Availability Zones: their place in the Region, from their name or their ID."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from string import ascii_lowercase
from types import MappingProxyType
from typing import TYPE_CHECKING

from ..errors import rule
from .tables import rows, whole

if TYPE_CHECKING:
    from aws_cdk import aws_ec2 as ec2

_ID = re.compile(r"(?P<prefix>[a-z]{2,5}\d)-(?P<local>[a-z]{3}\d-)?az(?P<number>\d{1,2})")
_NAME = re.compile(
    r"(?P<region>[a-z]{2,4}(?:-[a-z]+)+-\d)(?P<local>-[a-z]{3}-\d)?(?P<letter>[a-z])"
)
_STAND_IN = re.compile(r"dummy1[a-c]")

ZONE_IN_REGION = rule(
    "LLE110",
    "an Availability Zone is not in the stack's Region",
    fix="Name zones of that Region, or change the Region.",
    source="/global-infrastructure/latest/regions/aws-availability-zones.html",
)


def is_stand_in(zone: str) -> bool:
    """Whether this is CDK's stand-in for a zone that the CLI is still to look up.

    The first run of an app works with these three, and no others: ``dummy1a`` to ``dummy1c``
    (``Stack.availabilityZones`` and ``Vpc.fromLookup`` of aws-cdk-lib). The CLI then looks the
    zones up and runs the app again.
    """
    return _STAND_IN.fullmatch(zone) is not None


def zone_name_of(subnet: ec2.ISubnet) -> str | None:
    """The name of a subnet's zone, maybe a token; None where CDK does not know it."""
    try:
        return subnet.availability_zone
    except RuntimeError:  # Subnet.from_subnet_id knows no zone, and CDK throws when asked
        return None


def zone_ordinal(zone: str) -> int | None:
    """Place of a zone in its Region, counted from zero; ``None`` for local zones."""
    if is_stand_in(zone):  # blocks as the first zones will have them
        return ord(zone[-1]) - ord("a")
    if match := _ID.fullmatch(zone):
        number = int(match["number"])
        return None if match["local"] or number < 1 else number - 1
    if match := _NAME.fullmatch(zone):
        return None if match["local"] else ord(match["letter"]) - ord("a")
    return None


@cache
def zone_id_prefixes() -> Mapping[str, str]:
    """Region by the first part of its zones' IDs (``use1``)."""
    return MappingProxyType({row["prefix"]: row["region"] for row in rows("zone_id_prefixes")})


def region_of_zone(zone: str) -> str | None:
    """Region of a zone; ``None`` when the ID's prefix is not in the table."""
    if match := _ID.fullmatch(zone):
        return zone_id_prefixes().get(match["prefix"])
    if match := _NAME.fullmatch(zone):
        return match["region"]
    return None


@cache
def _highest() -> Mapping[str, int]:
    """The highest number in the IDs of a Region's zones."""
    listed = {row["region"]: whole(row["zones"]) for row in rows("zone_id_prefixes")}
    return MappingProxyType({region: number for region, number in listed.items() if number})


_MOST_ZONES = 6
"""Of a Region: zones' names end with a to f, of which an account may lack some."""


def check_zones_in_region(zones: Iterable[str], region: str, where: str = "") -> None:
    """Raise when a zone is known to lie in another Region, or nowhere; unknown zones pass."""
    for zone in zones:
        found = region_of_zone(zone)
        last = _highest().get(region, _MOST_ZONES) if _ID.fullmatch(zone) else _MOST_ZONES
        if found == region and _number(zone) not in range(1, last + 1):
            raise ZONE_IN_REGION.error(
                what=f"{region} has no zone {zone}",
                got=zone,
                allowed=f"{_nth(zone, 1)} to {_nth(zone, last)}",
                where=where,
            )
        if found is not None and found != region:
            raise ZONE_IN_REGION.error(
                what=f"{zone} is in {found}, but the stack deploys to {region}",
                got=zone,
                allowed=f"zones of {region}",
                where=where,
            )


def _number(zone: str) -> int:
    """A zone's number, counted from one; of a local zone one."""
    match = _ID.fullmatch(zone)
    if match and not match["local"]:
        return int(match["number"])
    return (zone_ordinal(zone) or 0) + 1


def _nth(zone: str, number: int) -> str:
    """The zone of this number, counted from one, spelled as another zone of the Region is."""
    if match := _ID.fullmatch(zone):
        return f"{match['prefix']}-az{number}"
    return f"{zone[:-1]}{ascii_lowercase[number - 1]}"


@cache
def _partition(region: str) -> Mapping[str, str]:
    return next(row for row in rows("partitions") if region.startswith(row["prefix"]))


def partition_of(region: str) -> str:
    """The partition that a Region belongs to.

    >>> partition_of("eu-west-1"), partition_of("cn-north-1")
    ('aws', 'aws-cn')
    """
    return _partition(region)["partition"]


def dns_suffix(region: str) -> str:
    """What the names of AWS's services end with in a Region."""
    return _partition(region)["dns_suffix"]
