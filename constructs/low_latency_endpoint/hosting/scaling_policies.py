"""Scaling policies: of target tracking, and of steps with the alarm that sets them off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..errors.frozen import dataclass
from ..facts.rules import MIN_ABOVE_MAX
from ..facts.scaling_steps import STEP_CHANGE
from ..options.argument_kinds import checked_arguments
from ..synthesis.template_values import check, is_token


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ScalingStep:
    """One step of step scaling: between two values of the metric, change by so many instances.

    Parameters
    ----------
    lower, upper : float, optional
        The metric's range of this step, above the alarm's threshold; ``None`` leaves a side open.
    change : int
        Instances to add, or to remove if negative.

    Raises
    ------
    ConfigurationError
        LLE364 for a fraction of an instance, LLE807 for other kinds.
    """

    lower: float | None = None
    upper: float | None = None
    change: int

    def __post_init__(self) -> None:
        check(STEP_CHANGE, self.change)


def tracking_policy(
    scope: Construct,
    policy_name: str,
    target_of: appscaling.CfnScalableTarget,
    *,
    of: str,
    metric: str,
    target: float,
    scale_in_seconds: int | None,
    scale_out_seconds: int | None,
    disable_scale_in: bool,
) -> None:
    """Make a policy that holds a predefined metric at a target."""
    policy = appscaling.CfnScalingPolicy
    policy(
        scope,
        policy_name,
        policy_name=_named(policy_name, of),
        policy_type="TargetTrackingScaling",
        scaling_target_id=target_of.ref,
        target_tracking_scaling_policy_configuration=(
            policy.TargetTrackingScalingPolicyConfigurationProperty(
                target_value=target,
                predefined_metric_specification=policy.PredefinedMetricSpecificationProperty(
                    predefined_metric_type=metric
                ),
                scale_in_cooldown=scale_in_seconds,
                scale_out_cooldown=scale_out_seconds,
                disable_scale_in=True if disable_scale_in else None,
            )
        ),
    )


def step_policy(
    scope: Construct,
    policy_name: str,
    target_of: appscaling.CfnScalableTarget,
    *,
    of: str,
    metric: cloudwatch.IMetric,
    threshold: float,
    steps: Sequence[ScalingStep],
    evaluation_periods: int,
    cooldown_seconds: int | None,
    scale_in: bool,
    description: str,
) -> cloudwatch.Alarm:
    """Make a policy of steps, and the alarm that sets it off."""
    policy = appscaling.CfnScalingPolicy(
        scope,
        policy_name,
        policy_name=_named(policy_name, of),
        policy_type="StepScaling",
        scaling_target_id=target_of.ref,
        step_scaling_policy_configuration=(
            appscaling.CfnScalingPolicy.StepScalingPolicyConfigurationProperty(
                adjustment_type="ChangeInCapacity",
                cooldown=cooldown_seconds,
                metric_aggregation_type="Maximum",
                step_adjustments=[
                    appscaling.CfnScalingPolicy.StepAdjustmentProperty(
                        metric_interval_lower_bound=step.lower,
                        metric_interval_upper_bound=step.upper,
                        scaling_adjustment=step.change,
                    )
                    for step in steps
                ],
            )
        ),
    )
    operator = cloudwatch.ComparisonOperator
    alarm = cloudwatch.Alarm(
        scope,
        f"{policy_name}Alarm",
        metric=metric,
        threshold=threshold,
        evaluation_periods=evaluation_periods,
        comparison_operator=(
            operator.LESS_THAN_OR_EQUAL_TO_THRESHOLD
            if scale_in
            else operator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
        ),
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        alarm_description=description,
    )
    cast(cloudwatch.CfnAlarm, alarm.node.default_child).alarm_actions = [policy.ref]
    return alarm


def _named(policy_name: str, of: str) -> str:
    """A name that follows what is scaled: a policy of a renamed endpoint is another policy.

    Where only the name of a target-tracking policy changes, CloudFormation's update fails:
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-applicationautoscaling-scalingpolicy.html
    """
    return f"{policy_name}-{of}"


def check_order(min_instances: int | None, max_instances: int | None, where: str) -> None:
    """Refuse a minimum above the maximum: LLE621."""
    if min_instances is None or max_instances is None:
        return
    if is_token(min_instances) or is_token(max_instances):
        return
    if min_instances > max_instances:
        raise MIN_ABOVE_MAX.error(
            got=f"min_instances={min_instances}, max_instances={max_instances}",
            allowed=f"a minimum of at most {max_instances}",
            where=where,
        )
