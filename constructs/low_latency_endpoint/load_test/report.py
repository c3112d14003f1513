"""A load test as a document: for the terminal, a page and Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ..report.charts import PALETTE, Chart, Line, Panel, nines
from ..report.document import Document, FindingPart, Listed, Part, Row, Section, Sentence, Tone
from ..report.numbers import milliseconds, readable
from .engine.measurement import TOKEN_HISTOGRAMS
from .engine.steps import Progress, finite, most_frequent
from .search.bounds import quantile_bounds
from .search.judging import histogram_of
from .search.limit_search import Limit
from .search.limit_wording import instances_counted, plan_takes, without_confidence
from .search.measured_steps import MeasuredStep, turns_line
from .search.result_file import LoadTestReport, LoadTestRun, write_text
from .search.run_plans import SearchPlan
from .search.steps_table import PER_INSTANCE, marks_in, step_columns, steps_table

_TONES: dict[str, Tone] = {"invalid": "bad", "limit": "bad", "risk": "careful", "fine": "good"}


def document(report: LoadTestReport, plan_command: str = "") -> Document:
    """The answer, the steps, what limits, what follows.

    ``plan_command`` puts the limit into a settings file; empty where there is none.
    """
    run, fleet = report.run, report.fleet
    parts: list[Part] = [f"{run.limit.how}."] if run.limit is not None else []
    parts += [*_steps(report), *_saturation(report), *_follows(report, plan_command)]
    parts += [
        _charts(
            "Throughput and latency",
            throughput_and_latency(report) or "No request was answered.",
            "Bars are intervals of 90 % (each bound holds with 95 %) from order statistics. A "
            "disc held the goal, a cross broke it, a ring is unclear, a diamond was limited "
            "by the generator.",
        ),
        _charts("Latency by percentile", percentiles(report) or "No request was answered."),
        _charts("Over time", over_time(report) or "No second was recorded."),
        _charts(
            "How late the generator was",
            send_lag(report) or "Nothing was sent.",
            "Latencies include the lag: a late generator makes the endpoint look slower, "
            "never faster.",
        ),
        Section("What was looked at", list(_looked_at(report))),
    ]
    serving = (
        f"{fleet.instances} x {fleet.instance_type or 'unknown type'}"
        if fleet.instances is not None
        else ""
    )
    about = ", ".join(filter(None, (report.target.region, fleet.variant, serving, fleet.routing)))
    return Document(
        f"Load test of {report.target.endpoint_name}",
        parts,
        f"{about}; {_time(run.started_at):%Y-%m-%d %H:%M:%S} to "
        f"{_time(run.ended_at):%H:%M:%S %Z}; {report.payload}; goal: {run.goal.text}",
        verdict(report),
        tone(report),
    )


def write_page(report: LoadTestReport, path: Path, plan_command: str = "") -> None:
    """Write a load test's report as an HTML page.

    Args:
        report: What :func:`load_test` returned.
        path: Where to write; LLT115 where that fails.
        plan_command: The command that the page gives for planning; by default none.
    """
    from ..report.pages import page  # needs Jinja2

    write_text(path, page(document(report, plan_command)))


def _charts(title: str, chart: Part, note: str = "") -> Section:
    return Section(title, [chart, *([Sentence(note, "soft")] if note else [])], detail=True)


def _saturation(report: LoadTestReport) -> Iterator[Section]:
    """Where the saturation comes from."""
    parts = [
        FindingPart(
            verdict.title,
            verdict.kind,
            _TONES[verdict.severity],
            [
                *(Row("measured", text) for text in verdict.evidence),
                *([Row("change", verdict.advice)] if verdict.advice else []),
            ],
        )
        for verdict in report.verdicts
    ]
    title = "Where the saturation comes from"
    yield Section(title, parts or ["Nothing was loaded, so there is nothing to say."])


def _steps(report: LoadTestReport) -> Iterator[Section]:
    steps = report.run.steps
    if not steps:
        return
    columns = list(step_columns(steps, report))
    notes = [
        "Latency runs from the moment at which a request was due to its whole answer.",
        *marks_in(columns, "load"),
    ]
    if any(step.shown == "kept" for step in steps):
        notes.append("kept: in what was measured, with too little to say that it held")
    failed = sum((Counter(step.result.failures) for step in steps), Counter[str]())
    if failed:
        notes.append(f"Failed: {most_frequent(failed)}")
    yield Section("Steps", [steps_table(columns, "load"), Listed(notes, "soft")])
    late = [
        f"{step.result.step.name}: {text}"
        for step in steps
        for text in (*step.result.client_bound, *step.result.warnings)
    ]
    told = [*marks_in(columns, "machines"), _generator(steps)]
    if any(column.name == PER_INSTANCE for column in columns):
        told.insert(0, f"{PER_INSTANCE}: invocations per instance and minute")
    yield Section(
        "The generator and CloudWatch",
        [steps_table(columns, "machines"), Listed(late, "careful"), Listed(told, "soft")],
    )


def _generator(steps: Sequence[MeasuredStep]) -> str:
    """The load generator's own cost, beside the measurements."""
    loads = [step.result for step in steps]
    sent = sum(step.result.sent for step in steps)
    seconds = sum(step.result.cpu_seconds_per_request * step.result.sent for step in steps)
    processes = max((each.processes for each in loads), default=1)
    return (
        f"Generator: {max((each.cpu_share for each in loads), default=0.0):.0%} of a core at "
        f"most, {1e6 * seconds / max(sent, 1):,.0f} us a request"
        + (f", {processes} processes" if processes > 1 else "")
    )


