"""Means with confidence intervals over replications, from Student's law; no library needed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul
from statistics import NormalDist, fmean

from ..errors import rule
from ..errors.impossible import refuse
from ..report.numbers import readable

IMPOSSIBLE = rule(
    "LLS150",
    "a simulation gave a number that cannot be right",
    fix="Do not use the result. Please report it with the command, its files and its seed.",
)

#: Values of a size of one that differ by less are equal: sums of millions of numbers keep ten digits.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over replications and half the width of its confidence interval.

    The interval of runs that cannot tell has no end: its half width is infinite. Where a replication
    has no such value, as nothing was answered, the mean is that of the others, or NaN of none.

    Raises
    ------
    ConfigurationError
        ``LLS150`` for numbers that no estimate has.

    Examples
    --------
    >>> print(estimate([9.0, 10.0, 11.0], confidence=0.95))
    10 ± 2.48
    """

    mean: float  # over the replications
    half_width: float  # of the confidence interval; infinite where the runs cannot tell

    def __post_init__(self) -> None:
        known = math.isfinite(self.mean) or self.half_width == math.inf
        if not (known and self.half_width >= 0):
            refuse(IMPOSSIBLE, "estimate", [f"{self.mean} ± {self.half_width}"])

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

    @property
    def is_exact(self) -> bool:
        """Whether the interval has no width, or one that is rounding only."""
        return self.half_width <= ROUNDING * abs(self.mean)

    @property
    def is_wide(self) -> bool:
        """Whether the interval is wider than what it is about, which may as well be zero."""
        return self.tells and self.half_width > abs(self.mean)

    @property
    def told(self) -> Estimate:
        """The same; without an end to the interval if it is wide."""
        return Estimate(self.mean, math.inf) if self.is_wide else self

    def holds(self, value: float) -> bool:
        """Whether a value lies within the interval."""
        return self.low <= value <= self.high

    def at_least(self, half_width: float) -> Estimate:
        """The same with an interval that is no narrower."""
        return Estimate(self.mean, max(self.half_width, half_width))

    def scaled(self, factor: float) -> Estimate:
        """The estimate in another unit."""
        return Estimate(self.mean * factor, self.half_width * abs(factor))

    def __str__(self) -> str:
        if math.isnan(self.mean):
            return "too short to tell"
        if not self.tells:
            return f"about {readable(self.mean, 4)}, too short to tell"
        if self.is_exact:
            return readable(self.mean, 4)
        return f"{readable(self.mean, 4)} ± {readable(self.half_width, 3)}"


def estimate(
    values: Sequence[float], *, confidence: float = 0.99, controls: Sequence[Sequence[float]] = ()
) -> Estimate:
    """The mean of independent values, with its interval.

    Each control has a true mean of zero and a size of about one. What controls explain of the values
    by regression is taken out, so the interval is narrower. They are left out

    - where they differ by rounding only: a regression on rounding gives any number;
    - where fewer than three replications more than controls are left;
    - where zero is further from their means than any replication can be (:func:`_controlled`);
    - where all values are at least zero, and what is left of their mean is below.
    """
    count = len(values)
    if count < 2:
        raise ValueError("an interval needs at least two replications")
    varying = [control for control in controls if max(control) - min(control) > ROUNDING]
    if varying and count >= len(varying) + 3:
        controlled = _controlled(values, varying, confidence)
        if controlled is not None and not controlled.mean < 0 <= min(values):
            return controlled
    mean = fmean(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (count - 1))
    return Estimate(mean, student_quantile(confidence, count - 1) * spread / math.sqrt(count))


def _controlled(
    values: Sequence[float], controls: Sequence[Sequence[float]], confidence: float
) -> Estimate | None:
    """The intercept of least squares on the controls (Gram and Schmidt).

    ``None`` if controls coincide, or if their zero lies so far from their means that no replication
    could be there: the leverage of each is at most 1. So the intercept is never further from the
    plain mean than a value of such a sample can be (Samuelson 1968).
    """
    count = len(values)
    middle = fmean(values)
    rest = [value - middle for value in values]
    leverage = 1 / count
    apart: list[tuple[list[float], float, float]] = []  # less the others; their mean and square
    for control in controls:
        mean = fmean(control)
        left = [value - mean for value in control]
        whole = math.fsum(value * value for value in left)
        for other, its_mean, square in apart:
            slope = math.fsum(map(mul, left, other)) / square
            left = [a - slope * b for a, b in zip(left, other, strict=True)]
            mean -= slope * its_mean
        square = math.fsum(value * value for value in left)
        if square < 1e-9 * whole:
            return None
        apart.append((left, mean, square))
        slope = math.fsum(map(mul, rest, left)) / square
        rest = [a - slope * b for a, b in zip(rest, left, strict=True)]
        middle -= slope * mean
        leverage += mean * mean / square
    if leverage > 1:
        return None
    free = count - len(controls) - 1
    error = math.sqrt(math.fsum(value * value for value in rest) / free * leverage)
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
