"""Client zones and their service; the existing VPC's DNS, subnets, room and way to S3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...account.network import (
    describe_zones,
    route_table,
    subnets_of_vpc,
    vpcs,
    way_out,
    way_to_s3,
    zones,
)
from ...account.stacks import stack_description
from ...errors.shell_words import shell_word
from ...facts.subnets import RESERVED_ADDRESSES, addresses_per_subnet
from ..checking.checks import Outcome, check, failed, passed, unknown, warned
from .context import PreflightContext, service_name


def _pairs(context: PreflightContext) -> Iterator[tuple[str, str, str, str]]:
    """Each client zone as given, twice, with its name and its ID; empty where it is none of these."""
    pairs = zones(context.account).items()
    for zone in context.settings.client_zones.zones:
        yield zone, zone, *next((pair for pair in pairs if zone in pair), ("", ""))


@check(
    "LLP201",
    "The client zones exist",
    how="Each zone's name and ID in this account.",
    source="/AWSEC2/latest/UserGuide/using-regions-availability-zones.html",
    each=_pairs,
)
def zones_exist(context: PreflightContext, zone: str, name: str, zone_id: str) -> Outcome:
    states = {zone["ZoneName"]: zone["State"] for zone in describe_zones(context.account)}
    if not name:
        here = ", ".join(f"{name} {zone_id}" for name, zone_id in zones(context.account).items())
        return failed(
            f"{zone} is not a zone of this account in {context.account.region}; these are: {here}",
            "Name one of these zones under `client_zones`.",
        )
    if states[name] != "available":
        return warned(
            f"{name} is {zone_id}, and {states[name]}",
            "AWS reports trouble in the zone: see the AWS Health Dashboard.",
        )
    return passed(f"{name} is {zone_id} in this account")


def _services(context: PreflightContext) -> Iterator[tuple[str, str]]:
    link = context.settings.private_link
    if not link.interface_endpoint_id:
        yield context.runtime_service, context.runtime_service
        if link.sagemaker_api:
            service = service_name(context.account, "sagemaker.api")
            yield service, service


@check(
    "LLP202",
    "The interface endpoint's service is offered in each client zone",
    how="`DescribeVpcEndpointServices`.",
    source="/AWSEC2/latest/APIReference/API_DescribeVpcEndpointServices.html",
    each=_services,
)
def service_in_zones(context: PreflightContext, service: str) -> Outcome:
    answer = context.account.read(
        "ec2", "describe_vpc_endpoint_services", ("InvalidServiceName",), ServiceNames=[service]
    )
    details = (answer or {}).get("ServiceDetails") or []
    if not details:
        return failed(
            f"{context.account.region} has no endpoint service {service}",
            "Choose a region with this service, or leave `fips` out.",
        )
    names = set(details[0].get("AvailabilityZones") or ())
    ids = set(details[0].get("AvailabilityZoneIds") or ())
    if not names and not ids:
        return unknown("EC2 lists no zones for this service")
    pairs = {zone: {name, zone_id} for zone, _, name, zone_id in _pairs(context) if name}
    missing = [zone for zone, either in pairs.items() if not either & (names | ids)]
    if missing:
        return failed(
            f"not in {', '.join(missing)}; offered in {', '.join(sorted(ids or names))}",
            "Let these callers run in a zone that has it, or leave the zone out of "
            "`client_zones` and give its callers another zone's name.",
        )
    if len(pairs) < len(context.settings.client_zones.zones):
        return unknown("not all client zones are zones of this account: see LLP201")
    return passed(f"offered in {', '.join(pairs)}")


Subnet = Mapping[str, Any]

_DNS = "/vpc/latest/userguide/vpc-dns.html"
_HOST = "/sagemaker/latest/dg/host-vpc.html"


@check(
    "LLP205",
    "The VPC exists, with DNS support and DNS hostnames on",
    how="Only private DNS needs this.",
    source=_DNS,
)
def vpc_dns(context: PreflightContext) -> Outcome | None:
    vpc_id = context.settings.network.vpc_id
    if vpc_id is None:
        return None
    missing = ("InvalidVpcID.NotFound",)
    off, commands = [], []
    # In this order: AWS allows hostnames only with support, and one attribute a request.
    for attribute, key, option in (
        ("enableDnsSupport", "EnableDnsSupport", "--enable-dns-support"),
        ("enableDnsHostnames", "EnableDnsHostnames", "--enable-dns-hostnames"),
    ):
        answer = context.account.read(
            "ec2", "describe_vpc_attribute", missing, VpcId=vpc_id, Attribute=attribute
        )
        if answer is None:
            return failed(
                f"{vpc_id} does not exist in {context.account.region}",
                "Correct `network.vpc_id`, or the region.",
            )
        if not answer[key].get("Value"):
            off.append(attribute)
            commands.append(
                f"`aws ec2 modify-vpc-attribute --vpc-id {shell_word(vpc_id)} {option} '{{\"Value\":true}}'`"
            )
    if off and context.settings.private_link.private_dns is False:
        return passed(f"{vpc_id}: {' and '.join(off)} off, which private DNS alone needs")
    if off:
        return failed(f"{vpc_id}: {' and '.join(off)} off", f"{', then '.join(commands)}.")
    return passed(f"{vpc_id}: DNS support and DNS hostnames on")


@check(
    "LLP210",
    "The VPC is this account's, or its owner's interface endpoint is adopted",
    how="`OwnerId` of the VPC: where another account shares it by AWS RAM, only that one makes VPC endpoints.",
    source="/vpc/latest/userguide/vpc-share-limitations.html",
)
def vpc_owner(context: PreflightContext) -> Outcome | None:
    settings, account = context.settings, context.account
    vpc_id = settings.network.vpc_id
    if vpc_id is None:
        return None
    found = vpcs(account, vpc_id)
    if not found:
        return unknown("the VPC does not exist: see LLP205")
    owner, own = found[0].get("OwnerId", ""), account.account_id()
    stated = settings.network.owner
    if stated is not None and stated != owner:
        return failed(
            f"{vpc_id} is of account {owner}, not of {stated}", "Correct `network.owner`."
        )
    if owner == own:
        return passed(f"{vpc_id} is this account's")
    if settings.private_link.interface_endpoint_id is None:
        return failed(
            f"{vpc_id} is of account {owner}, which shares it: only the owner makes VPC endpoints",
            f"Set `network.owner: '{owner}'`, and name the owner's interface endpoint in "
            "`private_link.interface_endpoint_id`.",
        )
    return passed(f"{vpc_id} is of account {owner}, whose interface endpoint is adopted")


def _subnets_by_zone(context: PreflightContext) -> Iterator[tuple[str, list[Subnet]]]:
    """The subnets of each client zone: those that are named, or those the lookup may choose."""
    network = context.settings.network
    if network.vpc_id is None:
        return
    in_vpc = subnets_of_vpc(context.account, network.vpc_id)
    for zone in context.settings.client_zones.zones:
        if network.subnets is not None:
            named = network.subnets.get(zone)
            yield zone, [each for each in in_vpc if each["SubnetId"] == named]
            continue
        # The stack takes isolated subnets first, then private ones, never public ones.
        ways = [
            (way_out(route_table(context.account, each)), each)
            for each in in_vpc
            if zone in (each["AvailabilityZone"], each["AvailabilityZoneId"])
        ]
        private = [each for way, each in ways if way and way != "internet gateway"]
        yield zone, [each for way, each in ways if not way] or private


def _each_subnet(context: PreflightContext) -> Iterator[tuple[str, Subnet]]:
    for zone, subnets in _subnets_by_zone(context):
        yield from ((zone, subnet) for subnet in subnets)


@check(
    "LLP206",
    "There is a subnet in each client zone",
    how="Checks the named subnets in their zones, or those that the lookup may choose.",
    source=_HOST,
    each=lambda context: ((zone, zone, found) for zone, found in _subnets_by_zone(context)),
)
def subnets_in_zones(context: PreflightContext, zone: str, found: list[Subnet]) -> Outcome:
    vpc_id = context.settings.network.vpc_id
    named = (context.settings.network.subnets or {}).get(zone)
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


def _rooms(context: PreflightContext) -> Iterator[tuple[str, list[Subnet], bool]]:
    for zone, subnets in _subnets_by_zone(context):
        deployed = stack_description(context.account, context.settings.stack_name) is not None
        yield zone, subnets, deployed


@check(
    "LLP207",
    "The subnets have room for twice the largest fleet",
    how=(
        "Warns if the addresses suffice only when the fleets spread evenly, and for a "
        "deployed stack, whose fleet already uses addresses."
    ),
    source=_HOST,
    each=_rooms,
)
def free_addresses(
    context: PreflightContext, subnets: list[Subnet], deployed: bool
) -> Iterator[Outcome]:
    fleet = context.fleet_with_addresses
    makes_link = context.settings.private_link.interface_endpoint_id is None
    # EC2 has taken the reserved ones off already.
    needed = addresses_per_subnet(fleet, interface_endpoint=makes_link) - RESERVED_ADDRESSES
    spread = -(-needed // len(context.settings.client_zones.zones))
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
    each=_each_subnet,
)
def s3_reachable(context: PreflightContext, subnet: Subnet) -> Outcome:
    table = route_table(context.account, subnet)
    way = way_to_s3(context.account, subnet)
    name = table["RouteTableId"] if table else "no route table"
    fix = f"Add a gateway endpoint for S3 to {name}: it is free."
    isolated = [
        endpoint.key for endpoint in context.endpoints if endpoint.settings.network_isolation
    ]
    if way == "internet gateway":
        return warned(
            f"{subnet['SubnetId']} reaches S3 through an internet gateway only, which "
            "containers without public addresses cannot use",
            fix,
        )
    if way:
        return passed(f"{subnet['SubnetId']}: {way}")
    if isolated:
        return failed(
            f"{subnet['SubnetId']} ({name}) has no way to S3; with network isolation "
            f"the model data of {', '.join(isolated)} comes through the VPC",
            fix,
        )
    return warned(
        f"{subnet['SubnetId']} ({name}) has no way to S3: SageMaker fetches the "
        "model data by itself, but containers that read S3 cannot",
        fix,
    )
