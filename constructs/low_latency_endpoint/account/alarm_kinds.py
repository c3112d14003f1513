"""What kind of alarm one is, by what it watches: one word, whatever its threshold and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..facts.container_metrics import watched_metric
from .queries import LEVELS, TIMES

AT_MAXIMUM, SILENCE, ZONE_IMBALANCE = "InstancesAtMaximum", "Silence", "ZoneImbalance"
BURN_RATE, ANOMALY, SHADOW = "BurnRate", "Anomaly", "ShadowLatency"
BOTH_FLEETS = "BothFleets"
"""Of the alarms that hold pages back during a deployment."""
_TOKENS: Mapping[str, str] = {
    **TIMES,
    **{meaning: metric for meaning, (metric, _) in LEVELS.items()},
}


def alarm_kind(alarm: Mapping[str, Any]) -> str:
    """The kind of an alarm of CloudWatch, or of a template's; empty for one that is not known.

    An alarm on one metric, or on its share of all requests, is of that metric's kind.

    >>> alarm_kind({"MetricName": "CPUUtilization", "Statistic": "Average"})
    'CPUUtilization'
    """
    query = ((alarm.get("EvaluationCriteria") or {}).get("PromQLCriteria") or {}).get("Query")
    if query:
        watched = watched_metric(str(query))
        return "" if watched is None else _TOKENS.get(watched.meaning, "")
    metrics = alarm.get("Metrics") or ()
    expressions = " ".join(str(each.get("Expression") or "") for each in metrics)
    if "ANOMALY_DETECTION_BAND" in expressions:
        return ANOMALY
    stats = [each["MetricStat"] for each in metrics if "MetricStat" in each]
    names = {str(stat["Metric"]["MetricName"]) for stat in stats}
    if alarm.get("MetricName"):
        names = {str(alarm["MetricName"])}
    if names == {"ModelLatency"}:
        share = str(alarm.get("ExtendedStatistic") or "").startswith("PR(")
        return BURN_RATE if share else "ModelLatency"
    if names == {"Invocations"}:
        return _of_invocations(alarm, stats)
    if names == {"Invocations", "InvocationsPerInstance"}:
        return AT_MAXIMUM
    if names == {"Invocations", "ModelLatency"}:
        return SHADOW
    others = names - {"Invocations"}
    return next(iter(others)) if len(others) == 1 else ""


def _of_invocations(alarm: Mapping[str, Any], stats: list[Mapping[str, Any]]) -> str:
    """Of an alarm on the number of requests alone."""
    dimensions = {
        str(each["Name"]) for stat in stats for each in stat["Metric"].get("Dimensions") or ()
    }
    if "AvailabilityZone" in dimensions:
        return ZONE_IMBALANCE
    if stats:
        return BOTH_FLEETS
    return SILENCE if str(alarm.get("ComparisonOperator")).startswith("LessThan") else "Invocations"
