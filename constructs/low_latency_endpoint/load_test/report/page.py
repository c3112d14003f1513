"""The load test as one self-contained HTML page; needs the ``load-test`` extra (Jinja2)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ...report.numbers import readable
from ...report.pages import FindingCard, Listed, Part, Section, Soft, Tone
from ...report.pages import page as page_of
from ...report.tables import Table
from ..search.limit_search import Limit
from ..search.result_file import LoadTestReport, write_text
from ..search.search_plan import SearchPlan
from ..search.steps_table import step_columns
from .charts import over_time, percentiles, send_lag, throughput_and_latency

_TONES = {"invalid": "bad", "limit": "bad", "risk": "careful", "fine": "good"}


def page(report: LoadTestReport) -> str:
    """The page's text; it loads nothing from anywhere."""
    run, fleet = report.run, report.fleet
    columns = list(step_columns(run.steps, report, beyond=True))
    tables = [
        Table(
            [each.name for each in columns if group in each.groups],
            list(zip(*(each.cells for each in columns if group in each.groups), strict=True)),
            align="lllr" if group == "load" else "lr",
        )
        for group in ("load", "machines")
    ]
    said = verdict(report)
    parts: list[Part] = []
    if run.limit is not None:
        parts.append(Section("", [f"{run.limit.how}.", *follows(report)]))
    parts += [
        Section(
            "Where the saturation comes from",
            [
                FindingCard(
                    each.title,
                    each.kind,
                    _TONES[each.severity],
                    [Listed(each.evidence), *([each.advice] if each.advice else [])],
                    [(each.kind, "")],
                )
                for each in report.verdicts
            ]
            or ["Nothing was loaded, so there is nothing to say."],
        ),
        Section(
            "Throughput and latency",
            [
                throughput_and_latency(report) or "No request was answered.",
                Soft(
                    "Bars are intervals of 90 % (each bound holds with 95 %) from order statistics. A "
                    "disc held the goal, a cross broke it, a ring is unclear, a diamond was limited "
                    "by the generator."
                ),
            ],
        ),
        Section(
            "Steps",
            [
                tables[0],
                Soft(
                    "Latency runs from the moment at which a request was due to its whole answer. ? rests "
                    "on fewer than ten requests beyond it, whose number stands in brackets (of the others "
                    "it shows under the pointer)."
                ),
            ],
        ),
        Section(
            "The generator and CloudWatch",
            [
                tables[1],
                Soft(
                    "! the generator fell behind; its delay is included in the latencies. * "
                    "from CloudWatch's minutes, which hold requests of other steps too. Inv./inst.: "
                    "invocations per instance and minute."
                ),
            ],
        ),
        Section("Latency by percentile", [percentiles(report) or "No request was answered."]),
        Section("Over time", [over_time(report) or "No second was recorded."]),
        Section(
            "How late the generator was",
            [
                send_lag(report) or "Nothing was sent.",
                Listed(
                    [
                        f"{each.result.step.name}: {text}"
                        for each in run.steps
                        for text in (*each.result.client_bound, *each.result.warnings)
                    ]
                ),
                Soft(
                    "Latencies include the lag: a late generator makes the endpoint look slower, "
                    "never faster."
                ),
            ],
        ),
        *([Section("What it costs", [Listed(list(report.cost.lines()))])] if report.cost else []),
        Section(
            "What was looked at",
            [
                Listed([f"Unknown: {text}" for text in (*fleet.unknown, *report.metrics.unknown)]),
                Listed(list(_looked_at(report)), soft=True),
            ],
        ),
    ]
    serving = (
        f"{fleet.instances} x {fleet.instance_type or 'unknown type'}"
        if fleet.instances is not None
        else ""
    )
    about = ", ".join(filter(None, (report.target.region, fleet.variant, serving, fleet.routing)))
    return page_of(
        f"{report.target.endpoint_name}: {said}",
        parts,
        verdict=said,
        head=f"Load test of {report.target.endpoint_name}",
        under=f"{about}; {_clock(run.started_at, '%Y-%m-%d %H:%M:%S')} to "
        f"{_clock(run.ended_at, '%H:%M:%S %Z')}; {report.payload}; goal: {run.goal.text}",
        tone=tone(report),
    )


def follows(report: LoadTestReport) -> Iterator[str]:
    """What the limit means for the fleet."""
    throughput = report.throughput
    if throughput is not None:
        yield (
            f"For {readable(throughput.peak_tps)} requests a second with a safety factor of "
            f"{readable(throughput.safety_factor)}: {throughput.instances_at_peak(1)} instances, at "
            "least one per client zone; scaling target "
            f"{readable(throughput.target_invocations_per_instance)} invocations per instance and "
            "minute."
        )


def _looked_at(report: LoadTestReport) -> Iterator[str]:
    if not report.metrics.series:
        yield "No metrics of CloudWatch."
    elif not report.metrics.complete:
        yield "Incomplete: CloudWatch had not counted all requests yet when it was read."
    yield (
        "Requests in a queue are late together. Percentile intervals rest on as many independent "
        "ones as they are worth, which differences from second to second show."
    )


def write_page(report: LoadTestReport, path: Path) -> None:
    """Write the page.

    Raises
    ------
    ConfigurationError
        ``LLT115`` when the file cannot be written.
    """
    write_text(path, page(report))


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
