"""Judging one metric alarm at one moment.

Sources: CloudWatch user guide, "Alarm evaluation", "Configuring how CloudWatch alarms treat missing
data", "Percentile-based alarms and low data samples".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from .limits import problems_of_queries
from .metric_math import ExpressionError, MathSeries, functions_in, parse_expression
from .metric_store import (
    SIMPLE,
    MetricStore,
    Statistic,
    as_moment,
    compute,
    metric_key,
    parse_statistic,
    reason_data,
    samples_wanted,
)
from .queries import Queries, Window, by_period

EXTRA_DATAPOINTS = 2
"""How far the evaluation range reaches beyond the evaluation periods.

AWS's tables have 5 for 3 and say that it depends on period and resolution; no more is known.
"""
MAX_METRICS = 10
_OF_STATISTIC = ("Period", "Unit", "Statistic", "ExtendedStatistic")
OF_ONE_METRIC = ("Namespace", "MetricName", "Dimensions", *_OF_STATISTIC)
_KNOWN = {
    "EvaluateLowSampleCountPercentile": ("evaluate", "ignore"),
    "TreatMissingData": ("missing", "ignore", "breaching", "notBreaching"),
}

_Comparison = Callable[[float, float, float, float], bool]
_COMPARISONS: dict[str, tuple[str, _Comparison]] = {
    "GreaterThanOrEqualToThreshold": (
        "greater than or equal to",
        lambda value, threshold, *_: value >= threshold,
    ),
    "GreaterThanThreshold": ("greater than", lambda value, threshold, *_: value > threshold),
    "LessThanThreshold": ("less than", lambda value, threshold, *_: value < threshold),
    "LessThanOrEqualToThreshold": (
        "less than or equal to",
        lambda value, threshold, *_: value <= threshold,
    ),
    "LessThanLowerOrGreaterThanUpperThreshold": (
        "less than the lower or greater than the upper",
        lambda value, _, lower, upper: value < lower or value > upper,
    ),
    "LessThanLowerThreshold": ("less than the lower", lambda value, _, lower, upper: value < lower),
    "GreaterThanUpperThreshold": (
        "greater than the upper",
        lambda value, _, lower, upper: value > upper,
    ),
}
"""Each operator in words, and judging a value by threshold, lower and upper bound."""


class Point(NamedTuple):
    """A datapoint of an alarm and whether it breaches."""

    time: float
    value: float
    breaching: bool


@dataclass(frozen=True)
class Outcome:
    """What an evaluation says: a state with its reason, or to keep the present one."""

    state: str | None
    reason: str = ""
    data: str = "{}"


def judge(
    points: Sequence[Point | None], evaluation_periods: int, datapoints_to_alarm: int, missing: str
) -> str | None:
    """Give the state that datapoints lead to; None is to keep the present one."""
    real = [(age, point) for age, point in enumerate(points, start=1) if point is not None]
    judged = real[:evaluation_periods]
    breaching = sum(point.breaching for _, point in judged)
    if len(real) >= evaluation_periods or missing == "notBreaching":
        return "ALARM" if breaching >= datapoints_to_alarm else "OK"
    if missing == "breaching":
        filled = evaluation_periods - len(real)
        return "ALARM" if breaching + filled >= datapoints_to_alarm else "OK"
    if not real:
        return "INSUFFICIENT_DATA" if missing == "missing" else None
    if breaching >= datapoints_to_alarm:
        return "ALARM"
    if breaching < len(real):
        return "OK"
    # Only breaching datapoints, but too few: "premature alarm state". AWS alarms once the oldest
    # is as old as M, and does not say what it does before: the state is kept.
    if missing == "missing" and real[-1][0] >= datapoints_to_alarm:
        return "ALARM"
    return None


def evaluate(
    settings: Mapping[str, Any], store: MetricStore, at: float, present: str = ""
) -> Outcome:
    """Judge an alarm by the data before a moment; the present state keeps its last reason."""
    count = int(settings["EvaluationPeriods"])
    needed = int(settings.get("DatapointsToAlarm") or count)
    queries = Queries(store, alarm_queries(settings))
    main = main_query(settings, queries.queries)
    period = queries.period(main)
    end = at - at % (10 if period < 60 else 60)
    window = Window(end - (count + EXTRA_DATAPOINTS) * period, end)
    if too_few_samples(settings, store, Window(end - count * period, end)):
        return Outcome(None)
    points = _points(settings, queries, main, window, period)
    default = "ignore" if settings.get("Namespace") == "AWS/DynamoDB" else "missing"
    missing = settings.get("TreatMissingData") or default
    state = judge(points, count, needed, missing)
    if state in (None, present):
        return Outcome(None)
    return _explained(state, settings, points, count, needed, missing)


def alarm_queries(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give an alarm's queries; an alarm on one metric has one."""
    if settings.get("Metrics"):
        return list(settings["Metrics"])
    metric = {
        "Namespace": settings["Namespace"],
        "MetricName": settings["MetricName"],
        "Dimensions": settings.get("Dimensions") or [],
    }
    stat = {
        "Metric": metric,
        "Period": settings["Period"],
        "Stat": settings.get("ExtendedStatistic") or settings.get("Statistic"),
        "Unit": settings.get("Unit"),
    }
    return [{"Id": "m1", "MetricStat": stat, "ReturnData": True}]


