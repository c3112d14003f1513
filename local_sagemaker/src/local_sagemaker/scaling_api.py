"""Application Auto Scaling: targets, policies, scheduled actions.

moto does not know all of SageMaker's dimensions, keeps policies of targets that are gone and
returns only part of what was put. What a variant's policies do is in `runtime.scaling`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any
from zoneinfo import available_timezones

from .application import Caller, Operation, OwnService
from .hosting import Scaling, TargetKey, all_variants, hosting, scaling
from .permissions.requests import scaling_role
from .policy_limits import problems_of_policy
from .protocols import Invalid, ServiceError
from .runtime.scaling import DIMENSIONS, drop_alarms, make_alarms
from .runtime.scheduled_actions import is_schedule


def _state(caller: Caller) -> Scaling:
    return scaling(*caller.place)


def _key(request: dict[str, Any]) -> TargetKey:
    return request["ServiceNamespace"], request["ResourceId"], request["ScalableDimension"]


def _target(caller: Caller, request: dict[str, Any]) -> TargetKey:
    key = _key(request)
    if key not in _state(caller).targets:
        raise ServiceError(
            f"No scalable target registered for service namespace: {key[0]}, resource ID: "
            f"{key[1]}, scalable dimension: {key[2]}",
            "ObjectNotFoundException",
        )
    return key


def register_scalable_target(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    state, key = _state(caller), _key(request)
    if not key[2].startswith(f"{key[0]}:"):
        raise Invalid("Unsupported service namespace, resource type or scalable dimension")
    _check_resource(caller, key)
    target = state.targets.get(key) or {
        "ServiceNamespace": key[0],
        "ResourceId": key[1],
        "ScalableDimension": key[2],
        "CreationTime": caller.now(),
        "RoleARN": scaling_role(key[0], caller.account),
        "SuspendedState": {
            "DynamicScalingInSuspended": False,
            "DynamicScalingOutSuspended": False,
            "ScheduledScalingSuspended": False,
        },
        "ScalableTargetARN": f"arn:aws:application-autoscaling:{caller.region}:{caller.account}:"
        f"scalable-target/{uuid.uuid4().hex}",
    }
    changed = dict(target)
    for name in ("MinCapacity", "MaxCapacity"):
        if name in request:
            changed[name] = request[name]
        elif name not in changed:
            raise Invalid(f"{name} must be specified for a new scalable target")
    if changed["MinCapacity"] > changed["MaxCapacity"]:
        raise Invalid("Maximum capacity cannot be less than minimum capacity")
    changed["SuspendedState"] = {**target["SuspendedState"], **request.get("SuspendedState", {})}
    state.targets[key] = changed
    state.limits_set.add(key)
    if key[2] in DIMENSIONS:
        caller.runtime.watch()
    if request.get("Tags"):
        state.tags.setdefault(changed["ScalableTargetARN"], {}).update(request["Tags"])
    return {"ScalableTargetARN": changed["ScalableTargetARN"]}


def _check_resource(caller: Caller, key: TargetKey) -> None:
    """Hold a SageMaker variant or component against what exists; the refusals' words are ours."""
    parts = key[1].split("/", 1)
    if key[0] == "sagemaker" and (parts[0] == "inference-component") != ("component" in key[2]):
        raise Invalid("Unsupported service namespace, resource type or scalable dimension")
    if key[0] == "sagemaker" and parts[0] == "inference-component":
        if parts[-1] not in hosting(*caller.place).components:
            raise Invalid(f"ResourceId {key[1]} names no inference component that exists")
        return
    parts = key[1].split("/")
    if key[0] != "sagemaker" or parts[0] != "endpoint":
        return
    endpoint = hosting(*caller.place).endpoints.get(parts[1])
    variants = [v["VariantName"] for v in all_variants(endpoint or {})]
    if endpoint is None or parts[-1] not in variants:
        raise Invalid(
            f"ResourceId {key[1]} does not name a production variant of an endpoint that exists"
        )
    # https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-add-console.html
    config = hosting(*caller.place).configs.get(endpoint["EndpointConfigName"]) or {}
    kinds = {v["VariantName"]: v.get("InstanceType") or "" for v in all_variants(config)}
    kind = kinds.get(parts[-1], "")
    if kind.startswith("ml.t"):
        raise Invalid(f"{key[1]} is on {kind}, a burstable instance, which does not scale")


