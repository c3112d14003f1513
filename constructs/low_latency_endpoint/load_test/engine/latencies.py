"""Latencies as an HDR histogram that is cheap to fill and merges without loss."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...errors import rule
from ...errors.impossible import falling, mean_out_of_percentiles, out_of_range, refuse
from ...report import numbers

IMPOSSIBLE = rule(
    "LLT176",
    "a load test gave a number that cannot be right",
    fix="Do not use the result. Please report it with the command and the result file.",
)

#: The percentiles that every result names.
PERCENTS = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)

#: With fewer samples beyond it a percentile says more about chance than about the endpoint.
SAMPLES_NEEDED_BEYOND = 10

_SHIFT = 11  # bits of a value that its bucket keeps: 1,024 buckets for each power of two
_LONGEST = 3600 * 1_000_000_000  # one hour; longer latencies count as one hour
_NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True)
class Percentile:
    """One percentile and what it rests on."""

    percent: float  # such as 99.9
    seconds: float  # the latency that this share of the requests did not exceed
    samples_beyond: int  # number of samples that are above this rank

    @property
    def name(self) -> str:
        """Such as ``p99.9``."""
        return f"p{self.percent:g}"

    @property
    def reliable(self) -> bool:
        """Whether at least ten samples lie beyond it."""
        return self.samples_beyond >= SAMPLES_NEEDED_BEYOND


class LatencyHistogram:
    """Counts of latencies from one nanosecond to one hour, each within 0.1 %.

    Examples
    --------
    >>> latencies = LatencyHistogram.of(0.001 * number for number in range(1, 1001))
    >>> latencies.count, round(latencies.percentile(99), 3), latencies.max
    (1000, 0.99, 1.0)
    >>> other = LatencyHistogram.decode(latencies.encode())
    >>> other == latencies
    True
    """

    __slots__ = ("_buckets", "_max", "_min", "_total")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self._total = 0
        self._min = _LONGEST
        self._max = 0

    @classmethod
    def of(cls, seconds: Iterable[float]) -> LatencyHistogram:
        """A histogram of the latencies given, in seconds."""
        made = cls()
        for one in seconds:
            made.record(one)
        return made

    @classmethod
    def sum(cls, histograms: Iterable[LatencyHistogram]) -> LatencyHistogram:
        """One histogram of what all of them hold."""
        made = cls()
        for histogram in histograms:
            made.add(histogram)
        return made

    @classmethod
    def sums_without_each(cls, histograms: Sequence[LatencyHistogram]) -> list[LatencyHistogram]:
        """For each of them one of what all the others hold; adding up would take time by the square."""
        whole = cls.sum(histograms)
        latency_histograms = []
        for at, left_out in enumerate(histograms):
            made = cls()
            made._buckets = buckets = whole._buckets.copy()
            for index, count in left_out._buckets.items():
                if buckets[index] == count:
                    del buckets[index]
                else:
                    buckets[index] -= count
            made._total = whole._total - left_out._total
            others = (*histograms[:at], *histograms[at + 1 :])
            made._min = min((one._min for one in others), default=made._min)
            made._max = max((one._max for one in others), default=made._max)
            latency_histograms.append(made)
        return latency_histograms

    def record(self, seconds: float) -> None:
        """Count one latency; below zero counts as zero, above an hour as an hour."""
        value = int(seconds * _NANOSECONDS)
        if not 0 <= value <= _LONGEST:
            value = 0 if value < 0 else _LONGEST
        shift = value.bit_length() - _SHIFT
        # With the leading bit in the sum, the buckets of each power of two follow the last ones'.
        index = (shift << (_SHIFT - 1)) + (value >> shift) if shift > 0 else value
        buckets = self._buckets
        buckets[index] = buckets.get(index, 0) + 1
        self._total += value
        if value > self._max:
            self._max = value
        if value < self._min:
            self._min = value

    def add(self, other: LatencyHistogram) -> None:
        """Count everything that another histogram holds, without loss."""
        buckets = self._buckets
        if buckets:
            for index, count in other._buckets.items():
                buckets[index] = buckets.get(index, 0) + count
        else:
            buckets.update(other._buckets)
        self._total += other._total
        self._max = max(self._max, other._max)
        self._min = min(self._min, other._min)

    @property
    def count(self) -> int:
        """Number of samples."""
        return sum(self._buckets.values())

    @property
    def mean(self) -> float:
        """Mean in seconds, exact to the nanosecond; NaN when empty."""
        count = self.count
        return self._total / count / _NANOSECONDS if count else math.nan

    @property
    def variance_and_skewness(self) -> tuple[float, float]:
        """In square seconds, and without a unit; both 0 where all are alike, NaN when empty."""
        count = self.count
        if not count:
            return math.nan, math.nan
        middles = {index: sum(_bounds(index)) / 2 / _NANOSECONDS for index in self._buckets}
        mean = sum(middles[index] * samples for index, samples in self._buckets.items()) / count
        squares = 0.0
        cubes = 0.0
        for index, samples in self._buckets.items():
            from_mean = middles[index] - mean
            squares += samples * from_mean**2
            cubes += samples * from_mean**3
        variance = squares / count
        if not variance:
            return 0.0, 0.0
        return variance, cubes / count / variance**1.5

    @property
    def min(self) -> float:
        """Smallest in seconds, exact; NaN when empty."""
        return self._min / _NANOSECONDS if self._buckets else math.nan

    @property
    def max(self) -> float:
        """Largest in seconds, exact; NaN when empty."""
        return self._max / _NANOSECONDS if self._buckets else math.nan

    def percentile(self, percent: float) -> float:
        """Seconds, within 0.1 % of the sample of that rank (nearest rank); NaN when empty."""
        return self.quantiles((percent / 100,))[0]

    def quantiles(self, shares: Iterable[float]) -> list[float]:
        """Latencies in seconds by share of the samples (0 to 1), in the order asked for."""
        wanted = list(shares)
        indexes = sorted(self._buckets)
        if not indexes:
            return [math.nan] * len(wanted)
        sums = list(itertools.accumulate(map(self._buckets.__getitem__, indexes)))
        count = sums[-1]
        ranks = [_rank(share, count) for share in wanted]
        found: dict[int, float] = {1: self.min, count: self.max}
        for rank in set(ranks) - set(found):
            low, high = _bounds(indexes[bisect.bisect_left(sums, rank)])
            # No bucket's middle may pass for a latency beyond those that were measured.
            middle = min(max((low + high) / 2, self._min), self._max)
            found[rank] = middle / _NANOSECONDS
        return [found[rank] for rank in ranks]

    def count_above(self, seconds: float) -> int:
        """Number of samples above a latency, to the width of a bucket."""
        value = int(seconds * _NANOSECONDS)
        if value >= self._max:
            return 0
        shift = value.bit_length() - _SHIFT
        at = (shift << (_SHIFT - 1)) + (value >> shift) if shift > 0 else value
        return sum(count for index, count in self._buckets.items() if index > at)

    def percentiles(self) -> tuple[Percentile, ...]:
        """p50 to p99.99, each with the number of samples beyond it; none when empty."""
        count = self.count
        if not count:
            return ()
        values = self.quantiles(percent / 100 for percent in PERCENTS)
        return tuple(
            Percentile(percent, value, count - _rank(percent / 100, count))
            for percent, value in zip(PERCENTS, values, strict=True)
        )

    def to_counts(self) -> dict[str, Any]:
        """Plain numbers for a message between processes; cheap, unlike :meth:`encode`."""
        return {
            "counts": [number for pair in self._buckets.items() for number in pair],
            "total": self._total,
            "min": self._min,
            "max": self._max,
        }

    @classmethod
    def of_counts(cls, content: Mapping[str, Any]) -> LatencyHistogram:
        """The histogram that :meth:`to_counts` gave."""
        made = cls()
        numbers = iter(content["counts"])
        made._buckets = dict(zip(numbers, numbers, strict=True))
        made._total, made._min, made._max = content["total"], content["min"], content["max"]
        return made

    def encode(self) -> str:
        """As text: the reference HDR V2 form, then exact sum, minimum and maximum.

        What stands before the first ``;`` can be given to any HDR tool; its unit is the nanosecond.
        """
        from hdrh.histogram import HdrHistogram

        histogram = HdrHistogram(1, _LONGEST, 3)
        for index, count in self._buckets.items():
            histogram.record_value(_bounds(index)[0], count)
        text: str = histogram.encode().decode("ascii")
        return f"{text};{self._total};{self._min};{self._max}"

    @classmethod
    def decode(cls, text: str) -> LatencyHistogram:
        """The histogram that :meth:`encode` gave.

        ``ValueError`` for any other text, ``LLT176`` for one whose numbers contradict each other.
        """
        from hdrh.histogram import HdrHistogram

        parts = text.split(";")
        if len(parts) != 4:
            raise ValueError("not an encoded latency histogram")
        try:
            total, smallest, largest = (int(part) for part in parts[1:])
            histogram = HdrHistogram.decode(parts[0])
        except Exception as problem:  # the package's own errors have no common base
            raise ValueError(f"not an encoded latency histogram: {problem}") from None
        made = cls()
        length = histogram.encoder.payload.counts_len  # the rest of the array is not there
        made._buckets = {
            index: count for index, count in enumerate(histogram.counts[:length]) if count
        }
        made._total, made._min, made._max = total, smallest, largest
        refuse(IMPOSSIBLE, "latencies", made._problems())
        return made

    def _problems(self) -> Iterator[str]:
        """What the sum, the extremes and the counts cannot be together."""
        if not self._buckets:
            return
        found = self.percentiles()
        percentiles = {one.percent: one.seconds for one in found}
        yield from out_of_range({"shortest": self.min})
        yield from falling(
            {"shortest": self.min, **{one.name: one.seconds for one in found}, "longest": self.max}
        )
        yield from mean_out_of_percentiles(self.mean, percentiles, self.max)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LatencyHistogram):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]  # it changes with every record

    def __repr__(self) -> str:
        if not self._buckets:
            return "LatencyHistogram(empty)"
        return (
            f"LatencyHistogram(count={self.count}, p50={self.percentile(50):.6f}, "
            f"p99={self.percentile(99):.6f}, max={self.max:.6f})"
        )


def _rank(share: float, count: int) -> int:
    """The nearest rank, from 1; 0.99 × 1000 must not become 991 by the last bit of a float."""
    return min(count, max(1, math.ceil(share * count - 1e-9 * count)))


def _bounds(index: int) -> tuple[int, int]:
    """The smallest and the largest value (nanoseconds) of a bucket."""
    shift = (index >> (_SHIFT - 1)) - 1
    if shift <= 0:
        return index, index
    low = (index - (shift << (_SHIFT - 1))) << shift
    return low, low + (1 << shift) - 1


def summary_ms(latencies: LatencyHistogram) -> dict[str, Any]:
    """Count, mean, extremes and percentiles in milliseconds, each with what it rests on."""
    if not latencies.count:
        return {"count": 0}
    return {
        "count": latencies.count,
        "mean": 1000 * latencies.mean,
        "min": 1000 * latencies.min,
        "max": 1000 * latencies.max,
        "percentiles": {
            percentile.name: {
                "ms": 1000 * percentile.seconds,
                "samples_beyond": percentile.samples_beyond,
                "reliable": percentile.reliable,
            }
            for percentile in latencies.percentiles()
        },
    }


def milliseconds(seconds: float) -> str:
    """A latency for people; a dash for none."""
    return numbers.milliseconds(1000 * seconds, 3)
