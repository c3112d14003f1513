"""Means with confidence intervals over replications, from Student's law; no library needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from statistics import NormalDist, fmean

from ..report.numbers import readable


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over replications and half the width of its confidence interval.

    The interval of runs that are too short to tell has no end: its half width is infinite.

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
    def tells(self) -> bool:
        """Whether the interval has an end: the runs were long enough to tell."""
        return math.isfinite(self.half_width)

    def holds(self, value: float) -> bool:
        """Whether a value lies within the interval."""
        return self.low <= value <= self.high

    def scaled(self, factor: float) -> Estimate:
        """The estimate in another unit."""
        return Estimate(self.mean * factor, self.half_width * abs(factor))

    def __str__(self) -> str:
        if not self.tells:
            return f"about {readable(self.mean, 4)}, too short to tell"
        return f"{readable(self.mean, 4)} ± {readable(self.half_width, 3)}"


def estimate(
    values: Sequence[float], *, confidence: float = 0.99, controls: Sequence[Sequence[float]] = ()
) -> Estimate:
    """The mean of independent values with its interval; ``controls`` have true means of zero."""
    # What controls explain by regression is taken out; three more replications than controls.
    count = len(values)
    if count < 2:
        raise ValueError("an interval needs at least two replications")
    used = [
        list(control)
        for control in controls
        if max(control) - min(control) > 1e-12 * max(1e-300, *map(abs, control))
    ]
    if used and count >= len(used) + 3:
        controlled = _controlled(values, used, confidence)
        if controlled is not None:
            return controlled
    mean = fmean(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return Estimate(mean, student_quantile(confidence, count - 1) * spread / math.sqrt(count))


def _controlled(
    values: Sequence[float], used: Sequence[Sequence[float]], confidence: float
) -> Estimate | None:
    """The intercept of least squares on the controls (Gram and Schmidt); none if they coincide."""
    count = len(values)
    middle = fmean(values)
    rest, variance = [value - middle for value in values], 1 / count
    apart: list[tuple[list[float], float, float]] = []  # less the others; their mean and square
    for control in used:
        mean = fmean(control)
        left = [each - mean for each in control]
        whole = math.fsum(each * each for each in left)
        for other, its_mean, square in apart:
            slope = math.fsum(map(mul, left, other)) / square
            left = [a - slope * b for a, b in zip(left, other, strict=True)]
            mean -= slope * its_mean
        square = math.fsum(each * each for each in left)
        if square < 1e-9 * whole:
            return None
        apart.append((left, mean, square))
        slope = math.fsum(map(mul, rest, left)) / square
        rest = [a - slope * b for a, b in zip(rest, left, strict=True)]
        middle -= slope * mean
        variance += mean * mean / square
    free = count - len(used) - 1
    error = math.sqrt(math.fsum(each * each for each in rest) / free * variance)
    return Estimate(middle, student_quantile(confidence, free) * error)


@lru_cache(maxsize=256)
def student_quantile(confidence: float, freedom: int) -> float:
    """How many standard errors lie between the mean and either end of a two-sided interval."""
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
