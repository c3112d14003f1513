"""The endpoint against its plan and its template: type, routing, counts, scaling, policy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ...account.endpoints import DeployedVariant, describe_configuration, describe_endpoint
from ...account.scaling import scalable_targets, scaling_policies, tracked_metric, tracked_value
from ...account.stacks import stack_endpoints, stack_ids, template_resources
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


def differences(stated: Any, found: Any, path: str = "") -> Iterator[str]:
    """Each stated literal that is not what was found, in words.

    References and functions of CloudFormation are no literals, and what only the service adds is
    no difference.

    >>> list(differences({"Threshold": 160000, "Dimensions": {"Ref": "X"}},
    ...                  {"Threshold": 200000.0, "Period": 60}))
    ['Threshold is 200000, the template says 160000']
    """
    if isinstance(stated, Mapping):
        if any(key == "Ref" or key.startswith("Fn::") for key in stated):
            return
        for key, value in stated.items():
            inner = found.get(key) if isinstance(found, Mapping) else None
            yield from differences(value, inner, f"{path}.{key}" if path else key)
    elif isinstance(stated, list):
        others = found if isinstance(found, list) else []
        if len(others) != len(stated):
            yield f"{path} has {len(others)} entries, the template {len(stated)}"
        else:
            for number, value in enumerate(stated):
                yield from differences(value, others[number], f"{path}[{number}]")
    elif not _same(stated, found):
        yield f"{path} is {_text(found)}, the template says {_text(stated)}"


def _same(stated: Any, found: Any) -> bool:
    if isinstance(stated, bool) or isinstance(found, bool):
        return str(stated).lower() == str(found).lower()
    try:
        return float(stated) == float(found)
    except (TypeError, ValueError):
        return bool(stated == found)


def _text(value: Any) -> str:
    return (
        f"{value:g}"
        if isinstance(value, float) and abs(value) < 1e6
        else ("nothing" if value is None else f"{value}")
    )


_DESCRIBE = "/sagemaker/latest/APIReference/API_DescribeEndpoint.html"
_SCALING = "/sagemaker/latest/dg/endpoint-auto-scaling.html"
_GUARDRAILS = "/sagemaker/latest/dg/deployment-guardrails.html"
_DEPLOY = "Deploy the stack again from its settings; what was changed by hand goes back."
_NO_PLAN = "the template has no plan to compare with"
_GONE = "SageMaker has no such endpoint"
_RETRY = "Deploy the stack again; if SageMaker has removed the endpoint, under another name."


@check("LLV102", "The template has endpoints, with their plans", how="Unknown without a plan.")
def have_plans(context: VerificationContext) -> list[Outcome]:
    found = stack_endpoints(context.account, context.stack_name)
    without = [each.name for each in found if not each.plan]
    if not found:
        return [warned("the template has no SageMaker endpoint", "Name the stack that has it.")]
    if without:
        return [
            unknown(
                f"no plan for {', '.join(without)}: what LowLatencyEndpoint makes has "
                "one, in the endpoint's metadata"
            )
        ]
    return [passed(f"{len(found)} with a plan: {', '.join(each.name for each in found)}")]


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
            "Wait while it is being changed; else fix what the reason names.",
        )


@endpoint_check("LLV402", "The instance type is the plan's", source=_DESCRIBE)
def instance_type(context: VerifiedEndpoint) -> Iterator[Outcome]:
    yield from _each_variant(
        context, "instance_type", lambda variant: ", ".join(variant.instance_types)
    )


@endpoint_check(
    "LLV403",
    "The routing strategy is the plan's",
    source="/sagemaker/latest/APIReference/API_ProductionVariantRoutingConfig.html",
)
def routing(context: VerifiedEndpoint) -> Iterator[Outcome]:
    yield from _each_variant(context, "routing_strategy", lambda variant: variant.routing)


def _each_variant(
    context: VerifiedEndpoint, decision: str, value: Callable[[DeployedVariant], str]
) -> Iterator[Outcome]:
    endpoint = context.read()
    for name, variant in (endpoint.variants if endpoint else {}).items():
        found, planned = value(variant), context.planned(decision, name)
        if planned is None:
            yield unknown(f"{found}; {_NO_PLAN}", about=name)
        elif found == planned:
            yield passed(f"{found}", about=name)
        else:
            yield failed(f"{found}, the plan says {planned}", _DEPLOY, about=name)


@endpoint_check(
    "LLV404",
    "As many instances run as are wanted",
    how="Between the plan's minimum and maximum.",
    source=_DESCRIBE,
)
def counts(context: VerifiedEndpoint) -> Iterator[Outcome]:
    endpoint = context.read()
    for name, variant in (endpoint.variants if endpoint else {}).items():
        lowest, highest = (context.planned(f"{end}_instances", name) for end in ("min", "max"))
        now, wanted = variant.current_instances, variant.desired_instances
        if not variant.running:
            continue
        if now is None or wanted is None:
            yield unknown("SageMaker tells no counts", about=name)
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
            yield failed(f"{evidence}; the plan says {lowest} to {highest}", _DEPLOY, about=name)
        else:
            yield passed(f"{evidence}; the plan says {lowest} to {highest}", about=name)


@endpoint_check(
    "LLV405",
    "Scaling is registered with the plan's target",
    how="Limits, target, nothing suspended.",
    source=_SCALING,
)
def scaling(context: VerifiedEndpoint) -> Iterator[Outcome]:
    endpoint = context.read()
    if endpoint is None:
        return
    stated = _stated_targets(context)
    scaled = scalable_targets(context.account, endpoint.name, endpoint.variants)
    for name in endpoint.variants:
        yield from guarded(_scales, context, name, scaled.get(name), stated.get(name), about=name)


Stated = tuple[Mapping[str, Any], list[Mapping[str, Any]]]  # a scalable target and its policies


def _scales(
    context: VerifiedEndpoint, variant: str, target: Mapping[str, Any] | None, stated: Stated | None
) -> Iterator[Outcome]:
    if stated is None and target is None:
        yield passed("off, as the template has it")
    elif stated is None:
        yield warned(
            "registered, which the template does not state",
            "Deregister it, or turn scaling on in the settings.",
        )
    elif target is None:
        yield failed("not registered: the number of instances does not follow the load", _DEPLOY)
    else:
        yield from _registered(context, variant, target, *stated)


def _stated_targets(context: VerifiedEndpoint) -> dict[str, Stated]:
    """Variant name to its scalable target and policies, as the template states them."""
    resources = template_resources(context.account, context.stack.stack_name)
    found = {}
    for logical_id, resource in resources.items():
        properties = resource.get("Properties") or {}
        text = json.dumps(properties.get("ResourceId", ""))
        ours = context.stated.logical_id in text or f"/{context.stated.name}/" in text
        if resource["Type"] != "AWS::ApplicationAutoScaling::ScalableTarget" or not ours:
            continue
        variant = text.rpartition("/variant/")[2].partition('"')[0]
        policies = [
            other["Properties"]
            for other in resources.values()
            if other["Type"] == "AWS::ApplicationAutoScaling::ScalingPolicy"
            and other["Properties"].get("ScalingTargetId") == {"Ref": logical_id}
        ]
        found[variant] = (properties, policies)
    return found


def range_differences(stated: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """Limits of a scalable target that neither the template nor one of its set times states.

    >>> night = {"ScalableTargetAction": {"MinCapacity": 2}}
    >>> stated = {"MinCapacity": 4, "MaxCapacity": 9, "ScheduledActions": [night]}
    >>> list(range_differences(stated, {"MinCapacity": 2, "MaxCapacity": 9}))
    []
    >>> list(range_differences(stated, {"MinCapacity": 3, "MaxCapacity": 9}))
    ['MinCapacity is 3, the template says 4']
    """
    actions = [
        each.get("ScalableTargetAction") or {} for each in stated.get("ScheduledActions") or ()
    ]
    for key in ("MinCapacity", "MaxCapacity"):
        at_times = [each[key] for each in actions if key in each]
        if key in stated and found.get(key) not in at_times:
            yield from differences({key: stated[key]}, found)


def _registered(
    context: VerifiedEndpoint,
    variant: str,
    target: Mapping[str, Any],
    stated: Mapping[str, Any],
    policies: list[Mapping[str, Any]],
) -> Iterator[Outcome]:
    problems = list(range_differences(stated, target))
    suspended = [key for key, value in target.get("SuspendedState", {}).items() if value]
    aims = {
        _metric(each): tracked_value(each)
        for each in scaling_policies(context.account, context.stated.name, variant)
    }
    wanted = {_metric(each): tracked_value(each) for each in policies}
    planned, target_planned = (
        context.planned(f"scaling_{name}", variant) for name in ("metric", "target")
    )
    if planned in wanted and target_planned is not None:
        wanted[planned] = target_planned
    problems += [
        f"the policy on {metric} is missing"
        if metric not in aims
        else f"{metric} aims at {aims[metric]:g}, the plan says {value:g}"
        for metric, value in wanted.items()
        if metric not in aims or (value is not None and aims[metric] != value)
    ]
    evidence = "; ".join(
        [
            f"{target['MinCapacity']} to {target['MaxCapacity']} instances",
            *(f"{metric} at {value:g}" for metric, value in aims.items() if value is not None),
        ]
    )
    if problems:
        yield failed("; ".join(problems), _DEPLOY)
    elif suspended:
        yield warned(
            f"{evidence}; suspended: {', '.join(suspended)}",
            "Resume it: `aws application-autoscaling register-scalable-target "
            "--suspended-state ...`.",
        )
    else:
        yield passed(evidence)


def _metric(policy: Mapping[str, Any]) -> str:
    return tracked_metric(policy) or str(policy.get("PolicyName", ""))


@endpoint_check(
    "LLV406",
    "Updates are deployed as the template says",
    how="Traffic policy and rollback alarms.",
    source=_GUARDRAILS,
)
def deployment(context: VerifiedEndpoint) -> Iterator[Outcome]:
    endpoint = context.read()
    stated = dict(context.stated.properties.get("DeploymentConfig") or {})
    if endpoint is None or not stated:
        return
    found = endpoint.description.get("LastDeploymentConfig")
    if not found:
        yield unknown(
            "SageMaker tells no deployment configuration; the next update uses the template's"
        )
        return
    rollback = stated.pop("AutoRollbackConfiguration", {})
    problems = list(differences(stated, found))
    alarms = {
        each["AlarmName"] for each in found.get("AutoRollbackConfiguration", {}).get("Alarms", ())
    }
    wanted = _alarm_names(context, rollback)
    missing = sorted(wanted - alarms)
    problems += [f"{name} does not roll back" for name in missing]
    if problems:
        yield failed("; ".join(problems), _DEPLOY)
    else:
        kind = "blue/green" if "BlueGreenUpdatePolicy" in found else "rolling"
        yield passed(f"{kind}; rolls back on {', '.join(sorted(alarms)) or 'no alarm'}")


@endpoint_check(
    "LLV407",
    "SageMaker serves the stack's configuration",
    how=("After an update that SageMaker rolled back it serves the former one."),
    source=_DESCRIBE,
)
def configuration(context: VerifiedEndpoint) -> Iterator[Outcome]:
    # What serves may have no configuration any more.
    found = describe_endpoint(context.account, context.stated.name)
    if found is None:
        return
    stated = context.stated.properties.get("EndpointConfigName")
    if isinstance(stated, Mapping):
        physical = stack_ids(
            context.account, context.stack.stack_name, "AWS::SageMaker::EndpointConfig"
        )
        logical_id = stated.get("Ref") or (stated.get("Fn::GetAtt") or [""])[0]
        stated = physical.get(logical_id)
    if not stated:
        yield unknown("the stack has no endpoint configuration of its own to compare with")
        return
    # The physical ID is the configuration's ARN, which is in lower case.
    serving, name = str(found["EndpointConfigName"]), str(stated).rpartition("/")[2]
    if serving.lower() == name.lower():
        yield passed(serving)
    else:
        yield failed(
            f"{serving} serves, the stack has {name}",
            "SageMaker rolled an update back, or somebody updated the endpoint by hand. "
            "Do not delete what serves. Fix the cause, change something of the "
            "configuration and deploy: a new configuration takes over.",
        )


@endpoint_check(
    "LLV408",
    "SageMaker names no failure of the last change",
    how="A `FailureReason`, also beside `InService`.",
    source=_DESCRIBE,
)
def no_failure(context: VerifiedEndpoint) -> Iterator[Outcome]:
    # What serves may have no configuration any more.
    found = describe_endpoint(context.account, context.stated.name)
    if found is None:
        return
    if reason := found.get("FailureReason"):
        yield failed(
            f"{found['EndpointStatus']}, FailureReason: {reason}",
            "The last update or scaling failed; fix what the reason names. The reason "
            "goes with the next change that succeeds.",
        )
    else:
        yield passed("no FailureReason")


@endpoint_check(
    "LLV409",
    "The configuration that serves exists",
    how="It can be deleted; then the next update or scaling fails.",
    source="/sagemaker/latest/APIReference/API_DeleteEndpointConfig.html",
)
def configuration_exists(context: VerifiedEndpoint) -> Iterator[Outcome]:
    # What serves may have no configuration any more.
    found = describe_endpoint(context.account, context.stated.name)
    if found is None:
        return
    name = found["EndpointConfigName"]
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
    for kind in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"):
        physical |= stack_ids(context.account, context.stack.stack_name, kind)
    names = set()
    for each in rollback.get("Alarms", ()):
        name = each.get("AlarmName")
        stated = physical.get(name.get("Ref", "")) if isinstance(name, Mapping) else name
        if stated:
            names.add(stated)
    return names
