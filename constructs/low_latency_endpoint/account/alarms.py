"""Alarms as CloudWatch has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ..facts.canary_metrics import ANSWER, CONNECT
from ..facts.container_metrics import (
    ENDPOINT_LABEL,
    VARIANT_LABEL,
    WatchedMetric,
    label_in,
    watched_metric,
)
from ..facts.metrics import metrics, milliseconds_from_microseconds
from ..options.alarms import DEFAULT_DATAPOINTS, DEFAULT_EVALUATION_PERIODS, DEFAULT_PERIOD_SECONDS
from ..plan.alarm_windows import AlarmWindow
from .alarm_kinds import alarm_kind
from .calls import Account, json_object
from .endpoints import DeployedEndpoint
from .metrics import dimensions_of, why_unpublished
from .queries import FULLEST, LEVELS, MILLISECONDS, TIMES

USUAL_WINDOW = AlarmWindow(DEFAULT_PERIOD_SECONDS, DEFAULT_EVALUATION_PERIODS, DEFAULT_DATAPOINTS)
"""Of the library's alarms by default, and of whatever no alarm is on."""
Alarm = Mapping[str, Any]
_NAMES = 100  # that DescribeAlarms takes, and gives


def metric_alarms(account: Account) -> list[Alarm]:
    """All alarms of the region on metrics: CloudWatch filters by no dimension."""
    return _all_alarms(account, "MetricAlarm")


def _all_alarms(account: Account, kind: str) -> list[Alarm]:
    return account.every(
        "cloudwatch", "describe_alarms", f"{kind}s", AlarmTypes=[kind], MaxRecords=_NAMES
    )


def alarms_by_endpoint(account: Account) -> dict[str, list[Alarm]]:
    """Endpoint name to the alarms on its metrics, and on what its containers tell of tokens."""
    found: dict[str, list[Alarm]] = {}
    for alarm in metric_alarms(account):
        watched = label_in(alarm_query(alarm), ENDPOINT_LABEL)
        for name in dimension_values(alarm, "EndpointName") | {watched} - {""}:
            found.setdefault(name, []).append(alarm)
    return found


