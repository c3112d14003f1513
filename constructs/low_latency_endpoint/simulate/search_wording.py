"""What a search says: sentences, rows of tables and data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .search_goals import NEAR, Found, Goal, SearchResult
from .wording import milliseconds


def traffic_name(result: SearchResult) -> str:
    """The shapes in words.

    Examples
    --------
    >>> from types import SimpleNamespace as Of
    >>> traffic_name(Of(shapes=[Of(name="spike")])), traffic_name(
    ...     Of(shapes=[Of(name="spike"), Of(name="deploy")]))
    ("the shape 'spike'", "the worst of the shapes 'spike' and 'deploy'")
    """
    names = [f"'{each.name}'" for each in result.shapes]
    if len(names) == 1:
        return f"the shape {names[0]}"
    return f"the worst of the shapes {', '.join(names[:-1])} and {names[-1]}"


def search_sentences(result: SearchResult) -> list[str]:
    """What a search found."""
    goal, best, moving = result.goal, result.best, result.best_over_time
    asked = f"p{goal.percentile:g} under {1000 * goal.seconds:g} ms"
    if best is None:
        most = max(each.candidate.maximum for each in result.steady)
        first = (
            f"No fleet up to {most} instances certainly holds {asked} at {goal.tps:,g} TPS"
            f"{_nearest(result.steady, goal)}."
        )
    else:
        first = (
            f"{goal.wish.capitalize()} for {asked} at {goal.tps:,g} TPS: {best.candidate}, "
            f"with {milliseconds(best.latency)}."
        )
    if not result.over_time:
        return [first]
    name = traffic_name(result)
    if moving is None:
        return [
            first,
            f"On {name} nothing tried certainly holds it{_nearest(result.over_time, goal)}.",
        ]
    return [
        first,
        f"On {name} the {goal.wish} that holds it is {moving.candidate}: "
        f"{moving.cost:.2f} instances paid on average, {milliseconds(moving.latency)}.",
    ]


def _nearest(found: Iterable[Found], goal: Goal) -> str:
    """What comes nearest: too near to tell, or the quickest that misses it."""
    found = list(found)
    near = min(
        (each for each in found if each.verdict == NEAR),
        key=lambda each: each.rank(goal.wish),
        default=None,
    )
    if near:
        return (
            f"; {near.candidate}, with {milliseconds(near.latency)}, is too near to tell: "
            "simulate more replications"
        )
    quickest = min(found, key=lambda each: (each.latency.mean, each.cost))
    lost = f" and {quickest.failed:,} failed requests" if quickest.failed else ""
    return f"; the quickest is {quickest.candidate}, with {milliseconds(quickest.latency)}{lost}"


def points_tables(result: SearchResult) -> list[tuple[str, list[str], list[list[str]]]]:
    """The fronts, each as title, heads and rows; rows are numbered through, for adopting one."""
    points = result.points
    steady = [each for each in points if not each.shape]
    tables = [
        (
            f"Pareto front at a steady {result.goal.tps:,g} TPS "
            f"({result.replications} replications)",
            steady,
            1,
        )
    ]
    if result.over_time:
        what = (
            result.shapes[0].description
            if len(result.shapes) == 1
            else "the worst latency and the mean cost"
        )
        tables.append(
            (
                f"Pareto front on {traffic_name(result)}: {what} "
                f"({result.shape_replications} replications)",
                [each for each in points if each.shape],
                len(steady) + 1,
            )
        )
    return [
        (title, *_table(found, first, several=len(result.shapes) > 1))
        for title, found, first in tables
    ]


def _table(
    found: Sequence[Found], first: int, *, several: bool
) -> tuple[list[str], list[list[str]]]:
    worst = several and any(each.shape for each in found)
    failed = any(each.failed for each in found)
    heads = [
        "Point",
        "Paid instances",
        "Latency",
        *(["Worst on"] if worst else []),
        *(["Failed"] if failed else []),
        "Holds",
    ]
    return heads, [
        [
            f"{number}: {each.candidate}",
            f"{each.cost:.2f}",
            milliseconds(each.latency),
            *([each.shape] if worst else []),
            *([f"{each.failed:,}"] if failed else []),
            each.verdict,
        ]
        for number, each in enumerate(found, first)
    ]


def search_data(result: SearchResult) -> dict[str, Any]:
    """A search as JSON-safe data; ``half_width`` is null for what was seen once."""
    numbers = {id(each): number for number, each in enumerate(result.points, 1)}

    def point(each: Found | None) -> dict[str, Any] | None:
        if each is None:
            return None
        one = each.candidate
        return {
            "point": numbers.get(id(each)),
            "routing": one.routing,
            "min_instances": one.minimum,
            "max_instances": one.maximum,
            "safety_factor": one.safety_factor,
            "scale_out_cooldown": one.scale_out_cooldown,
            "latency_ms": {
                "mean": 1e3 * each.latency.mean,
                "half_width": 1e3 * each.latency.half_width if each.replications > 1 else None,
            },
            "paid_instances": each.cost,
            "failed": each.failed,
            "replications": each.replications,
            "verdict": each.verdict,
            "holds": each.holds,
        } | ({"worst_on": each.shape} if each.shape else {})

    return {
        "goal": str(result.goal),
        "seed": result.seed,
        "best": point(result.best),
        "front": [point(each) for each in result.front],
        "shapes": [each.name for each in result.shapes],
        "best_on_shapes": point(result.best_over_time),
        "front_on_shapes": [point(each) for each in result.front_over_time],
    }
