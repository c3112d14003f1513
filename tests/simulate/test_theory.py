"""The simulator against exact values: each within the simulation's own 99 % interval, which is
itself narrower than half a percent of the value (one percent where queues are long: one percent
tells every wrong formula from the right one, for a quarter of the requests).

The luck of the drawn means is regressed out of that interval, which narrows it and does not move the
mean; so the interval without any control is tested as well, as wide as it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

import pytest
from scipy import stats

from low_latency_endpoint.simulate import (
    ClosedLoop,
    Exponential,
    Lognormal,
    OpenLoop,
    Replication,
    Scenario,
    simulate,
)
from low_latency_endpoint.simulate.estimates import estimate

pytest.importorskip("numba")

LEAST = "LEAST_OUTSTANDING_REQUESTS"
WAITING, MEAN, THROUGHPUT = map(attrgetter, ("waiting", "mean", "throughput"))
BATCHING = {"traffic": ClosedLoop(40), "instances": 10, "concurrency": 64, "slope": 0.4}
#: Scenario, figure and its exact value, requests of each replication.
Case = tuple[Scenario, Callable[[Replication], float], float, int]
CASES: dict[str, Case] = {
    # Pollaczek 1930, Khinchine 1932: load (1 + squared variation) / 2 / (1 - load).
    "M/M/1": (Scenario(service=Exponential(1.0), traffic=OpenLoop(0.6)), WAITING, 1.5, 400_000),
    # 1 / (1 - load), whatever the law; slope 1 shares all.
    "processor sharing": (
        Scenario(service=Lognormal(1.0, 1.5), traffic=OpenLoop(0.5), concurrency=256, slope=1.0),
        MEAN,
        2.0,
        300_000,
    ),
    # Gordon and Newell 1967: users / (users + instances - 1).
    **{
        f"closed, random, {instances} instances": (
            Scenario(
                service=Exponential(1.0), traffic=ClosedLoop(4 * instances), instances=instances
            ),
            THROUGHPUT,
            4 * instances / (5 * instances - 1),
            60_000,
        )
        for instances in (5, 20)
    },
    # Every instance always holds four: a request waits for exactly three others.
    "closed, least outstanding": (
        Scenario(service=Exponential(1.0), traffic=ClosedLoop(20), instances=5, routing=LEAST),
        lambda run: run.percentiles[99.0],
        stats.gamma.ppf(0.99, 4),
        120_000,
    ),
    # Four users on each of ten: 4 / (1 + 0.4 x 3), and under RANDOM less by the gain of
    # 0.4 (1 - 1/10) / (1 + 0.4 x 3). The law does not matter, only its mean.
    **{
        f"batching, {law}, {routing}": (
            Scenario(service=law, routing=routing, **BATCHING),
            THROUGHPUT,
            expected,
            25_000,
        )
        for law in (Lognormal(1.0, 1.0), Exponential(1.0), Lognormal(1.0, 0.5))
        for routing, expected in (("RANDOM", 1.5625), (LEAST, 4 / 2.2))
    },
}


def check(case: Case, replications: int = 20, narrow: float = 0.005) -> None:
    scenario, value, expected, requests = case
    result = simulate(scenario, requests=requests, replications=replications)
    assert max(run.littles_law for run in result.replications) < 1e-9
    found = result.estimate(value)
    assert found.holds(expected), f"{expected} is not in {found}"
    assert found.half_width < narrow * found.mean, f"{found} is wider than {narrow:.1%}"
    # At 99.9 %, since so many are tested that one in a hundred would miss.
    plain = estimate([value(run) for run in result.replications], confidence=0.999)
    assert plain.holds(expected), f"{expected} is not in {plain}, without controls"


@pytest.mark.parametrize("name", CASES)
def test_the_exact_value_is_in_the_interval(name: str) -> None:
    check(CASES[name])


def test_long_queues() -> None:
    """M/G/1 at 0.8 with a coefficient of variation of 1."""
    scenario = Scenario(service=Lognormal(1.0, 1.0), traffic=OpenLoop(0.8))
    check((scenario, WAITING, 4.0, 400_000), replications=40, narrow=0.01)
