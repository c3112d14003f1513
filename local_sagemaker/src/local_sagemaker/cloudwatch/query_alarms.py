"""PromQL alarms: every series that the query returns breaches, and is judged by itself.

Sources: CloudWatch user guide, "PromQL alarms", "Alarm actions" and "Limits"; API reference,
PutMetricAlarm and AlarmPromQLCriteria. A query that returns nothing is a good one: a name that does
not exist never alarms.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..promql.evaluation import evaluate, parse
from ..promql.exposition import Labels
from ..promql.http_api import MOST_SERIES
from ..promql.vectors import QueryError
from .metric_store import as_seconds
from .state import AlarmRecord, CloudWatchState, Contributor

LONGEST_PERIOD = 86_400
MOST_IN_ALARM = 100

# Source: API reference, PutMetricAlarm, EvaluationCriteria.
_EXCLUDED = (
    "Namespace",
    "MetricName",
    "Dimensions",
    "Period",
    "Unit",
    "Statistic",
    "ExtendedStatistic",
    "Metrics",
    "Threshold",
    "ComparisonOperator",
    "ThresholdMetricId",
    "EvaluationPeriods",
    "DatapointsToAlarm",
)


@dataclass(frozen=True)
class ContributorChange:
    """A series that went into ALARM, or out of it."""

    labels: Mapping[str, str]
    state: str


def problem_of(settings: Mapping[str, Any]) -> str | None:
    """Say why PutMetricAlarm refuses a PromQL alarm; None when it does not."""
    for name in _EXCLUDED:
        if settings.get(name) not in (None, []):
            return f"{name} cannot be specified together with EvaluationCriteria"
    interval = settings.get("EvaluationInterval")
    if interval is None:
        return "EvaluationInterval is required for alarms that use EvaluationCriteria"
    if not _is_interval(interval):
        return "EvaluationInterval must be 10, 20, 30 or a multiple of 60, up to 3600"
    criteria = (settings["EvaluationCriteria"] or {}).get("PromQLCriteria")
    if not criteria or not criteria.get("Query"):
        return "EvaluationCriteria must have PromQLCriteria with a Query"
    for name in ("PendingPeriod", "RecoveryPeriod"):
        if not 0 <= int(criteria.get(name) or 0) <= LONGEST_PERIOD:
            return f"{name} must be between 0 and {LONGEST_PERIOD}"
    try:
        parse(criteria["Query"])
        found = evaluate(CloudWatchState("", "", {}).series, criteria["Query"], 0.0)
    except QueryError as error:
        return f"The PromQL query is not valid: {error}"
    if not isinstance(found, list):
        return "The PromQL query must return a result of vector type"
    return None


def _is_interval(seconds: int) -> bool:
    return seconds in (10, 20, 30) or (seconds % 60 == 0 and 60 <= seconds <= 3600)


def is_due(alarm: AlarmRecord, at: datetime) -> bool:
    """Whether its interval has passed; where time was set back it has."""
    interval = timedelta(seconds=int(alarm.settings["EvaluationInterval"]))
    return alarm.judged is None or not alarm.judged <= at < alarm.judged + interval


def judge(state: CloudWatchState, alarm: AlarmRecord, at: datetime) -> Iterator[ContributorChange]:
    """Ask the query, and give the series that changed their state.

    Raises
    ------
    QueryError
        When the query cannot be evaluated on what there is.
    """
    alarm.judged = at
    criteria = alarm.settings["EvaluationCriteria"]["PromQLCriteria"]
    found = evaluate(state.queryable(), criteria["Query"], as_seconds(at))
    assert isinstance(found, list)
    if len(found) > MOST_SERIES:
        alarm.outcome["EvaluationState"] = "PARTIAL_DATA"
    else:
        alarm.outcome.pop("EvaluationState", None)
    breaching = {_key(one.labels): dict(one.labels) for one in found[:MOST_SERIES]}
    pending, recovery = (
        timedelta(seconds=int(criteria.get(name) or 0))
        for name in ("PendingPeriod", "RecoveryPeriod")
    )
    for key, labels in breaching.items():
        one = alarm.contributors.setdefault(key, Contributor(at))
        one.gone = None
        full = in_alarm(alarm) >= MOST_IN_ALARM
        if one.in_alarm is None and at - one.since >= pending and not full:
            one.in_alarm = at
            yield ContributorChange(labels, "ALARM")
    for key, one in list(alarm.contributors.items()):
        if key in breaching:
            continue
        one.gone = one.gone or at
        if one.in_alarm is None or at - one.gone >= recovery:
            del alarm.contributors[key]
            if one.in_alarm is not None:
                yield ContributorChange(dict(key), "OK")


def in_alarm(alarm: AlarmRecord) -> int:
    """Count its series in ALARM."""
    return sum(one.in_alarm is not None for one in alarm.contributors.values())


def state_reason(alarm: AlarmRecord) -> str:
    """Say how many series are in ALARM, in CloudWatch's words."""
    count = in_alarm(alarm)
    return f"{f'{count}+' if count >= MOST_IN_ALARM else count} time series evaluated to ALARM"


def contributor_id(labels: Mapping[str, str]) -> str:
    """Give the 16 hexadecimal digits that stand for a series."""
    return hashlib.sha256(repr(_key(labels)).encode()).hexdigest()[:16]


def contributors_of(alarm: AlarmRecord) -> list[dict[str, Any]]:
    """Give the series in ALARM as DescribeAlarmContributors does."""
    return [
        {
            "ContributorId": contributor_id(dict(key)),
            "ContributorAttributes": dict(key),
            "StateReason": "",  # "PromQL alarms do not include a state reason"
            "StateTransitionedTimestamp": one.in_alarm,
        }
        for key, one in alarm.contributors.items()
        if one.in_alarm is not None
    ]


def _key(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
