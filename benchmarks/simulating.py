"""The simulator against SimPy and a plain heap, in one run; speed, growth, and scale.

An event is an arrival or an end, two for each request. Every contender simulates the same closed
loop, checks its throughput against the exact one, and takes turns with the others.
"""

from __future__ import annotations

import heapq
import os
import random
import resource
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from low_latency_endpoint.simulate import (
    ClosedLoop,
    Exponential,
    Lognormal,
    OpenLoop,
    Scenario,
    simulate,
)
from low_latency_endpoint.simulate.compilation import loops
from low_latency_endpoint.simulate.replication import RunLength, replicate

from .measure import WARMING, BenchmarkFailed, run, sized

LEAST = "LEAST_OUTSTANDING_REQUESTS"
Report = Callable[..., None]


def plain_heap(instances: int, users: int, least: bool, requests: int) -> float:
    """Closed loop, one worker each, with the standard library's heap; throughput per instance."""
    chance = random.Random(1)
    outstanding, lines = [0] * instances, [deque[int]() for _ in range(instances)]
    ends: list[tuple[float, int]] = []
    now, done = 0.0, 0

    def arrive() -> None:
        if least:
            fewest = min(outstanding)
            among = [i for i, n in enumerate(outstanding) if n == fewest]
            k = among[int(chance.random() * len(among))]
        else:
            k = int(chance.random() * instances)
        if outstanding[k]:
            lines[k].append(0)
        else:
            heapq.heappush(ends, (now + chance.expovariate(1.0), k))
        outstanding[k] += 1

    for _ in range(users):
        arrive()
    while done < requests:
        now, k = heapq.heappop(ends)
        outstanding[k] -= 1
        done += 1
        if lines[k]:
            lines[k].popleft()
            heapq.heappush(ends, (now + chance.expovariate(1.0), k))
        arrive()
    return requests / now / instances


def with_simpy(instances: int, users: int, least: bool, requests: int) -> float:
    """The same with SimPy; throughput per instance."""
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
    heading("Simulator: growth with the requests (10 instances, least outstanding)")
    growth(rounds, line)
    heading("Simulator: eight replications over the processors")
    one, all_of_them = replications_over_cores()
    line("one process; all processors", f"{one:.1f}; {all_of_them:.1f} s")
    heading("low-latency simulate endpoint.yaml with nothing compiled yet: least of three runs")
    first_answers(line)
    heading("Simulator: one run at each size, open loop at 80 %, least outstanding; own process")
    scale(line)


def speeds(rounds: int, line: Report) -> None:
    """The contenders in turns."""
    for instances in sized((10, 20, 100), (10,)):
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
                "plain heapq": (partial(plain_heap, *fleet, few), few, truth),
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
            for other in ("plain heapq", "SimPy", "same code, plain Python"):
                line(
                    f"  {other} (numba is so many times quicker)",
                    f"{medians[other]:.2f} ({medians['numba'] / medians[other]:.0f}x)",
                )


def growth(rounds: int, line: Report) -> None:
    """Ten times the requests, ten times the time."""
    sizes = sized((200_000, 2_000_000, 20_000_000), (2_000, 20_000, 200_000))
    seconds: dict[int, list[float]] = {size: [] for size in sizes}
    for _ in range(sized(max(3, rounds // 2), 1)):
        for size in sizes:
            started = time.process_time()
            ours(10, 40, True, size)
            seconds[size].append(time.process_time() - started)
    medians = [statistics.median(seconds[size]) for size in sizes]
    for size, median in zip(sizes, medians, strict=True):
        line(f"{size:,} requests", f"{median:.3f} s")
    line("last step against tenfold", f"{medians[2] / medians[1] / 10:.2f}", "about 1: linear")


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


def scale(line: Report) -> None:
    """10, 1,000 and 100,000 instances."""
    for instances in sized((10, 1000, 100_000), (10, 1000)):
        answer = run("-m", "benchmarks.simulating", str(instances)).answer()
        line(
            f"{instances:,} instances, {answer['requests']:,} requests",
            f"{answer['seconds']:.2f} s",
        )
        line(
            "  of it building and ending the run; largest memory of the process",
            f"{answer['fixed']:.2f} s; {answer['mib']:.0f} MiB",
        )
        line("  million events per second", f"{answer['rate']:.1f}")


def one_scale(instances: int) -> dict[str, float]:
    """One run of one size in this process."""
    requests = max(sized(2_000_000, 20_000), 40 * instances)
    scenario = Scenario(
        service=Exponential(1.0),
        traffic=OpenLoop(0.8 * instances),
        instances=instances,
        routing=LEAST,
    )
    started = time.process_time()
    replicate(scenario, RunLength(100, None, 0.0), loops(), 1, 0)  # loads what was compiled
    started = time.process_time()
    replicate(scenario, RunLength(100, None, 0.0), loops(), 1, 0)
    fixed = time.process_time() - started
    started = time.process_time()
    found = replicate(scenario, RunLength(requests, None, 0.0), loops(), 1, 0)
    seconds = time.process_time() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "requests": found.requests,
        "seconds": seconds,
        "fixed": fixed,
        "mib": memory,
        "rate": 2 * found.requests / max(seconds - fixed, 1e-9) / 1e6,
    }


def replications_over_cores() -> tuple[float, float]:
    """Seconds of eight replications on one process and on all."""
    scenario = Scenario(service=Exponential(1.0), traffic=OpenLoop(8.0), instances=10)
    taken = []
    for processes in (1, os.cpu_count() or 1):
        started = time.perf_counter()
        simulate(scenario, requests=sized(2_000_000, 20_000), replications=8, processes=processes)
        taken.append(time.perf_counter() - started)
    return taken[0], taken[1]


if __name__ == "__main__":
    import json

    print(json.dumps(one_scale(int(sys.argv[1]))))
