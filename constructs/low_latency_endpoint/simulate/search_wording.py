"""What a search says: sentences, rows of tables and data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..options.throughput import HELD_SHARE
from ..report import numbers
from ..report.numbers import readable
from ..report.tables import Table
from .search_goals import NEAR, SHORT, Found, Goal, SearchResult
from .wording import milliseconds


def traffic_name(result: SearchResult) -> str:
    """The shapes in words."""
    names = [f"'{each.name}'" for each in result.shapes]
    if len(names) == 1:
        return f"the shape {names[0]}"
    return f"the worst of the shapes {', '.join(names[:-1])} and {names[-1]}"


def search_sentences(result: SearchResult) -> list[str]:
    """What a search found."""
    goal, best, moving = result.goal, result.best, result.best_over_time
    asked = f"p{goal.percentile:g} under {numbers.milliseconds(1000 * goal.seconds, 6)}"
    if result.model_share < 1:
        asked += f" ({numbers.milliseconds(1000 * goal.seconds * result.model_share, 6)} of it for the model)"
    if best is None:
        most = max(each.candidate.maximum for each in result.steady)
        which = f"up to {most} instances"
        first = (
            f"Too few requests to tell whether a fleet {which} holds {asked} at {readable(goal.tps)} TPS: "
            "give more --requests."
            if all(each.verdict == SHORT for each in result.steady)
            else f"No fleet {which} certainly holds {asked} at {readable(goal.tps)} TPS"
            f"{_nearest(result.steady, goal)}."
        )
    else:
        first = (
            f"{goal.wish.capitalize()} for {asked} at {readable(goal.tps)} TPS: {best.candidate}, "
            f"with {milliseconds(best.latency)}{_reserve(best)}."
        )
    said = [result.condition + first, _limits_sentence(result)]
    if not result.over_time:
        return said
    name = traffic_name(result)
    if moving is None:
        return [
            *said,
            f"On {name} nothing tried certainly holds it{_nearest(result.over_time, goal)}.",
        ]
    return [
        *said,
        f"On {name} the {goal.wish} that holds it is {moving.candidate}: "
        f"{moving.cost:.2f} instances paid on average, {milliseconds(moving.latency)}"
        f"{_reserve(moving)}.",
    ]


def _reserve(found: Found) -> str:
    """How near to the measured limit it is, and what a lost zone leaves."""
    one = found.reserve
    text = f", at {one.load:.0%} of its limit at the peak"
    if one.left:
        text += f", {one.load_left:.0%} when a zone is lost"
    return text


def _limits_sentence(result: SearchResult) -> str:
    """What every fleet tried keeps in reserve, and how to ask for others."""
    kept = f"no instance above {result.safety_factor:.0%} of its limit at the peak"
    if result.zone_reserve:
        return (
            f"Every fleet tried keeps the plan's reserve: {kept}, and {HELD_SHARE:.0%} when a zone is "
            "lost (--safety-factor and --without-zone-reserve try others)."
        )
    return f"Tried: {kept}; a lost zone may leave too few."


def _nearest(found: Iterable[Found], goal: Goal) -> str:
    """What comes nearest: too near to tell, or the quickest that misses it."""
    found = list(found)
    near = min(
        (each for each in found if each.verdict in (NEAR, SHORT)),
        key=lambda each: (each.verdict != NEAR, each.rank(goal.wish)),
        default=None,
    )
    if near and near.verdict != NEAR:
        return f"; too few requests to tell of {near.candidate}: give more --requests"
    if near:
        return (
            f"; {near.candidate}, with {milliseconds(near.latency)}, is too near to tell: "
            "simulate more replications"
        )
    quickest = min(found, key=lambda each: (each.latency.mean, each.cost))
    lost = f" and {quickest.failed:,} failed requests" if quickest.failed else ""
    return f"; the quickest is {quickest.candidate}, with {milliseconds(quickest.latency)}{lost}"


def points_tables(result: SearchResult, cost: Callable[[Found], Mapping[str, str]]) -> list[Table]:
    """The fronts, with the cost of each point; rows are numbered through, for adopting one."""
    several = len(result.shapes) > 1
    title = (
        f"Pareto front at a steady {readable(result.goal.tps)} TPS "
        f"({result.replications} replications); each point: instances, routing"
    )
    steady = [each for each in result.points if not each.shape]
    tables = [Table.of(_rows(steady, 1, cost), title)]
    if result.over_time:
        what = "the worst latency and the mean cost" if several else result.shapes[0].description
        title = (
            f"Pareto front on {traffic_name(result)}: {what} "
            f"({result.shape_replications} replications); each point: instances, routing, safety "
            "factor, scale-out cooldown"
        )
        moving = [each for each in result.points if each.shape]
        rows = _rows(moving, len(steady) + 1, cost, several=several)
        tables.append(Table.of(rows, title))
    return tables


def _rows(
    found: Sequence[Found],
    first: int,
    cost: Callable[[Found], Mapping[str, str]],
    *,
    several: bool = False,
) -> list[dict[str, str]]:
    failed = any(each.failed for each in found)
    zones = any(each.reserve.left for each in found)
    return [
        {
            "Result": f"{number}: {each.candidate.brief}",
            "Paid": f"{each.cost:.2f}",
            **cost(each),
            "Latency": milliseconds(each.latency),
            "Of limit": f"{each.reserve.load:.0%}",
            **({"Zone lost": _of_limit(each.reserve.load_left)} if zones else {}),
            **({"Worst on": each.shape} if several else {}),
            **({"Failed": f"{each.failed:,}"} if failed else {}),
            "Holds": each.verdict,
        }
        for number, each in enumerate(found, first)
    ]


def _of_limit(load: float) -> str:
    return "none left" if math.isinf(load) else f"{load:.0%}"


def search_data(result: SearchResult) -> dict[str, Any]:
    """A search as JSON-safe data; ``half_width`` is null for what was seen once or too short."""
    numbers = {id(each): number for number, each in enumerate(result.points, 1)}

    def point(each: Found | None) -> dict[str, Any] | None:
        if each is None:
            return None
        one = each.candidate
        return {
            "result": numbers.get(id(each)),
            "routing": one.routing,
            "min_instances": one.minimum,
            "max_instances": one.maximum,
            "safety_factor": one.safety_factor,
            "scale_out_cooldown": one.scale_out_cooldown,
            "latency_ms": {
                "mean": 1e3 * each.latency.mean,
                "half_width": 1e3 * each.latency.half_width
                if each.replications > 1 and each.latency.tells
                else None,
            },
            "paid_instances": each.cost,
            "failed": each.failed,
            "replications": each.replications,
            "load_at_measured_limit": each.reserve.load,
            "load_when_a_zone_is_lost": each.reserve.load_left if each.reserve.left else None,
            "verdict": each.verdict,
            "holds": each.holds,
        } | ({"worst_on": each.shape} if each.shape else {})

    return {
        "goal": str(result.goal),
        "model_goal_ms": 1e3 * result.goal.seconds * result.model_share,
        "service_time_measured": not result.condition,
        "safety_factor": result.safety_factor,
        "zone_reserve": result.zone_reserve,
        "seed": result.seed,
        "best": point(result.best),
        "front": [point(each) for each in result.front],
        "shapes": [each.name for each in result.shapes],
        "best_on_shapes": point(result.best_over_time),
        "front_on_shapes": [point(each) for each in result.front_over_time],
    }
