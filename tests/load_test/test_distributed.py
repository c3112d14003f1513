"""Workers in processes of their own: what they record adds up to what one would have recorded."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from contextlib import ExitStack

import pytest

from low_latency_endpoint.load_test.engine.arrivals import PoissonArrivals
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.steps import Progress, Step, StepResult

from .agreement import Pairs, agree
from .servers import ENVIRONMENT, precise_server

pytestmark = pytest.mark.realtime


def measured(processes: int, longer: float) -> tuple[StepResult, list[Progress]]:
    """The same requests, each with the same service time whoever sends it."""
    draw = random.Random(12)
    seconds = [draw.choice((0.3, 0.6, 1.2)) for _ in range(600)]
    payloads = Payloads.of_bytes(
        *(json.dumps({"number": number}).encode() for number in range(len(seconds)))
    )
    seen: list[Progress] = []
    with (
        precise_server(seconds) as server,
        server.generator(processes, payloads=payloads) as generator,
    ):
        step = Step("run", 4 * longer, PoissonArrivals(100), seed=3)
        return generator.run(step, seen.append), seen


def one_and_two(longer: float) -> tuple[StepResult, Pairs]:
    """A run on two workers, its percentiles beside those of a run on one."""
    (one, _), (two, seen) = measured(1, longer), measured(2, longer)
    assert one.intended == two.intended  # the parts of the arrivals are the arrivals
    assert one.completed == two.completed == two.sent == two.intended
    assert two.processes == 2
    # Progress shows all processes together.
    assert sum(progress.sent for progress in seen) == pytest.approx(two.sent, abs=120)
    shares = (0.5, 0.75, 0.9, 0.95)
    return two, list(zip(one.latency.quantiles(shares), two.latency.quantiles(shares), strict=True))


def test_a_run_on_two_workers_gives_the_percentiles_of_a_run_on_one() -> None:
    agree(one_and_two, lower_bounds=False)


def test_workers_on_other_machines_need_nothing_but_the_address() -> None:
    with (
        precise_server([0.005]) as server,
        server.generator(expect_workers=2, bind="127.0.0.1:0") as generator,
        ExitStack() as stack,
    ):
        module = "low_latency_endpoint.load_test.engine.generator"
        arguments = [sys.executable, "-m", module, "--worker", f"127.0.0.1:{generator.port}"]
        workers = [subprocess.Popen(arguments, env=ENVIRONMENT) for _ in range(2)]
        for process in workers:
            stack.callback(process.kill)
        result = generator.run(Step("remote", 1, PoissonArrivals(50)))
        assert result.completed == result.intended > 20
        generator.close()
        for process in workers:  # the master's farewell ends them
            assert process.wait(timeout=15) == 0
