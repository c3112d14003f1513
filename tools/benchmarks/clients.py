"""Callers' clients over TLS on loopback, as ratios to plain boto3 in the same run.

``python -m tools.benchmarks.clients CLIENT FOLDER`` measures one client against the server that
``client.tests.loopback_runtime`` runs, and prints JSON; :func:`clients` runs all of them in turns. Client
and server have a processor each where there are two. Signatures are not checked by the server, so
its time is the same for all; every client waits for it, which flatters the slower ones.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, cast

import boto3
from botocore.httpsession import get_cert_path

from client.tests.dead_peers import READ_TIMEOUT, SITUATIONS, FreezingRuntime, outcome
from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_client.blocking_client import RuntimeClient
from low_latency_client.boto3_client import runtime_client

from .measure import ROOT, BenchmarkFailed, Run, alternate, heading, line, percentile, sized

BODY = b'{"inputs": "hello world, write me a function", "parameters": {"max_new_tokens": 64}}'
TOKEN = "T" * 700  # as long as a role's
TARGET = timedelta(milliseconds=200)
CALLS = sized(1_000, 50)
NEW_CONNECTIONS = sized(30, 3)
CALLERS = sized(50, 5)
MODEL_SECONDS = 0.05
PAUSE_SECONDS = 0.15  # 50 callers, 200 ms a turn: 250 requests per second asked for
CALLER_TURNS = sized(12, 2)
TASKS = 16
CLIENTS = ("boto3", "runtime_client", "RuntimeClient", "asyncio", "uvloop")


def credentials() -> boto3.Session:
    """A session that reads nothing from the machine."""
    return boto3.Session("AKIDEXAMPLE", "secret", TOKEN, "us-east-1")


def summary(seconds: list[float], cpu: float) -> dict[str, float]:
    """p50, p99 and processor time per call, all in milliseconds."""
    return {
        "p50": percentile(seconds, 0.5) * 1000,
        "p99": percentile(seconds, 0.99) * 1000,
        "cpu": cpu / len(seconds) * 1000,
    }


def measure_threads(client: Any) -> dict[str, Any]:
    """boto3's client, plain or set up, and our own for threads."""

    def call(name: str = "plain") -> float:
        started = time.perf_counter()
        client.invoke_endpoint(EndpointName=name, Body=BODY, ContentType="application/json")[
            "Body"
        ].read()
        return time.perf_counter() - started

    first = call()
    for _ in range(100):
        call()
    used = time.process_time()
    one = summary([call() for _ in range(CALLS)], time.process_time() - used)
    used = time.process_time()
    new = [call("close") for _ in range(NEW_CONNECTIONS)]
    fresh = summary(new, time.process_time() - used)

    seconds: list[float] = []
    start = threading.Barrier(CALLERS)

    def caller(number: int) -> None:
        start.wait()
        time.sleep(number / CALLERS * (MODEL_SECONDS + PAUSE_SECONDS))
        for _ in range(CALLER_TURNS):
            seconds.append(call(f"slow-{MODEL_SECONDS * 1000:.0f}") - MODEL_SECONDS)
            time.sleep(PAUSE_SECONDS)

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(CALLERS)]
    used = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    many = summary(seconds, time.process_time() - used)
    return {
        "first": first * 1000,
        "one": one,
        "many": many,
        "new_connection_cpu": fresh["cpu"] - one["cpu"],
        "busy_cpu": one["cpu"],
    }


