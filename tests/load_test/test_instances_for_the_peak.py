"""A stated peak is never passed over: each search counts its instances, or says why it counts none."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.load_test.report import document
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.load_testing import StepEvent, run
from low_latency_endpoint.load_test.search.result_file import LoadTestReport, LoadTestRun
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan, rate_plan
from low_latency_endpoint.load_test.search.saturation import verdicts
from low_latency_endpoint.load_test.search.serving import JoinedMetrics
from low_latency_endpoint.options.throughput import instances_at_peak
from low_latency_endpoint.report.document import Document, Listed, Section

from .fake_account import FLEET, report_of
from .fake_generator import FakeGenerator

GOAL = LatencyGoal({"p99": 0.2})
PEAK = 1_000.0
#: Servers and searches that end in every way there is: with and without a confidence, before the
#: limit, with none at all, by the generator.
ENDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a limit with a confidence": ({"queue_limit": 20}, {"poisson": False}),
    "a limit without a confidence": ({"variation": 0.5, "queue_limit": 20}, {"seconds": 4}),
    "a lower bound": ({"queue_limit": 20}, {"highest_rate": 40, "poisson": False}),
    "a lower bound without a confidence": (
        {"service": 0.05, "variation": 0.7, "workers": 16},
        {"highest_rate": 40, "seconds": 4},
    ),
    "one caller is too many": ({"service": 0.5}, {}),
    "the generator": ({"client_bound_above": 100, "late_by": 0.3}, {}),
}


def searched(end: str, stop_after: int = 1_000) -> LoadTestRun:
    """A search; stopped in the step after so many."""
    server, search = ENDS[end]
    ended: list[StepEvent] = []

    def emit(event: StepEvent) -> None:
        if event.measured:
            ended.append(event)
        elif len(ended) >= stop_after:
            raise KeyboardInterrupt

    plan = SearchPlan(GOAL, **{"seconds": 20, "instances": 1, **search})
    return run(limit_plan(plan), FakeGenerator(**server), emit)


def reported(done: LoadTestRun, peak: float | None = PEAK) -> LoadTestReport:
    told = verdicts(done, FLEET, JoinedMetrics())
    return replace(report_of(done.plan), run=done, verdicts=told, peak_tps=peak, safety_factor=None)


def follows(shown: Document) -> list[str]:
    """What is said to follow."""
    sections = (part for part in shown.parts if isinstance(part, Section))
    (parts,) = (each.parts for each in sections if each.title == "What follows")
    return [str(line) for part in parts if isinstance(part, Listed) for line in part.items]


def about_the_peak(lines: list[str]) -> list[str]:
    return [line for line in lines if re.search(r"1,000 (requests )?a second( are|:)", line)]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(ENDS)), st.integers(1, 30))
def test_each_search_says_what_the_peak_needs_or_why_it_does_not_say(end: str, steps: int) -> None:
    done = searched(end, steps)
    report = reported(done)
    (line,) = about_the_peak(follows(document(report)))
    limit = done.limit
    if report.invalid or limit is None or not limit.found:
        assert line.startswith("No instances are counted for 1,000 requests a second: ")
        assert not line.endswith(": .")
        return
    assured = limit.assured_tps_per_instance
    assert ("was not shown with a confidence" in line) is (assured is None)
    assert ("a second are at most " in line) is limit.lower_bound
    assert ("at least " in line.partition(":")[0].lower()) is limit.lower_bound
    count = instances_at_peak(PEAK, assured or limit.tps_per_instance or 0.0, 0.5, 1)
    assert re.search(rf"\b{count} instances \(factor 0\.5", line)


def test_every_way_to_end_is_tried() -> None:
    """Else the property above is one of fewer ends than it says."""
    runs = [searched(end, steps) for end in ENDS for steps in (4, 1_000)]
    kinds = {
        (limit.found, limit.lower_bound, limit.assured is None)
        for limit in (done.limit for done in runs)
        if limit is not None
    }
    assert {
        *((True, False, certain) for certain in (True, False)),
        *((True, True, certain) for certain in (True, False)),
        (False, False, True),
    } == kinds


@pytest.mark.parametrize("end", ENDS)
def test_without_a_peak_none_is_spoken_of(end: str) -> None:
    assert about_the_peak(follows(document(reported(searched(end), None)))) == []


def test_a_test_of_a_rate_counts_nothing() -> None:
    """The settings file's peak is there, but nobody asked for a limit."""
    done = run(rate_plan([50], seconds=6, goal=GOAL), FakeGenerator())
    assert about_the_peak(follows(document(reported(done)))) == []


# ------------------------------------------------------------------------- a search that was stopped


@settings(max_examples=40, deadline=None)
@example("a limit without a confidence", 10)
@given(st.sampled_from(sorted(ENDS)), st.integers(1, 30))
def test_a_stopped_search_says_no_more_than_its_steps_showed(end: str, steps: int) -> None:
    done = searched(end, steps)
    limit = done.limit
    if not done.interrupted or limit is None:
        return
    # A step that decided nothing bounds nothing, also where it kept the goal no better.
    missed = [step.offered for step in done.loads if step.judgement.outcome == "broken"]
    above = [rate for rate in missed if rate is not None and rate > (limit.rate or 0.0)]
    assert limit.broken_rate == min(above, default=None)
    assert ("the limit may be higher" in limit.how) is (not above)
    assert ("the limit lies between them" in limit.how) is bool(above)
    said = " ".join(follows(document(reported(done))))
    assert "--up-to" not in said
    assert "let it run to its end" in said


def test_a_whole_search_up_to_a_rate_names_the_option() -> None:
    said = " ".join(follows(document(reported(searched("a lower bound")))))
    assert "leave out --up-to, or raise it" in said
    assert "run to its end" not in said


def test_what_others_failed_bounds_no_instance() -> None:
    """Requests that were throttled say nothing of the limit: it may be higher."""

    class Throttled(FakeGenerator):
        def run(self, step: Any, progress: Any = lambda each: None) -> Any:
            rate = step.arrivals.rate_at(0, 1) if step.arrivals else 0.0
            self.broken = "400 ThrottlingException" if rate > 60 else ""
            return super().run(step, progress)

    ended: list[StepEvent] = []

    def emit(event: StepEvent) -> None:
        if event.measured:
            ended.append(event)
        elif len(ended) >= 3:
            raise KeyboardInterrupt

    plan = SearchPlan(GOAL, 20, instances=1, first_rate=50, poisson=False)
    limit = run(limit_plan(plan), Throttled(), emit).limit
    assert limit is not None
    assert limit.broken_rate is None
    assert "the limit may be higher" in limit.how
