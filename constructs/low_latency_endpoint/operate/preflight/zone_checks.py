"""Client zones in this account, and whether the interface endpoint's service is in them."""

from __future__ import annotations

from collections.abc import Iterator

from ...account.network import describe_zones, zones
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
        match = next((pair for pair in found if pair[0] == zone), None)
        if match is None:
            yield failed(
                f"{zone} is no zone of this account in {context.account.region}; these are: {here}",
                "Name one of these zones under `client_zones`.",
                about=zone,
            )
        elif states[match[1]] != "available":
            yield warned(
                f"{match[1]} is {match[2]}, and {states[match[1]]}",
                "AWS reports trouble in the zone: see the AWS Health Dashboard.",
                about=zone,
            )
        else:
            yield passed(f"{match[1]} is {match[2]} in this account", about=zone)


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
            "Choose a region that has it, or leave `fips` out.",
            about=service,
        )
        return
    names = set(details[0].get("AvailabilityZones") or ())
    ids = set(details[0].get("AvailabilityZoneIds") or ())
    if not names and not ids:
        yield unknown("EC2 names no zones for this service", about=service)
        return
    pairs = zone_pairs(context)
    missing = [zone for zone, name, zone_id in pairs if not {name, zone_id} & (names | ids)]
    if missing:
        yield failed(
            f"not in {', '.join(missing)}; offered in {', '.join(sorted(ids or names))}",
            "Let these callers run in a zone that has it, or leave the zone out of "
            "`client_zones` and give its callers another zone's name.",
            about=service,
        )
    elif len(pairs) < len(context.settings.client_zones.zones):
        yield unknown("not all client zones are zones of this account: see LLP201", about=service)
    else:
        yield passed(f"offered in {', '.join(zone for zone, _, _ in pairs)}", about=service)
