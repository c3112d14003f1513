"""Target tracking: the alarms of a policy, and the capacity that follows from them.

Sources: Application Auto Scaling user guide, "How target tracking scaling works"; SageMaker
developer guide, "Auto scaling policies". That the scale-in alarm stands at nine tenths of the
target over fifteen minutes, and the scale-out alarm at the target over three, is what the alarms
that AWS makes look like.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from typing import Any

__all__ = ["PREDEFINED", "alarm_requests", "wanted_capacity"]

_LOW_SHARE = 0.9
_MINUTE = 60

PREDEFINED: dict[str, tuple[str, str, int]] = {
    "SageMakerVariantInvocationsPerInstance": ("InvocationsPerInstance", "Sum", _MINUTE),
    # AWS lists Minimum and Maximum for this metric; the busiest instance decides here.
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        "ConcurrentRequestsPerModel", "Maximum", 10,
    ),
}
"""Metric, statistic and period in seconds of the predefined metrics of a variant."""


def _queries(
    configuration: Mapping[str, Any], resource_id: str, period: int
) -> list[dict[str, Any]] | dict[str, Any] | None:
    """Give the metric of an alarm: fields of one metric, or queries; None when it is not known."""
    predefined = configuration.get("PredefinedMetricSpecification")
    if predefined:
        known = PREDEFINED.get(predefined["PredefinedMetricType"])
        if known is None:
            return None
        _, endpoint, _, variant = resource_id.split("/")
        return {
            "Namespace": "AWS/SageMaker", "MetricName": known[0], "Statistic": known[1],
            "Period": period,
            "Dimensions": [{"Name": "EndpointName", "Value": endpoint},
                           {"Name": "VariantName", "Value": variant}],
        }
    custom = configuration.get("CustomizedMetricSpecification") or {}
    if custom.get("Metrics"):
        return [_query(query) for query in custom["Metrics"]]
    if not custom.get("MetricName"):
        return None
    return {
        "Namespace": custom["Namespace"], "MetricName": custom["MetricName"],
        "Statistic": custom["Statistic"], "Period": period, "Unit": custom.get("Unit"),
        "Dimensions": custom.get("Dimensions") or [],
    }


def _query(query: Mapping[str, Any]) -> dict[str, Any]:
    stat = query.get("MetricStat")
    if not stat:
        return dict(query)
    return {**query, "MetricStat": {"Period": _MINUTE, **stat}}


def alarm_requests(policy: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write the alarms of a target tracking policy, as PutMetricAlarm takes them.

    The first is the one to scale out on. A policy without scaling in has no other one.
    """
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    predefined = configuration.get("PredefinedMetricSpecification") or {}
    period = PREDEFINED.get(predefined.get("PredefinedMetricType", ""), ("", "", _MINUTE))[2]
    target = float(configuration["TargetValue"])
    sides = [("AlarmHigh", "GreaterThanThreshold", target, period, 3)]
    if not configuration.get("DisableScaleIn"):
        sides.append(("AlarmLow", "LessThanThreshold", target * _LOW_SHARE, _MINUTE, 15))
    requests = []
    for side, operator, threshold, length, count in sides:
        metric = _queries(configuration, policy["ResourceId"], length)
        if metric is None:
            return []
        fields = {"Metrics": metric} if isinstance(metric, list) else metric
        requests.append(
            {
                "AlarmName": f"TargetTracking-{policy['ResourceId']}-{side}-{uuid.uuid4()}",
                "AlarmDescription": "DO NOT EDIT OR DELETE. For TargetTrackingScaling policy "
                f"{policy['PolicyARN']}.",
                "ComparisonOperator": operator,
                "Threshold": threshold,
                "EvaluationPeriods": count,
                "AlarmActions": [policy["PolicyARN"]],
                "TreatMissingData": "missing",
                **{name: value for name, value in fields.items() if value is not None},
            }
        )
    return requests


def wanted_capacity(capacity: int, value: float, target: float, minimum: int, maximum: int) -> int:
    """Give the capacity that brings a metric per instance to its target.

    Parameters
    ----------
    capacity
        Instances now.
    value
        The metric at that capacity: the latest datapoint to scale out, the highest of the alarm's
        to scale in, so that it goes in more gradually than out.
    target
        The policy's TargetValue.
    minimum, maximum
        The scalable target's.

    Examples
    --------
    >>> wanted_capacity(2, 900.0, 600.0, 1, 10), wanted_capacity(4, 100.0, 600.0, 1, 10)
    (3, 1)
    """
    wanted = math.ceil(capacity * value / target - 1e-9)
    return max(minimum, min(maximum, wanted))
