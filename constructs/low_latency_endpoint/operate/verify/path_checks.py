"""The way of a call, zone by zone: interface endpoint, name, TLS, security group, policy."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from low_latency_client.zone import ClientZone

from ...account.calls import Account, json_object
from ...account.canary import ZoneReading, read_canary
from ...account.clock import account_now
from ...account.drift import REVERT
from ...account.network import (
    describe_subnets,
    https_sources,
    interfaces,
    interfaces_at,
    runtime_name,
    vpc_blocks,
    zones,
)
from ...account.sessions import Unreadable
from ...account.stacks import stack_description
from ...account.stuck_stacks import is_stuck, way_out
from ...errors.shell_words import shell_word
from ...report.numbers import milliseconds, readable
from ..checking.checks import Outcome, check, endpoint_check, failed, passed, unknown, warned
from ..checking.policies import caller_through, verdict
from .context import (
    VerificationContext,
    VerifiedEndpoint,
    describe_interface_endpoints,
    inside,
    model_subnets,
    stated_interface_endpoint,
)
from .fleet_checks import OTHER_CONFIGURATION

_PRIVATE_LINK = "/sagemaker/latest/dg/realtime-endpoints-privatelink.html"
_NO_PLAN = "the template has no plan: it was not created by LowLatencyEndpoint"
_NO_LINK = "the VPC of the models has no interface endpoint for SageMaker Runtime"
_REVERT = (
    f"`{REVERT}` makes it again where CloudFormation detects that it is gone. AWS does not list "
    "interface endpoints among those types: after (no changes), `aws ec2 create-vpc-endpoint "
    "--vpc-endpoint-type Interface --vpc-id ... --service-name com.amazonaws.REGION.sagemaker.runtime "
    "--subnet-ids ... --security-group-ids ... --private-dns-enabled`."
)


@check(
    "LLV101",
    "The stack is complete",
    how="And not rolled back.",
    source="/AWSCloudFormation/latest/UserGuide/view-stack-events.html",
)
def stack_complete(context: VerificationContext) -> Outcome:
    stack = stack_description(context.account, context.stack_name)
    status = stack["StackStatus"] if stack else "gone"
    evidence = f"{context.stack_name} is {status}"
    if status in (
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "IMPORT_COMPLETE",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
    ):
        return passed(evidence)
    if status in ("UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"):
        return warned(
            evidence,
            "The last update was rolled back: the previous version "
            "runs. The stack's events report why.",
        )
    if stack and is_stuck(status):
        reason = stack.get("StackStatusReason", "")
        told = f"{evidence}: {reason}" if reason else evidence
        return failed(told, way_out(context.account, stack))
    return failed(evidence, "Wait while it is in progress. Otherwise read the stack's events.")


def zones_of(subnets: Iterable[Mapping[str, Any]], client_zones: Iterable[str]) -> set[str]:
    """The zones of subnets, by ID or by name as the client zones are given."""
    wanted = set(client_zones)
    return {
        subnet["AvailabilityZone"]
        if subnet["AvailabilityZone"] in wanted
        else subnet["AvailabilityZoneId"]
        for subnet in subnets
    }


def chosen_interface_endpoint(context: VerificationContext) -> Mapping[str, Any] | None:
    """The one that callers meet: the stack's own, else the one with private DNS."""
    endpoints = describe_interface_endpoints(context)
    return next(
        (each for each in endpoints if each.get("PrivateDnsEnabled")),
        endpoints[0] if endpoints else None,
    )


