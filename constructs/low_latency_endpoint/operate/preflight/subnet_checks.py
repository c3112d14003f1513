"""Client zones and their service; the existing VPC's DNS, subnets, room and way to S3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from ...account.network import (
    describe_zones,
    route_table,
    subnets_of_vpc,
    way_out,
    way_to_s3,
    zones,
)
from ...account.stacks import stack_description
from ...facts.subnets import RESERVED_ADDRESSES, addresses_per_subnet
from ..checking.checks import Outcome, check, failed, guarded, passed, unknown, warned
from .context import PreflightContext, service_name


def zone_pairs(context: PreflightContext) -> list[tuple[str, str, str]]:
    """Each client zone as given, with its name and its ID; those of this account only."""
    pairs = zones(context.account)
    return [
        (zone, name, zone_id)
        for zone in context.settings.client_zones.zones
        for name, zone_id in pairs.items()
        if zone in (name, zone_id)
    ]


@check(
    "LLP201",
    "The client zones exist",
    how="Each zone's name and ID in this account.",
    source="/AWSEC2/latest/UserGuide/using-regions-availability-zones.html",
)
def zones_exist(context: PreflightContext) -> Iterator[Outcome]:
    states = {zone["ZoneName"]: zone["State"] for zone in describe_zones(context.account)}
    found = zone_pairs(context)
    here = ", ".join(f"{name} {zone_id}" for name, zone_id in zones(context.account).items())
    for zone in context.settings.client_zones.zones:
        name, zone_id = next((pair[1:] for pair in found if pair[0] == zone), ("", ""))
        if not name:
            outcome = failed(
                f"{zone} is not a zone of this account in {context.account.region}; these are: {here}",
                "Name one of these zones under `client_zones`.",
            )
        elif states[name] != "available":
            outcome = warned(
                f"{name} is {zone_id}, and {states[name]}",
                "AWS reports trouble in the zone: see the AWS Health Dashboard.",
            )
        else:
            outcome = passed(f"{name} is {zone_id} in this account")
        yield replace(outcome, about=zone)


@check(
    "LLP202",
    "The interface endpoint's service is offered in each client zone",
    how="`DescribeVpcEndpointServices`.",
    source="/AWSEC2/latest/APIReference/API_DescribeVpcEndpointServices.html",
)
def service_in_zones(context: PreflightContext) -> Iterator[Outcome]:
    link = context.settings.private_link
    if link.interface_endpoint_id:
        return
    services = [context.runtime_service]
    if link.sagemaker_api:
        services.append(service_name(context.account, "sagemaker.api"))
    for service in services:
        yield from guarded(_offered, context, service, about=service)


def _offered(context: PreflightContext, service: str) -> Iterator[Outcome]:
    answer = context.account.read(
        "ec2", "describe_vpc_endpoint_services", ("InvalidServiceName",), ServiceNames=[service]
    )
    details = (answer or {}).get("ServiceDetails") or []
    if not details:
        yield failed(
            f"{context.account.region} has no endpoint service {service}",
            "Choose a region with this service, or leave `fips` out.",
        )
        return
    names = set(details[0].get("AvailabilityZones") or ())
    ids = set(details[0].get("AvailabilityZoneIds") or ())
    if not names and not ids:
        yield unknown("EC2 lists no zones for this service")
        return
    pairs = zone_pairs(context)
    missing = [zone for zone, name, zone_id in pairs if not {name, zone_id} & (names | ids)]
    if missing:
        yield failed(
            f"not in {', '.join(missing)}; offered in {', '.join(sorted(ids or names))}",
            "Let these callers run in a zone that has it, or leave the zone out of "
            "`client_zones` and give its callers another zone's name.",
        )
    elif len(pairs) < len(context.settings.client_zones.zones):
        yield unknown("not all client zones are zones of this account: see LLP201")
    else:
        yield passed(f"offered in {', '.join(zone for zone, _, _ in pairs)}")


Subnet = Mapping[str, Any]

_DNS = "/vpc/latest/userguide/vpc-dns.html"
_HOST = "/sagemaker/latest/dg/host-vpc.html"


@check(
    "LLP205",
    "The VPC exists, with DNS support and DNS hostnames on",
    how="Only private DNS needs this.",
    source=_DNS,
)
def vpc_dns(context: PreflightContext) -> Iterator[Outcome]:
    vpc_id = context.settings.network.vpc_id
    if vpc_id is None:
        return
    missing = ("InvalidVpcID.NotFound",)
    off = []
    for attribute, key in (
        ("enableDnsSupport", "EnableDnsSupport"),
        ("enableDnsHostnames", "EnableDnsHostnames"),
    ):
        answer = context.account.read(
            "ec2", "describe_vpc_attribute", missing, VpcId=vpc_id, Attribute=attribute
        )
        if answer is None:
            yield failed(
                f"{vpc_id} does not exist in {context.account.region}",
                "Correct `network.vpc_id`, or the region.",
            )
            return
        if not answer[key].get("Value"):
            off.append(attribute)
    if off and context.settings.private_link.private_dns is False:
        yield passed(f"{vpc_id}: {' and '.join(off)} off, which private DNS alone needs")
    elif off:
        yield failed(
            f"{vpc_id}: {' and '.join(off)} off",
            f"Turn on, with `aws ec2 modify-vpc-attribute`: {', '.join(off)}.",
        )
    else:
        yield passed(f"{vpc_id}: DNS support and DNS hostnames on")


def subnets_by_zone(context: PreflightContext) -> dict[str, list[Subnet]]:
    """The subnets of each client zone: those that are named, or those the lookup may choose."""
    vpc_id = str(context.settings.network.vpc_id)
    zones = context.settings.client_zones.zones
    in_vpc = subnets_of_vpc(context.account, vpc_id)
    named = context.settings.network.subnets
    if named is not None:
        return {
            zone: [each for each in in_vpc if each["SubnetId"] == named.get(zone)] for zone in zones
        }
    subnets = {}
    for zone in zones:
        # The stack takes isolated subnets first, then private ones, never public ones.
        ways = [
            (way_out(route_table(context.account, each)), each)
            for each in in_vpc
            if zone in (each["AvailabilityZone"], each["AvailabilityZoneId"])
        ]
        subnets[zone] = [each for way, each in ways if not way] or [
            each for way, each in ways if way and way != "internet gateway"
        ]
    return subnets


@check(
    "LLP206",
    "There is a subnet in each client zone",
    how="Checks the named subnets in their zones, or those that the lookup may choose.",
    source=_HOST,
)
def subnets_in_zones(context: PreflightContext) -> Iterator[Outcome]:
    if context.settings.network.vpc_id is None:
        return
    for zone, subnets in subnets_by_zone(context).items():
        subnet = (context.settings.network.subnets or {}).get(zone)
        yield replace(_subnet_in_zone(context, zone, subnet, subnets), about=zone)


def _subnet_in_zone(
    context: PreflightContext, zone: str, named: str | None, found: list[Subnet]
) -> Outcome:
    vpc_id = context.settings.network.vpc_id
    if named and not found:
        fix = f"Name {zone}'s subnet under `network.subnets`."
        return failed(f"{named} is not a subnet of {vpc_id}", fix)
    if not found:
        return failed(
            f"{vpc_id} has no subnet without a route to an internet gateway in {zone}",
            "Create a subnet, or leave the zone out of `client_zones`.",
        )
    if len(found) > 1:
        ids = ", ".join(each["SubnetId"] for each in found)
        fix = "Name the subnet under `network.subnets`."
        return warned(f"{ids} would do: the lookup takes one of them", fix)
    subnet = found[0]
    shown = f"{subnet['SubnetId']} {subnet['CidrBlock']}"
    if not named:
        return passed(shown)
    place = f"{subnet['AvailabilityZone']} ({subnet['AvailabilityZoneId']})"
    if zone not in (subnet["AvailabilityZone"], subnet["AvailabilityZoneId"]):
        return failed(f"{named} is in {place}", f"Name a subnet of {zone}.")
    return passed(f"{shown} in {place}")


@check(
    "LLP207",
    "The subnets have room for twice the largest fleet",
    how=(
        "Warns if the addresses suffice only when the fleets spread evenly, and for a "
        "deployed stack, whose fleet already uses addresses."
    ),
    source=_HOST,
)
def free_addresses(context: PreflightContext) -> Iterator[Outcome]:
    network, fleet = context.settings.network, context.largest_fleet
    makes_link = context.settings.private_link.interface_endpoint_id is None
    needed = addresses_per_subnet(fleet, interface_endpoint=makes_link)
    if network.vpc_id is None:  # the settings were refused if new subnets were too small: LLE113
        return
    free_needed = needed - RESERVED_ADDRESSES  # EC2 has taken them off already
    zones = len(context.settings.client_zones.zones)
    spread = -(-free_needed // zones)
    deployed = stack_description(context.account, context.settings.stack_name) is not None
    for zone, subnets in subnets_by_zone(context).items():
        yield from guarded(_room, subnets, free_needed, spread, fleet, deployed, about=zone)


def _room(
    subnets: list[Subnet], needed: int, spread: int, fleet: int, deployed: bool
) -> Iterator[Outcome]:
    if not subnets:
        yield unknown("the subnet is not known: see LLP206")
    for subnet in subnets:
        free = subnet["AvailableIpAddressCount"]
        evidence = (
            f"{subnet['SubnetId']} has {free} free addresses; {needed} hold two fleets of {fleet}"
        )
        if free >= needed:
            yield passed(evidence)
        elif free >= spread or deployed:
            taken = "; the running fleet's addresses count as taken" if deployed else ""
            yield warned(
                f"{evidence}, {spread} when they spread evenly{taken}",
                "Free addresses, or lower `instances.max`: an update may find no room.",
            )
        else:
            yield failed(
                f"{evidence}, {spread} even when they spread evenly",
                "Name a larger subnet, free addresses, or lower `instances.max`.",
            )


@check(
    "LLP208",
    "S3 is reachable from the existing VPC's subnets",
    how=(
        "Accepts a gateway endpoint, an interface endpoint or a route out. Fails with "
        "`network_isolation`, otherwise warns."
    ),
    source=_HOST,
)
def s3_reachable(context: PreflightContext) -> Iterator[Outcome]:
    if context.settings.network.vpc_id is None:
        return
    for zone, subnets in subnets_by_zone(context).items():
        for subnet in subnets:
            yield from guarded(_reaches_s3, context, subnet, about=zone)


def _reaches_s3(context: PreflightContext, subnet: Subnet) -> Iterator[Outcome]:
    table = route_table(context.account, subnet)
    way = way_to_s3(context.account, subnet)
    name = table["RouteTableId"] if table else "no route table"
    fix = f"Add a gateway endpoint for S3 to {name}: it is free."
    isolated = [
        endpoint.key for endpoint in context.endpoints if endpoint.settings.network_isolation
    ]
    if way == "internet gateway":
        yield warned(
            f"{subnet['SubnetId']} reaches S3 through an internet gateway only, which "
            "containers without public addresses cannot use",
            fix,
        )
    elif way:
        yield passed(f"{subnet['SubnetId']}: {way}")
    elif isolated:
        yield failed(
            f"{subnet['SubnetId']} ({name}) has no way to S3; with network isolation "
            f"the model data of {', '.join(isolated)} comes through the VPC",
            fix,
        )
    else:
        yield warned(
            f"{subnet['SubnetId']} ({name}) has no way to S3: SageMaker fetches the "
            "model data by itself, but containers that read S3 cannot",
            fix,
        )
