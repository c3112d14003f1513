"""Metric queries: what GetMetricData answers, dashboards show and alarms judge.

All of them come through here, so that they agree.
"""

from __future__ import annotations

import ast
import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import expression_functions as functions
from .expression_functions import Series, Value
from .expression_parser import ExpressionError, names_in, parse_expression
from .metric_store import MetricKey, MetricStore, Sample, as_seconds, metric_key
from .statistics import compute, parse_statistic

# Search expressions, as far as dashboards of fixed schemas need them.
#
# ``SEARCH('{AWS/SageMaker,EndpointName,VariantName} MetricName="Invocations" EndpointName="a"',
# 'Sum', 60)``: one schema, and terms of the form ``name="value"`` that must all hold exactly.
# Source: CloudWatch user guide, "CloudWatch search expression syntax". Other terms are refused.


_SCHEMA = re.compile(r"\s*\{([^}]*)\}\s*(.*)", re.DOTALL)
_TERM = re.compile(r"\s*([A-Za-z][\w.]*)\s*=\s*\"([^\"]*)\"\s*(?:AND\b)?", re.IGNORECASE)


def found_metrics(store: MetricStore, text: str) -> list[tuple[MetricKey, str]]:
    """Give the metrics that a search finds, each with the label that tells it apart."""
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


