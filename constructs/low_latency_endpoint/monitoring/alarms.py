"""Alarms on latency, errors, saturation and silence, with thresholds as durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..hosting.endpoint import Endpoint
from ..hosting.endpoint_interface import IEndpoint
from ..hosting.endpoint_metrics import EndpointVariant
from ..plan.argument_kinds import checked_arguments
from ..plan.durations import seconds_of
from ..plan.limits import EVALUATION_PERIODS
from ..plan.plan_warnings import NOBODY_NOTIFIED
from ..plan.rules import SCALED_VARIANTS_ONLY, check_alarm_window
from ..synthesis.asked_once import path_below, stack_of
from ..synthesis.findings import warn
from ..synthesis.validation import check, is_token
from .alarm_options import AlarmOptions, SlowRequests, Thresholds
from .alarm_specifications import AlarmSpecification, specifications
from .composite import all_of, any_of, composite_alarm, is_on

# A deployment shows in CloudWatch as a minute in which both fleets take requests: the series with
# EndpointConfigName starts with the new fleet's traffic and lasts for good (SageMaker guide,
# "Auto-Rollback Configuration and Monitoring"), so alone it says nothing; whether it exists from
# the first create is not documented. That the whole endpoint's series has both fleets is (same
# page); that both series agree to the minute is not. FILL, since one may be missing or late at the
# edges: a hole counts as zero, which holds nothing back.
_BOTH_FLEETS = "IF((FILL(new, 0) > 0) AND (FILL(whole, 0) > FILL(new, 0)), 1, 0)"

# After such a minute pages are held back for ten more. That is the suppressor's own time: any
# change of the composite would end an extension, and CloudWatch wants one besides. The wait is as
# short as it can be, since a composite that is on for less than the wait pages nobody.
_QUIET_AFTER_MINUTES = 10
_EXTENSION_MINUTES = 1
_WAIT_MINUTES = 1

# And they are held back no longer than this, whatever the series do (if the two never agree, every
# minute looks like a deployment). One such minute covers at most 12: ten, the extension, and one
# for alarms that are not judged at the same second. "Too long" is on when a variant had at least
# M = N / (12 x variants) of them in the last N minutes. As long as it is off, the fewer than
# M x variants minutes cannot have covered the last N, so there was a moment in which whatever was
# held back was done; as long as it is on, nothing is held back. So a page comes after N minutes at
# the latest (12 hours; a day, all that CloudWatch allows, with several variants), after M of
# them (an hour with one variant) when both fleets take requests all the time. Each update starts
# anew, with its own configuration's series; until its new fleet has started nothing is held back.
_COVERED_MINUTES = _QUIET_AFTER_MINUTES + _EXTENSION_MINUTES + 1
_RANGE_MINUTES = 60 * _COVERED_MINUTES
_LONGEST_RANGE_MINUTES = 24 * 60


@checked_arguments
class LatencyAlarms(Construct):
    """Alarms of every variant of an endpoint, and one composite alarm that pages.

    SageMaker publishes latencies in microseconds; thresholds are durations, converted here.
    Missing data never alarms, except where silence is the fault. Every description says what the
    alarm means, what to look at first, and the command to run.

    A variant with several instance pools has alarms on utilization for each instance type, which
    has vCPUs and GPUs of its own, and on ModelLatency for each beside the whole.

    A shadow variant has none of them: callers see nothing of it, so it pages nobody and rolls no
    deployment back. :class:`ShadowAlarms` compare it with production.

    Attributes
    ----------
    alarms : dict of str to aws_cloudwatch.Alarm
        By ``<variant>/<metric>/<statistic>``, for example ``primary/ModelLatency/p99``; those of
        one type of several instance pools by ``.../<instance type>``.
    composites : dict of str to aws_cloudwatch.CompositeAlarm
        By severity; ``""`` for alarms without one.
    actions_suppressor : aws_cloudwatch.IAlarm or None
        What holds pages back with ``quiet_during_deployments``.
    options : AlarmOptions
        What was asked for.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: IEndpoint,
        model_latency: Thresholds | None = None,
        overhead_latency: Thresholds | None = None,
        error_rate: float | None = None,
        client_error_rate: float | None = None,
        model_error_rate: float | None = None,
        minimum_invocations: int = 20,
        slow_requests: SlowRequests | None = None,
        anomalies: Mapping[str, str] | None = None,
        cpu_utilization: float | None = None,
        memory_utilization: float | None = None,
        disk_utilization: float | None = None,
        gpu_utilization: float | None = None,
        gpu_memory_utilization: float | None = None,
        cache_miss_rate: float | None = None,
        model_loading_wait: Duration | None = None,
        capacity_at_maximum: bool | Literal["scaled"] = False,
        zone_imbalance: float | None = None,
        expect_traffic: bool = False,
        new_fleet_only: bool = False,
        period: Duration | None = None,
        evaluation_periods: int = 3,
        datapoints_to_alarm: int = 2,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        quiet_during_deployments: bool = False,
    ) -> None:
        """Alarms of every variant of an endpoint, and one composite alarm that pages.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint: An :class:`Endpoint`, or one imported with its variants.
            model_latency: Threshold on ModelLatency by statistic, ``{"p99": Duration.millis(200)}``, or by severity and statistic, ``{"Warning": {"p99": ...}, "Critical": {"p99": ...}}``. By default none.
            overhead_latency: The same for OverheadLatency, for which CloudWatch lists no percentiles: ``Average``. By default none.
            error_rate: Share of invocations that may end in a 5xx. By default no alarm.
            client_error_rate: Share of invocations that may end in a 4xx. By default no alarm.
            model_error_rate: Share of invocations that may end in an error of the model's container. By default no alarm.
            minimum_invocations: Invocations per period below which shares count as zero, so that one failure in the night pages nobody. By default 20.
            slow_requests: How fast the month's budget of slow requests may burn: 14.4 times too fast over an hour and five minutes, 6 times over six hours and thirty minutes. By default no alarm.
            anomalies: Metric to statistic, such as ``{"Invocations": "Sum"}``: alarm outside the band (two standard deviations) that CloudWatch learns. By default none.
            cpu_utilization: Percent of all the instance's vCPUs, of 100, while SageMaker's metric runs to 100 for each. By default no alarm.
            memory_utilization: Percent of the instance's memory. By default no alarm.
            disk_utilization: Percent of the instance's disk. By default no alarm.
            gpu_utilization: Percent of all the instance's GPUs, of 100, while SageMaker's metric runs to 100 for each. By default no alarm.
            gpu_memory_utilization: Percent of the memory of all the instance's GPUs, of 100, as ``gpu_utilization``. By default no alarm.
            cache_miss_rate: Multi-model endpoints: share of requests whose model is not loaded. By default no alarm.
            model_loading_wait: Multi-model endpoints: average wait for a model to be loaded. By default no alarm.
            capacity_at_maximum: Alarm when all instances that scaling may start are serving; ``"scaled"`` watches the variants that scale. By default not; scale the variants before making the alarms.
            zone_imbalance: Alarm when the busiest zone gets this many times its even share. Rests on a dimension that AWS documents without saying which setting publishes it: check that the alarm has data. By default no alarm.
            expect_traffic: Alarm when no requests arrive for five minutes. By default silence is fine.
            new_fleet_only: Watch only the fleet of this configuration (dimension ``EndpointConfigName``), which a deployment brings up: for rollback alarms, which the old fleet would drown. No composite alarm then. By default the whole endpoint is watched.
            period: What an alarm looks at once, of latencies, shares and utilization. By default 1 minute.
            evaluation_periods: Of so many periods, the last ones, ``datapoints_to_alarm`` must be too high. By default 2 of the last 3 periods.
            datapoints_to_alarm: So many of the last ``evaluation_periods`` must be too high. By default 2 of the last 3 periods.
            actions: What the composite alarm does, such as ``SnsAction(topic)`` of ``aws_cloudwatch_actions``, or ``AlarmTopic(...).action``. By default nobody is told.
            quiet_during_deployments: Hold pages back while both fleets of a deployment take requests and ten minutes after, for an hour of such minutes at most (less with more than two variants): which series SageMaker publishes when was not seen on AWS yet, and a page too many beats none. By default not.

        Raises:
            ConfigurationError: LLE631 for an endpoint imported without variants, LLE701 to
                LLE703, LLE721 to LLE729, LLE732 for a statistic the metric does not have,
                and LLE801 and LLE807 for arguments of another kind.
        """
        super().__init__(scope, id)
        self._endpoint = endpoint
        self.options = options = AlarmOptions(
            model_latency=model_latency,
            overhead_latency=overhead_latency,
            error_rate=error_rate,
            client_error_rate=client_error_rate,
            model_error_rate=model_error_rate,
            minimum_invocations=minimum_invocations,
            slow_requests=slow_requests,
            anomalies=anomalies or {},
            cpu_utilization=cpu_utilization,
            memory_utilization=memory_utilization,
            disk_utilization=disk_utilization,
            gpu_utilization=gpu_utilization,
            gpu_memory_utilization=gpu_memory_utilization,
            cache_miss_rate=cache_miss_rate,
            model_loading_wait=model_loading_wait,
            capacity_at_maximum=capacity_at_maximum,
            zone_imbalance=zone_imbalance,
            expect_traffic=expect_traffic,
            new_fleet_only=new_fleet_only,
            period=period,
            evaluation_periods=evaluation_periods,
            datapoints_to_alarm=datapoints_to_alarm,
            actions=actions,
            quiet_during_deployments=quiet_during_deployments,
        )
        self._path = path_below(self, scope, id)
        self._periods = checked_periods(options, self._path)
        self._new_fleet = new_fleet_only
        self.alarms: dict[str, cloudwatch.Alarm] = {}
        self.composites: dict[str, cloudwatch.CompositeAlarm] = {}
        self.actions_suppressor: cloudwatch.IAlarm | None = None
        rules: dict[str, list[str]] = {}
        for described in endpoint.known_variants():
            variant = endpoint.variant(described.name)
            groups: dict[str, list[str]] = {}
            for specification in specifications(
                variant, options, max_instances=self._max_instances(variant), where=self._path
            ):
                alarm = self._alarm(variant, specification)
                if new_fleet_only:  # no composite
                    continue
                rule = is_on(alarm)
                if specification.group:
                    groups.setdefault(specification.group, []).append(rule)
                else:
                    rules.setdefault(specification.severity, []).append(rule)
            for group in groups.values():
                rules.setdefault("", []).append(all_of(group))
            for name, statistic in options.anomalies.items():
                anomaly = self._anomaly(variant, name, statistic)
                rules.setdefault("", []).append(is_on(anomaly))
        if options.quiet_during_deployments and not new_fleet_only:
            self.actions_suppressor = self._suppressor()
        if rules and not new_fleet_only:
            self._compose(rules)

    def _max_instances(self, variant: EndpointVariant) -> int | None:
        if not self.options.capacity_at_maximum:
            return None
        scaling = self._endpoint.scaling_of(variant.name)
        if scaling is None:
            if self.options.capacity_at_maximum == "scaled":
                return None
            raise SCALED_VARIANTS_ONLY.error(
                got=f"{variant.name}, which does not scale",
                allowed="a scaled variant",
                where=self._path,
            )
        return scaling.highest_maximum

    def _alarm(
        self, variant: EndpointVariant, specification: AlarmSpecification
    ) -> cloudwatch.Alarm:
        for metric in specification.unknown:
            warn(
                self,
                f"unknownInstanceType:{metric}",
                f"{metric}: the instance type is not known, so one vCPU or GPU was assumed.",
            )
        evaluation_periods, datapoints = specification.periods or self._periods
        key = f"{variant.name}/{specification.key}"
        alarm = cloudwatch.Alarm(
            self,
            key.replace("/", "-"),
            metric=specification.metric,
            threshold=specification.threshold,
            evaluation_periods=evaluation_periods,
            datapoints_to_alarm=datapoints,
            comparison_operator=specification.operator,
            treat_missing_data=specification.missing,
            alarm_description=self._description(
                variant, specification.when, specification.means, specification.look_first
            ),
        )
        self.alarms[key] = alarm
        return alarm

    def _anomaly(
        self, variant: EndpointVariant, name: str, statistic: str
    ) -> cloudwatch.AnomalyDetectionAlarm:
        evaluation_periods, _ = self._periods
        return cloudwatch.AnomalyDetectionAlarm(
            self,
            f"{variant.name}-{name}-{statistic}-Anomaly",
            metric=variant.metric(name, statistic=statistic, period=self.options.period),
            std_devs=2,
            evaluation_periods=evaluation_periods,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=self._description(
                variant,
                f"{name} {statistic} leaves the band it usually keeps",
                "traffic or behaviour is unlike other days",
                "callers' releases and campaigns",
            ),
        )

    def _description(self, variant: EndpointVariant, when: str, means: str, look_first: str) -> str:
        fleet = "new fleet of " if self._new_fleet else ""
        name = self._endpoint.name_at_synth
        return (
            f"{fleet}{name}/{variant.name}: {when}. Means: {means}. Look first at: {look_first}. "
            f"Run: low-latency diagnose {name}"
        )

    def _compose(self, rules: dict[str, list[str]]) -> None:
        held_back = ""
        if self.actions_suppressor is not None:
            held_back = (
                "Quiet while both fleets of a deployment take requests and "
                f"{_QUIET_AFTER_MINUTES} minutes after, for {self._too_long()[0]} such minutes at "
                "most. "
            )
        if not self.options.actions:
            warn(
                self,
                "alarmsNotifyNobody",
                f"{NOBODY_NOTIFIED[0].upper()}{NOBODY_NOTIFIED[1:]}; "
                "acknowledge this warning if you add actions to .composites later.",
            )
        for severity, parts in rules.items():
            composite = composite_alarm(
                self,
                f"Composite{severity}",
                rule=any_of(parts),
                description=(
                    f"{self._endpoint.name_at_synth}{f', {severity}' if severity else ''}: one or "
                    f"more of its alarms are on. {held_back}"
                    f"Run: low-latency diagnose {self._endpoint.name_at_synth}"
                ),
                actions=self.options.actions,
                suppression=suppressed_by(self.actions_suppressor),
            )
            self.composites[severity] = composite
        if len(self.composites) == 1:
            self.node.default_child = composite.node.default_child

    def _too_long(self) -> tuple[int, int]:
        """Of how many minutes so many with both fleets are too long: M and N; see above."""
        variants = len(self._endpoint.known_variants())
        minutes = min(_RANGE_MINUTES * variants, _LONGEST_RANGE_MINUTES)
        return minutes // (_COVERED_MINUTES * variants), minutes

    def _suppressor(self) -> cloudwatch.IAlarm:
        """In alarm while a deployment is under way or just over, and not for too long."""
        deploying, too_long = [], []
        for described in self._endpoint.known_variants():
            variant = self._endpoint.variant(described.name)
            deploying.append(
                self._both_fleets(
                    variant,
                    "Deploying",
                    1,
                    _QUIET_AFTER_MINUTES,
                    "both fleets of a deployment take requests. Holds pages back",
                )
            )
            too_long.append(
                self._both_fleets(
                    variant,
                    "DeployingTooLong",
                    *self._too_long(),
                    "both fleets of a deployment have taken requests for too long. Pages are no "
                    "longer held back",
                )
            )
        return composite_alarm(
            self,
            "Quiet",
            rule=all_of([any_of(deploying), f"(NOT ({any_of(too_long)}))"]),
            description=f"{self._endpoint.name_at_synth}: deploying, pages are held back",
        )

    def _both_fleets(
        self, variant: EndpointVariant, name: str, datapoints: int, minutes: int, means: str
    ) -> str:
        alarm = cloudwatch.Alarm(
            self,
            f"{variant.name}-{name}",
            metric=cloudwatch.MathExpression(
                expression=_BOTH_FLEETS,
                using_metrics={
                    "new": variant.metric_invocations("Sum", fleet="new"),
                    "whole": variant.metric_invocations("Sum"),
                },
                period=Duration.minutes(1),
                label="both fleets take requests",
            ),
            threshold=0,
            evaluation_periods=minutes,
            datapoints_to_alarm=datapoints,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=f"{self._endpoint.name_at_synth}/{variant.name}: {means}.",
        )
        endpoint = self._endpoint
        if (
            isinstance(endpoint, Endpoint)
            and stack_of(self).node.addr == stack_of(endpoint).node.addr
        ):
            # An update points it at the new configuration before that takes requests.
            endpoint.cfn_endpoint.node.add_dependency(alarm)
        return is_on(alarm)


def suppressed_by(alarm: cloudwatch.IAlarm | None) -> dict[str, Any]:
    """What a composite alarm is made with so that this one holds its actions back."""
    if alarm is None:
        return {}
    return {
        "actions_suppressor": alarm,
        "actions_suppressor_wait_period": Duration.minutes(_WAIT_MINUTES),
        "actions_suppressor_extension_period": Duration.minutes(_EXTENSION_MINUTES),
    }


def checked_periods(options: AlarmOptions, where: str) -> tuple[int, int]:
    """Evaluation periods and datapoints to alarm."""
    evaluation_periods = options.evaluation_periods
    datapoints = options.datapoints_to_alarm
    check(EVALUATION_PERIODS, evaluation_periods, where)
    check(EVALUATION_PERIODS, datapoints, where)
    known = not (is_token(datapoints) or is_token(evaluation_periods))
    if known:
        seconds = 60 if options.period is None else seconds_of(options.period, where)
        check_alarm_window(evaluation_periods, datapoints, seconds, where)
    return evaluation_periods, datapoints
