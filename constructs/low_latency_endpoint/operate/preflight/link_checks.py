"""Interface endpoints of the existing VPC: in the way, adopted, or in the way of its callers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from ...account.calls import json_object
from ...account.endpoints import endpoints_in_service
from ...account.network import (
    SecurityGroupSources,
    adopted_interface_endpoint,
    describe_subnets,
    https_sources,
    interfaces,
    runtime_name,
    vpc_endpoints,
    vpcs,
    zones_of_subnets,
)
from ...account.stacks import ENDPOINT_TYPE, made_at, stack_ids
from ..checking.checks import Outcome, check, failed, guarded, passed, unknown, warned
from ..checking.policies import caller_through, verdict
from .context import PreflightContext

_INTERFACE = "/vpc/latest/privatelink/create-interface-endpoint.html"
_SAGEMAKER = "/sagemaker/latest/dg/interface-vpc-endpoint.html"
_INVOKE = "sagemaker:InvokeEndpoint"
_NO_VPC = "the VPC does not exist: see LLP205"


@check(
    "LLP203",
    "Nothing else owns the runtime's private DNS name in the VPC",
    how=(
        "Looks for another interface endpoint of the service with private DNS or hosted "
        "zone of the name, also in each VPC of `hosted_zone_vpc_ids` (Route 53: "
        "`ConflictingDomainExists`). Explains how to adopt an endpoint."
    ),
    source=_INTERFACE,
)
def private_dns_is_free(context: PreflightContext) -> Iterator[Outcome]:
    """A VPC takes one private-DNS endpoint per service, and no hosted zone of the same name."""
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
        endpoint
        for endpoint in vpc_endpoints(context.account, [vpc_id])
        if endpoint["ServiceName"] == context.runtime_service and endpoint.get("PrivateDnsEnabled")
    ]


def _no_other_endpoint(context: PreflightContext, vpc_id: str) -> Iterator[Outcome]:
    owners = private_dns_owners(context, vpc_id)
    if not owners and not vpcs(context.account, vpc_id):
        yield unknown(_NO_VPC)
        return
    if not owners:
        yield passed(f"{vpc_id} has no endpoint with private DNS for {context.runtime_service}")
        return
    own = made_at(
        "PrivateLink/Endpoint",
        stack_ids(context.account, context.settings.stack_name, "AWS::EC2::VPCEndpoint"),
    )
    for owner in owners:
        endpoint_id = owner["VpcEndpointId"]
        if endpoint_id == own:
            yield passed(f"{endpoint_id} is this stack's own")
            continue
        groups = [group["GroupId"] for group in owner.get("Groups", ())]
        yield failed(
            f"{endpoint_id} has private DNS for {context.runtime_service} in {vpc_id} already: "
            "AWS refuses a second one",
            f"Adopt this interface endpoint: private_link: {{interface_endpoint_id: {endpoint_id}, "
            f"security_group_id: {groups[0] if groups else 'sg-...'}}}. Or turn private DNS off: "
            "private_link: {private_dns: false}.",
        )


def _clashing_zones(context: PreflightContext, vpc_id: str) -> list[Mapping[str, Any]]:
    zones = context.account.every(
        "route53",
        "list_hosted_zones_by_vpc",
        "HostedZoneSummaries",
        VPCId=vpc_id,
        VPCRegion=context.account.region,
    )
    # The zone that PrivateLink itself makes belongs to a service of AWS's.
    return [
        zone
        for zone in zones
        if zone["Name"].startswith(_zone_name(context))
        and not zone.get("Owner", {}).get("OwningService")
    ]


def _no_hosted_zone(context: PreflightContext, vpc_id: str) -> Outcome:
    clash = _clashing_zones(context, vpc_id)
    if clash:
        return failed(
            f"private hosted zone {clash[0]['HostedZoneId']} ({clash[0]['Name']}) is "
            f"associated with {vpc_id}: AWS refuses private DNS beside it",
            "Take the VPC out of that hosted zone, or delete it.",
        )
    if not vpcs(context.account, vpc_id):
        return unknown(_NO_VPC)
    return passed(f"{vpc_id} has no hosted zone {_zone_name(context)}*")


def _takes_hosted_zone(context: PreflightContext, vpc_id: str) -> Outcome:
    """Route 53 answers ConflictingDomainExists where the VPC resolves the name privately already.

    For an interface endpoint too: https://github.com/hashicorp/terraform-provider-aws/issues/37783
    """
    leave_out = f"Take {vpc_id} out of `hosted_zone_vpc_ids`, and give its callers the zonal names."
    for owner in private_dns_owners(context, vpc_id):
        return failed(
            f"{owner['VpcEndpointId']} answers {_zone_name(context)}* in {vpc_id} already: "
            "Route 53 refuses a hosted zone of the name",
            leave_out,
        )
    own = made_at(
        "PrivateLink/HostedZone",
        stack_ids(context.account, context.settings.stack_name, "AWS::Route53::HostedZone"),
    )
    for zone in _clashing_zones(context, vpc_id):
        if zone["HostedZoneId"] != own:
            return failed(
                f"private hosted zone {zone['HostedZoneId']} ({zone['Name']}) is "
                f"associated with {vpc_id}: Route 53 refuses a second one",
                leave_out,
            )
    if not vpcs(context.account, vpc_id):
        return unknown(f"{vpc_id} does not exist in {context.account.region} for these credentials")
    return passed(
        f"{vpc_id} has no interface endpoint and no other hosted zone for {_zone_name(context)}*"
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
    if endpoint is None and context.settings.other_owner is not None:
        yield unknown(
            f"EC2 does not list {endpoint_id} here: it is of account {context.settings.other_owner}",
            "Ask the owner that it serves SageMaker Runtime in each client zone, and lets in this "
            "account's callers and endpoints.",
        )
        return
    if endpoint is None:
        yield failed(
            f"{endpoint_id} does not exist in {context.account.region}",
            "Correct `interface_endpoint_id`.",
        )
        return
    yield _is_the_runtimes(context, endpoint)
    yield from guarded(_in_each_zone, context, endpoint, about="zones")
    yield from guarded(_lets_callers_in, context, endpoint, about="security group")
    yield from _policy(context, endpoint)


def _is_the_runtimes(context: PreflightContext, endpoint: Mapping[str, Any]) -> Outcome:
    service, vpc_id = endpoint["ServiceName"], endpoint["VpcId"]
    evidence = f"{endpoint['VpcEndpointId']}: {service} in {vpc_id}, {endpoint['State'].lower()}"
    if not service.endswith((".sagemaker.runtime", ".sagemaker.runtime-fips")):
        fix = f"Name the endpoint of service {context.runtime_service}."
        return failed(evidence, fix, about="service")
    if vpc_id != context.settings.network.vpc_id:
        fix = f"Name an endpoint in {context.settings.network.vpc_id}, or another `vpc_id`."
        return failed(evidence, fix, about="VPC")
    if endpoint["State"].lower() != "available":
        return failed(evidence, "Wait until it is available, or fix it.", about="state")
    if not endpoint.get("PrivateDnsEnabled"):
        return warned(
            f"{evidence}; private DNS is off",
            "Turn private DNS on, or give callers its zonal names: the runtime's own "
            "name goes around it.",
            about="private DNS",
        )
    return passed(f"{evidence}, private DNS on", about="service")


def _in_each_zone(context: PreflightContext, endpoint: Mapping[str, Any]) -> Outcome:
    covered = zones_of_subnets(describe_subnets(context.account, endpoint.get("SubnetIds", ())))
    missing = [zone for zone in context.settings.client_zones.zones if zone not in covered]
    if missing:
        return failed(
            f"it has no subnet in {', '.join(missing)}: private DNS does not resolve for "
            "callers there",
            "Add a subnet of each of these zones to the endpoint.",
        )
    return passed(f"a subnet in each of {', '.join(context.settings.client_zones.zones)}")


def _lets_callers_in(context: PreflightContext, endpoint: Mapping[str, Any]) -> Outcome:
    groups = [group["GroupId"] for group in endpoint.get("Groups", ())]
    stated = str(context.settings.private_link.security_group_id)
    sources: SecurityGroupSources = https_sources(context.account, groups)
    if stated in groups:
        already = f"; port 443 is open to {sources} already" if sources else ""
        return passed(f"{stated} guards it, and the stack lets the callers in there{already}")
    if sources:
        return warned(
            f"{stated} does not guard it, {', '.join(groups)} do; they let {sources} in "
            "on port 443",
            "Name one of its own groups as `security_group_id`: rules "
            "added to another have no effect.",
        )
    return failed(
        f"{stated} does not guard it, and {', '.join(groups) or 'nothing'} lets "
        "nobody in on port 443",
        "Name one of its own groups as `security_group_id`.",
    )


def _policy(context: PreflightContext, endpoint: Mapping[str, Any]) -> Iterator[Outcome]:
    """An adopted endpoint's policy stays as it is, so it must let the new endpoints through."""
    policy = json_object(endpoint.get("PolicyDocument") or "")
    if not policy:
        return
    account_id = context.account.account_id()
    stem = f"arn:{context.account.partition()}:sagemaker:{context.account.region}:{account_id}"
    for each in context.endpoints:
        name = each.settings.endpoint_name
        resource = f"{stem}:endpoint/{(name or context.settings.stack_name).lower()}"
        found = verdict(policy, _INVOKE, resource, caller_through(endpoint, account_id))
        if found.allowed:
            outcome = passed(f"its policy lets {name or 'new endpoints'} be invoked")
        elif found.allowed is None:
            outcome = unknown(
                "whether its policy lets new endpoints be invoked depends on what is "
                f"not read here: {', '.join(found.depends_on)}"
            )
        else:
            outcome = warned(
                f"its policy does not let {resource.rpartition(':')[2]} be invoked, as "
                "far as it can be read here",
                f"Allow {_INVOKE} on the endpoint in the interface endpoint's policy.",
            )
        yield replace(outcome, about=f"policy {each.key}")


