"""Alarms as CloudWatch has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from .calls import Account

Alarm = Mapping[str, Any]
_NAMES = 100  # that DescribeAlarms takes, and gives


def metric_alarms(account: Account) -> list[Alarm]:
    """All alarms of the region on metrics: CloudWatch filters by no dimension."""
    return list(
        account.every(
            "cloudwatch",
            "describe_alarms",
            "MetricAlarms",
            AlarmTypes=["MetricAlarm"],
            MaxRecords=_NAMES,
        )
    )


def alarms_named(
    account: Account, names: Iterable[str], *, composite: bool = False
) -> dict[str, Alarm]:
    """The alarms of these names that exist: those on metrics, or the composite ones."""
    ordered, kind = sorted(names), "CompositeAlarm" if composite else "MetricAlarm"
    return {
        each["AlarmName"]: each
        for first in range(0, len(ordered), _NAMES)
        for each in account.every(
            "cloudwatch",
            "describe_alarms",
            f"{kind}s",
            AlarmNames=ordered[first : first + _NAMES],
            AlarmTypes=[kind],
        )
    }


def alarm_changes(
    account: Account, name: str, start: datetime, end: datetime
) -> list[Mapping[str, Any]]:
    """Changes of an alarm's state in a time window."""
    return list(
        account.every(
            "cloudwatch",
            "describe_alarm_history",
            "AlarmHistoryItems",
            AlarmName=name,
            HistoryItemType="StateUpdate",
            StartDate=start,
            EndDate=end,
        )
    )


def alarm_metrics(alarm: Alarm) -> list[Mapping[str, Any]]:
    """The metrics that an alarm watches, each as ``Metric`` and ``Stat``."""
    if alarm.get("MetricName"):
        metric = {
            key: alarm[key] for key in ("Namespace", "MetricName", "Dimensions") if key in alarm
        }
        return [
            {"Metric": metric, "Stat": alarm.get("ExtendedStatistic") or alarm.get("Statistic", "")}
        ]
    return [query["MetricStat"] for query in alarm.get("Metrics", ()) if "MetricStat" in query]


def alarm_dimensions(alarm: Alarm) -> dict[str, str]:
    """The dimensions of all its metrics."""
    return {
        each["Name"]: each["Value"]
        for watched in alarm_metrics(alarm)
        for each in watched["Metric"].get("Dimensions", ())
    }


def alarm_query(alarm: Alarm) -> str:
    """What an alarm on a PromQL query asks; empty for another, and where boto3 does not tell it."""
    criteria = (alarm.get("EvaluationCriteria") or {}).get("PromQLCriteria") or {}
    return str(criteria.get("Query", ""))
