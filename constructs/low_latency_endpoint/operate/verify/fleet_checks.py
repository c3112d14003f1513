"""The endpoint against its plan and its template: type, routing, counts, scaling, policy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...account.drift import (
    ALARM,
    COMPOSITE,
    REVERTED,
    Drift,
    configuration_drifts,
    differences,
    scaling_drifts,
    scheduled_limits,
    stated_configuration,
    stated_targets,
)
from ...account.endpoints import DeployedVariant, describe_configuration, describe_endpoint
from ...account.scaling import scalable_targets, scaling_policies, tracked_metric, tracked_value
from ...account.stacks import stack_endpoints, stack_ids
from ...report.numbers import readable
from ..checking.checks import (
    Outcome,
    check,
    endpoint_check,
    failed,
    guarded,
    passed,
    unknown,
    warned,
)
from .context import VerificationContext, VerifiedEndpoint

_DESCRIBE = "/sagemaker/latest/APIReference/API_DescribeEndpoint.html"
_SCALING = "/sagemaker/latest/dg/endpoint-auto-scaling.html"
_GUARDRAILS = "/sagemaker/latest/dg/deployment-guardrails.html"
OTHER_CONFIGURATION = f"Another configuration than the stack's serves, see LLV407. {REVERTED}"
_LIMITS = (
    "Scaling brings it back within the limits of LLV405. A fleet that does not scale: "
    "`aws sagemaker update-endpoint-weights-and-capacities`."
)
_LAST_UPDATE = (
    "The last update was deployed this way, perhaps by hand: the stack's next one uses the "
    "template's."
)
_NO_PLAN = "the template has no plan to compare with"
_GONE = "SageMaker has no such endpoint"
_RETRY = f"{REVERTED} If that fails, deploy under another endpoint_name."


def by_hand(found: Iterable[Drift]) -> Iterator[Outcome]:
    """What was changed by hand, with what puts it back; what is only switched off is a warning."""
    for drift in found:
        yield (warned if drift.paused else failed)(drift.words, drift.repair)


@check("LLV102", "The template has endpoints, with their plans", how="Unknown without a plan.")
def have_plans(context: VerificationContext) -> list[Outcome]:
    found = stack_endpoints(context.account, context.stack_name)
    without = [each.name for each in found if not each.plan]
    if not found:
        return [
            warned(
                "the template has no SageMaker endpoint", "Name the stack that has the endpoint."
            )
        ]
    if without:
        return [
            unknown(
                f"no plan for {', '.join(without)}: what LowLatencyEndpoint makes has "
                "one, in the endpoint's metadata"
            )
        ]
    return [passed(f"{len(found)} with a plan: {', '.join(endpoint.name for endpoint in found)}")]


@endpoint_check("LLV401", "The endpoint is in service", source=_DESCRIBE)
def in_service(context: VerifiedEndpoint) -> Iterator[Outcome]:
    endpoint = context.read()
    if endpoint is None:
        yield failed(_GONE, _RETRY)
    elif endpoint.status == "InService":
        yield passed(f"InService with configuration {endpoint.configuration_name}")
    else:
        reason = endpoint.failure_reason
        yield failed(
            f"{endpoint.status}{f': {reason}' if reason else ''}",
            "Wait while it is being changed; else fix the cause in the reason.",
        )


@endpoint_check("LLV402", "The instance type matches the plan", source=_DESCRIBE)
def instance_type(context: VerifiedEndpoint) -> Iterator[Outcome]:
    # Of instance pools the plan has the type that it was made for.
    yield from _each_variant(context, "instance_type", lambda variant: variant.instance_types)


@endpoint_check(
    "LLV403",
    "The routing strategy matches the plan",
    source="/sagemaker/latest/APIReference/API_ProductionVariantRoutingConfig.html",
)
def routing(context: VerifiedEndpoint) -> Iterator[Outcome]:
    yield from _each_variant(context, "routing_strategy", lambda variant: (variant.routing,))


def _each_variant(
    context: VerifiedEndpoint, decision: str, values: Callable[[DeployedVariant], Sequence[str]]
) -> Iterator[Outcome]:
    endpoint = context.read()
    for name, variant in (endpoint.variants if endpoint else {}).items():
        found, planned = ", ".join(values(variant)), context.planned(decision, name)
        if planned is None:
            yield unknown(f"{found}; {_NO_PLAN}", about=name)
        elif planned in values(variant):
            yield passed(f"{found}", about=name)
        else:
            yield failed(f"{found}, the plan says {planned}", OTHER_CONFIGURATION, about=name)


@endpoint_check(
    "LLV404",
    "The desired number of instances runs",
    how="Between the plan's minimum and maximum, and those of scheduled times.",
    source=_DESCRIBE,
)
def counts(context: VerifiedEndpoint) -> Iterator[Outcome]:
    endpoint = context.read()
    for name, variant in (endpoint.variants if endpoint else {}).items():
        lowest, highest = _planned_limits(context, name)
        now, wanted = variant.current_instances, variant.desired_instances
        if not variant.running:
            continue
        if now is None or wanted is None:
            yield unknown("SageMaker returns no counts", about=name)
            continue
        evidence = f"{now} of {wanted} wanted"
        if now != wanted:
            yield warned(
                f"{evidence}: the fleet is changing",
                "Look again in some minutes; if it stays so, the type may be short of "
                "capacity in a zone.",
                about=name,
            )
        elif lowest is None or highest is None:
            yield unknown(f"{evidence}; {_NO_PLAN}", about=name)
        elif not lowest <= now <= highest:
            yield failed(f"{evidence}; the plan says {lowest} to {highest}", _LIMITS, about=name)
        else:
            yield passed(f"{evidence}; the plan says {lowest} to {highest}", about=name)


def _planned_limits(context: VerifiedEndpoint, variant: str) -> tuple[int | None, int | None]:
    """The least and the most instances by the plan; scheduled times may go beyond either."""
    lowest, highest = (context.planned(f"{end}_instances", variant) for end in ("min", "max"))
    if lowest is None or highest is None:
        return None, None
    targets = stated_targets(context.account, context.stack.stack_name, context.stated)
    target, _ = targets.get(variant, ({}, {}))
    scheduled = [
        number
        for limits in scheduled_limits(target)
        for number in limits.values()
        if isinstance(number, int)
    ]
    return min((lowest, *scheduled)), max((highest, *scheduled))


@endpoint_check(
    "LLV405",
    "Scaling matches the template",
    how="Limits, policies with target and cooldowns, nothing suspended.",
    source=_SCALING,
)
def scaling(context: VerifiedEndpoint) -> Iterator[Outcome]:
    endpoint = context.read()
    if endpoint is None:
        return
    targets = stated_targets(context.account, context.stack.stack_name, context.stated)
    scaled = scalable_targets(context.account, endpoint.name, endpoint.variants)
    for name in endpoint.variants:
        found = scaled.get(name)
        yield from guarded(_scales, context, name, found, name in targets, about=name)


def _scales(
    context: VerifiedEndpoint, variant: str, target: Mapping[str, Any] | None, stated: bool
) -> Iterator[Outcome]:
    if not stated and target is None:
        yield passed("off, as in the template")
    elif not stated:
        yield warned(
            "registered, but not in the template",
            "Deregister it, or turn scaling on in the settings.",
        )
    else:
        drifted = scaling_drifts(context.account, context.stack.stack_name, context.stated)
        problems = list(by_hand(drift for drift in drifted if drift.variant == variant))
        yield from problems
        if target is not None and not problems:
            aims = (
                f"{tracked_metric(policy) or policy.get('PolicyName', '')} at {readable(value)}"
                for policy in scaling_policies(context.account, context.stated.name, variant)
                if (value := tracked_value(policy)) is not None
            )
            limits = f"{target['MinCapacity']} to {target['MaxCapacity']} instances"
            yield passed("; ".join((limits, *aims)))


@endpoint_check(
    "LLV406",
    "The deployment of updates matches the template",
    how="Traffic policy and rollback alarms.",
    source=_GUARDRAILS,
)
def deployment(context: VerifiedEndpoint) -> Iterator[Outcome]:
    endpoint = context.read()
    stated = dict(context.stated.properties.get("DeploymentConfig") or {})
    if endpoint is None or not stated:
        return
    config = endpoint.description.get("LastDeploymentConfig")
    if not config:
        yield unknown(
            "SageMaker returns no deployment configuration; the next update uses the template's"
        )
        return
    rollback = stated.pop("AutoRollbackConfiguration", {})
    problems = [*map(str, differences(stated, config))]
    alarms = {
        alarm["AlarmName"]
        for alarm in config.get("AutoRollbackConfiguration", {}).get("Alarms", ())
    }
    alarm_names = _alarm_names(context, rollback)
    missing = sorted(alarm_names - alarms)
    problems += [f"{name} does not roll back" for name in missing]
    if problems:
        yield failed("; ".join(problems), _LAST_UPDATE)
    else:
        kind = "blue/green" if "BlueGreenUpdatePolicy" in config else "rolling"
        yield passed(f"{kind}; rolls back on {', '.join(sorted(alarms)) or 'no alarm'}")


@endpoint_check(
    "LLV407",
    "SageMaker serves the stack's configuration",
    how="Compares the weights too. After a rolled-back update, SageMaker serves the "
    "previous configuration.",
    source=_DESCRIBE,
)
def configuration(context: VerifiedEndpoint) -> Iterator[Outcome]:
    # What serves may have no configuration any more.
    endpoint = describe_endpoint(context.account, context.stated.name)
    if endpoint is None:
        return
    where = context.account, context.stack.stack_name, context.stated
    if not stated_configuration(*where)[1]:
        yield unknown("the stack has no endpoint configuration of its own to compare with")
        return
    problems = list(by_hand(configuration_drifts(*where)))
    yield from problems or [passed(str(endpoint["EndpointConfigName"]))]


@endpoint_check(
    "LLV408",
    "SageMaker reports no failure of the last change",
    how="Looks for a `FailureReason`, even with `InService`.",
    source=_DESCRIBE,
)
def no_failure(context: VerifiedEndpoint) -> Iterator[Outcome]:
    # What serves may have no configuration any more.
    endpoint = describe_endpoint(context.account, context.stated.name)
    if endpoint is None:
        return
    if reason := endpoint.get("FailureReason"):
        yield failed(
            f"{endpoint['EndpointStatus']}, FailureReason: {reason}",
            "The last update or scaling failed; fix the cause in the reason. The reason "
            "goes with the next change that succeeds.",
        )
    else:
        yield passed("no FailureReason")


@endpoint_check(
    "LLV409",
    "The configuration that serves exists",
    how="If somebody deletes it, the next update or scaling fails.",
    source="/sagemaker/latest/APIReference/API_DeleteEndpointConfig.html",
)
def configuration_exists(context: VerifiedEndpoint) -> Iterator[Outcome]:
    # What serves may have no configuration any more.
    endpoint = describe_endpoint(context.account, context.stated.name)
    if endpoint is None:
        return
    name = endpoint["EndpointConfigName"]
    if describe_configuration(context.account, name) is None:
        yield failed(
            f"{name} is deleted: the endpoint can be neither updated nor scaled, and is "
            "not patched",
            "Make a configuration of that name again, from its model and "
            "the variants in DescribeEndpoint; or deploy under another endpoint_name.",
        )
    else:
        yield passed(f"{name}")


def _alarm_names(context: VerifiedEndpoint, rollback: Mapping[str, Any]) -> set[str]:
    physical: dict[str, str] = {}
    for kind in (ALARM, COMPOSITE):
        physical |= stack_ids(context.account, context.stack.stack_name, kind)
    names = set()
    for alarm in rollback.get("Alarms", ()):
        name = alarm.get("AlarmName")
        stated = physical.get(name.get("Ref", "")) if isinstance(name, Mapping) else name
        if stated:
            names.add(stated)
    return names
