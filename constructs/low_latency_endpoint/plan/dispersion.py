"""Whether counts of requests are those of independent callers: their index of dispersion.

Independent callers make a Poisson stream: the variance of a period's count is its mean, so the
index of dispersion (variance / mean) is 1. Batches of 20 have 20. The variance is taken around the
slow trend of the counts, because a daily wave is no burst:

- Second differences ``a - 2b + c`` of neighboring counts cancel a level and a slope. Of independent
  counts their variance is six times that of a count.
- The largest third of them is left out, because a jump of the load is no burst either. What is left
  of a normal law has a known share of its variance, by which it is divided.
- Neighboring second differences of independent counts go against each other: their correlation is
  -2/3. Where they do not, the trend is curved within a few periods, as a daily wave is by the hour,
  and what scatters cannot be told from it.
- Periods are joined until they have ten requests on average: a normal law describes no smaller counts.

Counts show only what differs between periods. Batches of which each period has the same number do
not show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul
from statistics import NormalDist, fmean

from ..report.numbers import readable

#: Fewer periods say nothing: a single spike is a third of their differences.
FEWEST_PERIODS = 20
_MOST = 2.0
#: The limit of ``n`` periods is at least ``1 + 7 / sqrt(n)``: independent callers exceed it by chance
#: in about 1 of 20 recordings of 20 periods, and in none of 1,000 of a day (counted in the tests).
_CHANCE = 7.0
#: Of 20 periods independent callers have 0.14 at least, of 180 0.5 (counted in the tests).
_LEAST = 0.1
_KEPT = 2 / 3
_LEAST_MEAN = 10.0
#: Between independent counts, -0.67, and a daily wave by quarters of an hour, -0.2: our judgement.
_MOST_CORRELATED = -0.4


@dataclass(frozen=True, slots=True)
class Dispersion:
    """The index of dispersion of some counts, and the most that independent callers have."""

    index: float
    limit: float

    @property
    def is_of_batches(self) -> bool:
        """Whether these are no independent callers."""
        return self.index > self.limit

    @property
    def is_too_even(self) -> bool:
        """Whether no independent callers scatter so little: averages, rates, or callers with a pace."""
        return self.index < _LEAST

    @property
    def warning(self) -> str:
        """What the counts show of their callers, in words, and what follows; else empty.

        Examples
        --------
        >>> print(Dispersion(20.0, 2.0).warning[:78])
        the counts scatter around their trend 20 times as much as those of independent
        """
        if not self.is_of_batches:
            return ""
        return (
            f"the counts scatter around their trend {readable(self.index, 2)} times as much as those "
            f"of independent callers (index of dispersion, limit {readable(self.limit, 2)}): requests "
            "come in batches, or callers act together. Within a period they are sent as if callers "
            "were independent, so real percentiles may be several times higher: record the time of "
            "each request, one in a line"
        )


def dispersion(counts: Sequence[float]) -> Dispersion | None:
    """Variance of counts around their trend, divided by their mean.

    ``None`` for too few of them, and for periods so long that the trend is curved within a few.

    Examples
    --------
    >>> dispersion([600, 620] * 30).is_of_batches
    False
    >>> dispersion([500, 700] * 30).is_of_batches
    True
    >>> dispersion([500, 700]) is None
    True
    """
    joined = _joined(counts)
    if len(joined) < FEWEST_PERIODS:
        return None
    differences = _relative_differences(joined)
    if _correlation_of_neighbors(differences) > _MOST_CORRELATED:
        return None
    squares = sorted(difference**2 for difference in differences)
    kept = squares[: int(_KEPT * len(squares))]
    if not kept:
        return None
    limit = max(_MOST, 1 + _CHANCE / math.sqrt(len(joined)))
    return Dispersion(fmean(kept) / _variance_of_kept(), limit)


def _joined(counts: Sequence[float]) -> list[float]:
    """Counts of longer periods, which have ten requests on average."""
    mean = fmean(counts)
    if mean >= _LEAST_MEAN or not mean:
        return list(counts)
    size = -int(-_LEAST_MEAN // mean)
    whole = len(counts) // size * size
    return [sum(counts[at : at + size]) for at in range(0, whole, size)]


def _relative_differences(counts: Sequence[float]) -> list[float]:
    """Second differences, each divided by what independent callers have as standard deviation."""
    differences = []
    for first, middle, last in zip(counts, counts[1:], counts[2:], strict=False):
        mean = (first + middle + last) / 3
        if mean:
            differences.append((first - 2 * middle + last) / math.sqrt(6 * mean))
    return differences


def _correlation_of_neighbors(values: Sequence[float]) -> float:
    """The correlation of each value with the next one, around zero."""
    square = math.fsum(value * value for value in values)
    product = math.fsum(map(mul, values, values[1:]))
    return product / square if square else -1.0


def _variance_of_kept() -> float:
    """Of a standard normal law without its outer third: E[x^2 | x inside]."""
    law = NormalDist()
    edge = law.inv_cdf((1 + _KEPT) / 2)
    return 1 - 2 * edge * law.pdf(edge) / _KEPT
