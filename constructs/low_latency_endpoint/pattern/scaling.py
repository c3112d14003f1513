"""A plan's scaling as constructs: the range, its policy, set times and steps."""

from __future__ import annotations

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling

from ..hosting.endpoint import Endpoint
from ..hosting.scaling import InvocationScaling
from ..hosting.scaling_policies import ScalingStep
from ..options.scaling import whole_seconds
from ..plan.plan import Plan

_METRICS = {
    "concurrency": ("ConcurrentRequestsPerModel", "Maximum"),
    "invocations": ("InvocationsPerInstance", "Sum"),
}


def scaled_as_planned(
    endpoint: Endpoint, variant_name: str, plan: Plan
) -> InvocationScaling | None:
    """Let a variant scale as its plan says; None where the number of instances stays."""
    if plan.scaling is None:
        return None
    given = plan.request.scaling
    scaling = endpoint.scale(
        variant_name, min_instances=plan.fleet.minimum, max_instances=plan.fleet.maximum
    ).track(plan.scaling)
    for each in given.schedule:
        scaling.on_schedule(
            each.name,
            schedule=appscaling.Schedule.expression(each.expression),
            min_instances=each.min,
            max_instances=each.max,
            time_zone=each.time_zone,
        )
    if given.steps is not None:
        metric, statistic = _METRICS[given.steps.metric]
        seconds = whole_seconds(given.steps.cooldown)
        scaling.step_on_metric(
            "Steps",
            metric=endpoint.variant(variant_name).metric(metric, statistic=statistic),
            threshold=given.steps.threshold,
            steps=[
                ScalingStep(lower=step.lower, upper=step.upper, change=step.change)
                for step in given.steps.steps
            ],
            evaluation_periods=given.steps.periods,
            cooldown=None if seconds is None else Duration.seconds(seconds),
        )
    return scaling
