"""Do the intervals hold the truth as often as they say? Against exact laws, over many seeds.

Each system runs just as long as :mod:`low_latency_endpoint.simulate.run_length` demands of the
figure that is looked at, so this is the shortest run that still gets an interval. Whatever is
shorter says that it is too short to tell.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import pytest

from low_latency_endpoint.simulate import (
    ClosedLoop,
    Constant,
    Exponential,
    Lognormal,
    OpenLoop,
    Scenario,
    simulate,
)
from low_latency_endpoint.simulate.estimates import Estimate
from low_latency_endpoint.simulate.run_length import MOST_REQUESTS, memory
from low_latency_endpoint.simulate.service_laws import ServiceLaw
from low_latency_endpoint.simulate.simulating import SimulationResult
from tests.depth import BY_NIGHT

SEEDS = 200 if BY_NIGHT else 40
MEAN = None


class System(NamedTuple):
    """A scenario and its exact values: the mean latency, and percentiles."""

    scenario: Scenario
    exact: dict[float | None, float]


def mm1(load: float, instances: int = 1) -> System:
    """Latency is exponential with mean 1 / (1 - load); so it is with RANDOM over several."""
    return System(
        Scenario(service=Exponential(1.0), traffic=OpenLoop(instances * load), instances=instances),
        {MEAN: 1 / (1 - load), 99.0: math.log(100) / (1 - load), 99.9: math.log(1000) / (1 - load)},
    )


def erlang_c(servers: int, load: float) -> float:
    """Chance to wait in M/M/c at a load per server (Erlang 1917)."""
    offered, blocked = servers * load, 1.0
    for k in range(1, servers + 1):
        blocked = offered * blocked / (k + offered * blocked)
    return blocked / (1 - load + load * blocked)


def mmc(load: float, workers: int) -> System:
    """Erlang's C; the latency is a service time, and with that chance an exponential wait more."""
    offered, spare, waits = load * workers, workers * (1 - load), erlang_c(workers, load)

    def beyond(time: float) -> float:
        rest = (math.exp(-time) - math.exp(-spare * time)) / (spare - 1)
        return math.exp(-time) + waits * rest

    def percentile(share: float) -> float:
        low, high = 0.0, 1e4
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (middle, high) if beyond(middle) > share else (low, middle)
        return low

    return System(
        Scenario(service=Exponential(1.0), traffic=OpenLoop(offered), concurrency=workers),
        {MEAN: 1 + waits / spare, 99.0: percentile(0.01), 99.9: percentile(0.001)},
    )


def mg1(load: float, law: ServiceLaw) -> System:
    """Pollaczek and Khinchine, for a law of mean 1."""
    wait = load * (1 + law.variation**2) / 2 / (1 - load)
    return System(Scenario(service=law, traffic=OpenLoop(load)), {MEAN: 1 + wait})


def batching(load: float, room: int, slope: float) -> System:
    """A birth-death chain, whose speed depends on how many are at work; then Little's law."""
    shape = Scenario(service=Exponential(1.0), traffic=OpenLoop(1.0), concurrency=room, slope=slope)
    rate = load * shape.instance_rate
    weight, total, there = 1.0, 1.0, 0.0
    for count in range(1, 20_000):
        at_work = min(count, room)
        weight *= rate * (1 + slope * (at_work - 1)) / at_work
        total, there = total + weight, there + count * weight
    return System(shape.with_(traffic=OpenLoop(rate)), {MEAN: there / total / rate})


def users(number: int, pause: float, workers: int) -> System:
    """M/M/c//N."""
    weight, total, there = 1.0, 1.0, 0.0
    for count in range(1, number + 1):
        weight *= (number - count + 1) / pause / min(count, workers)
        total, there = total + weight, there + count * weight
    inside = there / total
    return System(
        Scenario(
            service=Exponential(1.0),
            traffic=ClosedLoop(number, Exponential(pause)),
            concurrency=workers,
        ),
        {MEAN: inside * pause / (number - inside)},
    )


def figure(result: SimulationResult, percentile: float | None) -> Estimate:
    return result.mean if percentile is None else result.percentile(percentile)


def held(system: System, percentile: float | None) -> int:
    """In how many of the seeds the 95 % interval holds the exact value."""
    found = memory(system.scenario)
    assert found
    requests = max(100, found.requests(percentile, 8))
    assert requests <= MOST_REQUESTS, "nobody gets so long a run without asking for it"
    count = 0
    for seed in range(SEEDS):
        result = simulate(system.scenario, requests=requests, seed=seed, confidence=0.95)
        interval = figure(result, percentile)
        assert interval.tells
        count += interval.holds(system.exact[percentile])
    return count


