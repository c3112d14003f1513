"""Chooses, in a VPC that exists, exactly one subnet for each client zone."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_ec2 as ec2

from ..plan.rules import (
    NETWORK_FROM_TWO,
    SUBNET_OF_TWO_ZONES,
    SUBNETS_OF_OTHER_ZONES,
    ZONE_WITHOUT_SUBNET,
    ZONES_UNKNOWN_AT_SYNTH,
)
from ..synthesis.validation import is_token
from .client_zones import ClientZones


def choose_subnets(
    vpc: ec2.IVpc,
    client_zones: ClientZones,
    subnets: Mapping[str, ec2.ISubnet] | None,
    selection: ec2.SubnetSelection | None,
    *,
    where: str,
) -> list[ec2.ISubnet]:
    """One subnet per client zone, in the order of the zones.

    See :meth:`ZoneAlignedNetwork.in_vpc` for the rules and the errors.
    """
    if subnets is not None and selection is not None:
        raise NETWORK_FROM_TWO.error(
            got="subnets and subnet_selection",
            allowed="one of the two",
            where=where,
            fix="Leave subnet_selection out: subnets= names each zone's subnet.",
        )
    if subnets is not None:
        return _given(client_zones, subnets, where)
    if client_zones.kind == "id":
        raise ZONES_UNKNOWN_AT_SYNTH.error(
            got=f"zone IDs {', '.join(client_zones.zones)}",
            allowed="zone names, or subnets= with the subnet of each zone ID",
            where=where,
        )
    candidates = (
        list(
            vpc.select_subnets(
                availability_zones=selection.availability_zones,
                one_per_az=selection.one_per_az,
                subnet_filters=selection.subnet_filters,
                subnet_group_name=selection.subnet_group_name,
                subnets=selection.subnets,
                subnet_type=selection.subnet_type,
            ).subnets
        )
        if selection is not None
        else [*vpc.isolated_subnets, *vpc.private_subnets]
    )
    by_zone: dict[str, ec2.ISubnet] = {}
    for subnet in candidates:
        by_zone.setdefault(subnet.availability_zone, subnet)
    if by_zone and all(zone.startswith("dummy") for zone in by_zone):
        # A lookup is pending: the CLI runs the app again once it has the VPC's real subnets, and
        # needs an assembly from this run to know what to look up.
        stand_ins = list(by_zone.values())
        return [stand_ins[index % len(stand_ins)] for index in range(len(client_zones.zones))]
    if any(is_token(zone) for zone in by_zone):
        raise ZONES_UNKNOWN_AT_SYNTH.error(
            got="a VPC whose zones are tokens",
            allowed="a VPC with known zones, or subnets= with the subnet of each zone",
            where=where,
        )
    missing = [zone for zone in client_zones.zones if zone not in by_zone]
    if missing:
        raise ZONE_WITHOUT_SUBNET.error(
            got=f"client zones {', '.join(client_zones.zones)}; without subnet: "
            f"{', '.join(missing)}",
            allowed=f"zones with a subnet that is not public: {', '.join(sorted(by_zone)) or '-'}",
            where=where,
        )
    return [by_zone[zone] for zone in client_zones.zones]


def _given(
    client_zones: ClientZones, subnets: Mapping[str, ec2.ISubnet], where: str
) -> list[ec2.ISubnet]:
    if set(subnets) != set(client_zones.zones):
        raise SUBNETS_OF_OTHER_ZONES.error(
            got=f"subnets for {', '.join(sorted(subnets)) or 'no zone'}",
            allowed=f"one for each of {', '.join(client_zones.zones)}",
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
    if client_zones.kind == "name":
        for zone in client_zones.zones:
            actual = zone_name_of(subnets[zone])
            if actual is None or is_token(actual) or actual.startswith("dummy"):
                continue
            if actual != zone:
                raise SUBNETS_OF_OTHER_ZONES.error(
                    got=f"for {zone} a subnet in {actual}",
                    allowed=f"a subnet in {zone}",
                    where=where,
                )
    return [subnets[zone] for zone in client_zones.zones]


def zone_name_of(subnet: ec2.ISubnet) -> str | None:
    """The name of a subnet's zone, maybe a token; None where CDK does not know it."""
    try:
        return subnet.availability_zone
    except RuntimeError:  # Subnet.from_subnet_id knows no zone, and CDK throws when asked
        return None
