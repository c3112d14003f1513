"""The HTTP of both clients, byte by byte, and what it does with a bad peer."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_client.async_http import AsyncPool
from low_latency_client.blocking_http import BlockingPool
from low_latency_client.call_attempts import Attempts, CallRules
from low_latency_client.timing import ClientCounts, call_timing, socket_options

from .callers import run_core
from .test_http_answers import pieces
from .threaded_server import ScriptedServer

KINDS = ("threads", "asyncio")
REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
ANSWER: list[bytes | None] = [b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"]


@dataclass
class Request:
    """In place of :class:`.runtime_wire.Prepared`."""

    origin: str

    def signed(self, body: bytes) -> bytes:
        return REQUEST


Use = Callable[[Any, str], Coroutine[Any, Any, Any]]


def with_peer(kind: str, peer: ScriptedServer, use: Use, **more: Any) -> Any:
    with peer:
        return with_pool(kind, use, peer.url, **more)


def with_pool(
    kind: str,
    use: Use,
    origin: str,
    limit: int = 4,
    connect: float = 10,
    tls: ssl.SSLContext | None = None,
) -> Any:
    async def run() -> Any:
        timing = call_timing(
            timedelta(seconds=1),
            connect_timeout=timedelta(seconds=connect),
            read_timeout=timedelta(seconds=10),
        )
        sockets = socket_options(timedelta(seconds=60), timing.connect_timeout)
        kind_of_pool: Any = BlockingPool if kind == "threads" else AsyncPool
        pool = kind_of_pool(timing, sockets, tls, limit)
        try:
            return await use(pool, origin)
        finally:
            pool.close()

    return run_core(kind, run)


def attempts(origin: str) -> Attempts:
    rules = CallRules(call_timing(timedelta(seconds=3)), ClientCounts(), origin)
    return Attempts(rules, idempotent=True)


async def whole(pool: Any, origin: str, *, stream: bool = False) -> tuple[int, bytes]:
    connection = await pool.exchange(Request, b"", attempts(origin), stream=stream)
    body = b""
    try:
        while data := await connection.part(time.monotonic() + 10):
            body += data
        return connection.reader.status, body
    finally:
        pool.give_back(connection)


def chunked(parts: list[bytes]) -> bytes:
    body = b"".join(b"%X;ext=1\r\n%s\r\n" % (len(part), part) for part in parts if part)
    return (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\nTrailer: x\r\n\r\n"
    )


@settings(max_examples=40, deadline=None)
@given(
    body=st.binary(max_size=200),
    places=st.lists(st.integers(0, 400), max_size=6),
    parts=st.lists(st.binary(max_size=60), max_size=5),
    stream=st.booleans(),
)
def test_an_answer_is_the_same_however_it_is_cut(
    kind: str, body: bytes, places: list[int], parts: list[bytes], stream: bool
) -> None:
    """A sized and a chunked answer on one connection, in arbitrary pieces."""
    sized = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: %d\r\n\r\n" % len(body)
    ) + body
    peer = ScriptedServer([*pieces(sized, places)], [*pieces(chunked(parts), places)])

    async def use(pool: Any, origin: str) -> None:
        assert await whole(pool, origin, stream=stream) == (201, body)
        assert await whole(pool, origin, stream=stream) == (200, b"".join(parts))

    with_peer(kind, peer, use)
    assert peer.connections == 1


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        # An answer that nobody asked for: the first stands, as it would had the other come later.
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny",
    ],
)
def test_a_connection_that_is_to_close_is_not_used_again(kind: str, head: bytes) -> None:
    peer = ScriptedServer([head], [head])

    async def use(pool: Any, origin: str) -> None:
        await whole(pool, origin)
        await whole(pool, origin)

    with_peer(kind, peer, use)
    assert peer.connections == 2


@pytest.mark.parametrize(
    "script",
    [
        [b"SSH-2.0-OpenSSH\r\n\r\n"],
        [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"],
        [None],
        [b"HTTP/1.1 200", None],
        [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", None],
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_is_no_answer_or_half_of_one_is_botocores_error(
    kind: str, script: list[bytes | None], stream: bool
) -> None:
    """Which bytes are an answer: test_http_answers.py."""

    async def use(pool: Any, origin: str) -> None:
        with pytest.raises(ConnectionClosedError):
            await whole(pool, origin, stream=stream)

    with_peer(kind, ScriptedServer(script), use)


@pytest.mark.parametrize("by", ["time", "close"])
def test_an_answer_without_a_length_is_not_whole_where_we_end_it(kind: str, by: str) -> None:
    async def use(pool: Any, origin: str) -> None:
        call, error = attempts(origin), ConnectionClosedError
        if by == "time":
            call.deadline, error = time.monotonic() + 0.2, ReadTimeoutError
        elif kind == "threads":
            threading.Timer(0.2, pool.close).start()
        else:
            pool.loop.call_later(0.2, pool.close)
        with pytest.raises(error):
            await pool.exchange(Request, b"", call)

    with_peer(kind, ScriptedServer([b"HTTP/1.1 200 OK\r\n\r\nhalf"]), use)


def test_nobody_listens(kind: str) -> None:
    async def use(pool: Any, origin: str) -> None:
        with pytest.raises(EndpointConnectionError):
            await pool.exchange(Request, b"", attempts(origin))
        assert await pool.open(origin, 2) == 0

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with_pool(kind, use, f"http://127.0.0.1:{closed.getsockname()[1]}")


def test_a_handshake_that_never_ends(kind: str) -> None:
    async def use(pool: Any, origin: str) -> None:
        with pytest.raises(ConnectTimeoutError):
            await pool.exchange(Request, b"", attempts(origin))

    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(10)
        origin = f"https://127.0.0.1:{silent.getsockname()[1]}"
        with_pool(kind, use, origin, connect=0.3, tls=ssl.create_default_context())
        peer, _ = silent.accept()
        with peer:
            peer.settimeout(10)
            while peer.recv(4096):
                pass  # to the end, which the client has sent


@pytest.mark.parametrize("kind", ["asyncio"])
def test_calls_beyond_the_limit_wait_and_failures_give_their_turn_back(kind: str) -> None:
    peer = ScriptedServer([None], ANSWER, ANSWER, ANSWER, ANSWER, ANSWER)

    async def use(pool: Any, origin: str) -> None:
        results = await asyncio.gather(
            *(whole(pool, origin) for _ in range(6)), return_exceptions=True
        )
        assert sorted(str(type(one).__name__) for one in results) == [
            "ConnectionClosedError",
            *["tuple"] * 5,
        ]

    with_peer(kind, peer, use, limit=1)
    assert peer.connections == 2


@pytest.mark.parametrize("kind", ["asyncio"])
def test_a_cancelled_call_leaves_no_half_used_connection(kind: str) -> None:
    peer = ScriptedServer([], ANSWER)

    async def use(pool: Any, origin: str) -> None:
        task = asyncio.ensure_future(pool.exchange(Request, b"", attempts(origin)))
        while not peer.connections:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await whole(pool, origin) == (200, b"x")

    with_peer(kind, peer, use, limit=1)
    assert peer.connections == 2


def test_a_slow_reader_holds_the_sender_back(kind: str) -> None:
    size = 8 * 1024 * 1024
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    pieces: list[bytes | None] = [head, *[b"x" * 65_536] * (size // 65_536)]

    async def use(pool: Any, origin: str) -> None:
        connection = await pool.exchange(Request, b"", attempts(origin), stream=True)
        await pool.sleep(0.1)
        assert sum(map(len, connection.reader.parts)) < size // 2
        read = 0
        while data := await connection.part(time.monotonic() + 10):
            read += len(data)
        assert read == size
        pool.give_back(connection)

    with_peer(kind, ScriptedServer(pieces), use)


def test_the_socket_options_are_set(kind: str) -> None:
    async def use(pool: Any, origin: str) -> None:
        await whole(pool, origin)
        (connection,) = pool._all
        if kind == "threads":
            kept = connection._socket
        else:
            kept = connection._transport.get_extra_info("socket")
        for level, name, value in pool.sockets:
            assert kept.getsockopt(level, name) == value

    with_peer(kind, ScriptedServer(ANSWER), use)
