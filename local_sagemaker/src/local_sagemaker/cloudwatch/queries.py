"""Metric queries: what GetMetricData answers, dashboards show and alarms judge.

All of them come through here, so that they agree.
"""

from __future__ import annotations

import ast
import math
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from . import metric_math
from .metric_math import ExpressionError, MathSeries, Value, names_in, parse_expression
from .metric_store import MetricKey, MetricStore, Sample, compute, metric_key, parse_statistic

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


@dataclass(frozen=True)
class Window:
    """From start (inclusive) to end (exclusive), in seconds since 1970."""

    start: float
    end: float

    def grid(self, period: int) -> list[float]:
        count = -int(-(self.end - self.start) // period)
        return [self.start + index * period for index in range(count)]


class TooManyDatapoints(ValueError):
    """The expressions of a request make more datapoints than it can have."""


@dataclass
class Queries:
    """The queries of one request, each evaluated once per window."""

    store: MetricStore
    queries: Sequence[Mapping[str, Any]]
    datapoints_left: float = math.inf
    """Those that expressions may make, beside the ones that were put."""

    def __post_init__(self) -> None:
        self._by_id = {query["Id"]: query for query in self.queries}
        self._results: dict[tuple[str, Window], Value] = {}
        self._busy: list[str] = []

    def result(self, id: str, window: Window) -> Value:
        if id not in self._by_id:
            raise ExpressionError(f"No query has the id '{id}'")
        if id in self._busy:
            raise ExpressionError(f"The expression '{id}' refers to itself")
        if (id, window) not in self._results:
            self._busy.append(id)
            try:
                self._results[id, window] = _finite(self._evaluate(self._by_id[id], window))
            except RecursionError:
                raise ExpressionError("The expression is nested too deeply") from None
            except ArithmeticError:
                raise ExpressionError("A value of the expression is too large") from None
            finally:
                self._busy.remove(id)
        return self._results[id, window]

    def grid(self, window: Window, period: int) -> list[float]:
        """Give a window's times, which count as datapoints of the request."""
        self.datapoints_left -= (window.end - window.start) / period
        if self.datapoints_left < 0:
            raise TooManyDatapoints
        return window.grid(period)

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
            return MathSeries(
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


def _finite(value: Value) -> Value:
    """Drop the points that are no numbers, or too large for one."""
    if isinstance(value, list):
        return [_finite_points(series) for series in value]
    return _finite_points(value) if isinstance(value, MathSeries) else value


def _finite_points(series: MathSeries) -> MathSeries:
    if all(map(math.isfinite, series.values.values())):
        return series
    kept = {time: value for time, value in series.values.items() if math.isfinite(value)}
    return MathSeries(kept, series.label, series.period)


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
        chain: list[ast.BinOp] = []
        while isinstance(node, ast.BinOp):  # a sum of a thousand terms is as deep
            chain.append(node)
            node = node.left
        if chain:
            value = self.value(node)
            for link in reversed(chain):
                combine = metric_math.OPERATORS[type(link.op)]
                value = metric_math.operate(combine, value, self.value(link.right))
            return value
        match node:
            case ast.Constant(float(number)):
                return number
            case ast.Name(name):
                return self.queries.result(name, self.window)
            case ast.Call(ast.Name(name), arguments):
                return self._call(name, arguments)
            case ast.UnaryOp(_, operand):
                return metric_math.operate(
                    metric_math.OPERATORS[ast.Mult], -1.0, self.value(operand)
                )
            case ast.BoolOp(operator, operands):
                operators = [operator] * (len(operands) - 1)
            case ast.Compare(left, operators, others):
                operands = [left, *others]
            case _:
                raise ExpressionError("A string or a list stands where a value is expected")
        result = self.value(operands[0])
        for each, operand in zip(operators, operands[1:], strict=True):
            result = metric_math.operate(
                metric_math.OPERATORS[type(each)], result, self.value(operand)
            )
        return result

    def _items(self, node: ast.List) -> list[MathSeries | float]:
        items: list[MathSeries | float] = []
        for item in node.elts:
            value = self.value(item)
            items += value if isinstance(value, list) else [value]
        return items

    def _call(self, name: str, arguments: list[ast.expr]) -> Value:
        if name in FUNCTIONS:
            return FUNCTIONS[name](self, arguments)
        if name not in metric_math.AGGREGATES or len(arguments) != 1:
            raise ExpressionError(f"The function {name} is not emulated by the local AWS like this")
        (first,) = arguments
        given = self._items(first) if isinstance(first, ast.List) else self.value(first)
        return metric_math.aggregate(name, given)

    def _search(self, arguments: list[ast.expr]) -> Value:
        match arguments:
            case [ast.Constant(str(text)), ast.Constant(str(stat))]:
                period = self.period
            case [ast.Constant(str(text)), ast.Constant(str(stat)), ast.Constant(float(number))]:
                period = int(number)
            case _:
                raise ExpressionError("SEARCH takes a search, a statistic and a period")
        if period not in (1, 5, 10, 20, 30) and (period < 60 or period % 60):
            raise ExpressionError("The period of SEARCH is 1, 5, 10, 20, 30 or a multiple of 60")
        if parse_statistic(stat) is None:
            raise ExpressionError(f"The statistic '{stat}' does not exist")
        store = self.queries.store
        return [
            MathSeries(metric_series(store, key, stat, period, self.window, None), label, period)
            for key, label in found_metrics(store, text)
        ]

    def _if(self, arguments: list[ast.expr]) -> Value:
        values = [self.value(argument) for argument in arguments]
        if len(values) not in (2, 3):
            raise ExpressionError("IF takes two or three arguments")
        return metric_math.condition(values[0], values[1], values[2] if len(values) == 3 else None)

    def _fill(self, arguments: list[ast.expr]) -> Value:
        match [self.value(argument) for argument in arguments]:
            case [MathSeries() as series, float(filler)]:
                return metric_math.fill(series, filler, self.queries.grid(self.window, self.period))
        raise ExpressionError("FILL takes a time series and a number")

    def _period(self, arguments: list[ast.expr]) -> Value:
        match [self.value(argument) for argument in arguments]:
            case [MathSeries() as series]:
                return float(series.period)
        raise ExpressionError("PERIOD takes a time series")

    def _number(self, node: ast.expr, function: str) -> float:
        value = self.value(node)
        if not isinstance(value, float):
            raise ExpressionError(f"{function} takes a number here")
        return value

    def _band(self, arguments: list[ast.expr]) -> Value:
        """Stand-in for CloudWatch's trained model: mean and deviation of the two weeks before."""
        if len(arguments) not in (1, 2):
            raise ExpressionError("ANOMALY_DETECTION_BAND takes a time series and a number")
        node = arguments[0]
        width = self._number(arguments[1], "The band") if len(arguments) > 1 else 2.0
        upper, lower = (MathSeries({}, label, self.period) for label in ("upper", "lower"))
        present = self.value(node)  # first, as this is where a band of itself shows
        if not isinstance(present, MathSeries):
            raise ExpressionError("ANOMALY_DETECTION_BAND takes one time series")
        earliest = self.queries.earliest(node)
        if earliest is None or earliest >= self.window.start:
            return [upper, lower]
        oldest = max(earliest, self.window.start - HISTORY_SECONDS)
        count = -int(-(self.window.start - oldest) // self.period)
        past = Window(self.window.start - count * self.period, self.window.start)
        history = cast(MathSeries, _Evaluation(self.queries, past, self.period).value(node))
        points = list(history.values.values())
        if len(points) < MINIMUM_HISTORY:
            return [upper, lower]
        mean, spread = statistics.fmean(points), statistics.pstdev(points)
        for time in self.queries.grid(self.window, self.period):
            upper.values[time] = mean + width * spread
            lower.values[time] = mean - width * spread
        return [upper, lower]


FUNCTIONS: dict[str, Callable[[_Evaluation, list[ast.expr]], Value]] = {
    "ANOMALY_DETECTION_BAND": _Evaluation._band,
    "FILL": _Evaluation._fill,
    "IF": _Evaluation._if,
    "PERIOD": _Evaluation._period,
    "SEARCH": _Evaluation._search,
}
