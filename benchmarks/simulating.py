"""The simulator against SimPy, in one run; and what a user waits for at first.

An event is an arrival or an end, two for each request. Every contender simulates the same closed
loop, checks its throughput against the exact one, and takes turns with the others.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from low_latency_endpoint.simulate import ClosedLoop, Exponential, Lognormal, Scenario
from low_latency_endpoint.simulate.compilation import loops
from low_latency_endpoint.simulate.replication import RunLength, replicate

from .measure import WARMING, BenchmarkFailed, run, sized

LEAST = "LEAST_OUTSTANDING_REQUESTS"
Report = Callable[..., None]


def with_simpy(instances: int, users: int, least: bool, requests: int) -> float:
    """Closed loop, one worker each, with SimPy; throughput per instance."""
    import simpy

    chance = random.Random(1)
    world = simpy.Environment()
    servers = [simpy.Resource(world, 1) for _ in range(instances)]
    outstanding, answers, over = [0] * instances, [0], world.event()

    def user() -> Any:
        while True:
            if least:
                fewest = min(outstanding)
                k = chance.choice([i for i, n in enumerate(outstanding) if n == fewest])
            else:
                k = int(chance.random() * instances)
            outstanding[k] += 1
            with servers[k].request() as turn:
                yield turn
                yield world.timeout(chance.expovariate(1.0))
            outstanding[k] -= 1
            answers[0] += 1
            if answers[0] == requests:
                over.succeed()

    for _ in range(users):
        world.process(user())
    world.run(over)
    return requests / float(world.now) / instances


def ours(
    instances: int,
    users: int,
    least: bool,
    requests: int,
    *,
    compiled: bool = True,
    slope: float | None = None,
) -> float:
    """The same with the simulator, percentiles included; throughput per instance."""
    scenario = Scenario(
        service=Exponential(1.0),
        traffic=ClosedLoop(users),
        instances=instances,
        routing=LEAST if least else "RANDOM",
    )
    if slope is not None:
        scenario = scenario.with_(service=Lognormal(1.0, 1.0), concurrency=64, slope=slope)
    found = replicate(scenario, RunLength(requests, None, 0.0), loops(compiled), 1, 0)
    return found.throughput


def exact(instances: int, users: int, least: bool, slope: float | None = None) -> float:
    """Throughput per instance."""
    if slope is not None:
        each = users / instances
        most = each / (1 + slope * (each - 1))
        return (
            most if least else most / (1 + slope * (1 - 1 / instances) / (1 + slope * (each - 1)))
        )
    return 1.0 if least else users / (users + instances - 1)


def simulating(rounds: int, heading: Report, line: Report) -> None:
    """All of it."""
    heading("Simulator: closed loop, four users per instance; million events per processor second")
    speeds(rounds, line)
    heading("low-latency simulate endpoint.yaml with nothing compiled yet: least of three runs")
    first_answers(line)


def speeds(rounds: int, line: Report) -> None:
    """The contenders in turns."""
    for instances in sized((10, 100), (10,)):
        users = 4 * instances
        for least in (False, True):
            truth = exact(instances, users, least)
            fleet = (instances, users, least)
            many, few = sized((2_000_000, 40_000), (40_000, 40_000))
            cases: dict[str, tuple[Callable[[], float], int, float]] = {
                "numba": (partial(ours, *fleet, many), many, truth),
                "numba, batching": (
                    partial(ours, *fleet, many // 2, slope=0.4),
                    many // 2,
                    exact(*fleet, slope=0.4),
                ),
                "same code, plain Python": (partial(ours, *fleet, few, compiled=False), few, truth),
                "SimPy": (partial(with_simpy, *fleet, few // 4), few // 4, truth),
            }
            rates: dict[str, list[float]] = {name: [] for name in cases}
            for number in range(rounds + WARMING):
                for name, (go, requests, expected) in cases.items():
                    started = time.process_time()  # others' work on this machine left out
                    found = go()
                    seconds = time.process_time() - started
                    if abs(found / expected - 1) > 0.06:
                        raise BenchmarkFailed(f"{name}: throughput {found}, not {expected}")
                    if number >= WARMING:
                        rates[name].append(2 * requests / seconds / 1e6)
            medians = {name: statistics.median(values) for name, values in rates.items()}
            strategy = "least outstanding" if least else "random"
            goal = {(10, False): "27 or more", (10, True): "19 or more"}.get((instances, least), "")
            line(f"{strategy}, {instances} instances", f"{medians['numba']:.1f}", goal)
            line(
                "  batching, slope 0.4",
                f"{medians['numba, batching']:.1f}",
                "8 to 9 or more" if instances == 10 else "",
            )
            for other in ("SimPy", "same code, plain Python"):
                line(
                    f"  {other} (numba is so many times quicker)",
                    f"{medians[other]:.2f} ({medians['numba'] / medians[other]:.0f}x)",
                )


def first_answers(line: Report) -> None:
    """What a user waits for at the first use of each form, compilation included."""
    program = str(Path(sys.executable).parent / "low-latency")
    for options in sized(
        ([], ["--compare-routing"], ["--search", "--target", "p99=200ms", "--tps", "1000"]), ([],)
    ):
        taken = []
        for _ in range(sized(3, 1)):
            with tempfile.TemporaryDirectory() as empty:
                taken.append(
                    run(
                        program,
                        "simulate",
                        "endpoint.yaml",
                        *options,
                        environment={"NUMBA_CACHE_DIR": empty},
                    ).seconds
                )
        line("simulate " + " ".join(options[:1]), f"{min(taken):.1f} s", "under 10 s")
