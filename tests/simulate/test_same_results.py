"""With numba, without it, on one process or several: the same results to the last bit."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.simulate import (
    ArrivalTrace,
    ClosedLoop,
    Constant,
    Empirical,
    Exponential,
    Lognormal,
    OpenLoop,
    Rollout,
    Scenario,
    Shape,
    ShapedLoop,
    TargetTracking,
    ZoneOutage,
    compilation,
    kernels,
    simulate,
    simulating,
)

_COMMAND = "import low_latency_endpoint.cli as cli; cli.main()"
LEAST = "LEAST_OUTSTANDING_REQUESTS"
RISE = Shape("rise", "", ((120.0, 0.2), (1200.0, 1.0), (2400.0, 0.1)))

SCENARIOS = {
    "open random": Scenario(service=Exponential(1.0), traffic=OpenLoop(4.0), instances=5),
    "constant arrivals": Scenario(
        service=Lognormal(1.0, 0.7), traffic=OpenLoop(4.0, poisson=False), instances=5
    ),
    "closed least": Scenario(
        service=Lognormal(1.0, 2.0),
        traffic=ClosedLoop(20),
        instances=5,
        concurrency=2,
        routing=LEAST,
    ),
    "thinking users": Scenario(
        service=Constant(0.5),
        instances=3,
        routing=LEAST,
        traffic=ClosedLoop(12, think=Exponential(2.0)),
    ),
    "batching": Scenario(
        service=Lognormal(2.2, 1.5),
        traffic=ClosedLoop(24),
        instances=4,
        concurrency=8,
        slope=0.4,
        routing=LEAST,
    ),
    "empirical": Scenario(
        service=Empirical.of_samples([0.1, 0.2, 0.2, 0.9]), traffic=OpenLoop(5.0), instances=3
    ),
    "trace": Scenario(
        service=Exponential(0.5),
        instances=2,
        traffic=ArrivalTrace(tuple(i * 0.31 + (i % 7) * 0.01 for i in range(900))),
    ),
    "overload grows the tables": Scenario(
        service=Exponential(1.0), traffic=ShapedLoop(60.0, RISE), instances=2, routing=LEAST
    ),
    "everything": Scenario(
        service=Lognormal(0.5, 1.0),
        traffic=ShapedLoop(6.0, RISE),
        instances=2,
        concurrency=2,
        zones=2,
        routing=LEAST,
        latency_target=1.0,
        scaling=TargetTracking(60.0, 2, 12, scale_out_cooldown=60.0, instance_seconds=90.0),
        deployment=Rollout(at=900.0, kind="canary", step_share=0.3, wait_seconds=60.0),
        faults=(ZoneOutage(at=300.0), ZoneOutage(at=1500.0, zone=1)),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_plain_python_and_numba_agree_to_the_last_bit(name: str) -> None:
    pytest.importorskip("numba")
    scenario = SCENARIOS[name]
    options = {} if isinstance(scenario.traffic, ShapedLoop) else {"requests": 1500}
    if isinstance(scenario.traffic, ArrivalTrace):
        options = {"requests": 900}
    compiled, plain = (
        simulate(scenario, replications=2, seed=5, compiled=each, **options)
        for each in (True, False)
    )
    assert compiled.replications == plain.replications
    for run in plain.replications:
        assert run.requests >= 900
        assert run.littles_law < 1e-9


def test_the_seed_decides_and_nothing_else() -> None:
    scenario = SCENARIOS["closed least"]
    first, again, other = (
        simulate(scenario, requests=2000, replications=3, seed=seed) for seed in (1, 1, 2)
    )
    assert first.replications == again.replications
    assert first.replications != other.replications
    assert len({run.mean for run in first.replications}) == 3


def test_several_processes_give_the_same() -> None:
    scenario = SCENARIOS["open random"]
    one, two = (
        simulate(scenario, requests=2000, replications=4, processes=processes)
        for processes in (1, 2)
    )
    assert one.replications == two.replications


@pytest.mark.parametrize(
    ("asked", "replications", "processors", "started"),
    [(100_000, 3, 8, 3), (100_000, 8, 2, 2), (4, 8, 64, 4), (100_000, 8, None, 0), (0, 8, 8, 0)],
)
def test_no_more_processes_than_work_or_processors(
    monkeypatch: pytest.MonkeyPatch,
    asked: int,
    replications: int,
    processors: int | None,
    started: int,
) -> None:
    counts: list[int] = []

    def pool(count: int, **more: Any) -> ThreadPoolExecutor:
        counts.append(count)
        return ThreadPoolExecutor(1)

    monkeypatch.setattr(simulating, "ProcessPoolExecutor", pool)
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    scenario = SCENARIOS["open random"]
    simulate(scenario, requests=100, replications=replications, processes=asked)
    assert counts == [started] * bool(started)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="of Linux")
def test_a_simulation_that_is_ended_leaves_no_process() -> None:
    """In a second, where what is under way would take minutes."""
    arguments = ["simulate", "--compare-routing", "--service-time", "40ms", "--tps", "300"]
    arguments += ["--instances", "5", "--concurrency", "4", "--requests", "2000000"]
    program = f"import os; os.cpu_count = lambda: 2; {_COMMAND}"
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stderr=subprocess.PIPE, text=True
    ) as process:
        listed = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        deadline = time.monotonic() + 60
        while len(workers := listed.read_text().split()) < 2:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        time.sleep(1.0)  # they have begun
        process.terminate()
        _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert [each for each in workers if Path(f"/proc/{each}").exists()] == []


def test_a_loop_is_compiled_where_no_folder_can_keep_it(monkeypatch: pytest.MonkeyPatch) -> None:
    caching = pytest.importorskip("numba.core.caching")
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    loops = compilation.loops(True)
    added = compilation._compiled(kernels.total)
    assert added(loops.floats([1.5, 2.0, 9.0]), 2) == 3.5


def test_without_numba_it_still_answers() -> None:
    program = """
import sys
sys.modules["numba"] = sys.modules["numpy"] = None
from low_latency_endpoint.simulate import *
result = simulate(Scenario(service=Exponential(1.0), traffic=OpenLoop(0.5)), requests=2000,
                  replications=2)
print(repr(result.replications[0].mean))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    here = simulate(
        Scenario(service=Exponential(1.0), traffic=OpenLoop(0.5)), requests=2000, replications=2
    )
    assert done.stdout.strip() == repr(here.replications[0].mean)


def test_strategies_meet_the_same_requests() -> None:
    """Common random numbers: with one instance routing changes nothing at all."""
    base = Scenario(service=Lognormal(1.0, 2.0), traffic=OpenLoop(0.5))
    runs = [
        simulate(base.with_(routing=routing), requests=2000, replications=2).replications
        for routing in ("RANDOM", LEAST)
    ]
    assert runs[0] == runs[1]
