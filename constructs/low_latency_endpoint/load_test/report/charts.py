"""The page's charts: throughput and latency, everything over time, percentiles, send lag."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from ...report.charts import Chart, Line, Panel, nines
from ...report.colours import PALETTE
from ...report.numbers import milliseconds, readable
from ..engine.measurement import TOKEN_HISTOGRAMS
from ..engine.steps import Progress, finite
from ..search.bounds import quantile_bounds
from ..search.judging import histogram_of
from ..search.measured_steps import MeasuredStep
from ..search.result_file import LoadTestReport

_MARKS = {"held": "●", "unclear": "○", "broken": "✕", "client-bound": "◆"}
#: What a chart of whole answers shows, and one of tokens.
_WHOLE = ("latency", "first_byte")
_WHOLE_LINES = (
    ("p99", "latency", 0.99, "red"),
    ("p90", "latency", 0.9, "orange"),
    ("p50", "latency", 0.5, "blue"),
)
_TOKEN_LINES = (
    ("first token p95", "first_token", 0.95, "green"),
    ("between tokens p95", "inter_token", 0.95, "orange"),
)
_TOKEN_PARTS = {"First token": ("first_token",), "Between tokens": ("inter_token", "per_token")}
_LINES = 8  # lines of one chart that can still be told apart


def throughput_and_latency(report: LoadTestReport) -> Chart:
    """Each step's offered rate and its latencies with their intervals, the target and the limit."""
    steps = sorted(_answered(report), key=_load)
    rates = [_load(each) for each in steps]
    lines = []
    of_tokens = _of_tokens(steps)
    for name, part, quantile, colour in _TOKEN_LINES if of_tokens else _WHOLE_LINES:
        found = [(each, each.result.histogram(part)) for each in steps]
        bounds = [quantile_bounds(of, quantile, samples=_samples(each, part)) for each, of in found]
        lines.append(
            Line(
                name,
                rates,
                [1000 * each.value for each in bounds],
                colour,
                marks=[_MARKS[each.judgement.outcome] for each in steps],
                notes=[
                    f"{each.result.step.name}: {each.judgement.outcome}, "
                    f"{readable(each.result.rate, 4)} answered a second, {name} {milliseconds(1000 * bound.value, 4)}"
                    for each, bound in zip(steps, bounds, strict=True)
                ],
                low=[1000 * each.low for each in bounds],
                high=[
                    1000 * min(bound.high, of.max)
                    for bound, (_, of) in zip(bounds, found, strict=True)
                ],
            )
        )
    limits = _targets(report, TOKEN_HISTOGRAMS if of_tokens else _WHOLE, " target")
    # A step far over the limit must not press the others flat.
    highest = max(
        [value for _, value in limits] + [high for line in lines for high in line.high], default=0.0
    )
    lowest = min((1000 * each.result.histogram(part).percentile(50) for each in steps), default=0.0)
    limit = report.run.limit
    title = "First token, and between tokens" if of_tokens else "Latency"
    return Chart(
        "throughput",
        [Panel(title, lines, " ms", limits, logarithmic=highest > 30 * lowest)],
        title="Requests a second (of waiting callers: answers)",
        height=320,
        events=[(limit.rate, "green", f"limit {readable(limit.rate, 4)}")]
        if limit is not None and limit.rate
        else [],
    )


def over_time(report: LoadTestReport) -> Chart:
    """The client's seconds and CloudWatch's minutes on one time axis, the steps shaded."""
    steps = [each for each in report.run.steps if each.timeline]
    panels = [*_client_panels(report, steps), *_cloudwatch_panels(report)]
    return Chart(
        "time",
        [panel for panel in panels if panel.lines],
        "time",
        spans=[
            (
                _time(each.result.started_at - each.result.step.settle_seconds),
                _time(each.result.ended_at),
                "blue" if number % 2 else "grey",
            )
            for number, each in enumerate(steps)
        ],
    )


