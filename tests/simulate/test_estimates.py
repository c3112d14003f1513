"""Intervals over replications, and what chance is taken out of them."""

from __future__ import annotations

import pytest

from low_latency_endpoint.simulate import (
    ArrivalTrace,
    Constant,
    Exponential,
    OpenLoop,
    Scenario,
    simulate,
)
from low_latency_endpoint.simulate.estimates import estimate

# At 1000 requests per second a block of 16,384 draws lasts 16.384 s.
BUSY = Scenario(service=Exponential(0.0008), traffic=OpenLoop(1000.0))


@pytest.mark.parametrize("seconds", [1.0, 16.3, 16.384, 16.5, 40.0])
def test_runs_by_time_have_the_luck_of_their_own_requests(seconds: float) -> None:
    """M/M/1 at a load of 0.8: 4 ms in the system; whatever block a run ends in."""
    held = used = 0
    for seed in range(40):
        found = simulate(BUSY, seconds=seconds, seed=seed)
        latency = found.estimate(lambda run: run.mean)  # whatever the length
        held += latency.holds(0.004)
        used += found.utilisation.holds(0.8)
        assert abs(found.utilisation.mean - 0.8) < 0.02
        plain = estimate([run.mean for run in found.replications])
        assert latency.half_width < 3 * plain.half_width
    assert held >= 36  # 39.6 are expected of intervals at 99 %, less where queues are skewed
    assert used >= 36


def test_what_was_drawn_is_what_arrived() -> None:
    """A fixed number of requests, all counted: the drawn mean is the mean of their times."""
    scenario = Scenario(
        service=Exponential(1.0),
        concurrency=4096,
        traffic=ArrivalTrace(tuple(map(float, range(1000)))),
    )
    for run in simulate(scenario, requests=1000, discard=0.0).replications:
        assert run.entered == 1000
        assert run.mean_service == pytest.approx(run.mean)


def test_a_replication_without_arrivals_takes_no_luck_out() -> None:
    found = simulate(
        Scenario(service=Constant(0.1), traffic=OpenLoop(0.01)), seconds=50.0, discard=0.5
    )
    assert None in [run.mean_service for run in found.replications]
    assert found.controls == []
    assert found.utilisation.mean >= 0


def test_controls_that_say_the_same_give_the_plain_interval() -> None:
    values = [9.0, 10.0, 11.0, 10.5, 9.5, 10.0]
    luck = [0.1, -0.2, 0.3, 0.1, -0.1, 0.0]
    twice = [2 * each for each in luck]
    assert estimate(values, controls=[luck, twice]) == estimate(values)
    assert estimate(values, controls=[luck]).half_width != estimate(values).half_width