@check(
    "LLV201",
    "The interface endpoint is in the callers' zones, with private DNS",
    how="Requires private DNS unless the template turns it off.",
    source=_PRIVATE_LINK,
)
def link_in_zones(context: VerificationContext) -> Iterator[Outcome]:
    if not context.endpoints:
        yield unknown("the template has no SageMaker endpoint: see LLV102")
        return
    link = chosen_interface_endpoint(context)
    if link is None:
        yield failed(_NO_LINK, _REVERT)
        return
    name, state = link["VpcEndpointId"], link["State"].lower()
    if state != "available":
        yield failed(f"{name} is {state}", "Wait until it is available, or fix it.", about="state")
    if link.get("PrivateDnsEnabled"):
        yield passed(f"{name} has private DNS", about="private DNS")
    elif stated_interface_endpoint(context, link).get("PrivateDnsEnabled") is False:
        yield passed(
            f"{name} has no private DNS, as stated: callers use its zonal names",
            about="private DNS",
        )
    else:
        yield failed(
            f"{name} has no private DNS: the runtime's name goes around it",
            f"`aws ec2 modify-vpc-endpoint --vpc-endpoint-id {shell_word(name)} --private-dns-enabled`.",
            about="private DNS",
        )
    if stated_interface_endpoint(context, link):
        yield from _names_in_order(link)
    subnets = describe_subnets(context.account, link.get("SubnetIds", ()))
    add = (
        f"`aws ec2 modify-vpc-endpoint --vpc-endpoint-id {shell_word(name)} --add-subnet-ids ...`."
    )
    yield replace(_zones_equal(name, subnets, context.client_zones, add), about="zones")


def _names_in_order(link: Mapping[str, Any]) -> Iterator[Outcome]:
    """Whether the name that the template took, the first, is the regional one: AWS promises no order."""
    name = link["VpcEndpointId"]
    first = next((entry["DnsName"] for entry in link.get("DnsEntries", ())), "")
    if not first.startswith(f"{name}-") or first in zonal_names(link).values():
        yield failed(
            f"the first DNS name of {name} is {first or 'missing'}, not its regional one, of which "
            "the stack's URLs and records are made",
            "Give callers the names that `aws ec2 describe-vpc-endpoints --vpc-endpoint-ids "
            f"{shell_word(name)}` shows, and report it.",
            about="DNS names",
        )


def _zones_equal(
    what: str, subnets: Iterable[Mapping[str, Any]], wanted: Collection[str], fix: str
) -> Outcome:
    if not wanted:
        return unknown(_NO_PLAN)
    zones = zones_of(subnets, wanted)
    missing = [zone for zone in wanted if zone not in zones]
    more = sorted(zones - set(wanted))
    evidence = f"{what} is in {', '.join(sorted(zones)) or 'no zone'}"
    if missing:
        return failed(f"{evidence}, not in {', '.join(missing)}, where callers run", fix)
    if more:
        return warned(
            f"{evidence}; no callers are planned in {', '.join(more)}",
            "Add the zone to `client_zones` if callers run there: others can reach it too.",
        )
    return passed(f"{evidence}, the callers' zones")


def _models(context: VerifiedEndpoint) -> Iterator[tuple[Any, ...]]:
    """Each variant, twice, the subnets of its model, and the interface endpoint."""
    context.settled()
    link = chosen_interface_endpoint(context.stack)
    return ((name, name, subnets, link) for name, subnets in model_subnets(context).items())


@endpoint_check(
    "LLV202",
    "The model is in the callers' zones, in the interface endpoint's subnets",
    source=_PRIVATE_LINK,
    each=_models,
)
def model_in_zones(
    context: VerifiedEndpoint,
    variant: str,
    subnets: Sequence[Mapping[str, Any]],
    link: Mapping[str, Any] | None,
) -> Iterator[Outcome]:
    if not subnets:
        yield failed(f"the model of {variant} is in no VPC", OTHER_CONFIGURATION)
        return
    wanted = context.planned("subnets") or ()
    yield _zones_equal(f"the model of {variant}", subnets, wanted, OTHER_CONFIGURATION)
    if link and (
        others := {subnet["SubnetId"] for subnet in subnets} ^ set(link.get("SubnetIds", ()))
    ):
        yield warned(
            f"not in both the model's and {link['VpcEndpointId']}'s subnets: "
            f"{', '.join(sorted(others))}",
            "Give the model the interface endpoint's subnets: AWS advises it.",
        )


_ZONAL = "/vpc/latest/privatelink/privatelink-access-aws-services.html"
_POLICY = "/sagemaker/latest/dg/interface-vpc-endpoint.html"
_INTERFACE = "/vpc/latest/privatelink/create-interface-endpoint.html"
_INVOKE = "sagemaker:InvokeEndpoint"
_OUTSIDE = "not inside the VPC: cannot be told from here"
_GO_INSIDE = "Run this command in the VPC, in each client zone."
_ZONAL_FIX = (
    "Give callers the zonal name of their zone (output ZonalUrl), or RuntimeClient, which finds it."
)
_STRANGER = "999999999999"
_LATELY, _MINUTE = timedelta(minutes=15), timedelta(minutes=1)


