"""Evaluating a PromQL query at a moment.

Only what is listed here is known; anything else is refused by its name, never guessed.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import promql_parser as grammar

from .functions import (
    ARITHMETIC,
    COMPARISONS,
    KEEP_NAME,
    OF_HISTOGRAM,
    OF_NUMBER,
    OVER_TIME,
    clamp_max,
    clamp_min,
    quantile,
)
from .histograms import Histogram
from .series import Point, Series, SeriesStore, Value
from .vectors import (
    AGGREGATIONS,
    SETS,
    Element,
    QueryError,
    Vector,
    grouped,
    histogram_quantile,
    known_labels,
    matchers,
    matching,
    nameless,
    of_numbers,
    one_to_one,
    operation_of,
)

LOOKBACK = 300.0
"""Seconds for which a value counts as the present one: Prometheus's default."""
LONGEST_QUERY = 10_000
"""Characters. Source: CloudWatch API reference, AlarmPromQLCriteria."""

Matrix = list[tuple[Mapping[str, str], list[Point]]]
Result = float | str | Vector
"""Of an instant query; that of a range selector is a matrix, which only functions take here."""


@functools.lru_cache(1024)  # alarms ask the same every minute
def parse(query: str) -> Any:
    """Read a query.

    Raises
    ------
    QueryError
        When it is longer than CloudWatch takes, no PromQL, or more than is known here.

    Examples
    --------
    >>> parse('sum by (le) (rate({"vllm:x", "aws.sagemaker.endpoint.name"="e"}[5m])) > 1').op
    <...>
    >>> parse("topk(3, x)")
    Traceback (most recent call last):
    ...
    local_sagemaker.promql.vectors.QueryError: topk is not known to the local AWS
    """
    tree = _read(query)
    # On no data at all: what is not known shows without any, and nothing is asked twice.
    _result(SeriesStore(), tree, 0.0)
    return tree


def evaluate(store: SeriesStore, query: str, at: float) -> Result:
    """Evaluate a query at seconds since 1970.

    Raises
    ------
    QueryError
        As `parse`, and for vectors that do not match one to one.
    """
    return _result(store, parse(query), at)


def _result(store: SeriesStore, tree: Any, at: float) -> Result:
    try:
        return _Evaluation(store, at).result(tree)
    except RecursionError:
        raise QueryError("the query is nested too deeply") from None


def reach(query: str) -> float:
    """Give how many seconds before its moment a query looks at."""
    longest = 0.0

    def look(node: Any) -> bool:
        nonlocal longest
        match node:
            case grammar.MatrixSelector():
                back = _seconds(node.range) + _seconds(node.vector_selector.offset)
                longest = max(longest, back)
            case grammar.VectorSelector():
                longest = max(longest, LOOKBACK + _seconds(node.offset))
        return True

    grammar.walk(parse(query), look)
    return longest


def selectors_in(query: str) -> list[Any]:
    """Give the selectors of a query, in the order in which they stand.

    Raises
    ------
    QueryError
        When it is no PromQL.
    """
    found: list[Any] = []

    def look(node: Any) -> bool:
        match node:
            case grammar.MatrixSelector():
                found.append(node.vector_selector)
            case grammar.VectorSelector():
                found.append(node)
        return True

    grammar.walk(_read(query), look)
    return found


def _read(query: str) -> Any:
    if not 1 <= len(query) <= LONGEST_QUERY:
        raise QueryError(f"a query has 1 to {LONGEST_QUERY} characters, not {len(query)}")
    try:
        return grammar.parse(query)
    except ValueError as error:
        raise QueryError(f"parse error: {error}") from None
    except BaseException as error:
        # The parser's panics, such as on a duration of infinity, are no Exception.
        if type(error).__name__ != "PanicException":
            raise
        raise QueryError(f"parse error: {error}") from None


def _seconds(length: timedelta | None) -> float:
    return length.total_seconds() if length else 0.0