def percentiles(report: LoadTestReport) -> Chart:
    """Latency by percentile, each further nine as wide as the one before."""
    steps = _chosen(_answered(report))
    parts = _TOKEN_PARTS if _of_tokens(steps) else {"Latency": _WHOLE}
    return Chart(
        "percentiles",
        [
            Panel(
                title,
                list(_by_percentile(steps, of[0])),
                " ms",
                _targets(report, of, " target"),
                logarithmic=True,
            )
            for title, of in parts.items()
        ],
        "nines",
        "Percentile",
        320,
    )


def _by_percentile(steps: list[MeasuredStep], part: str) -> Iterator[Line]:
    for colour, each in zip(PALETTE, steps, strict=False):
        of = each.result.histogram(part)
        if not of.count:
            continue
        at = nines(of.count)
        shown = f" ({each.shown})" if each.shown else ""
        yield Line(
            each.result.step.name + shown,
            at,
            [1000 * value for value in of.quantiles([1 - 10**-rank for rank in at])],
            colour,
            dash=each.shown not in ("held", ""),
        )


def send_lag(report: LoadTestReport) -> Chart:
    """How late the generator itself was, beside the latency it measured: per step."""
    steps = [each for each in _answered(report) if each.result.send_lag.count]
    names = [f"{number}. {each.result.step.name}" for number, each in enumerate(steps, 1)]
    lags = [
        (
            f"send lag p{100 * quantile:g}",
            colour,
            [1000 * each.result.send_lag.quantiles((quantile,))[0] for each in steps],
        )
        for colour, quantile in (("sky", 0.5), ("blue", 0.99))
    ]
    return Chart(
        "lag",
        [
            Panel(
                "How late requests were sent",
                [
                    *(Line(name, names, values, colour, "bars") for name, colour, values in lags),
                    Line(
                        "1 % of the median latency",
                        names,
                        [10 * each.result.latency.percentile(50) for each in steps],
                        "red",
                        "marks",
                        marks=["—"] * len(steps),
                    ),
                ],
                " ms",
            )
        ]
        if steps
        else [],
        "names",
        height=200,
    )


def _client_panels(report: LoadTestReport, steps: list[MeasuredStep]) -> Iterator[Panel]:
    seconds = list(_seconds(steps))
    at = [time for time, _ in seconds]

    def panel(
        title: str,
        unit: str,
        *lines: tuple[str, str, str],
        factor: float = 1.0,
        logarithmic: bool = False,
    ) -> Panel:
        made = [
            Line(
                name,
                at,
                [
                    None if each is None else finite(factor * getattr(each, attribute))
                    for _, each in seconds
                ],
                colour,
                "area" if name == "answered" else "line",
            )
            for name, attribute, colour in lines
        ]
        return Panel(
            title,
            [each for each in made if any(v is not None for v in each.y)],
            unit,
            _targets(report, TOKEN_HISTOGRAMS if lines[0][1].endswith("_token_p95") else _WHOLE)
            if logarithmic
            else (),
            logarithmic=logarithmic,
        )

    of_tokens = any(each.result.tokens is not None for each in steps)
    streams = not of_tokens and any(each.result.first_byte is not None for each in steps)
    yield panel(
        "Requests a second", "", ("sent", "sent", "grey"), ("answered", "completed", "blue")
    )
    yield panel(
        "Client latency, from the intended start",
        " ms",
        ("p99", "p99", "red"),
        ("p50", "p50", "blue"),
        *([("first byte p99", "first_byte_p99", "green")] if streams else []),
        factor=1000,
        logarithmic=True,
    )
    if of_tokens:
        yield panel(
            "First token, and between tokens",
            " ms",
            ("first token p95", "first_token_p95", "green"),
            ("between tokens p95", "inter_token_p95", "orange"),
            factor=1000,
            logarithmic=True,
        )
        yield panel("Output tokens a second", "", ("tokens", "output_tokens", "blue"))
    if any(each is not None and each.failed for _, each in seconds):
        yield panel("Failed requests a second", "", ("failed", "failed", "red"))
    yield panel("Send lag of the generator", " ms", ("p99", "send_lag_p99", "purple"), factor=1000)
    yield panel(
        "Processor of the busiest generator process",
        " %",
        ("of one core", "cpu_share", "grey"),
        factor=100,
    )


