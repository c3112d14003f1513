"""The search for the limit on queues whose answer is known, and the statistics that judge it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.measurement import Measurement
from low_latency_endpoint.load_test.engine.steps import Step
from low_latency_endpoint.load_test.search.bounds import (
    mean_bounds,
    quantile_bounds,
    rank_bounds,
    samples_for,
)
from low_latency_endpoint.load_test.search.judging import LatencyGoal, judge
from low_latency_endpoint.load_test.search.limit_search import Limit
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.result_file import LoadTestRun
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan
from tests.refusals import refused

from .fake_generator import FakeGenerator

GOAL = LatencyGoal({"p99": 0.2})


def search(generator: FakeGenerator, goal: LatencyGoal = GOAL, **options: Any) -> LoadTestRun:
    """Look for the limit of a formula."""
    plan = {"seconds": 20.0, "instances": generator.instances, **options}
    return run(limit_plan(SearchPlan(goal, **plan)), generator)


def limit_of(generator: FakeGenerator, goal: LatencyGoal = GOAL, **options: Any) -> Limit:
    """The limit of a formula."""
    found = search(generator, goal, **options).limit
    assert found is not None
    return found


# ---------------------------------------------------------------------------------- the statistics


@given(
    st.integers(1, 20_000),
    st.sampled_from([0.5, 0.9, 0.95, 0.99, 0.999]),
    st.sampled_from([0.9, 0.95, 0.99]),
)
def test_ranks_are_those_of_the_binomial_law(
    samples: int, quantile: float, confidence: float
) -> None:
    low, high = rank_bounds(samples, quantile, confidence)
    alpha, near = 1 - confidence, 1e-9

    def at_most(rank: int) -> float:  # chance that the true quantile lies below this rank
        return float(binom.cdf(rank - 1, samples, quantile))

    assert low == 0 or at_most(low) <= alpha + near
    assert at_most(low + 1) > alpha - near
    assert high == samples + 1 or at_most(high) >= confidence - near
    assert high == 1 or at_most(high - 1) < confidence + near


def test_too_few_samples_bound_nothing_from_above() -> None:
    fewest = samples_for(0.99)
    enough = LatencyHistogram.of([0.01] * fewest)
    assert quantile_bounds(enough, 0.99).high == pytest.approx(0.01, rel=0.001)
    assert math.isinf(quantile_bounds(LatencyHistogram.of([0.01] * (fewest - 1)), 0.99).high)


def test_the_mean_has_an_interval_too() -> None:
    bounds = mean_bounds(LatencyHistogram.of([0.1, 0.2, 0.3] * 100))
    assert bounds.value == pytest.approx(0.2)
    assert (bounds.low, bounds.high) == pytest.approx((0.2 - 0.00775, 0.2 + 0.00775), rel=0.005)


# ------------------------------------------------------------------------------------ the judgement


def _judged(slow: int, of: int = 1000, failed: int = 0, **more: Any) -> Any:
    latencies = LatencyHistogram.of([0.1] * (of - slow) + [0.3] * slow)
    errors = {"timeout": failed} if failed else {}
    measured = Measurement(latency=latencies, sent=of + failed, errors=errors)
    return judge(GOAL, measured, **more)


def test_a_percentile_is_judged_with_its_uncertainty() -> None:
    assert _judged(slow=6, of=3000).outcome == "held"
    assert _judged(slow=10).outcome == "unclear", "p99 itself keeps the target, by luck perhaps"
    assert _judged(slow=30).outcome == "broken"
    assert _judged(slow=0, of=100).outcome == "unclear", "100 requests say little of p99"


# --------------------------------------------------------------------------------------- the search


@pytest.mark.parametrize(
    "generator",
    [
        FakeGenerator(),
        FakeGenerator(workers=1, service=0.004),
        FakeGenerator(instances=3),
        FakeGenerator(workers=48, service=0.24, queue_limit=100),
    ],
)
def test_evenly_spaced_requests_find_the_capacity(generator: FakeGenerator) -> None:
    goal = LatencyGoal({"p99": 0.4})
    found = limit_of(generator, goal, poisson=False)
    assert found.usable
    assert found.confirmed
    assert found.rate == pytest.approx(generator.capacity, rel=0.06)
    assert found.tps_per_instance == pytest.approx(found.rate / generator.instances, rel=0.01)
    assert found.broken_rate is not None
    assert found.rate < found.broken_rate < 1.15 * generator.capacity


def test_errors_are_a_limit_before_latency_is() -> None:
    generator = FakeGenerator(queue_limit=4)
    tested = search(generator, seconds=60.0)
    found = tested.limit
    assert found.usable
    assert found.rate < limit_of(FakeGenerator()).rate, "a short queue refuses bursts"
    missed = [each for each in tested.loads if each.judgement.outcome != "held"]
    assert missed
    assert all("failed" in " ".join(each.judgement.reasons) for each in missed)
    assert max(each.result.latency.max for each in tested.loads) < 0.2


def test_the_first_rate_follows_from_one_caller_alone() -> None:
    generator = FakeGenerator(service=0.05, workers=8)
    search(generator)
    alone, first = generator.steps[:2]
    assert (alone.name, alone.users) == ("alone", 1)
    assert first.arrivals.rate == pytest.approx(0.5 / 0.05, rel=0.01)


def test_a_slow_rate_gets_the_time_that_its_percentile_needs() -> None:
    generator = FakeGenerator(service=0.1, workers=1)
    found = limit_of(generator, seconds=20)
    assert found.usable
    assert 0.5 < found.rate < 3, "at most one in a hundred may meet another in the queue"
    for step in generator.steps[1:]:
        assert step.arrivals.rate * step.counted_seconds > 1.1 * samples_for(0.99)


def test_a_rate_that_would_take_hours_is_given_up() -> None:
    found = limit_of(FakeGenerator(service=1.0, workers=1), LatencyGoal({"p99.9": 1.5}), seconds=10)
    assert not found.usable
    assert "would take too long to judge" in found.problem


def test_an_endpoint_that_is_too_slow_alone_has_no_limit() -> None:
    tested = search(FakeGenerator(service=0.5))
    assert not tested.limit.usable
    assert "one caller at a time already breaks" in tested.limit.problem
    assert len(tested.steps) == 1, "and it is not loaded"


def test_a_generator_at_its_limit_ends_the_search() -> None:
    generator = FakeGenerator(workers=40, client_bound_above=150, late_by=0.3)
    found = limit_of(generator)
    assert not found.usable
    assert "client-bound: result invalid" in found.problem
    assert found.rate is not None, "what held below is told"
    assert found.rate <= 150
    assert found.broken_rate is None, "nothing is known of the endpoint's end"


def test_one_stumble_of_the_machine_is_no_limit() -> None:
    stumbled: list[float] = []

    def unlucky(step: Step) -> bool:
        if step.arrivals is None or len(stumbled) >= 3 or step.arrivals.rate in stumbled:
            return False
        stumbled.append(step.arrivals.rate)
        return True

    found = limit_of(FakeGenerator(unlucky=unlucky, late_by=0.3), poisson=False)
    assert len(stumbled) == 3
    assert found.usable
    assert found.rate == pytest.approx(200, rel=0.06)


def test_a_lucky_step_is_not_confirmed() -> None:
    """Twice the workers in every step but those that confirm: the first limit is too high."""
    generator = FakeGenerator(workers=4)
    original = generator.run
    confirming: list[float] = []

    def run_step(step: Step, progress: Callable[[Any], None] = lambda each: None) -> Any:
        # A confirming step is twice as long as the others of its rate, and has a seed of its own.
        twice = step.arrivals is not None and step.counted_seconds > 35
        generator.workers = 2 if twice and len(confirming) < 2 else 4
        if twice:
            confirming.append(step.arrivals.rate)
        return original(step, progress)

    generator.run = run_step  # type: ignore[method-assign]
    found = limit_of(generator, poisson=False)
    assert found.confirmed
    assert found.rate < confirming[0] * 0.99, "the first one was given up"
    assert found.rate == confirming[-1]


def test_rising_ends_where_it_is_told_to() -> None:
    generator = FakeGenerator()
    found = limit_of(generator, highest_rate=60.0)
    assert (found.rate, found.broken_rate) == (60.0, None)
    assert found.confirmed
    assert max(step.arrivals.rate for step in generator.steps[1:]) == 60.0


def test_a_limit_that_was_not_reached_is_a_lower_bound() -> None:
    found = limit_of(FakeGenerator(), highest_rate=60.0)
    assert (found.found, found.usable, found.lower_bound) == (True, False, True)
    assert found.to_dict()["lower_bound"] is True
    assert "no higher one was to be tried (--up-to 60)" in found.how
    reached = limit_of(FakeGenerator(), highest_rate=1000.0, poisson=False)
    assert (reached.usable, reached.lower_bound) == (True, False)


@pytest.mark.parametrize(("valid_after", "confirmed"), [(math.inf, False), (2, True)])
def test_a_step_that_the_generator_limited_confirms_nothing(
    valid_after: float, confirmed: bool
) -> None:
    """It keeps the target with the generator's delay, so it may guide the rise; no more."""
    confirming: list[Step] = []

    def unlucky(step: Step) -> bool:
        if step.arrivals is None:
            return False
        if step.counted_seconds > 35:
            confirming.append(step)
        return len(confirming) <= valid_after

    found = limit_of(FakeGenerator(unlucky=unlucky), highest_rate=60.0)
    assert found.rate == 60.0
    assert (found.confirmed, found.found) == (confirmed, confirmed)
    assert len(confirming) == 3
    assert ("client-bound: result invalid" in found.problem) is not confirmed


