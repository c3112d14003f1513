"""PromQL alarms: a query that returns anything breaches, and one that returns nothing is a good one.

Sources: CloudWatch user guide, "PromQL alarms"; API reference, PutMetricAlarm and
AlarmPromQLCriteria. So a name that does not exist never alarms.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ..promql.queries import QueryError, parse
from .metric_alarms import OF_ONE_METRIC
from .metric_store import as_seconds
from .state import AlarmRecord, CloudWatchState

LONGEST_PERIOD = 86_400

# Source: API reference, PutMetricAlarm, EvaluationCriteria.
_EXCLUDED = (
    *OF_ONE_METRIC,
    "Metrics",
    "Threshold",
    "ComparisonOperator",
    "ThresholdMetricId",
    "EvaluationPeriods",
    "DatapointsToAlarm",
)


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
        query = parse(criteria["Query"])
    except QueryError as error:
        return f"The PromQL query is not valid: {error}"
    if query.above is None or query.by:
        return (
            "An alarm on all that a query finds, or on many series, is not known to the local AWS"
        )
    return None


def _is_interval(seconds: int) -> bool:
    return seconds in (10, 20, 30) or (seconds % 60 == 0 and 60 <= seconds <= 3600)


def is_due(alarm: AlarmRecord, at: datetime) -> bool:
    """Whether its interval has passed; where time was set back it has."""
    interval = timedelta(seconds=int(alarm.settings["EvaluationInterval"]))
    return alarm.judged is None or not alarm.judged <= at < alarm.judged + interval


def judge(state: CloudWatchState, alarm: AlarmRecord, at: datetime) -> str:
    """Ask the query, and give the alarm's state: a change has to last for its period."""
    criteria = alarm.settings["EvaluationCriteria"]["PromQLCriteria"]
    breaches = bool(parse(criteria["Query"]).evaluate(state.queryable(), as_seconds(at)))
    before = alarm.state if alarm.judged else "OK"  # another query forgets what the former saw
    alarm.judged = at
    if breaches == (before == "ALARM"):
        alarm.differs_since = None
        return before
    alarm.differs_since = alarm.differs_since or at
    period = criteria.get("PendingPeriod" if breaches else "RecoveryPeriod") or 0
    if at - alarm.differs_since < timedelta(seconds=int(period)):
        return before
    alarm.differs_since = None
    return "ALARM" if breaches else "OK"


def state_reason(state: str) -> str:
    """Say how many series are in ALARM, in CloudWatch's words."""
    return f"{int(state == 'ALARM')} time series evaluated to ALARM"
