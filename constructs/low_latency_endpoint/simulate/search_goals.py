"""What a search is asked, what it tries, and what it found of one of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import rule
from ..plan import pareto
from ..plan.capacity import counted_instances
from .estimates import Estimate
from .traffic import Shape

SEARCH_GOAL = rule(
    "LLS124",
    "a search has no latency target or no rate",
    fix="Give --target p99=200ms and --tps 1000, or state latency and peak_tps in the settings.",
)

_PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9")


@dataclass(frozen=True, slots=True)
class Goal:
    """What a search is for.

    Attributes
    ----------
    percentile : float
        Of the client latency.
    seconds : float
        What it must stay under.
    tps : float
        At this peak.
    wish : str
        ``cheapest`` or ``fastest`` among those that hold it.
    """

    percentile: float
    seconds: float
    tps: float
    wish: str = "cheapest"

    def __str__(self) -> str:
        return (
            f"p{self.percentile:g} < {1000 * self.seconds:g} ms at {self.tps:,g} TPS, {self.wish}"
        )


def goal(targets: Mapping[str, float], tps: float | None, *, fastest: bool = False) -> Goal:
    """The goal that a latency target and a peak make.

    Parameters
    ----------
    targets : mapping of str to float
        Milliseconds by statistic; the highest percentile counts.
    tps : float or None
        Requests per second at the peak.
    fastest : bool
        By default the cheapest is looked for.

    Raises
    ------
    ConfigurationError
        ``LLS124`` without a peak, or a percentile that a search can estimate.

    Examples
    --------
    >>> goal({"p50": 40, "p99": 200}, 1000)
    Goal(percentile=99.0, seconds=0.2, tps=1000, wish='cheapest')
    """
    known = {name: ms for name, ms in targets.items() if name in _PERCENTILES}
    if not known or not tps or tps <= 0:
        raise SEARCH_GOAL.error(
            got=f"{', '.join(targets) or 'no target'} at {f'{tps:g} TPS' if tps else 'no rate'}",
            allowed=f"one of {', '.join(_PERCENTILES)}, at more than 0 TPS",
        )
    highest = max(known, key=lambda name: float(name[1:]))
    wish = "fastest" if fastest else "cheapest"
    return Goal(float(highest[1:]), known[highest] / 1000, tps, wish)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fleet to try: fixed when minimum and maximum are the same.

    Attributes
    ----------
    minimum, maximum : int
        Instances.
    safety_factor : float or None
        Share of the measured throughput that scaling aims at; ``None`` for a fixed fleet.
    scale_out_cooldown : float or None
        Seconds.
    """

    routing: str
    minimum: int
    maximum: int
    safety_factor: float | None = None
    scale_out_cooldown: float | None = None

    @property
    def fixed(self) -> bool:
        """Whether the fleet stays as it is."""
        return self.safety_factor is None

    @property
    def brief(self) -> str:
        """For a table: instances, routing, safety factor, scale-out cooldown.

        Examples
        --------
        >>> Candidate("RANDOM", 4, 4).brief
        '4, random'
        >>> Candidate("LEAST_OUTSTANDING_REQUESTS", 3, 14, 0.65, 60.0).brief
        '3 to 14, least, 0.65, 60 s'
        """
        strategy = "least" if self.routing == "LEAST_OUTSTANDING_REQUESTS" else self.routing.lower()
        if self.fixed:
            return f"{self.minimum}, {strategy}"
        return (
            f"{self.minimum} to {self.maximum}, {strategy}, {self.safety_factor:g}, "
            f"{self.scale_out_cooldown:g} s"
        )

    def __str__(self) -> str:
        strategy = self.routing.replace("_OUTSTANDING_REQUESTS", " OUTSTANDING").lower()
        if self.fixed:
            return f"{counted_instances(self.minimum)}, {strategy}"
        return (
            f"{self.minimum} to {self.maximum} instances, {strategy}, safety factor "
            f"{self.safety_factor:g}, scale-out cooldown {self.scale_out_cooldown:g} s"
        )


HOLDS, MISSES, NEAR, ONCE = "yes", "no", "too near to tell", "seen once"
SHORT = "too short to tell"


