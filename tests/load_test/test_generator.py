"""Generator processes: what they measure, refuse and add up to, and that none is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals, PoissonArrivals
from low_latency_endpoint.load_test.engine.generator_process import GeneratorProcess
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.steps import Progress, Step, StepResult
from low_latency_endpoint.load_test.engine.target import Target
from tests.refusals import refused

from .agreement import Pairs, agree
from .servers import ENVIRONMENT, PAYLOADS, precise_server, said_by

pytestmark = pytest.mark.realtime


def gone(processes: list[psutil.Process], seconds: float = 15) -> bool:
    """Whether all of them end in that time."""
    return not psutil.wait_procs(processes, timeout=seconds)[1]


def family(pid: int) -> list[psutil.Process]:
    """A process and its children."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def test_both_loops_run_one_after_the_other() -> None:
    seen: list[Progress] = []
    with precise_server([0.02]) as server, server.generator() as generator:
        opened = generator.run(
            Step("open", 2.5, PoissonArrivals(100), settle_seconds=0.5), seen.append
        )
        closed = generator.run(Step("closed", 1, users=8))
    assert opened.intended == opened.sent == opened.completed
    assert opened.errors == {}
    assert opened.latency.min >= 0.02
    assert opened.latency.count == opened.send_lag.count == opened.sent
    assert opened.ended_at - opened.started_at == pytest.approx(2)
    assert opened.rate == pytest.approx(opened.answered_in_time / 2)
    assert abs(opened.started_at - time.time()) < 60
    assert seen
    assert seen[0].p50 >= 0.02
    assert 0.5 < seen[0].seconds < 3
    assert 50 < closed.sent <= 8 / 0.02
    assert opened.first_byte is None
    load = opened
    assert load.processes == 1
    assert 0 < load.cpu_share < 1
    assert 10e-6 < load.cpu_seconds_per_request < 5e-3
    assert 20e6 < load.memory_bytes < 500e6


