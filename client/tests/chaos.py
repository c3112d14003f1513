"""A server that does to its clients what bad networks, proxies and models do, and calls to it."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_client.blocking_client import RuntimeClient
from low_latency_client.timing import ClientCounts

from .threaded_server import ThreadedServer, read_request

T = TypeVar("T")
SESSION = boto3.Session("AKID", "secret", region_name="us-east-1")
READ_TIMEOUT = timedelta(milliseconds=1000)
# What is done, and how often of a thousand; the rest are plain answers.
PLAIN = {"chunks": 100, "slow": 60, "close": 40, "quiet close": 60, "stray": 20}
BAD = {"no answer": 15, "half": 15, "half and reset": 10, "503": 15, "garbage": 5}
HINTS = {"hints": 40}
LATE = {"late": 1}


class ChaosServer(ThreadedServer):
    """Echoes bodies, badly. Counts how often each body was read to its end.

    Parameters
    ----------
    shares : mapping of str to int
        What is done, and how often of a thousand requests.
    folder : Path, optional
        Of certificates; TLS then.
    """

    def __init__(self, shares: dict[str, int], folder: Path | None = None, seed: int = 1) -> None:
        context = None
        if folder:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / "server.pem")
        super().__init__(context)
        self.folder = folder
        self.executed: Counter[bytes] = Counter()
        self.done: Counter[str] = Counter()
        self._kinds = [*shares, "plain"]
        self._weights = [*shares.values(), 1000 - sum(shares.values())]
        self._random = random.Random(seed)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                _, body = await read_request(reader)
                self.executed[body] += 1
                (kind,) = self._random.choices(self._kinds, self._weights)
                self.done[kind] += 1
                if not await self._answer(kind, body, writer):
                    return
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            with suppress(OSError, RuntimeError):
                writer.close()

    async def _answer(self, kind: str, body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Whether another request may come."""
        ok = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(body)
        whole = ok + b"\r\n" + body
        if kind == "slow":
            await asyncio.sleep(self._random.uniform(0, 0.01))
        elif kind == "late":
            await asyncio.sleep(READ_TIMEOUT.total_seconds() * 1.3)
        if kind == "hints":
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        if kind == "chunks":
            await self._chunks(body, writer)
        elif kind == "close":
            writer.write(ok + b"Connection: close\r\n\r\n" + body)
            return False
        elif kind == "half":
            writer.write(whole[: self._random.randrange(1, len(whole))])
            return False
        elif kind == "half and reset":
            writer.write(whole[: self._random.randrange(1, len(whole))])
            await asyncio.sleep(0)
            writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )
            writer.transport.abort()
            return False
        elif kind == "503":
            writer.write(b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\n{}")
        elif kind == "garbage":
            writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
            return False
        elif kind == "stray":
            writer.write(whole + ok + b"\r\n" + b"?" * len(body))
        elif kind != "no answer":
            writer.write(whole)
        await writer.drain()
        return kind not in ("no answer", "quiet close", "stray")

    async def _chunks(self, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nTrailer: x\r\n\r\n")
        rest = body
        while rest:
            size = self._random.randrange(1, len(rest) + 1)
            writer.write(b'%x;n="1"\r\n%b\r\n' % (size, rest[:size]))
            rest = rest[size:]
            if self._random.random() < 0.3:
                await writer.drain()
                await asyncio.sleep(0)
        writer.write(b"0\r\nX-Checksum: 1\r\n\r\n")


@dataclass
class Outcome:
    """What became of the calls of one client."""

    calls: int = 0
    wrong: int = 0
    right: int = 0
    cancelled: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    def count(self, body: bytes, answer: bytes) -> None:
        """An answer came."""
        if answer == body:
            self.right += 1
        else:
            self.wrong += 1

    @property
    def failures(self) -> int:
        """Calls that raised, but for the endpoint's own silence, which is not asked again."""
        return self.failed.total() - self.failed[ReadTimeoutError.__name__]


def bodies(number: int) -> list[bytes]:
    """So many, no two alike, of many lengths."""
    return [b"%d:" % one + b"x" * (one * 37 % 301) for one in range(number)]


def options(server: ChaosServer, **more: Any) -> dict[str, Any]:
    return {
        "latency_target": timedelta(milliseconds=100),
        "read_timeout": READ_TIMEOUT,
        "connect_timeout": timedelta(seconds=10),
        "url": server.url,
        "session": SESSION,
        "concurrency": 50,
        "ca_bundle": server.folder and server.folder / "ca.pem",
        **more,
    }


def calls(
    kind: str, server: ChaosServer, todo: list[bytes], at_once: int = 8, **more: Any
) -> tuple[Outcome, ClientCounts]:
    """Each body once, by one of our clients."""
    if kind == "asyncio":
        return run_quietly(_asyncio_calls(server, todo, at_once, **more))
    invoke = {"Idempotent": more.pop("idempotent", True)}
    assert not more.pop("cancel", 0)
    with RuntimeClient(**options(server, **more)) as client:
        outcome = thread_calls(invoker(client, **invoke), todo, at_once)
        return outcome, client.counts


async def _asyncio_calls(
    server: ChaosServer,
    todo: Iterable[bytes],
    tasks: int,
    cancel: float = 0.0,
    idempotent: bool = True,
    **more: Any,
) -> tuple[Outcome, ClientCounts]:
    """Each body once, by so many tasks; a share of the calls is cancelled at random."""
    outcome, left = Outcome(), iter(todo)
    chance = random.Random(2)
    async with AsyncRuntimeClient(**options(server, **more)) as client:

        async def work() -> None:
            for body in left:
                outcome.calls += 1
                call = asyncio.ensure_future(
                    client.invoke_endpoint(EndpointName="e", Body=body, Idempotent=idempotent)
                )
                if chance.random() < cancel:
                    await asyncio.sleep(chance.uniform(0, 0.004))
                    call.cancel()
                try:
                    outcome.count(body, (await call)["Body"])
                except asyncio.CancelledError:
                    outcome.cancelled += 1
                except Exception as error:
                    outcome.failed[type(error).__name__] += 1

        await asyncio.gather(*(work() for _ in range(tasks)))
        pool = client._pool
        assert pool is not None
        assert pool._turns._value == 50  # every slot is free again
        for _ in range(3):
            await asyncio.sleep(0)
        kept = [one for many in pool._kept._by_origin.values() for one in many]
        assert {one for one in pool._all if not one.closed} == set(kept)  # none leaked
        assert len(kept) <= 50
    return outcome, client.counts


def thread_calls(
    invoke: Callable[[bytes], bytes], todo: Iterable[bytes], threads: int = 8
) -> Outcome:
    """Each body once, by so many threads."""
    outcome, left, lock = Outcome(), iter(todo), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                body = next(left, None)
                outcome.calls += body is not None
            if body is None:
                return
            try:
                answer = invoke(body)
            except Exception as error:
                with lock:
                    outcome.failed[type(error).__name__] += 1
            else:
                with lock:
                    outcome.count(body, answer)

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(threads):
            pool.submit(work)
    return outcome


def invoker(client: Any, **more: Any) -> Callable[[bytes], bytes]:
    """One call of a synchronous client, boto3's or ours."""

    def invoke(body: bytes) -> bytes:
        found: bytes = client.invoke_endpoint(EndpointName="e", Body=body, **more)["Body"].read()
        return found

    return invoke


def plain_boto3(server: ChaosServer, retries: int) -> Any:
    """boto3's own client with so many retries, and the same read timeout."""
    return SESSION.client(
        "sagemaker-runtime",
        endpoint_url=server.url,
        verify=str(server.folder / "ca.pem") if server.folder else None,
        config=Config(
            retries={"mode": "standard", "total_max_attempts": retries + 1},
            read_timeout=READ_TIMEOUT.total_seconds(),
            connect_timeout=10,
            max_pool_connections=50,
        ),
    )


def check(outcome: Outcome, server: ChaosServer, attempts: int) -> None:
    """No wrong answer, no call lost, no body executed more often than the retries say."""
    assert outcome.wrong == 0, outcome
    assert outcome.right + outcome.cancelled + outcome.failed.total() == outcome.calls
    assert max(server.executed.values()) <= attempts, server.executed.most_common(3)


def run_quietly(work: Coroutine[Any, Any, T]) -> T:
    """In an event loop that notes what nobody caught."""
    problems: list[dict[str, Any]] = []

    async def inside() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))
        return await work

    found = asyncio.run(inside())
    assert not problems, problems[:3]
    return found
