"""Whom private DNS would lead through the interface endpoint, in a VPC that has callers already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from ...account.endpoints import endpoints_in_service
from ...account.network import interfaces, runtime_name
from ...account.stacks import ENDPOINT_TYPE, stack_ids
from ..checking.checks import Outcome, check, guarded, passed, unknown, warned
from .context import PreflightContext
from .link_checks import private_dns_owners

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
        "For an existing VPC that will get private DNS. Counts the account's other endpoints "
        "in service. Looks for callers in the last hour of the VPC's flow log (at most ten pages; "
        "accepted packets, default format, in CloudWatch Logs). Else unknown."
    ),
    source="/sagemaker/latest/dg/interface-vpc-endpoint.html",
)
def others_redirected(context: PreflightContext) -> Iterator[Outcome]:
    settings = context.settings
    vpc_id = settings.network.vpc_id
    if vpc_id is None or not settings.private_link.takes_the_name:
        return
    own = set(stack_ids(context.account, settings.stack_name, "AWS::EC2::VPCEndpoint").values())
    for each in private_dns_owners(context, vpc_id):
        if each["VpcEndpointId"] in own:
            yield passed(f"{each['VpcEndpointId']} of this stack answers the name already")
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


def _callers(context: PreflightContext, vpc_id: str) -> Iterator[Outcome]:
    """The network interfaces that lately connected to the runtime, from the VPC's flow log."""
    about = "callers"
    logs = context.account.every(
        "ec2",
        "describe_flow_logs",
        "FlowLogs",
        Filter=[{"Name": "resource-id", "Values": [vpc_id]}],
    )
    readable = [each for each in logs if _is_readable(each)]
    if not readable:
        yield unknown(
            f"who they are is not known: {vpc_id} has no flow log of accepted packets in "
            f"CloudWatch Logs in the default format, and {_NOT_IN_CLOUDTRAIL}",
            "Make such a flow log for some hours, or ask the owners of the endpoints.",
            about=about,
        )
        return
    name = runtime_name(context.account, fips=context.settings.private_link.fips)
    addresses = context.resolve(name)[:_ADDRESSES]
    if not addresses:
        yield unknown(
            f"{name} does not resolve here, so that the flow log cannot be searched", about=about
        )
        return
    group = str(readable[0]["LogGroupName"])
    connecting = _connecting(context, group, addresses)
    where = f"{group}, the last hour, {len(addresses)} of {name}'s changing addresses"
    if not connecting:
        yield unknown(
            f"who they are is not known: nobody is in what was read of {where}",
            "Ask the owners of the endpoints.",
            about=about,
        )
        return
    yield warned(
        f"in {where}: {', '.join(_described(context, connecting))}", _fix(context), about=about
    )


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
    """What each interface is, for people; that of a NAT gateway stands for no caller."""
    known = {
        each["NetworkInterfaceId"]: each
        for each in interfaces(context.account, (interface for interface, _ in connecting))
    }
    for interface, address in connecting:
        one = known.get(interface, {})
        if one.get("InterfaceType") in ("nat_gateway", "natGateway"):
            yield f"callers behind NAT gateway {interface}"
        else:
            what = one.get("Description") or one.get("Attachment", {}).get("InstanceId")
            yield f"{address} ({interface}{', ' + what if what else ''})"
