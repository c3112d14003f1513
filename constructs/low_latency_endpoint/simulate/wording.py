"""What a simulation says: sentences and rows of tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from ..options.alarms import SLOW_BURN_RATE, SlowLimit
from ..options.throughput import counted_instances
from ..plan.traffic_shapes import Shape
from ..report import numbers
from ..report.document import Table
from ..report.numbers import readable
from .assumptions import ModelTarget, SimulatedEndpoint
from .estimates import ROUNDING, Estimate
from .kernels import PER_OCTAVE
from .replication import PERCENTILES, RANKS
from .service_laws import ServiceLaw, percentile_name
from .simulating import Comparison, SimulationResult

TOO_SHORT = "too short to tell"
_NO_P99_TARGET = "no p99 target"
AT_THE_LIMIT = "at the limit"
LEAST = "LEAST_OUTSTANDING_REQUESTS"
_NEAR_LIMIT = 0.5  # of the workers in use, from which on queues change slowly: our judgement
_MEAN_RESOLUTION = 1e-6  # times are differences of moments, and rounded
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
    if half >= 100:
        return f"{mean:,.0f} ± {half:,.0f} {unit}"
    return f"{mean:,.{_decimals(mean, half)}f} ± {readable(half, 2)} {unit}"


def _decimals(mean: float, half_width: float) -> int:
    """Return the decimals of a value that its interval does not make meaningless."""
    if half_width < 0.01:
        return min(1 - math.floor(math.log10(half_width)), 6)
    if half_width >= 10 or mean >= 100:
        return 0
    return 1 if half_width >= 0.1 else 2


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


def verdict(value: Estimate, target: float, resolution: float = 1 / PER_OCTAVE) -> str:
    """Where a percentile, or a mean, lies against a target.

    Where it is equal to the target as finely as times are counted, more runs would tell no more.
    ``resolution`` is that fineness, as a share of the value.
    """
    if not value.tells:
        return TOO_SHORT
    finest = value.mean * resolution * (1 + ROUNDING)
    if value.half_width <= finest and abs(value.mean - target) <= finest:
        return AT_THE_LIMIT
    if value.high < target:
        return "within"
    return "above" if value.low > target else "too near to tell"


def steady_sentences(model: SimulatedEndpoint, result: SimulationResult) -> list[str]:
    """What the fleet does at the peak, and where that lies against each target."""
    p99 = result.percentile(99.0)
    load = (
        f"{counted_instances(model.instances)} with {model.routing} at {readable(model.peak_tps)} requests "
        "per second"
    )
    used = f"{result.utilisation.mean:.0%} of the workers in use"
    if not p99.tells:
        others = [target for target in model.targets if target.percentile != 99.0]
        return [
            f"{load}: {used}. {_too_short(result, 99.0).capitalize()}",
            *(_target_sentence(target, result) for target in others),
        ]
    first = f"{load}: 99 of 100 within {milliseconds(p99)}, {used}."
    if len(model.targets) == 1 and model.latency_target is not None:
        return [f"{first} That is {_verdict_on(model.targets[0], result)}."]
    return [first, *(_target_sentence(target, result) for target in model.targets)]


def _target_sentence(target: ModelTarget, result: SimulationResult) -> str:
    """Where a result lies against one of several targets, by the target's name."""
    value = simulated_value(target, result)
    name = "The average" if target.percentile is None else target.name
    if not value.tells:
        return f"{name}: {_too_short(result, target.percentile)}"
    return f"{name} is {milliseconds(value)}: {_verdict_on(target, result)}."


def simulated_value(target: ModelTarget, result: SimulationResult) -> Estimate:
    """The percentile, or the mean, that a target is for, in seconds."""
    return result.mean if target.percentile is None else result.percentile(target.percentile)


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
    for rank in RANKS:
        value = result.at_rank(rank)
        if value.tells and value.low > seconds:
            yield 1 - rank / 100
    target = result.scenario.latency_target
    if target is not None and target >= seconds and result.slow_share.tells:
        yield result.slow_share.low
    yield _share_late_alone(result.scenario.service, seconds)


