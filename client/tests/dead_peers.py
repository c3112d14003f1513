"""What callers see when the peer of their kept connections freezes, and its name leads elsewhere.

A server in a process of its own is stopped (SIGSTOP): its kernel still accepts connections and
acknowledges what comes, and nobody answers. From then on its name leads to a healthy server. What
is not shown: a peer that vanishes, whose packets nobody acknowledges.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from botocore.exceptions import HTTPClientError

from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_client.blocking_client import RuntimeClient
from low_latency_client.boto3_client import runtime_client
from low_latency_client.hedging import Hedging

from .loopback_runtime import LoopbackRuntime

READ_TIMEOUT = timedelta(milliseconds=500)
CLIENTS = ("boto3", "runtime_client", "RuntimeClient", "AsyncRuntimeClient")
START_SECONDS = 30.0
PAUSE_SECONDS = 0.005  # between the calls of a caller
SESSION = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")


@dataclass(frozen=True)
class Situation:
    """How connections come to be kept, and who calls when the peer freezes.

    Parameters
    ----------
    title : str
        In a table.
    burst, preconnected : int
        Calls at once beforehand, each of which leaves a connection; and connections opened ahead,
        by the clients that do so (boto3's make as many calls at once).
    callers : int
        That call from then on.
    calling : bool
        Whether they call when the peer freezes, or begin just after.
    hedging : bool
        Whether our own clients hedge.
    """

    title: str
    burst: int = 0
    preconnected: int = 0
    callers: int = 5
    calling: bool = False
    hedging: bool = False

    def __str__(self) -> str:
        return self.title

    @property
    def clients(self) -> tuple[str, ...]:
        """Those that can be in it: boto3's do not hedge."""
        return CLIENTS[2:] if self.hedging else CLIENTS


SITUATIONS = (
    Situation("60 kept by a burst, 5 callers", burst=60),
    Situation("20 opened ahead, 10 callers", preconnected=20, callers=10),
    Situation("60 kept, 5 callers in the middle of calls", burst=60, calling=True),
    Situation("60 kept, 5 callers, hedging", burst=60, hedging=True),
)


@dataclass
class Outcome:
    """Of the calls that ended after the freeze.

    Attributes
    ----------
    answered, failed : int
        Calls by their end.
    failures_until : float
        When the last failed call ended, in seconds after the freeze; 0 without any.
    errors : set of str
        Kinds of errors.
    """

    answered: int = 0
    failed: int = 0
    failures_until: float = 0.0
    errors: set[str] = field(default_factory=set)
    frozen: float = float("inf")  # when, by time.monotonic()
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, error: Exception | None) -> None:
        """Count a call that has just ended."""
        since = time.monotonic() - self.frozen
        if since < 0:
            return
        with self._lock:
            if error is None:
                self.answered += 1
                return
            self.failed += 1
            self.failures_until = max(self.failures_until, since)
            self.errors.add(type(error).__name__)


class FreezingRuntime:
    """A runtime over TLS that can be frozen; its name then leads to another one.

    Attributes
    ----------
    url : str
        Where both are reached.
    ca_file : str
        Whom to trust.
    """

    def __enter__(self) -> FreezingRuntime:
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("loopback_runtime.py")), str(folder)],
            stdin=subprocess.PIPE,
        )
        started = folder / "server.json"
        ends = time.monotonic() + START_SECONDS
        while not started.exists():
            if self._process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError("the server did not start")
            time.sleep(0.01)
        self.url = json.loads(started.read_text(encoding="utf-8"))["url"]
        self.ca_file = str(folder / "ca.pem")
        self._other = LoopbackRuntime(folder).__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._other.__exit__()
        self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._folder.cleanup()

    @contextmanager
    def able_to_freeze(self) -> Iterator[Callable[[], None]]:
        """A function that freezes it; at the end it goes on."""
        resolve = socket.getaddrinfo
        old, new = urlsplit(self.url).port, urlsplit(self._other.url).port
        ports = {old: old}

        def resolved(host: Any, port: Any, *more: Any, **options: Any) -> Any:
            return resolve(host, ports.get(port, port), *more, **options)

        def freeze() -> None:
            os.kill(self._process.pid, signal.SIGSTOP)
            ports[old] = new

        try:
            with mock.patch.object(socket, "getaddrinfo", resolved):
                yield freeze
        finally:
            os.kill(self._process.pid, signal.SIGCONT)


