"""What a search is asked, what it tries, and what it found of one of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import rule
from ..options.throughput import counted_instances
from ..plan.traffic_shapes import Shape
from ..report.numbers import milliseconds, readable
from .estimates import Estimate

SEARCH_GOAL = rule(
    "LLS124",
    "a search has no latency target or no rate",
    fix="Give --target p99=200ms and --tps 1000, or set latency and peak_tps in the settings.",
)

_PERCENTILES = ("p50", "p90", "p95", "p99", "p99.9")


@dataclass(frozen=True, slots=True)
class Goal:
    """What a search is for: at a rate a percentile under some seconds; cheapest or fastest."""

    percentile: float  # of the client latency
    seconds: float
    tps: float  # at the peak
    wish: str = "cheapest"  # or fastest

    def __str__(self) -> str:
        return f"p{self.percentile:g} < {milliseconds(1000 * self.seconds, 6)} at {readable(self.tps)} TPS, {self.wish}"


def goal(targets: Mapping[str, float], tps: float | None, *, fastest: bool = False) -> Goal:
    """The goal that targets in milliseconds make, the highest percentile of them (``LLS124``)."""
    known = {name: ms for name, ms in targets.items() if name in _PERCENTILES}
    if not known or not tps or tps <= 0:
        raise SEARCH_GOAL.error(
            got=f"{', '.join(targets) or 'no target'} at {f'{readable(tps)} TPS' if tps else 'no rate'}",
            allowed=f"one of {', '.join(_PERCENTILES)}, at more than 0 TPS",
        )
    highest = max(known, key=lambda name: float(name[1:]))
    wish = "fastest" if fastest else "cheapest"
    return Goal(float(highest[1:]), known[highest] / 1000, tps, wish)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fleet to try; fixed without a safety factor."""

    routing: str
    minimum: int
    maximum: int
    safety_factor: float | None = None
    scale_out_cooldown: float | None = None  # seconds

    @property
    def fixed(self) -> bool:
        """Whether the fleet stays as it is."""
        return self.safety_factor is None

    @property
    def brief(self) -> str:
        """For a table: instances, routing, safety factor, scale-out cooldown."""
        strategy = "least" if self.routing == "LEAST_OUTSTANDING_REQUESTS" else self.routing.lower()
        if self.fixed:
            return f"{self.minimum}, {strategy}"
        return (
            f"{self.minimum} to {self.maximum}, {strategy}, {readable(self.safety_factor)}, "
            f"{readable(self.scale_out_cooldown)} s"
        )

    def __str__(self) -> str:
        strategy = self.routing.replace("_OUTSTANDING_REQUESTS", " OUTSTANDING").lower()
        if self.fixed:
            return f"{counted_instances(self.minimum)}, {strategy}"
        return (
            f"{self.minimum} to {self.maximum} instances, {strategy}, safety factor "
            f"{readable(self.safety_factor)}, scale-out cooldown {readable(self.scale_out_cooldown)} s"
        )


HOLDS, MISSES, NEAR, ONCE = "yes", "no", "too near to tell", "seen once"
SHORT = "too short to tell"


@dataclass(frozen=True, slots=True)
class Reserve:
    """How much of its measured limit a fleet uses at the peak, and after a zone is lost."""

    serving: int  # at the peak
    load: float  # share of the measured limit
    left: int  # when the fullest zone fails; 0 for a fleet in one zone
    load_left: float  # share of the measured limit of those; infinite where none is left

    @classmethod
    def of(cls, serving: int, tps: float, tps_per_instance: float, zones: int) -> Reserve:
        """Of so many instances, spread evenly over the zones."""
        left = serving - math.ceil(serving / zones)
        most = tps_per_instance
        return cls(serving, tps / (serving * most), left, tps / (left * most) if left else math.inf)


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate and what it gave: the worst latency and the mean cost on several shapes."""

    candidate: Candidate
    latency: Estimate  # the goal's percentile, in seconds
    cost: float  # mean number of paid instances
    failed: int  # requests, in all replications
    replications: int  # on each shape; 1 for a first look, which has no interval
    verdict: str  # HOLDS, MISSES, NEAR, ONCE or SHORT
    reserve: Reserve
    shape: str = ""  # on which the latency was the worst; none at the steady peak

    @property
    def holds(self) -> bool | None:
        """Whether it holds the goal; ``None`` where that cannot be told."""
        return {HOLDS: True, MISSES: False}.get(self.verdict)

    def rank(self, wish: str) -> tuple[float, float]:
        """What the wish looks at, the best first."""
        both = (self.cost, self.latency.mean)
        return both if wish == "cheapest" else both[::-1]


@dataclass(frozen=True)
class SearchResult:
    """What a search found: fixed fleets at the steady peak, policies on shapes, each by cost."""

    goal: Goal
    steady: tuple[Found, ...]
    over_time: tuple[Found, ...]
    shapes: tuple[Shape, ...]
    seed: int
    replications: int
    shape_replications: int
    tps_per_instance: float
    assumed: tuple[str, ...]
    model_share: float = 1.0  # of the goal's time; network and overhead take the rest
    safety_factor: float = 1.0  # share of the measured limit up to which fleets were tried
    zone_reserve: bool = False  # whether each holds the peak when its fullest zone fails
    condition: str = ""  # what it all rests on where nobody measured the service time

    @property
    def best(self) -> Found | None:
        """The fleet at the steady peak that the goal asks for; ``None`` when none holds it."""
        return best_of(self.steady, self.goal)

    @property
    def best_over_time(self) -> Found | None:
        """The same on the shapes."""
        return best_of(self.over_time, self.goal)

    @property
    def none_holds(self) -> bool:
        """Whether every fleet tried at the steady peak certainly misses the goal."""
        return all(each.holds is False for each in self.steady)

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
        """What can be adopted, numbered from 1: both fronts with the best of each."""
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
    front: list[Found] = []
    for each in sorted(found, key=lambda one: (one.cost, one.latency.mean)):
        if not front or each.latency.mean < front[-1].latency.mean:
            front.append(each)
    return tuple(front)
