"""How a Locust run ends: by signals and by itself; nothing that callers waited for vanishes."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.parse
import urllib.request
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
    locusts_page,
    page_of,
    percentiles_said,
    two_processes,
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


@pytest.mark.parametrize("processes", [1, 2])
def test_callers_of_a_dead_endpoint_do_not_vanish(tmp_path: Path, processes: int) -> None:
    """The server answers a hundred requests and then nobody, until Locust ends the test."""
    with precise_server([0.02] * 100 + [900.0] * 10_000) as server:
        options = "--csv run --html run.html"
        done = locust(tmp_path, server, options, processes, attributes=ARRIVALS, requests=300)
    ((sent, due, answered, failed),) = counts_said(done.stderr)
    assert done.returncode == 1
    assert sent == answered + failed == due
    assert answered == 100
    assert failed >= 200
    assert f"{failed:,} times no answer when stopped" in done.stderr
    assert f"{answered:,} answers and {failed:,} requests that waited in vain" in done.stderr
    said = percentiles_said(done.stderr)
    assert said["p99"] > 1000
    assert f"generator: {processes} process" in done.stderr

    total = aggregated(tmp_path)
    assert (int(total["Request Count"]), int(total["Failure Count"])) == (sent, failed)
    assert float(total["99%"]) == pytest.approx(said["p99"], rel=0.01)
    row = page_of(tmp_path)["requests_statistics"][-1]
    assert (row["num_requests"], row["num_failures"]) == (sent, failed)


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize(
    ("seconds", "requests", "options"),
    [(0.3, 100, "--csv run"), (1.5, 150, "--stop-timeout 60 --csv run")],
)
def test_requests_under_way_to_a_healthy_endpoint_are_waited_for(
    tmp_path: Path, processes: int, seconds: float, requests: int, options: str
) -> None:
    with precise_server([seconds]) as server:
        done = locust(tmp_path, server, options, processes, attributes=ARRIVALS, requests=requests)
        count = len(server.times())
    assert done.returncode == exit_code_said(done.stderr), done.stderr
    assert count >= requests
    assert counts_said(done.stderr) == [(count, count, count, 0)]
    assert int(aggregated(tmp_path)["Request Count"]) == count


@pytest.mark.parametrize("processes", [1, 2])
def test_each_test_of_locusts_page_is_told_of_when_it_stops(tmp_path: Path, processes: int) -> None:
    with precise_server([0.02]) as server:
        write_locustfile(tmp_path, server, ARRIVALS)
        page_file = tmp_path / "locustfile.py"
        # The page stays when a test has ended.
        page_file.write_text(page_file.read_text().replace("runner.quit()", "pass"))
        served = 0
        options = two_processes() if processes == 2 else []
        with locusts_page(tmp_path, *options) as (page, log):
            until(lambda: ready(page, processes))
            for number in (1, 2):
                before = served
                ask(f"{page}/swarm", user_count=processes, spawn_rate=2)
                until(lambda before=before: len(server.times()) > before + 80)
                ask(f"{page}/stop")
                until(lambda number=number: len(counts_said(log.read_text())) == number)
                served = len(server.times())
                sent, due, answered, failed = counts_said(log.read_text())[-1]
                assert sent == due == answered == served - before, "of this test alone"
                assert failed == 0
            time.sleep(1)  # which would have lowered the share of the processor
        output = log.read_text()
    assert len(counts_said(output)) == 2, "nothing is told again at the end"
    assert output.count(f"generator: {processes} process") == 2
    assert "busiest 0% of a core" not in output


def ready(page: str, processes: int) -> bool:
    """Whether Locust serves its page and, with more than one process, has its workers."""
    try:
        with urllib.request.urlopen(f"{page}/stats/requests", timeout=10) as answer:
            found = json.loads(answer.read())
    except OSError:
        return False
    return processes == 1 or len(found.get("workers", ())) == processes


def ask(address: str, **form: object) -> None:
    """Press a button of Locust's page; it wants a POST, even of nothing."""
    data = urllib.parse.urlencode(form).encode()
    with urllib.request.urlopen(address, data=data, timeout=90) as answer:
        assert answer.status == 200
