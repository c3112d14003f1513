"""The simulator against exact values: each within the simulation's own 99 % interval, which is
itself narrower than half a percent of the value (one percent where queues are long: one percent
tells every wrong formula from the right one, for a quarter of the requests).

Long queues forget slowly, so plain means would need a billion requests. Two things narrow the
interval, neither of which moves the mean: the luck of the drawn means is regressed out, and where
stated so is the luck of a *pooled* server, one worker of the fleet's speed that meets the very same
requests and whose exact value is known. A pooled server could hide an error that it shares; so the
interval without any control is tested as well, as wide as it comes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from low_latency_endpoint.simulate import (
    ClosedLoop,
    Exponential,
    Gamma,
    Lognormal,
    OpenLoop,
    Replication,
    Scenario,
    compare,
    simulate,
)
from low_latency_endpoint.simulate.estimates import Estimate, estimate
from low_latency_endpoint.simulate.service_laws import ServiceLaw

from . import exact_values as exact

pytest.importorskip("numba")

NARROW = 0.005
LONG_QUEUES = 0.01
LEAST = "LEAST_OUTSTANDING_REQUESTS"
Value = Callable[[Replication], float]


def waiting(run: Replication) -> float:
    return run.waiting


def mean(run: Replication) -> float:
    return run.mean


def throughput(run: Replication) -> float:
    return run.throughput


def wait_p99(run: Replication) -> float:
    return run.wait_percentiles[99.0]


def latency_p99(run: Replication) -> float:
    return run.percentiles[99.0]


def without_controls(runs: tuple[Replication, ...], value: Value) -> Estimate:
    """The plain mean; at 99.9 %, since so many are tested that one in a hundred would miss."""
    return estimate([value(run) for run in runs], confidence=0.999)


def check_little(runs: tuple[Replication, ...]) -> None:
    assert max(run.littles_law for run in runs) < 1e-9


def check(found: Estimate, plain: Estimate, value: float, narrow: float = NARROW) -> None:
    assert found.holds(value), f"{value} is not in {found}"
    assert found.relative < narrow, f"{found} is wider than {narrow:.1%}"
    assert plain.holds(value), f"{value} is not in {plain}, without controls"


def against(
    scenario: Scenario,
    value: Value,
    expected: float,
    *,
    requests: int,
    replications: int = 20,
    narrow: float = NARROW,
) -> None:
    """One scenario on its own."""
    result = simulate(scenario, requests=requests, replications=replications)
    check_little(result.replications)
    check(result.estimate(value), without_controls(result.replications, value), expected, narrow)


def against_pooled(
    scenario: Scenario,
    values: dict[Value, tuple[float, float]],
    *,
    requests: int,
    narrow: float = NARROW,
) -> None:
    """Each value with its exact one and the pooled worker's, whose luck is taken out."""
    speed = scenario.instances * scenario.concurrency
    pooled = scenario.with_(
        service=Exponential(1 / speed), instances=1, concurrency=1, routing="RANDOM"
    )
    both = compare(
        {"fleet": scenario, "pooled": pooled}, requests=requests, replications=24
    ).results
    runs, others = both["fleet"].replications, both["pooled"].replications
    check_little(runs + others)
    for value, (expected, of_pooled) in values.items():
        luck = [value(run) / of_pooled - 1 for run in others]
        found = estimate([value(run) for run in runs], controls=[*both["fleet"].controls, luck])
        check(found, without_controls(runs, value), expected, narrow)