def _share_late_alone(law: ServiceLaw, seconds: float) -> float:
    """The share of the calls that take longer than a time without any wait."""
    low, high = 0.0, 100.0  # percentiles below the time, and above it
    for _ in range(50):
        middle = (low + high) / 2
        if law.percentile(middle) > seconds:
            high = middle
        else:
            low = middle
    return 1 - high / 100


def _shares_at_most_late(result: SimulationResult, seconds: float) -> Iterator[float]:
    """Shares that are not exceeded by the calls that take longer than a time."""
    for rank in RANKS:
        value = result.at_rank(rank)
        if value.tells and value.high <= seconds:
            yield 1 - rank / 100
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
    law = result.scenario.service
    percentile = target.percentile
    alone = law.mean_seconds if percentile is None else law.percentile(percentile)
    if alone <= target.model:
        return ""
    time = numbers.milliseconds(1000 * alone, 3)
    taken = f"{time} on average" if percentile is None else f"{target.name} {time}"
    return f": a request alone takes {taken}, so more instances do not help"


def verdict_of(target: ModelTarget, result: SimulationResult) -> str:
    """Where a result lies against a target; :func:`verdict`, and the late requests where counted."""
    found = verdict_on_value(target, simulated_value(target, result))
    return "above" if found == AT_THE_LIMIT and _is_missed(target, result) else found


def verdict_on_value(target: ModelTarget, value: Estimate) -> str:
    """:func:`verdict` on the percentile, or the mean, that a target is for."""
    if target.percentile is None:
        return verdict(value, target.model, _MEAN_RESOLUTION)
    return verdict(value, target.model)


def _is_missed(target: ModelTarget, result: SimulationResult) -> bool:
    """Whether more requests were late than a target allows, where that was counted."""
    if target.percentile is None or result.scenario.latency_target != target.model:
        return False
    return result.slow_share.mean > 1 - target.percentile / 100


def _too_short(result: SimulationResult, percentile: float | None) -> str:
    """Why a percentile, or the average, is not told, and how long the runs would have to be."""
    if not result.too_short(percentile):
        return _too_different(result, percentile)
    counted = min(run.requests for run in result.replications)
    needed = result.requests_needed(percentile)
    cause = ""
    if result.utilisation.mean > _NEAR_LIMIT:
        cause = "so near its limit a fleet's queues come and go slowly, and "
    return (
        f"{cause}{counted:,} requests in each "
        f"replication are {TOO_SHORT} {_told(percentile)}: it takes {_rounded_up(needed):,} "
        f"(--requests {_rounded_up(needed)})."
    )


def _too_different(result: SimulationResult, percentile: float | None) -> str:
    """Why a percentile, or the average, is not told that the replications do not agree on."""
    answered = [run for run in result.replications if run.requests]
    count = len(result.replications)
    told = _told(percentile)
    if len(answered) < count:
        return f"{count - len(answered)} of {count} replications answered no request: there is no {told}."
    values = [run.mean if percentile is None else run.percentiles[percentile] for run in answered]
    low = milliseconds(Estimate(min(values), 0.0))
    high = milliseconds(Estimate(max(values), 0.0))
    return (
        f"{count} replications are too few to tell {told}, which was {low} in one and "
        f"{high} in another: give more (--replications)."
    )


def _told(percentile: float | None) -> str:
    """A percentile, or the average, within a sentence."""
    return "an average" if percentile is None else percentile_name(percentile)


