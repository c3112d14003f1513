"""Exponential histograms: made of explicit buckets, added, and asked for percentiles.

Sources: CloudWatch user guide, "How CloudWatch stores histogram metrics"; OpenTelemetry metrics
data model, "ExponentialHistogram"; Prometheus 3, "histogram_quantile()".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

SCALE = 3
"""Buckets per octave are 2 to this power: eight, each 9 % wide. CloudWatch says no number."""


def _bound(index: int) -> float:
    """The lower bound of a bucket."""
    return 2.0 ** (index / 2**SCALE)


class Span(NamedTuple):
    """One bucket: how many lie above `low`, up to `high`."""

    low: float
    high: float
    inside: float


@dataclass(frozen=True)
class Histogram:
    """Counts by exponential bucket.

    Attributes
    ----------
    count, sum : float
        Exact, also when the buckets were made of explicit ones.
    zero : float
        Measurements that are zero or below.
    buckets : mapping of int to float
        Bucket i holds what is above 2^(i/8), up to 2^((i+1)/8). Counts need not be whole: those of
        an explicit bucket are spread over several.
    """

    count: float = 0.0
    sum: float = 0.0
    zero: float = 0.0
    buckets: Mapping[int, float] = field(default_factory=dict)

    def spans(self) -> Iterator[Span]:
        """Give the buckets that hold anything, the lowest first."""
        if self.zero:
            yield Span(0.0, 0.0, self.zero)
        for index in sorted(self.buckets):
            if self.buckets[index]:
                yield Span(_bound(index), _bound(index + 1), self.buckets[index])

    def __add__(self, other: Histogram) -> Histogram:
        return self._with(other, 1.0)

    def __sub__(self, other: Histogram) -> Histogram:
        return self._with(other, -1.0)

    def _with(self, other: Histogram, sign: float) -> Histogram:
        buckets = dict(self.buckets)
        for index, count in other.buckets.items():
            buckets[index] = buckets.get(index, 0.0) + sign * count
        return Histogram(
            self.count + sign * other.count,
            self.sum + sign * other.sum,
            self.zero + sign * other.zero,
            buckets,
        )

    def __mul__(self, factor: float) -> Histogram:
        return Histogram(
            self.count * factor,
            self.sum * factor,
            self.zero * factor,
            {index: count * factor for index, count in self.buckets.items()},
        )

    def fell_since(self, earlier: Histogram) -> bool:
        """Whether a counter was set back between the two: some count is lower than before."""
        return self.count < earlier.count or any(
            self.buckets.get(index, 0.0) < count - 1e-9 for index, count in earlier.buckets.items()
        )

    def quantile(self, share: float) -> float:
        """Estimate the value below which a share of the measurements lies.

        Within a bucket the measurements are taken to lie evenly on the logarithm, as Prometheus 3
        does with exponential buckets. NaN without measurements.

        Examples
        --------
        >>> histogram = from_explicit([(0.25, 90), (0.5, 100), (float("inf"), 100)], 20.0)
        >>> 0.25 <= histogram.quantile(0.95) <= 0.5
        True
        """
        if math.isnan(share) or self.count <= 0:
            return math.nan
        if share < 0:
            return -math.inf
        if share > 1:
            return math.inf
        rank, passed, last = share * self.count, 0.0, 0.0
        for low, high, inside in self.spans():
            if passed + inside >= rank - 1e-9 * self.count:
                if high <= 0:
                    return 0.0
                part = min(max((rank - passed) / inside, 0.0), 1.0)
                return low * (high / low) ** part
            passed, last = passed + inside, high
        return last


def from_explicit(cumulative: Sequence[tuple[float, float]], total: float) -> Histogram:
    """Make one of the buckets of a classic histogram.

    CloudWatch subdivides each source bucket and weighs its parts "by how the density of
    measurements compares with neighboring buckets", without saying how: here they lie evenly. What
    lies above the highest bound is put right above it: more of it is not known.

    Parameters
    ----------
    cumulative
        Upper bound and the measurements up to it, in rising order, with infinity last.
    total
        The sum of the measurements.

    Examples
    --------
    >>> made = from_explicit([(1.0, 2), (2.0, 6), (float("inf"), 7)], 9.5)
    >>> made.count, made.sum, round(sum(made.buckets.values()), 6)
    (7, 9.5, 7.0)
    """
    buckets: dict[int, float] = {}
    zero = below = 0.0
    low = 0.0
    for high, up_to in cumulative:
        inside, below = up_to - below, up_to
        if inside > 0:
            if high <= 0:
                zero += inside
            elif math.isinf(high):
                _put(buckets, _index_above(low), inside)
            else:
                _spread(buckets, max(low, 0.0), high, inside)
        low = high if math.isfinite(high) else low
    return Histogram(cumulative[-1][1] if cumulative else 0.0, total, zero, buckets)


_LOWEST = _bound(-160)
"""Nothing is spread below it: some microseconds, if the unit is the second's thousandth part."""


def _spread(buckets: dict[int, float], low: float, high: float, count: float) -> None:
    start = max(low, min(_LOWEST, high / 2))
    first = _index_above(start)
    last = max(first, _index_of(high))
    width = high - low
    for index in range(first, last + 1):
        begin = low if index == first else _bound(index)
        end = high if index == last else _bound(index + 1)
        _put(buckets, index, count * (end - begin) / width)


def _put(buckets: dict[int, float], index: int, count: float) -> None:
    buckets[index] = buckets.get(index, 0.0) + count


def _index_of(value: float) -> int:
    """The bucket of a value that is above its lower bound, up to its upper one."""
    return math.ceil(math.log2(value) * 2**SCALE - 1e-9) - 1


def _index_above(value: float) -> int:
    """The bucket of what is a little larger than a value."""
    if value <= 0:
        return -160
    return math.floor(math.log2(value) * 2**SCALE + 1e-9)


def classic_quantile(share: float, cumulative: Sequence[tuple[float, float]]) -> float:
    """Estimate a percentile of explicit buckets as Prometheus's histogram_quantile does.

    Source: Prometheus documentation, "histogram_quantile()": linear within the bucket; the highest
    bound when it lies above; the lowest bucket begins at 0 when its bound is above 0.

    Examples
    --------
    >>> classic_quantile(0.5, [(1.0, 0), (2.0, 10), (float("inf"), 10)])
    1.5
    """
    if math.isnan(share):
        return math.nan
    if share < 0:
        return -math.inf
    if share > 1:
        return math.inf
    if len(cumulative) < 2 or not math.isinf(cumulative[-1][0]):
        return math.nan
    counts: list[float] = []
    for _, count in cumulative:  # they never fall; float rates may, by a hair
        counts.append(max(count, counts[-1]) if counts else count)
    total = counts[-1]
    if total == 0 or math.isnan(total):
        return math.nan
    rank = share * total
    found = next((i for i, count in enumerate(counts[:-1]) if count >= rank), len(counts) - 1)
    if found == len(counts) - 1:
        return cumulative[-2][0]
    high = cumulative[found][0]
    if found == 0 and high <= 0:
        return high
    low, before = (cumulative[found - 1][0], counts[found - 1]) if found else (0.0, 0.0)
    inside = counts[found] - before
    return low + (high - low) * ((rank - before) / inside)