@dataclass(frozen=True, slots=True)
class Reserve:
    """How near to the measured limit a fleet runs at the goal's peak.

    Attributes
    ----------
    serving : int
        Instances at the peak: those that scaling comes to there.
    load : float
        Share of their measured limit; 1 is the rate that a load test found to be the most.
    left : int
        Instances that are left when the fullest zone fails; 0 for a fleet in one zone.
    load_left : float
        Share of the measured limit of those; infinite where none is left.

    Examples
    --------
    >>> Reserve.of(serving=8, tps=1000, tps_per_instance=200, zones=2)
    Reserve(serving=8, load=0.625, left=4, load_left=1.25)
    """

    serving: int
    load: float
    left: int
    load_left: float

    @classmethod
    def of(cls, serving: int, tps: float, tps_per_instance: float, zones: int) -> Reserve:
        """Of so many instances, spread evenly over the zones."""
        left = serving - math.ceil(serving / zones)
        most = tps_per_instance
        return cls(serving, tps / (serving * most), left, tps / (left * most) if left else math.inf)


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate and what it gave.

    Attributes
    ----------
    latency : Estimate
        The goal's percentile, in seconds; on several shapes that of the worst.
    cost : float
        Mean number of paid instances: instance hours per hour; on several shapes their mean.
    failed : int
        Requests, in all replications.
    replications : int
        On each shape; 1 for a first look, which has no interval.
    verdict : str
        ``yes``: the whole interval is under the goal and nothing failed (on a shape that loses a
        zone: next to nothing). ``no``: the whole interval is above it, or requests failed. ``too
        near to tell``, ``too short to tell``, or ``seen once``, otherwise.
    reserve : Reserve
        How much of the measured limit it uses.
    shape : str
        On which the latency was the worst; empty at the steady peak.
    """

    candidate: Candidate
    latency: Estimate
    cost: float
    failed: int
    replications: int
    verdict: str
    reserve: Reserve
    shape: str = ""

    @property
    def holds(self) -> bool:
        """Whether it certainly holds the goal."""
        return self.verdict == HOLDS

    def rank(self, wish: str) -> tuple[float, float]:
        """What the wish looks at, the best first."""
        both = (self.cost, self.latency.mean)
        return both if wish == "cheapest" else both[::-1]


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    steady : tuple of Found
        Fixed fleets at the steady peak, by cost.
    over_time : tuple of Found
        Scaling policies and the best fixed fleets on the shapes, by cost; empty without shapes.
    replications, shape_replications : int
        At the steady peak, and on each shape.
    model_share : float
        Share of the goal's time that the model may take; network and overhead take the rest.
    safety_factor : float
        Share of the measured limit up to which fleets were tried.
    zone_reserve : bool
        Whether every fleet tried holds the peak when its fullest zone fails.
    condition : str
        What it all rests on where nobody measured the service time; else empty.
    """

    goal: Goal
    steady: tuple[Found, ...]
    over_time: tuple[Found, ...]
    shapes: tuple[Shape, ...]
    seed: int
    replications: int
    shape_replications: int
    tps_per_instance: float
    assumed: tuple[str, ...]
    model_share: float = 1.0
    safety_factor: float = 1.0
    zone_reserve: bool = False
    condition: str = ""

    @property
    def best(self) -> Found | None:
        """The fleet at the steady peak that the goal asks for; ``None`` when none holds it."""
        return best_of(self.steady, self.goal)

    @property
    def best_over_time(self) -> Found | None:
        """The same on the shapes."""
        return best_of(self.over_time, self.goal)

    @property
    def front(self) -> tuple[Found, ...]:
        """The Pareto front at the steady peak: nothing is both cheaper and quicker."""
        return pareto_front(self.steady)

    @property
    def front_over_time(self) -> tuple[Found, ...]:
        """The Pareto front on the shapes."""
        return pareto_front(self.over_time)

    @property
    def points(self) -> tuple[Found, ...]:
        """What can be adopted: both fronts with the best of each, numbered from 1 in this order.

        The best may lie off its front: behind a fleet that seems as quick and costs less, but
        does not certainly hold the goal.
        """
        return (*_with(self.front, self.best), *_with(self.front_over_time, self.best_over_time))


def _with(front: tuple[Found, ...], best: Found | None) -> list[Found]:
    shown = list(front) if best is None or best in front else [*front, best]
    return sorted(shown, key=lambda each: each.cost)


def best_of(found: Iterable[Found], goal: Goal) -> Found | None:
    """What the goal asks for among those that hold it."""
    return min(
        (each for each in found if each.holds), key=lambda each: each.rank(goal.wish), default=None
    )


def pareto_front(found: Iterable[Found]) -> tuple[Found, ...]:
    """Those for which no other is as cheap and as quick, by cost."""
    return pareto.pareto_front(found, lambda one: one.cost, lambda one: one.latency.mean)
