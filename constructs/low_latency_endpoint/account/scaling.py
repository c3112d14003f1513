"""How Application Auto Scaling changes the instances of an endpoint's variants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .calls import Account

_SERVICE = "application-autoscaling"
_INSTANCES = {
    "ServiceNamespace": "sagemaker",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


def _resource(endpoint: str, variant: str) -> str:
    return f"endpoint/{endpoint}/variant/{variant}"


def scalable_targets(
    account: Account, endpoint: str, variants: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
    """Variant name to its scalable target, for the variants that scale."""
    ids = {_resource(endpoint, name): name for name in variants}
    if not ids:
        return {}  # AWS would list those of all endpoints
    found = account.every(
        _SERVICE,
        "describe_scalable_targets",
        "ScalableTargets",
        ResourceIds=sorted(ids),
        **_INSTANCES,
    )
    return {ids[each["ResourceId"]]: each for each in found if each["ResourceId"] in ids}


def scaling_policies(account: Account, endpoint: str, variant: str) -> list[Mapping[str, Any]]:
    return list(
        account.every(
            _SERVICE,
            "describe_scaling_policies",
            "ScalingPolicies",
            ResourceId=_resource(endpoint, variant),
            **_INSTANCES,
        )
    )


def scaling_activities(account: Account, endpoint: str, variant: str) -> list[Mapping[str, Any]]:
    """What scaling did, and what it would have done and could not; the newest first."""
    return list(
        account.every(
            _SERVICE,
            "describe_scaling_activities",
            "ScalingActivities",
            ResourceId=_resource(endpoint, variant),
            IncludeNotScaledActivities=True,
            **_INSTANCES,
        )
    )


def _tracking(policy: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = policy.get("TargetTrackingScalingPolicyConfiguration") or {}
    return found


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
