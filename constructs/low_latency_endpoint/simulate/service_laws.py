"""How long one request takes on an instance that has nothing else to do: service laws."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist
from typing import ClassVar, NamedTuple

from ..errors import rule
from ..facts.limit_kinds import number_range
from ..plan.traffic_shapes import SECONDS
from ..report.numbers import readable
from . import kernels

MEAN_SECONDS = number_range("LLS101", "a mean time", 1e-6, 1e6, unit="seconds", whole=False)
VARIATION = number_range(
    "LLS102",
    "a coefficient of variation",
    0,
    20,
    whole=False,
    fix="Give standard deviation divided by mean: 0 for equal times, 1 for exponential ones.",
)
SHARE = number_range("LLS112", "a share", 0, 1, whole=False)
SAMPLES = rule(
    "LLS120",
    "a service law needs measured times above zero",
    fix="Give at least two times in seconds, or quantiles that rise with their probabilities.",
)

_STEPS = 10_000  # of an empirical law
#: Between quantiles with more of the requests than this between them nothing is known.
FINEST_SHARE = 0.001
_FINEST = 1.01 * FINEST_SHARE  # a thousand times in order are 1/999 apart


def never_falls(values: Sequence[float]) -> bool:
    """Whether these are two or more finite numbers, none of them below the one before."""
    return (
        len(values) >= 2
        and all(isinstance(value, (int, float)) and math.isfinite(value) for value in values)
        and all(earlier <= later for earlier, later in pairwise(values))
    )


def percentile_name(percentile: float) -> str:
    """Return the name of a percentile, such as ``p99.9``."""
    return f"p{readable(percentile)}"


def highest_percentile(mean: float, variation: float, percentile: float) -> float:
    """The highest percentile that any law of this mean and coefficient of variation can have.

    Cantelli's inequality: the mean and ``sqrt(q / (1 - q))`` standard deviations. As times are never
    negative, Markov's is tighter where the variation is large: the mean over ``1 - q``.

    Examples
    --------
    >>> round(highest_percentile(58.0, 114 / 58, 95), 1)  # 58 + 114 x sqrt(19)
    554.9
    >>> highest_percentile(10.0, 100.0, 50)  # twice the mean, as no time is negative
    20.0
    """
    share = percentile / 100
    cantelli = mean * (1 + variation * math.sqrt(share / (1 - share)))
    return min(cantelli, mean / (1 - share))


@dataclass(frozen=True, slots=True)
class LawParameters:
    """A law as :func:`.kernels.fill_law` takes it."""

    kind: int
    one: float = 0.0
    two: float = 0.0
    table: tuple[float, ...] = (0.0,)


class ServiceLaw:
    """A law of times in seconds; the classes below are the laws there are."""

    @property
    def mean_seconds(self) -> float:
        """The mean in seconds."""
        raise NotImplementedError

    @property
    def variation(self) -> float:
        """The coefficient of variation: standard deviation divided by mean."""
        raise NotImplementedError

    @property
    def varies(self) -> bool:
        """Whether two draws can differ; only then is there luck to take out of a result."""
        raise NotImplementedError

    def percentile(self, percentile: float) -> float:
        """A percentile in seconds, above 0 and below 100."""
        raise NotImplementedError

    def parameters(self) -> LawParameters:
        """The law for the compiled loops."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Constant(ServiceLaw):
    """Every request takes the same time.

    Examples
    --------
    >>> Constant(0.02).mean_seconds, Constant(0.02).variation
    (0.02, 0.0)
    """

    seconds: float  # of every request
    variation: ClassVar[float] = 0.0
    varies: ClassVar[bool] = False

    def __post_init__(self) -> None:
        SECONDS.check(self.seconds, "seconds")

    @property
    def mean_seconds(self) -> float:
        return self.seconds

    def percentile(self, percentile: float) -> float:
        return self.seconds

    def parameters(self) -> LawParameters:
        return LawParameters(kernels.CONSTANT, float(self.seconds))


@dataclass(frozen=True, slots=True)
class Exponential(ServiceLaw):
    """The memoryless law, coefficient of variation 1: the one that theory knows most about."""

    mean: float  # seconds
    variation: ClassVar[float] = 1.0
    varies: ClassVar[bool] = True

    def __post_init__(self) -> None:
        MEAN_SECONDS.check(self.mean, "mean")

    @property
    def mean_seconds(self) -> float:
        return self.mean

    def percentile(self, percentile: float) -> float:
        return -self.mean * math.log1p(-percentile / 100)

    def parameters(self) -> LawParameters:
        return LawParameters(kernels.EXPONENTIAL, float(self.mean))


@dataclass(frozen=True, slots=True)
class Lognormal(ServiceLaw):
    """The usual law of measured service times: never below zero, a long tail to the right.

    Parameters
    ----------
    mean : float
        Mean in seconds.
    cv : float
        Coefficient of variation (standard deviation / mean), at least 0.
    """

    mean: float
    cv: float

    def __post_init__(self) -> None:
        MEAN_SECONDS.check(self.mean, "mean")
        VARIATION.check(self.cv, "cv")

    @property
    def mean_seconds(self) -> float:
        return self.mean

    @property
    def variation(self) -> float:
        return self.cv

    @property
    def varies(self) -> bool:
        return self.cv > 0

    def percentile(self, percentile: float) -> float:
        spread = math.log1p(self.cv * self.cv)
        normal = NormalDist().inv_cdf(percentile / 100)
        return self.mean * math.exp(normal * math.sqrt(spread) - spread / 2)

    def parameters(self) -> LawParameters:
        if self.cv == 0:
            return Constant(self.mean).parameters()
        spread = math.log1p(self.cv * self.cv)
        return LawParameters(kernels.LOGNORMAL, math.log(self.mean) - spread / 2, math.sqrt(spread))


