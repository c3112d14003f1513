"""What a limit does not show of the endpoint that is planned with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.limit_cautions import (
    MeasuredCase,
    MeasuredTokens,
    uncovered_targets,
)
from low_latency_endpoint.options.latency_target import LatencyTarget

CALLS = 10_000
#: Few times, so that goals and targets often have the same one.
TIMES = st.sampled_from([0.1, 8.7, 50, 100, 310, 310.1, 2000])
KINDS = {"": "", "ttft-": "ttft_", "itl-": "itl_"}
OPTIONS = {
    f"{prefix}{statistic}": f"{option}{statistic.lower().replace('.', '_')}"
    for prefix, option in KINDS.items()
    for statistic in ("p50", "p90", "p95", "p99", "p99.9", "average")
    if not prefix or statistic not in ("p99.9", "average")
}
GOALS = st.dictionaries(
    st.tuples(
        st.sampled_from(["", "ttft-", "itl-", "ttfb-", "tpot-"]),
        st.sampled_from(["p50", "p90", "p95", "p97.5", "p99", "p99.9", "p99.99", "Average"]),
    ).map("".join),
    TIMES,
    max_size=6,
)


@st.composite
def targets(draw: st.DrawFn) -> dict[str, float]:
    """Targets in milliseconds by statistic, none faster than a lower percentile's."""
    stated: dict[str, float] = {}
    for prefix in KINDS:
        names = [name for name in OPTIONS if name.rpartition("-")[0] == prefix.rstrip("-")]
        chosen = [name for name in names if draw(st.booleans())]
        times = sorted(draw(TIMES) for _ in chosen)
        stated |= dict(zip(chosen, times, strict=True))
    return stated


def slowest_law(goal: Mapping[str, float], prefix: str) -> list[float]:
    """Times of 10,000 calls in order, each as long as the percentiles of a goal let it be."""
    bounds = [
        (float(statistic.removeprefix(f"{prefix}p")) / 100 * CALLS, time)
        for statistic, time in goal.items()
        if statistic.startswith(f"{prefix}p")
    ]
    return [
        min((time for rank, time in bounds if rank > call - 0.5), default=math.inf)
        for call in range(1, CALLS + 1)
    ]


def may_be_missed(statistic: str, longest: float, goal: Mapping[str, float]) -> bool:
    """Whether the slowest law that meets a goal misses a target."""
    kind, dash, name = statistic.rpartition("-")
    prefix = kind + dash
    if name == "average":
        return not goal.get(f"{prefix}Average", math.inf) <= longest
    call = round(float(name.removeprefix("p")) / 100 * CALLS)
    return slowest_law(goal, prefix)[call - 1] > longest


@given(GOALS, targets())
def test_a_target_is_open_exactly_if_calls_that_meet_the_goal_may_miss_it(
    goal: dict[str, float], stated: dict[str, float]
) -> None:
    if not stated:
        return
    target = LatencyTarget(**{OPTIONS[name]: f"{time}ms" for name, time in stated.items()})
    told = uncovered_targets(LatencyGoal({name: ms / 1000 for name, ms in goal.items()}), target)
    missed = [name for name, longest in stated.items() if may_be_missed(name, longest, goal)]
    named = [text.partition(" within ")[0].replace("Average", "average") for text in told]
    assert sorted(named) == sorted(missed)


@pytest.mark.parametrize(
    "goal",
    [
        None,
        {},
        [],
        {"targets_ms": {"p99": "200"}, "allowed_errors": 0.001},
        {"targets_ms": {"p99": 200}},
        {"targets_ms": {"p99": math.nan}, "allowed_errors": 0.001},
        {"targets_ms": {"fast": 200}, "allowed_errors": 0.001},
        {"targets_ms": {"p99": 200}, "allowed_errors": 2},
    ],
)
def test_a_goal_that_cannot_be_read_is_none(goal: Any) -> None:
    assert MeasuredCase.of_result({"latency_target": goal}).goal is None


@given(GOALS.filter(bool), st.floats(0, 0.5))
def test_the_goal_of_a_result_is_read_as_it_was_written(
    times: dict[str, float], errors: float
) -> None:
    goal = LatencyGoal({name: ms / 1000 for name, ms in times.items()}, errors, 0.9)
    read = MeasuredCase.of_result({"latency_target": goal.to_dict()}).goal
    assert read is not None
    assert (read.allowed_errors, read.confidence) == (errors, 0.9)
    assert read.targets == pytest.approx(goal.targets, rel=1e-12)


@pytest.mark.parametrize("steps", [None, {}, [3], [{"tokens": 3}], [{"tokens": {}}], [{"step": 1}]])
def test_a_result_without_tokens_says_nothing_of_them(steps: Any) -> None:
    case = MeasuredCase.of_result({"steps": steps})
    assert case.tokens == MeasuredTokens(None, None, None)
    assert not case.equal_gaps
