"""Auto scaling of a variant's instances, by policies that inference components have too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, cast

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..errors import ConfigurationError
from ..errors.findings import located
from ..errors.frozen import dataclass
from ..facts.limits import (
    COOLDOWN_SECONDS,
    EVALUATION_PERIODS,
    MAX_INSTANCES,
    MIN_CAPACITY,
    SCALING_TARGET,
    TPS_PER_INSTANCE,
)
from ..facts.rules import (
    BURSTABLE,
    CAPACITY_CHANGE,
    INITIAL_OUTSIDE_RANGE,
    MIN_ABOVE_MAX,
    POLICY_NAMED_TWICE,
    SCALING_STEPS,
    THROUGHPUT_OR_TARGET,
)
from ..facts.scaling_steps import STEP_CHANGE, check_steps
from ..options.argument_kinds import checked_arguments
from ..options.option import read
from ..options.scaling import ScalingSchedule
from ..options.throughput import invocations_target
from ..plan.scaling_policy import CONCURRENCY_METRIC, INVOCATIONS_METRIC, ScalingPolicy
from ..plan.standing_ranges import CapacityRange, check_ranges
from ..synthesis.construct_tree import path_below, path_of
from ..synthesis.template_values import check, check_seconds, is_token
from .variant import VariantAttributes

_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


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


class ScalableTarget(Construct):
    """What Application Auto Scaling keeps within a range, and the policies that move it there."""

    def _register(
        self, dimension: str, resource_id: str, lowest: int, highest: int, *, of: str
    ) -> None:
        """Make the target; the names of its policies end with what they are of."""
        self._of = of
        self._names: set[str] = set()
        self.cfn_scalable_target = appscaling.CfnScalableTarget(
            self,
            "Target",
            service_namespace="sagemaker",
            scalable_dimension=dimension,
            resource_id=resource_id,
            min_capacity=lowest,
            max_capacity=highest,
        )
        self.node.default_child = self.cfn_scalable_target

    def _track(
        self,
        policy_name: str,
        metric: str,
        target: float,
        scale_in_seconds: int | None,
        scale_out_seconds: int | None,
        disable_scale_in: bool,
    ) -> Self:
        """Make a policy that holds a predefined metric at a target."""
        policy = appscaling.CfnScalingPolicy
        policy(
            self,
            policy_name,
            policy_name=self._claimed(policy_name),
            policy_type="TargetTrackingScaling",
            scaling_target_id=self.cfn_scalable_target.ref,
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
        return self

    def _step(
        self,
        policy_name: str,
        *,
        metric: cloudwatch.IMetric,
        threshold: float,
        steps: Sequence[ScalingStep],
        evaluation_periods: int = 1,
        cooldown: Duration | None,
        scale_in: bool = False,
        description: str,
    ) -> cloudwatch.Alarm:
        """Make a policy of steps, and the alarm that sets it off."""
        policy = appscaling.CfnScalingPolicy(
            self,
            policy_name,
            policy_name=self._claimed(policy_name),
            policy_type="StepScaling",
            scaling_target_id=self.cfn_scalable_target.ref,
            step_scaling_policy_configuration=(
                appscaling.CfnScalingPolicy.StepScalingPolicyConfigurationProperty(
                    adjustment_type="ChangeInCapacity",
                    cooldown=self._cooldown(cooldown),
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
            self,
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

    def _cooldown(self, cooldown: Duration | None) -> int | None:
        return check_seconds(COOLDOWN_SECONDS, cooldown, path_of(self))

    def _claimed(self, name: str) -> str:
        """A name that follows what is scaled: a renamed endpoint's policy is another policy."""
        # CloudFormation's update fails where only a target-tracking policy's name changes:
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-applicationautoscaling-scalingpolicy.html
        if name in self._names:
            raise POLICY_NAMED_TWICE.error(
                got=name, allowed=f"none of {', '.join(sorted(self._names))}", where=path_of(self)
            )
        self._names.add(name)
        return f"{name}-{self._of}"


