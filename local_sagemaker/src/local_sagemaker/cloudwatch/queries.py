"""Metric queries: what GetMetricData answers, dashboards show and alarms judge.

All of them come through here, so that they agree.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import expression_functions as functions
from .detectors import excluded_ranges
from .expression_functions import Series, Value
from .expression_parser import (
    Array,
    Call,
    ExpressionError,
    Name,
    Node,
    Number,
    Operation,
    Text,
    names_in,
    parse_expression,
)
from .metric_store import MetricKey, MetricStore, Sample, metric_key
from .statistics import compute, parse_statistic

# Search expressions, as far as dashboards of fixed schemas need them.
#
# ``SEARCH('{AWS/SageMaker,EndpointName,VariantName} MetricName="Invocations" EndpointName="a"',
# 'Sum', 60)``: one schema, and terms of the form ``name="value"`` that must all hold exactly.
# Source: CloudWatch user guide, "CloudWatch search expression syntax". Other terms are refused.


_SCHEMA = re.compile(r"\s*\{([^}]*)\}\s*(.*)", re.DOTALL)
_TERM = re.compile(r"\s*([A-Za-z][\w.]*)\s*=\s*\"([^\"]*)\"\s*(?:AND\b)?", re.IGNORECASE)


def found_metrics(store: MetricStore, text: str) -> list[tuple[MetricKey, str]]:
    """Give the metrics that a search finds, each with the label that tells it apart.

    Raises
    ------
    ExpressionError
        For a search that is written in another way.
    """
    match = _SCHEMA.fullmatch(text)
    if match is None:
        raise ExpressionError("The local AWS searches by a schema in braces, then terms")
    namespace, *dimensions = [part.strip().strip('"') for part in match[1].split(",")]
    terms = _terms(match[2])
    name = terms.pop("MetricName", None)
    found = [
        key
        for key in sorted(store.samples, key=lambda key: (key[1], sorted(key[2])))
        if key[0] == namespace
        and {dimension for dimension, _ in key[2]} == set(dimensions)
        and name in (None, key[1])
        and all((dimension, value) in key[2] for dimension, value in terms.items())
    ]
    shared = frozenset.intersection(*(key[2] for key in found)) if len(found) > 1 else frozenset()
    return [(key, _label(key, shared, dimensions)) for key in found]


def _terms(text: str) -> dict[str, str]:
    terms, position = {}, 0
    while position < len(text.rstrip()):
        term = _TERM.match(text, position)
        if term is None:
            raise ExpressionError('The local AWS searches by terms of the form name="value"')
        terms[term[1]] = term[2]
        position = term.end()
    return terms


def _label(key: MetricKey, shared: frozenset[tuple[str, str]], order: list[str]) -> str:
    """The values of the dimensions in which the metrics found differ; of one, all of them."""
    values = dict(key[2] - shared)
    return " ".join(values[name] for name in order if name in values) or key[1]


HISTORY_SECONDS = 14 * 24 * 3600
MINIMUM_HISTORY = 10
"""Datapoints that the stand-in for anomaly detection needs before it gives a band."""

_KEYWORDS = frozenset({"REPEAT", "LINEAR", "ASC", "DESC", "AVG", "MIN", "MAX", "SUM"})


@dataclass(frozen=True)
class Window:
    """From start (inclusive) to end (exclusive), in seconds since 1970."""

    start: float
    end: float

    def grid(self, period: int) -> list[float]:
        """Give the start of each period."""
        count = -int(-(self.end - self.start) // period)
        return [self.start + index * period for index in range(count)]


@dataclass
class Queries:
    """The queries of one request, each evaluated once per window."""

    store: MetricStore
    queries: Sequence[Mapping[str, Any]]
    detectors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_id = {query["Id"]: query for query in self.queries}
        self._results: dict[tuple[str, Window], Value] = {}
        self._busy: list[str] = []

    def result(self, id: str, window: Window) -> Value:
        """Give one query's result.

        Raises
        ------
        ExpressionError
            For an expression that is wrong or not emulated.
        """
        if id not in self._by_id:
            raise ExpressionError(f"No query has the id '{id}'")
        if id in self._busy:
            raise ExpressionError(f"The expression '{id}' refers to itself")
        if (id, window) not in self._results:
            self._busy.append(id)
            try:
                self._results[id, window] = self._evaluate(self._by_id[id], window)
            finally:
                self._busy.remove(id)
        return self._results[id, window]

    def period(self, query: Mapping[str, Any]) -> int:
        """Give the period of a query; of an expression, that of the finest metric."""
        if "MetricStat" in query:
            return int(query["MetricStat"]["Period"])
        if query.get("Period"):
            return int(query["Period"])
        periods = [int(q["MetricStat"]["Period"]) for q in self.queries if "MetricStat" in q]
        return min(periods, default=60)

    def _evaluate(self, query: Mapping[str, Any], window: Window) -> Value:
        if "MetricStat" in query:
            stat = query["MetricStat"]
            return Series(
                metric_series(
                    self.store,
                    _key(stat),
                    stat["Stat"],
                    int(stat["Period"]),
                    window,
                    stat.get("Unit"),
                ),
                query.get("Label") or stat["Metric"]["MetricName"],
                int(stat["Period"]),
            )
        text = query["Expression"]
        if text.lstrip().upper().startswith("SELECT"):
            raise ExpressionError("Metrics Insights queries are not emulated by the local AWS")
        return _Evaluation(self, window, self.period(query)).value(parse_expression(text))

    def metrics(self, part: str, window: Window) -> list[Series]:
        """METRICS(): all metrics of the request, or those with a part in their id."""
        found = (
            self.result(q["Id"], window)
            for q in self.queries
            if "MetricStat" in q and part in q["Id"]
        )
        return [series for series in found if isinstance(series, Series)]

    def earliest(self, node: Node) -> float | None:
        """Give the time of the first sample of the metrics that an expression reads."""
        found: list[float] = []
        for name in names_in(node):
            query = self._by_id.get(name, {})
            if "MetricStat" in query:
                first = self.store.earliest(_key(query["MetricStat"]))
                found += [first] if first is not None else []
            elif "Expression" in query:
                first = self.earliest(parse_expression(query["Expression"]))
                found += [first] if first is not None else []
        return min(found, default=None)

    def excluded(self, node: Node) -> list[tuple[float, float]]:
        """Give the times that a metric's anomaly detector leaves out."""
        query = self._by_id.get(node.name, {}) if isinstance(node, Name) else {}
        return excluded_ranges(self.detectors, query.get("MetricStat"))


