"""What a simulation says: sentences, and rows of tables, as text."""

from __future__ import annotations

from collections.abc import Mapping

from .assumptions import SimulatedEndpoint
from .estimates import Estimate
from .simulating import Comparison, SimulationResult
from .traffic import Shape

LEAST = "LEAST_OUTSTANDING_REQUESTS"
_GIVES_UP = 60.0  # seconds that SageMaker waits for a container


def milliseconds(value: Estimate) -> str:
    """A time with its interval; in seconds from ten seconds on.

    Examples
    --------
    >>> milliseconds(Estimate(0.19732, 0.0012)), milliseconds(Estimate(612.5, 12))
    ('197 ± 1.2 ms', '612 ± 12 s')
    """
    factor, unit = (1, "s") if value.mean >= 10 else (1000, "ms")
    mean, half = factor * value.mean, factor * value.half_width
    if half == 0:
        return f"{mean:,.3g} {unit}" if mean < 1000 else f"{mean:,.0f} {unit}"
    digits = 0 if half >= 10 or mean >= 100 else 1 if half >= 0.1 else 2
    return (
        f"{mean:,.{digits}f} ± {half:,.2g} {unit}"
        if half < 100
        else (f"{mean:,.0f} ± {half:,.0f} {unit}")
    )


def minutes(seconds: Estimate) -> str:
    """A time in minutes, with its interval.

    Examples
    --------
    >>> minutes(Estimate(1230.0, 45.0)), minutes(Estimate(1200.0, 0.0))
    ('20.5 ± 0.75', '20')
    """
    value = seconds.scaled(1 / 60)
    return f"{value.mean:.4g}" + (f" ± {value.half_width:.2g}" if value.half_width else "")


def percent(value: Estimate) -> str:
    """A relative change with its interval."""
    return f"{100 * value.mean:+.1f} ± {100 * value.half_width:.1f} %"


def steady_sentence(model: SimulatedEndpoint, result: SimulationResult) -> str:
    """What the fleet does at the peak."""
    p99 = result.percentile(99.0)
    text = (
        f"At {model.peak_tps:,g} requests per second {model.instances} instances with "
        f"{model.routing} answer 99 of 100 within {milliseconds(p99)}, "
        f"{result.utilisation.mean:.0%} of their workers in use"
    )
    if model.latency_target is None:
        return text + "."
    target = f"{1000 * model.latency_target:g} ms"
    if p99.high < model.latency_target:
        return f"{text}: within the target of {target}."
    if p99.low > model.latency_target:
        return f"{text}: above the target of {target}."
    return f"{text}: too near to the target of {target} to tell; simulate more replications."


def steady_table(results: Mapping[str, SimulationResult]) -> tuple[list[str], list[list[str]]]:
    """Fleets side by side."""
    columns = [_column(result) for result in results.values()]
    rows = [[head, *(column[head] for column in columns)] for head in columns[0]]
    return ["", *results], rows


def _column(result: SimulationResult) -> dict[str, str]:
    cells = {"Mean latency": milliseconds(result.mean)}
    cells |= {
        f"p{at:g}": milliseconds(result.percentile(at)) for at in (50.0, 90.0, 95.0, 99.0, 99.9)
    }
    cells |= {
        "Mean wait in line": milliseconds(result.waiting),
        "Workers in use": f"{result.utilisation.mean:.1%}",
        "Requests in flight": f"{result.estimate(lambda run: run.in_system).mean:,.1f}",
        "TPS per instance": f"{result.throughput.mean:,.4g}",
    }
    if result.scenario.latency_target is not None:
        cells["Later than the target"] = f"{result.slow_share.mean:.2%}"
    return cells


def comparison_sentence(model: SimulatedEndpoint, both: Comparison) -> str:
    """Which strategy is quicker."""
    change = both.percentile_change(LEAST, 99.0)
    head = f"At {model.peak_tps:,g} requests per second over {model.instances} instances {LEAST} "
    if change.high < 0:
        return head + f"cuts p99 by {percent(Estimate(-change.mean, change.half_width))[1:]}."
    if change.low > 0:
        return head + f"lengthens p99 by {percent(change)[1:]}."
    return head + f"and RANDOM have the same p99, as far as can be told ({percent(change)})."


def change_rows(both: Comparison) -> list[list[str]]:
    """Paired differences."""
    return [
        ["Mean", percent(both.change(LEAST, lambda run: run.mean))],
        *(
            [f"p{at:g}", percent(both.percentile_change(LEAST, at))]
            for at in (50.0, 95.0, 99.0, 99.9)
        ),
        ["TPS per instance", percent(both.throughput_change(LEAST))],
    ]


def shape_sentence(model: SimulatedEndpoint, shape: Shape, result: SimulationResult) -> str:
    """What happened under a shape."""
    text = (
        f"{shape.name}: 99 of 100 requests within {milliseconds(result.percentile(99.0))}, "
        f"{result.instance_hours.mean:.4g} instance hours"
    )
    if result.failed:
        text += f", {result.failed / len(result.replications):,.0f} requests failed"
    over = result.time_over_target
    if over is not None:
        counted = ", failed calls counted," if result.failed else ""
        text += (
            f"; p99{counted} above the target in {minutes(over)} of "
            f"{shape.seconds / 60:,.0f} minutes"
            if over.mean
            else "; p99 within the target in every minute"
        )
    if result.percentile(99.0).mean > _GIVES_UP:
        text += (
            "; SageMaker gives up after 60 s, so these would be errors, and the queue shorter "
            "than simulated"
        )
    return text + "."


def shape_titles() -> list[str]:
    """Heads of the table of shapes."""
    return [
        "Traffic",
        "p50",
        "p99",
        "Late",
        "Minutes over target",
        "Failed",
        "Instances",
        "Instance hours",
    ]


def shape_row(shape: Shape, result: SimulationResult) -> list[str]:
    """One shape."""
    serving = [line.serving for run in result.replications for line in run.timeline]
    over = result.time_over_target
    return [
        shape.name,
        milliseconds(result.percentile(50.0)),
        milliseconds(result.percentile(99.0)),
        f"{result.slow_share.mean:.2%}",
        minutes(over) if over else "no target",
        f"{result.failed / len(result.replications):,.0f}",
        f"{min(serving)} to {max(serving)}",
        f"{result.instance_hours.mean:,.2f}",
    ]