class _Evaluation:
    def __init__(self, store: SeriesStore, at: float) -> None:
        self._store = store
        self._at = at

    def result(self, node: Any) -> Result:
        match node:
            case grammar.NumberLiteral():
                return float(node.val)
            case grammar.StringLiteral():
                return str(node.val)
            case grammar.ParenExpr():
                return self.result(node.expr)
            case grammar.UnaryExpr():
                found = self.result(node.expr)
                return _mapped(found, lambda value: value * -1.0)
            case grammar.VectorSelector():
                return self._instant(node)
            case grammar.Call():
                return self._call(node.func.name, list(node.args))
            case grammar.AggregateExpr():
                return self._aggregate(node)
            case grammar.BinaryExpr():
                return self._binary(node)
            case grammar.MatrixSelector():
                raise QueryError("a range vector by itself is not known to the local AWS")
        raise QueryError(f"{type(node).__name__} is not known to the local AWS")

    def _vector(self, node: Any) -> Vector:
        found = self.result(node)
        if not isinstance(found, list):
            raise QueryError("an instant vector is expected, not a scalar")
        return found

    def _scalar(self, node: Any) -> float:
        found = self.result(node)
        if not isinstance(found, float):
            raise QueryError("a scalar is expected, not a vector")
        return found

    # ----------------------------------------------------------------------------------- selectors

    def _selected(self, selector: Any) -> Iterator[Series]:
        names, tests = matchers(selector)
        for name in names:
            for series in self._store.named(name):
                if all(test(series.labels) for test in tests):
                    yield series

    def _end(self, selector: Any) -> float:
        if selector.at is not None:
            raise QueryError("the modifier @ is not known to the local AWS")
        return self._at - _seconds(selector.offset)

    def _instant(self, selector: Any) -> Vector:
        end = self._end(selector)
        found = []
        for series in self._selected(selector):
            points = series.between(end - LOOKBACK, end)
            if points:
                found.append(Element(series.labels, points[-1].value))
        return found

    def _range(self, node: Any) -> tuple[Matrix, float, float]:
        if not isinstance(node, grammar.MatrixSelector):
            raise QueryError("a subquery is not known to the local AWS")
        end, length = self._end(node.vector_selector), _seconds(node.range)
        matrix = [
            (series.labels, series.between(end - length, end))
            for series in self._selected(node.vector_selector)
        ]
        return matrix, end, length

    # ----------------------------------------------------------------------------------- functions

    def _call(self, name: str, given: list[Any]) -> Result:
        if name in OVER_TIME:
            matrix, end, length = self._range(given[0])
            keep = name in KEEP_NAME
            computed = (
                (labels if keep else nameless(labels), OVER_TIME[name](points, end, length))
                for labels, points in matrix
            )
            return [Element(labels, value) for labels, value in computed if value is not None]
        if name == "quantile_over_time":
            share = self._scalar(given[0])
            matrix, *_ = self._range(given[1])
            taken = (
                (labels, [one.value for one in points if not isinstance(one.value, Histogram)])
                for labels, points in matrix
            )
            return [
                Element(nameless(labels), quantile(share, values))
                for labels, values in taken
                if values
            ]
        if name in OF_HISTOGRAM:
            compute = OF_HISTOGRAM[name]
            return [
                Element(nameless(one.labels), compute(one.value))
                for one in self._vector(given[0])
                if isinstance(one.value, Histogram)
            ]
        if name in OF_NUMBER:
            return of_numbers(self._vector(given[0]), OF_NUMBER[name])
        match name:
            case "histogram_quantile":
                return histogram_quantile(self._scalar(given[0]), self._vector(given[1]))
            case "clamp_min" | "clamp_max":
                bound = self._scalar(given[1])
                clamp = clamp_min if name == "clamp_min" else clamp_max
                return of_numbers(self._vector(given[0]), lambda value: clamp(value, bound))
            case "vector":
                return [Element({}, self._scalar(given[0]))]
            case "scalar":
                numbers = [one.value for one in self._vector(given[0])]
                single = numbers[0] if len(numbers) == 1 else math.nan
                return math.nan if isinstance(single, Histogram) else single
            case "time":
                return self._at
            case "absent":
                return [] if self._vector(given[0]) else [Element(known_labels(given[0]), 1.0)]
        raise QueryError(f"{name} is not known to the local AWS")

    # -------------------------------------------------------------------------------- aggregations

    def _aggregate(self, node: Any) -> Vector:
        operation = str(node.op)
        if operation not in AGGREGATIONS:
            raise QueryError(f"{operation} is not known to the local AWS")
        groups: dict[tuple[tuple[str, str], ...], list[Value]] = {}
        for one in self._vector(node.expr):
            groups.setdefault(grouped(one.labels, node.modifier), []).append(one.value)
        found = ((dict(key), AGGREGATIONS[operation](values)) for key, values in groups.items())
        return [Element(labels, value) for labels, value in found if value is not None]

    # ------------------------------------------------------------------------------------- binary

    def _binary(self, node: Any) -> Result:
        operation, modifier = str(node.op), node.modifier
        if operation in SETS:
            return SETS[operation](
                self._vector(node.lhs), self._vector(node.rhs), matching(modifier)
            )
        if operation not in ARITHMETIC and operation not in COMPARISONS:
            raise QueryError(f"{operation} is not known to the local AWS")
        left, right = self.result(node.lhs), self.result(node.rhs)
        if isinstance(left, str) or isinstance(right, str):
            raise QueryError(f"{operation} takes no string")
        as_bool = modifier is not None and modifier.return_bool
        apply = operation_of(operation, as_bool)
        if isinstance(left, float) and isinstance(right, float):
            found = apply(left, right, left)
            if found is None or isinstance(found, Histogram):
                raise QueryError("comparisons between scalars must use the bool modifier")
            return found
        keeps = operation in COMPARISONS and not as_bool
        if isinstance(left, list) and isinstance(right, list):
            return one_to_one(left, right, modifier, apply, keeps)
        computed: list[tuple[Element, Value | None]]
        if isinstance(left, list) and isinstance(right, float):
            computed = [(one, apply(one.value, right, one.value)) for one in left]
        else:
            assert isinstance(left, float)
            assert isinstance(right, list)
            computed = [(one, apply(left, one.value, one.value)) for one in right]
        return [
            Element(one.labels if keeps else nameless(one.labels), value)
            for one, value in computed
            if value is not None
        ]


def _mapped(found: Result, compute: Callable[[Value], Value]) -> Result:
    if isinstance(found, str):
        raise QueryError("a number is expected, not a string")
    if isinstance(found, float):
        value = compute(found)
        assert isinstance(value, float)
        return value
    return [Element(nameless(one.labels), compute(one.value)) for one in found]