class Gap(NamedTuple):
    """Two neighboring quantiles, and so many requests between them that their times are not known."""

    low: float  # probability
    high: float
    below: float  # seconds
    above: float


@dataclass(frozen=True, slots=True)
class Empirical(ServiceLaw):
    """The law of measured times.

    Parameters
    ----------
    quantiles : tuple of float
        The quantile function at equal steps of probability from 0 to 1, straight lines between.
        Use :meth:`of_samples` or :meth:`of_quantiles`.
    gap : Gap or None
        Where the measured quantiles are furthest apart, if that is so far that each time between two
        of them is taken as the upper one.

    Examples
    --------
    >>> law = Empirical.of_quantiles({0.0: 0.010, 0.5: 0.020, 1.0: 0.040})
    >>> round(law.mean_seconds, 4)  # half of the times are taken as 20 ms, half as 40 ms
    0.03
    >>> law.gap
    Gap(low=0.5, high=1.0, below=0.02, above=0.04)
    """

    quantiles: tuple[float, ...]
    gap: Gap | None = None

    def __post_init__(self) -> None:
        values = self.quantiles
        if not never_falls(values) or values[0] <= 0:
            raise SAMPLES.error(
                got=f"{len(values)} values",
                where="quantiles",
                allowed="two or more times above zero that never decrease",
            )

    @classmethod
    def of_samples(cls, seconds: Sequence[float]) -> Empirical:
        """The law of times as measured, in any order; of few times as :meth:`of_quantiles`."""
        try:
            ordered = sorted(float(value) for value in seconds)
        except (TypeError, ValueError):
            raise SAMPLES.error(got=repr(seconds)[:80], allowed="numbers of seconds") from None
        if len(ordered) < 2:
            raise SAMPLES.error(got=f"{len(ordered)} times", allowed="at least two")
        last = len(ordered) - 1
        if 1 / last <= _FINEST:
            return cls(tuple(ordered))
        return cls.of_quantiles({at / last: value for at, value in enumerate(ordered)})

    @classmethod
    def of_quantiles(cls, seconds: Mapping[float, float]) -> Empirical:
        """The law of some quantiles: seconds by probability, with 0 and 1 among them.

        Between two that are no more than :data:`FINEST_SHARE` apart times rise in a straight line.
        Between others each time is the upper one: a request can have taken as long, and a percentile
        is never below the true one.
        """
        try:
            points = sorted((float(rank), float(value)) for rank, value in seconds.items())
        except (TypeError, ValueError):
            got = repr(seconds)[:80]
            raise SAMPLES.error(got=got, allowed="seconds by probability") from None
        ranks = [rank for rank, _ in points]
        if len(points) < 2 or ranks[0] != 0 or ranks[-1] != 1:
            raise SAMPLES.error(
                got=f"probabilities {ranks}", allowed="probabilities from 0 to 1, both included"
            )
        for rank in ranks:
            SHARE.check(rank, "probability")
        times = [value for _, value in points]
        if not never_falls(times) or times[0] <= 0:  # the table may begin with a later one
            raise SAMPLES.error(
                got=f"quantiles {str(times)[:60]}", allowed="seconds above zero that never decrease"
            )
        return cls(tuple(_table(points)), _widest_gap(points))

    @property
    def mean_seconds(self) -> float:
        values = self.quantiles
        return (sum(values) - (values[0] + values[-1]) / 2) / (len(values) - 1)

    @property
    def variation(self) -> float:
        mean = self.mean_seconds
        square = sum((a * a + a * b + b * b) / 3 for a, b in pairwise(self.quantiles)) / (
            len(self.quantiles) - 1
        )
        return math.sqrt(max(square - mean * mean, 0.0)) / mean

    @property
    def varies(self) -> bool:
        # Not by the variation, whose sums of equal times differ by rounding.
        return self.quantiles[0] < self.quantiles[-1]

    def percentile(self, percentile: float) -> float:
        place = percentile / 100 * (len(self.quantiles) - 1)
        at = min(int(place), len(self.quantiles) - 2)
        low, high = self.quantiles[at : at + 2]
        return low + (high - low) * (place - at)

    def parameters(self) -> LawParameters:
        return LawParameters(kernels.EMPIRICAL, table=tuple(map(float, self.quantiles)))


Points = Sequence[tuple[float, float]]  # probability and seconds, in order


def _table(points: Points) -> Iterator[float]:
    """The quantile function at equal steps of probability.

    Takes the upper of two points that are too far apart.
    """
    at = 0
    for step in range(_STEPS + 1):
        rank = step / _STEPS
        while at < len(points) - 2 and rank > points[at + 1][0]:
            at += 1
        gap = Gap(points[at][0], points[at + 1][0], points[at][1], points[at + 1][1])
        if _is_unknown(gap):
            yield gap.above
        else:
            share = (rank - gap.low) / (gap.high - gap.low)
            # A sum can be above its end by rounding.
            yield min(gap.above, gap.below + (gap.above - gap.below) * share)


def _is_unknown(gap: Gap) -> bool:
    """Whether too many requests lie between two points to know how long they take."""
    return gap.above > gap.below and gap.high - gap.low > _FINEST


def _widest_gap(points: Points) -> Gap | None:
    """Of the unknown gaps the one that leaves most open: requests times seconds."""
    gaps = [Gap(low, high, below, above) for (low, below), (high, above) in pairwise(points)]
    return max(
        filter(_is_unknown, gaps),
        key=lambda gap: (gap.high - gap.low) * (gap.above - gap.below),
        default=None,
    )
