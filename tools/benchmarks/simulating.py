"""The simulator against SimPy and against itself without numba, in one run.

An event is an arrival or an end, two for each request. Every contender simulates the same closed
loop with least outstanding requests, checks its throughput against the exact one, and takes turns
with the others.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from low_latency_endpoint.simulate import ClosedLoop, Exponential, Lognormal, Scenario
from low_latency_endpoint.simulate.compilation import loops
from low_latency_endpoint.simulate.replication import RunLength, replicate

from .measure import WARMING, BenchmarkFailed, heading, line, sized

USERS_EACH = 4
SLOPE = 0.4


def with_simpy(instances: int, requests: int) -> float:
    """Closed loop, one worker each, with SimPy; throughput per instance."""
    import simpy

    chance = random.Random(1)
    world = simpy.Environment()
    servers = [simpy.Resource(world, 1) for _ in range(instances)]
    outstanding, answers, over = [0] * instances, [0], world.event()

    def user() -> Any:
        while True:
            fewest = min(outstanding)
            k = chance.choice([i for i, n in enumerate(outstanding) if n == fewest])
            outstanding[k] += 1
            with servers[k].request() as turn:
                yield turn
                yield world.timeout(chance.expovariate(1.0))
            outstanding[k] -= 1
            answers[0] += 1
            if answers[0] == requests:
                over.succeed()

    for _ in range(USERS_EACH * instances):
        world.process(user())
    world.run(over)
    return requests / float(world.now) / instances


def ours(instances: int, requests: int, *, compiled: bool = True, batching: bool = False) -> float:
    """The same with the simulator, percentiles included; throughput per instance."""
    scenario = Scenario(
        service=Exponential(1.0),
        traffic=ClosedLoop(USERS_EACH * instances),
        instances=instances,
        routing="LEAST_OUTSTANDING_REQUESTS",
    )
    if batching:
        scenario = scenario.with_(service=Lognormal(1.0, 1.0), concurrency=64, slope=SLOPE)
    return replicate(scenario, RunLength(requests, None, 0.0), loops(compiled), 1, 0).throughput


def simulating(rounds: int) -> None:
    """The contenders in turns."""
    heading("Simulator: closed loop, four users per instance; million events per processor second")
    many, few = sized((2_000_000, 40_000), (40_000, 40_000))
    batching = USERS_EACH / (1 + SLOPE * (USERS_EACH - 1))
    for instances in sized((10, 100), (10,)):
        cases: dict[str, tuple[Callable[[int, int], float], int, float]] = {
            "with numba": (ours, many, 1.0),
            "batching, slope 0.4": (partial(ours, batching=True), many // 2, batching),
            "without numba": (partial(ours, compiled=False), few, 1.0),
            "SimPy": (with_simpy, few // 4, 1.0),
        }
        rates: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(rounds + WARMING):
            for name, (go, requests, exact) in cases.items():
                started = time.process_time()  # others' work on this machine left out
                found = go(instances, requests)
                seconds = time.process_time() - started
                if abs(found / exact - 1) > 0.06:
                    raise BenchmarkFailed(f"{name}: throughput {found}, not {exact}")
                if number >= WARMING:
                    rates[name].append(2 * requests / seconds / 1e6)
        for name, values in rates.items():
            line(f"{instances} instances, {name}", f"{statistics.median(values):.2f}")
