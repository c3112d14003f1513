"""What a simulation says: sentences and rows of tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from ..options.alarms import SLOW_BURN_RATE, SlowLimit
from ..options.throughput import counted_instances
from ..plan.traffic_shapes import Shape
from ..report import numbers
from ..report.document import Table
from ..report.numbers import readable
from .assumptions import ModelTarget, SimulatedEndpoint
from .estimates import ROUNDING, Estimate
from .kernels import PER_OCTAVE
from .replication import PERCENTILES
from .simulating import Comparison, SimulationResult

TOO_SHORT = "too short to tell"
_NO_P99_TARGET = "no p99 target"
AT_THE_LIMIT = "at the limit"
LEAST = "LEAST_OUTSTANDING_REQUESTS"
_NEAR_LIMIT = 0.5  # of the workers in use, from which on queues change slowly: our judgement
_GIVES_UP = 60.0  # seconds that SageMaker waits for a container


def milliseconds(value: Estimate) -> str:
    """A time with its interval; in seconds from ten seconds on.

    Of an interval that is wider than the time only its end is told.
    """
    if not value.tells:
        return TOO_SHORT
    if value.is_wide:
        return f"at most {milliseconds(Estimate(value.high, 0.0))}"
    factor, unit = (1, "s") if value.mean >= 10 else (1000, "ms")
    mean, half = factor * value.mean, factor * value.half_width
    if value.is_exact:
        return f"{readable(mean, 3)} {unit}" if mean < 1000 else f"{mean:,.0f} {unit}"
    digits = 0 if half >= 10 or mean >= 100 else 1 if half >= 0.1 else 2
    if half < 0.01:
        digits = min(1 - math.floor(math.log10(half)), 6)
    return (
        f"{mean:,.{digits}f} ± {readable(half, 2)} {unit}"
        if half < 100
        else (f"{mean:,.0f} ± {half:,.0f} {unit}")
    )


def minutes(seconds: Estimate, of_seconds: float = math.inf) -> str:
    """A part of a time in minutes, with its interval as :func:`milliseconds` has it."""
    value = seconds.scaled(1 / 60)
    if value.is_wide:
        return f"at most {readable(min(value.high, of_seconds / 60), 4)}"
    if value.is_exact:
        return readable(value.mean, 4)
    return f"{readable(value.mean, 4)} ± {readable(value.half_width, 2)}"


def percent(value: Estimate) -> str:
    """A relative change with its interval."""
    if not value.tells:
        return TOO_SHORT
    return f"{100 * value.mean:+.1f} ± {100 * value.half_width:.1f} %"


def verdict(p99: Estimate, target: float) -> str:
    """Where a percentile lies against a target.

    Where it is equal to the target as finely as times are counted, more runs would tell no more.
    """
    if not p99.tells:
        return TOO_SHORT
    finest = p99.mean / PER_OCTAVE * (1 + ROUNDING)
    if p99.half_width <= finest and abs(p99.mean - target) <= finest:
        return AT_THE_LIMIT
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


def burn_rate_sentences(limit: SlowLimit | None, result: SimulationResult) -> list[str]:
    """That the calls spend the budget of an objective on slow requests too fast, or may."""
    if limit is None:
        return []
    seconds = limit.milliseconds / 1000
    late = max(_shares_surely_late(result, seconds), default=0.0)
    burn_rate = late / float(limit.budget)
    if burn_rate <= 1:
        return _possible_burn_rate(limit, min(_shares_at_most_late(result, seconds), default=0.0))
    alarm = ": its alarm stays on" if burn_rate > SLOW_BURN_RATE else ""
    return [
        f"At least {readable(100 * late, 2)} % of the calls take longer than "
        f"{numbers.milliseconds(limit.milliseconds, 6)}, which spends the budget of "
        f"alarms.slow_requests {readable(burn_rate, 2)} times too fast{alarm}."
    ]


def _shares_surely_late(result: SimulationResult, seconds: float) -> Iterator[float]:
    """Shares of the calls that take longer than a time, even at the low ends of the intervals."""
    for percentile in PERCENTILES:
        value = result.percentile(percentile)
        if value.tells and value.low > seconds:
            yield 1 - percentile / 100
    target = result.scenario.latency_target
    if target is not None and target >= seconds and result.slow_share.tells:
        yield result.slow_share.low


def _shares_at_most_late(result: SimulationResult, seconds: float) -> Iterator[float]:
    """Shares that are not exceeded by the calls that take longer than a time."""
    for percentile in PERCENTILES:
        value = result.percentile(percentile)
        if value.tells and value.high <= seconds:
            yield 1 - percentile / 100
    target = result.scenario.latency_target
    if target is not None and target <= seconds and result.slow_share.tells:
        yield result.slow_share.high


def _possible_burn_rate(limit: SlowLimit, late: float) -> list[str]:
    """That a share of late calls which may be so large would spend the budget too fast."""
    burn_rate = late / float(limit.budget)
    if burn_rate <= 1:
        return []
    return [
        f"Up to {readable(100 * late, 2)} % of the calls may take longer than "
        f"{numbers.milliseconds(limit.milliseconds, 6)}: the percentiles do not tell more. That would "
        f"spend the budget of alarms.slow_requests up to {readable(burn_rate, 2)} times too fast."
    ]


def with_label(label: str, sentence: str) -> str:
    """A sentence about one of several peaks."""
    return f"{label}: {sentence}" if label else sentence


def _verdict_on(target: ModelTarget, result: SimulationResult) -> str:
    found = verdict_of(target, result)
    if found == "too near to tell":
        return f"too near to the {target} to tell; simulate more replications"
    if found == AT_THE_LIMIT:
        return f"at the limit, the {target}: whatever takes longer is late"
    alone = _of_the_law_alone(target, result) if found == "above" else ""
    return f"{found} the {target}{alone}"


def _of_the_law_alone(target: ModelTarget, result: SimulationResult) -> str:
    """That a request misses a target without any wait, where it does: no fleet is large enough."""
    alone = result.scenario.service.percentile(target.percentile)
    if alone <= target.model:
        return ""
    time = numbers.milliseconds(1000 * alone, 3)
    return f": a request alone takes p{target.percentile:g} {time}, so more instances do not help"


def verdict_of(target: ModelTarget, result: SimulationResult) -> str:
    """Where a result lies against a target; :func:`verdict`, and the late requests where counted."""
    found = verdict(result.percentile(target.percentile), target.model)
    return "above" if found == AT_THE_LIMIT and _is_missed(target, result) else found


def _is_missed(target: ModelTarget, result: SimulationResult) -> bool:
    """Whether more requests were late than a target allows, where that was counted."""
    counted = result.scenario.latency_target == target.model
    return counted and result.slow_share.mean > 1 - target.percentile / 100


def _too_short(result: SimulationResult, percentile: float) -> str:
    """Why a percentile is not told, and how long the runs would have to be."""
    if not result.too_short(percentile):
        return _too_different(result, percentile)
    counted = min(run.requests for run in result.replications)
    needed = result.requests_needed(percentile)
    cause = ""
    if result.utilisation.mean > _NEAR_LIMIT:
        cause = "so near its limit a fleet's queues come and go slowly, and "
    return (
        f"{cause}{counted:,} requests in each "
        f"replication are {TOO_SHORT} p{percentile:g}: it takes {_rounded_up(needed):,} "
        f"(--requests {_rounded_up(needed)})."
    )


def _too_different(result: SimulationResult, percentile: float) -> str:
    """Why a percentile is not told that the replications do not agree on."""
    values = [run.percentiles[percentile] for run in result.replications if run.requests]
    count = len(result.replications)
    if len(values) < count:
        return f"{count - len(values)} of {count} replications answered no request: there is no p{percentile:g}."
    low, high = (milliseconds(Estimate(value, 0.0)) for value in (min(values), max(values)))
    return (
        f"{count} replications are too few to tell p{percentile:g}, which was {low} in one and "
        f"{high} in another: give more (--replications)."
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
    model: SimulatedEndpoint,
    found: Mapping[tuple[float, float], Estimate],
    requests: int,
    label: str = "",
) -> list[str]:
    """What follows if a call takes so long, where nobody measured it; ``requests`` would tell.

    ``label`` names the peak, where there are several.
    """
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
    held = [seconds for seconds, verdict in verdicts.items() if verdict <= {"within", AT_THE_LIMIT}]
    unknown = [
        seconds
        for seconds, verdict in verdicts.items()
        if "above" not in verdict and seconds not in held
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
        *(with_label(label, sentence) for sentence in said),
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
    load = f"At {readable(model.peak_tps)} requests per second over {counted_instances(model.instances)}"
    if not change.tells:
        short = [result for result in both.results.values() if result.too_short(99.0)]
        if short:
            return f"{load}: {_too_short(short[0], 99.0)}"
        count = len(both.results[LEAST].replications)
        return (
            f"{load}: {count} replications are too few to tell how p99 changes: give more "
            "(--replications)."
        )
    head = f"{load} {LEAST} "
    if change.high < -ROUNDING:
        return head + f"cuts p99 by {percent(Estimate(-change.mean, change.half_width))[1:]}."
    if change.low > ROUNDING:
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
    """What happened under a shape; first of all whether its counts contradict what is simulated."""
    head = ""
    if shape.warning:
        head = "If callers were independent, which the counts contradict: "
    elif shape.has_mute_counts:
        head = "If callers are independent, which these counts do not tell: "
    p99 = result.percentile(99.0)
    hours = f"{readable(result.instance_hours.mean, 4)} instance hours"
    if p99.tells:
        within = f"99 of 100 requests within {milliseconds(p99)}"
        text = f"{head}{shape.name}: {within}{_of_one_recording(shape)}, {hours}"
    else:
        text = f"{head}{shape.name}: {_too_short(result, 99.0).rstrip('.')}; {hours}"
    if result.failed:
        text += f", {result.failed / len(result.replications):,.0f} requests failed"
    over = result.time_over_target
    if over is not None:
        counted = ", failed calls counted," if result.failed else ""
        target = numbers.milliseconds(1000 * (model.latency_target or 0), 6)
        text += (
            f"; p99{counted} above {target} in {minutes(over, shape.seconds)} of {_whole_minutes(shape)}"
            if over.mean
            else _in_every_minute(target, result)
        )
    if over is None and model.targets:
        text += "; the target is not judged over time, where only one for p99 is"
    if gives_up(result):
        text += (
            "; SageMaker gives up after 60 s, so these would be errors, and the queue shorter "
            "than simulated"
        )
    return text + "."


def _in_every_minute(target: str, result: SimulationResult) -> str:
    """That no minute was late; nothing where a replication answered no request at all."""
    return f"; p99 within {target} in every minute" if result.answered else ""


def _whole_minutes(shape: Shape) -> str:
    """How long a shape lasts; of less than a minute in seconds."""
    if shape.seconds < 60:
        return f"{readable(shape.seconds / 60, 2)} minutes"
    return f"{shape.seconds / 60:,.0f} minutes"


def _of_one_recording(shape: Shape) -> str:
    """That a recording of single requests is one sample, which the interval leaves out."""
    return " in this one recording (± is of service times alone)" if shape.times else ""


def gives_up(result: SimulationResult) -> bool:
    """Whether calls wait for longer than SageMaker lets them, which the simulation does not end."""
    return result.percentile(99.0).mean > _GIVES_UP


def shape_row(shape: Shape, result: SimulationResult) -> dict[str, str]:
    """One shape."""
    serving = [line.serving for run in result.replications for line in run.timeline]
    over = result.time_over_target
    failed = result.failed / len(result.replications)
    late = result.slow_share
    judged = result.scenario.latency_target is not None
    share = f"{late.mean:.2%}" if late.tells else TOO_SHORT
    return {
        "Traffic": shape.name,
        "p99": milliseconds(result.percentile(99.0)),
        "Late": share if judged else _NO_P99_TARGET,
        "Minutes over target": minutes(over, shape.seconds) if over else _NO_P99_TARGET,
        "Failed": "unknown" if gives_up(result) else f"{failed:,.0f}",
        "Instances": f"{min(serving)} to {max(serving)}",
        "Instance hours": f"{result.instance_hours.mean:,.2f}",
    }
