"""SIGINT and SIGTERM end Locust with its result, however it was started; invalid results fail."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from .locust_runs import (
    Locust,
    aggregated,
    counts_said,
    exit_code_said,
    free_port,
    headless,
    locust,
    until,
    write_locustfile,
)
from .servers import PreciseServer, precise_server

pytestmark = pytest.mark.realtime

ARRIVALS = "arrivals = ConstantArrivals(100)"


def running(folder: Path, options: str = "", processes: int | None = None, **how: bool) -> Locust:
    """Locust, perhaps started as a shell does in the background: with SIGINT ignored."""
    how = {"ignored": True, **how}
    return Locust(headless(options, processes), folder, folder / "locust.log", **how)


def sent(server: PreciseServer, number: int) -> Callable[[], bool]:
    return lambda: server.seen() > number


# Each signal and each state of SIGINT with one process and with workers; a signal reaches the
# process that handles it alike however SIGINT came. Ctrl-C reaches all processes at once, and
# workers report when the master no longer reads.
@pytest.mark.parametrize(
    ("number", "ignored", "processes", "to_all"),
    [
        (signal.SIGINT, True, 2, False),
        (signal.SIGINT, False, 1, False),
        (signal.SIGINT, False, 1, True),
        (signal.SIGINT, False, 2, True),
        (signal.SIGTERM, True, 1, False),
        (signal.SIGTERM, False, 2, False),
    ],
)
def test_a_signal_ends_a_run_with_its_result(
    tmp_path: Path, number: signal.Signals, ignored: bool, processes: int, to_all: bool
) -> None:
    with precise_server([0.02]) as server:
        write_locustfile(tmp_path, server, ARRIVALS)
        options = "--csv run --html run.html"
        with running(tmp_path, options, processes, ignored=ignored, new_session=to_all) as run:
            until(sent(server, 60))
            assert len(run.workers()) == (2 if processes == 2 else 0)
            if to_all:
                os.killpg(run.pid, number)
            else:
                run.send_signal(number)
            code = run.end()
        count = len(server.times())
    said = run.said
    ((was_sent, due, answered, failed),) = counts_said(said)
    assert was_sent == due == answered + failed == count
    assert "nothing is known" not in said
    assert (code, failed) == (exit_code_said(said), 0), said
    # Locust's own CSV writer may still be at a file that Locust closes as it ends.
    assert not any("low_latency_endpoint" in each for each in said.split("Traceback")[1:]), said
    assert re.search(rf"Aggregated +{count}\b", said), "Locust's table"
    assert int(aggregated(tmp_path)["Request Count"]) == count
    assert f'"num_requests": {count}' in (tmp_path / "run.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("processes", [1, 2])
def test_the_second_signal_ends_a_run_at_once(tmp_path: Path, processes: int) -> None:
    """The endpoint answers nobody, and Locust would wait for that for ten minutes."""
    with precise_server([0.02] * 20 + [900.0] * 10_000) as server:
        write_locustfile(tmp_path, server, ARRIVALS + "\n    timeout_seconds = 600")
        with running(tmp_path, "--stop-timeout 600", processes) as run:
            until(sent(server, 100))
            run.workers()
            run.send_signal(signal.SIGINT)
            until(lambda: "once more to end without its result" in run.said)
            assert run.poll() is None
            run.send_signal(signal.SIGINT)
            assert run.end() == 130


def test_a_master_whose_workers_died_ends_and_says_so(tmp_path: Path) -> None:
    with precise_server([0.02]) as server:
        write_locustfile(tmp_path, server, ARRIVALS)
        with running(tmp_path, "--html run.html", 2) as run:
            # Workers report each third second, and die in between.
            until(sent(server, 500))
            for child in run.workers():
                child.kill()
            run.send_signal(signal.SIGINT)
            code = run.end()
    assert code == 1
    assert "2 workers ended without a last report" in run.said
    assert "the result is invalid" in run.said
    assert counts_said(run.said)
    assert "Traceback" not in run.said
    assert (tmp_path / "run.html").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_master_that_waits_for_workers_can_be_ended(
    tmp_path: Path, number: signal.Signals
) -> None:
    with precise_server([0.02]) as server:
        write_locustfile(tmp_path, server, ARRIVALS)
        master = f"--master --expect-workers 2 --master-bind-port {free_port()}"
        with running(tmp_path, master) as run:
            until(lambda: "Waiting for workers" in run.said)
            run.send_signal(number)
            assert run.end() == 130
    assert "Traceback" not in run.said


@pytest.mark.parametrize("processes", [1, 2])
def test_a_client_bound_run_fails(tmp_path: Path, processes: int) -> None:
    """A user's own code that takes 30 ms for each of 100 requests a second does not keep up."""
    slow = """arrivals = ConstantArrivals(200)
    seconds = 2

    def request(self, number):
        import time
        until = time.perf_counter() + 0.03
        while time.perf_counter() < until:
            pass
        return super().request(number)
"""
    with precise_server([0.001]) as server:
        done = locust(tmp_path, server, "", processes, attributes=slow)
    assert "client-bound: result invalid" in done.stderr
    assert done.returncode == 1, done.stderr


@pytest.mark.parametrize("processes", [1, 2])
def test_a_client_bound_closed_loop_fails(tmp_path: Path, processes: int) -> None:
    """Beside other load no process gets nine tenths of a core, so that the bound is lowered."""
    with precise_server([0.001]) as server:
        write_locustfile(tmp_path, server, "seconds = None")
        path = tmp_path / "locustfile.py"
        text = path.read_text(encoding="utf-8").replace(
            "(OpenLoopSageMakerUser)", "(SageMakerUser)"
        )
        path.write_text(f"{text}\nusers.CPU_SHARE = 0.001\n", encoding="utf-8")
        with running(tmp_path, "", processes) as run:
            until(sent(server, 300))
            run.workers()
            run.send_signal(signal.SIGINT)
            code = run.end()
    assert "the result is invalid: client-bound: a process had" in run.said
    assert code == 1, run.said
