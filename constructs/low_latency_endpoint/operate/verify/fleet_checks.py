"""The endpoint against its plan and its template: type, routing, counts, scaling, policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...account.drift import (
    ALARM,
    COMPOSITE,
    REVERTED,
    Drift,
    configuration_drifts,
    deleted_parts,
    differences,
    scaling_drifts,
    scheduled_limits,
    stated_configuration,
    stated_targets,
)
from ...account.endpoints import DeployedEndpoint, DeployedVariant, describe_endpoint
from ...account.scaling import scalable_targets, scaling_policies, tracked_metric, tracked_value
from ...errors.shell_words import shell_word
from ...facts.failure_reasons import read_failure
from ...report.numbers import readable
from ..checking.checks import Outcome, check, endpoint_check, failed, passed, unknown, warned
from .context import VerificationContext, VerifiedEndpoint

_DESCRIBE = "/sagemaker/latest/APIReference/API_DescribeEndpoint.html"
_SCALING = "/sagemaker/latest/dg/endpoint-auto-scaling.html"
_GUARDRAILS = "/sagemaker/latest/dg/deployment-guardrails.html"
OTHER_CONFIGURATION = f"Another configuration than the stack's serves, see LLV407. {REVERTED}"
_LAST_UPDATE = (
    "The last update was deployed this way, perhaps by hand: the stack's next one uses the "
    "template's."
)
#: Endpoints that serve and are being changed.
_CHANGING = ("Updating", "SystemUpdating")
_NO_PLAN = "the template has no plan to compare with"
_FIX_THE_CAUSE = "Fix the cause in the reason."
_GONE = "SageMaker has no such endpoint"
_RETRY = f"{REVERTED} If that fails, deploy under another endpoint_name."


def by_hand(found: Iterable[Drift]) -> Iterator[Outcome]:
    """What was changed by hand, with what puts it back.

    What is only switched off is a warning, but for an alarm that calls somebody.
    """
    for drift in found:
        yield (warned if drift.paused and not drift.pages else failed)(drift.words, drift.repair)


@check("LLV102", "The template has endpoints, with their plans", how="Unknown without a plan.")
def have_plans(context: VerificationContext) -> Outcome:
    found = context.endpoints
    without = [each.key for each in found if not each.stated.plan]
    if not found:
        return warned(
            "the template has no SageMaker endpoint", "Name the stack that has the endpoint."
        )
    if without:
        return unknown(
            f"no plan for {', '.join(without)}: what LowLatencyEndpoint makes has "
            "one, in the endpoint's metadata"
        )
    return passed(f"{len(found)} with a plan: {', '.join(each.key for each in found)}")


@endpoint_check(
    "LLV401",
    "The endpoint is in service",
    how="While an update runs, the fleets are not compared with the plan.",
    source=_DESCRIBE,
)
def in_service(context: VerifiedEndpoint) -> Outcome:
    described = describe_endpoint(context.account, context.stated.name)
    if described is None:
        return failed(_GONE, _RETRY)
    endpoint = DeployedEndpoint(described, {})
    reason = endpoint.failure_reason
    if endpoint.status == "InService":
        return passed(f"InService with configuration {endpoint.configuration_name}")
    if endpoint.update is not None:
        return warned(
            f"{endpoint.status}: {endpoint.update.words}{f': {reason}' if reason else ''}; "
            f"{endpoint.configuration_name} served before",
            "Verify again when it has ended. `low-latency diagnose` tells how it fares.",
        )
    if endpoint.status in _CHANGING:
        return warned(
            f"{endpoint.status}, without a new configuration: counts or weights change",
            "Verify again when it is InService.",
        )
    return failed(
        f"{endpoint.status}{f': {reason}' if reason else ''}",
        read_failure(reason).fix or f"Wait while it is being changed. Else: {_FIX_THE_CAUSE}",
    )


def _variants(context: VerifiedEndpoint) -> Iterator[tuple[str, str, DeployedVariant]]:
    context.settled()
    return ((name, name, variant) for name, variant in context.variants.items())


@endpoint_check("LLV402", "The instance type matches the plan", source=_DESCRIBE, each=_variants)
def instance_type(context: VerifiedEndpoint, name: str, variant: DeployedVariant) -> Outcome:
    # Of instance pools the plan has the type that it was made for.
    return _compared(context, name, "instance_type", variant.instance_types)


@endpoint_check(
    "LLV403",
    "The routing strategy matches the plan",
    source="/sagemaker/latest/APIReference/API_ProductionVariantRoutingConfig.html",
    each=_variants,
)
def routing(context: VerifiedEndpoint, name: str, variant: DeployedVariant) -> Outcome:
    return _compared(context, name, "routing_strategy", (variant.routing,))


def _compared(
    context: VerifiedEndpoint, variant: str, decision: str, values: Sequence[str]
) -> Outcome:
    found, planned = ", ".join(values), context.planned(decision, variant)
    if planned is None:
        return unknown(f"{found}; {_NO_PLAN}")
    if planned in values:
        return passed(found)
    return failed(f"{found}, the plan says {planned}", OTHER_CONFIGURATION)


@endpoint_check(
    "LLV404",
    "The desired number of instances runs",
    how="Between the plan's minimum and maximum, and those of scheduled times.",
    source=_DESCRIBE,
    each=_variants,
)
def counts(context: VerifiedEndpoint, name: str, variant: DeployedVariant) -> Outcome | None:
    lowest, highest = _planned_limits(context, name)
    now, wanted = variant.current_instances, variant.desired_instances
    if not variant.running:
        return None
    if now is None or wanted is None:
        return unknown("SageMaker returns no counts")
    evidence = f"{now} of {wanted} wanted"
    if now != wanted:
        return warned(
            f"{evidence}: the fleet is changing",
            "Look again in some minutes; if it stays so, the type may be short of "
            "capacity in a zone.",
        )
    if lowest is None or highest is None:
        return unknown(f"{evidence}; {_NO_PLAN}")
    evidence += f"; the plan says {lowest} to {highest}"
    if lowest <= now <= highest:
        return passed(evidence)
    within = min(max(now, lowest), highest)
    counts = f"VariantName={name},DesiredInstanceCount={within}"
    return failed(
        evidence,
        "Scaling brings it back within the limits of LLV405 when it next changes the fleet. To do it "
        "now, or for a fleet that does not scale: "
        f"`aws sagemaker update-endpoint-weights-and-capacities --endpoint-name {shell_word(context.stated.name)} "
        f"--desired-weights-and-capacities {shell_word(counts)}`.",
    )


def _planned_limits(context: VerifiedEndpoint, variant: str) -> tuple[int | None, int | None]:
    """The least and the most instances by the plan; scheduled times may go beyond either."""
    lowest, highest = (context.planned(f"{end}_instances", variant) for end in ("min", "max"))
    if lowest is None or highest is None:
        return None, None
    target, _ = stated_targets(*context.where).get(variant, ({}, {}))
    scheduled = [
        number
        for limits in scheduled_limits(target)
        for number in limits.values()
        if isinstance(number, int)
    ]
    return min((lowest, *scheduled)), max((highest, *scheduled))


def _scaled(context: VerifiedEndpoint) -> Iterator[tuple[str, str, Mapping[str, Any] | None]]:
    """Each variant, twice, and its scalable target."""
    if (endpoint := context.read()) is not None:
        scaled = scalable_targets(context.account, endpoint.name, endpoint.variants)
        yield from ((name, name, scaled.get(name)) for name in endpoint.variants)


@endpoint_check(
    "LLV405",
    "Scaling matches the template",
    how="Limits, policies with target and cooldowns, nothing suspended.",
    source=_SCALING,
    each=_scaled,
)
def scaling(
    context: VerifiedEndpoint, variant: str, target: Mapping[str, Any] | None
) -> Iterator[Outcome]:
    stated = variant in stated_targets(*context.where)
    if not stated and target is None:
        yield passed("off, as in the template")
    elif not stated:
        yield warned(
            "registered, but not in the template",
            "Deregister it, or turn scaling on in the settings.",
        )
    else:
        drifted = scaling_drifts(*context.where)
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
def deployment(context: VerifiedEndpoint) -> Outcome | None:
    described = describe_endpoint(context.account, context.stated.name)
    stated = dict(context.stated.properties.get("DeploymentConfig") or {})
    if described is None or not stated:
        return None
    context.settled()
    config = described.get("LastDeploymentConfig")
    if not config:
        return unknown(
            "SageMaker returns no deployment configuration; the next update uses the template's"
        )
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
        return failed("; ".join(problems), _LAST_UPDATE)
    kind = "blue/green" if "BlueGreenUpdatePolicy" in config else "rolling"
    return passed(f"{kind}; rolls back on {', '.join(sorted(alarms)) or 'no alarm'}")


def _described(context: VerifiedEndpoint) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The endpoint alone: what serves may have no configuration any more."""
    if (endpoint := describe_endpoint(context.account, context.stated.name)) is not None:
        yield "", endpoint