def alarms_named(
    account: Account, names: Iterable[str], *, composite: bool = False
) -> dict[str, Alarm]:
    """The alarms of these names that exist: those on metrics, or the composite ones."""
    ordered, kind = sorted(names), "CompositeAlarm" if composite else "MetricAlarm"
    if account.whole_lists:
        listed = {alarm["AlarmName"]: alarm for alarm in _all_alarms(account, kind)}
        return {name: listed[name] for name in ordered if name in listed}
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
    return account.every(
        "cloudwatch",
        "describe_alarm_history",
        "AlarmHistoryItems",
        AlarmName=name,
        HistoryItemType="StateUpdate",
        StartDate=start,
        EndDate=end,
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
    """The dimensions that all its metrics share: of several zones it is none's alarm."""
    watched = [set(dimensions_of(metric["Metric"]).items()) for metric in alarm_metrics(alarm)]
    return dict(set.intersection(*watched)) if watched else {}


def dimension_values(alarm: Alarm, name: str) -> set[str]:
    """All values that a dimension has in its metrics."""
    watched = [dimensions_of(metric["Metric"]) for metric in alarm_metrics(alarm)]
    return {dimensions[name] for dimensions in watched if name in dimensions}


def alarm_query(alarm: Alarm) -> str:
    """What an alarm on a PromQL query asks; empty for another, and where boto3 does not tell it."""
    criteria = (alarm.get("EvaluationCriteria") or {}).get("PromQLCriteria") or {}
    return str(criteria.get("Query", ""))


ERROR_RATES = {
    "Invocation5XXErrors": "error_rate",
    "Invocation4XXErrors": "client_error_rate",
    "InvocationModelErrors": "model_error_rate",
}


@dataclass(frozen=True, slots=True)
class AlarmReading:
    """An alarm on the endpoint; the threshold is in milliseconds where ``unit`` says so."""

    name: str
    metric: str
    statistic: str
    threshold: float
    unit: str
    state: str
    since: datetime | None = None
    variant: str = ""
    doubt: str = ""  # why CloudWatch has nothing that it watches
    new_fleet: bool = False  # whether it watches the fleet of one deployment only
    kind: str = ""  # as alarm_kinds has it
    window: AlarmWindow = USUAL_WINDOW

    @property
    def title(self) -> str:
        """What it watches, in words: the names that CloudFormation makes say too much."""
        rated = next((name for name, rate in ERROR_RATES.items() if rate == self.metric), "")
        of = f"new fleet of {self.variant}" if self.new_fleet else self.variant
        said = f"{rated} rate" if rated else f"{self.metric} {self.statistic}"
        return f"{of} {said}".replace(" formula", "").strip()

    @property
    def of_scaling(self) -> bool:
        """Whether it is Application Auto Scaling's own, which is on whenever it may scale in."""
        return self.name.startswith("TargetTracking-")


@dataclass(frozen=True, slots=True)
class AlarmTransition:
    time: datetime
    alarm: str
    state: str
    before: str = ""
    no_data: bool = False  # whether missing data alone made it so


def read_alarms(alarms: Iterable[Alarm], endpoint: DeployedEndpoint) -> tuple[AlarmReading, ...]:
    """Those alarms that are on the endpoint's metrics, or on what its containers tell of tokens."""
    listed = list(alarms)
    on_metrics = [a for a in listed if endpoint.name in dimension_values(a, "EndpointName")]
    read = (replace(alarm_reading(a), doubt=_doubt(a, endpoint)) for a in on_metrics)
    return (*read, *token_alarms(listed, endpoint.name))


def _doubt(alarm: Alarm, endpoint: DeployedEndpoint) -> str:
    """Why CloudWatch has no data for an alarm's metric; empty if it has data."""
    for alarm_metric in alarm_metrics(alarm):
        metric = {**alarm_metric["Metric"], "Threshold": alarm.get("Threshold", 0)}
        unit, period = ({**alarm, **alarm_metric}.get(key) for key in ("Unit", "Period"))
        seconds = max(period or 60, 60 if endpoint.publish_seconds < 60 else 0)
        names = {"VariantName": (*endpoint.variants, *endpoint.shadows)}
        if found := why_unpublished(metric, alarm_metric["Stat"], names, unit or "", seconds):
            return found
    return ""


def alarms_on_queries(
    alarms: Iterable[Alarm], endpoint: str
) -> Iterator[tuple[Alarm, WatchedMetric]]:
    """Those on queries that watch an endpoint's tokens and can be read, and what they watch."""
    for alarm in alarms:
        query = alarm_query(alarm)
        mine = query and label_in(query, ENDPOINT_LABEL) == endpoint
        if mine and (watched := watched_metric(query)) is not None:
            yield alarm, watched


def token_alarms(alarms: Iterable[Alarm], endpoint: str) -> Iterator[AlarmReading]:
    for alarm, watched in alarms_on_queries(alarms, endpoint):
        if (time := TIMES.get(watched.meaning)) is not None:
            metric, statistic, factor, unit = time, watched.percentile, MILLISECONDS, "ms"
        else:
            metric, factor = LEVELS[watched.meaning]
            statistic, unit = FULLEST, ""
        yield AlarmReading(
            name=alarm["AlarmName"],
            metric=metric,
            statistic=statistic,
            threshold=factor * watched.threshold,
            unit=unit,
            state=alarm.get("StateValue", "INSUFFICIENT_DATA"),
            since=alarm.get("StateUpdatedTimestamp"),
            variant=label_in(alarm_query(alarm), VARIANT_LABEL),
            kind=metric,
        )


def alarm_reading(alarm: Mapping[str, Any]) -> AlarmReading:
    threshold, unit = alarm.get("Threshold", 0.0), ""
    watched = alarm_metrics(alarm)
    names = sorted({each["Metric"]["MetricName"] for each in watched})
    metric, statistic = names[0], watched[0]["Stat"]
    if len(watched) > 1 or any("Expression" in metric for metric in alarm.get("Metrics", ())):
        rate = [n for n in names if n in ERROR_RATES]
        labels = [m["Label"] for m in alarm["Metrics"] if m.get("ReturnData") and "Label" in m]
        metric = "".join(labels) or " and ".join(names)
        if rate and names == sorted(["Invocations", *rate]):
            metric = ERROR_RATES[rate[0]]
        statistic = "Rate" if rate else "formula"
    simple = statistic not in ("formula", "Rate", "SampleCount") and not statistic.startswith("PR(")
    if simple and any(f.name == metric and f.unit == "Microseconds" for f in metrics()):
        threshold, unit = milliseconds_from_microseconds(threshold), "ms"
    elif simple and metric in (ANSWER, CONNECT):
        unit = "ms"
    above = alarm.get("ComparisonOperator", "").startswith("GreaterThan")
    return AlarmReading(
        name=alarm["AlarmName"],
        metric=metric,
        statistic=statistic if above else f"{statistic} <",
        threshold=threshold,
        unit=unit,
        state=alarm.get("StateValue", "INSUFFICIENT_DATA"),
        since=alarm.get("StateUpdatedTimestamp"),
        variant=_owner(alarm),
        new_fleet=bool(dimension_values(alarm, "EndpointConfigName")),
        kind=alarm_kind(alarm),
        window=_window(alarm),
    )


def _window(alarm: Alarm) -> AlarmWindow:
    """The periods that an alarm on metrics evaluates: all of them, where it says of no fewer."""
    seconds = [each["Period"] for each in alarm_metrics(alarm) if "Period" in each]
    periods = alarm.get("EvaluationPeriods")
    if periods is None:
        return USUAL_WINDOW
    first = alarm.get("Period") or max(seconds, default=DEFAULT_PERIOD_SECONDS)
    return AlarmWindow(first, periods, alarm.get("DatapointsToAlarm") or periods)


def _owner(alarm: Alarm) -> str:
    """The one variant or zone of the endpoint that it watches; empty for several.

    A canary's alarms are of a zone, whichever variant answers there.
    """
    shared = alarm_dimensions(alarm)
    if "EndpointName" not in shared:  # the other endpoint's variant may have the same name
        return ""
    return shared.get("VariantName") or shared.get("Zone", "")


def read_transitions(
    account: Account, alarms: tuple[AlarmReading, ...], start: datetime, end: datetime
) -> Iterator[AlarmTransition]:
    """Changes of state in the window; alarms that have not changed since are not asked for."""
    for alarm in alarms:
        if alarm.since is not None and alarm.since < start:
            continue
        items = account.known("history of alarms", alarm_changes, alarm.name, start, end)
        if items is None:
            return
        for item in items:
            data = json_object(item.get("HistoryData"))
            old, new = data.get("oldState", {}), data.get("newState", {})
            if start <= item["Timestamp"] <= end:
                told = new.get("stateValue") or item.get("HistorySummary", "")
                silent = "no datapoints were received" in new.get("stateReason", "")
                before = old.get("stateValue", "")
                yield AlarmTransition(item["Timestamp"], alarm.name, told, before, silent)
