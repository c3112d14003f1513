"""The HTTP of the asyncio client, byte by byte, and what it does with a bad peer."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
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

from low_latency_endpoint.client.async_http import HttpPool
from low_latency_endpoint.client.call_attempts import Attempts, CallRules
from low_latency_endpoint.client.client_base import ClientOptions
from low_latency_endpoint.client.client_timing import CallTiming, ClientCounts
from low_latency_endpoint.client.kept_connections import KeptConnections

from .test_http_answers import pieces

REQUEST = b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
END = b"\r\n\r\n"
ANSWER: list[bytes | None] = [b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"]


@dataclass
class Request:
    """Where a request goes, prepared as :class:`.runtime_wire.Prepared` is."""

    origin: str

    def signed(self, body: bytes) -> bytes:
        return REQUEST


class Peer:
    """Answers each request with the next script: pieces of bytes; ``None`` closes."""

    def __init__(self, *scripts: list[bytes | None]) -> None:
        self.scripts = list(scripts)
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.scripts:
                await reader.readuntil(END)
                for piece in self.scripts.pop(0):
                    if piece is None:
                        writer.close()
                        return
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
            await reader.read()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


def with_peer(peer: Peer, use: Callable[[HttpPool, str], Awaitable[Any]], **more: Any) -> Any:
    async def run() -> Any:
        server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        pool = pool_of(**more)
        try:
            return await asyncio.wait_for(use(pool, f"http://127.0.0.1:{port}"), 20)
        finally:
            pool.close()
            server.close()
            await server.wait_closed()

    return asyncio.run(run())


def pool_of(limit: int = 4, connect: float = 10, read: float = 10, idle: float = 60) -> HttpPool:
    pool = HttpPool(
        ClientOptions(
            latency_target=timedelta(seconds=1),
            concurrency=limit,
            connect_timeout=timedelta(seconds=connect),
            read_timeout=timedelta(seconds=read),
        )
    )
    pool._kept = KeptConnections(idle_seconds=idle)
    return pool


def attempts(origin: str, seconds: float = 30, *, idempotent: bool = True) -> Attempts:
    """A call that may take so long."""
    timing = CallTiming(
        connect_timeout=timedelta(0),
        read_timeout=timedelta(seconds=seconds),
        retries=1,
        retry_delay=timedelta(0),
    )
    rules = CallRules(
        replace(timing, retries=0) if not idempotent else timing, ClientCounts(), origin
    )
    return Attempts(rules, idempotent)


async def whole(pool: HttpPool, origin: str, *, stream: bool = False) -> tuple[int, bytes]:
    answer = await pool.exchange(Request, b"", attempts(origin), stream=stream)
    try:
        return answer.status, await answer.read()
    finally:
        answer.close()


def chunked(parts: list[bytes]) -> bytes:
    body = b"".join(b"%X;ext=1\r\n%s\r\n" % (len(part), part) for part in parts if part)
    return (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body + b"0\r\nTrailer: x\r\n\r\n"
    )


@settings(max_examples=40)
@given(
    body=st.binary(max_size=200),
    places=st.lists(st.integers(0, 400), max_size=6),
    parts=st.lists(st.binary(max_size=60), max_size=5),
    stream=st.booleans(),
)
def test_an_answer_is_the_same_however_it_is_cut(
    body: bytes, places: list[int], parts: list[bytes], stream: bool
) -> None:
    """A sized and a chunked answer on one connection, in arbitrary pieces."""
    sized = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Made\r\nContent-Length: %d\r\n\r\n" % len(body)
    ) + body
    peer = Peer([*pieces(sized, places)], [*pieces(chunked(parts), places)])

    async def use(pool: HttpPool, origin: str) -> None:
        assert await whole(pool, origin, stream=stream) == (201, body)
        assert await whole(pool, origin, stream=stream) == (200, b"".join(parts))

    with_peer(peer, use)
    assert peer.connections == 1


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    async def use(pool: HttpPool, origin: str) -> None:
        assert await whole(pool, origin) == (200, b"all of it")

    with_peer(Peer([b"HTTP/1.1 200 OK\r\n\r\nall ", b"of it", None]), use)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
        b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        # An answer that nobody asked for: the first stands, as it would had the other come later.
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ny",
    ],
)
def test_a_connection_that_is_to_close_is_not_used_again(head: bytes) -> None:
    peer = Peer([head], [head])

    async def use(pool: HttpPool, origin: str) -> None:
        await whole(pool, origin)
        await whole(pool, origin)

    with_peer(peer, use)
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
    script: list[bytes | None], stream: bool
) -> None:
    """Which bytes are an answer: test_http_answers.py."""

    async def use(pool: HttpPool, origin: str) -> None:
        with pytest.raises(ConnectionClosedError):
            await whole(pool, origin, stream=stream)

    with_peer(Peer(script), use)


@pytest.mark.parametrize("script", [[], [b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab"]])
def test_silence_ends_after_the_read_timeout(script: list[bytes | None]) -> None:
    async def use(pool: HttpPool, origin: str) -> None:
        with pytest.raises(ReadTimeoutError):
            await whole(pool, origin)

    with_peer(Peer(script), use, read=0.05)


def test_nobody_listens() -> None:
    async def run() -> None:
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            pool = pool_of()
            with pytest.raises(EndpointConnectionError):
                await pool.exchange(
                    Request, b"", attempts(f"http://127.0.0.1:{closed.getsockname()[1]}")
                )
            assert await pool.open(f"http://127.0.0.1:{closed.getsockname()[1]}", 2) == 0

    asyncio.run(run())


def test_a_handshake_that_never_ends() -> None:
    async def run() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            pool = pool_of(connect=0.05)
            with pytest.raises(ConnectTimeoutError):
                await pool.exchange(
                    Request, b"", attempts(f"https://127.0.0.1:{silent.getsockname()[1]}")
                )

    asyncio.run(run())


def test_calls_beyond_the_limit_wait_and_failures_give_their_turn_back() -> None:
    peer = Peer([None], ANSWER, ANSWER, ANSWER, ANSWER, ANSWER)

    async def use(pool: HttpPool, origin: str) -> None:
        results = await asyncio.gather(
            *(whole(pool, origin) for _ in range(6)), return_exceptions=True
        )
        assert sorted(str(type(one).__name__) for one in results) == [
            "ConnectionClosedError",
            *["tuple"] * 5,
        ]

    with_peer(peer, use, limit=1)
    assert peer.connections == 2


def test_a_cancelled_call_leaves_no_half_used_connection() -> None:
    peer = Peer([], ANSWER)

    async def use(pool: HttpPool, origin: str) -> None:
        task = asyncio.ensure_future(pool.exchange(Request, b"", attempts(origin)))
        while not peer.connections:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await whole(pool, origin) == (200, b"x")

    with_peer(peer, use, limit=1)
    assert peer.connections == 2


def test_an_old_connection_is_not_used() -> None:
    peer = Peer(ANSWER, ANSWER)

    async def use(pool: HttpPool, origin: str) -> None:
        await whole(pool, origin)
        await asyncio.sleep(0.02)
        await whole(pool, origin)

    with_peer(peer, use, idle=0.01)
    assert peer.connections == 2


def test_a_slow_reader_holds_the_sender_back() -> None:
    size = 8 * 1024 * 1024
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
    pieces: list[bytes | None] = [head, *[b"x" * 65_536] * (size // 65_536)]

    async def use(pool: HttpPool, origin: str) -> None:
        answer = await pool.exchange(Request, b"", attempts(origin), stream=True)
        await asyncio.sleep(0.1)
        assert answer._unread < size // 2
        assert len(await answer.read()) == size
        answer.close()

    with_peer(Peer(pieces), use)


def test_the_socket_options_are_set() -> None:
    async def use(pool: HttpPool, origin: str) -> None:
        pool._options = replace(pool._options, keepalive=timedelta(seconds=42))
        await whole(pool, origin)
        (connection,) = pool._all
        kept = connection._transport.get_extra_info("socket")
        assert kept.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert kept.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 42
        assert kept.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1

    with_peer(Peer(ANSWER), use)