@endpoint_check(
    "LLV407",
    "SageMaker serves the stack's configuration",
    how="Compares the weights too. After a rolled-back update, SageMaker serves the "
    "previous configuration.",
    source=_DESCRIBE,
    each=_described,
)
def configuration(context: VerifiedEndpoint, endpoint: Mapping[str, Any]) -> Iterator[Outcome]:
    context.settled()
    if endpoint["EndpointStatus"] != "InService":
        yield unknown(f"the endpoint is {endpoint['EndpointStatus']}: see LLV401")
        return
    if not stated_configuration(*context.where)[1]:
        yield unknown("the stack has no endpoint configuration of its own to compare with")
        return
    problems = list(by_hand(configuration_drifts(*context.where)))
    yield from problems or [passed(str(endpoint["EndpointConfigName"]))]


@endpoint_check(
    "LLV408",
    "SageMaker reports no failure of the last change",
    how="Looks for a `FailureReason`, even with `InService`.",
    source=_DESCRIBE,
    each=_described,
)
def no_failure(_: VerifiedEndpoint, endpoint: Mapping[str, Any]) -> Outcome:
    if reason := endpoint.get("FailureReason"):
        return failed(
            f"{endpoint['EndpointStatus']}, FailureReason: {reason}",
            f"The last update or scaling failed. {read_failure(reason).fix or _FIX_THE_CAUSE} The "
            "reason goes with the next change that succeeds.",
        )
    return passed("no FailureReason")


@endpoint_check(
    "LLV409",
    "The configuration that serves, and its models, exist",
    how="If somebody deletes one, the next update fails, and SageMaker does not patch the endpoint. "
    "Model data, image and role are not looked at.",
    source="/sagemaker/latest/APIReference/API_DeleteEndpointConfig.html",
    each=_described,
)
def parts_exist(context: VerifiedEndpoint, endpoint: Mapping[str, Any]) -> Iterator[Outcome]:
    deleted = deleted_parts(context.account, DeployedEndpoint(endpoint, {}))
    for part in deleted:
        yield failed(f"{part.words}: the endpoint serves on, and cannot be replaced", part.repair)
    if not deleted:
        yield passed(str(endpoint["EndpointConfigName"]))


def _alarm_names(context: VerifiedEndpoint, rollback: Mapping[str, Any]) -> set[str]:
    physical = context.stack.ids(ALARM) | context.stack.ids(COMPOSITE)
    names = set()
    for alarm in rollback.get("Alarms", ()):
        name = alarm.get("AlarmName")
        stated = physical.get(name.get("Ref", "")) if isinstance(name, Mapping) else name
        if stated:
            names.add(stated)
    return names
