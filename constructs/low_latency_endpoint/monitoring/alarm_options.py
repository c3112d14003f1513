"""What an endpoint's alarms watch, as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from ..plan.argument_kinds import checked_arguments
from ..plan.limits import ALARM_THRESHOLD_MILLISECONDS
from ..plan.rules import OBJECTIVE
from ..synthesis.validation import check_milliseconds

Thresholds = Mapping[str, Duration | Mapping[str, Duration]]
"""Durations by statistic, or by severity and statistic."""


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class SlowRequests:
    """An objective on the share of slow requests, for the burn-rate alarms.

    Args:
        threshold: From here on a request is slow (ModelLatency).
        objective: Share of requests that must be faster, such as 0.99; the rest is the budget of a month.

    Raises:
        ConfigurationError: LLE701 for the threshold, LLE726 for the objective, LLE807
            for other kinds.
    """

    threshold: Duration
    objective: float = 0.99

    def __post_init__(self) -> None:
        check_milliseconds(ALARM_THRESHOLD_MILLISECONDS, self.threshold)
        OBJECTIVE.check(self.objective)

    @property
    def milliseconds(self) -> float:
        """The threshold in milliseconds."""
        return check_milliseconds(ALARM_THRESHOLD_MILLISECONDS, self.threshold)

    @property
    def budget(self) -> float:
        """The share of requests that may be slow."""
        return 1 - self.objective


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class TokenAlarmOptions:
    """The alarms on tokens of :class:`LowLatencyEndpoint`, for language models that stream.

    :class:`TokenLatencyAlarms` says what each option means, and why an alarm whose query finds
    nothing is OK: ``low-latency verify`` demands data.

    Args:
        server: Whose metrics the container publishes; by default read from the images' names, and without a known one there are no such alarms, with a warning.
        ttft: Threshold by percentile, or by severity and percentile, of the server's own times. By default the plan's, from the targets of ``latency``; ``None`` turns them off.
        itl: Threshold by percentile, or by severity and percentile, of the server's own times. By default the plan's, from the targets of ``latency``; ``None`` turns them off.
        waiting_requests: By default no alarm.
        kv_cache_use: By default no alarm.
        minimum_requests: By default 20 in the window.

    Raises:
        ConfigurationError: LLE801 and LLE807 for values of another kind, LLE996 for a
            server whose metrics are not known; what :class:`TokenLatencyAlarms`
            refuses, it refuses when the alarms are made.
    """

    server: str | None = None
    ttft: Thresholds | Literal["planned"] | None = "planned"
    itl: Thresholds | Literal["planned"] | None = "planned"
    waiting_requests: float | None = None
    kv_cache_use: float | None = None
    minimum_requests: int = 20


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class AlarmOptions:
    """The alarms of :class:`LowLatencyEndpoint`: what to watch, and who is told.

    What is left out has the default here; ``None`` turns an alarm off.

    Args:
        model_latency: Threshold on ModelLatency by statistic, ``{"p99": Duration.millis(200)}``, or by severity and statistic, ``{"Warning": {"p99": ...}, "Critical": {"p99": ...}}``. By default the plan's, from the latency target.
        overhead_latency: The same for OverheadLatency, for which CloudWatch lists no percentiles: ``Average``. By default the plan's, from the latency target.
        error_rate: Share of invocations that may end in a 5xx. By default 0.01: one invocation in a hundred with a 5xx.
        client_error_rate: Share of invocations that may end in a 4xx. By default no alarm.
        model_error_rate: Share of invocations that may end in an error of the model's container. By default no alarm.
        minimum_invocations: Invocations per period below which shares count as zero, so that one failure in the night pages nobody. By default 20.
        slow_requests: How fast the month's budget of slow requests may burn: 14.4 times too fast over an hour and five minutes, 6 times over six hours and thirty minutes. By default no alarm.
        anomalies: Metric to statistic, such as ``{"Invocations": "Sum"}``: alarm outside the band (two standard deviations) that CloudWatch learns. By default none.
        cpu_utilization: Percent of all the instance's vCPUs, of 100, while SageMaker's metric runs to 100 for each. By default 85 percent of all vCPUs.
        memory_utilization: Percent of the instance's memory. By default 90 percent.
        disk_utilization: Percent of the instance's disk. By default 90 percent.
        gpu_utilization: Percent of all the instance's GPUs, of 100, while SageMaker's metric runs to 100 for each. By default no alarm.
        gpu_memory_utilization: Percent of the memory of all the instance's GPUs, of 100, as ``gpu_utilization``. By default no alarm.
        cache_miss_rate: Multi-model endpoints: share of requests whose model is not loaded. By default no alarm.
        model_loading_wait: Multi-model endpoints: average wait for a model to be loaded. By default no alarm.
        capacity_at_maximum: Alarm when all instances that scaling may start are serving; ``"scaled"`` watches the variants that scale. By default of each variant that scales.
        zone_imbalance: Alarm when the busiest zone gets this many times its even share. Rests on a dimension that AWS documents without saying which setting publishes it: check that the alarm has data. By default no alarm.
        expect_traffic: Alarm when no requests arrive for five minutes. By default silence is fine.
        new_fleet_only: Watch only the fleet of this configuration (dimension ``EndpointConfigName``), which a deployment brings up: for rollback alarms, which the old fleet would drown. No composite alarm then. By default the whole endpoint is watched.
        period: What an alarm looks at once, of latencies, shares and utilization. By default 1 minute.
        evaluation_periods: Of so many periods, the last ones, ``datapoints_to_alarm`` must be too high. By default 2 of the last 3 periods.
        datapoints_to_alarm: So many of the last ``evaluation_periods`` must be too high. By default 2 of the last 3 periods.
        actions: What the composite alarm does, such as ``SnsAction(topic)`` of ``aws_cloudwatch_actions``, or ``AlarmTopic(...).action``. By default nobody is told.
        quiet_during_deployments: Hold pages back while both fleets of a deployment take requests and ten minutes after, for an hour of such minutes at most (less with more than two variants): which series SageMaker publishes when was not seen on AWS yet, and a page too many beats none. By default not.

    Raises:
        ConfigurationError: LLE801 and LLE807 for values of another kind; what
            :class:`LatencyAlarms` refuses, it refuses when the alarms are made.

    Examples:
        >>> from aws_cdk import Duration
        >>> from low_latency_endpoint import AlarmOptions
        >>> AlarmOptions(model_latency={"p99": Duration.millis(200)}).error_rate
        0.01
    """

    model_latency: Thresholds | Literal["planned"] | None = "planned"
    overhead_latency: Thresholds | Literal["planned"] | None = "planned"
    error_rate: float | None = 0.01
    client_error_rate: float | None = None
    model_error_rate: float | None = None
    minimum_invocations: int = 20
    slow_requests: SlowRequests | None = None
    anomalies: Mapping[str, str] = field(default_factory=dict)
    cpu_utilization: float | None = 85
    memory_utilization: float | None = 90
    disk_utilization: float | None = 90
    gpu_utilization: float | None = None
    gpu_memory_utilization: float | None = None
    cache_miss_rate: float | None = None
    model_loading_wait: Duration | None = None
    capacity_at_maximum: bool | Literal["scaled"] = "scaled"
    zone_imbalance: float | None = None
    expect_traffic: bool = False
    new_fleet_only: bool = False
    period: Duration | None = None
    evaluation_periods: int = 3
    datapoints_to_alarm: int = 2
    actions: Sequence[cloudwatch.IAlarmAction] = ()
    quiet_during_deployments: bool = False