def outcome(runtime: FreezingRuntime, client: str, situation: Situation, seconds: float) -> Outcome:
    """What callers of a client see for so long after the freeze."""
    options: dict[str, Any] = {
        "session": SESSION,
        "url": runtime.url,
        "ca_bundle": runtime.ca_file,
        "latency_target": timedelta(milliseconds=50),
        "connect_timeout": timedelta(seconds=10),  # of a busy machine
        "read_timeout": READ_TIMEOUT,
        "concurrency": 60,
    }
    with runtime.able_to_freeze() as freeze:
        if client == "runtime_client":
            return _of_threads(runtime_client(**options), situation, seconds, freeze)
        if client == "boto3":
            return _of_threads(_plain_boto3(runtime), situation, seconds, freeze)
        options["preconnect"] = situation.preconnected
        options["hedging"] = Hedging(delay=READ_TIMEOUT / 3) if situation.hedging else None
        if client == "AsyncRuntimeClient":
            return asyncio.run(_of_tasks(options, situation, seconds, freeze))
        with RuntimeClient(**options) as ours:
            return _of_threads(ours, situation, seconds, freeze)


def _plain_boto3(runtime: FreezingRuntime) -> Any:
    """As it comes, but with our read timeout: its own is 60 s."""
    return SESSION.client(
        "sagemaker-runtime",
        endpoint_url=runtime.url,
        verify=runtime.ca_file,
        config=Config(read_timeout=READ_TIMEOUT.total_seconds()),
    )


def _of_threads(
    client: Any, situation: Situation, seconds: float, freeze: Callable[[], None]
) -> Outcome:
    seen = Outcome()

    def call(name: str) -> None:
        client.invoke_endpoint(EndpointName=name, Body=b"{}")["Body"].read()

    def open_one() -> None:
        with suppress(HTTPClientError):  # of a busy machine
            call("slow-200")

    def caller() -> None:
        while time.monotonic() < seen.frozen + seconds:
            problem = None
            try:
                call("plain")
            except Exception as error:
                problem = error
            seen.add(problem)
            time.sleep(PAUSE_SECONDS)

    before = situation.burst
    if not hasattr(client, "preconnect"):
        before += situation.preconnected
    _end(_begin(open_one, before))
    callers = _begin(caller, situation.callers) if situation.calling else []
    time.sleep(PAUSE_SECONDS * 10)
    freeze()
    seen.frozen = time.monotonic()
    _end(callers or _begin(caller, situation.callers))
    return seen


def _begin(work: Callable[[], None], number: int) -> list[threading.Thread]:
    threads = [threading.Thread(target=work) for _ in range(number)]
    for thread in threads:
        thread.start()
    return threads


def _end(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join()


async def _of_tasks(
    options: dict[str, Any], situation: Situation, seconds: float, freeze: Callable[[], None]
) -> Outcome:
    seen = Outcome()
    async with AsyncRuntimeClient(**options) as client:

        async def caller() -> None:
            while time.monotonic() < seen.frozen + seconds:
                problem = None
                try:
                    await client.invoke_endpoint(EndpointName="plain", Body=b"{}")
                except Exception as error:
                    problem = error
                seen.add(problem)
                await asyncio.sleep(PAUSE_SECONDS)

        slow: dict[str, Any] = {"EndpointName": "slow-200", "Body": b"{}"}
        burst = (client.invoke_endpoint(**slow) for _ in range(situation.burst))
        await asyncio.gather(*burst, return_exceptions=True)
        callers = [asyncio.ensure_future(caller()) for _ in range(situation.callers)]
        if situation.calling:
            await asyncio.sleep(PAUSE_SECONDS * 10)
        freeze()  # before the first of them runs, where they are not calling
        seen.frozen = time.monotonic()
        await asyncio.gather(*callers)
    return seen