def _follows(report: LoadTestReport, plan_command: str) -> Iterator[Section]:
    """The fleet that follows from the limit, and its cost."""
    lines = list(_held(report))
    lines += _count(report)
    lines += [
        f"{step.result.step.name}: {turns_line(step.result)}."
        for step in report.run.loads
        if step.result.conversations
    ]
    if report.cost is not None:
        lines += report.cost.lines()
    limit = report.run.limit
    if limit is not None and limit.lower_bound and not report.invalid:
        lines.append(_not_planned(report.run))
    elif plan_command and report.planned_tps is not None:
        lines.append(f"Into the plan: {plan_command}")
    if lines:
        yield Section("What follows", [Listed(lines)])


def _not_planned(run: LoadTestRun) -> str:
    """Why the plan does not take a lower bound."""
    if run.failure:
        return "The plan does not take what a search held that failed: search again when that is mended."
    if run.interrupted:
        return "The plan does not take what a stopped search held: let it run to its end."
    return "The plan does not take a limit that was not reached: leave out --up-to, or raise it."


def _count(report: LoadTestReport) -> Iterator[str]:
    """The instances for the peak and how certain they are; why there are none for one that is stated."""
    if report.planned_tps is not None:
        yield instances_counted(report.planned_tps, report.throughput)
        return
    if report.run.plan.search is None or report.peak_tps is None:
        return
    limit = report.run.limit
    if report.invalid or limit is None or not limit.found:
        why = "no rate held before the search was stopped" if limit is None else limit.problem
        if report.invalid:
            why = "the result is invalid"
        yield f"No instances are counted for {readable(report.peak_tps)} requests a second: {why}."
        return
    assured = limit.assured_tps_per_instance
    each = assured or limit.tps_per_instance or 0.0
    certain = assured is not None
    counted = report.throughput_of(each)
    yield instances_counted(each, counted, at_most=limit.lower_bound, certain=certain)


def _held(report: LoadTestReport) -> Iterator[str]:
    """What an instance held, and what of that is certain."""
    limit = report.run.limit
    if limit is None or not limit.usable or report.invalid:
        return
    limits = limit.to_dict()
    low = readable(limits["low"], 4)
    sure = limit.confidence
    how = "in what was measured" if sure is None else f"with {sure:.0%} confidence"
    missed = "; no rate tried missed the goal."
    if limits["high"] is not None:
        missed = f", not {readable(limits['high'], 4)}."
    yield f"One instance held {low} requests a second {how} {limit.when}{missed}"
    if sure is None:
        yield plan_takes(limit, report.run.goal)


def _looked_at(report: LoadTestReport) -> Iterator[Part]:
    unknown = (*report.fleet.unknown, *report.metrics.unknown)
    yield Listed([Row("unknown", text, tone="careful") for text in unknown])
    if not report.metrics.series:
        yield Sentence("No metrics of CloudWatch.", "soft")
    elif not report.metrics.complete:
        yield Sentence(
            "Incomplete: CloudWatch had not counted all requests yet when it was read.", "soft"
        )
    yield Sentence(
        "Requests in a queue are late together. Percentile intervals rest on as many independent "
        "ones as they are worth, which differences from second to second show.",
        "soft",
    )


