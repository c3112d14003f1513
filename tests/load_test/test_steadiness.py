"""Steps of one search that contradict each other."""

from __future__ import annotations

import pytest

from low_latency_endpoint.load_test.engine.arrivals import PoissonArrivals
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import Step
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.measured_steps import MeasuredStep, judged
from low_latency_endpoint.load_test.search.saturation import verdicts
from low_latency_endpoint.load_test.search.serving import JoinedMetrics
from low_latency_endpoint.load_test.search.steadiness import minutes_text, unsteadiness

from .fake_account import FLEET, kinds
from .fake_generator import answered
from .known_servers import SERVERS, search

GOAL = LatencyGoal({"p99": 0.2})
#: 14:00:00 UTC.
AFTERNOON = 1_800_021_600 - 1_800_021_600 % 86_400 + 14 * 3_600


def measured(rate: float, late: int, *, failed: int = 0, minute: int = 0) -> MeasuredStep:
    """A minute of 6,000 answers."""
    step = Step("s", 60, PoissonArrivals(rate))
    latency = LatencyHistogram.of([0.1] * (6_000 - late) + [0.3] * late)
    errors = {"503 Busy": failed} if failed else {}
    result = answered(step, latency, AFTERNOON + 60 * minute, sent=6_000 + failed, errors=errors)
    return MeasuredStep(result, (), judged(GOAL, result))


@pytest.mark.parametrize(
    ("first", "second", "differ"),
    [
        # Of 6,000 with 30 late, 0.3 to 0.8 % are late with 99 % on either side; with 90, 1.2 to 1.9 %.
        (measured(100, 30), measured(100, 90), True),
        (measured(100, 90), measured(100, 30), True),
        (measured(100, 30), measured(100, 45), False),
        # More may be late at a higher rate, not at a lower one.
        (measured(100, 30), measured(110, 90), False),
        (measured(100, 90), measured(110, 30), True),
        (measured(110, 30), measured(100, 90), True),
        # None of 6,000 failed: at most 0.08 %. Of 24, 0.24 to 0.63 %.
        (measured(100, 30), measured(100, 30, failed=24), True),
        (measured(100, 30), measured(100, 30, failed=5), False),
    ],
)
def test_steps_contradict_each_other_beyond_chance(
    first: MeasuredStep, second: MeasuredStep, differ: bool
) -> None:
    assert bool(unsteadiness(GOAL, [first, second])) is differ


def test_the_contradiction_names_its_minutes() -> None:
    steps = [measured(100, 30), measured(100, 90, minute=4)]
    assert minutes_text(steps[0]) == "from 14:00:00 to 14:01:00 UTC"
    assert unsteadiness(GOAL, steps) == (
        "0.50% missed the target of p99 at 100 requests a second from 14:00:00 to 14:01:00 UTC, and "
        "1.50% missed the target of p99 from 14:04:00 to 14:05:00 UTC"
    )


def test_a_search_says_that_the_endpoint_drifts() -> None:
    """In seed 12 a rate held, and 100 s later it did not by far: the limit has no confidence."""
    done, _ = search(SERVERS["drift"], 12)
    limit = done.limit
    assert limit is not None
    assert limit.confidence is None
    assert "missed the target of p99" in limit.unsteady
    assert "did not answer alike at all times" in limit.how
    assert "unsteady" in kinds(verdicts(done, FLEET, JoinedMetrics()))


def test_searches_of_a_steady_server_say_nothing() -> None:
    for seed in (1, 2, 3):
        done, _ = search(SERVERS["M/M/4"], seed)
        assert done.limit is not None
        assert done.limit.unsteady == ""
        assert done.limit.when in done.limit.how