def test_a_saturated_generator_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every request costs 20 ms of processor time; 100 a second are twice what one process can."""
    (tmp_path / "burning.py").write_text(
        "import time\n"
        "def body(number):\n"
        "    end = time.process_time() + 0.02\n"
        "    while time.process_time() < end: pass\n"
        "    return b'{}'\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    with (
        precise_server([0.02]) as server,
        server.generator(payloads=Payloads.of_generator("burning:body")) as generator,
    ):
        result = generator.run(Step("too much", 2, PoissonArrivals(100)))
    assert not result.valid
    reasons = "\n".join(result.client_bound)
    # On a machine shared with others the process does not even get a whole core.
    assert "of a core" in reasons or result.cpu_share < 0.9
    assert "never sent" in reasons
    assert "late or more" in reasons
    assert result.latency.percentile(50) > 0.1  # counted from the intended start


@pytest.mark.parametrize("processes", [1, 2])
def test_close_ends_every_process(processes: int) -> None:
    with precise_server([0.005]) as server:
        generator = server.generator(processes)
        started = family(generator.pid)
        assert len(started) == (1 if processes == 1 else 3)
        generator.close()
        generator.close()
        assert gone(started)


DRIVER = """
import os, sys
from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals
from low_latency_endpoint.load_test.engine.generator_process import GeneratorProcess
from low_latency_endpoint.load_test.engine.payloads import Payloads
from low_latency_endpoint.load_test.engine.steps import Step
from low_latency_endpoint.load_test.engine.target import Target
target = Target("sentiment", "us-east-1", (sys.argv[1],))
with GeneratorProcess(target, Payloads.of_bytes(b"{}"), 2) as generator:
    print(generator.pid, flush=True)
    generator.run(Step("long", 600, ConstantArrivals(50)))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_driver(number: signal.Signals) -> None:
    with (
        precise_server([0.005]) as server,
        subprocess.Popen(
            [sys.executable, "-c", DRIVER, server.url],
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as driver,
    ):
        assert driver.stdout is not None
        try:
            started = family(int(driver.stdout.readline()))
            assert len(started) == 3
            time.sleep(0.7)  # in the middle of the step
            driver.send_signal(number)
            assert gone(started)
            assert driver.wait(timeout=15) != 0
        finally:
            driver.kill()


@pytest.mark.parametrize("processes", [2, 4])
def test_a_lost_worker_ends_the_step_with_a_code(processes: int) -> None:
    """At once, also where the others always have something to say."""
    with precise_server([0.005]) as server, server.generator(processes) as generator:
        started = family(generator.pid)

        def kill_one(progress: Progress) -> None:
            os.kill(started[1].pid, signal.SIGKILL)

        with refused("LLT135") as caught:
            generator.run(Step("long", 60, ConstantArrivals(50)), kill_one)
        assert "ended with status -9" in caught.value.got
        assert gone(started)


def test_a_worker_that_stands_still_for_a_while_has_not_ended() -> None:
    with precise_server([0.005]) as server, server.generator(2) as generator:
        worker = family(generator.pid)[1]
        seen: list[Progress] = []

        def stop_once(progress: Progress) -> None:
            seen.append(progress)
            if len(seen) == 1:
                worker.suspend()
                threading.Timer(17, worker.resume).start()

        result = generator.run(Step("long", 19, users=4), stop_once)
    assert result.processes == 2
    assert result.loop_lag_p99 > 5, "and it shows"
    assert result.client_bound


HEARD = """
import itertools
from low_latency_endpoint.load_test.engine import generator
from low_latency_endpoint.load_test.engine.generator_process import NO_REPORT
now = 0.0
generator.time.perf_counter = lambda: now
heard = generator._Heard(["a", "b"], 15.0)
def passes(seconds, *, at_once=False, of=()):
    global now
    for second in [seconds] if at_once else itertools.repeat(0.5, int(2 * seconds)):
        now += second
        heard.looks()
        for worker in of:
            heard.of(worker)
passes(100, at_once=True)  # the master stood still, and nobody else
heard.check(())
passes(14, of=["a"])
heard.check(())
passes(2, of=["a"])
heard.check(["b"])  # it has told all
try:
    heard.check(())
except Exception as error:
    print(error.code, error.got)
"""


def test_silence_is_that_of_others_and_not_of_the_master() -> None:
    assert said_by(HEARD) == "LLT144 no report from worker 1 for 16 s"


def test_a_crash_of_the_generator_is_told() -> None:
    with precise_server([0.005]) as server, server.generator() as generator:

        def kill(progress: Progress) -> None:
            os.kill(generator.pid, signal.SIGKILL)

        with refused("LLT135", says="ended with status -9"):
            generator.run(Step("long", 60, ConstantArrivals(50)), kill)
        with pytest.raises(ConfigurationError):  # and again, rather than wait for ever
            generator.run(Step("next", 1, ConstantArrivals(50)))


def test_without_credentials_the_codes_of_the_client_come_through() -> None:
    environment = {
        name: value
        for name, value in ENVIRONMENT.items()
        if name not in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    }
    for processes in (1, 2):
        with refused("LLC109"):
            GeneratorProcess(
                Target("e", "us-east-1", ("http://127.0.0.1:9",)),
                PAYLOADS,
                processes,
                environment=environment,
            )


def test_a_session_made_with_keys_signs_with_them() -> None:
    import boto3

    environment = {
        name: value for name, value in ENVIRONMENT.items() if not name.startswith("AWS_ACCESS")
    }
    session = boto3.Session("key", "secret", "token", region_name="us-east-1")
    with (
        precise_server([0.005]) as server,
        server.generator(session=session, environment=environment) as generator,
    ):
        assert generator.run(Step("s", 0.2, ConstantArrivals(50))).completed == 10


@pytest.mark.parametrize("processes", [0, 1.5, "2"])
def test_a_number_of_processes_that_cannot_be_is_refused(processes: int) -> None:
    with refused("LLT134"):
        GeneratorProcess(Target("e", "us-east-1"), PAYLOADS, processes)


def test_a_payload_function_that_prints_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "chatty.py").write_text(
        "def body(number):\n    print('hello', number)\n    return {'number': number}\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    with (
        precise_server([0.005]) as server,
        server.generator(payloads=Payloads.of_generator("chatty:body")) as generator,
    ):
        assert generator.run(Step("s", 0.2, ConstantArrivals(50))).completed == 10


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
