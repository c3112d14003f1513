"""An independent oracle: the same small systems in Ciw (Palmer and others 2019)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from low_latency_endpoint.planning.simulation import (
    Constant,
    Exponential,
    Gamma,
    Lognormal,
    OpenLoop,
    Scenario,
    simulate,
)
from low_latency_endpoint.planning.simulation.estimates import Estimate, estimate

ciw = pytest.importorskip("ciw")

LEAST = "LEAST_OUTSTANDING_REQUESTS"
CUSTOMERS, DISCARDED, RUNS = 4000, 400, 8


def ciw_sojourn(rate: float, service: Any, *, instances: int, workers: int, least: bool,
                sharing: bool = False) -> Estimate:
    """Mean time in the system: an entry that takes no time, then one node for each instance."""
    nodes = list(range(2, instances + 2))
    if least:  # Ciw's JoinShortestQueue leaves those at work out
        router = ciw.routing.LoadBalancing(destinations=nodes, tie_break="random")
    else:
        router = ciw.routing.Probabilistic(destinations=nodes, probs=[1 / instances] * instances)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(rate), *[None] * instances],
        service_distributions=[ciw.dists.Deterministic(0.0), *[service] * instances],
        number_of_servers=[math.inf, *[math.inf if sharing else workers] * instances],
        routing=ciw.routing.NetworkRouting(
            routers=[router, *[ciw.routing.Leave() for _ in range(instances)]]))
    means = []
    for seed in range(RUNS):
        ciw.seed(seed)
        kinds = [ciw.Node, *[ciw.PSNode] * instances] if sharing else None
        world = ciw.Simulation(network, node_class=kinds)
        world.simulate_until_max_customers(CUSTOMERS, method="Finish")
        records = sorted((record for record in world.get_all_records() if record.node > 1),
                         key=lambda record: record.arrival_date)[DISCARDED:]
        means.append(sum(record.exit_date - record.arrival_date for record in records)
                     / len(records))
    return estimate(means)


@pytest.mark.parametrize(("scenario", "oracle", "least"), [
    (Scenario(service=Exponential(1.0), traffic=OpenLoop(2.1), concurrency=3),
     lambda: ciw.dists.Exponential(1.0), False),
    (Scenario(service=Gamma(1.0, 0.5), traffic=OpenLoop(2.1), instances=3),
     lambda: ciw.dists.Gamma(4.0, 0.25), False),
    (Scenario(service=Lognormal(1.0, 1.0), traffic=OpenLoop(3.0), instances=2, concurrency=2,
              routing=LEAST),
     lambda: ciw.dists.Lognormal(-math.log(2) / 2, math.sqrt(math.log(2))), True),
    (Scenario(service=Constant(1.0), traffic=OpenLoop(2.4), instances=3, routing=LEAST),
     lambda: ciw.dists.Deterministic(1.0), True),
    (Scenario(service=Exponential(1.0), traffic=OpenLoop(1.0), instances=2, concurrency=200,
              slope=1.0, routing=LEAST), lambda: ciw.dists.Exponential(1.0), True),
], ids=["M/M/3", "gamma, random", "lognormal, least outstanding", "constant, least outstanding",
        "processor sharing, least outstanding"])
def test_ciw_agrees(scenario: Scenario, oracle: Callable[[], Any], least: bool) -> None:
    theirs = ciw_sojourn(
        scenario.traffic.rate, oracle(),  # type: ignore[attr-defined]
        instances=scenario.instances, workers=scenario.concurrency, least=least,
        sharing=scenario.slope == 1.0)
    ours = simulate(scenario, requests=200_000, replications=8).mean
    assert theirs.relative < 0.2
    assert ours.relative < 0.02
    assert abs(theirs.mean - ours.mean) < math.hypot(theirs.half_width, ours.half_width), (
        f"{theirs} in Ciw, {ours} here")
