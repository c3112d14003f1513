"""The page: self-contained, safe, and drawn by a real browser without a word on its console."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram, milliseconds
from low_latency_endpoint.load_test.report import document, verdict, write_page
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.result_file import LoadTestReport
from low_latency_endpoint.load_test.search.run_plans import (
    RunPlan,
    SearchPlan,
    confirm_plan,
    limit_plan,
    rate_plan,
    users_plan,
)
from low_latency_endpoint.report.pages import page as page_of
from low_latency_endpoint.report.terminal import drawn
from tests.browser import needs_chromium, opened
from tests.refusals import refused

from .fake_account import report_of

GOAL = LatencyGoal({"p50": 0.06, "p99": 0.2})
LIMIT = limit_plan(SearchPlan(GOAL, 20, instances=1))


def page(report: LoadTestReport) -> str:
    return page_of(document(report))


@pytest.fixture(scope="module")
def searched() -> LoadTestReport:
    """The report of a search that found a limit."""
    return report_of(LIMIT, metrics=True, variation=0.5)


def test_the_page_is_self_contained(searched: LoadTestReport) -> None:
    text = page(searched)
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="(?!data:)', text), "from elsewhere"
    assert text.count("<figure id=") == 4
    assert len(text) < 250_000, "a page that can be sent by mail"


def test_the_page_says_what_was_found(searched: LoadTestReport) -> None:
    text = page(searched)
    limit = searched.run.limit
    assert f"One instance holds {limit.assured_tps_per_instance:,g} requests a second" in text
    assert f"a second are {searched.throughput.instances_at_peak(1)} instances (factor 1)" in text
    for each in searched.verdicts:
        assert f'id="{each.kind}"' in text
    for each in searched.run.steps:
        assert each.result.step.name in text


def test_the_page_says_what_percentiles_rest_on(searched: LoadTestReport) -> None:
    text = page(searched)
    assert '<th class="r">p99.99</th>' in text
    few = searched.run.steps[1].result.latency.percentiles()[-1]
    assert few.name == "p99.99"
    assert f'<span class="soft">{milliseconds(few.seconds)}?</span>' in text
    assert f'title="{few.samples_beyond:,} requests beyond"' in text
    assert f'data-head="Requests">{searched.run.steps[1].result.latency.count:,}</td>' in text
    assert "First byte p99" not in text


def test_the_page_of_streams_has_their_first_byte() -> None:
    goal = LatencyGoal({"ttfb-p99": 0.1})
    text = page(report_of(rate_plan([50], seconds=10, goal=goal), first_byte_share=0.5))
    assert '<th class="r">First byte p99</th>' in text
    assert "ttfb-p99 target 100 ms" in text


def _drawn(report: LoadTestReport, width: int) -> list[str]:
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        for part in drawn(document(report)):
            console.print(part)
    return [line.rstrip() for line in captured.get().splitlines()]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_the_terminals_tables_fit(searched: LoadTestReport, width: int) -> None:
    lines = _drawn(searched, width)
    heads = [number for number, line in enumerate(lines) if line.startswith(" Step ")]
    load, machines = (set(lines[number].split()) for number in heads)
    assert {"Answered", "p99", "Failed"} <= load
    assert {"Send", "lag"} <= machines
    assert ("Offered" in load) is (width >= 120)
    assert "…" not in "".join(lines), "nothing is cut"
    for head in heads:
        rows = lines[head + 2 : lines.index("", head)]
        assert len(rows) == len(searched.run.steps), "one line for each step"
    assert all(len(line) <= width for line in lines)
    left_out = [line for line in lines if line.startswith("Left out for want of width")]
    assert bool(left_out) is (width < 120)
    assert any(line.startswith("- Generator: ") for line in lines)


def test_marks_have_notes(searched: LoadTestReport) -> None:
    text = "\n".join(_drawn(searched, 120))
    assert "ms?" in text
    assert "? fewer than ten requests lie beyond it" in text
    assert "\n- !" not in text, "no lag, no note"
    step = searched.run.steps[1]
    late = replace(step, result=replace(step.result, send_lag=LatencyHistogram.of([0.02] * 9)))
    text = "\n".join(_drawn(replace(searched, run=replace(searched.run, steps=(late,))), 120))
    assert "20 ms!" in text
    assert "\n- ! the generator fell behind" in text


@pytest.mark.parametrize(
    ("plan", "generator", "said"),
    [
        (confirm_plan(100, GOAL, seconds=40), {}, "100 TPS holds"),
        (
            confirm_plan(100, GOAL, seconds=20),
            {},
            "100 TPS kept the goal in this step; too few requests",
        ),
        (confirm_plan(400, GOAL, seconds=20), {}, "400 TPS does not hold"),
        (
            rate_plan([20], seconds=6, goal=GOAL),
            {},
            "20 TPS kept the goal in this step; too few requests",
        ),
        (rate_plan([100], seconds=6), {}, "No errors; there was no latency target to judge by"),
        (users_plan([2, 4], seconds=40, goal=GOAL), {"variation": 0.1}, "4 users hold"),
        (
            rate_plan([150], seconds=20, goal=GOAL),
            {"client_bound_above": 100},
            "Client-bound: result invalid",
        ),
        (LIMIT, {"service": 0.5}, "No limit found: one caller at a time already breaks"),
        (LIMIT, {"client_bound_above": 100, "late_by": 0.3}, "Client-bound: result invalid"),
        (
            limit_plan(SearchPlan(GOAL, 20, instances=1, highest_rate=40)),
            {},
            "One instance holds at least 40 requests a second; the limit was not reached (--up-to 40)",
        ),
    ],
)
def test_the_answer_in_a_sentence(plan: RunPlan, generator: dict[str, Any], said: str) -> None:
    report = report_of(plan, **{"variation": 0.5, **generator})
    assert verdict(report).startswith(said)
    assert verdict(report) in page(report)


def test_the_page_of_an_interrupted_run() -> None:
    done = report_of(rate_plan([100], seconds=6, goal=GOAL))
    stopped = replace(done, run=replace(done.run, interrupted=True, steps=()), verdicts=())
    text = page(stopped)
    assert "Interrupted after 0 whole steps" in text
    ended = replace(stopped, run=replace(stopped.run, failure="LLT135: a worker was lost"))
    assert "Ended after 0 whole steps: LLT135: a worker was lost" in page(ended)
    assert "<figure id=" not in text


def test_a_page_that_cannot_be_written(searched: LoadTestReport, tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "missing" / "report.html"):
        with refused("LLT115"):
            write_page(searched, file)


# --------------------------------------------------------------------------------- a real browser


@needs_chromium
@pytest.mark.parametrize("width", [1280, 700])
def test_a_browser_shows_the_charts(searched: LoadTestReport, tmp_path: Path, width: int) -> None:
    file = tmp_path / "report.html"
    write_page(searched, file)
    seen = opened(file, tmp_path, width)
    assert (seen.errors, seen.inaccessible) == ([], [])
    assert set(seen.charts) == {"throughput", "time", "percentiles", "lag"}
    assert {name: chart.visible for name, chart in seen.charts.items()} == dict.fromkeys(
        seen.charts, True
    ), seen.charts
    assert seen.overflow <= 0, "the page scrolls down, not sideways"
    time = seen.charts["time"].titles
    assert {
        "Requests a second",
        "Client latency, from the intended start",
        "Send lag of the generator",
        "CloudWatch: ModelLatency",
        "CloudWatch: utilization of the whole instance",
    } <= set(time)
    assert "p99 target 200 ms" in seen.charts["throughput"].titles
    # The axes show what was measured, not powers of ten that a label drew in.
    assert {"20 ms", "50 ms", "100 ms", "200 ms"} <= set(seen.charts["percentiles"].titles)
    assert {"p50", "p90", "p99"} <= set(seen.charts["percentiles"].titles)


@needs_chromium
@pytest.mark.parametrize(
    "plan", [rate_plan([20], seconds=6), users_plan([4], seconds=6, goal=GOAL, alone_seconds=0)]
)
def test_a_browser_shows_small_reports(plan: RunPlan, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    write_page(report_of(plan, variation=0.5), file)
    seen = opened(file, tmp_path)
    assert (seen.errors, seen.inaccessible) == ([], [])
    assert all(chart.visible for chart in seen.charts.values()), seen.charts
    assert len(seen.charts) == 4
