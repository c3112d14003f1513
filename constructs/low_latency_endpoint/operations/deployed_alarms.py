"""Alarms as CloudWatch has them, with latency thresholds in the unit that people say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..planning.metrics import metrics, milliseconds_from_microseconds

__all__ = ["DeployedAlarm", "read_alarms"]


@dataclass(frozen=True, slots=True)
class DeployedAlarm:
    """One alarm; a latency threshold is in milliseconds, whatever unit the metric has."""

    name: str
    metric: str
    statistic: str
    threshold: float
    unit: str
    comparison: str
    endpoint_name: str


def read_alarms(client: Callable[[str], Any], names: list[str]) -> tuple[DeployedAlarm, ...]:
    """The alarms of these names, by metric, statistic and threshold."""
    # DescribeAlarms takes 100 names at most.
    found: list[dict[str, Any]] = []
    for start in range(0, len(names), 100):
        found += client("cloudwatch").describe_alarms(
            AlarmNames=names[start : start + 100], MaxRecords=100
        )["MetricAlarms"]
    return tuple(sorted(map(_alarm, found), key=lambda a: (a.metric, a.statistic, a.threshold)))


def _alarm(alarm: dict[str, Any]) -> DeployedAlarm:
    queries = alarm.get("Metrics") or []
    used = [query["MetricStat"] for query in queries if "MetricStat" in query]
    returned: dict[str, Any] = next((q for q in queries if q.get("ReturnData", True)), {})
    dimensions = [d for stat in used for d in stat["Metric"].get("Dimensions", [])]
    namespace = ""
    if not queries:
        namespace, metric = alarm["Namespace"], alarm["MetricName"]
        statistic = alarm.get("ExtendedStatistic") or alarm.get("Statistic", "")
        dimensions = alarm.get("Dimensions", [])
    elif "MetricStat" in returned:
        source = returned["MetricStat"]["Metric"]
        namespace, metric = source["Namespace"], source["MetricName"]
        statistic = returned["MetricStat"]["Stat"]
    else:
        metric, statistic = returned.get("Label") or returned.get("Expression", ""), "formula"
    threshold, unit = alarm.get("Threshold", 0.0), ""
    # A formula has no namespace: its result need not have its inputs' unit and stays as it is.
    if statistic != "SampleCount" and (namespace, metric) in _published_in_microseconds():
        threshold, unit = milliseconds_from_microseconds(threshold), "ms"
    return DeployedAlarm(
        name=alarm["AlarmName"],
        metric=metric,
        statistic=statistic,
        threshold=threshold,
        unit=unit,
        comparison=alarm.get("ComparisonOperator", ""),
        endpoint_name=next((d["Value"] for d in dimensions if d["Name"] == "EndpointName"), ""),
    )


def _published_in_microseconds() -> set[tuple[str, str]]:
    return {(facts.namespace, facts.name) for facts in metrics() if facts.unit == "Microseconds"}
