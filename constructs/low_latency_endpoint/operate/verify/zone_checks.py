"""Stack, zones and the interface endpoint: where things stand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...account.network import describe_subnets
from ...account.stacks import stack_description
from ..checking.checks import Outcome, check, endpoint_check, failed, passed, unknown, warned
from .context import (
    VerificationContext,
    VerifiedEndpoint,
    describe_interface_endpoints,
    model_subnets,
    stated_interface_endpoint,
)

_PRIVATE_LINK = "/sagemaker/latest/dg/realtime-endpoints-privatelink.html"
_NO_PLAN = "the template has no plan: it was not made by LowLatencyEndpoint"
_NO_LINK = "the VPC of the models has no interface endpoint for SageMaker Runtime"
_DEPLOY = "Deploy the stack again from its settings."


@check(
    "LLV101",
    "The stack is complete",
    how="And not rolled back.",
    source="/AWSCloudFormation/latest/UserGuide/view-stack-events.html",
)
def stack_complete(context: VerificationContext) -> Iterator[Outcome]:
    stack = stack_description(context.account, context.stack_name)
    status = stack["StackStatus"] if stack else "gone"
    evidence = f"{context.stack_name} is {status}"
    if status in (
        "CREATE_COMPLETE",
        "UPDATE_COMPLETE",
        "IMPORT_COMPLETE",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
    ):
        yield passed(evidence)
    elif status in ("UPDATE_ROLLBACK_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"):
        yield warned(
            evidence,
            "The last update was rolled back: what runs is the version "
            "before. The stack's events say why.",
        )
    else:
        yield failed(evidence, "Wait while it is in progress; else read the stack's events.")


def zones_of(subnets: Iterable[Mapping[str, Any]], client_zones: Iterable[str]) -> set[str]:
    """The zones of subnets, by ID or by name as the client zones are given."""
    wanted = set(client_zones)
    return {
        each["AvailabilityZone"]
        if each["AvailabilityZone"] in wanted
        else each["AvailabilityZoneId"]
        for each in subnets
    }


def chosen_interface_endpoint(context: VerificationContext) -> Mapping[str, Any] | None:
    """The one that callers meet: the stack's own, else the one with private DNS."""
    found = describe_interface_endpoints(context)
    return next(
        (each for each in found if each.get("PrivateDnsEnabled")), found[0] if found else None
    )


@check(
    "LLV201",
    "The interface endpoint is in the callers' zones, with private DNS",
    how="Private DNS unless the template states none.",
    source=_PRIVATE_LINK,
)
def link_in_zones(context: VerificationContext) -> Iterator[Outcome]:
    if not context.endpoints:
        yield unknown("the template has no SageMaker endpoint: see LLV102")
        return
    link = chosen_interface_endpoint(context)
    if link is None:
        yield failed(_NO_LINK, _DEPLOY)
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
            "Turn private DNS on.",
            about="private DNS",
        )
    yield _zones_equal(
        context,
        name,
        describe_subnets(context.account, link.get("SubnetIds", ())),
        context.client_zones,
    )


def _zones_equal(
    context: VerificationContext,
    what: str,
    subnets: Iterable[Mapping[str, Any]],
    wanted: Iterable[str],
) -> Outcome:
    wanted = tuple(wanted)
    if not wanted:
        return unknown(_NO_PLAN, about="zones")
    zones = zones_of(subnets, wanted)
    missing = [zone for zone in wanted if zone not in zones]
    more = sorted(zones - set(wanted))
    evidence = f"{what} is in {', '.join(sorted(zones)) or 'no zone'}"
    if missing:
        return failed(
            f"{evidence}, not in {', '.join(missing)}, where callers run", _DEPLOY, about="zones"
        )
    if more:
        return warned(
            f"{evidence}; no callers are planned in {', '.join(more)}",
            "Add the zone to `client_zones` if callers run there: others can reach it too.",
            about="zones",
        )
    return passed(f"{evidence}, the callers' zones", about="zones")


@endpoint_check(
    "LLV202",
    "The model is in the callers' zones, in the interface endpoint's subnets",
    source=_PRIVATE_LINK,
)
def model_in_zones(context: VerifiedEndpoint) -> Iterator[Outcome]:
    wanted = context.planned("subnets") or ()
    link = chosen_interface_endpoint(context.stack)
    link_subnets = set(link.get("SubnetIds", ()) if link else ())
    for variant, subnets in model_subnets(context).items():
        if not subnets:
            yield failed(f"the model of {variant} is in no VPC", _DEPLOY, about=variant)
            continue
        outcome = _zones_equal(context.stack, f"the model of {variant}", subnets, wanted)
        yield Outcome(outcome.status, outcome.evidence, outcome.fix, variant)
        others = {each["SubnetId"] for each in subnets} ^ link_subnets
        if link and others:
            yield warned(
                f"not in both the model's and {link['VpcEndpointId']}'s subnets: "
                f"{', '.join(sorted(others))}",
                "Give the model the interface endpoint's subnets: AWS advises it.",
                about=variant,
            )