_NAMED = 5
_LOOKED_BACK = timedelta(hours=1)
_PAGES = 10
_ADDRESSES = 20  # a filter pattern has at most 1,024 characters
_DEFAULT_FORMAT = (
    "${version} ${account-id} ${interface-id} ${srcaddr} ${dstaddr} ${srcport} ${dstport} "
    "${protocol} ${packets} ${bytes} ${start} ${end} ${action} ${log-status}"
)
_NOT_IN_CLOUDTRAIL = "CloudTrail's event history has no invocations"


@check(
    "LLP209",
    "Private DNS redirects no other SageMaker caller of the VPC",
    how=(
        "For an existing VPC that will get private DNS. Counts the account's other "
        "endpoints in service. Looks for callers in the last hour of the VPC's flow log "
        "(at most ten pages; accepted packets, default format, in CloudWatch Logs)."
    ),
    source="/sagemaker/latest/dg/interface-vpc-endpoint.html",
)
def others_redirected(context: PreflightContext) -> Iterator[Outcome]:
    settings = context.settings
    vpc_id = settings.network.vpc_id
    if vpc_id is None or not settings.private_link.takes_the_name:
        return
    own = set(stack_ids(context.account, settings.stack_name, "AWS::EC2::VPCEndpoint").values())
    for owner in private_dns_owners(context, vpc_id):
        if owner["VpcEndpointId"] in own:
            yield passed(f"{owner['VpcEndpointId']} of this stack answers the name already")
            return
    if not vpcs(context.account, vpc_id):
        yield unknown(_NO_VPC)
        return
    others = _other_endpoints(context)
    if not others:
        yield passed("no other endpoint is in service in this account and region")
        return
    named = ", ".join(others[:_NAMED]) + (", ..." if len(others) > _NAMED else "")
    yield warned(
        f"{len(others)} other endpoint{'s are' if len(others) > 1 else ' is'} in service in this "
        f"account ({named}); their callers in {vpc_id} will come through this interface endpoint",
        _fix(context),
    )
    yield from guarded(_callers, context, vpc_id, about="callers")


