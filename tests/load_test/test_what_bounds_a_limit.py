"""However a search ends: what bounds its limit stands first, and nothing is called unsaturated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.load_test.engine.failure_causes import NOT_THE_INSTANCES
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.load_testing import StepEvent, run
from low_latency_endpoint.load_test.search.measured_steps import MeasuredStep
from low_latency_endpoint.load_test.search.result_file import LoadTestRun
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan
from low_latency_endpoint.load_test.search.saturation import loaded_step, verdicts
from low_latency_endpoint.load_test.search.serving import JoinedMetrics

from .fake_account import FLEET, metrics_of
from .fake_generator import FakeGenerator

MINUTES = 240
OF_ERRORS = {"errors", *NOT_THE_INSTANCES}
METRICS = [
    JoinedMetrics(),
    metrics_of(CPUUtilization_Average=[38.0] * MINUTES),
    metrics_of(CPUUtilization_Average=[75.0] * MINUTES),
    metrics_of(CPUUtilization_Average=[38.0] * MINUTES, ModelLatency_Average=[30.0] * MINUTES),
]


def stopping(after: int) -> Callable[[StepEvent], None]:
    """Ctrl-C after so many steps; 0 for none."""
    ended = 0

    def emit(event: StepEvent) -> None:
        nonlocal ended
        ended += event.measured is not None
        if after and ended > after:
            raise KeyboardInterrupt

    return emit


def above(done: LoadTestRun) -> list[MeasuredStep]:
    """The loads above the limit that did not hold."""
    held = done.limit.rate if done.limit is not None and done.limit.rate else 0.0
    return [
        step
        for step in done.loads
        if step.judgement.outcome != "client-bound"
        and not step.judgement.kept
        and step.offered > held * (1 + 1e-9)
    ]


def check(done: LoadTestRun, metrics: JoinedMetrics) -> None:
    """What is said of a search fits how it ended."""
    found = [each for each in verdicts(done, FLEET, metrics) if each.severity != "invalid"]
    missed = above(done)
    if not missed:
        return
    lowest = min(missed, key=lambda step: step.offered)
    assert loaded_step(done).offered == lowest.offered
    assert found[0].severity == "limit"
    assert {"not-saturated", "not-read"}.isdisjoint(each.kind for each in found)
    failed = lowest.result.failed
    if failed > done.goal.allowed_errors * lowest.result.sent:
        assert found[0].kind in OF_ERRORS
    if not failed:
        assert found[0].kind not in OF_ERRORS
    if any(step.judgement.errors for step in missed):
        assert OF_ERRORS.intersection(each.kind for each in found)


@settings(max_examples=60)
@given(
    st.fixed_dictionaries(
        {
            "service": st.sampled_from([0.02, 0.1, 0.2]),
            "variation": st.sampled_from([0.0, 0.5, 1.0]),
            "workers": st.integers(1, 4),
            "queue_limit": st.sampled_from([0, 1, 2, 5, 20, None]),
            "timeout": st.sampled_from([0.5, 60.0]),
        }
    ),
    st.sampled_from([10.0, 30.0, 60.0]),
    st.sampled_from([12.0, 100.0, 100_000.0]),
    st.sampled_from([0, 0, 3, 5]),
    st.sampled_from(METRICS),
    st.integers(1, 1_000),
)
def test_what_bounds_a_limit_stands_first(
    server: dict[str, Any],
    seconds: float,
    up_to: float,
    stops: int,
    metrics: JoinedMetrics,
    seed: int,
) -> None:
    goal = LatencyGoal({"p99": 1.0})
    plan = SearchPlan(goal, seconds, instances=1, highest_rate=up_to, seed=seed)
    check(run(limit_plan(plan), FakeGenerator(**server), stopping(stops)), metrics)


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("metrics", METRICS)
def test_a_short_queue_that_refuses_now_and_then_bounds_the_limit(
    seed: int, metrics: JoinedMetrics
) -> None:
    """30 s steps: too few requests to be certain that too many failed, and yet that is the bound."""
    server = FakeGenerator(service=0.1, workers=4, queue_limit=2)
    plan = SearchPlan(LatencyGoal({"p99": 1.0}), 30, instances=1, seed=seed)
    done = run(limit_plan(plan), server)
    assert above(done)
    check(done, metrics)
    first = next(each for each in verdicts(done, FLEET, metrics) if each.severity != "invalid")
    assert first.kind == "errors"
    assert "503" in first.evidence[0]


@pytest.mark.parametrize("seed", [1, 3, 5, 6, 7])
def test_what_fails_past_the_bound_is_named_too(seed: int) -> None:
    """Waiting bounds the limit; a little more, and the full queue refuses requests."""
    server = FakeGenerator(service=0.05, workers=4, queue_limit=10)
    plan = SearchPlan(LatencyGoal({"p90": 0.08}), 5, instances=1, seed=seed)
    done = run(limit_plan(plan), server)
    assert not loaded_step(done).result.failed
    check(done, JoinedMetrics())
    errors = next(each for each in verdicts(done, FLEET, JoinedMetrics()) if each.kind == "errors")
    assert errors.title.startswith("Requests fail at")
