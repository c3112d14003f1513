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

    Parameters
    ----------
    threshold : Duration
        From here on a request is slow (ModelLatency).
    objective : float
        Share of requests that must be faster, such as 0.99; the rest is the budget of a month.

    Raises
    ------
    ConfigurationError
        LLE701 for the threshold, LLE726 for the objective, LLE807 for other kinds.
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

    Parameters
    ----------
    server : {"vllm", "sglang"}, optional
        Whose metrics the container publishes; by default read from the images' names, and without
        a known one there are no such alarms, with a warning.
    ttft, itl : mapping, "planned" or None
        Threshold by percentile, or by severity and percentile, of the server's own times. By
        default the plan's, from the targets of ``latency``; ``None`` turns them off.
    waiting_requests : float, optional
        By default no alarm.
    kv_cache_use : float, optional
        By default no alarm.
    minimum_requests : int
        By default 20 in the window.

    Raises
    ------
    ConfigurationError
        LLE801 and LLE807 for values of another kind, LLE996 for a server whose metrics are not
        known; what :class:`TokenLatencyAlarms` refuses, it refuses when the alarms are made.
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

    What is left out has the default here; ``None`` turns an alarm off. :class:`LatencyAlarms`
    says what each option means.

    Parameters
    ----------
    model_latency, overhead_latency : mapping, "planned" or None
        Threshold by statistic, or by severity and statistic. By default the plan's, from the
        latency target.
    error_rate : float or None
        By default 0.01: one invocation in a hundred with a 5xx.
    client_error_rate, model_error_rate : float, optional
        By default no alarm.
    minimum_invocations : int
        By default 20.
    slow_requests : SlowRequests, optional
        By default no alarm.
    anomalies : mapping of str to str
        By default none.
    cpu_utilization : float or None
        By default 85 percent of all vCPUs.
    memory_utilization, disk_utilization : float or None
        By default 90 percent.
    gpu_utilization, gpu_memory_utilization : float, optional
        By default no alarm.
    cache_miss_rate : float, optional
        By default no alarm.
    model_loading_wait : Duration, optional
        By default no alarm.
    capacity_at_maximum : bool or "scaled"
        By default of each variant that scales.
    zone_imbalance : float, optional
        By default no alarm.
    expect_traffic : bool
        By default silence is fine.
    new_fleet_only : bool
        By default the whole endpoint is watched.
    period : Duration, optional
        By default 1 minute.
    evaluation_periods, datapoints_to_alarm : int
        By default 2 of the last 3 periods.
    actions : sequence of aws_cloudwatch.IAlarmAction
        By default nobody is told.
    quiet_during_deployments : bool
        By default not.

    Raises
    ------
    ConfigurationError
        LLE801 and LLE807 for values of another kind; what :class:`LatencyAlarms` refuses, it
        refuses when the alarms are made.

    Examples
    --------
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