def _describe(kept: str, answer: str, wanted: str) -> Operation:
    """Make an operation that lists some of what is kept: of a target, and of some names."""
    name = wanted.removesuffix("s")

    def operation(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
        records = getattr(_state(caller), kept)
        names = request.get(wanted)
        filters = ("ServiceNamespace", "ResourceId", "ScalableDimension")
        return {
            answer: [
                record
                for record in (records if isinstance(records, list) else list(records.values()))
                if all(request.get(each) in (None, record[each]) for each in filters)
                and (not names or record[name] in names)
            ]
        }

    return operation


def deregister_scalable_target(caller: Caller, request: dict[str, Any]) -> None:
    """DeregisterScalableTarget: its policies and scheduled actions go with it."""
    state, key = _state(caller), _target(caller, request)
    state.tags.pop(state.targets[key]["ScalableTargetARN"], None)
    del state.targets[key]
    for entry, policy in state.policies.items():
        if entry[0] == key:
            drop_alarms(caller.place, policy)
    for store in (state.policies, state.actions):
        for entry in [e for e in store if e[0] == key]:
            del store[entry]


def put_scaling_policy(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    state, key = _state(caller), _target(caller, request)
    entry = (key, request["PolicyName"])
    before = state.policies.get(entry, {})
    arn = before.get("PolicyARN") or _policy_arn(
        caller, key, "scalingPolicy", request["PolicyName"]
    )
    kind = request.get("PolicyType") or before.get("PolicyType") or "StepScaling"
    wanted = {
        "StepScaling": "StepScalingPolicyConfiguration",
        "TargetTrackingScaling": "TargetTrackingScalingPolicyConfiguration",
    }.get(kind)
    if wanted is None:  # of ECS
        raise Invalid(f"{kind} is not emulated by the local AWS")
    if not request.get(wanted):
        raise Invalid(f"{wanted} must be specified for {kind}")
    for problem in problems_of_policy(key[2], kind, request[wanted]):
        raise Invalid(problem)
    if kind == "TargetTrackingScaling":
        _check_metric(state, entry, request[wanted])
    created = before.get("CreationTime") or caller.now()
    policy = {
        **request,
        "PolicyType": kind,
        "PolicyARN": arn,
        "CreationTime": created,
        "Alarms": [],
    }
    drop_alarms(caller.place, before)
    if kind == "TargetTrackingScaling" and key[2] in DIMENSIONS:
        policy["Alarms"] = make_alarms(caller.place, policy)
    state.policies[entry] = policy
    return {"PolicyARN": arn, "Alarms": policy["Alarms"]}


def _check_metric(
    state: Scaling, entry: tuple[TargetKey, str], configuration: Mapping[str, Any]
) -> None:
    """Refuse a second policy on a target's metric."""
    for other, policy in state.policies.items():
        tracked = policy.get("TargetTrackingScalingPolicyConfiguration") or {}
        if other == entry or other[0] != entry[0]:
            continue
        if track_one_metric(configuration, tracked):
            raise Invalid(
                "Only one TargetTrackingScaling policy for a given metric specification is allowed."
            )


def track_one_metric(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two target tracking policies track one metric: a target takes one of them only.

    So the name of such a policy cannot change, as CloudFormation makes the new one first:
    cdklabs/cdk-ecs-service-extensions#35.
    """
    return any(
        one.get(kind) and one.get(kind) == other.get(kind)
        for kind in ("PredefinedMetricSpecification", "CustomizedMetricSpecification")
    )


def _policy_arn(caller: Caller, key: TargetKey, kind: str, name: str) -> str:
    word = "policyName" if kind == "scalingPolicy" else "scheduledActionName"
    return (
        f"arn:aws:autoscaling:{caller.region}:{caller.account}:{kind}:{uuid.uuid4()}:"
        f"resource/{key[0]}/{key[1]}:{word}/{name}"
    )


def delete_scaling_policy(caller: Caller, request: dict[str, Any]) -> None:
    entry = (_key(request), request["PolicyName"])
    policy = _state(caller).policies.pop(entry, None)
    if policy is not None:
        drop_alarms(caller.place, policy)
    else:
        raise ServiceError(
            f"No scaling policy found for service namespace: {entry[0][0]}, resource ID: "
            f"{entry[0][1]}, scalable dimension: {entry[0][2]}, policy name: {entry[1]}",
            "ObjectNotFoundException",
        )


def put_scheduled_action(caller: Caller, request: dict[str, Any]) -> None:
    state, key = _state(caller), _target(caller, request)
    entry = (key, request["ScheduledActionName"])
    before = state.actions.get(entry)
    if before is None and "Schedule" not in request:
        raise Invalid("Schedule must be specified")
    if before is None and "ScalableTargetAction" not in request:
        # Seen: https://github.com/aws-cloudformation/community-registry-extensions/issues/255
        raise Invalid("At least one of minimum capacity and maximum capacity should be provided")
    if not is_schedule(request.get("Schedule", "rate(1 day)"), "at", "cron", "rate"):
        raise Invalid(f"Schedule expression {request['Schedule']!r} is not valid")
    if request.get("Timezone", "UTC") not in available_timezones():
        raise Invalid(f"Timezone {request['Timezone']!r} is not a time zone of IANA's")
    base = before or {
        "ScheduledActionARN": _policy_arn(caller, key, "scheduledAction", entry[1]),
        "CreationTime": caller.now(),
    }
    state.actions[entry] = {**base, **request}


def delete_scheduled_action(caller: Caller, request: dict[str, Any]) -> None:
    entry = (_key(request), request["ScheduledActionName"])
    if _state(caller).actions.pop(entry, None) is None:
        raise ServiceError(
            f"No scheduled action found with name {entry[1]}", "ObjectNotFoundException"
        )


def _tags(caller: Caller, request: dict[str, Any]) -> dict[str, str]:
    state, arn = _state(caller), request["ResourceARN"]
    if arn not in {target["ScalableTargetARN"] for target in state.targets.values()}:
        raise ServiceError(f"No scalable target found for {arn}", "ResourceNotFoundException")
    return state.tags.setdefault(arn, {})


def tag_resource(caller: Caller, request: dict[str, Any]) -> None:
    _tags(caller, request).update(request["Tags"])


def untag_resource(caller: Caller, request: dict[str, Any]) -> None:
    tags = _tags(caller, request)
    for key in request["TagKeys"]:
        tags.pop(key, None)


def list_tags(caller: Caller, request: dict[str, Any]) -> dict[str, Any]:
    return {"Tags": _tags(caller, request)}


APPLICATION_AUTO_SCALING = OwnService(
    "application-autoscaling",
    {
        "RegisterScalableTarget": register_scalable_target,
        "DescribeScalableTargets": _describe("targets", "ScalableTargets", "ResourceIds"),
        "DeregisterScalableTarget": deregister_scalable_target,
        "PutScalingPolicy": put_scaling_policy,
        "DescribeScalingPolicies": _describe("policies", "ScalingPolicies", "PolicyNames"),
        "DeleteScalingPolicy": delete_scaling_policy,
        "PutScheduledAction": put_scheduled_action,
        "DescribeScheduledActions": _describe(
            "actions", "ScheduledActions", "ScheduledActionNames"
        ),
        "DeleteScheduledAction": delete_scheduled_action,
        "DescribeScalingActivities": _describe("activities", "ScalingActivities", ""),
        "TagResource": tag_resource,
        "UntagResource": untag_resource,
        "ListTagsForResource": list_tags,
    },
    complete=True,
)