def _link_that_is_there(context: VerificationContext) -> Mapping[str, Any]:
    link = chosen_interface_endpoint(context)
    if link is None:
        raise Unreadable("no interface endpoint: see LLV201")
    return link


def _addresses(account: Account, link: Mapping[str, Any]) -> dict[str, str]:
    """Address to zone name of the interface endpoint's network interfaces."""
    return {
        interface["PrivateIpAddress"]: interface["AvailabilityZone"]
        for interface in interfaces(account, link.get("NetworkInterfaceIds", ()))
        if "PrivateIpAddress" in interface
    }


def _is_inside(context: VerificationContext, link: Mapping[str, Any]) -> bool:
    """Whether this process runs in the VPC: one of its network interfaces has our address.

    The VPC's range alone does not tell: offices and homes use 10.0.0.0/16 too.
    """
    own = context.machine.own_address()
    if own is None or not inside(own, vpc_blocks(context.account, link["VpcId"])):
        return False
    return bool(interfaces_at(context.account, link["VpcId"], own))


def _resolved(context: VerificationContext, link: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The name that callers use and the addresses that it resolves to here."""
    name = runtime_name(context.account, fips=link["ServiceName"].endswith("-fips"))
    return name, list(context.machine.resolve(name))


@check(
    "LLV301",
    "The runtime's name resolves to the interface endpoint in the same zone",
    how="Resolves the name where the command runs; outside of the VPC, as the canary did. Skipped without private DNS.",
    source=_PRIVATE_LINK,
)
def name_resolves(context: VerificationContext) -> Iterator[Outcome]:
    link = _link_that_is_there(context)
    if (
        not link.get("PrivateDnsEnabled")
        and stated_interface_endpoint(context, link).get("PrivateDnsEnabled") is False
    ):
        return  # the runtime's name is left alone on purpose
    name, answers = _resolved(context, link)
    zones = _addresses(context.account, link)
    here = [address for address in answers if address in zones]
    if not here:
        if _is_inside(context, link):
            got = ", ".join(answers) or "nothing"
            yield failed(
                f"{name} resolves to {got}, none of them {link['VpcEndpointId']}'s",
                "Turn on its private DNS, and both DNS attributes of the VPC; check "
                "that the VPC's own resolver is used.",
            )
        else:
            compared = (each for each in _canary(context) if each.out_of_zone)
            yield from _as_seen(compared, partial(_led, name))
        return
    yield _same_zone(name, {address: zones[address] for address in here}, _own_zone(context))


def _canary(context: VerificationContext) -> Sequence[ZoneReading]:
    """What the canary of the stack's first endpoint that has one has seen lately."""
    end = account_now().replace(second=0, microsecond=0)
    for endpoint in context.endpoints:
        window = (end - _LATELY, end + _MINUTE, _MINUTE)
        if found := read_canary(context.account, endpoint.key, *window):
            return found
    return ()


def _as_seen(
    readings: Iterable[ZoneReading], judge: Callable[[ZoneReading], Outcome]
) -> Iterator[Outcome]:
    """What a canary saw of each zone; without one, where to ask."""
    outcomes = [replace(judge(each), about=each.zone) for each in readings]
    yield from outcomes or [unknown(_OUTSIDE, _GO_INSIDE)]


def _led(name: str, reading: ZoneReading) -> Outcome:
    runs, abroad = len(reading.out_of_zone), reading.out_of_zone.sum
    if not abroad:
        return passed(f"{name} led to the zone's own address in {runs} of the canary's runs")
    return warned(
        f"{name} led out of the zone in {readable(abroad)} of {runs} of the canary's runs",
        _ZONAL_FIX,
    )


@check(
    "LLV305",
    "Callers in each client zone get answers, and their path is short",
    how="Reads what the canary has measured in the last 15 minutes. Skipped without one.",
    source=_PRIVATE_LINK,
    each=lambda context: ((reading.zone, reading) for reading in _canary(context)),
)
def zones_answer(context: VerificationContext, reading: ZoneReading) -> Outcome:
    connect, answer = reading.connect.median, reading.answer.median
    lost, runs = reading.unreachable.sum, len(reading.unreachable)
    refused = reading.refused.sum
    if not runs:
        return unknown("the canary has been silent for 15 minutes", "Read its log.")
    if since := reading.silent_since:
        return unknown(f"the canary has been silent since {since:%H:%M}", "Read its log.")
    if reading.is_unreachable and 2 * refused > lost:
        return failed(
            f"{readable(refused)} of the canary's {runs} runs were refused",
            "Read in its log what was said. LLV304 judges the interface endpoint's policy.",
        )
    if reading.is_unreachable:
        return failed(
            f"{readable(lost)} of the canary's {runs} runs got no answer",
            "Read its log: which step failed? LLV303 checks who may connect.",
        )
    if connect is not None and connect > reading.longest_connect:
        return failed(
            f"connecting takes {milliseconds(connect)}, more than "
            f"{milliseconds(reading.longest_connect)}",
            "See AWS Health for the zone, and run `low-latency diagnose`.",
        )
    times = f"connecting {milliseconds(connect or 0)}"
    if answer is not None:
        times += f", the answer {milliseconds(answer)}"
    return passed(f"{readable(runs - lost)} of {runs} runs answered; medians: {times}")


def _own_zone(context: VerificationContext) -> str | None:
    zone: ClientZone | None = context.machine.client_zone()
    if zone is None:
        return None
    if zone.name:
        return zone.name
    return next(
        (name for name, zone_id in zones(context.account).items() if zone_id == zone.zone_id), None
    )


def _same_zone(name: str, zones: Mapping[str, str], own: str | None) -> Outcome:
    evidence = f"{name} is " + ", ".join(f"{ip} in {zone}" for ip, zone in zones.items())
    fix = _ZONAL_FIX
    if own is None:
        return unknown(
            f"{evidence}; the zone of this machine is not known",
            "Set LOW_LATENCY_CLIENT_ZONE to it.",
        )
    if set(zones.values()) == {own}:
        return passed(f"{evidence}, this machine's zone")
    if own in zones.values():
        return warned(f"{evidence}; this machine is in {own}", fix)
    return failed(f"{evidence}; this machine is in {own}: each call changes the zone", fix)


@check(
    "LLV302",
    "TLS is valid on the zonal names",
    how="Connects from inside the VPC; outside, reads whether the canary got answers by these names.",
    source=_ZONAL,
)
def tls_valid(context: VerificationContext) -> Iterator[Outcome]:
    link = _link_that_is_there(context)
    names = zonal_names(link)
    _, answers = _resolved(context, link)
    # A function in the VPC has no address of it, but meets the private name.
    meets = not _addresses(context.account, link).keys().isdisjoint(answers)
    if not names:
        yield unknown(f"{link['VpcEndpointId']} lists no zonal names")
    elif not meets and not _is_inside(context, link):
        # The canary checks certificates as callers do, and compares names only where it has both.
        compared = (each for each in _canary(context) if each.out_of_zone)
        yield from _as_seen((each for each in compared if not each.unreachable.sum), _answered)
    else:
        for zone, name in names.items():
            yield replace(_tls(context, name), about=zone)


def _answered(reading: ZoneReading) -> Outcome:
    return passed(f"the canary got answers by this name in {len(reading.unreachable)} runs")


def zonal_names(link: Mapping[str, Any]) -> dict[str, str]:
    """Zone name to DNS name, from ``vpce-0a1-b2c3-us-east-1a.runtime...``."""
    found = {}
    for entry in link.get("DnsEntries", ()):
        label, _, rest = entry["DnsName"].partition(".")
        own = label.startswith(link["VpcEndpointId"])
        # The ID itself has a hyphen; what follows it is a random part, then the zone.
        parts = label.removeprefix(link["VpcEndpointId"]).split("-", 2)
        if own and rest and len(parts) == 3:
            found[parts[2]] = entry["DnsName"]
    return dict(sorted(found.items()))


def _tls(context: VerificationContext, name: str) -> Outcome:
    try:
        covered = context.machine.tls_names(name)
    except ssl.SSLCertVerificationError as error:
        return failed(
            f"{name}: {getattr(error, 'verify_message', '') or error}",
            "Use the runtime's own name, or RuntimeClient, which checks the "
            "certificate against it.",
        )
    except OSError as error:
        return failed(
            f"{name} does not answer: {error}",
            "Let this machine in on port 443: security group (LLV303), network ACLs, routes.",
        )
    return passed(f"{name}: certificate for {', '.join(covered[:3])}")


@check(
    "LLV303",
    "The security group lets the callers in",
    how="Port 443, from the zones' subnets or named groups.",
    source=_INTERFACE,
)
def callers_let_in(context: VerificationContext) -> Outcome:
    link = _link_that_is_there(context)
    groups = [group["GroupId"] for group in link.get("Groups", ())]
    sources = https_sources(context.account, groups)
    evidence = f"{', '.join(groups)} lets {sources} in on port 443"
    if not sources:
        return failed(
            f"{', '.join(groups) or 'no group'} lets nobody in on port 443",
            "Set `private_link.allow_cidrs`, or call allow_from(...).",
        )
    if sources.everybody:
        return warned(evidence, "Let in the callers' ranges or security groups only.")
    subnets = describe_subnets(context.account, link.get("SubnetIds", ()))
    outside = [subnet["CidrBlock"] for subnet in subnets if not sources.cover(subnet["CidrBlock"])]
    if outside and not sources.groups and not sources.prefix_lists:
        return warned(
            f"{evidence}, not the client zones' own subnets {', '.join(outside)}",
            "Add their range to `private_link.allow_cidrs` if callers run there.",
        )
    return passed(evidence)


@endpoint_check(
    "LLV304",
    "The endpoint policy allows calls to this endpoint, and to others only as the template does",
    how="The template's policy is for all endpoints of the account in an existing VPC, unless "
    "`narrow_policy` is stated; calls to those are then not judged.",
    source=_POLICY,
)
def policy_narrow(context: VerifiedEndpoint) -> Outcome | None:
    """Judged from the policy's text, for principals of this account and of another.

    Other endpoints are no matter where the template states a policy for all of the account's.
    """
    link = _link_that_is_there(context.stack)
    if link["ServiceName"].endswith("-fips"):
        return None  # AWS supports no policy for InvokeEndpoint there
    account = context.account.account_id()
    partition, region = context.account.partition(), context.account.region
    stem = f"arn:{partition}:sagemaker:{region}:{account}:endpoint/"
    policy = json_object(link.get("PolicyDocument") or "")
    mine = caller_through(link, account)
    strangers = mine | {"aws:PrincipalAccount": _STRANGER}
    name = context.stated.name.lower()
    if not policy:
        return unknown(f"{link['VpcEndpointId']} returns no policy")
    found = verdict(policy, _INVOKE, stem + name, mine)
    if found.allowed is None:
        return unknown(
            f"whether the policy lets {name} be invoked depends on what is not read "
            f"here: {', '.join(found.depends_on)}"
        )
    if not found.allowed:
        return failed(
            f"the policy of {link['VpcEndpointId']} does not let {name} be invoked",
            f"Allow {_INVOKE} on {stem + name} in the policy.",
        )
    others = {
        what: verdict(policy, _INVOKE, resource, who)
        for what, resource, who in (
            ("other endpoints", f"{stem}another-endpoint-than-{name}", mine),
            ("other accounts' principals", stem + name, strangers),
        )
    }
    policy_document = stated_interface_endpoint(context.stack, link).get("PolicyDocument", {})
    wide = ':endpoint/*"' in json.dumps(policy_document)
    if wide:
        del others["other endpoints"]
    open_to = [what for what, one in others.items() if one.allowed]
    doubts = sorted({each for one in others.values() for each in one.depends_on})
    if open_to:
        return warned(
            f"the policy lets {name} be invoked, and {' and '.join(open_to)} too",
            "Name the endpoint, and aws:PrincipalAccount, in the policy, unless "
            "others share the interface endpoint.",
        )
    if doubts:
        return unknown(
            f"the policy lets {name} be invoked by this account; what else it lets "
            f"through depends on what is not read here: {', '.join(doubts)}"
        )
    rest = (
        "; the account's other endpoints are not judged, as the template allows calls to them"
        if wide
        else ", and no other endpoint"
    )
    return passed(f"the policy lets {name} be invoked by this account alone{rest}")
