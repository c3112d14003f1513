"""The functions of metric math.

Source: CloudWatch user guide, "Metric math syntax and functions". What AWS leaves open is stated
at the function.
"""

from __future__ import annotations

import ast
import bisect
import itertools
import math
import operator
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from .expression_parser import ExpressionError

REFUSED = ("INSIGHT_RULE_METRIC", "SERVICE_QUOTA", "DB_PERF_INSIGHTS", "LAMBDA")


@dataclass(frozen=True)
class Series:
    """A time series: value by time (seconds since 1970), in order; without one it is missing."""

    values: dict[float, float]
    label: str = ""
    period: int = 60


Value = float | Series | list[Series]
Aggregate = Callable[[Sequence[float]], float]
AGGREGATES: dict[str, Aggregate] = {
    "SUM": math.fsum,
    "AVG": lambda values: math.fsum(values) / len(values),
    "MAX": max,
    "MIN": min,
    # AWS does not say whether of the population or of a sample; here of the population.
    "STDDEV": statistics.pstdev,
    "DATAPOINT_COUNT": lambda values: float(len(values)),
}
# "Missing values are treated as 0."
_MISSING_IS_ZERO = frozenset({"SUM", "AVG"})


def each(value: Value, change: Callable[[Series], Series]) -> Value:
    """Apply a function of one series to a series, or to each of an array."""
    if isinstance(value, list):
        return [change(item) for item in value]
    if isinstance(value, Series):
        return change(value)
    raise ExpressionError("A time series is expected where a number is given")


def pointwise(function: Callable[[float], float]) -> Callable[[Series], Series]:
    """Lift a function of numbers to series; a point without a result is dropped."""

    def change(series: Series) -> Series:
        kept = {}
        for time, value in series.values.items():
            try:
                kept[time] = function(value)
            except ValueError:
                continue
        return Series(kept, series.label, series.period)

    return change


def aggregate(name: str, value: Value | list[Series | float]) -> Value:
    """SUM, AVG, ...: of one series a number, of an array a series over all of its times."""
    function = AGGREGATES[name]
    if isinstance(value, Series):
        return function(list(value.values.values())) if value.values else 0.0
    if isinstance(value, float):
        raise ExpressionError(f"{name} takes a time series or an array of them")
    series = [item for item in value if isinstance(item, Series)]
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
    return Series(result, "", series[0].period)


def union(series: Iterable[Series]) -> list[float]:
    """Give all times of some series, in order."""
    first, *others = (item.values for item in series)
    if all(other.keys() == first.keys() for other in others):
        return list(first)
    return sorted(set().union(first, *others))


def _differences(series: Series, change: Callable[[float, float], float]) -> Series:
    times = sorted(series.values)
    return Series(
        {
            later: change(series.values[later] - series.values[earlier], later - earlier)
            for earlier, later in itertools.pairwise(times)
        },
        series.label,
        series.period,
    )


def running_sum(series: Series) -> Series:
    """RUNNING_SUM."""
    total, result = 0.0, {}
    for time in sorted(series.values):
        total += series.values[time]
        result[time] = total
    return Series(result, series.label, series.period)


EACH: dict[str, Callable[[Series], Series]] = {
    "ABS": pointwise(abs),
    "CEIL": pointwise(lambda v: float(math.ceil(v))),
    "FLOOR": pointwise(lambda v: float(math.floor(v))),
    "LOG": pointwise(math.log),
    "LOG10": pointwise(math.log10),
    "DIFF": lambda s: _differences(s, lambda value, seconds: value),
    "DIFF_TIME": lambda s: _differences(s, lambda value, seconds: seconds),
    "RATE": lambda s: _differences(s, lambda value, seconds: value / seconds),
    "RUNNING_SUM": running_sum,
}
"""Functions of one series, or of each of an array."""