def verdict(report: LoadTestReport) -> str:
    """The run in one sentence."""
    run = report.run
    invalid = next((verdict for verdict in report.verdicts if verdict.severity == "invalid"), None)
    if run.interrupted:
        whole = f"{len(run.steps)} whole step" + ("s" if len(run.steps) != 1 else "")
        said = f"Ended after {whole}" if run.failure else f"Interrupted after {whole}"
        if run.limit is not None and run.limit.found:
            held = readable(run.limit.tps_per_instance)
            said = f"{said}; one instance holds at least {held} requests a second"
        return f"{said}: {run.failure}" if run.failure else said
    if invalid is not None:
        return invalid.title
    if run.limit is not None:
        return _limit(run.limit, run.plan.search)
    broken = [step for step in run.loads if step.judgement.outcome == "broken"]
    if broken:
        return f"{broken[0].result.step.name} does not hold"
    if not run.loads:
        return "Nothing was sent"
    if not run.goal.targets:
        failed = sum(step.result.failed for step in run.loads)
        errors = f"{failed:,} requests failed" if failed else "No errors"
        return f"{errors}; there was no latency target to judge by"
    highest = max(run.loads, key=lambda step: step.offered or step.result.step.users or 0)
    name = highest.result.step.name
    if highest.judgement.outcome == "unclear":
        few = any(math.isinf(bound.high) for bound in highest.judgement.bounds.values())
        few = few or highest.judgement.latency_held
        seen = "kept" if highest.judgement.kept else "missed"
        why = "too few requests" if few else "too near the target"
        return f"{name} {seen} the goal in this step; {why} to say more"
    return f"{name} hold" if name.endswith("users") else f"{name} holds"


def tone(report: LoadTestReport) -> Tone:
    """Good and bad are what was found out; an invalid result is neither."""
    if report.invalid:
        return "bad"
    if report.held is None or (report.held and not report.run.goal.targets):
        return "careful"
    return "good" if report.held else "bad"


def _limit(limit: Limit, search: SearchPlan | None) -> str:
    if not limit.found:
        return f"No limit found: {limit.problem}"
    if not limit.lower_bound and limit.confidence is None:
        return without_confidence(limit)
    if not limit.lower_bound:
        return f"One instance holds {readable(limit.tps_per_instance)} requests a second"
    asked = f" (--up-to {readable(search.highest_rate)})" if search is not None else ""
    return (
        f"One instance holds at least {readable(limit.tps_per_instance)} requests a second; the limit "
        f"was not reached{asked}"
    )


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
#: Title and unit of each panel of the client's seconds; of its lines name, attribute and colour.
_CLIENT = (
    ("Requests a second", "", (("sent", "sent", "grey"), ("answered", "completed", "blue"))),
    (
        "Client latency, from the intended start",
        " ms",
        (
            *(("p99", "p99", "red"), ("p50", "p50", "blue")),
            ("first byte p99", "first_byte_p99", "green"),
        ),
    ),
    (
        "First token, and between tokens",
        " ms",
        (
            ("first token p95", "first_token_p95", "green"),
            ("between tokens p95", "inter_token_p95", "orange"),
        ),
    ),
    ("Output tokens a second", "", (("tokens", "output_tokens", "blue"),)),
    ("Failed requests a second", "", (("failed", "failed", "red"),)),
    ("Send lag of the generator", " ms", (("p99", "send_lag_p99", "purple"),)),
    ("Processor of the busiest generator process", " %", (("of one core", "cpu_share", "grey"),)),
)
_FACTORS = {" ms": 1000, " %": 100}  # of seconds and shares
_NONE_AT_ZERO = ("tokens", "failed", "4XX", "5XX")  # lines that are not drawn at nothing but zero
#: Of a panel with targets, on a logarithmic scale: the histograms whose targets these are.
_LATENCIES = {_CLIENT[1][0]: _WHOLE, _CLIENT[2][0]: TOKEN_HISTOGRAMS}
#: The same of CloudWatch; of a line its name, metric, statistic and colour.
_CLOUDWATCH = (
    (
        "ModelLatency",
        " ms",
        (("p99", "ModelLatency", "p99", "red"), ("p50", "ModelLatency", "p50", "blue")),
    ),
    ("OverheadLatency", " ms", (("average", "OverheadLatency", "Average", "blue"),)),
    (
        "invocations per instance and minute",
        "",
        (("invocations", "InvocationsPerInstance", "Sum", "blue"),),
    ),
    (
        "utilization of the whole instance",
        " %",
        (
            ("CPU", "CPUUtilization", "Average", "blue"),
            ("GPU", "GPUUtilization", "Average", "green"),
            ("memory", "MemoryUtilization", "Average", "purple"),
        ),
    ),
    (
        "errors a minute",
        "",
        (
            ("4XX", "Invocation4XXErrors", "Sum", "orange"),
            ("5XX", "Invocation5XXErrors", "Sum", "red"),
        ),
    ),
)


