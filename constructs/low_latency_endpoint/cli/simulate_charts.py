"""The charts of ``low-latency simulate --html``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..report.charts import Chart, Line, Panel
from ..report.numbers import milliseconds, readable
from ..simulate import Shape, SimulationResult
from ..simulate.assumptions import SimulatedEndpoint
from ..simulate.search_goals import Found, SearchResult
from ..simulate.search_wording import traffic_name

_COLOURS = {"RANDOM": "red", "LEAST_OUTSTANDING_REQUESTS": "blue"}
_PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


def latency_chart(results: Mapping[str, SimulationResult], model: SimulatedEndpoint) -> Chart:
    """Percentiles of the client latency, by strategy, with intervals."""
    lines = []
    for name, result in results.items():
        found = {at: result.percentile(at).scaled(1000) for at in _PERCENTILES}
        told = {at: value for at, value in found.items() if value.tells}
        lines.append(
            Line(
                name,
                [f"p{at:g}" for at in told],
                [each.mean for each in told.values()],
                _COLOURS.get(name, "purple"),
                "bars",
                low=[each.low for each in told.values()],
                high=[each.high for each in told.values()],
            )
        )
    return Chart(
        "latency",
        [Panel("Client latency by percentile", lines, " ms", _target(model, "target at p99"))],
        "names",
        height=280,
    )


def timeline_chart(shape: Shape, result: SimulationResult, model: SimulatedEndpoint) -> Chart:
    """Requests, instances and p99, minute by minute."""
    lines = result.replications[0].timeline
    minutes = [line.end / 60 for line in lines]
    rates = [line.requests / (line.end - line.begin) for line in lines]
    return Chart(
        f"timeline-{shape.name}",
        [
            Panel("Answers a second", [Line("answers", minutes, rates, "grey", "area")]),
            Panel(
                "Instances",
                [
                    Line(
                        "paid",
                        minutes,
                        [line.launched for line in lines],
                        "grey",
                        "steps",
                        dash=True,
                    ),
                    Line("serving", minutes, [line.serving for line in lines], "blue", "steps"),
                ],
            ),
            Panel(
                "Client latency",
                [Line("p99", minutes, [1000 * line.p99 for line in lines], "red")],
                " ms",
                _target(model, "target"),
                logarithmic=True,
            ),
        ],
        title=f"Minutes of {shape.name}: {shape.description}",
        height=150,
    )


def front_chart(result: SearchResult) -> Chart:
    """Cost against the goal's percentile: all that was tried, and the fronts."""
    goal = result.goal
    lines = [*_points(result.steady, result.front, f"steady {readable(goal.tps)} TPS", "blue")]
    if result.over_time:
        lines += _points(result.over_time, result.front_over_time, traffic_name(result), "red")
    return Chart(
        "front",
        [
            Panel(
                f"p{goal.percentile:g} against cost: up and to the right is worse",
                lines,
                " ms",
                [(f"goal: {milliseconds(1000 * goal.seconds, 6)}", 1000 * goal.seconds)],
                logarithmic=True,
            )
        ],
        title="Paid instances on average",
        height=320,
    )


def _points(found: Sequence[Found], front: Sequence[Found], name: str, colour: str) -> list[Line]:
    return [
        Line(
            title,
            [each.cost for each in points],
            [1000 * each.latency.mean for each in points],
            colour,
            kind,
            marks=[mark] * len(points),
            notes=[
                f"{each.candidate}: {each.cost:.2f} instances, {milliseconds(1000 * each.latency.mean, 3)}"
                for each in points
            ],
        )
        for title, points, kind, mark in (
            (name, found, "marks", "○"),
            (f"{name}, front", front, "line", "●"),
        )
    ]


def _target(model: SimulatedEndpoint, name: str) -> list[tuple[str, float]]:
    target = 1000 * (model.latency_target or 0)
    return [(f"{name}: {milliseconds(target, 6)}", target)] if target else []