def _cloudwatch_panels(report: LoadTestReport) -> Iterator[Panel]:
    def panel(
        title: str,
        unit: str,
        *lines: tuple[str, str, str, str],
        limits: tuple[tuple[str, float], ...] = (),
    ) -> Panel:
        found = [
            (name, report.metrics.series.get((metric, statistic)), colour)
            for name, metric, statistic, colour in lines
        ]
        # By the clock of the other panels.
        return Panel(
            f"CloudWatch: {title}",
            [
                Line(
                    name,
                    [_time(report.metrics.clock.wall(at.timestamp())) for at in points.times],
                    [points.points[at] for at in points.times],
                    colour,
                    marks=["·"] * len(points.times),
                )
                for name, points, colour in found
                if points
            ],
            unit,
            limits,
        )

    yield panel(
        "ModelLatency",
        " ms",
        ("p99", "ModelLatency", "p99", "red"),
        ("p50", "ModelLatency", "p50", "blue"),
    )
    yield panel("OverheadLatency", " ms", ("average", "OverheadLatency", "Average", "blue"))
    yield panel(
        "invocations per instance and minute",
        "",
        ("invocations", "InvocationsPerInstance", "Sum", "blue"),
    )
    yield panel(
        "utilization of the whole instance",
        " %",
        ("CPU", "CPUUtilization", "Average", "blue"),
        ("GPU", "GPUUtilization", "Average", "green"),
        ("memory", "MemoryUtilization", "Average", "purple"),
        limits=(("70 %", 70.0),),
    )
    errors = panel(
        "errors a minute",
        "",
        ("4XX", "Invocation4XXErrors", "Sum", "orange"),
        ("5XX", "Invocation5XXErrors", "Sum", "red"),
    )
    if any(value for line in errors.lines for value in line.y):
        yield errors


def _seconds(steps: list[MeasuredStep]) -> Iterator[tuple[datetime, Progress | None]]:
    """All seconds of all steps; ``None`` between two steps, where a line must not go on."""
    for each in steps:
        begin = each.result.started_at - each.result.step.settle_seconds
        for second in each.timeline:
            yield _time(begin + second.seconds), second
        yield _time(begin + each.timeline[-1].seconds + 0.5), None


def _answered(report: LoadTestReport) -> list[MeasuredStep]:
    return [each for each in report.run.steps if each.result.latency.count]


def _chosen(steps: list[MeasuredStep]) -> list[MeasuredStep]:
    """No more steps than can be told apart, over the whole range of rates; lowest rate first."""
    ordered = sorted(steps, key=_load)
    if len(ordered) <= _LINES:
        return ordered
    picked = {round(number * (len(ordered) - 1) / (_LINES - 1)) for number in range(_LINES)}
    return [each for number, each in enumerate(ordered) if number in picked]


def _targets(
    report: LoadTestReport, parts: Sequence[str], word: str = ""
) -> list[tuple[str, float]]:
    """The targets of these parts of a result: a stream's whole time has none of its tokens'."""
    return [
        (f"{name}{word} {milliseconds(1000 * seconds, 6)}", 1000 * seconds)
        for name, seconds in report.run.goal.targets.items()
        if histogram_of(name) in parts
    ]


def _of_tokens(steps: Sequence[MeasuredStep]) -> bool:
    return any(each.result.tokens is not None for each in steps)


def _samples(each: MeasuredStep, part: str) -> int | None:
    """As many as its judgement takes for independent: those that wait are late together."""
    bounds = each.judgement.bounds.items()
    return next((one.samples for name, one in bounds if histogram_of(name) == part), None)


def _load(each: MeasuredStep) -> float:
    return each.result.rate if each.offered is None else each.offered


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
