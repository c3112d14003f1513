"""An independent oracle: the same small systems in Ciw (Palmer and others 2019).

Both get the same arrivals and the same work, request by request. Ciw keeps its own clock, queues
and servers: every request must leave at the same time as here, in the same order. Where chance
decides between equally busy instances Ciw is told the choice, and says whether it was one of the
least busy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ciw
import pytest

from low_latency_endpoint.simulate import (
    ClosedLoop,
    Constant,
    Exponential,
    Lognormal,
    OpenLoop,
    Scenario,
)
from low_latency_endpoint.simulate.compilation import loops
from low_latency_endpoint.simulate.core import (
    ENTRY,
    FILLED,
    FREE_JOB,
    NEEDS_REQUESTS,
    NEXT_ARRIVAL,
    PENDING,
)
from low_latency_endpoint.simulate.fleet_control import FleetControl
from low_latency_endpoint.simulate.replication import RunLength, replicate
from low_latency_endpoint.simulate.workload import Workload
from low_latency_endpoint.simulate.world import World

LEAST = "LEAST_OUTSTANDING_REQUESTS"
#: Each is compared on its own, so a fault shows in one of the first that wait.
REQUESTS, SEED = 5_000, 7


@dataclass
class Followed:
    """A run of the event loop, one arrival after the other."""

    work: list[float]
    picks: list[float]
    arrivals: list[float]
    chosen: list[int]
    latencies: list[float]  # in the order in which requests end


def follow(scenario: Scenario, requests: int) -> Followed:
    """Let arrivals into the event loop one at a time, and look where each went."""
    world = World(scenario, loops(), scenario.instances, requests)
    workload = Workload(scenario, world, SEED, 0)
    FleetControl(scenario, world, workload)
    workload.refill()
    world.state[FILLED] = 0
    arrivals, chosen = [], []
    for number in range(requests):
        assert world.advance(1e300) == NEEDS_REQUESTS  # the next event is an arrival
        time = world.now if world.state[PENDING] else float(world.clock[NEXT_ARRIVAL])
        job = int(world.state[FREE_JOB])
        world.state[FILLED] = number + 1
        world.advance(time)
        assert world.state[ENTRY] == number + 1
        arrivals.append(time)
        chosen.append(next(k for k in range(scenario.instances) if holds(world, k, job)))
    world.clock[NEXT_ARRIVAL] = math.inf
    world.state[PENDING] = 0
    world.advance(1e300)
    ended = int(world.take_results())
    return Followed(
        list(map(float, world.requests.demand)),
        list(map(float, world.requests.pick)),
        arrivals,
        chosen,
        list(map(float, world.results.latency[:ended])),
    )


def holds(world: World, k: int, job: int) -> bool:
    """Whether a request is at work at an instance, or the last in its line."""
    begin = k * world.scenario.concurrency
    return job in world.marks.item[begin : begin + world.instances.running[k]] or (
        world.instances.line_head[k] >= 0 and world.instances.line_tail[k] == job
    )


class Sent(ciw.routing.NodeRouting):  # type: ignore[misc]
    """Sends requests on in their order, each with its work."""

    def __init__(self, scenario: Scenario, run: Followed) -> None:
        self.scenario, self.run, self.number = scenario, run, 0

    def next_node(self, ind: Any) -> Any:
        number, instances = self.number, self.simulation.nodes[2:-1]
        self.number += 1
        if number >= len(self.run.chosen):
            return self.simulation.nodes[-1]
        if self.scenario.routing == LEAST:
            there = [node.number_of_individuals for node in instances]
            if ind.node > 1:  # Ciw asks before the one that was served has left
                there[ind.node - 2] -= 1
            k = self.run.chosen[number]
            assert there[k] == min(there), f"request {number} to {k} of {there}"
        else:
            k = int(self.run.picks[number] * len(instances))
        ind.work = self.run.work[number]
        return instances[k]


class Work(ciw.dists.Distribution):  # type: ignore[misc]
    """The work that a request brings along."""

    def sample(self, t: float | None = None, ind: Any = None) -> float:
        return float(ind.work)


def in_ciw(scenario: Scenario, run: Followed) -> list[Any]:
    """Ciw's records in the order in which requests end: an entry that takes no time, then a node
    for each instance."""
    closed = isinstance(scenario.traffic, ClosedLoop)
    times = [0.0] * scenario.traffic.users if closed else run.arrivals  # type: ignore[attr-defined]
    gaps = [later - earlier for earlier, later in zip([0.0, *times], times, strict=False)]
    sharing, instances = scenario.slope == 1.0, scenario.instances
    sent = Sent(scenario, run)
    after = [sent if closed else ciw.routing.Leave() for _ in range(instances)]
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Sequential([*gaps, math.inf]), *[None] * instances],
        service_distributions=[ciw.dists.Deterministic(0.0), *[Work()] * instances],
        number_of_servers=[math.inf, *[math.inf if sharing else scenario.concurrency] * instances],
        routing=ciw.routing.NetworkRouting(routers=[sent, *after]),
    )
    ciw.seed(1)  # of nothing that is compared
    kinds = [ciw.Node, *[ciw.PSNode] * instances] if sharing else None
    world = ciw.Simulation(network, node_class=kinds)
    world.simulate_until_max_time(2 * run.arrivals[-1] + 1000.0)
    return sorted(
        (each for each in world.get_all_records() if each.node > 1), key=lambda each: each.exit_date
    )


def quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[math.ceil(share * len(values)) - 1]


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario(service=Exponential(1.0), traffic=OpenLoop(2.7), concurrency=3),
        Scenario(service=Lognormal(1.0, 2.0), traffic=OpenLoop(0.8)),
        Scenario(service=Lognormal(1.0, 0.5), traffic=OpenLoop(2.4), instances=3),
        Scenario(
            service=Lognormal(1.0, 1.0),
            traffic=OpenLoop(3.4),
            instances=2,
            concurrency=2,
            routing=LEAST,
        ),
        Scenario(service=Constant(1.0), traffic=OpenLoop(4.5), instances=5, routing=LEAST),
        Scenario(
            service=Exponential(1.0),
            traffic=OpenLoop(1.4),
            instances=2,
            concurrency=200,
            slope=1.0,
            routing=LEAST,
        ),
        Scenario(service=Exponential(1.0), traffic=ClosedLoop(12), instances=3),
        Scenario(
            service=Exponential(1.0),
            traffic=ClosedLoop(20),
            instances=5,
            concurrency=2,
            routing=LEAST,
        ),
    ],
    ids=[
        "M/M/3",
        "M/G/1, squared variation 4",
        "lognormal, random",
        "lognormal, least outstanding",
        "constant, least outstanding",
        "processor sharing, least outstanding",
        "closed, random",
        "closed, least outstanding",
    ],
)
def test_every_request_ends_when_it_does_in_ciw(scenario: Scenario) -> None:
    ours = replicate(scenario, RunLength(REQUESTS, discard=0.0), loops(), SEED, 0)
    run = follow(scenario, ours.entered)
    theirs = in_ciw(scenario, run)
    latencies = [each.exit_date - each.arrival_date for each in theirs]
    assert len(latencies) >= len(run.latencies) >= ours.requests >= REQUESTS
    assert run.latencies == pytest.approx(latencies[: len(run.latencies)], abs=1e-6)
    # What a replication says of them: its mean exactly, percentiles to its histogram's bins.
    counted = latencies[: ours.requests]
    assert ours.mean == pytest.approx(sum(counted) / len(counted), rel=1e-9)
    for share in (0.5, 0.9, 0.99):
        assert ours.percentiles[100 * share] == pytest.approx(quantile(counted, share), rel=2e-3)
    if scenario.slope == 0:
        waits = [each.waiting_time for each in theirs[: ours.requests]]
        assert ours.waiting == pytest.approx(sum(waits) / len(waits), rel=1e-9)