SHORT = {"M/M/1 0.5, p99": (mm1(0.5), 99.0), "20 users, mean": (users(20, 10.0, 4), MEAN)}
PERCENTILES = {
    "M/M/1 0.3, p99.9": (mm1(0.3), 99.9),
    "8 x M/M/1 0.8, p99": (mm1(0.8, 8), 99.0),
    "M/M/8 0.8, p99": (mmc(0.8, 8), 99.0),
}
MEANS = {
    "M/M/1 0.8": (mm1(0.8), MEAN),
    "M/M/8 0.8": (mmc(0.8, 8), MEAN),
    "M/M/48 0.9": (mmc(0.9, 48), MEAN),
    "M/G/1 0.8": (mg1(0.8, Lognormal(1.0, 1.0)), MEAN),
    "batching 0.7": (batching(0.7, 64, 0.1), MEAN),
    "60 users": (users(60, 10.0, 4), MEAN),
    "8 x M/M/1 0.95": (mm1(0.95, 8), MEAN),
    "M/D/1 0.98": (mg1(0.98, Constant(1.0)), MEAN),
}


def check(systems: dict[str, tuple[System, float | None]]) -> None:
    """Of 200 seeds 93 to 97 % on average, and each within three standard errors of 95 %, 4.5 points.

    One system's share is within 93 to 97 % in only six of seven such experiments, however true its
    95 % are. Fewer seeds have wider bounds.
    """
    wider = (200 / SEEDS) ** 0.5
    shares = {name: held(*one) / SEEDS for name, one in systems.items()}
    assert all(abs(share - 0.95) <= 0.045 * wider for share in shares.values()), shares
    assert abs(sum(shares.values()) / len(shares) - 0.95) <= 0.02 * wider, shares


def test_intervals_hold_the_truth() -> None:
    pytest.importorskip("numba")
    check(SHORT)


@pytest.mark.realtime  # minutes of simulation, no clocks
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("systems", [PERCENTILES, MEANS], ids=["percentiles", "means"])
def test_intervals_hold_the_truth_in_long_runs(
    systems: dict[str, tuple[System, float | None]],
) -> None:
    pytest.importorskip("numba")
    check(systems)


@pytest.mark.parametrize(
    ("system", "percentile"),
    [
        (mm1(0.95), 99.9),  # 30 % of the old intervals held this one
        (mm1(0.98, 8), 99.0),  # 10 %
        (mm1(0.98, 8), 99.9),  # 0 %
        (mg1(0.6, Lognormal(1.0, 3.0)), MEAN),  # service times whose rare long ones make the mean
    ],
)
def test_what_a_run_cannot_tell_it_does_not_tell(system: System, percentile: float) -> None:
    """At the length that used to ship; each miss was on the unsafe side."""
    result = simulate(system.scenario, requests=40_000)
    found = figure(result, percentile)
    assert not found.tells
    assert found.holds(system.exact[percentile])
    assert result.too_short(percentile)
    assert result.requests_needed(percentile) > 40_000


def test_what_was_counted_from_an_empty_start_is_told_when_it_weighs_little() -> None:
    """M/M/1 at 0.8: the warm-up is 3 relaxation times of 100 requests; 30 of them are 9,000."""
    scenario = mm1(0.8).scenario
    found = memory(scenario)
    assert found
    assert found.warm_up == pytest.approx(300, abs=2)
    counted = simulate(scenario, requests=9_000, discard=0.0)
    assert counted.requests_needed() == found.requests(None, 8) == pytest.approx(10_000, abs=1)
    assert counted.too_short()
    assert not simulate(scenario, requests=10_100, discard=0.0).too_short()
    short = simulate(mm1(0.8, 20).scenario, requests=100_000, discard=0.0)
    assert short.requests_needed() == 30 * memory(short.scenario).warm_up  # type: ignore[union-attr]


@pytest.mark.parametrize(("routing", "queues"), [("RANDOM", 8), ("LEAST_OUTSTANDING_REQUESTS", 1)])
def test_queues_that_nobody_evens_out_forget_each_by_itself(routing: str, queues: int) -> None:
    found = memory(mm1(0.5, 8).scenario.with_(routing=routing))
    assert found
    assert found.queues == queues