def _other_endpoints(context: PreflightContext) -> list[str]:
    settings = context.settings
    own = {
        arn.rpartition("/")[2]
        for arn in stack_ids(context.account, settings.stack_name, ENDPOINT_TYPE).values()
    }
    return sorted(name for name in endpoints_in_service(context.account) if name.lower() not in own)


def _fix(context: PreflightContext) -> str:
    link = context.settings.private_link
    who = "the VPC's range" if link.allow_cidrs is None else ", ".join(link.allow_cidrs)
    narrow = " narrow_policy: true refuses them: leave it out." if link.narrow_policy else ""
    return (
        f"See that all of them are in what private_link.allow_cidrs lets in ({who}), and in "
        f"the client zones: elsewhere the name may not resolve.{narrow} Or leave the name "
        "alone with private_link: {private_dns: false}."
    )


def _callers(context: PreflightContext, vpc_id: str) -> Outcome:
    """The network interfaces that lately connected to the runtime, from the VPC's flow log."""
    logs = context.account.every(
        "ec2",
        "describe_flow_logs",
        "FlowLogs",
        Filter=[{"Name": "resource-id", "Values": [vpc_id]}],
    )
    readable = [log for log in logs if _is_readable(log)]
    if not readable:
        return unknown(
            f"who they are is not known: {vpc_id} has no flow log of accepted packets in "
            f"CloudWatch Logs in the default format, and {_NOT_IN_CLOUDTRAIL}",
            "Make such a flow log for some hours, or ask the owners of the endpoints.",
        )
    name = runtime_name(context.account, fips=context.settings.private_link.fips)
    addresses = context.resolve(name)[:_ADDRESSES]
    if not addresses:
        return unknown(f"{name} does not resolve here, so that the flow log cannot be searched")
    group = str(readable[0]["LogGroupName"])
    connecting = _connecting(context, group, addresses)
    where = f"{group}, the last hour, {len(addresses)} of {name}'s changing addresses"
    if not connecting:
        return unknown(
            f"who they are is not known: nobody is in what was read of {where}",
            "Ask the owners of the endpoints.",
        )
    return warned(f"in {where}: {', '.join(_described(context, connecting))}", _fix(context))


