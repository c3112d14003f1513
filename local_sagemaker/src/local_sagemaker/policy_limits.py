"""What Application Auto Scaling refuses of a whole scaling policy: `request_rules.yaml` has the rest.

Sources: its API reference, StepAdjustment, StepScalingPolicyConfiguration,
TargetTrackingScalingPolicyConfiguration, PredefinedMetricSpecification and
TargetTrackingMetricDataQuery; aws/aws-cdk#29065 for the metrics of a dimension. Other words are ours.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .cloudwatch.limits import problems_of_queries

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


def problems_of_policy(
    dimension: str, kind: str, configuration: Mapping[str, Any]
) -> Iterator[str]:
    """Say why PutScalingPolicy refuses a policy of a scalable dimension."""
    if kind == "StepScaling":
        yield from _problems_of_steps(configuration)
        return
    if predefined := configuration.get("PredefinedMetricSpecification"):
        yield from _problems_of_predefined(dimension, predefined)
    custom = configuration.get("CustomizedMetricSpecification") or {}
    yield from problems_of_queries(custom.get("Metrics") or [], one_result=True)


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


def _problems_of_steps(configuration: Mapping[str, Any]) -> Iterator[str]:
    steps = configuration["StepAdjustments"]
    exact = configuration["AdjustmentType"] == "ExactCapacity"
    if exact and any(step["ScalingAdjustment"] < 0 for step in steps):
        yield "ScalingAdjustment of ExactCapacity cannot be negative"
    spans = [_span(step) for step in steps]
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
