"""Means with confidence intervals over replications, from Student's law; no library needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, fmean

__all__ = ["Estimate", "estimate", "student_quantile"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over replications and half the width of its confidence interval.

    Examples
    --------
    >>> print(estimate([9.0, 10.0, 11.0], confidence=0.95))
    10 ± 2.48
    """

    mean: float
    half_width: float

    @property
    def low(self) -> float:
        """Lower end of the interval."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval."""
        return self.mean + self.half_width

    @property
    def relative(self) -> float:
        """Half the width as a share of the mean."""
        return self.half_width / abs(self.mean) if self.mean else math.inf

    def holds(self, value: float) -> bool:
        """Whether a value lies within the interval."""
        return self.low <= value <= self.high

    def scaled(self, factor: float) -> Estimate:
        """The estimate in another unit."""
        return Estimate(self.mean * factor, self.half_width * abs(factor))

    def __str__(self) -> str:
        return f"{self.mean:.4g} ± {self.half_width:.3g}"


def estimate(values: Sequence[float], *, confidence: float = 0.99,
             controls: Sequence[Sequence[float]] = ()) -> Estimate:
    """The mean of independent values with its confidence interval.

    Parameters
    ----------
    values : sequence of float
        One for each replication.
    confidence : float
        Chance that the interval holds the true mean. By default 0.99.
    controls : sequence of sequences of float
        Quantities that chance moves along with the values and whose true mean is zero, such as
        the mean service time drawn less the law's: what they explain by regression is taken out of
        the values and of the interval (control variates; Lavenberg and Welch 1981). Needs at
        least three more replications than controls, and controls that are not the same but for a
        factor; without, the interval is the plain one.

    Raises
    ------
    ValueError
        For fewer than two values.
    """
    count = len(values)
    if count < 2:
        raise ValueError("an interval needs at least two replications")
    used = [list(each) for each in controls
            if max(each) - min(each) > 1e-12 * max(1e-300, *map(abs, each))]
    if used and count >= len(used) + 3:
        controlled = _controlled(values, used, confidence)
        if controlled is not None:
            return controlled
    mean = fmean(values)
    spread = math.sqrt(sum((each - mean) ** 2 for each in values) / (count - 1))
    return Estimate(mean, student_quantile(confidence, count - 1) * spread / math.sqrt(count))


def _controlled(values: Sequence[float], used: Sequence[Sequence[float]],
                confidence: float) -> Estimate | None:
    """The mean at controls of zero; ``None`` when the controls do not say apart."""
    count = len(values)
    # Least squares of the values on 1 and the controls; the intercept is the estimate.
    rows = [[1.0, *(each[at] for each in used)] for at in range(count)]
    size = len(used) + 1
    scale = [max(abs(row[at]) for row in rows) for at in range(size)]
    rows = [[row[at] / scale[at] for at in range(size)] for row in rows]
    normal = [[math.fsum(row[i] * row[j] for row in rows) for j in range(size)]
              for i in range(size)]
    inverse = _inverse(normal)
    if inverse is None:
        return None
    right = [math.fsum(row[i] * value for row, value in zip(rows, values, strict=True))
             for i in range(size)]
    slopes = [math.fsum(inverse[i][j] * right[j] for j in range(size)) for i in range(size)]
    free = count - size
    rest = math.fsum(
        (value - math.fsum(a * b for a, b in zip(row, slopes, strict=True))) ** 2
        for row, value in zip(rows, values, strict=True))
    error = math.sqrt(rest / free * inverse[0][0])
    return Estimate(slopes[0], student_quantile(confidence, free) * error)


def _inverse(matrix: list[list[float]]) -> list[list[float]] | None:
    """Gauss and Jordan with pivots; the matrices here have a handful of rows, their entries are
    about 1 or above. ``None`` for one that is singular, but for rounding."""
    size = len(matrix)
    least = 1e-9 * max(map(max, matrix))
    work = [row[:] + [float(i == j) for j in range(size)] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(work[row][column]))
        work[column], work[pivot] = work[pivot], work[column]
        head = work[column][column]
        if abs(head) < least:
            return None
        work[column] = [value / head for value in work[column]]
        for row in range(size):
            if row != column:
                factor = work[row][column]
                work[row] = [a - factor * b for a, b in
                             zip(work[row], work[column], strict=True)]
    return [row[size:] for row in work]


@lru_cache(maxsize=256)
def student_quantile(confidence: float, freedom: int) -> float:
    """How many standard errors lie between the mean and either end of a two-sided interval.

    Examples
    --------
    >>> round(student_quantile(0.99, 9), 4), round(student_quantile(0.95, 1), 3)
    (3.2498, 12.706)
    """
    outside = 1 - confidence
    low, high = 0.0, 2 * NormalDist().inv_cdf(1 - outside / 2)
    while _outside(high, freedom) > outside:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if _outside(middle, freedom) > outside:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _outside(t: float, freedom: int) -> float:
    """Chance that Student's t is further from zero than ``t``: exact sums (Abramowitz 26.7.3)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle) ** 2
    term = total = 1.0 if freedom % 2 == 0 else math.cos(angle)
    if freedom % 2 == 0:
        for k in range(1, freedom // 2):
            term *= (2 * k - 1) / (2 * k) * cosine
            total += term
        return 1 - math.sin(angle) * total
    if freedom == 1:
        return 1 - 2 * angle / math.pi
    for k in range(1, (freedom - 1) // 2):
        term *= 2 * k / (2 * k + 1) * cosine
        total += term
    return 1 - 2 / math.pi * (angle + math.sin(angle) * total)
