"""Metric math: read by Python's own parser, since operators bind alike in both; and its functions.

Source: CloudWatch user guide, "Metric math syntax and functions". What AWS leaves open is stated
at the function.

Source: CloudWatch user guide, "Using math expressions with CloudWatch metrics".
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass


class ExpressionError(ValueError):
    """An expression that is not understood, or not emulated."""


_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|\.\d+)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"[^\"]*\"|'[^']*')|(?P<symbol>==|!=|<=|>=|&&|\|\||[-+*/^<>()\[\],])|(?P<other>\S)"
)
_SPELLINGS = {"OR": "or", "||": "or", "AND": "and", "&&": "and", "^": "**"}
_KNOWN = (
    ast.BinOp,
    ast.BoolOp,
    ast.Call,
    ast.Compare,
    ast.Constant,
    ast.List,
    ast.Name,
    ast.USub,
    ast.UnaryOp,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
    ast.operator,
)


@functools.lru_cache(1024)  # alarms are judged every minute
def parse_expression(text: str) -> ast.expr:
    """Read an expression: numbers, names, texts, lists, calls, and operators between them.

    Examples
    --------
    >>> sorted(names_in(parse_expression("errors / SUM([a, b])")))
    ['a', 'b', 'errors']
    """
    python = " ".join(map(_in_python, _TOKEN.finditer(text)))
    try:
        tree = ast.parse(python, mode="eval").body
    except (SyntaxError, RecursionError, MemoryError):
        raise ExpressionError(f"'{text}' is not an expression") from None
    for node in ast.walk(tree):
        called = not isinstance(node, ast.Call) or isinstance(node.func, ast.Name)
        if not isinstance(node, _KNOWN) or not called:
            raise ExpressionError(f"'{text}' is not an expression of metric math")
        if isinstance(node, ast.Name):
            node.id = node.id[1:]
    return tree


def _in_python(token: re.Match[str]) -> str:
    """Spell a token as Python does; names are marked, since some are Python's own words."""
    match token.lastgroup:
        case "number" if math.isfinite(number := float(token[0])):
            return repr(number)
        case "number":
            raise ExpressionError(f"The number {token[0][:20]}... is too large")
        case "text":
            return repr(token[0][1:-1])
        case "name":
            return _SPELLINGS.get(token[0], f"_{token[0]}")
        case "other":
            raise ExpressionError(
                f"Cannot read '{token.string[token.start() :]}' in '{token.string}'"
            )
    return _SPELLINGS.get(token[0], token[0])


def names_in(node: ast.expr) -> set[str]:
    """Give the query ids that an expression reads."""
    names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
    return {name for name in names if name[0].islower()}


def functions_in(node: ast.expr) -> set[str]:
    calls = (child.func for child in ast.walk(node) if isinstance(child, ast.Call))
    return {function.id for function in calls if isinstance(function, ast.Name)}


@dataclass(frozen=True)
class MathSeries:
    """A time series: value by time (seconds since 1970), in order; without one it is missing."""

    values: dict[float, float]
    label: str = ""
    period: int = 60


Value = float | MathSeries | list[MathSeries]
Aggregate = Callable[[Sequence[float]], float]
AGGREGATES: dict[str, Aggregate] = {
    "SUM": math.fsum,
    "AVG": lambda values: math.fsum(values) / len(values),
    "MAX": max,
    "MIN": min,
}
# "Missing values are treated as 0."
_MISSING_IS_ZERO = frozenset({"SUM", "AVG"})


def aggregate(name: str, value: Value | list[MathSeries | float]) -> Value:
    """SUM, AVG, ...: of one series a number, of an array a series over all of its times."""
    function = AGGREGATES[name]
    if isinstance(value, MathSeries):
        return function(list(value.values.values())) if value.values else 0.0
    if isinstance(value, float):
        raise ExpressionError(f"{name} takes a time series or an array of them")
    series = [item for item in value if isinstance(item, MathSeries)]
    if not value:
        raise ExpressionError(f"{name} has nothing to work on: the array is empty")
    if not series:
        return function([item for item in value if isinstance(item, float)])
    result = {}
    for time in union(series):
        found = []
        for item in value:
            point = item if isinstance(item, float) else item.values.get(time)
            if point is None and name in _MISSING_IS_ZERO:
                point = 0.0
            if point is not None:
                found.append(point)
        result[time] = function(found)
    return MathSeries(result, "", series[0].period)


def union(series: Iterable[MathSeries]) -> list[float]:
    """Give all times of some series, in order."""
    first, *others = (item.values for item in series)
    if all(other.keys() == first.keys() for other in others):
        return list(first)
    return sorted(set().union(first, *others))


def fill(series: MathSeries, filler: float, grid: Sequence[float]) -> MathSeries:
    times = grid if series.values.keys() <= {*grid} else sorted({*grid, *series.values})
    return MathSeries(dict.fromkeys(times, filler) | series.values, series.label, series.period)


def condition(test: Value, yes: Value, no: Value | None) -> MathSeries:
    """IF, by the table of its page: a true point without a value is 0, a false one is dropped."""
    if isinstance(test, list) or isinstance(yes, list) or isinstance(no, list):
        raise ExpressionError("IF takes time series and numbers, not arrays")
    if isinstance(test, float):
        chosen = yes if test else no
        if isinstance(chosen, MathSeries):
            return chosen
        others = [v for v in (yes, no) if isinstance(v, MathSeries)]
        if not others:
            raise ExpressionError("IF needs at least one time series")
        if chosen is None:
            return MathSeries({}, "", others[0].period)
        return MathSeries(dict.fromkeys(others[0].values, chosen), "", others[0].period)
    result = {}
    for time, value in test.values.items():
        chosen = yes if value else no
        if isinstance(chosen, MathSeries):
            if time in chosen.values:
                result[time] = chosen.values[time]
            elif value:
                result[time] = 0.0
        elif chosen is not None:
            result[time] = chosen
    return MathSeries(result, "", test.period)


def _power(base: float, exponent: float) -> float | None:
    try:
        result = base**exponent
    except (ZeroDivisionError, OverflowError):
        return None
    return result if isinstance(result, float) else None


Operator = Callable[[float, float], float | None]
"""One operation on two numbers; None where a point is dropped (division by zero)."""

OPERATORS: dict[type[ast.AST], Operator] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda a, b: a / b if b else None,
    ast.Pow: _power,
    ast.And: lambda a, b: bool(a and b),
    ast.Or: lambda a, b: bool(a or b),
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def operate(combine: Operator, left: Value, right: Value) -> Value:
    """Apply an operator; missing points of one of two series are 0."""
    if isinstance(left, list) or isinstance(right, list):
        raise ExpressionError("Operators on arrays are not emulated by the local AWS")
    if isinstance(left, float) and isinstance(right, float):
        result = combine(left, right)
        return float(result) if result is not None and math.isfinite(result) else math.nan
    series = [item for item in (left, right) if isinstance(item, MathSeries)]
    times = union(series)
    found = map(combine, _at(times, left), _at(times, right))
    points = {
        time: float(point)
        for time, point in zip(times, found, strict=True)
        if point is not None and math.isfinite(point)
    }
    return MathSeries(points, series[0].label, series[0].period)


def _at(times: Sequence[float], value: float | MathSeries) -> Iterable[float]:
    """Give a number, or a series with 0 where it is missing, at each of some times."""
    if isinstance(value, float):
        return itertools.repeat(value)
    if len(value.values) == len(times):  # of a union: the same times
        return value.values.values()
    return (value.values.get(time, 0.0) for time in times)