def check_range(
    lowest: int | None,
    highest: int | None,
    where: str,
    *,
    initial: int | None = None,
    unit: str = "",
) -> None:
    """Refuse a minimum above the maximum, LLE621, and an initial number outside the two, LLE625."""
    if lowest is None or highest is None or is_token(lowest) or is_token(highest):
        return
    if lowest > highest:
        raise MIN_ABOVE_MAX.error(
            got=f"min_instances={lowest}, max_instances={highest}",
            allowed=f"a minimum of at most {highest}",
            where=where,
        )
    if initial is not None and not is_token(initial) and not lowest <= initial <= highest:
        raise INITIAL_OUTSIDE_RANGE.error(
            got=f"{initial}{unit}", allowed=f"{lowest} to {highest}", where=where
        )


@checked_arguments
class InvocationScaling(ScalableTarget):
    """A variant as a scalable target; what :meth:`Endpoint.scale` returns.

    The target is registered after the endpoint is in service, under Application Auto Scaling's
    service-linked role.

    Attributes
    ----------
    min_instances, max_instances : int
    highest_maximum : int
        The most instances that ``max_instances`` or a schedule allows.
    cfn_scalable_target : aws_applicationautoscaling.CfnScalableTarget
    variant_name : str
    target_invocations : float or None
        What :meth:`track_invocations` aims at.

    Examples
    --------
    ``endpoint.scale("primary", min_instances=2, max_instances=10).track_invocations(
    max_tps_per_instance=200, safety_factor=0.45)`` aims at 200 x 0.45 x 60 = 5400 invocations
    per instance and minute.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        name_in_stack: str,
        variant: VariantAttributes,
        min_instances: int,
        max_instances: int,
        hold_room: Callable[[int], None] | None = None,
    ) -> None:
        """A variant as a scalable target; what :meth:`Endpoint.scale` returns."""
        super().__init__(scope, id)
        path = path_below(self, scope, id)
        check(MIN_CAPACITY, min_instances, path)
        check(MAX_INSTANCES, max_instances, path)
        _check_range(variant, min_instances, max_instances, path)
        self.variant_name = variant.name
        self.min_instances = min_instances
        self.max_instances = self.highest_maximum = max_instances
        self._name_in_stack = name_in_stack
        self._hold_room = hold_room
        self._register(
            _DIMENSION,
            f"endpoint/{endpoint_name}/variant/{variant.name}",
            min_instances,
            max_instances,
            of=f"{name_in_stack}-{variant.name}",
        )
        self.target_invocations: float | None = None
        self._actions: list[appscaling.CfnScalableTarget.ScheduledActionProperty] = []
        self._schedule: list[ScalingSchedule] = []

    def track_invocations(
        self,
        *,
        max_tps_per_instance: float | None = None,
        safety_factor: float = 0.5,
        target_invocations_per_instance: float | None = None,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
        disable_scale_in: bool = False,
        policy_name: str = "Invocations",
    ) -> InvocationScaling:
        """Hold invocations per instance and minute at measured throughput times safety factor.

        Args:
            max_tps_per_instance: Requests per second that one instance held within the latency target in a load test; needed unless ``target_invocations_per_instance`` is given.
            safety_factor: Share of it to aim at, so that new instances are ready before the old ones are full; AWS starts at 0.5.
            target_invocations_per_instance: The target itself, in invocations per instance and minute, for teams that have one; it may be a token. By default TPS per instance x safety factor x 60.
            scale_in_cooldown: By default 300 seconds, as Application Auto Scaling does.
            scale_out_cooldown: By default 300 seconds, as Application Auto Scaling does.
            disable_scale_in: Only ever add instances; by default they are removed again.
            policy_name: Needed when a variant has several.

        Raises:
            ConfigurationError: LLE602 to LLE605, LLE626, LLE633 for neither or both of
                throughput and target.
        """
        if (max_tps_per_instance is None) == (target_invocations_per_instance is None):
            raise THROUGHPUT_OR_TARGET.error(
                got="neither" if max_tps_per_instance is None else "both",
                allowed="max_tps_per_instance or target_invocations_per_instance",
                where=path_of(self),
            )
        if is_token(max_tps_per_instance) or is_token(safety_factor):
            # The product would be a number that no longer stands for the token.
            raise TPS_PER_INSTANCE.rule.error(
                what="the scaling target cannot be calculated from a token",
                got="a token",
                allowed="numbers known at synth: CloudFormation cannot multiply",
                where=path_of(self),
            )
        target = (
            check(SCALING_TARGET, target_invocations_per_instance, path_of(self))
            if max_tps_per_instance is None
            else invocations_target(max_tps_per_instance, safety_factor)
        )
        self.target_invocations = target
        return self._track(
            policy_name,
            INVOCATIONS_METRIC,
            target,
            self._cooldown(scale_in_cooldown),
            self._cooldown(scale_out_cooldown),
            disable_scale_in,
        )

    def track_concurrency(
        self,
        *,
        max_concurrency_per_instance: float,
        scale_in_cooldown: Duration | None = None,
        scale_out_cooldown: Duration | None = None,
        disable_scale_in: bool = False,
        policy_name: str = "Concurrency",
    ) -> InvocationScaling:
        """Hold requests in flight per instance, measured every 10 seconds.

        Scales out several times faster than invocations per minute, and suits requests whose
        duration varies (streamed tokens count until the last). Scale-in is not faster.

        Args:
            max_concurrency_per_instance: Requests in flight at an instance that scaling aims at.
            scale_in_cooldown: By default 300 seconds, as Application Auto Scaling does.
            scale_out_cooldown: By default 300 seconds, as Application Auto Scaling does.
            disable_scale_in: Only ever add instances; by default they are removed again.
            policy_name: Needed when a variant has several.

        Raises:
            ConfigurationError: LLE602, LLE605, LLE626.
        """
        return self._track(
            policy_name,
            CONCURRENCY_METRIC,
            check(SCALING_TARGET, max_concurrency_per_instance, path_of(self)),
            self._cooldown(scale_in_cooldown),
            self._cooldown(scale_out_cooldown),
            disable_scale_in,
        )

    def track(self, policy: ScalingPolicy) -> InvocationScaling:
        """Track what a plan says: metric, target and cooldowns of ``plan.scaling``.

        Raises
        ------
        ConfigurationError
            LLE626.
        """
        by_invocations = policy.metric == INVOCATIONS_METRIC
        self.target_invocations = policy.target if by_invocations else None
        return self._track(
            "Invocations" if by_invocations else "Concurrency",
            policy.metric,
            policy.target,
            policy.scale_in_seconds,
            policy.scale_out_seconds,
            disable_scale_in=False,
        )

    def step_on_metric(
        self,
        policy_name: str,
        *,
        metric: cloudwatch.IMetric,
        threshold: float,
        steps: Sequence[ScalingStep],
        evaluation_periods: int = 1,
        cooldown: Duration | None = None,
        scale_in: bool = False,
    ) -> cloudwatch.Alarm:
        """Add or remove instances in steps when a metric passes a threshold.

        Args:
            policy_name: The policy's name, another one for each policy.
            metric: What CloudWatch watches.
            threshold: In the metric's own unit (microseconds for latencies).
            steps: Ranges relative to the threshold, each beginning where another one ends; the highest is open above. Application Auto Scaling refuses gaps and overlaps.
            evaluation_periods: Periods above the threshold until it acts; by default 1.
            cooldown: By default 300 seconds.
            scale_in: Act when the metric is at or below the threshold; by default at or above.

        Raises:
            ConfigurationError: LLE605, LLE626, LLE628, LLE630, LLE702.
        """
        path = path_of(self)
        check(EVALUATION_PERIODS, evaluation_periods, path)
        if not steps:
            raise SCALING_STEPS.error(got="no steps", allowed="at least one step", where=path)
        bounds = [(step.lower, step.upper) for step in steps]
        if not any(is_token(bound) for step in bounds for bound in step):
            check_steps(bounds, path)
        return self._step(
            policy_name,
            metric=metric,
            threshold=threshold,
            steps=steps,
            evaluation_periods=evaluation_periods,
            cooldown=cooldown,
            scale_in=scale_in,
            description=f"Steps instances of {self._name_in_stack}/{self.variant_name}",
        )

    def on_schedule(
        self,
        name: str,
        *,
        schedule: appscaling.Schedule,
        min_instances: int | None = None,
        max_instances: int | None = None,
        time_zone: str | None = None,
    ) -> InvocationScaling:
        """Change the range at set times, such as before a known rush.

        Args:
            name: The change's name, another one for each.
            schedule: ``Schedule.cron(hour="8", minute="0")`` or ``Schedule.at(...)``.
            min_instances: The new fewest instances. State this or ``max_instances``, or both.
            max_instances: The new most instances.
            time_zone: Such as ``Europe/Berlin``; by default UTC.

        Raises:
            ConfigurationError: LLE106, LLE157, LLE601, LLE621, LLE626, LLE627.
        """
        path = path_of(self)
        self._claimed(name)
        if min_instances is None and max_instances is None:
            raise CAPACITY_CHANGE.error(got="neither", allowed="one or both", where=path)
        check(MIN_CAPACITY, min_instances, path)
        check(MAX_INSTANCES, max_instances, path)
        check_range(min_instances, max_instances, path)
        if max_instances is not None and self._hold_room is not None:
            self._hold_room(max_instances)
        if max_instances is not None and not is_token(max_instances):
            self.highest_maximum = max(self.highest_maximum, max_instances)
        target = appscaling.CfnScalableTarget
        self._actions.append(
            target.ScheduledActionProperty(
                scheduled_action_name=name,
                schedule=schedule.expression_string,
                timezone=time_zone,
                scalable_target_action=target.ScalableTargetActionProperty(
                    min_capacity=min_instances, max_capacity=max_instances
                ),
            )
        )
        self._schedule.append(_as_planned(name, schedule, time_zone, min_instances, max_instances))
        self._check_schedule(path)
        self.cfn_scalable_target.scheduled_actions = [*self._actions]
        return self

    def _check_schedule(self, path: str) -> None:
        """Refuse actions that can leave a minimum above the maximum, LLE621, in any order."""
        numbers = [self.min_instances, self.max_instances]
        for action in self._schedule:
            numbers += [number for number in (action.min, action.max) if number is not None]
        if any(is_token(number) for number in numbers):
            return
        try:
            check_ranges(self._schedule, CapacityRange(self.min_instances, self.max_instances))
        except ConfigurationError as error:
            raise located(error, path) from None


def _as_planned(
    name: str,
    schedule: appscaling.Schedule,
    time_zone: str | None,
    min_instances: int | None,
    max_instances: int | None,
) -> ScalingSchedule:
    """A scheduled action as the plan has it, whatever CDK says of its time."""
    kind, _, rest = schedule.expression_string.partition("(")
    when = {kind: rest.removesuffix(")")} if kind in ScalingSchedule.exactly_one_of else {}
    stated = {"name": name, "time_zone": time_zone, "min": min_instances, "max": max_instances}
    action, _ = read(ScalingSchedule, {**stated, **when})
    return action


def _check_range(
    variant: VariantAttributes, min_instances: int, max_instances: int, where: str
) -> None:
    check_range(min_instances, max_instances, where, initial=variant.instance_count)
    for instance_type in variant.instance_types:
        facts = instance_type.facts
        if facts is not None and facts.burstable:
            raise BURSTABLE.error(
                got=instance_type.name, allowed="types that are not burstable", where=where
            )
