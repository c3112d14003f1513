"""What a canary has published of each client zone."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from ..facts.canary_metrics import (
    ANSWER,
    CONNECT,
    DIMENSIONS,
    LONGEST_CONNECT_MS,
    NAMESPACE,
    OUT_OF_ZONE,
    UNREACHABLE,
)
from .alarms import alarm_dimensions, alarm_metrics, metric_alarms
from .calls import Account
from .metrics import Query, Series, metrics_of, read_queries

#: Of one run in each period, the median is what that run saw.
_STATISTICS = {CONNECT: "p50", ANSWER: "p50", UNREACHABLE: "Average", OUT_OF_ZONE: "Average"}


@dataclass(frozen=True, slots=True)
class ZoneReading:
    """One zone's canary in a time window: milliseconds, and shares of its runs."""

    zone: str
    connect: Series = field(default_factory=Series)
    answer: Series = field(default_factory=Series)
    unreachable: Series = field(default_factory=Series)
    out_of_zone: Series = field(default_factory=Series)
    longest_connect: float = LONGEST_CONNECT_MS  # in milliseconds: its alarm's threshold


def read_canary(
    account: Account, endpoint: str, start: datetime, end: datetime, period: timedelta
) -> tuple[ZoneReading, ...]:
    """By zone; empty where no canary has published within the last two weeks."""
    zones = _zones(account, endpoint)
    if not zones:
        return ()
    limits = _limits(account, endpoint)
    queries = [
        Query(
            ("", "zone", zone),
            metric,
            statistic,
            tuple(zip(DIMENSIONS, (endpoint, zone), strict=True)),
            namespace=NAMESPACE,
        )
        for zone in zones
        for metric, statistic in _STATISTICS.items()
    ]
    found = read_queries(account, queries, start, end, period)
    series = {(query.owner[2], query.metric): values for query, values in found.items()}
    return tuple(
        ZoneReading(
            zone,
            connect=series[zone, CONNECT],
            answer=series[zone, ANSWER],
            unreachable=series[zone, UNREACHABLE],
            out_of_zone=series[zone, OUT_OF_ZONE],
            longest_connect=limits.get(zone, LONGEST_CONNECT_MS),
        )
        for zone in zones
    )


def _zones(account: Account, endpoint: str) -> list[str]:
    published = metrics_of(account, NAMESPACE, endpoint)
    named = (dict(dimensions) for name, dimensions in published if name == UNREACHABLE)
    return sorted({each[DIMENSIONS[1]] for each in named if DIMENSIONS[1] in each})


def _limits(account: Account, endpoint: str) -> dict[str, float]:
    """By zone, above which time to connect the alarm on its path is on."""
    found = {}
    for alarm in metric_alarms(account):
        names = [metric["Metric"]["MetricName"] for metric in alarm_metrics(alarm)]
        dimensions = alarm_dimensions(alarm)
        if names == [CONNECT] and dimensions.get(DIMENSIONS[0]) == endpoint:
            found[dimensions.get(DIMENSIONS[1], "")] = float(alarm["Threshold"])
    return found