def _is_readable(log: Mapping[str, Any]) -> bool:
    return (
        log.get("LogDestinationType", "cloud-watch-logs") == "cloud-watch-logs"
        and log.get("TrafficType") in ("ACCEPT", "ALL")
        and log.get("FlowLogStatus") == "ACTIVE"
        and log.get("LogFormat", _DEFAULT_FORMAT) == _DEFAULT_FORMAT
        and bool(log.get("LogGroupName"))
    )


def _connecting(
    context: PreflightContext, group: str, addresses: Sequence[str]
) -> list[tuple[str, str]]:
    """Interface and source address of who sent to the addresses, most records first.

    Pattern: https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntax.html
    """
    to = " || ".join(f'to = "{address}"' for address in addresses)
    arguments: dict[str, Any] = {
        "logGroupName": group,
        "startTime": int((datetime.now(UTC) - _LOOKED_BACK).timestamp() * 1000),
        "filterPattern": f'[version, owner, interface, source, {to}, sent_from, port = "443", ...]',
    }
    found: Counter[tuple[str, str]] = Counter()
    for _ in range(_PAGES):
        page = context.account.read("logs", "filter_log_events", **arguments)
        for event in page.get("events", ()):
            fields = str(event["message"]).split()
            found[fields[2], fields[3]] += 1
        if not page.get("nextToken"):
            break
        arguments["nextToken"] = page["nextToken"]
    return [who for who, _ in found.most_common(_NAMED)]


def _described(context: PreflightContext, connecting: Sequence[tuple[str, str]]) -> Iterator[str]:
    """A readable description of each interface; a NAT gateway's interface is no caller."""
    known = {
        interface["NetworkInterfaceId"]: interface
        for interface in interfaces(context.account, (interface for interface, _ in connecting))
    }
    for interface, address in connecting:
        one = known.get(interface, {})
        if one.get("InterfaceType") in ("nat_gateway", "natGateway"):
            yield f"callers behind NAT gateway {interface}"
        else:
            what = one.get("Description") or one.get("Attachment", {}).get("InstanceId")
            yield f"{address} ({interface}{', ' + what if what else ''})"
