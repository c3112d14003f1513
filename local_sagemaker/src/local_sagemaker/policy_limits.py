"""What Application Auto Scaling refuses of a scaling policy, beyond types and lengths.

Sources: its API reference, StepAdjustment, StepScalingPolicyConfiguration,
TargetTrackingScalingPolicyConfiguration, PredefinedMetricSpecification and
TargetTrackingMetricDataQuery; aws/aws-cdk#29065 for the metrics of a dimension. Other words are ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .cloudwatch.limits import LARGEST, problems_of_dimensions, problems_of_queries

_METRICS = {
    "sagemaker:variant:DesiredInstanceCount": (
        "SageMakerVariantInvocationsPerInstance",
        "SageMakerVariantConcurrentRequestsPerModelHighResolution",
    ),
    "sagemaker:variant:DesiredProvisionedConcurrency": (
        "SageMakerVariantProvisionedConcurrencyUtilization",
    ),
    "sagemaker:inference-component:DesiredCopyCount": (
        "SageMakerInferenceComponentInvocationsPerCopy",
        "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution",
    ),
    "ecs:service:DesiredCount": (
        "ECSServiceAverageCPUUtilization",
        "ECSServiceAverageMemoryUtilization",
        "ECSServiceAverageCPUUtilizationHighResolution",
        "ECSServiceAverageMemoryUtilizationHighResolution",
        "ALBRequestCountPerTarget",
    ),
}
"""The predefined metrics of the scalable dimensions that are emulated."""

_ADJUSTMENTS = ("ChangeInCapacity", "ExactCapacity", "PercentChangeInCapacity")


def problems_of_policy(
    dimension: str, kind: str, configuration: Mapping[str, Any]
) -> Iterator[str]:
    """Say why PutScalingPolicy refuses a policy of a scalable dimension."""
    if kind == "StepScaling":
        yield from _problems_of_steps(configuration)
        return
    if not abs(configuration["TargetValue"]) <= LARGEST:
        yield "TargetValue must be in the range of -2^360 to 2^360"
    predefined = configuration.get("PredefinedMetricSpecification")
    custom = configuration.get("CustomizedMetricSpecification")
    if bool(predefined) == bool(custom):
        yield "One of PredefinedMetricSpecification and CustomizedMetricSpecification is needed"
    if predefined:
        yield from _problems_of_predefined(dimension, predefined)
    if custom:
        yield from _problems_of_custom(custom)


def _problems_of_predefined(dimension: str, predefined: Mapping[str, Any]) -> Iterator[str]:
    metric = predefined["PredefinedMetricType"]
    known = _METRICS.get(dimension, (metric,))
    if metric not in known:
        yield (
            f"Scalable dimension {dimension} only supports the following predefined metric types: "
            f"{', '.join(known)}"
        )
    if predefined.get("ResourceLabel") and metric != "ALBRequestCountPerTarget":
        yield f"ResourceLabel cannot be specified for {metric}"


def _problems_of_custom(custom: Mapping[str, Any]) -> Iterator[str]:
    queries = custom.get("Metrics") or []
    yield from problems_of_queries(queries)
    yield from problems_of_dimensions(custom.get("Dimensions") or [])
    if queries and sum(query.get("ReturnData") is not False for query in queries) != 1:
        yield "Exactly one of Metrics must return data"


def _problems_of_steps(configuration: Mapping[str, Any]) -> Iterator[str]:
    adjustment = configuration.get("AdjustmentType")
    if adjustment not in _ADJUSTMENTS:
        yield f"AdjustmentType must be one of {', '.join(_ADJUSTMENTS)}"
    steps = configuration.get("StepAdjustments") or []
    if not steps:
        yield "StepAdjustments must be specified"
    if adjustment == "ExactCapacity" and any(step["ScalingAdjustment"] < 0 for step in steps):
        yield "ScalingAdjustment of ExactCapacity cannot be negative"
    spans = [_span(step) for step in steps]
    if (-math.inf, math.inf) in spans:
        yield "The upper and lower bound cannot be null in the same step adjustment"
    if any(lower >= upper for lower, upper in spans):
        yield "The upper bound of a step adjustment must be greater than its lower bound"
    yield from _problems_of_spans(sorted(spans))


def _span(step: Mapping[str, Any]) -> tuple[float, float]:
    lower, upper = (step.get(f"MetricInterval{side}Bound") for side in ("Lower", "Upper"))
    return -math.inf if lower is None else lower, math.inf if upper is None else upper


def _problems_of_spans(spans: Sequence[tuple[float, float]]) -> Iterator[str]:
    for (_, end), (begin, _) in itertools.pairwise(spans):
        if begin != end:
            yield "The ranges of step adjustments cannot overlap or have a gap"
    lowers = [lower for lower, _ in spans]
    uppers = [upper for _, upper in spans]
    if min(lowers, default=0) < 0 and -math.inf not in lowers:
        yield "A negative lower bound needs a step adjustment with a null lower bound"
    if max(uppers, default=0) > 0 and math.inf not in uppers:
        yield "A positive upper bound needs a step adjustment with a null upper bound"
