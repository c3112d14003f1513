"""What latency alarms watch, as one typed group of keyword arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from .planning.limits import ALARM_THRESHOLD_MILLISECONDS
from .planning.rules import OBJECTIVE

__all__ = ["AlarmOptions", "SlowRequests", "Thresholds"]

Thresholds = Mapping[str, Duration | Mapping[str, Duration]]
"""Durations by statistic, or by severity and statistic."""


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
        LLE701 for the threshold, LLE726 for the objective.
    """

    threshold: Duration
    objective: float = 0.99

    def __post_init__(self) -> None:
        ALARM_THRESHOLD_MILLISECONDS.check(self.milliseconds)
        OBJECTIVE.check(self.objective)

    @property
    def milliseconds(self) -> float:
        """The threshold in milliseconds."""
        return self.threshold.to_milliseconds(integral=False)

    @property
    def budget(self) -> float:
        """The share of requests that may be slow."""
        return 1 - self.objective


class AlarmOptions(TypedDict, total=False):
    """Keyword arguments of :class:`LatencyAlarms`; all may be left out.

    See there for what each means.
    """

    model_latency: Thresholds | None
    overhead_latency: Thresholds | None
    error_rate: float | None
    client_error_rate: float | None
    model_error_rate: float | None
    minimum_invocations: int
    slow_requests: SlowRequests | None
    anomalies: Mapping[str, str]
    cpu_utilization: float | None
    memory_utilization: float | None
    disk_utilization: float | None
    gpu_utilization: float | None
    gpu_memory_utilization: float | None
    cache_miss_rate: float | None
    model_loading_wait: Duration | None
    capacity_at_maximum: bool
    zone_imbalance: float | None
    expect_traffic: bool
    new_fleet_only: bool
    period: Duration | None
    evaluation_periods: int
    datapoints_to_alarm: int
    actions: Sequence[cloudwatch.IAlarmAction]
    quiet_during_deployments: bool
