"""Runs Locust with an open-loop user, in processes of its own: Locust patches the one it is in."""

from __future__ import annotations

import contextlib
import csv
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from .servers import ENVIRONMENT, PreciseServer

LOCUSTFILE = """
from low_latency_endpoint.load_test import (
    ConstantArrivals, OpenLoopSageMakerUser, Payloads, RampArrivals, SageMakerUser)
from low_latency_endpoint.load_test.engine import users

class Sentiment(OpenLoopSageMakerUser):
    endpoint_name = "sentiment"
    region = "us-east-1"
    endpoint_urls = ("{url}",)
    payloads = Payloads.of_bytes(b'{{"inputs": "a"}}')
    {attributes}

import os

import gevent
from locust import events
from locust.runners import STATE_RUNNING, STATE_SPAWNING, WorkerRunner

@events.init.add_listener
def end_with_the_last_user_or_when_told(environment, runner, **_):
    def watch():
        while not runner.user_count:
            gevent.sleep(0.1)
        while runner.user_count and not os.path.exists("end"):
            gevent.sleep(0.1)
        if runner.state in (STATE_SPAWNING, STATE_RUNNING):  # nobody else is ending it
            runner.quit()
    if not isinstance(runner, WorkerRunner):
        gevent.spawn(watch)
"""
#: How a locustfile of :func:`write_locustfile` is told to end, as the end of ``-t`` would.
END = "end"


class Locust(subprocess.Popen[bytes]):
    """Locust in a process of its own, with what it says in two files, or in one."""

    def __init__(
        self,
        arguments: Sequence[str],
        folder: Path,
        out: Path,
        err: Path | None = None,
        *,
        environment: Mapping[str, str] = ENVIRONMENT,
        ignored: bool = False,
        new_session: bool = False,
    ) -> None:
        self._log = out
        self._workers: list[psutil.Process] = []

        def begin() -> None:
            handler = signal.SIG_IGN if ignored else signal.default_int_handler
            signal.signal(signal.SIGINT, handler)

        with out.open("ab") as said, (err or out).open("ab") as told:
            super().__init__(
                [sys.executable, "-m", "locust", *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=told,
                preexec_fn=begin,
                start_new_session=new_session,
            )

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            if worker.is_running():
                worker.kill()
        self.kill()
        self.wait()

    @property
    def said(self) -> str:
        """What its first file holds."""
        return self._log.read_text(encoding="utf-8")

    def workers(self) -> list[psutil.Process]:
        """Its children, as of now; :meth:`end` looks at them."""
        self._workers = psutil.Process(self.pid).children()
        return self._workers

    def end(self, seconds: float = 60) -> int:
        """Its exit code, once it and its workers have ended."""
        code = self.wait(seconds)
        until(
            lambda: all(
                not each.is_running() or each.status() == psutil.STATUS_ZOMBIE
                for each in self._workers
            )
        )
        return code


def until(reached: Callable[[], object], seconds: float = 120) -> None:
    """Wait for something."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def run_locust(
    arguments: Sequence[str],
    folder: Path,
    timeout: float = 120,
    environment: Mapping[str, str] = ENVIRONMENT,
    enough: Callable[[], object] | None = None,
    end: Callable[[Locust], object] = lambda process: process.send_signal(signal.SIGTERM),
) -> subprocess.CompletedProcess[str]:
    """Locust to its end, which comes when there is ``enough``.

    Locust's own ``-t`` may be over before its first user begins, on a busy machine.
    """
    with tempfile.TemporaryDirectory() as kept:
        out, err = Path(kept, "out"), Path(kept, "err")
        with Locust(arguments, folder, out, err, environment=environment) as process:
            if enough is not None:
                until(lambda: enough() or process.poll() is not None, timeout)
                end(process)
            code = process.wait(timeout)
        return subprocess.CompletedProcess(
            list(arguments), code, out.read_text("utf-8"), err.read_text("utf-8")
        )


def write_locustfile(folder: Path, server: PreciseServer, attributes: str) -> None:
    """A locustfile with one class that calls the server."""
    (folder / END).unlink(missing_ok=True)
    (folder / "locustfile.py").write_text(
        LOCUSTFILE.format(url=server.url, attributes=attributes), encoding="utf-8"
    )


def headless(options: str = "", processes: int | None = None) -> list[str]:
    """Arguments of a run without a page, of one user on each of these processes."""
    users = [] if processes is None else ["-u", str(processes), "-r", "2"]
    forked = two_processes() if processes == 2 else []
    return [
        *["-f", "locustfile.py", "--headless", "--only-summary"],
        *users,
        *forked,
        *options.split(),
    ]


def locust(
    folder: Path,
    server: PreciseServer,
    options: str = "",
    processes: int | None = None,
    *,
    attributes: str = "arrivals = ConstantArrivals(100)\n    seconds = 3",
    requests: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """A headless run of the locustfile; it is stopped when the server has seen these requests."""
    write_locustfile(folder, server, attributes)
    return run_locust(
        headless(options, processes),
        folder,
        enough=None if requests is None else lambda: server.seen() >= requests,
        end=lambda process: (folder / END).touch(),
    )


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def two_processes() -> list[str]:
    """A master and two forked workers, on a port that no other test has."""
    port = str(free_port())
    return ["--processes", "2", "--master-bind-port", port, "--master-port", port]


def aggregated(folder: Path) -> dict[str, str]:
    """The last row of Locust's CSV."""
    with (folder / "run_stats.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))[-1]


def page_of(folder: Path) -> Any:
    """What Locust's HTML shows."""
    page = (folder / "run.html").read_text(encoding="utf-8")
    return json.loads(page.split("window.templateArgs = ", 1)[1].split("\n", 1)[0].rstrip("; "))


def percentiles_said(output: str) -> dict[str, float]:
    """What the summary at the end says."""
    return {name: float(value) for name, value in re.findall(r": +(p[\d.]+) ([\d.]+) \(", output)}


def counts_said(output: str) -> list[tuple[int, ...]]:
    """Sent, due, answered and failed, of each summary."""
    return [
        tuple(int(number.replace(",", "")) for number in numbers)
        for numbers in re.findall(
            r"([\d,]+) of ([\d,]+) requests that were due were sent, ([\d,]+) answered well, "
            r"([\d,]+) failed",
            output,
        )
    ]


@contextmanager
def locusts_page(folder: Path, *options: str) -> Iterator[tuple[str, Path]]:
    """Locust with its page: the page's address, and the file with what Locust says."""
    address, log = f"127.0.0.1:{free_port()}", folder / "locust.log"
    host, port = address.split(":")
    with Locust(
        ["-f", "locustfile.py", "--web-host", host, "--web-port", port, *options], folder, log
    ) as process:
        try:
            yield f"http://{address}", log
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)


def exit_code_said(output: str) -> int:
    """What Locust ends with when no request failed: a busy machine's generator is no measure."""
    return int("the result is invalid" in output)