def _key(stat: Mapping[str, Any]) -> MetricKey:
    metric = stat["Metric"]
    return metric_key(metric["Namespace"], metric["MetricName"], metric.get("Dimensions") or ())


def metric_series(
    store: MetricStore, key: MetricKey, stat: str, period: int, window: Window, unit: str | None
) -> dict[float, float]:
    """Give a statistic per period, where there is one."""
    statistic = parse_statistic(stat)
    if statistic is None:
        raise ExpressionError(f"The statistic '{stat}' does not exist")
    result = {}
    for time, samples in by_period(store, key, period, window, unit).items():
        value = compute(statistic, samples)
        if value is not None:
            result[time] = value
    return result


def by_period(
    store: MetricStore, key: MetricKey, period: int, window: Window, unit: str | None
) -> dict[float, list[Sample]]:
    """Sort a metric's samples into the periods of a window."""
    found: dict[float, list[Sample]] = {}
    for sample in store.between(key, window.start, window.end, unit):
        start = window.start + (sample.time - window.start) // period * period
        found.setdefault(start, []).append(sample)
    return found


@dataclass(frozen=True)
class _Evaluation:
    """One expression over one window."""

    queries: Queries
    window: Window
    period: int

    def value(self, node: Node) -> Value:
        match node:
            case Number(number):
                return number
            case Name(name):
                return self.queries.result(name, self.window)
            case Operation("negate", (operand,)):
                return functions.operate("*", -1.0, self.value(operand))
            case Operation(operator, (left, right)):
                return functions.operate(operator, self.value(left), self.value(right))
            case Array():
                return [item for item in self._items(node) if isinstance(item, Series)]
            case Call(name, arguments):
                return self._call(name, arguments)
        raise ExpressionError("A string stands where a value is expected")

    def _items(self, node: Array) -> list[Series | float]:
        items: list[Series | float] = []
        for item in node.items:
            value = self.value(item)
            items += value if isinstance(value, list) else [value]
        return items

    def _call(self, name: str, arguments: tuple[Node, ...]) -> Value:
        grid = self.window.grid(self.period)
        if name in functions.REFUSED:
            raise ExpressionError(f"The function {name} is not emulated by the local AWS")
        if name == "SEARCH":
            return self._search(arguments)
        if name == "METRICS":
            part = arguments[0].value if arguments and isinstance(arguments[0], Text) else ""
            return self.queries.metrics(part, self.window)
        if not arguments:
            raise ExpressionError(f"The function {name} needs an argument")
        first = arguments[0]
        if name in functions.AGGREGATES:
            given = self._items(first) if isinstance(first, Array) else self.value(first)
            return functions.aggregate(name, given)
        if name in functions.POINTWISE:
            return functions.each(self.value(first), functions.POINTWISE[name])
        if name in functions.SHIFTED:
            return functions.each(self.value(first), functions.SHIFTED[name])
        if name in functions.CLOCK_NAMES:
            return functions.clock(name, grid, self.period)
        match name:
            case "IF":
                values = [self.value(argument) for argument in arguments]
                if len(values) not in (2, 3):
                    raise ExpressionError("IF takes two or three arguments")
                return functions.condition(
                    values[0], values[1], values[2] if len(values) == 3 else None
                )
            case "FILL":
                filler = self._filler(arguments)
                return functions.each(
                    self.value(first), lambda series: functions.fill(series, filler, grid)
                )
            case "TIME_SERIES":
                number = self._number(first, name)
                return Series(dict.fromkeys(grid, number), "", self.period)
            case "PERIOD":
                series = self.value(first)
                return float(series.period if isinstance(series, Series) else self.period)
            case "ANOMALY_DETECTION_BAND":
                width = self._number(arguments[1], name) if len(arguments) > 1 else 2.0
                return self._band(first, width)
        return self._of_array(name, arguments)

    def _search(self, arguments: tuple[Node, ...]) -> list[Series]:
        match arguments:
            case (Text(text), Text(stat)):
                period = self.period
            case (Text(text), Text(stat), Number(number)):
                period = int(number)
            case _:
                raise ExpressionError("SEARCH takes a search, a statistic and a period")
        store = self.queries.store
        return [
            Series(metric_series(store, key, stat, period, self.window, None), label, period)
            for key, label in found_metrics(store, text)
        ]

    def _of_array(self, name: str, arguments: tuple[Node, ...]) -> Value:
        array = self.value(arguments[0])
        array = [array] if isinstance(array, Series) else array
        if isinstance(array, float):
            raise ExpressionError(f"{name} takes an array of time series")
        match name:
            case "METRIC_COUNT":
                return float(len(array))
            case "REMOVE_EMPTY":
                return [series for series in array if series.values]
            case "FIRST" | "LAST":
                if not array:
                    raise ExpressionError(f"{name} of an empty array")
                return array[0] if name == "FIRST" else array[-1]
            case "SLICE":
                bounds = [int(self._number(a, name)) for a in arguments[1:]]
                return array[slice(*bounds)] if len(bounds) == 2 else array[bounds[0] :]
            case "SORT":
                return self._sorted(array, arguments)
        raise ExpressionError(f"The function {name} is not emulated by the local AWS")

    def _sorted(self, array: list[Series], arguments: tuple[Node, ...]) -> list[Series]:
        by, order = (a.name if isinstance(a, Name) else "" for a in arguments[1:3])
        if by not in _KEYWORDS or order not in ("ASC", "DESC"):
            raise ExpressionError("SORT takes AVG, MIN, MAX or SUM, and ASC or DESC")

        def weight(series: Series) -> float:
            found = functions.aggregate(by, series)
            return found if isinstance(found, float) else 0.0

        ordered = sorted(array, key=weight, reverse=order == "DESC")
        limit = int(self._number(arguments[3], "SORT")) if len(arguments) > 3 else None
        return ordered[:limit]

    def _filler(self, arguments: tuple[Node, ...]) -> Value | str:
        if len(arguments) != 2:
            raise ExpressionError("FILL takes two arguments")
        wanted = arguments[1]
        if isinstance(wanted, Name) and wanted.name in ("REPEAT", "LINEAR"):
            return wanted.name
        return self.value(wanted)

    def _number(self, node: Node, function: str) -> float:
        value = self.value(node)
        if not isinstance(value, float):
            raise ExpressionError(f"{function} takes a number here")
        return value

    def _band(self, node: Node, width: float) -> list[Series]:
        """Stand-in for CloudWatch's trained model: mean and deviation of the two weeks before."""
        upper, lower = (Series({}, label, self.period) for label in ("upper", "lower"))
        earliest = self.queries.earliest(node)
        present = self.value(node)
        if not isinstance(present, Series):
            raise ExpressionError("ANOMALY_DETECTION_BAND takes one time series")
        if earliest is None or earliest >= self.window.start:
            return [upper, lower]
        oldest = max(earliest, self.window.start - HISTORY_SECONDS)
        count = -int(-(self.window.start - oldest) // self.period)
        past = Window(self.window.start - count * self.period, self.window.start)
        history = _Evaluation(self.queries, past, self.period).value(node)
        assert isinstance(history, Series)
        left_out = self.queries.excluded(node)
        points = [
            value
            for time, value in history.values.items()
            if not any(start <= time < end for start, end in left_out)
        ]
        if len(points) < MINIMUM_HISTORY:
            return [upper, lower]
        mean, spread = statistics.fmean(points), statistics.pstdev(points)
        for time in self.window.grid(self.period):
            upper.values[time] = mean + width * spread
            lower.values[time] = mean - width * spread
        return [upper, lower]
