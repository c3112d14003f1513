"""Whose fault it is that a load generator was late."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.measured_steps import judged
from low_latency_endpoint.load_test.search.result_file import LoadTestRun
from low_latency_endpoint.load_test.search.run_plans import rate_plan
from low_latency_endpoint.load_test.search.saturation import verdicts
from low_latency_endpoint.load_test.search.serving import JoinedMetrics
from low_latency_endpoint.load_test.search.verdict_texts import Verdict

from .fake_account import FLEET, GOAL
from .fake_generator import FakeGenerator

MACHINE = "The machine that sent was too busy, not the endpoint"
ENDPOINT = "the endpoint is over its limit"
TOO_FEW = "it has too few for this rate"
UNKNOWN = "not known"
RUN = run(rate_plan([50], seconds=20, goal=GOAL, alone_seconds=5), FakeGenerator())
ALONE = RUN.alone.result.service.mean


def late_run(seconds: float, *, alone: bool = True, **measured: Any) -> LoadTestRun:
    """A load whose requests took so long from when they were sent, and started later still."""
    count = 1_000
    sent = {
        "intended": 10_000,
        "sent": count,
        "completed": count,
        "answered_in_time": count,
        "service": LatencyHistogram.of([seconds] * count),
        "latency": LatencyHistogram.of([2 * seconds] * count),
        "send_lag": LatencyHistogram.of([seconds] * count),
    }
    (load,) = RUN.loads
    result = replace(load.result, **{**sent, **measured}).judged()
    load = replace(load, result=result, judgement=judged(GOAL, result))
    assert load.judgement.outcome == "client-bound"
    return replace(RUN, steps=(*(RUN.steps[:1] if alone else ()), load))


def first(done: LoadTestRun) -> Verdict:
    """The headline."""
    found = verdicts(done, FLEET, JoinedMetrics())[0]
    assert (found.kind, found.severity) == ("client-bound", "invalid")
    assert found.title.startswith("Client-bound: result invalid. ")
    return found


def lags(seconds: float) -> LatencyHistogram:
    """How late the event loop woke."""
    return LatencyHistogram.of([seconds] * 500)


@pytest.mark.parametrize(
    ("cpu", "lag", "postponed", "longer", "alone", "said", "advice"),
    [
        (0.4, 0.001, 9_000, 20.0, True, ENDPOINT, "Send fewer requests"),
        (0.4, 0.001, 9_000, 1.1, True, TOO_FEW, "--processes"),
        (0.4, 0.001, 9_000, 1.6, True, UNKNOWN, "Send fewer requests"),
        (0.4, 0.001, 9_000, 20.0, False, UNKNOWN, "--alone"),
        (0.95, 0.001, 9_000, 20.0, True, UNKNOWN, "Send fewer requests"),
        (0.4, 5.0, 9_000, 20.0, True, UNKNOWN, "Send fewer requests"),
        (0.4, None, 9_000, 20.0, True, UNKNOWN, "Send fewer requests"),
        (0.95, 0.001, 0, 20.0, True, MACHINE, "--processes"),
        (0.4, 0.001, 0, 20.0, True, MACHINE, "--processes"),
    ],
)
def test_who_is_late(
    cpu: float,
    lag: float | None,
    postponed: int,
    longer: float,
    alone: bool,
    said: str,
    advice: str,
) -> None:
    lag_found = LatencyHistogram() if lag is None else lags(lag)
    done = late_run(
        longer * ALONE, alone=alone, cpu_share=cpu, loop_lag=lag_found, postponed=postponed
    )
    found = first(done)
    assert said in found.title
    assert advice in found.advice
    assert ("over its limit" in found.title) is (said == ENDPOINT or "whether" in found.title)


@given(
    st.floats(0, 1), st.floats(1e-6, 10), st.integers(0, 9_000), st.floats(0.5, 50), st.booleans()
)
def test_nobody_is_blamed_without_a_reason(
    cpu: float, lag: float, postponed: int, longer: float, alone: bool
) -> None:
    """Neither the machine where its connections waited, nor the endpoint where the machine was busy."""
    done = late_run(
        longer * ALONE, alone=alone, cpu_share=cpu, loop_lag=lags(lag), postponed=postponed
    )
    title = first(done).title
    if MACHINE in title:
        assert postponed <= 10
    if title.endswith(ENDPOINT):
        assert postponed > 10
        assert alone
        assert cpu < 0.9
        assert lag < 0.11 * longer * ALONE
        assert longer > 1.9
    if TOO_FEW in title:
        assert longer < 1.3
    if title.endswith(ENDPOINT) or UNKNOWN in title:
        assert "Use more --processes" not in first(done).advice
