"""How Application Auto Scaling changes the instances of an endpoint's variants."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .calls import Account
from .metrics import why_unpublished

_SET_TO = re.compile(r"instance count to (\d+)", re.IGNORECASE)
_SERVICE = "application-autoscaling"
_INSTANCES = {
    "ServiceNamespace": "sagemaker",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


def _resource(endpoint: str, variant: str) -> str:
    return f"endpoint/{endpoint}/variant/{variant}"


def _asked(account: Account, **resources: Any) -> dict[str, Any]:
    """The parameters that ask for what scales instances: of these resources, or of all."""
    # API reference, ScalableDimension: "If you specify a scalable dimension, you must also specify
    # a resource ID."
    if account.whole_lists:
        return {"ServiceNamespace": _INSTANCES["ServiceNamespace"]}
    return {**resources, **_INSTANCES}


def _of_instances(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those that are about instances; of a scheduled action the dimension is an optional member."""
    own = _INSTANCES["ScalableDimension"]
    return [row for row in rows if row.get("ScalableDimension", own) == own]


def scalable_targets(
    account: Account, endpoint: str, variants: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
    """Variant name to its scalable target, for the variants that scale."""
    ids = {_resource(endpoint, name): name for name in variants}
    if not ids:
        return {}  # AWS would list those of all endpoints
    asked = _asked(account, ResourceIds=sorted(ids))
    found = account.every(_SERVICE, "describe_scalable_targets", "ScalableTargets", **asked)
    targets = [target for target in _of_instances(found) if target["ResourceId"] in ids]
    return {ids[target["ResourceId"]]: target for target in targets}


@dataclass(frozen=True, slots=True)
class Suspended:
    """Which kinds of scaling are suspended: by policies inwards and outwards, and by a schedule."""

    scale_in: bool = False
    scale_out: bool = False
    scheduled: bool = False


NOTHING_SUSPENDED = Suspended()


def suspended_scaling(target: Mapping[str, Any]) -> Suspended:
    """What a scalable target has suspended."""
    state = target.get("SuspendedState") or {}
    return Suspended(
        scale_in=state.get("DynamicScalingInSuspended", False),
        scale_out=state.get("DynamicScalingOutSuspended", False),
        scheduled=state.get("ScheduledScalingSuspended", False),
    )


def scheduled_action_names(account: Account, endpoint: str, variant: str) -> tuple[str, ...]:
    """The actions that may change a variant's instances, or their limits, at set times."""
    resource = _resource(endpoint, variant)
    asked = _asked(account, ResourceId=resource)
    found = account.every(_SERVICE, "describe_scheduled_actions", "ScheduledActions", **asked)
    actions = [action for action in _of_instances(found) if action["ResourceId"] == resource]
    return tuple(action["ScheduledActionName"] for action in actions)


def scaling_policies(account: Account, endpoint: str, variant: str) -> list[Mapping[str, Any]]:
    resource = _resource(endpoint, variant)
    asked = _asked(account, ResourceId=resource)
    found = account.every(_SERVICE, "describe_scaling_policies", "ScalingPolicies", **asked)
    return [policy for policy in _of_instances(found) if policy["ResourceId"] == resource]


def scaling_activities(account: Account, endpoint: str, variant: str) -> list[Mapping[str, Any]]:
    """What scaling did, and what it would have done and could not; the newest first."""
    return account.every(
        _SERVICE,
        "describe_scaling_activities",
        "ScalingActivities",
        ResourceId=_resource(endpoint, variant),
        IncludeNotScaledActivities=True,
        **_INSTANCES,
    )


def _tracking(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    return policy.get("TargetTrackingScalingPolicyConfiguration") or {}


def tracked_metric(policy: Mapping[str, Any]) -> str | None:
    """The metric that a policy holds at a target, by its name; ``None`` where it has no name."""
    tracking = _tracking(policy)
    name: str | None = tracking.get("PredefinedMetricSpecification", {}).get(
        "PredefinedMetricType"
    ) or tracking.get("CustomizedMetricSpecification", {}).get("MetricName")
    return name


def tracked_value(policy: Mapping[str, Any]) -> float | None:
    """The value at which a policy holds its metric; ``None`` where it tracks none."""
    value = _tracking(policy).get("TargetValue")
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Activity:
    """One scaling activity; ``capacity`` is the count it set, ``None`` where it set none."""

    start: datetime
    end: datetime | None
    status: str
    description: str
    message: str = ""
    cause: str = ""
    capacity: int | None = None
    not_scaled: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the instances asked for did not come.

        An activity that was never begun, say at the maximum, has its reasons and did not fail.
        """
        return self.status in ("Failed", "Unfulfilled") and not (
            set(self.not_scaled) - {"TargetServicePutResourceAsUnscalable"}
        )


@dataclass(frozen=True, slots=True)
class ScalingReading:
    """Application Auto Scaling's word on a variant; not registered: ``maximum`` is ``None``.

    ``target`` is invocations per instance and minute, or requests in flight per instance,
    depending on ``metric``. ``activities`` is ``None`` when they may not be read.
    """

    minimum: int | None = None
    maximum: int | None = None
    metric: str = ""
    target: float | None = None
    scale_out_cooldown: float | None = None
    scale_out_suspended: bool = False
    has_policy: bool = True  # False where AWS lists none: nothing follows the load
    doubt: str = ""  # why the tracked metric cannot be this variant's
    activities: tuple[Activity, ...] | None = ()


def read_scaling(
    account: Account, endpoint: str, variant: str, start: datetime, end: datetime
) -> ScalingReading | None:
    """Application Auto Scaling's word on a variant; ``None`` when it may not be read."""
    targets = account.known(f"scaling of {variant}", scalable_targets, endpoint, [variant])
    if targets is None:
        return None
    if variant not in targets:
        return ScalingReading()
    policies = account.known(f"scaling policies of {variant}", scaling_policies, endpoint, variant)
    activities = account.known(
        f"scaling activities of {variant}", scaling_activities, endpoint, variant
    )
    return ScalingReading(
        minimum=targets[variant]["MinCapacity"],
        maximum=targets[variant]["MaxCapacity"],
        scale_out_suspended=suspended_scaling(targets[variant]).scale_out,
        has_policy=policies is None or bool(policies),
        activities=None if activities is None else tuple(_activities(activities, start, end)),
        **_tracked(policies or [], endpoint, variant),
    )


def _tracked(policies: list[Mapping[str, Any]], endpoint: str, variant: str) -> dict[str, Any]:
    """Metric, target, scale-out cooldown and doubts of the policy that tracks a target."""
    tracking = [policy for policy in policies if _tracking(policy)]
    if not tracking:
        return {"metric": policies[0]["PolicyType"]} if policies else {}
    # Invocations first: the load of each minute is measured against their target.
    policy = min(
        tracking, key=lambda each: "Invocations" not in json.dumps(_tracking(each), default=str)
    )
    own = _tracking(policy).get("CustomizedMetricSpecification", {})
    names = {"EndpointName": (endpoint,), "VariantName": (variant,)}
    return {
        "metric": tracked_metric(policy) or "metric math",
        "target": tracked_value(policy),
        "scale_out_cooldown": _tracking(policy).get("ScaleOutCooldown", 300),
        "doubt": why_unpublished(own, own.get("Statistic", ""), names, own.get("Unit", "")),
    }


def _activities(
    found: list[Mapping[str, Any]], start: datetime, end: datetime
) -> Iterator[Activity]:
    for each in found:
        if not start <= each["StartTime"] <= end:
            continue
        count = _SET_TO.search(each.get("Description", ""))
        yield Activity(
            start=each["StartTime"],
            end=each.get("EndTime"),
            status=each["StatusCode"],
            description=each.get("Description", ""),
            message=each.get("StatusMessage", ""),
            cause=each.get("Cause", ""),
            capacity=int(count[1]) if count else None,
            not_scaled=tuple(r["Code"] for r in each.get("NotScaledReasons", [])),
        )
