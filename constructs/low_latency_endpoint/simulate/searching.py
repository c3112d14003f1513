"""Search for the cheapest, or fastest, fleet whose simulated latency meets a goal.

Fixed fleets are simulated at the steady peak (``_steady``): a grid of instance counts, wider while
none meets the goal and p99 still falls, then bisection between the largest fleet that misses the
goal and the smallest that meets it. Scaling policies are simulated on traffic shapes
(``_over_time``): each once, shortest shape first. A policy that misses the goal by far is dropped; a
policy that may be the answer, or lies on the Pareto front of cost and latency, is repeated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..facts.limits import SAFETY_FACTOR
from ..options.throughput import HELD_SHARE, factor_for, instances_at_peak, stated
from ..plan.traffic_shapes import Shape
from .assumptions import SimulatedEndpoint
from .estimates import Estimate
from .replication import Replication, RunLength
from .run_length import default_requests, warm_up_requests
from .scenario import Scenario
from .search_goals import (
    HOLDS,
    MISSES,
    NEAR,
    ONCE,
    SHORT,
    Candidate,
    Found,
    Goal,
    Reserve,
    SearchResult,
    best_of,
    pareto_front,
)
from .simulating import REPLICATIONS, Replicated, SimulationResult, over_processes

STRATEGIES = ("LEAST_OUTSTANDING_REQUESTS", "RANDOM")
FEWEST_REPLICATIONS = 4  # with two or three, Student's interval is wider than the differences
_HIGHEST_LOAD = 0.99  # of the smallest fleet that is simulated
_GRID_WIDTH = 1.7  # the largest count of the first grid, relative to the smallest
_GRID_STEPS = 10
_MOST_RAISES = 4  # of the largest count by _GRID_WIDTH: to 14 times the smallest
_FLOOR = 0.99  # p99 no longer falls when a larger fleet lowers it by less than 1 %
_CLOSE = 1.1  # a latency up to 10 % above the goal may be chance, and is simulated again
_HOPELESS = 10  # a policy whose latency is ten times the goal is not tried on longer shapes
_FEWEST_REQUESTS = 10_000  # of a fixed fleet, in each replication
_ROUNDING = 1 + 1e-9
#: Share of requests that may fail when a zone is lost: no fleet saves requests in flight there.
_LOST_WITH_A_ZONE = 1e-3
_MOST_UNDECIDED = 4  # candidates that get more replications
_AT_A_TIME = (
    2  # candidates repeated together: if the better one meets the goal, the rest need not be
)

#: A candidate on a shape, or at the steady peak (``None``).
Trial = tuple[Candidate, Shape | None]


def search(
    model: SimulatedEndpoint,
    goal: Goal,
    *,
    over: Sequence[Shape] = (),
    seed: int = 1,
    replications: int = 8,
    shape_replications: int = 4,
    requests: int | None = None,
    processes: int = 1,
    safety_factor: float | None = None,
    zone_reserve: bool = True,
) -> SearchResult:
    """Simulate fixed fleets, and scaling policies on the shapes ``over``; all points with a verdict.

    ``replications`` and ``shape_replications`` are those of a point that needs an interval.
    ``safety_factor`` and ``zone_reserve`` bound the load of every fleet tried (`SearchLimits`).
    """
    for given, where in (
        (replications, "replications"),
        (shape_replications, "shape_replications"),
    ):
        if REPLICATIONS.check(given, where) < FEWEST_REPLICATIONS:
            raise REPLICATIONS.rule.error(
                got=given,
                allowed=f"at least {FEWEST_REPLICATIONS} for a search",
                where=where,
                fix="Give at least four: with fewer the interval is wider than the differences.",
            )
    model = replace(model, peak_tps=goal.tps)
    allowed = model.safety_factor if safety_factor is None else safety_factor
    SAFETY_FACTOR.check(allowed, "safety_factor")
    limits = SearchLimits(model, allowed, zone_reserve)
    shapes = tuple(over)
    with over_processes(processes) as replicated:
        runs = _Runs(model, goal, seed, requests, replicated)
        steady = _steady(limits, goal, runs, replications)
        over_time = (
            _over_time(limits, goal, runs, steady, shapes, shape_replications) if shapes else []
        )
    return SearchResult(
        goal,
        tuple(sorted(steady, key=lambda each: each.cost)),
        tuple(sorted(over_time, key=lambda each: each.cost)),
        shapes,
        seed,
        replications,
        shape_replications,
        model.tps_per_instance,
        model.assumed,
        model.model_share,
        allowed,
        zone_reserve,
        model.condition,
    )


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """The capacity that a fleet must have in reserve. Other fleets are not simulated."""

    model: SimulatedEndpoint
    safety_factor: float  # share of its measured limit that an instance may have at the peak
    zone_reserve: bool  # whether the instances left after the loss of a zone must serve the peak

    @property
    def fewest(self) -> int:
        """Instances of the smallest fixed fleet within the limits."""
        model = self.model
        count = instances_at_peak(
            model.peak_tps, model.tps_per_instance, self.safety_factor, model.zones
        )
        while not self.allows(self.reserve(count)):
            count += 1
        return count

    def reserve(self, serving: int) -> Reserve:
        """The load of so many instances at the peak, with all zones and after the loss of one."""
        model = self.model
        return Reserve.of(serving, model.peak_tps, model.tps_per_instance, model.zones)

    def allows(self, reserve: Reserve) -> bool:
        """Whether a reserve is within the limits."""
        return reserve.load <= self.safety_factor * _ROUNDING and (
            not self.zone_reserve
            or self.model.zones == 1
            or reserve.load_left <= HELD_SHARE * _ROUNDING
        )


# --- fixed fleets at the steady peak -------------------------------------------------------------


def _steady(limits: SearchLimits, goal: Goal, runs: _Runs, replications: int) -> list[Found]:
    """Fixed fleets with each strategy: a grid of counts, a wider one, then bisection."""
    model = limits.model
    rate_of_one = model.steady(instances=1).instance_rate
    fewest = max(limits.fewest, math.floor(goal.tps / rate_of_one / _HIGHEST_LOAD) + 1)
    most = max(fewest + 2, math.ceil(_GRID_WIDTH * fewest))
    found: dict[Candidate, Found] = {}

    def look(counts: Iterable[int]) -> None:
        fresh = [
            Candidate(routing, count, count)
            for count in sorted(set(counts))
            for routing in STRATEGIES
            if Candidate(routing, count, count) not in found
        ]
        found.update(runs.simulated(fresh, (None,), replications))

    planned = [model.instances] if model.instances >= fewest else []
    look([*range(fewest, most + 1, max(1, (most - fewest) // _GRID_STEPS)), most, *planned])
    top = most
    for _ in range(_MOST_RAISES):
        if any(each.holds for each in found.values()):
            break
        before, top = _quickest(found.values(), top), math.ceil(_GRID_WIDTH * top)
        look([top])
        if _quickest(found.values(), top) > _FLOOR * before:
            break
    while middles := [
        middle for routing in STRATEGIES if (middle := _middle(found.values(), routing)) is not None
    ]:
        look(middles)
    # A cheaper fleet whose interval straddles the goal may meet it with more replications.
    found |= runs.simulated(_undecided(found.values(), goal), (None,), 4 * replications)
    return list(found.values())


def _quickest(found: Iterable[Found], count: int) -> float:
    """The latency of so many instances with the better strategy."""
    return min(each.latency.mean for each in found if each.candidate.minimum == count)


def _middle(found: Iterable[Found], routing: str) -> int | None:
    """The count between the largest fleet that fails and the smallest that holds."""
    mine = [each for each in found if each.candidate.routing == routing]
    holds = min((each.candidate.minimum for each in mine if each.holds), default=0)
    fails = max(
        (each.candidate.minimum for each in mine if each.candidate.minimum < holds), default=holds
    )
    return (fails + holds) // 2 if holds - fails > 1 else None


def _undecided(found: Iterable[Found], goal: Goal) -> list[Candidate]:
    """Candidates whose interval straddles the goal, and that would be better than the best so far."""
    found = list(found)
    best = best_of(found, goal)
    near = [
        each
        for each in found
        if each.verdict == NEAR and (best is None or each.rank(goal.wish) < best.rank(goal.wish))
    ]
    return [each.candidate for each in sorted(near, key=lambda one: one.rank(goal.wish))][
        :_MOST_UNDECIDED
    ]


# --- scaling policies on shapes ------------------------------------------------------------------


def _over_time(
    limits: SearchLimits,
    goal: Goal,
    runs: _Runs,
    steady: Sequence[Found],
    shapes: tuple[Shape, ...],
    replications: int,
) -> list[Found]:
    """Policies on shapes: each once, cheap shapes first; repeated if it may be the answer."""
    policies = _policies(limits, goal, steady)
    seconds = goal.seconds * limits.model.model_share
    for each in sorted(shapes, key=lambda shape: shape.seconds * shape.mean_share):
        # A policy that misses the goal by far on a short shape is not tried on a whole day.
        looked = runs.simulated(policies, (each,), 1)
        policies = [
            policy
            for policy in policies
            if policy.fixed or looked[policy].latency.mean < _HOPELESS * seconds
        ]
    found = runs.simulated(policies, shapes, 1)
    # A policy that clearly misses the goal is no answer, and needs no interval.
    found = {
        policy: point for policy, point in found.items() if point.latency.mean < _CLOSE * seconds
    } or found
    while again := _to_repeat(found.values(), goal, seconds):
        found |= runs.simulated(again, shapes, replications)
    if undecided := _undecided(found.values(), goal):
        found |= runs.simulated(undecided, shapes, 2 * replications)
        while again := _to_repeat(found.values(), goal, seconds):
            found |= runs.simulated(again, shapes, replications)
    return list(found.values())


def _to_repeat(found: Iterable[Found], goal: Goal, seconds: float) -> list[Candidate]:
    """Candidates simulated only once that lie on the front, or may be better than the best so far."""
    found = list(found)
    best = best_of(found, goal)
    may = sorted(
        (
            each
            for each in found
            if each.verdict == ONCE
            and each.latency.mean < _CLOSE * seconds
            and (best is None or each.rank(goal.wish) < best.rank(goal.wish))
        ),
        key=lambda one: one.rank(goal.wish),
    )
    front = [each for each in pareto_front(found) if each.replications == 1]
    return list(dict.fromkeys(each.candidate for each in (*front, *may[:_AT_A_TIME])))


def _policies(limits: SearchLimits, goal: Goal, steady: Sequence[Found]) -> list[Candidate]:
    """Scaling policies with the strategy that did better at the steady peak, and fixed fleets."""
    model = limits.model
    least = min(each.candidate.minimum for each in steady)
    held = [each for each in steady if each.holds]
    enough = min(
        (each.candidate.maximum for each in held),
        default=max(least + 2, math.ceil(_GRID_WIDTH * least)),
    )
    routing = min(
        steady, key=lambda each: (not each.holds, each.cost, each.latency.mean)
    ).candidate.routing
    fewest = max(2, model.zones)
    factors = sorted(
        each
        for each in {
            0.5,
            model.safety_factor,
            limits.safety_factor,
            0.8,
            factor_for(limits.fewest, model.peak_tps, model.tps_per_instance),
        }
        if 0 < each <= limits.safety_factor
    )
    floors = sorted(
        {max(fewest, min(model.minimum, enough)), max(fewest, math.ceil(enough / 2)), enough}
    )
    # At the peak a policy may ask for more instances than the smallest fixed fleet that serves it.
    policies = [
        Candidate(
            routing,
            floor,
            max(floor, math.ceil(1.5 * goal.tps / (model.tps_per_instance * factor))),
            factor,
            cooldown,
        )
        for floor in floors
        for factor in factors
        for cooldown in ((60.0, 300.0) if floor < enough and factor == factors[-1] else (60.0,))
    ]
    return [
        policy
        for policy in policies
        if policy.minimum < serving_at_peak(policy, model)  # else it is a fixed fleet
        and limits.allows(limits.reserve(serving_at_peak(policy, model)))
    ] + [Candidate(routing, enough, enough)]


def serving_at_peak(candidate: Candidate, model: SimulatedEndpoint) -> int:
    """Instances that a fixed fleet has, or that a policy comes to, at the peak."""
    if candidate.safety_factor is None:
        return candidate.minimum
    wanted = math.ceil(
        stated(model.peak_tps) / (stated(model.tps_per_instance) * stated(candidate.safety_factor))
    )
    return max(candidate.minimum, min(candidate.maximum, wanted))


# --- running and judging -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Runs:
    """All replications so far. A candidate that is simulated again keeps those it has."""

    model: SimulatedEndpoint
    goal: Goal
    seed: int
    requests: int | None
    replicated: Replicated
    kept: dict[Trial, list[Replication]] = field(default_factory=dict)

    def simulated(
        self, candidates: Iterable[Candidate], shapes: Sequence[Shape | None], replications: int
    ) -> dict[Candidate, Found]:
        """Each candidate with at least so many replications on each shape."""
        candidates = list(candidates)
        trials: list[Trial] = [(candidate, over) for candidate in candidates for over in shapes]
        jobs = [
            (key, number)
            for key in trials
            for number in range(len(self.kept.get(key, ())), replications)
        ]
        for (key, _), run in zip(
            jobs,
            self.replicated(
                [
                    (self._scenario(key), self._length(key), self.seed, number, None)
                    for key, number in jobs
                ]
            ),
            strict=True,
        ):
            self.kept.setdefault(key, []).append(run)
        return {candidate: self._point(candidate, shapes) for candidate in candidates}

    def _scenario(self, key: Trial) -> Scenario:
        # Not the goal: with `most_late` of the length it ends the run of a hopeless policy early.
        hopeless = _HOPELESS * self.goal.seconds * self.model.model_share
        return scenario_of(self.model, *key).with_(latency_target=hopeless)

    def _length(self, key: Trial) -> RunLength:
        candidate, over = key
        if over is not None:
            # A fixed fleet's run is never ended early: if no policy is left, its figures are shown.
            requests = self.goal.tps * over.mean_share * over.seconds
            most_late = 2 * requests * (1 - self.goal.percentile / 100)
            return RunLength(
                None, over.seconds, 0.0, most_late=math.inf if candidate.fixed else most_late
            )
        fleet = self._scenario(key)
        requests = self.requests or default_requests(
            fleet, FEWEST_REPLICATIONS, self.goal.percentile, _FEWEST_REQUESTS, patience=0
        )
        return RunLength(requests, None, warm_up_requests(fleet, requests) / requests)

    def _point(self, candidate: Candidate, shapes: Sequence[Shape | None]) -> Found:
        parts = []
        for over in shapes:
            runs = self.kept[candidate, over]
            latency = self._latency(candidate, over, runs)
            cost = sum(run.instance_hours * 3600 / run.seconds for run in runs) / len(runs)
            parts.append(
                (
                    latency,
                    cost,
                    _verdict(latency, runs, over, self.goal.seconds * self.model.model_share),
                    over.name if over else "",
                )
            )
        latency, _, _, worst = max(parts, key=lambda part: part[0].mean)
        verdicts = {part[2] for part in parts}
        return Found(
            candidate,
            latency,
            sum(part[1] for part in parts) / len(parts),
            sum(run.failed for over in shapes for run in self.kept[candidate, over]),
            min(len(self.kept[candidate, over]) for over in shapes),
            next(each for each in (MISSES, ONCE, SHORT, NEAR, HOLDS) if each in verdicts),
            Reserve.of(
                serving_at_peak(candidate, self.model),
                self.goal.tps,
                self.model.tps_per_instance,
                self.model.zones,
            ),
            worst,
        )

    def _latency(
        self, candidate: Candidate, over: Shape | None, runs: list[Replication]
    ) -> Estimate:
        percentile = self.goal.percentile
        if len(runs) == 1:
            return Estimate(runs[0].percentiles[percentile], 0.0)
        return SimulationResult(
            self._scenario((candidate, over)),
            tuple(runs),
            self.seed,
            discard=self._length((candidate, over)).discard,
        ).percentile(percentile)


def _verdict(
    latency: Estimate, runs: Sequence[Replication], over: Shape | None, seconds: float
) -> str:
    """Where the latency lies against the model's part of the goal."""
    failed = sum(run.failed for run in runs)
    borne = _LOST_WITH_A_ZONE if over and over.zone_lost_at is not None else 0.0
    if failed > borne * (failed + sum(run.requests for run in runs)):
        return MISSES
    if len(runs) == 1:
        return ONCE
    if not latency.tells:
        return SHORT
    if latency.high < seconds:
        return HOLDS
    return MISSES if latency.low >= seconds else NEAR


def scenario_of(model: SimulatedEndpoint, candidate: Candidate, over: Shape | None) -> Scenario:
    """The scenario in which a candidate is tried."""
    if over is None:
        return model.steady(instances=candidate.minimum, routing=candidate.routing)
    if candidate.fixed:
        return replace(model, scales=False).over_time(
            over, instances=candidate.minimum, routing=candidate.routing
        )
    assert candidate.safety_factor
    assert candidate.scale_out_cooldown is not None
    policy = model.policy(
        target=model.tps_per_instance * candidate.safety_factor * 60,
        minimum=candidate.minimum,
        maximum=candidate.maximum,
        scale_out_cooldown=candidate.scale_out_cooldown,
    )
    return model.over_time(over, policy, routing=candidate.routing)