def test_an_average_is_a_target_too() -> None:
    generator = FakeGenerator(service=0.01, workers=1)
    found = limit_of(generator, LatencyGoal({"Average": 0.02}), seconds=60)
    # M/D/1: the mean time in the system is D + D rho / (2 (1 - rho)): 2 D at rho = 2/3.
    assert found.usable
    assert 0.85 * 200 / 3 < found.rate < 200 / 3 * 1.03


def test_a_first_rate_that_is_too_high_goes_down() -> None:
    found = limit_of(FakeGenerator(), first_rate=1000.0, poisson=False)
    assert found.rate == pytest.approx(200, rel=0.06)


def test_precision_is_what_was_asked_for() -> None:
    fine = limit_of(FakeGenerator(), poisson=False, precision=0.01, seconds=60)
    assert fine.rate == pytest.approx(200, rel=0.015)
    with refused("LLT117"):
        SearchPlan(GOAL, precision=0.0)


def test_the_same_seed_asks_the_same() -> None:
    first, second = FakeGenerator(variation=1), FakeGenerator(variation=1)
    assert limit_of(first, seed=5) == limit_of(second, seed=5)
    assert first.steps == second.steps


def test_tps_per_instance_is_rounded_down() -> None:
    limit = Limit(619.99, None, 3, 0.95, True, "")
    assert limit.tps_per_instance == 206.0
    assert Limit(0.98765, None, 1, 0.95, True, "").tps_per_instance == 0.987
    assert Limit(200.0, None, 1, 0.95, True, "").tps_per_instance == 200.0
    assert Limit(None, None, 1, 0.95, False, "").tps_per_instance is None


@pytest.mark.parametrize(
    ("goal", "code"),
    [
        ({"targets": {"p100": 0.2}}, "LLT110"),
        ({"targets": {"best": 0.2}}, "LLT110"),
        ({"targets": {"p99": 0.0}}, "LLT110"),
        ({"allowed_errors": 0.9}, "LLT116"),
    ],
)
def test_goals_out_of_range(goal: dict[str, Any], code: str) -> None:
    with refused(code):
        LatencyGoal(**goal)


@pytest.mark.parametrize(("random_times", "confidence"), [(False, 0.95), (True, None)])
def test_a_limit_says_whether_it_is_certain_or_was_seen(
    random_times: bool, confidence: float | None
) -> None:
    """Constant times at equal gaps have a sharp edge; near a queue's limit no minute is certain."""
    generator = FakeGenerator(variation=float(random_times))
    found = limit_of(generator, seconds=60, poisson=random_times)
    assert (found.usable, found.confirmed, found.confidence) == (True, True, confidence)
    assert ("without a confidence" in found.how) is random_times
    assert found.to_dict()["confidence"] == confidence
    assert 160 < found.rate < 201  # 4 / 0.02 a second are all there is
    assert generator.sent_seconds < 600