def detector_key(namespace: str, name: str, dimensions: list[dict[str, str]], stat: str) -> str:
    """Write what makes an anomaly detector unique: its metric and statistic."""
    pairs = sorted((d["Name"], d["Value"]) for d in dimensions)
    return json.dumps([namespace, name, pairs, stat])


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
        """Give one query's result."""
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

    def earliest(self, node: ast.expr) -> float | None:
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

    def excluded(self, node: ast.expr) -> list[tuple[float, float]]:
        """Give the times that a metric's anomaly detector, if there is one, leaves out."""
        query = self._by_id.get(node.id, {}) if isinstance(node, ast.Name) else {}
        if "MetricStat" not in query:
            return []
        stat, metric = query["MetricStat"], query["MetricStat"]["Metric"]
        key = detector_key(
            metric["Namespace"], metric["MetricName"], metric.get("Dimensions") or [], stat["Stat"]
        )
        configuration = self.detectors.get(key, {}).get("Configuration", {})
        return [
            (as_seconds(entry["StartTime"]), as_seconds(entry["EndTime"]))
            for entry in configuration.get("ExcludedTimeRanges", [])
        ]


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

    def value(self, node: ast.expr) -> Value:
        operators: Sequence[ast.AST]
        match node:
            case ast.Constant(float(number)):
                return number
            case ast.Name(name):
                return self.queries.result(name, self.window)
            case ast.List():
                return [item for item in self._items(node) if isinstance(item, Series)]
            case ast.Call(ast.Name(name), arguments):
                return self._call(name, arguments)
            case ast.UnaryOp(_, operand):
                return functions.operate(functions.OPERATORS[ast.Mult], -1.0, self.value(operand))
            case ast.BinOp(left, operator, right):
                operators, operands = [operator], [left, right]
            case ast.BoolOp(operator, operands):
                operators = [operator] * (len(operands) - 1)
            case ast.Compare(left, operators, others):
                operands = [left, *others]
            case _:
                raise ExpressionError("A string stands where a value is expected")
        result = self.value(operands[0])
        for each, operand in zip(operators, operands[1:], strict=True):
            result = functions.operate(functions.OPERATORS[type(each)], result, self.value(operand))
        return result

    def _items(self, node: ast.List) -> list[Series | float]:
        items: list[Series | float] = []
        for item in node.elts:
            value = self.value(item)
            items += value if isinstance(value, list) else [value]
        return items

    def _call(self, name: str, arguments: list[ast.expr]) -> Value:
        if name in functions.REFUSED:
            raise ExpressionError(f"The function {name} is not emulated by the local AWS")
        if name == "METRICS":
            part = (
                arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else ""
            )
            return self.queries.metrics(str(part), self.window)
        if not arguments:
            raise ExpressionError(f"The function {name} needs an argument")
        if name in _FUNCTIONS:
            return _FUNCTIONS[name](self, arguments)
        first = arguments[0]
        if name in functions.AGGREGATES:
            given = self._items(first) if isinstance(first, ast.List) else self.value(first)
            return functions.aggregate(name, given)
        if name in functions.EACH:
            return functions.each(self.value(first), functions.EACH[name])
        if name in functions.CLOCK:
            return functions.clock(name, self.window.grid(self.period), self.period)
        raise ExpressionError(f"The function {name} is not emulated by the local AWS")

    def _search(self, arguments: list[ast.expr]) -> Value:
        match arguments:
            case [ast.Constant(str(text)), ast.Constant(str(stat))]:
                period = self.period
            case [ast.Constant(str(text)), ast.Constant(str(stat)), ast.Constant(float(number))]:
                period = int(number)
            case _:
                raise ExpressionError("SEARCH takes a search, a statistic and a period")
        store = self.queries.store
        return [
            Series(metric_series(store, key, stat, period, self.window, None), label, period)
            for key, label in found_metrics(store, text)
        ]

    def _if(self, arguments: list[ast.expr]) -> Value:
        values = [self.value(argument) for argument in arguments]
        if len(values) not in (2, 3):
            raise ExpressionError("IF takes two or three arguments")
        return functions.condition(values[0], values[1], values[2] if len(values) == 3 else None)

    def _fill(self, arguments: list[ast.expr]) -> Value:
        if len(arguments) != 2:
            raise ExpressionError("FILL takes two arguments")
        first, wanted = arguments
        keyword = wanted.id if isinstance(wanted, ast.Name) else ""
        filler = keyword if keyword in ("REPEAT", "LINEAR") else self.value(wanted)
        grid = self.window.grid(self.period)
        return functions.each(self.value(first), lambda each: functions.fill(each, filler, grid))

    def _time_series(self, arguments: list[ast.expr]) -> Value:
        number = self._number(arguments[0], "TIME_SERIES")
        return Series(dict.fromkeys(self.window.grid(self.period), number), "", self.period)

    def _period(self, arguments: list[ast.expr]) -> Value:
        series = self.value(arguments[0])
        return float(series.period if isinstance(series, Series) else self.period)

    def _array(self, node: ast.expr) -> list[Series]:
        array = self.value(node)
        if isinstance(array, float):
            raise ExpressionError("An array of time series is expected where a number is given")
        return [array] if isinstance(array, Series) else array

    def _end(self, arguments: list[ast.expr], place: int) -> Value:
        array = self._array(arguments[0])
        if not array:
            raise ExpressionError("FIRST or LAST of an empty array")
        return array[place]

    def _slice(self, arguments: list[ast.expr]) -> Value:
        bounds = [int(self._number(a, "SLICE")) for a in arguments[1:]]
        array = self._array(arguments[0])
        return array[slice(*bounds)] if len(bounds) == 2 else array[bounds[0] :]

    def _sort(self, arguments: list[ast.expr]) -> Value:
        by, order = (a.id if isinstance(a, ast.Name) else "" for a in arguments[1:3])
        if by not in ("AVG", "MIN", "MAX", "SUM") or order not in ("ASC", "DESC"):
            raise ExpressionError("SORT takes AVG, MIN, MAX or SUM, and ASC or DESC")

        def weight(series: Series) -> float:
            found = functions.aggregate(by, series)
            return found if isinstance(found, float) else 0.0

        ordered = sorted(self._array(arguments[0]), key=weight, reverse=order == "DESC")
        limit = int(self._number(arguments[3], "SORT")) if len(arguments) > 3 else None
        return ordered[:limit]

    def _number(self, node: ast.expr, function: str) -> float:
        value = self.value(node)
        if not isinstance(value, float):
            raise ExpressionError(f"{function} takes a number here")
        return value

    def _band(self, arguments: list[ast.expr]) -> Value:
        """Stand-in for CloudWatch's trained model: mean and deviation of the two weeks before."""
        node = arguments[0]
        width = self._number(arguments[1], "The band") if len(arguments) > 1 else 2.0
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


_FUNCTIONS: dict[str, Callable[[_Evaluation, list[ast.expr]], Value]] = {
    "ANOMALY_DETECTION_BAND": _Evaluation._band,
    "FILL": _Evaluation._fill,
    "FIRST": lambda self, arguments: self._end(arguments, 0),
    "IF": _Evaluation._if,
    "LAST": lambda self, arguments: self._end(arguments, -1),
    "METRIC_COUNT": lambda self, arguments: float(len(self._array(arguments[0]))),
    "PERIOD": _Evaluation._period,
    "REMOVE_EMPTY": lambda self, arguments: [s for s in self._array(arguments[0]) if s.values],
    "SEARCH": _Evaluation._search,
    "SLICE": _Evaluation._slice,
    "SORT": _Evaluation._sort,
    "TIME_SERIES": _Evaluation._time_series,
}
