"""Alarms on latency and errors, with thresholds as durations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from .endpoint import Endpoint
from .planning.limits import ALARM_THRESHOLD_MILLISECONDS, ERROR_RATE, EVALUATION_PERIODS
from .planning.metrics import microseconds_from_milliseconds
from .planning.rules import DATAPOINTS_ABOVE_PERIODS
from .validation import check

__all__ = ["LatencyAlarms"]

_NEW_FLEET = "EndpointConfigName"


class LatencyAlarms(Construct):
    """Alarms on ModelLatency, OverheadLatency and errors of every variant.

    SageMaker publishes latencies in microseconds; thresholds are durations, converted here.
    Missing data never alarms: no traffic is no latency.

    Parameters
    ----------
    scope, id
        As for every construct.
    endpoint : Endpoint
    model_latency : mapping of str to Duration, optional
        Threshold per statistic, such as ``{"p99": Duration.millis(200)}``.
    overhead_latency : mapping of str to Duration, optional
        The same for OverheadLatency, for which CloudWatch lists no percentiles: ``Average``.
    error_rate : float, optional
        Share of invocations that fail with a 5xx; 0.01 is one in a hundred.
    minimum_invocations : int
        Invocations per period below which the error rate counts as zero; by default 20, so that
        one failure in the night pages nobody.
    new_fleet_only : bool
        Watch only the fleet that a deployment is bringing up (dimension ``EndpointConfigName``):
        for rollback alarms, which the old fleet would drown. By default the whole endpoint.
    period : Duration, optional
        By default 1 minute.
    evaluation_periods, datapoints_to_alarm : int
        By default 2 of the last 3 periods.
    actions : sequence of aws_cloudwatch.IAlarmAction
        What happens on alarm, such as ``SnsAction(topic)``; by default nothing.

    Attributes
    ----------
    alarms : dict of str to aws_cloudwatch.Alarm
        By ``<variant>/<metric>/<statistic>``, for example ``primary/ModelLatency/p99``.

    Raises
    ------
    ConfigurationError
        LLE701 to LLE703, LLE721, and LLE732 for a statistic the metric does not have.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: Endpoint,
        model_latency: Mapping[str, Duration] | None = None,
        overhead_latency: Mapping[str, Duration] | None = None,
        error_rate: float | None = None,
        minimum_invocations: int = 20,
        new_fleet_only: bool = False,
        period: Duration | None = None,
        evaluation_periods: int = 3,
        datapoints_to_alarm: int = 2,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
    ) -> None:
        super().__init__(scope, id)
        path = self.node.path
        check(EVALUATION_PERIODS, evaluation_periods, path)
        check(EVALUATION_PERIODS, datapoints_to_alarm, path)
        if datapoints_to_alarm > evaluation_periods:
            raise DATAPOINTS_ABOVE_PERIODS.error(
                got=f"{datapoints_to_alarm} of {evaluation_periods}",
                allowed=f"at most {evaluation_periods}",
                where=path,
            )
        check(ERROR_RATE, error_rate, path)
        self._endpoint = endpoint
        self._period = period or Duration.minutes(1)
        self._periods = (evaluation_periods, datapoints_to_alarm)
        self._dimensions = (
            {_NEW_FLEET: endpoint.configuration.endpoint_config_name} if new_fleet_only else {}
        )
        self._fleet = "the new fleet of " if new_fleet_only else ""
        self.alarms: dict[str, cloudwatch.Alarm] = {}
        for variant in endpoint.configuration.variants:
            for name, thresholds in (
                ("ModelLatency", model_latency),
                ("OverheadLatency", overhead_latency),
            ):
                for statistic, threshold in (thresholds or {}).items():
                    self._latency(variant.name, name, statistic, threshold)
            if error_rate is not None:
                self._errors(variant.name, error_rate, minimum_invocations)
        for action in actions:
            for alarm in self.alarms.values():
                alarm.add_alarm_action(action)

    def _metric(self, variant: str, name: str, statistic: str) -> cloudwatch.Metric:
        return self._endpoint.variant(variant).metric(
            name, statistic=statistic, period=self._period,
            fleet="new" if self._fleet else "whole",
        )

    def _latency(self, variant: str, name: str, statistic: str, threshold: Duration) -> None:
        milliseconds = threshold.to_milliseconds(integral=False)
        check(ALARM_THRESHOLD_MILLISECONDS, milliseconds, self.node.path)
        self._alarm(
            variant,
            name,
            statistic,
            metric=self._metric(variant, name, statistic),
            threshold=microseconds_from_milliseconds(milliseconds),
            description=(
                f"{name} {statistic} of {self._fleet}{self._endpoint.name_at_synth}/{variant} is "
                f"above {milliseconds:g} ms ({_MEANING[name]})"
            ),
        )

    def _errors(self, variant: str, error_rate: float, minimum_invocations: int) -> None:
        rate = cloudwatch.MathExpression(
            expression=f"IF(invocations >= {minimum_invocations}, errors / invocations, 0)",
            using_metrics={
                "errors": self._metric(variant, "Invocation5XXErrors", "Sum"),
                "invocations": self._metric(variant, "Invocations", "Sum"),
            },
            period=self._period,
            label="share of invocations that fail with 5xx",
        )
        self._alarm(
            variant,
            "Invocation5XXErrors",
            "Rate",
            metric=rate,
            threshold=error_rate,
            description=(
                f"More than {error_rate:.2%} of the invocations of {self._fleet}"
                f"{self._endpoint.name_at_synth}/{variant} fail with 5xx"
            ),
        )

    def _alarm(self, variant: str, name: str, statistic: str, *, metric: cloudwatch.IMetric,
               threshold: float, description: str) -> None:
        evaluation_periods, datapoints = self._periods
        self.alarms[f"{variant}/{name}/{statistic}"] = cloudwatch.Alarm(
            self,
            f"{variant}-{name}-{statistic}",
            metric=metric,
            threshold=threshold,
            evaluation_periods=evaluation_periods,
            datapoints_to_alarm=datapoints,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            alarm_description=description,
        )


_MEANING = {
    "ModelLatency": "time in the model's container, as SageMaker sees it",
    "OverheadLatency": "time SageMaker adds: payload size, request frequency, authorization",
}
