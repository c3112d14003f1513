"""Runs Locust with an open-loop user, in processes of its own: Locust patches the one it is in."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .servers import ENVIRONMENT, PreciseServer

LOCUST = str(Path(sys.executable).with_name("locust"))
LOCUSTFILE = """
from low_latency_endpoint.load_test.arrivals import ConstantArrivals, RampArrivals
from low_latency_endpoint.load_test.open_loop import OpenLoopSageMakerUser
from low_latency_endpoint.load_test.payloads import Payloads

class Sentiment(OpenLoopSageMakerUser):
    endpoint_name = "sentiment"
    region = "us-east-1"
    endpoint_urls = ("{url}",)
    payloads = Payloads.of_bytes(b'{{"inputs": "a"}}')
    {attributes}

import gevent
from locust import events
from locust.runners import WorkerRunner

@events.init.add_listener
def end_with_the_last_user(environment, runner, **_):
    def watch():
        while not runner.user_count:
            gevent.sleep(0.1)
        while runner.user_count:
            gevent.sleep(0.1)
        runner.quit()
    if not isinstance(runner, WorkerRunner):
        gevent.spawn(watch)
"""


def write_locustfile(folder: Path, server: PreciseServer, attributes: str) -> None:
    """A locustfile with one class that calls the server."""
    (folder / "locustfile.py").write_text(
        LOCUSTFILE.format(url=server.url, attributes=attributes), encoding="utf-8")


def locust(folder: Path, server: PreciseServer, *options: str,
           attributes: str = "arrivals = ConstantArrivals(100)\n    seconds = 3",
           ) -> subprocess.CompletedProcess[str]:
    """A headless run of the locustfile."""
    write_locustfile(folder, server, attributes)
    return subprocess.run(
        [LOCUST, "-f", "locustfile.py", "--headless", "--only-summary", *options],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=90, check=False)


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def two_processes() -> list[str]:
    """A master and two forked workers, on a port that no other test has."""
    port = str(free_port())
    return ["--processes", "2", "--master-bind-port", port, "--master-port", port]


def percentiles_said(output: str) -> dict[str, float]:
    """What the summary at the end says."""
    return {name: float(value) for name, value in re.findall(
        r": +(p[\d.]+) ([\d.]+) \(", output)}


def counts_said(output: str) -> list[tuple[int, ...]]:
    """Sent, due, answered and failed, of each summary."""
    return [tuple(int(number.replace(",", "")) for number in numbers) for numbers in re.findall(
        r"([\d,]+) of ([\d,]+) requests that were due were sent, ([\d,]+) answered well, "
        r"([\d,]+) failed", output)]


@contextmanager
def locusts_page(folder: Path, *options: str) -> Iterator[tuple[str, Path]]:
    """Locust with its page: the page's address, and the file with what Locust says."""
    address, log = f"127.0.0.1:{free_port()}", folder / "locust.log"
    host, port = address.split(":")
    with log.open("w", encoding="utf-8") as file, subprocess.Popen(
        [LOCUST, "-f", "locustfile.py", "--web-host", host, "--web-port", port, *options],
        cwd=folder, env=ENVIRONMENT, stdout=file, stderr=file,
    ) as process:
        try:
            yield f"http://{address}", log
        finally:
            process.terminate()
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()


def exit_code_said(output: str) -> int:
    """What Locust ends with when no request failed: a busy machine's generator is no measure."""
    return int("the result is invalid" in output)