def _rounded_up(requests: int) -> int:
    """Two digits and zeros."""
    unit = int(10 ** max(0, len(str(requests)) - 2))
    return -(-requests // unit) * unit


def steady_table(
    results: Mapping[str, SimulationResult], targets: Sequence[ModelTarget] = ()
) -> Table:
    """Fleets side by side, each with its verdicts on the targets."""
    columns = [_column(result, targets) for result in results.values()]
    rows = [[head, *(column[head] for column in columns)] for head in columns[0]]
    return Table(["", *results], rows)


def _column(result: SimulationResult, targets: Sequence[ModelTarget]) -> dict[str, str]:
    cells = {"Mean latency": milliseconds(result.mean)}
    cells |= {percentile_name(at): milliseconds(result.percentile(at)) for at in PERCENTILES}
    cells |= {_row_head(target): verdict_of(target, result) for target in targets}
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


def _row_head(target: ModelTarget) -> str:
    """The head of a row with verdicts on a target."""
    name = "Mean" if target.percentile is None else target.name
    return f"{name} against {numbers.milliseconds(1000 * target.model, 6)}"


def conditional_sentences(
    model: SimulatedEndpoint,
    found: Mapping[ModelTarget, Mapping[tuple[float, float], Estimate]],
    requests: int,
    label: str = "",
) -> list[str]:
    """What follows if a call takes so long, where nobody measured it; ``requests`` would tell.

    ``found`` has, for each target, the values by mean time and variation. ``label`` names the peak,
    where there are several.
    """
    first = (
        "Nobody has measured how long a call takes on one of these instances, so there is no "
        "verdict, only what follows if it takes so long."
    )
    if not found:
        return [first]
    said = [
        sentence
        for target, values in found.items()
        for sentence in _possible_times(target, values, requests)
    ]
    return [
        first,
        *(with_label(label, sentence) for sentence in said),
        "Measure it: low-latency load-test --find-limit, then --from-load-test; or state it: "
        "--service-time.",
    ]


def _possible_times(
    target: ModelTarget, values: Mapping[tuple[float, float], Estimate], requests: int
) -> Iterator[str]:
    """Which of the mean times tried keep one target, and which the runs cannot tell."""
    verdicts: dict[float, set[str]] = {}
    for seconds, variation in sorted(values):
        said = verdict_on_value(target, values[seconds, variation])
        verdicts.setdefault(seconds, set()).add(said)
    held = [seconds for seconds, said in verdicts.items() if said <= {"within", AT_THE_LIMIT}]
    missed = [seconds for seconds, said in verdicts.items() if "above" in said]
    unknown = [seconds for seconds in verdicts if seconds not in [*held, *missed]]
    kept = f"{_definite(target)} within the {target}"
    if held:
        yield (
            f"Up to {numbers.milliseconds(1000 * max(held), 3)} on average, of those tried, keep "
            f"{kept}, whichever variation is tried."
        )
    elif not unknown:
        yield f"None of the times tried keeps {kept}, whichever variation is tried."
    if unknown:
        times = ", ".join(numbers.milliseconds(1000 * seconds, 3) for seconds in unknown)
        yield (
            f"Too few requests to tell whether a mean of {times} keeps {kept}: give "
            f"--requests {_rounded_up(requests)}, or more --replications."
        )


def _definite(target: ModelTarget) -> str:
    """A target's name within a sentence."""
    return "the average" if target.percentile is None else target.name


def conditional_table(
    found: Mapping[str, Mapping[tuple[float, float], Estimate]], model: SimulatedEndpoint
) -> Table:
    """Latencies by how long a call takes, a column for each variation of each, by name."""
    tried = sorted({pair for values in found.values() for pair in values})
    times = sorted({seconds for seconds, _ in tried})
    first_variation = min(variation for _, variation in tried)
    rows = []
    for seconds in times:
        at_once = model.taking(seconds, first_variation).concurrency
        row = {"A call takes": numbers.milliseconds(1000 * seconds, 3), "At once": str(at_once)}
        for name, values in found.items():
            row |= {
                f"{name} (CV {readable(variation)})": milliseconds(values[seconds, variation])
                for own, variation in tried
                if own == seconds
            }
        rows.append(row)
    return Table.of(rows)


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
    changes = {
        percentile_name(at): both.percentile_change(LEAST, at) for at in (50.0, 95.0, 99.0, 99.9)
    }
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
    if others := not_judged_over_time(model.targets):
        text += f"; not judged over time, where only a target for p99 is: {', '.join(others)}"
    if gives_up(result):
        text += (
            "; SageMaker gives up after 60 s, so these would be errors, and the queue shorter "
            "than simulated"
        )
    return text + "."


def not_judged_over_time(targets: Sequence[ModelTarget]) -> list[str]:
    """Names of the targets without a verdict over time: minutes are counted at p99 alone."""
    return [target.name for target in targets if target.percentile != 99.0]


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
