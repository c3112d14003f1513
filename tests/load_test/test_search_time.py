"""How long a search takes, as it is announced, against the sum of its steps."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.load_testing import StepEvent, run
from low_latency_endpoint.load_test.search.result_file import LoadTestRun
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan
from low_latency_endpoint.load_test.search.search_time import (
    about,
    announcement,
    seconds_left,
    seconds_of_search,
)

from .fake_generator import FakeGenerator

WITHIN = 1.5  # times what was announced


def search(
    generator: FakeGenerator, target: float, seconds: float, **more: Any
) -> tuple[LoadTestRun, list[tuple[StepEvent, float]]]:
    """A search, and each of its steps with the time at which it began."""
    began = []

    def emit(event: StepEvent) -> None:
        if event.began:
            began.append((event, generator.sent_seconds))

    goal = LatencyGoal({more.pop("statistic", "p99"): target})
    plan = SearchPlan(goal, seconds, min(10.0, seconds / 2), instances=1, **more)
    return run(limit_plan(plan), generator, emit), began


def confirmed_at_once(done: LoadTestRun) -> bool:
    """Whether bisecting did not go on after a step that was to confirm."""
    purposes = [step.purpose for step in done.steps]
    return "bisect" not in purposes[purposes.index("confirm") :]


# Of a request alone the milliseconds; workers, places in the queue, the target in milliseconds. The
# first rate is half a request under way.
SERVERS = {
    0.5: (100, 1, None, 350),
    1: (200, 1, 8, 1_100),
    2: (200, 2, 8, 700),
    5: (200, 4, 8, 500),
    10: (1_000, 8, None, 3_000),
    20: (50, 10, None, 300),
}


CASES = [("p99", 30.0), ("p99", 60.0), ("p95", 30.0)]


@pytest.mark.parametrize(("statistic", "seconds"), CASES)
@pytest.mark.parametrize("multiple", SERVERS)
def test_a_search_takes_as_long_as_is_announced(
    multiple: float, statistic: str, seconds: float
) -> None:
    """In the median of searches that are confirmed at once; each alone has its own chance.

    So does what is left when the limit is known to lie between two rates.
    """
    service, workers, queue, target = SERVERS[multiple]
    whole, left = [], []
    for seed in range(1, 36, 7):
        generator = FakeGenerator(
            service=service / 1000, workers=workers, queue_limit=queue, variation=0.1
        )
        done, began = search(generator, target / 1000, seconds, statistic=statistic, seed=seed)
        if done.limit is None or not done.limit.found or not confirmed_at_once(done):
            continue
        (alone, _), (first, _) = began[:2]
        rate, limit, plan = first.step.arrivals.rate, done.limit.rate, done.plan.search
        took = generator.sent_seconds - alone.step.seconds
        whole.append(took / seconds_of_search(plan, rate, limit, whole_minutes=False))
        event, at = next(each for each in began if each[0].purpose == "bisect")
        left.append((generator.sent_seconds - at) / event.left)
        if statistic == "p99":
            assert multiple / 2 <= limit / rate <= 2 * multiple
        if 0.5 <= limit / rate <= 10:
            told = [
                seconds_of_search(plan, rate, share * rate, whole_minutes=False)
                for share in (0.5, 1, 10)
            ]
            assert min(told) / WITHIN <= took <= WITHIN * max(told)
    assert len(whole) >= 2
    for shares in (whole, left):
        assert 1 / WITHIN <= median(shares) <= WITHIN, shares
        assert 0.5 <= min(shares) <= max(shares) <= 2, shares


def test_the_first_rate_announces_the_time() -> None:
    """299 requests for p99 at two a second: steps of 30 s become minutes."""
    generator = FakeGenerator(service=0.2, workers=4, queue_limit=8)
    done, began = search(generator, 0.5, 30.0)
    told = [(event.purpose, event.announcement) for event, _ in began if event.announcement]
    rate = began[1][0].step.arrivals.rate
    assert told == [("rise", announcement(done.plan.search, rate, whole_minutes=False))]
    assert began[0][0].left is None, "before the first rate nothing is known"
    times = {
        share: about(seconds_of_search(done.plan.search, rate, share * rate, whole_minutes=False))
        for share in (1, 10, 0.5)
    }
    assert told[0][1] == (
        f"The search takes {times[1]} if the limit is near the first rate (2.5 requests a second), "
        f"{times[10]} if the limit is ten times that, {times[0.5]} if the limit is half of it; more "
        "where the limit is not confirmed at once."
    )


def test_one_time_is_announced_where_requests_are_many() -> None:
    text = announcement(SearchPlan(LatencyGoal({"p99": 0.2}), 30.0), 100.0, whole_minutes=False)
    assert text == ("The search takes about 3 min; more where the limit is not confirmed at once.")


def test_no_time_is_announced_of_a_rate_that_cannot_be_judged() -> None:
    plan = SearchPlan(LatencyGoal({"p99.9": 5.0}), 10.0)
    assert announcement(plan, 0.5, whole_minutes=False) == ""


def test_a_limit_that_cannot_be_judged_is_left_out() -> None:
    """Steps of 30 s become 15 minutes at most: 0.4 requests a second are enough, and 0.2 are not."""
    plan = SearchPlan(LatencyGoal({"p99": 5.0}), 30.0)
    text = announcement(plan, 0.45, whole_minutes=False)
    assert "ten times" in text
    assert "half" not in text


def test_full_minutes_are_waited_for() -> None:
    plan = SearchPlan(LatencyGoal({"p99": 0.2}), 60.0)
    apart = [
        seconds_left(plan, 100.0, 1.0, confirming=2, whole_minutes=whole) for whole in (True, False)
    ]
    assert apart[0] - apart[1] == 30


def test_where_rising_is_told_to_end_nothing_is_bisected() -> None:
    goal = LatencyGoal({"p99": 0.2})
    to_the_end = SearchPlan(goal, 30.0, highest_rate=200.0)
    further = SearchPlan(goal, 30.0)
    first = [
        seconds_of_search(plan, 100.0, 200.0, whole_minutes=False) for plan in (to_the_end, further)
    ]
    assert first[0] < first[1]


@given(st.floats(0.3, 1000), st.floats(1.0, 8.0), st.integers(0, 5))
def test_less_is_left_after_each_step(rate: float, bracket: float, confirming: int) -> None:
    plan = SearchPlan(LatencyGoal({"p99": 0.2}), 60.0)
    left = seconds_left(plan, rate, bracket, confirming=confirming, whole_minutes=True)
    later = seconds_left(plan, rate, bracket**0.5, confirming=confirming, whole_minutes=True)
    assert 0 < later <= left
    assert (
        0 < seconds_left(plan, rate, bracket, confirming=confirming + 1, whole_minutes=True) <= left
    )


@pytest.mark.parametrize(("seconds", "text"), [(0, 1), (-20, 1), (89, 1), (91, 2), (3_600, 60)])
def test_minutes(seconds: float, text: int) -> None:
    assert about(seconds) == f"about {text} min"
