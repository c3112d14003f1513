"""What a simulation and a search say: sentences, rows of tables and data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..options.throughput import HELD_SHARE, counted_instances
from ..plan.traffic_shapes import Shape
from ..report import numbers
from ..report.document import Table
from ..report.numbers import readable
from .assumptions import ModelTarget, SimulatedEndpoint
from .estimates import Estimate
from .search_goals import NEAR, SHORT, Found, Goal, SearchResult
from .simulating import Comparison, SimulationResult

TOO_SHORT = "too short to tell"
LEAST = "LEAST_OUTSTANDING_REQUESTS"
_GIVES_UP = 60.0  # seconds that SageMaker waits for a container


def milliseconds(value: Estimate) -> str:
    """A time with its interval; in seconds from ten seconds on."""
    if not value.tells:
        return TOO_SHORT
    factor, unit = (1, "s") if value.mean >= 10 else (1000, "ms")
    mean, half = factor * value.mean, factor * value.half_width
    if half == 0:
        return f"{readable(mean, 3)} {unit}" if mean < 1000 else f"{mean:,.0f} {unit}"
    digits = 0 if half >= 10 or mean >= 100 else 1 if half >= 0.1 else 2
    return (
        f"{mean:,.{digits}f} ± {readable(half, 2)} {unit}"
        if half < 100
        else (f"{mean:,.0f} ± {half:,.0f} {unit}")
    )


def minutes(seconds: Estimate) -> str:
    """A time in minutes, with its interval."""
    value = seconds.scaled(1 / 60)
    return readable(value.mean, 4) + (
        f" ± {readable(value.half_width, 2)}" if value.half_width else ""
    )


def percent(value: Estimate) -> str:
    """A relative change with its interval."""
    if not value.tells:
        return TOO_SHORT
    return f"{100 * value.mean:+.1f} ± {100 * value.half_width:.1f} %"


def verdict(p99: Estimate, target: float | None) -> str | None:
    """Where a p99 lies against a target; ``None`` without one."""
    if target is None:
        return None
    if not p99.tells:
        return TOO_SHORT
    if p99.high < target:
        return "within"
    return "above" if p99.low > target else "too near to tell"


def steady_sentences(model: SimulatedEndpoint, result: SimulationResult) -> list[str]:
    """What the fleet does at the peak, and where that lies against each target."""
    p99 = result.percentile(99.0)
    head = (
        f"{counted_instances(model.instances)} with {model.routing} at {readable(model.peak_tps)} requests "
        "per second: "
    )
    used = f"{result.utilisation.mean:.0%} of the workers in use"
    if not p99.tells:
        return [f"{head}{used}. {_too_short(result, 99.0).capitalize()}"]
    text = f"{head}99 of 100 within {milliseconds(p99)}, {used}"
    verdicts = {target: _verdict_on(target, result) for target in model.targets}
    if len(model.targets) == 1 and model.latency_target is not None:
        return [f"{text}. That is {next(iter(verdicts.values()))}."]
    return [
        f"{text}.",
        *(
            f"p{each.percentile:g} is {milliseconds(result.percentile(each.percentile))}: {found}."
            if result.percentile(each.percentile).tells
            else f"p{each.percentile:g}: {_too_short(result, each.percentile)}"
            for each, found in verdicts.items()
        ),
    ]


def _verdict_on(target: ModelTarget, result: SimulationResult) -> str:
    found = verdict(result.percentile(target.percentile), target.model)
    if found == "too near to tell":
        return f"too near to the {target} to tell; simulate more replications"
    return f"{found} the {target}"


def _too_short(result: SimulationResult, percentile: float) -> str:
    """How long the runs would have to be."""
    counted = min(run.requests for run in result.replications)
    needed = result.requests_needed(percentile)
    return (
        f"so near its limit a fleet's queues come and go slowly, and {counted:,} requests in each "
        f"replication are {TOO_SHORT} p{percentile:g}: it takes {_rounded_up(needed):,} "
        f"(--requests {_rounded_up(needed)})."
    )


def _rounded_up(requests: int) -> int:
    """Two digits and zeros."""
    unit = int(10 ** max(0, len(str(requests)) - 2))
    return -(-requests // unit) * unit


def steady_table(results: Mapping[str, SimulationResult]) -> Table:
    """Fleets side by side."""
    columns = [_column(result) for result in results.values()]
    rows = [[head, *(column[head] for column in columns)] for head in columns[0]]
    return Table(["", *results], rows)


def _column(result: SimulationResult) -> dict[str, str]:
    cells = {"Mean latency": milliseconds(result.mean)}
    cells |= {
        f"p{at:g}": milliseconds(result.percentile(at)) for at in (50.0, 90.0, 95.0, 99.0, 99.9)
    }
    cells |= {
        "Mean wait in line": milliseconds(result.waiting),
        "Workers in use": f"{result.utilisation.mean:.1%}",
        "Requests in flight": f"{result.estimate(lambda run: run.in_system).mean:,.1f}",
        "TPS per instance": readable(result.throughput.mean, 4),
    }
    if result.scenario.latency_target is not None:
        late = result.slow_share
        cells[f"Later than {numbers.milliseconds(1000 * result.scenario.latency_target, 6)}"] = (
            f"{late.mean:.2%}" if late.tells else TOO_SHORT
        )
    return cells


def conditional_sentences(
    model: SimulatedEndpoint, found: Mapping[tuple[float, float], Estimate], requests: int
) -> list[str]:
    """What follows if a call takes so long, where nobody measured it; ``requests`` would tell."""
    target = next((target for target in model.targets if target.percentile == 99.0), None)
    first = (
        "Nobody has measured how long a call takes on one of these instances, so there is no "
        "verdict, only what follows if it takes so long."
    )
    if target is None:
        return [first]
    verdicts = {
        seconds: {verdict(each, target.model) for (own, _), each in found.items() if own == seconds}
        for seconds, _ in sorted(found)
    }
    held = [seconds for seconds, verdict in verdicts.items() if verdict == {"within"}]
    unknown = [
        s for s, verdict in verdicts.items() if "above" not in verdict and verdict != {"within"}
    ]
    said = []
    if held:
        said.append(
            f"Up to {numbers.milliseconds(1000 * max(held), 3)} on average, of those tried, keep p99 within the "
            f"{target}, whichever variation is tried."
        )
    elif not unknown:
        said.append(
            f"None of the times tried keeps p99 within the {target}, whichever variation is tried."
        )
    if unknown:
        times = ", ".join(f"{numbers.milliseconds(1000 * seconds, 3)}" for seconds in unknown)
        said.append(
            f"Too few requests to tell whether a mean of {times} keeps p99 within the {target}: give "
            f"--requests {_rounded_up(requests)}, or more --replications."
        )
    return [
        first,
        *said,
        "Measure it: low-latency load-test --find-limit, then --from-load-test; or state it: "
        "--service-time.",
    ]


def conditional_table(
    found: Mapping[tuple[float, float], Estimate], model: SimulatedEndpoint
) -> Table:
    """p99 by how long a call takes, a column for each variation."""
    times, variations = (sorted(set(each)) for each in zip(*found, strict=True))
    return Table.of(
        [
            {
                "A call takes": numbers.milliseconds(1000 * seconds, 3),
                "At once": str(model.taking(seconds, variations[0]).concurrency),
                **{
                    f"p99 (CV {readable(each)})": milliseconds(found[seconds, each])
                    for each in variations
                },
            }
            for seconds in times
        ]
    )


def comparison_sentence(model: SimulatedEndpoint, both: Comparison) -> str:
    """Which strategy is quicker."""
    change = both.percentile_change(LEAST, 99.0)
    if not change.tells:
        return (
            f"At {readable(model.peak_tps)} requests per second over {counted_instances(model.instances)}: "
            + _too_short(both.results["RANDOM"], 99.0)
        )
    head = f"At {readable(model.peak_tps)} requests per second over {counted_instances(model.instances)} {LEAST} "
    if change.high < 0:
        return head + f"cuts p99 by {percent(Estimate(-change.mean, change.half_width))[1:]}."
    if change.low > 0:
        return head + f"lengthens p99 by {percent(change)[1:]}."
    return head + f"and RANDOM have the same p99, as far as can be told ({percent(change)})."


def change_table(both: Comparison) -> Table:
    """Paired differences."""
    changes = {f"p{at:g}": both.percentile_change(LEAST, at) for at in (50.0, 95.0, 99.0, 99.9)}
    changes = {"Mean": both.change(LEAST, lambda run: run.mean), **changes}
    changes["TPS per instance"] = both.throughput_change(LEAST)
    heads = [f"{LEAST} against RANDOM, the same requests", "Change"]
    return Table(heads, [[name, percent(change)] for name, change in changes.items()])


def shape_sentence(model: SimulatedEndpoint, shape: Shape, result: SimulationResult) -> str:
    """What happened under a shape."""
    text = (
        f"{shape.name}: 99 of 100 requests within {milliseconds(result.percentile(99.0))}, "
        f"{readable(result.instance_hours.mean, 4)} instance hours"
    )
    if result.failed:
        text += f", {result.failed / len(result.replications):,.0f} requests failed"
    over = result.time_over_target
    if over is not None:
        counted = ", failed calls counted," if result.failed else ""
        target = numbers.milliseconds(1000 * (model.latency_target or 0), 6)
        text += (
            f"; p99{counted} above {target} in {minutes(over)} of {shape.seconds / 60:,.0f} minutes"
            if over.mean
            else f"; p99 within {target} in every minute"
        )
    if gives_up(result):
        text += (
            "; SageMaker gives up after 60 s, so these would be errors, and the queue shorter "
            "than simulated"
        )
    return text + "."


def gives_up(result: SimulationResult) -> bool:
    """Whether calls wait for longer than SageMaker lets them, which the simulation does not end."""
    return result.percentile(99.0).mean > _GIVES_UP


def shape_row(shape: Shape, result: SimulationResult) -> dict[str, str]:
    """One shape."""
    serving = [line.serving for run in result.replications for line in run.timeline]
    over, failed = result.time_over_target, result.failed / len(result.replications)
    return {
        "Traffic": shape.name,
        "p99": milliseconds(result.percentile(99.0)),
        "Late": f"{result.slow_share.mean:.2%}",
        "Minutes over target": minutes(over) if over else "no target",
        "Failed": "unknown" if gives_up(result) else f"{failed:,.0f}",
        "Instances": f"{min(serving)} to {max(serving)}",
        "Instance hours": f"{result.instance_hours.mean:,.2f}",
    }


def traffic_name(result: SearchResult) -> str:
    """The shapes in words."""
    names = [f"'{shape.name}'" for shape in result.shapes]
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
    """The reserve of every fleet tried, and how to ask for another."""
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
    steady = [point for point in result.points if not point.shape]
    tables = [Table.of(_rows(steady, 1, cost), title)]
    if result.over_time:
        what = "the worst latency and the mean cost" if several else result.shapes[0].description
        title = (
            f"Pareto front on {traffic_name(result)}: {what} "
            f"({result.shape_replications} replications); each point: instances, routing, safety "
            "factor, scale-out cooldown"
        )
        moving = [point for point in result.points if point.shape]
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
        candidate = each.candidate
        return {
            "result": numbers.get(id(each)),
            "routing": candidate.routing,
            "min_instances": candidate.minimum,
            "max_instances": candidate.maximum,
            "safety_factor": candidate.safety_factor,
            "scale_out_cooldown": candidate.scale_out_cooldown,
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
        "shapes": [shape.name for shape in result.shapes],
        "best_on_shapes": point(result.best_over_time),
        "front_on_shapes": [point(each) for each in result.front_over_time],
    }