async def measure_tasks(url: str, ca_file: str) -> dict[str, Any]:
    """The asyncio client."""
    async with AsyncRuntimeClient(
        session=credentials(),
        url=url,
        ca_bundle=ca_file,
        latency_target=TARGET,
        concurrency=CALLERS,
        preconnect=CALLERS,
    ) as client:

        async def call(name: str = "plain") -> float:
            started = time.perf_counter()
            await client.invoke_endpoint(
                EndpointName=name, Body=BODY, ContentType="application/json"
            )
            return time.perf_counter() - started

        first = await call()
        for _ in range(100):
            await call()
        used = time.process_time()
        one = summary([await call() for _ in range(CALLS)], time.process_time() - used)

        async def calls() -> None:
            for _ in range(CALLS // TASKS):
                await call()

        used = time.process_time()
        await asyncio.gather(*(calls() for _ in range(TASKS)))
        busy = (time.process_time() - used) / (CALLS // TASKS * TASKS) * 1000
        seconds: list[float] = []

        async def caller(number: int) -> None:
            await asyncio.sleep(number / CALLERS * (MODEL_SECONDS + PAUSE_SECONDS))
            for _ in range(CALLER_TURNS):
                seconds.append(await call(f"slow-{MODEL_SECONDS * 1000:.0f}") - MODEL_SECONDS)
                await asyncio.sleep(PAUSE_SECONDS)

        used = time.process_time()
        await asyncio.gather(*(caller(number) for number in range(CALLERS)))
        many = summary(seconds, time.process_time() - used)
        for _ in range(CALLERS):
            await call("close")  # the kept connections, one by one
        used = time.process_time()
        new = [await call("close") for _ in range(NEW_CONNECTIONS)]
        fresh = summary(new, time.process_time() - used)
    return {
        "first": first * 1000,
        "one": one,
        "many": many,
        "new_connection_cpu": fresh["cpu"] - one["cpu"],
        "busy_cpu": busy,
    }


def measure_one(client: str, folder: Path) -> dict[str, Any]:
    """One client in this process."""
    url = json.loads((folder / "server.json").read_text(encoding="utf-8"))["url"]
    ca_file = str(folder / "bundle.pem")
    if client == "asyncio":
        return asyncio.run(measure_tasks(url, ca_file))
    if client == "uvloop":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(measure_tasks(url, ca_file))
    if client == "boto3":
        return measure_threads(
            credentials().client("sagemaker-runtime", endpoint_url=url, verify=ca_file)
        )
    options: dict[str, Any] = {
        "session": credentials(),
        "url": url,
        "ca_bundle": ca_file,
        "latency_target": TARGET,
        "concurrency": CALLERS,
    }
    if client == "runtime_client":
        return measure_threads(runtime_client(**options))
    return measure_threads(RuntimeClient(**options, preconnect=CALLERS))


@contextmanager
def running_server(folder: Path, *module: str) -> Iterator[None]:
    """A server (module and arguments) in a process of its own; a bundle as long as the real one."""
    server = subprocess.Popen(
        [sys.executable, "-m", *module, str(folder)], cwd=ROOT, stdin=subprocess.PIPE
    )
    try:
        for _ in range(400):
            if (folder / "server.json").exists():
                break
            if server.poll() is not None:
                raise BenchmarkFailed(f"{module[0]} did not start")
            time.sleep(0.05)
        pin(1, server.pid)
        real = Path(get_cert_path(True)).read_bytes()
        (folder / "bundle.pem").write_bytes(real + b"\n" + (folder / "ca.pem").read_bytes())
        yield
    finally:
        cast(IO[bytes], server.stdin).close()
        server.wait(10)


def pin(processor: int, process: int = 0) -> None:
    """Bind a process to one processor, where the system can and has two."""
    with suppress(AttributeError, OSError):
        allowed = sorted(os.sched_getaffinity(0))
        if len(allowed) > 1:
            os.sched_setaffinity(process, {allowed[processor]})


def clients(rounds: int) -> None:
    """All clients in turns; prints each next to its goal."""
    with (
        tempfile.TemporaryDirectory() as name,
        running_server(Path(name), "client.tests.loopback_runtime"),
    ):
        programs = {one: ["-m", "tools.benchmarks.clients", one, name] for one in CLIENTS}
        runs = alternate(programs, rounds)

    def values(client: str, *path: str) -> list[float]:
        return [_dig(run, *path) for run in runs[client]]

    def ratio(client: str, *path: str) -> float:
        """The median of the rounds' ratios."""
        pairs = zip(values("boto3", *path), values(client, *path), strict=True)
        return statistics.median(plain / ours for plain, ours in pairs)

    def show(title: str, goals: dict[str, str], *path: str, digits: int = 2) -> None:
        heading(title)
        for one in CLIENTS:
            found = f"{statistics.median(values(one, *path)):.{digits}f} ms"
            less = "" if one == "boto3" else f"{ratio(one, *path):.1f} times less"
            line(f"{one:<16}{found:>12}", less, goals.get(one, ""))

    heading(f"Callers' clients over TLS, {CALLS} calls of {len(BODY)} bytes; medians of {rounds}")
    print("  boto3: as it comes; asyncio and uvloop: AsyncRuntimeClient on each event loop")
    of_tasks = "11 times less"
    show(
        f"Processor time per request; tasks: {TASKS} at once, threads: one after the other",
        {"RuntimeClient": "8 times less", "asyncio": of_tasks, "uvloop": of_tasks},
        "busy_cpu",
        digits=3,
    )
    show("One call after the other: p50", {}, "one", "p50", digits=3)
    show("One call after the other: processor time per request", {}, "one", "cpu", digits=3)
    show("First call of the client", {}, "first")
    show(
        "Processor time of a new TLS connection",
        {"runtime_client": "10 times less"},
        "new_connection_cpu",
    )
    what = f"{CALLERS} callers, a model of {MODEL_SECONDS * 1000:.0f} ms, 250 requests/s asked for"
    show(f"{what}: time added at p50", {}, "many", "p50")
    show(f"{what}: time added at p99", {}, "many", "p99")
    show(f"{what}: processor time per request", {}, "many", "cpu")
    dead_peers(sized(3.0, 0.3))


def _dig(run: Run, *path: str) -> float:
    found: Any = run.answer()
    for key in path:
        found = found[key]
    return float(found)


def main() -> None:
    """Measure one client and print JSON."""
    pin(0)
    print(json.dumps(measure_one(sys.argv[1], Path(sys.argv[2]))))


if __name__ == "__main__":
    main()


def dead_peers(seconds: float) -> None:
    """Print failed and answered calls of each client in each situation."""
    limit = f"{READ_TIMEOUT / timedelta(milliseconds=1):.0f} ms"
    with FreezingRuntime() as runtime:
        for situation in SITUATIONS:
            heading(f"The peer freezes, read timeout {limit}: {situation.title}")
            for client in situation.clients:
                seen = outcome(runtime, client, situation, seconds)
                said = f"{seen.failed} failed"
                until = f"until {seen.failures_until:.1f} s, {seen.answered} answered"
                line(f"{client:<20}{until}", said, f"{situation.callers} at most")
