"""Search fleets, strategies and scaling policies: the Pareto front of cost against p99."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from ..decisions import Decision, LatencyPlan
from ..plan_fleet import CONCURRENCY_METRIC, INVOCATIONS_METRIC, INVOCATIONS_UNIT
from .assumptions import Model
from .estimates import Estimate, estimate
from .rules import SEARCH_GOAL
from .scenario import Scenario
from .simulating import SimulationResult, compile_here, simulate
from .traffic import Shape, shape

__all__ = ["Candidate", "Found", "Goal", "SearchResult", "adopt", "parse_goal", "search"]

STRATEGIES = ("LEAST_OUTSTANDING_REQUESTS", "RANDOM")
_GOAL = re.compile(
    r"\s*p(50|90|95|99|99\.9)\s*<=?\s*(\d+(?:\.\d+)?)\s*(ms|s)\s+at\s+(\d[\d,]*(?:\.\d+)?)\s*TPS"
    r"\s*(?:,\s*(cheapest|fastest)\s*)?", re.IGNORECASE)


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
        return (f"p{self.percentile:g} < {1000 * self.seconds:g} ms at {self.tps:,g} TPS, "
                f"{self.wish}")


def parse_goal(text: str) -> Goal:
    """Read a goal.

    Raises
    ------
    ConfigurationError
        ``LLE874`` for anything else.

    Examples
    --------
    >>> parse_goal("p99<200ms at 1000 TPS, cheapest")
    Goal(percentile=99.0, seconds=0.2, tps=1000.0, wish='cheapest')
    """
    match = _GOAL.fullmatch(text)
    if not match or float(match[2]) <= 0 or float(match[4].replace(",", "")) <= 0:
        raise SEARCH_GOAL.error(got=repr(text), allowed="a percentile of p50, p90, p95, p99, "
                                                        "p99.9 under a time at a rate")
    seconds = float(match[2]) / (1000 if match[3].lower() == "ms" else 1)
    return Goal(float(match[1]), seconds, float(match[4].replace(",", "")),
                (match[5] or "cheapest").lower())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A fleet to try: fixed when minimum and maximum are the same.

    Attributes
    ----------
    routing : str
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

    def __str__(self) -> str:
        strategy = self.routing.replace("_OUTSTANDING_REQUESTS", " OUTSTANDING").lower()
        if self.fixed:
            return f"{self.minimum} instances, {strategy}"
        return (f"{self.minimum} to {self.maximum} instances, {strategy}, safety factor "
                f"{self.safety_factor:g}, scale-out cooldown {self.scale_out_cooldown:g} s")


@dataclass(frozen=True, slots=True)
class Found:
    """A candidate and what it gave.

    Attributes
    ----------
    candidate : Candidate
    latency : Estimate
        The goal's percentile, in seconds.
    cost : float
        Mean number of paid instances: instance hours per hour.
    failed : int
    holds : bool
        Whether the whole interval is under the goal, and nothing failed.
    """

    candidate: Candidate
    latency: Estimate
    cost: float
    failed: int
    holds: bool


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    goal : Goal
    steady : tuple of Found
        Fixed fleets at the steady peak, by cost.
    over_time : tuple of Found
        Scaling policies and the best fixed fleets on the shape, by cost.
    shape : Shape
    seed, replications : int
    tps_per_instance : float
    assumed : tuple of str
    """

    goal: Goal
    steady: tuple[Found, ...]
    over_time: tuple[Found, ...]
    shape: Shape
    seed: int
    replications: int
    tps_per_instance: float
    assumed: tuple[str, ...]

    @property
    def best(self) -> Found | None:
        """The fleet at the steady peak that the goal asks for; ``None`` when none holds it."""
        held = [each for each in self.steady if each.holds]
        key = (lambda each: (each.cost, each.latency.mean)) if self.goal.wish == "cheapest" else (
            lambda each: (each.latency.mean, each.cost))
        return min(held, key=key, default=None)

    @property
    def best_over_time(self) -> Found | None:
        """The same on the shape."""
        return min((each for each in self.over_time if each.holds),
                   key=lambda each: (each.cost, each.latency.mean), default=None)

    @property
    def front(self) -> tuple[Found, ...]:
        """The Pareto front at the steady peak: nothing is both cheaper and quicker."""
        return pareto_front(self.steady)

    @property
    def front_over_time(self) -> tuple[Found, ...]:
        """The Pareto front on the shape."""
        return pareto_front(self.over_time)


