"""Interface endpoints that the existing VPC has already: in the way, or adopted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...account.network import (
    SecurityGroupSources,
    adopted_interface_endpoint,
    describe_subnets,
    https_sources,
    vpc_endpoints,
    zones_of_subnets,
)
from ...account.stacks import made_at, stack_ids
from ..checking.checks import Outcome, check, failed, guarded, passed, unknown, warned
from ..checking.policies import document_of, verdict
from .context import PreflightContext

_INTERFACE = "/vpc/latest/privatelink/create-interface-endpoint.html"
_SAGEMAKER = "/sagemaker/latest/dg/interface-vpc-endpoint.html"
_INVOKE = "sagemaker:InvokeEndpoint"


@check(
    "LLP203",
    "Nothing else owns the runtime's private DNS name in the VPC",
    how=(
        "No other interface endpoint of the service with private DNS and no hosted zone of the "
        "name, also in each VPC of `hosted_zone_vpc_ids` (Route 53: `ConflictingDomainExists`). "
        "Says how to adopt an endpoint."
    ),
    source=_INTERFACE,
)
def private_dns_is_free(context: PreflightContext) -> Iterator[Outcome]:
    """A VPC takes one private-DNS endpoint per service, and no hosted zone of the same name.

    So does each VPC that is to get a hosted zone for the name.
    """
    settings = context.settings
    vpc_id = settings.network.vpc_id
    if vpc_id is not None and settings.private_link.takes_the_name:
        yield from guarded(_no_other_endpoint, context, vpc_id, about="interface endpoint")
        yield from guarded(_no_hosted_zone, context, vpc_id, about="hosted zone")
    for other in settings.private_link.hosted_zone_vpc_ids:
        yield from guarded(_takes_hosted_zone, context, other, about=other)


def private_dns_owners(context: PreflightContext, vpc_id: str) -> list[Mapping[str, Any]]:
    """The VPC's interface endpoints that answer the runtime's own name."""
    return [
        each
        for each in vpc_endpoints(context.account, [vpc_id])
        if each["ServiceName"] == context.runtime_service and each.get("PrivateDnsEnabled")
    ]


def _no_other_endpoint(context: PreflightContext, vpc_id: str) -> Iterator[Outcome]:
    about = "interface endpoint"
    owners = private_dns_owners(context, vpc_id)
    if not owners:
        yield passed(
            f"{vpc_id} has no endpoint with private DNS for {context.runtime_service}", about=about
        )
        return
    own = made_at(
        "PrivateLink/Endpoint",
        stack_ids(context.account, context.settings.stack_name, "AWS::EC2::VPCEndpoint"),
    )
    for each in owners:
        endpoint_id = each["VpcEndpointId"]
        if endpoint_id == own:
            yield passed(f"{endpoint_id} is this stack's own", about=about)
            continue
        groups = [group["GroupId"] for group in each.get("Groups", ())]
        yield failed(
            f"{endpoint_id} has private DNS for {context.runtime_service} in {vpc_id} already: "
            "AWS refuses a second one",
            f"Adopt it: private_link: {{interface_endpoint_id: {endpoint_id}, "
            f"security_group_id: {groups[0] if groups else 'sg-...'}}}. Or leave the name to it: "
            "private_link: {private_dns: false}.",
            about=about,
        )


def _clashing_zones(context: PreflightContext, vpc_id: str) -> list[Mapping[str, Any]]:
    zones = context.account.read(
        "route53", "list_hosted_zones_by_vpc", VPCId=vpc_id, VPCRegion=context.account.region
    )["HostedZoneSummaries"]
    # The zone that PrivateLink itself makes belongs to a service of AWS's.
    return [
        zone
        for zone in zones
        if zone["Name"].startswith(_zone_name(context))
        and not zone.get("Owner", {}).get("OwningService")
    ]


def _no_hosted_zone(context: PreflightContext, vpc_id: str) -> Iterator[Outcome]:
    clash = _clashing_zones(context, vpc_id)
    if clash:
        yield failed(
            f"private hosted zone {clash[0]['HostedZoneId']} ({clash[0]['Name']}) is "
            f"associated with {vpc_id}: AWS refuses private DNS beside it",
            "Take the VPC out of that hosted zone, or delete it.",
            about="hosted zone",
        )
    else:
        yield passed(f"{vpc_id} has no hosted zone {_zone_name(context)}*", about="hosted zone")


def _takes_hosted_zone(context: PreflightContext, vpc_id: str) -> Iterator[Outcome]:
    """Route 53 answers ConflictingDomainExists where the VPC resolves the name privately already.

    For an interface endpoint too: https://github.com/hashicorp/terraform-provider-aws/issues/37783
    """
    leave_out = f"Take {vpc_id} out of `hosted_zone_vpc_ids`, and give its callers the zonal names."
    for each in private_dns_owners(context, vpc_id):
        yield failed(
            f"{each['VpcEndpointId']} answers {_zone_name(context)}* in {vpc_id} already: "
            "Route 53 refuses a hosted zone of the name",
            leave_out,
            about=vpc_id,
        )
        return
    own = made_at(
        "PrivateLink/HostedZone",
        stack_ids(context.account, context.settings.stack_name, "AWS::Route53::HostedZone"),
    )
    for zone in _clashing_zones(context, vpc_id):
        if zone["HostedZoneId"] != own:
            yield failed(
                f"private hosted zone {zone['HostedZoneId']} ({zone['Name']}) is "
                f"associated with {vpc_id}: Route 53 refuses a second one",
                leave_out,
                about=vpc_id,
            )
            return
    yield passed(
        f"{vpc_id} has no interface endpoint and no other hosted zone for {_zone_name(context)}*",
        about=vpc_id,
    )


def _zone_name(context: PreflightContext) -> str:
    """The beginning of the runtime's name, whatever the partition's suffix."""
    label = "runtime-fips" if context.settings.private_link.fips else "runtime"
    return f"{label}.sagemaker.{context.account.region}."


@check(
    "LLP204",
    "The adopted interface endpoint serves the callers",
    how="Service, VPC, state, private DNS, a subnet in each zone, security group, policy.",
    source=_SAGEMAKER,
)
def adopted_endpoint(context: PreflightContext) -> Iterator[Outcome]:
    endpoint_id = context.settings.private_link.interface_endpoint_id
    if endpoint_id is None:
        return
    endpoint = adopted_interface_endpoint(context.account, endpoint_id)
    if endpoint is None:
        yield failed(
            f"{endpoint_id} does not exist in {context.account.region}",
            "Correct `interface_endpoint_id`.",
        )
        return
    yield from _is_the_runtimes(context, endpoint)
    yield from guarded(_in_each_zone, context, endpoint, about="zones")
    yield from guarded(_lets_callers_in, context, endpoint, about="security group")
    yield from _policy(context, endpoint)


def _is_the_runtimes(context: PreflightContext, endpoint: Mapping[str, Any]) -> Iterator[Outcome]:
    service, vpc_id = endpoint["ServiceName"], endpoint["VpcId"]
    evidence = f"{endpoint['VpcEndpointId']}: {service} in {vpc_id}, {endpoint['State'].lower()}"
    if not service.endswith((".sagemaker.runtime", ".sagemaker.runtime-fips")):
        yield failed(
            evidence, f"Name the endpoint of service {context.runtime_service}.", about="service"
        )
    elif vpc_id != context.settings.network.vpc_id:
        yield failed(
            evidence,
            f"Name one in {context.settings.network.vpc_id}, or another `vpc_id`.",
            about="VPC",
        )
    elif endpoint["State"].lower() != "available":
        yield failed(evidence, "Wait until it is available, or fix it.", about="state")
    elif not endpoint.get("PrivateDnsEnabled"):
        yield warned(
            f"{evidence}; private DNS is off",
            "Turn private DNS on, or give callers its zonal names: the runtime's own "
            "name goes around it.",
            about="private DNS",
        )
    else:
        yield passed(f"{evidence}, private DNS on", about="service")


def _in_each_zone(context: PreflightContext, endpoint: Mapping[str, Any]) -> Iterator[Outcome]:
    covered = zones_of_subnets(describe_subnets(context.account, endpoint.get("SubnetIds", ())))
    missing = [zone for zone in context.settings.client_zones.zones if zone not in covered]
    if missing:
        yield failed(
            f"it has no subnet in {', '.join(missing)}: private DNS does not resolve for "
            "callers there",
            "Add a subnet of each of these zones to the endpoint.",
            about="zones",
        )
    else:
        yield passed(
            f"a subnet in each of {', '.join(context.settings.client_zones.zones)}", about="zones"
        )


def _lets_callers_in(context: PreflightContext, endpoint: Mapping[str, Any]) -> Iterator[Outcome]:
    groups = [group["GroupId"] for group in endpoint.get("Groups", ())]
    stated = str(context.settings.private_link.security_group_id)
    sources: SecurityGroupSources = https_sources(context.account, groups)
    if stated in groups:
        already = f"; port 443 is open to {sources} already" if sources else ""
        yield passed(
            f"{stated} guards it, and the stack lets the callers in there{already}",
            about="security group",
        )
    elif sources:
        yield warned(
            f"{stated} does not guard it, {', '.join(groups)} do; they let {sources} in "
            "on port 443",
            "Name one of its own groups as `security_group_id`: rules "
            "added to another have no effect.",
            about="security group",
        )
    else:
        yield failed(
            f"{stated} does not guard it, and {', '.join(groups) or 'nothing'} lets "
            "nobody in on port 443",
            "Name one of its own groups as `security_group_id`.",
            about="security group",
        )


def _policy(context: PreflightContext, endpoint: Mapping[str, Any]) -> Iterator[Outcome]:
    """An adopted endpoint's policy stays as it is, so it must let the new endpoints through."""
    policy = document_of(endpoint.get("PolicyDocument") or "")
    if not policy:
        return
    account_id = context.account.account_id()
    stem = f"arn:{context.account.partition()}:sagemaker:{context.account.region}:{account_id}"
    for each in context.endpoints:
        name = each.settings.endpoint_name
        resource = f"{stem}:endpoint/{(name or context.settings.stack_name).lower()}"
        found = verdict(
            policy,
            _INVOKE,
            resource,
            {"aws:PrincipalAccount": account_id, "aws:ResourceAccount": account_id},
        )
        if found.allowed:
            yield passed(
                f"its policy lets {name or 'new endpoints'} be invoked", about=f"policy {each.key}"
            )
        elif found.allowed is None:
            yield unknown(
                "whether its policy lets new endpoints be invoked depends on what is "
                f"not read here: {', '.join(found.depends_on)}",
                about=f"policy {each.key}",
            )
        else:
            yield warned(
                f"its policy does not let {resource.rpartition(':')[2]} be invoked, as "
                "far as it can be read here",
                f"Allow {_INVOKE} on the endpoint in the interface endpoint's policy.",
                about=f"policy {each.key}",
            )
