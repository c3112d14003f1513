"""Alarms that compare a shadow variant with production, for whoever is to promote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..facts.limit_kinds import check_known
from ..facts.limits import ERROR_RATE, PEAK_TPS
from ..facts.rules import LATENCY_RATIO, NO_SHADOW
from ..hosting.endpoint_interface import IEndpoint
from ..hosting.endpoint_metrics import checked_period
from ..options.alarms import (
    DEFAULT_DATAPOINTS,
    DEFAULT_EVALUATION_PERIODS,
    DEFAULT_PERIOD_SECONDS,
    MINIMUM_FAILURES,
    AlarmOptions,
)
from ..options.argument_kinds import checked_arguments
from ..plan.alarm_windows import AlarmWindow, ratio_window, share_window
from ..synthesis.construct_tree import path_below, path_of
from ..synthesis.template_values import check
from .alarm_specifications import AlarmSpecification, notify, share_of_failures

if TYPE_CHECKING:
    from aws_cdk import Duration


@checked_arguments
class ShadowAlarms(Construct):
    """Alarms on a shadow variant's latency against production's, and on its failures.

    They are beside :class:`LatencyAlarms` and in no composite: a slow shadow harms no caller. Do
    not give them to ``rollback_alarms``.

    Attributes
    ----------
    alarms : dict of str to aws_cloudwatch.Alarm
        By ``ModelLatency/<statistic>`` and ``InvocationModelErrors/Rate``.

    Examples
    --------
    ``ShadowAlarms(self, "Candidate", endpoint=endpoint, latency_ratio={"p99": 1.2},
    error_rate=0.01)``
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: IEndpoint,
        latency_ratio: Mapping[str, float] | None = None,
        error_rate: float | None = None,
        minimum_failures: int = MINIMUM_FAILURES,
        minimum_invocations: int = 20,
        period: Duration | timedelta | str | None = None,
        evaluation_periods: int = DEFAULT_EVALUATION_PERIODS,
        datapoints_to_alarm: int = DEFAULT_DATAPOINTS,
        peak_tps: float | None = None,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
    ) -> None:
        """Alarms on a shadow variant's latency against production's, and on its failures.

        Args:
            scope: The construct in which this one is made.
            id: The construct's ID in its scope.
            endpoint: With a shadow variant.
            latency_ratio: By statistic of ModelLatency, how many times production's the shadow's may be, such as ``{"p99": 1.2}``; by default no alarm.
            error_rate: Share of the copied requests that fail in the shadow's container; by default no alarm.
            minimum_failures: Failures per period below which their share counts as zero; by default 3.
            minimum_invocations: Requests per period, of each variant, below which there is nothing to compare; by default 20.
            period: By default 1 minute; with ``peak_tps`` as long as it takes for enough requests.
            evaluation_periods: By default 2 of the last 3 periods.
            datapoints_to_alarm: By default 2 of the last 3 periods.
            peak_tps: Highest rate of the copied requests, per second; by default not known.
            actions: By default nobody is told: the alarms' states are there for a decision or a pipeline.

        Raises:
            ConfigurationError: LLE734 for an endpoint without a shadow, LLE735 for a ratio
                out of range, LLE571, LLE606, LLE702 to LLE704 and LLE721 for periods and rates, LLE732 for
                a statistic that ModelLatency does not have.
        """
        super().__init__(scope, id)
        self._path = path = path_below(self, scope, id)
        shadow = endpoint.shadow
        if shadow is None:
            raise NO_SHADOW.error(
                got=f"{path_of(endpoint)} without one",
                allowed="EndpointConfiguration(shadow=...)",
                where=path,
            )
        self._endpoint_name = endpoint.name_in(self)
        self._production, self._shadow = (
            endpoint.variant_in(self),
            endpoint.variant_in(self, shadow.name),
        )
        options = AlarmOptions(
            minimum_failures=minimum_failures,
            minimum_invocations=minimum_invocations,
            period=period,
            evaluation_periods=evaluation_periods,
            datapoints_to_alarm=datapoints_to_alarm,
        )
        self._options = options
        if peak_tps is not None:
            check_known(PEAK_TPS, peak_tps, f"{path}, peak_tps")
        self._tps = peak_tps
        self._actions = actions
        self.alarms: dict[str, cloudwatch.Alarm] = {}
        for statistic, ratio in (latency_ratio or {}).items():
            self._compare_latency(statistic, ratio)
        if error_rate is not None:
            self._watch_failures(error_rate)

    def _compare_latency(self, statistic: str, ratio: float) -> None:
        LATENCY_RATIO.check(ratio, self._path)
        floor = self._options.minimum_invocations
        window = ratio_window(self._options.window, statistic, floor, self._tps)
        period = timedelta(seconds=window.seconds)
        self._alarm(
            f"ModelLatency/{statistic}",
            cloudwatch.MathExpression(
                expression=f"IF((copied >= {floor}) AND (invocations >= {floor}), "
                "shadow / production, 0)",
                using_metrics={
                    name: variant.metric(metric, statistic=of, period=period)
                    for name, variant, metric, of in (
                        ("copied", self._shadow, "Invocations", "Sum"),
                        ("invocations", self._production, "Invocations", "Sum"),
                        ("shadow", self._shadow, "ModelLatency", statistic),
                        ("production", self._production, "ModelLatency", statistic),
                    )
                },
                period=checked_period(period, DEFAULT_PERIOD_SECONDS, self._path),
                label=f"ModelLatency {statistic}, {self._shadow.name} over {self._production.name}",
            ),
            window,
            ratio,
            f"ModelLatency {statistic} is above {ratio:g} times that of {self._production.name}",
            "its instance type, the number of its instances and how many requests are copied",
        )

    def _watch_failures(self, error_rate: float) -> None:
        check(ERROR_RATE, error_rate, self._path)
        window = share_window(self._options.window, self._tps)
        period = timedelta(seconds=window.seconds)
        self._alarm(
            "InvocationModelErrors/Rate",
            share_of_failures(
                self._shadow.metric("InvocationModelErrors", statistic="Sum", period=period),
                self._shadow.metric("Invocations", statistic="Sum", period=period),
                failures=self._options.minimum_failures,
                period=period,
                label="share of the copied requests that fail",
            ),
            window,
            error_rate,
            f"more than {error_rate * 100:g} % of the copied requests fail",
            "the log of its container",
        )

    def _alarm(
        self,
        key: str,
        metric: cloudwatch.IMetric,
        window: AlarmWindow,
        threshold: float,
        when: str,
        look_first: str,
    ) -> None:
        specification = AlarmSpecification(
            key=key,
            metric=metric,
            threshold=threshold,
            periods=window.counts,
            when=when,
            means="callers see nothing of it, and would once it is promoted",
            look_first=look_first,
        )
        text = specification.text(f"{self._endpoint_name}/{self._shadow.name} (shadow)")
        self.alarms[key] = specification.made(self, key, text)
        notify(self.alarms[key], self._actions)