def pareto_front(found: Iterable[Found]) -> tuple[Found, ...]:
    """Those for which no other is as cheap and as quick, by cost."""
    front: list[Found] = []
    for each in sorted(found, key=lambda one: (one.cost, one.latency.mean)):
        if not front or each.latency.mean < front[-1].latency.mean:
            front.append(each)
    return tuple(front)


def search(model: Model, goal: Goal, *, over: Shape | None = None, seed: int = 1,
           replications: int = 4, requests: int = 40_000, processes: int = 1) -> SearchResult:
    """Walk instance counts, strategies, safety factors and cooldowns.

    Parameters
    ----------
    model : Model
        The endpoint; its peak becomes the goal's.
    goal : Goal
    over : Shape, optional
        On which scaling policies are judged. By default ``spike``.
    seed, replications, requests, processes
        As for :func:`.simulating.simulate`; ``requests`` for each fixed fleet. Scaling policies are
        tried once, and those on the front again with all replications.
    """
    model = replace(model, peak_tps=goal.tps)
    over = over or shape("spike")
    one = model.steady(instances=1).instance_rate
    fewest = max(1, math.floor(goal.tps / one / 0.99) + 1)
    most = max(fewest + 2, math.ceil(1.7 * fewest), model.instances)
    step = max(1, (most - fewest) // 10)
    counts = sorted({*range(fewest, most + 1, step), max(model.instances, fewest)})
    fixed = [Candidate(routing, count, count) for count in counts for routing in STRATEGIES]
    steady = _try(model, goal, fixed, None, seed, replications, requests, processes)
    held = [each for each in steady if each.holds]
    enough = min((each.candidate.maximum for each in held), default=most)

    # Scaling policies with the strategy that did better at the steady peak.
    routing = min(steady, key=lambda each: (not each.holds, each.cost, each.latency.mean)
                  ).candidate.routing
    factors = sorted({0.5, model.safety_factor, 0.8})
    floors = sorted({min(model.minimum, enough), max(2, math.ceil(enough / 2)), enough})
    # At its peak a policy may want more than the fleet that just holds it.
    policies = [
        Candidate(routing, floor, max(floor, math.ceil(
            1.5 * goal.tps / (model.tps_per_instance * factor))), factor, cooldown)
        for floor in floors for factor in factors
        for cooldown in ((60.0, 300.0) if floor < enough and factor == model.safety_factor
                         else (60.0,))
    ]
    policies += [Candidate(each, enough, enough) for each in STRATEGIES]
    first = _try(model, goal, policies, over, seed, 1, None, processes)
    # The front again with intervals, until none of its points stands on a first look alone.
    surer: dict[Candidate, Found] = {}
    over_time = list(first)
    while looked_at := [each.candidate for each in pareto_front(over_time)
                        if each.candidate not in surer]:
        again = _try(model, goal, looked_at, over, seed, max(2, replications // 2), None,
                     processes)
        surer |= {each.candidate: each for each in again}
        over_time = [surer.get(each.candidate, each) for each in first]
    return SearchResult(
        goal, tuple(sorted(steady, key=lambda each: each.cost)),
        tuple(sorted(over_time, key=lambda each: each.cost)),
        over, seed, replications, model.tps_per_instance, model.assumed)


def _try(model: Model, goal: Goal, candidates: Sequence[Candidate], over: Shape | None, seed: int,
         replications: int, requests: int | None, processes: int) -> list[Found]:
    jobs = [(model, goal, each, over, seed, replications, requests) for each in candidates]
    if processes <= 1 or len(jobs) < 2:
        return [_found(job) for job in jobs]
    compile_here()
    with ProcessPoolExecutor(min(processes, len(jobs))) as pool:
        return list(pool.map(_found, jobs))


def _found(job: tuple[Any, ...]) -> Found:
    model, goal, candidate, over, seed, replications, requests = job
    scenario = scenario_of(model, candidate, over)
    if replications == 1:  # a first look; it has no interval
        from .compilation import loops
        from .replication import RunLength, replicate

        run = replicate(scenario, RunLength(None, over.seconds, 0.0, None), loops(), seed, 0)
        latency = Estimate(run.percentiles[goal.percentile], 0.0)
        runs: Sequence[Any] = (run,)
    else:
        result: SimulationResult = simulate(scenario, requests=requests, replications=replications,
                                            seed=seed, window=None)
        latency = estimate([each.percentiles[goal.percentile] for each in result.replications])
        runs = result.replications
    cost = sum(run.instance_hours * 3600 / run.seconds for run in runs) / len(runs)
    failed = sum(run.failed for run in runs)
    return Found(candidate, latency, cost, failed,
                 latency.high < goal.seconds and failed == 0)


def scenario_of(model: Model, candidate: Candidate, over: Shape | None) -> Scenario:
    """The scenario in which a candidate is tried."""
    if over is None:
        return model.steady(instances=candidate.minimum, routing=candidate.routing)
    if candidate.fixed:
        return replace(model, scales=False).over_time(
            over, instances=candidate.minimum, routing=candidate.routing)
    assert candidate.safety_factor
    assert candidate.scale_out_cooldown is not None
    policy = model.policy(
        target=model.tps_per_instance * candidate.safety_factor * 60,
        minimum=candidate.minimum, maximum=candidate.maximum,
        scale_out_cooldown=candidate.scale_out_cooldown)
    return model.over_time(over, policy, routing=candidate.routing)


def adopt(plan: LatencyPlan, found: Found, result: SearchResult) -> LatencyPlan:
    """The plan with a point of a search in it, and where each number comes from.

    Only the decisions that the search walked over change: routing, minimum, initial and maximum
    instances, scaling target and scale-out cooldown. What follows from them elsewhere in the plan
    (subnet sizes, alarms, warm-up) does not: state the numbers in the settings for that.
    """
    one = found.candidate
    values: dict[str, Any] = {
        "routing_strategy": one.routing, "instances_at_peak": one.maximum,
        "min_instances": one.minimum, "initial_instances": one.minimum,
        "max_instances": one.maximum,
    }
    if one.fixed:
        values["initial_instances"] = one.maximum
    else:
        assert one.safety_factor
        values |= {"scale_out_cooldown": one.scale_out_cooldown,
                   "scaling_target": result.tps_per_instance * one.safety_factor * 60}
        values.pop("instances_at_peak")
        if plan["scaling_metric"].value == CONCURRENCY_METRIC:  # the search tracks invocations
            values["scaling_metric"] = INVOCATIONS_METRIC
    rule = f"found by simulation for {result.goal}"
    inputs = {
        f"simulated p{result.goal.percentile:g}":
            f"{1000 * found.latency.mean:.3g} ± {1000 * found.latency.half_width:.2g} ms",
        "paid instances": round(found.cost, 2), "seed": result.seed,
    }
    note = "simulated, not measured: confirm it with a load test. Assumed: " + "; ".join(
        result.assumed)
    decisions: list[Decision] = [
        replace(each, value=values[each.name], rule=rule, inputs=inputs, source="", note=note,
                overridden=False,
                unit=INVOCATIONS_UNIT if each.name == "scaling_target" else each.unit)
        if each.name in values else each
        for each in plan
    ]
    return replace(plan, decisions=tuple(decisions))