def fill(series: Series, filler: Value | str, grid: Sequence[float]) -> Series:
    """FILL: with a number, another series, REPEAT or LINEAR.

    REPEAT and LINEAR leave what is missing before the first value (and LINEAR after the last).
    """
    if isinstance(filler, float):
        times = grid if series.values.keys() <= {*grid} else sorted({*grid, *series.values})
        return Series(dict.fromkeys(times, filler) | series.values, series.label, series.period)
    known = sorted(series.values)
    result = dict(series.values)
    for time in grid:
        if time in result:
            continue
        if isinstance(filler, Series):
            if time in filler.values:
                result[time] = filler.values[time]
            continue
        after = bisect.bisect(known, time)  # it is none of them
        if filler == "REPEAT" and after > 0:
            result[time] = series.values[known[after - 1]]
        elif filler == "LINEAR" and 0 < after < len(known):
            start, end = known[after - 1], known[after]
            share = (time - start) / (end - start)
            result[time] = (1 - share) * series.values[start] + share * series.values[end]
    return Series(dict(sorted(result.items())), series.label, series.period)


def condition(test: Value, yes: Value, no: Value | None) -> Series:
    """IF, by the table of its page: a true point without a value is 0, a false one is dropped."""
    if isinstance(test, list) or isinstance(yes, list) or isinstance(no, list):
        raise ExpressionError("IF takes time series and numbers, not arrays")
    if isinstance(test, float):
        chosen = yes if test else no
        if isinstance(chosen, Series):
            return chosen
        others = [v for v in (yes, no) if isinstance(v, Series)]
        if not others:
            raise ExpressionError("IF needs at least one time series")
        if chosen is None:
            return Series({}, "", others[0].period)
        return Series(dict.fromkeys(others[0].values, chosen), "", others[0].period)
    result = {}
    for time, value in test.values.items():
        chosen = yes if value else no
        if isinstance(chosen, Series):
            if time in chosen.values:
                result[time] = chosen.values[time]
            elif value:
                result[time] = 0.0
        elif chosen is not None:
            result[time] = chosen
    return Series(result, "", test.period)


CLOCK: dict[str, Callable[[datetime], int]] = {
    "MINUTE": lambda m: m.minute,
    "HOUR": lambda m: m.hour,
    "DAY": lambda m: m.isoweekday(),
    "DATE": lambda m: m.day,
    "MONTH": lambda m: m.month,
    "YEAR": lambda m: m.year,
    "EPOCH": lambda m: int(m.timestamp()),
}


def clock(name: str, grid: Sequence[float], period: int) -> Series:
    """MINUTE, HOUR, ...: a value for each time there could be."""
    read = CLOCK[name]
    return Series({t: float(read(datetime.fromtimestamp(t, UTC))) for t in grid}, name, period)


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
    """Apply an operator; arrays go item by item, missing points of one of two series are 0."""
    if isinstance(left, list) or isinstance(right, list):
        lefts = left if isinstance(left, list) else [left] * len(right)  # type: ignore[arg-type]
        rights = right if isinstance(right, list) else [right] * len(lefts)
        if len(lefts) != len(rights):
            raise ExpressionError("Arrays of different lengths cannot be combined")
        results = [operate(combine, a, b) for a, b in zip(lefts, rights, strict=True)]
        return [item for item in results if isinstance(item, Series)]
    if isinstance(left, float) and isinstance(right, float):
        result = combine(left, right)
        return math.nan if result is None else float(result)
    series = [item for item in (left, right) if isinstance(item, Series)]
    times = union(series)
    found = map(combine, _at(times, left), _at(times, right))
    points = {
        time: float(point)
        for time, point in zip(times, found, strict=True)
        if point is not None and not math.isnan(point)
    }
    return Series(points, series[0].label, series[0].period)


def _at(times: Sequence[float], value: float | Series) -> Iterable[float]:
    """Give a number, or a series with 0 where it is missing, at each of some times."""
    if isinstance(value, float):
        return itertools.repeat(value)
    if len(value.values) == len(times):  # of a union: the same times
        return value.values.values()
    return (value.values.get(time, 0.0) for time in times)