def main_query(
    settings: Mapping[str, Any], queries: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Give the query whose result is compared with the threshold or the band."""
    band = settings.get("ThresholdMetricId")
    returned = [q for q in queries if q.get("ReturnData", True) and q["Id"] != band]
    if len(returned) != 1:
        raise ExpressionError("Exactly one element of the metrics list should return data.")
    return returned[0]


def _points(
    settings: Mapping[str, Any],
    queries: Queries,
    main: Mapping[str, Any],
    window: Window,
    period: int,
) -> list[Point | None]:
    """Give the datapoints of the window, the newest first."""
    series = queries.result(main["Id"], window)
    if not isinstance(series, MathSeries):
        raise ExpressionError(f"The expression '{main['Id']}' does not give one time series.")
    uppers: dict[float, float] = {}
    lowers: dict[float, float] = {}
    band = settings.get("ThresholdMetricId")
    if band:
        pair = queries.result(band, window)
        if not isinstance(pair, list) or len(pair) != 2:
            raise ExpressionError(f"The expression '{band}' does not give an anomaly band.")
        uppers, lowers = pair[0].values, pair[1].values
    threshold = float(settings.get("Threshold") or 0.0)
    violates = _COMPARISONS[settings["ComparisonOperator"]][1]
    points: list[Point | None] = []
    for time in reversed(window.grid(period)):
        value = series.values.get(time)
        if value is None or (band and time not in uppers):
            points.append(None)
            continue
        upper, lower = uppers.get(time, 0.0), lowers.get(time, 0.0)
        points.append(Point(time, value, violates(value, threshold, lower, upper)))
    return points


def too_few_samples(settings: Mapping[str, Any], store: MetricStore, window: Window) -> bool:
    """Say whether EvaluateLowSampleCountPercentile keeps an alarm from being judged."""
    statistic = parse_statistic(settings.get("ExtendedStatistic") or "")
    if settings.get("EvaluateLowSampleCountPercentile") != "ignore" or statistic is None:
        return False
    key = metric_key(
        settings["Namespace"], settings["MetricName"], settings.get("Dimensions") or ()
    )
    length = int(window.end - window.start)
    (samples,) = by_period(store, key, length, window, settings.get("Unit")).values() or ([],)
    counter = cast(Statistic, parse_statistic("SampleCount"))
    return (compute(counter, samples) or 0.0) < samples_wanted(statistic)


def _explained(
    state: str,
    settings: Mapping[str, Any],
    points: Sequence[Point | None],
    count: int,
    needed: int,
    missing: str,
) -> Outcome:
    real = [point for point in points if point is not None][:count]
    threshold = settings.get("Threshold")
    data = reason_data(
        version="1.0",
        recentDatapoints=[point.value for point in reversed(real)],
        threshold=threshold,
        evaluatedDatapoints=[
            {"timestamp": as_moment(point.time), "value": point.value} for point in real
        ],
    )
    if state == "INSUFFICIENT_DATA":
        return Outcome(state, f"Insufficient Data: {_count(count)} were unknown.", data)
    if not real:
        treated = "Breaching" if missing == "breaching" else "NonBreaching"
        return Outcome(
            state,
            f"Threshold Crossed: no datapoints were received for {count} "
            f"period{'' if count == 1 else 's'} and {_count(count, 'missing ')} "
            f"{'was' if count == 1 else 'were'} treated as [{treated}].",
            data,
        )
    shown = [point for point in real if point.breaching == (state == "ALARM")] or real
    listed = ", ".join(
        f"{point.value} ({as_moment(point.time):%d/%m/%y %H:%M:%S})" for point in shown
    )
    verb = ("was" if len(shown) == 1 else "were") + ("" if state == "ALARM" else " not")
    against = "threshold" if threshold is None else f"threshold ({float(threshold)})"
    minimum = needed if state == "ALARM" else count - needed + 1
    change = "OK -> ALARM" if state == "ALARM" else "ALARM -> OK"
    return Outcome(
        state,
        f"Threshold Crossed: {len(shown)} out of the last {count} datapoints [{listed}] {verb} "
        f"{_COMPARISONS[settings['ComparisonOperator']][0]} the {against} "
        f"(minimum {_count(minimum)} for {change} transition).",
        data,
    )


def _count(number: int, kind: str = "") -> str:
    return f"{number} {kind}datapoint{'' if number == 1 else 's'}"


def problem_of(settings: Mapping[str, Any]) -> str | None:
    """Say why PutMetricAlarm refuses an alarm; None when it does not."""
    return next(_problems(settings), None)


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    """The API reference's rules beyond types, enums and lengths; each needs those before it."""
    given = {name for name, value in settings.items() if value not in (None, [], "")}
    metrics, banded = "Metrics" in given, "ThresholdMetricId" in given
    if "EvaluationInterval" in given:
        yield "EvaluationInterval can only be specified together with EvaluationCriteria"
    needed = ["ComparisonOperator", "EvaluationPeriods", *([] if banded else ["Threshold"])]
    for name in [*needed, *([] if metrics else ("Namespace", "MetricName", "Period"))]:
        if name not in given:
            yield f"{name} must be specified"
    for name in OF_ONE_METRIC:
        if metrics and name in given:  # in AWS's words: cfn-lint issue 766
            yield f"{name} should not be set if list of Metrics is set."
    if not metrics and ("Statistic" in given) == ("ExtendedStatistic" in given):
        yield "One of Statistic and ExtendedStatistic must be specified"
    extended = settings.get("ExtendedStatistic")
    if extended and (extended in SIMPLE or parse_statistic(extended) is None):
        yield f"The value {extended} for parameter ExtendedStatistic is not supported."
    if (settings.get("DatapointsToAlarm") or 0) > settings["EvaluationPeriods"]:
        yield "Datapoints to alarm must be less than or equal to the number of evaluation periods."
    operator = settings["ComparisonOperator"]
    if ("Upper" in operator or "Lower" in operator) != banded:
        yield "ThresholdMetricId goes with a comparison with an anomaly band, and only with that"
    if banded and "Threshold" in given:
        yield "Threshold should not be used with ThresholdMetricId"
    if banded and any(
        ":autoscaling:" in alarm_action for alarm_action in settings.get("AlarmActions", ())
    ):
        yield "An alarm with ThresholdMetricId cannot have Auto Scaling actions"
    for name, known in _KNOWN.items():
        if settings.get(name, known[0]) not in known:
            yield (
                f"Option {settings[name]} is not supported. Supported options for parameter {name} "
                f"are {' and '.join(known)}."
            )
    yield from _problems_of_queries(settings)


def _problems_of_queries(settings: Mapping[str, Any]) -> Iterator[str]:
    queries = Queries(MetricStore(), alarm_queries(settings))
    stats = [query["MetricStat"] for query in queries.queries if "MetricStat" in query]
    periods = {int(stat["Period"]) for stat in stats}
    if any(period % 60 and period not in (10, 20, 30) for period in periods):
        yield "Period must be 10, 20, 30 or a multiple of 60"
    if len(periods) > 1:
        yield "All metrics of an alarm must have the same period"
    if len(stats) > MAX_METRICS:
        yield f"An alarm can have {MAX_METRICS} metrics at most"
    if len(queries.queries) - len(stats) > MAX_METRICS:
        yield f"An alarm can have {MAX_METRICS} expressions at most"
    yield from problems_of_queries(queries.queries)
    try:
        main = main_query(settings, queries.queries)
        period = queries.period(main)
        for name, longest, whose in (("day", 86_400, period < 3600), ("week", 604_800, True)):
            if whose and settings["EvaluationPeriods"] * period > longest:
                which = " for alarms using period < 3600" if name == "day" else ""
                yield (
                    f"Metrics cannot be checked across more than a {name} (EvaluationPeriods * "
                    f"Period must be <= {longest}){which}"
                )
        for query in queries.queries:
            yield from _problems_of_expression(queries, query)
        # On no data at all: what is wrong with an expression shows without any.
        _points(settings, queries, main, Window(0.0, 600.0), 60)
    except ExpressionError as error:
        yield str(error)


def _problems_of_expression(queries: Queries, query: Mapping[str, Any]) -> Iterator[str]:
    if "Expression" not in query:
        return
    try:
        if "SEARCH" in functions_in(parse_expression(query["Expression"])):
            yield "SEARCH is not supported on Metric Alarms."
        queries.result(query["Id"], Window(0.0, 600.0))
    except ExpressionError as error:
        yield f"Error in expression '{query['Id']}': {error}"