class TestOpen:
    @pytest.mark.parametrize(
        ("workers", "mean_wait", "p99", "requests"),
        [(4, 1.969383, 10.916500, 200_000), (16, 0.369590, 2.549882, 325_000)],
    )
    def test_mmc_waits(self, workers: int, mean_wait: float, p99: float, requests: int) -> None:
        assert exact.mmc_wait(workers, 0.9) == pytest.approx(mean_wait, abs=1e-6)
        assert exact.mmc_wait_percentile(workers, 0.9, 0.99) == pytest.approx(p99, abs=1e-6)
        against_pooled(
            Scenario(
                service=Exponential(1.0), traffic=OpenLoop(0.9 * workers), concurrency=workers
            ),
            {
                waiting: (mean_wait, exact.mmc_wait(1, 0.9) / workers),
                wait_p99: (p99, exact.mmc_wait_percentile(1, 0.9, 0.99) / workers),
            },
            requests=requests,
            narrow=LONG_QUEUES if workers == 16 else NARROW,
        )

    def test_mm1_without_any_help(self) -> None:
        """What the pooled servers above rest on."""
        assert exact.mmc_wait(1, 0.6) == pytest.approx(1.5)
        against(
            Scenario(service=Exponential(1.0), traffic=OpenLoop(0.6)),
            waiting,
            1.5,
            requests=400_000,
        )

    def test_mg1_mean_wait(self) -> None:
        assert exact.mg1_wait(0.8, 4.0) == pytest.approx(10)
        against(
            Scenario(service=Gamma(1.0, 2.0), traffic=OpenLoop(0.8)),
            waiting,
            10.0,
            requests=400_000,
            replications=40,
            narrow=LONG_QUEUES,
        )

    def test_processor_sharing_is_insensitive(self) -> None:
        """M/G/1 processor sharing: 1 / (1 - rho) whatever the law (slope 1 shares all)."""
        against(
            Scenario(
                service=Lognormal(1.0, 1.5), traffic=OpenLoop(0.5), concurrency=256, slope=1.0
            ),
            mean,
            2.0,
            requests=300_000,
        )

    # Three instances at 0.9: a chain cut at queues of 28 gives 3.977580, too short at this load;
    # cut at 120 it gives 3.982422, and the simulator tells the two apart.
    @pytest.mark.parametrize(
        ("instances", "load", "expected"),
        [(2, 0.8, 2.955737), (2, 0.9, 5.474913), (3, 0.9, 3.982422)],
    )
    def test_join_shortest_queue(self, instances: int, load: float, expected: float) -> None:
        solved = exact.join_shortest_queue_sojourn(instances, load)
        assert solved == pytest.approx(expected, abs=2e-6)
        against_pooled(
            Scenario(
                service=Exponential(1.0),
                traffic=OpenLoop(load * instances),
                instances=instances,
                routing=LEAST,
            ),
            {mean: (expected, 1 / (1 - load) / instances)},
            requests=70_000,
        )

    def test_power_of_two_choices(self) -> None:
        """The limit of very many instances; 1,000 sit about 0.1 % above it."""
        limit = exact.power_of_choices_sojourn(0.9, 2)
        assert limit == pytest.approx(2.614057, abs=1e-6)
        found = simulate(
            Scenario(
                service=Exponential(1.0),
                traffic=OpenLoop(900.0),
                instances=1000,
                routing="POWER_OF_TWO",
            ),
            requests=400_000,
            replications=8,
        ).mean
        assert found.relative < 2 * NARROW
        assert found.mean == pytest.approx(limit, rel=2 * NARROW)


class TestClosed:
    @pytest.mark.parametrize("instances", [5, 20])
    def test_random_one_worker(self, instances: int) -> None:
        users = 4 * instances
        expected = users / (users + instances - 1)
        assert exact.closed_random_throughput(instances, users, [1.0]) == pytest.approx(expected)
        against(
            Scenario(service=Exponential(1.0), traffic=ClosedLoop(users), instances=instances),
            throughput,
            expected,
            requests=60_000,
        )

    def test_random_four_workers(self) -> None:
        assert exact.closed_random_throughput(20, 80, [1.0, 2.0, 3.0, 4.0]) == pytest.approx(
            2.895127, abs=1e-6
        )
        against(
            Scenario(service=Exponential(1.0), traffic=ClosedLoop(80), instances=20, concurrency=4),
            throughput,
            2.895127,
            requests=60_000,
        )

    def test_least_outstanding_p99(self) -> None:
        """Every instance always holds four: a request waits for exactly three others."""
        assert exact.erlang_percentile(4, 0.99) == pytest.approx(10.0451, abs=1e-4)
        against(
            Scenario(service=Exponential(1.0), traffic=ClosedLoop(20), instances=5, routing=LEAST),
            latency_p99,
            10.0451,
            requests=120_000,
        )

    def test_least_outstanding_gain(self) -> None:
        base = exact.closed_random_throughput(5, 20, [1.0, 2.0])
        gain = exact.closed_least_outstanding_throughput(5, 20, 2) / base - 1
        assert gain == pytest.approx(0.2261, abs=5e-5)
        both = compare(
            {
                routing: Scenario(
                    service=Exponential(1.0),
                    traffic=ClosedLoop(20),
                    instances=5,
                    concurrency=2,
                    routing=routing,
                )
                for routing in ("RANDOM", LEAST)
            },
            requests=150_000,
            replications=40,
        )
        for result in both.results.values():
            check_little(result.replications)
        found = both.throughput_change(LEAST)
        assert found.holds(gain), f"{gain} is not in {found}"
        assert found.half_width < NARROW * (1 + gain)

    @pytest.mark.parametrize(
        "law",
        [Lognormal(1.0, 1.0), Exponential(1.0), Gamma(1.0, 0.5)],
        ids=["lognormal", "exponential", "gamma"],
    )
    def test_batching(self, law: ServiceLaw) -> None:
        """Batching instances under RANDOM: the law does not matter, only its mean."""
        scenario = partial(
            Scenario, service=law, traffic=ClosedLoop(40), instances=10, concurrency=64, slope=0.4
        )
        speeds = [n / (1 + 0.4 * (n - 1)) for n in range(1, 41)]
        assert exact.closed_random_throughput(10, 40, speeds) == pytest.approx(1.5625)
        assert speeds[3] == pytest.approx(1.818182, abs=1e-6)
        assert speeds[3] / 1.5625 - 1 == pytest.approx(exact.batching_gain(10, 4, 0.4))
        against(scenario(), throughput, 1.5625, requests=25_000)
        against(scenario(routing=LEAST), throughput, speeds[3], requests=25_000)
