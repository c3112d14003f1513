"""A load test as a document: for the terminal, a page and Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from ...report.document import Document, FindingPart, Listed, Part, Row, Section, Sentence, Tone
from ...report.numbers import readable
from ..engine.steps import most_frequent
from ..search.limit_search import Limit
from ..search.measured_steps import MeasuredStep, turns_line
from ..search.result_file import LoadTestReport, write_text
from ..search.search_plan import SearchPlan
from ..search.steps_table import PER_INSTANCE, marks_in, step_columns, steps_table
from .charts import over_time, percentiles, send_lag, throughput_and_latency

_TONES: dict[str, Tone] = {"invalid": "bad", "limit": "bad", "risk": "careful", "fine": "good"}


def document(report: LoadTestReport, written: Path | None = None) -> Document:
    """The answer, the steps, what limits, what follows; ``written`` is the result's file."""
    run, fleet = report.run, report.fleet
    parts: list[Part] = [f"{run.limit.how}."] if run.limit is not None else []
    parts += [*_steps(report), *_saturation(report), *_follows(report, written)]
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
        f"{about}; {_clock(run.started_at, '%Y-%m-%d %H:%M:%S')} to "
        f"{_clock(run.ended_at, '%H:%M:%S %Z')}; {report.payload}; goal: {run.goal.text}",
        verdict(report),
        tone(report),
    )


def write_page(report: LoadTestReport, path: Path) -> None:
    """Write the page.

    Raises
    ------
    ConfigurationError
        ``LLT115`` when the file cannot be written.
    """
    from ...report.pages import page  # needs Jinja2

    write_text(path, page(document(report)))


def _charts(title: str, chart: Part, note: str = "") -> Section:
    return Section(title, [chart, *([Sentence(note, "soft")] if note else [])], detail=True)


def _saturation(report: LoadTestReport) -> Iterator[Section]:
    """Where the saturation comes from."""
    found = [
        FindingPart(
            each.title,
            each.kind,
            _TONES[each.severity],
            [
                *(Row("measured", text) for text in each.evidence),
                *([Row("change", each.advice)] if each.advice else []),
            ],
        )
        for each in report.verdicts
    ]
    none = ["Nothing was loaded, so there is nothing to say."]
    yield Section("Where the saturation comes from", found or none)


def _steps(report: LoadTestReport) -> Iterator[Section]:
    steps = report.run.steps
    if not steps:
        return
    columns = list(step_columns(steps, report))
    notes = [
        "Latency runs from the moment at which a request was due to its whole answer.",
        *marks_in(columns, "load"),
    ]
    if any(each.shown == "kept" for each in steps):
        notes.append("kept: in what was measured, with too little to say that it held")
    failed = sum((Counter(each.result.failures) for each in steps), Counter[str]())
    if failed:
        notes.append(f"Failed: {most_frequent(failed)}")
    yield Section("Steps", [steps_table(columns, "load"), Listed(notes, "soft")])
    late = [
        f"{each.result.step.name}: {text}"
        for each in steps
        for text in (*each.result.client_bound, *each.result.warnings)
    ]
    told = [*marks_in(columns, "machines"), _generator(steps)]
    if any(column.name == PER_INSTANCE for column in columns):
        told.insert(0, f"{PER_INSTANCE}: invocations per instance and minute")
    yield Section(
        "The generator and CloudWatch",
        [steps_table(columns, "machines"), Listed(late, "careful"), Listed(told, "soft")],
    )


def _generator(steps: Sequence[MeasuredStep]) -> str:
    """What sending cost, beside what was measured with it."""
    loads = [each.result for each in steps]
    sent = sum(each.result.sent for each in steps)
    seconds = sum(each.result.cpu_seconds_per_request * each.result.sent for each in steps)
    processes = max((each.processes for each in loads), default=1)
    return (
        f"Generator: {max((each.cpu_share for each in loads), default=0.0):.0%} of a core at "
        f"most, {1e6 * seconds / max(sent, 1):,.0f} us a request"
        + (f", {processes} processes" if processes > 1 else "")
    )


def _follows(report: LoadTestReport, written: Path | None) -> Iterator[Section]:
    """What the limit means for the fleet, and what it costs."""
    lines = list(_held(report))
    throughput = report.throughput
    if throughput is not None:
        lines.append(
            f"For {readable(throughput.peak_tps)} requests a second with a safety factor of "
            f"{readable(throughput.safety_factor)}: {throughput.instances_at_peak(1)} instances, at "
            "least one per client zone; scaling target "
            f"{readable(throughput.target_invocations_per_instance)} invocations per instance and "
            "minute."
        )
    lines += [
        f"{each.result.step.name}: {turns_line(each.result)}."
        for each in report.run.loads
        if each.result.conversations
    ]
    if report.cost is not None:
        lines += report.cost.lines()
    limit = report.run.limit
    if limit is not None and limit.lower_bound and not report.invalid:
        lines.append(
            "The plan does not take a limit that was not reached: leave out --up-to, or raise it."
        )
    elif limit is not None and limit.usable and not report.invalid:
        lines.append(
            "Into the plan: low-latency plan --from-load-test "
            f"{written or 'result.json (write it with -o)'}"
        )
    if lines:
        yield Section("What follows", [Listed(lines)])


def _held(report: LoadTestReport) -> Iterator[str]:
    limit = report.run.limit
    if limit is not None and limit.usable and not report.invalid:
        low, high = limit.to_dict()["low"], limit.to_dict()["high"]
        sure = limit.confidence
        yield (
            f"One instance held {readable(low, 4)} requests a second "
            + ("in what was measured" if sure is None else f"with {sure:.0%} confidence")
            + (
                "; no rate tried missed the goal."
                if high is None
                else f", not {readable(high, 4)}."
            )
        )


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
    invalid = next((each for each in report.verdicts if each.severity == "invalid"), None)
    if run.interrupted:
        whole = f"{len(run.steps)} whole step" + ("s" if len(run.steps) != 1 else "")
        said = (
            f"Ended after {whole}: {run.failure}" if run.failure else f"Interrupted after {whole}"
        )
        if run.limit is None or not run.limit.found:
            return said
        return f"{said}; one instance holds at least {readable(run.limit.tps_per_instance)} requests a second"
    if invalid is not None:
        return invalid.title
    if run.limit is not None:
        return _limit(run.limit, run.plan.search)
    broken = [each for each in run.loads if each.judgement.outcome == "broken"]
    if broken:
        return f"{broken[0].result.step.name} does not hold"
    if not run.loads:
        return "Nothing was sent"
    if not run.goal.targets:
        failed = sum(each.result.failed for each in run.loads)
        errors = f"{failed:,} requests failed" if failed else "No errors"
        return f"{errors}; there was no latency target to judge by"
    highest = max(run.loads, key=lambda each: each.offered or each.result.step.users or 0)
    name = highest.result.step.name
    if highest.judgement.outcome == "unclear":
        few = any(math.isinf(each.high) for each in highest.judgement.bounds.values())
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
    if not limit.lower_bound:
        return f"One instance holds {readable(limit.tps_per_instance)} requests a second"
    asked = f" (--up-to {readable(search.highest_rate)})" if search is not None else ""
    return (
        f"One instance holds at least {readable(limit.tps_per_instance)} requests a second; the limit "
        f"was not reached{asked}"
    )


def _clock(seconds: float, form: str) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):{form}}"
