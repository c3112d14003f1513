"""PromQL's functions, as far as they are known here; each on values, none reads a store.

Sources: Prometheus 3 documentation, "Query functions"; for rate and increase, the extrapolation of
its `promql/functions.go`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

from .histograms import Histogram
from .series import Point, Value

OverTime = Callable[[Sequence[Point], float, float], "Value | None"]
"""Of a series' points in a window that ends at a moment and has a length; None gives no element."""


def rate(points: Sequence[Point], at: float, length: float) -> Value | None:
    """Increase per second."""
    found = increase(points, at, length)
    return None if found is None else found * (1 / length)


def increase(points: Sequence[Point], at: float, length: float) -> Value | None:
    """How much a counter rose, extrapolated to the whole window; counters set back are seen."""
    if len(points) < 2:
        return None
    first, last = points[0], points[-1]
    if len({isinstance(point.value, Histogram) for point in points}) > 1:
        return None  # Prometheus drops a series that changes its kind
    rise = _rise([point.value for point in points])
    sampled = last.time - first.time
    to_start, to_end = first.time - (at - length), at - last.time
    between = sampled / (len(points) - 1)
    if to_start >= 1.1 * between:
        to_start = between / 2
    # A counter begins at zero: it is not extrapolated to before that.
    size, begun = _size(rise), _size(first.value)
    if size > 0 and begun >= 0:
        to_start = min(to_start, sampled * begun / size)
    if to_end >= 1.1 * between:
        to_end = between / 2
    return rise * ((sampled + to_start + to_end) / sampled)


def _size(value: Value) -> float:
    return value.count if isinstance(value, Histogram) else value


def _rise(values: Sequence[Value]) -> Value:
    first, last = values[0], values[-1]
    if isinstance(first, Histogram) and isinstance(last, Histogram):
        found = last - first
        for before, after in itertools.pairwise(values):
            assert isinstance(before, Histogram)
            assert isinstance(after, Histogram)
            if after.fell_since(before):
                found = found + before
        return found
    numbers = [value for value in values if not isinstance(value, Histogram)]
    rise = numbers[-1] - numbers[0]
    return rise + sum(before for before, after in itertools.pairwise(numbers) if after < before)


def total(numbers: Sequence[float]) -> float:
    """Add numbers exactly, and as IEEE 754 does where infinity is among them."""
    try:
        return math.fsum(numbers)
    except (OverflowError, ValueError):
        return sum(numbers)


def _of_numbers(compute: Callable[[list[float]], float]) -> OverTime:
    def over_time(points: Sequence[Point], at: float, length: float) -> Value | None:
        numbers = [one.value for one in points if not isinstance(one.value, Histogram)]
        return compute(numbers) if numbers else None

    return over_time


def _last(points: Sequence[Point], at: float, length: float) -> Value | None:
    return points[-1].value if points else None


def _deviation(numbers: list[float]) -> float:
    mean = total(numbers) / len(numbers)
    return math.sqrt(total([(number - mean) ** 2 for number in numbers]) / len(numbers))


def _least(numbers: list[float]) -> float:
    known = [number for number in numbers if not math.isnan(number)]
    return min(known) if known else math.nan


def _most(numbers: list[float]) -> float:
    known = [number for number in numbers if not math.isnan(number)]
    return max(known) if known else math.nan


def quantile(share: float, numbers: Sequence[float]) -> float:
    """Give a quantile of numbers, between two of them linearly."""
    if math.isnan(share) or not numbers:
        return math.nan
    if share < 0 or share > 1:
        return math.copysign(math.inf, share - 0.5)
    ordered = sorted(numbers, key=lambda number: (not math.isnan(number), number))
    rank = share * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] * (1 - (rank - low)) + ordered[high] * (rank - low)


OVER_TIME: dict[str, OverTime] = {
    "avg_over_time": _of_numbers(lambda numbers: total(numbers) / len(numbers)),
    "count_over_time": lambda points, *_: float(len(points)) if points else None,
    "increase": increase,
    "last_over_time": _last,
    "max_over_time": _of_numbers(_most),
    "min_over_time": _of_numbers(_least),
    "present_over_time": lambda points, *_: 1.0 if points else None,
    "rate": rate,
    "stddev_over_time": _of_numbers(_deviation),
    "sum_over_time": _of_numbers(total),
}
"""Functions of one range vector."""

KEEP_NAME = {"last_over_time"}

OF_HISTOGRAM: dict[str, Callable[[Histogram], float]] = {
    "histogram_avg": lambda value: value.sum / value.count if value.count else math.nan,
    "histogram_count": lambda value: value.count,
    "histogram_sum": lambda value: value.sum,
}

OF_NUMBER: dict[str, Callable[[float], float]] = {
    "abs": abs,
    "ceil": lambda value: float(math.ceil(value)) if math.isfinite(value) else value,
    "floor": lambda value: float(math.floor(value)) if math.isfinite(value) else value,
}


def clamp_min(value: float, bound: float) -> float:
    """Give no less than a bound."""
    return math.nan if math.isnan(value) or math.isnan(bound) else max(value, bound)


def clamp_max(value: float, bound: float) -> float:
    """Give no more than a bound."""
    return math.nan if math.isnan(value) or math.isnan(bound) else min(value, bound)


def divide(left: float, right: float) -> float:
    """Divide as IEEE 754 does."""
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _modulo(left: float, right: float) -> float:
    return math.nan if right == 0 or math.isinf(left) else math.fmod(left, right)


def _power(left: float, right: float) -> float:
    try:
        return math.pow(left, right)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if left == 0 else math.nan


ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": divide,
    "%": _modulo,
    "^": _power,
}
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    ">": lambda left, right: left > right,
    "<": lambda left, right: left < right,
    ">=": lambda left, right: left >= right,
    "<=": lambda left, right: left <= right,
}