def throughput_and_latency(report: LoadTestReport) -> Chart:
    """Each step's offered rate and its latencies with their intervals, the target and the limit."""
    steps = sorted(_answered(report), key=_load)
    rates = [_load(step) for step in steps]
    lines = []
    of_tokens = _of_tokens(steps)
    for name, part, quantile, colour in _TOKEN_LINES if of_tokens else _WHOLE_LINES:
        found = [(step, step.result.histogram(part)) for step in steps]
        bounds = [quantile_bounds(of, quantile, samples=_samples(each, part)) for each, of in found]
        lines.append(
            Line(
                name,
                rates,
                [1000 * bound.value for bound in bounds],
                colour,
                marks=[_MARKS[step.judgement.outcome] for step in steps],
                notes=[
                    f"{each.result.step.name}: {each.judgement.outcome}, "
                    f"{readable(each.result.rate, 4)} answered a second, {name} {milliseconds(1000 * bound.value, 4)}"
                    for each, bound in zip(steps, bounds, strict=True)
                ],
                low=[1000 * bound.low for bound in bounds],
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
    lowest = min((1000 * step.result.histogram(part).percentile(50) for step in steps), default=0.0)
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
    steps = [step for step in report.run.steps if step.timeline]
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
            [1000 * step.result.send_lag.quantiles((quantile,))[0] for step in steps],
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
                        [10 * step.result.latency.percentile(50) for step in steps],
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
    """What has values; of latencies on a logarithmic scale, with their targets."""
    seconds = list(_seconds(steps))
    of_tokens = any(step.result.tokens is not None for step in steps)
    for title, unit, lines in _CLIENT:
        made = []
        for name, attribute, colour in lines:
            factor = _FACTORS.get(unit, 1)
            values = [
                None if each is None else finite(factor * getattr(each, attribute))
                for _, each in seconds
            ]
            kind = "area" if name == "answered" else "line"
            if _told(name, values) and not (of_tokens and name == "first byte p99"):
                made.append(Line(name, [time for time, _ in seconds], values, colour, kind))
        parts = _LATENCIES.get(title, ())
        yield Panel(title, made, unit, _targets(report, parts), logarithmic=bool(parts))


def _cloudwatch_panels(report: LoadTestReport) -> Iterator[Panel]:
    """By the clock of the other panels."""
    for title, unit, lines in _CLOUDWATCH:
        found = [
            (name, report.metrics.series.get((metric, statistic)), colour)
            for name, metric, statistic, colour in lines
        ]
        curves = [
            Line(
                name,
                [_time(report.metrics.clock.wall(at.timestamp())) for at in points.times],
                [points.points[at] for at in points.times],
                colour,
                marks=["·"] * len(points.times),
            )
            for name, points, colour in found
            if points and _told(name, points.points.values())
        ]
        limits = [("70 %", 70.0)] if unit == " %" else []
        yield Panel(f"CloudWatch: {title}", curves, unit, limits)


def _told(name: str, values: Collection[float | None]) -> bool:
    return any(values) if name in _NONE_AT_ZERO else any(value is not None for value in values)


def _seconds(steps: list[MeasuredStep]) -> Iterator[tuple[datetime, Progress | None]]:
    """All seconds of all steps; ``None`` between two steps, where a line must not go on."""
    for step in steps:
        begin = step.result.started_at - step.result.step.settle_seconds
        for second in step.timeline:
            yield _time(begin + second.seconds), second
        yield _time(begin + step.timeline[-1].seconds + 0.5), None


def _answered(report: LoadTestReport) -> list[MeasuredStep]:
    return [step for step in report.run.steps if step.result.latency.count]


def _chosen(steps: list[MeasuredStep]) -> list[MeasuredStep]:
    """At most as many steps as a chart can show, over the whole range of rates, lowest first."""
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
    return any(step.result.tokens is not None for step in steps)


def _samples(step: MeasuredStep, part: str) -> int | None:
    """As many as its judgement takes for independent: those that wait are late together."""
    bounds = step.judgement.bounds.items()
    return next((one.samples for name, one in bounds if histogram_of(name) == part), None)


def _load(step: MeasuredStep) -> float:
    return step.result.rate if step.offered is None else step.offered


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
