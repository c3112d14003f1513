"""One dead peer, and its kept connections: a caller meets one of them at most, and then none.

Not shown: packets that are dropped. For a peer that vanishes these tests have the kernel's word
for it, ``ETIMEDOUT``, of a peer that takes nothing, and the other words as injected errors.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import HTTPClientError, ReadTimeoutError

from low_latency_client.call_attempts import StaleConnectionError, UnreachedPeerError
from low_latency_client.generations import GenerationTimeoutError
from low_latency_client.hedging import Hedging
from low_latency_client.http_connections import Connection

from . import dead_peers
from .callers import Caller
from .dead_peers import READ_TIMEOUT, SITUATIONS, FreezingRuntime, Situation
from .threaded_server import ThreadedServer, read_request

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
HEAD_OF_A_LONG_ONE = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
QUICK: dict[str, Any] = {"read_timeout": timedelta(milliseconds=500)}
ASYNC_KINDS = ("asyncio", "uvloop")


@pytest.fixture(scope="module")
def freezing() -> Iterator[FreezingRuntime]:
    with FreezingRuntime() as runtime:
        yield runtime


@pytest.mark.realtime  # a busy machine answers late, as a dead peer does
@pytest.mark.parametrize(
    ("situation", "client"),
    [(situation, client) for situation in SITUATIONS for client in situation.clients],
    ids=str,
)
def test_a_caller_meets_one_dead_connection_at_most(
    freezing: FreezingRuntime, client: str, situation: Situation
) -> None:
    seen = dead_peers.outcome(freezing, client, situation, seconds=1.2)
    assert seen.failed <= situation.callers, seen
    assert seen.answered > 5 * situation.callers, seen
    assert seen.errors <= {"ReadTimeoutError"}
    assert seen.failures_until < 2 * READ_TIMEOUT.total_seconds(), seen


class FadingServer(ThreadedServer):
    """Answers, until the connections that there are ``fade``; new ones to the same address do not.

    As of a load balancer in front, of which one machine is lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self.connections = 0
        self.how = ""
        self.begun = self.trickle = b""
        self.faded: set[int] = set()
        self.done = asyncio.Event()
        self.writers: list[asyncio.StreamWriter] = []

    def fade(self, how: str, number: int) -> None:
        """So many ``"hang"`` from now on, or end at the next request (``"reset"``, ``"close"``),
        or take nothing any more (``"deaf"``)."""
        while self.connections < number:
            time.sleep(0.001)
        self.how, self.faded = how, set(range(1, self.connections + 1))
        if how == "deaf":
            for writer in self.writers:
                peer = writer.get_extra_info("socket")
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                self._loop.call_soon_threadsafe(writer.transport.pause_reading)  # type: ignore[attr-defined]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        self.connections += 1
        number = self.connections
        try:
            while True:
                head, body = await read_request(reader)
                if number in self.faded:
                    if self.how == "hang":
                        await self.hang(writer)
                    if self.how == "reset":
                        writer.transport.abort()
                    return
                await self.answer(head, body, writer)
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def hang(self, writer: asyncio.StreamWriter) -> None:
        """Say nothing, or nothing more, or always a little more."""
        writer.write(self.begun)
        while self.trickle:
            await asyncio.sleep(0.02)
            writer.write(self.trickle)
        await self.done.wait()

    async def answer(self, head: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        """After as many milliseconds as the body says."""
        await asyncio.sleep(int(body) / 1000)
        writer.write(OK)


@pytest.fixture
def fading() -> Iterator[FadingServer]:
    with FadingServer() as server:
        yield server


def kept(caller: Caller) -> list[Connection]:
    """The idle connections of a client."""
    return [one for many in caller.client._pool._kept._by_origin.values() for one in many]


def after(caller: Caller, milliseconds: int, **more: Any) -> dict[str, Any]:
    """A call that the server answers so late."""
    return caller.ask(EndpointName="e", Body=b"%d" % milliseconds, **more)


def failures(caller: Caller, calls: int, **more: Any) -> list[Exception]:
    """What so many calls, one after the other, raise."""
    raised: list[Exception] = []
    for _ in range(calls):
        try:
            after(caller, 0, **more)
        except HTTPClientError as error:
            raised.append(error)
    return raised


@pytest.mark.parametrize(
    ("how", "idempotent", "expected"),
    [
        ("hang", True, [ReadTimeoutError]),
        ("hang", False, [ReadTimeoutError]),
        ("reset", True, []),
        ("reset", False, [StaleConnectionError]),
        ("close", True, []),
        ("close", False, [StaleConnectionError]),
    ],
)
def test_one_end_without_a_byte_is_told_of_all_that_were_kept(
    kind: str, fading: FadingServer, how: str, idempotent: bool, expected: list[type[Exception]]
) -> None:
    """Though the address is the same, and answers on new connections."""
    with Caller(kind, url=fading.url, preconnect=10, **QUICK) as caller:
        after(caller, 0)
        fading.fade(how, 10)
        raised = failures(caller, 12, Idempotent=idempotent)
        assert [type(one) for one in raised] == expected
        assert fading.connections <= 12


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux has it")
@pytest.mark.parametrize("idempotent", [True, False])
def test_a_peer_that_takes_nothing_is_known_before_the_read_timeout(
    kind: str, fading: FadingServer, idempotent: bool
) -> None:
    """The kernel ends the connection (``ETIMEDOUT``), as that of a peer that vanished."""
    quick = {"connect_timeout": timedelta(milliseconds=900), "latency_target": timedelta(seconds=9)}
    with Caller(kind, url=fading.url, preconnect=10, **quick) as caller:
        fading.fade("deaf", 10)
        large = {"EndpointName": "e", "Body": b"0".ljust(6_000_000)}
        began = time.monotonic()
        if idempotent:
            assert caller.ask(**large)["Body"] == b"{}"
        else:
            with pytest.raises(UnreachedPeerError) as raised:
                caller.ask(**large, Idempotent=False)
            assert raised.value.kwargs["error"].errno == errno.ETIMEDOUT
        assert time.monotonic() - began < 15
        assert failures(caller, 3, Idempotent=False) == []
        assert kept(caller)
        assert fading.connections == 11
        assert caller.client.counts.reconnects == idempotent


UNREACHED = ["ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "ENETDOWN"]


@pytest.mark.parametrize("name", [*UNREACHED, "ECONNRESET", "EPIPE"])
def test_the_kernels_word_for_a_dead_connection_drops_those_beside_it(
    kind: str, fading: FadingServer, name: str
) -> None:
    if not hasattr(errno, name):
        pytest.skip("this system has no such error")
    word = OSError(getattr(errno, name), name)
    with Caller(kind, url=fading.url, preconnect=5, **QUICK) as caller:
        fading.fade("hang", 5)
        for connection in kept(caller):
            inject(caller, connection, word)
        with pytest.raises(StaleConnectionError) as raised:
            after(caller, 0, Idempotent=False)
        assert isinstance(raised.value, UnreachedPeerError) is (name in UNREACHED)
        assert kept(caller) == []
        assert after(caller, 0, Idempotent=False)["Body"] == b"{}"


def inject(caller: Caller, connection: Any, word: OSError) -> None:
    """Let the next wait of a connection end with an error of the kernel's."""
    if not caller.in_tasks:

        def receive(_: int) -> bytes:
            raise word

        connection._receive = receive
        return
    send = connection._send

    async def sent(data: bytes) -> bool:
        result: bool = await send(data)
        connection._loop.call_later(0.01, connection._fail, word)
        return result

    connection._send = sent


@pytest.mark.parametrize("kind", ASYNC_KINDS)
def test_a_callers_own_time_limit_counts_as_well(kind: str, fading: FadingServer) -> None:
    """Then no call of ours fails: it is cancelled."""
    limit = 0.6
    connect = timedelta(seconds=limit - 0.1)
    with Caller(kind, url=fading.url, preconnect=10, connect_timeout=connect) as caller:
        fading.fade("hang", 10)

        async def call() -> None:
            async with asyncio.timeout(limit):
                await caller.client.invoke_endpoint(EndpointName="e", Body=b"0")

        async def limited() -> int:
            ended = 0
            for _ in range(12):
                try:
                    await call()
                except TimeoutError:
                    ended += 1
            return ended

        assert caller.wait(limited()) == 1


def test_the_second_copy_goes_where_life_is(kind: str, fading: FadingServer) -> None:
    """Not on another connection of a peer that has said nothing since the first went out."""
    hedging = Hedging(delay=timedelta(milliseconds=100))
    with Caller(kind, url=fading.url, preconnect=10, hedging=hedging) as caller:
        fading.fade("hang", 10)
        began = time.monotonic()
        after(caller, 0)
        assert time.monotonic() - began < 10
        assert caller.client.counts.hedges_won == 1


def test_the_second_copy_takes_a_kept_connection_of_a_peer_that_speaks(kind: str) -> None:
    """The twin: a single slow answer, among others."""
    hedging = Hedging(delay=timedelta(milliseconds=300), budget=0.5)
    with FadingServer() as server, Caller(kind, url=server.url, hedging=hedging) as caller:
        caller.call("preconnect", 3)
        others = caller.client._pool._kept._by_origin[server.url][0].peer

        def speak() -> None:
            others.heard = float("inf")

        server._loop.call_soon_threadsafe(speak)
        after(caller, 700)
        assert caller.client.counts.hedges == 1
        assert server.connections == 3


def test_one_slow_answer_closes_no_connection_that_is_in_use(
    kind: str, fading: FadingServer
) -> None:
    """One call outlasts the read timeout, while others are answered."""
    with Caller(kind, url=fading.url, preconnect=4, **QUICK) as caller:
        late, *others = together(caller, (1_000, 1), *[(50, 12)] * 3)
        assert isinstance(late, ReadTimeoutError)
        assert others == [None] * 3
        assert fading.connections <= 4 + 2
        # And the peer is no longer in doubt.
        before = fading.connections
        assert failures(caller, 5) == []
        assert fading.connections == before


def test_a_model_that_is_always_too_slow_closes_its_own_connections_only(
    kind: str, fading: FadingServer
) -> None:
    """Each call that ends at its read timeout costs its connection, and about one more."""
    with Caller(kind, url=fading.url, preconnect=4, **QUICK) as caller:
        late, *others = together(caller, (1_000, 4), *[(20, 60)] * 3)
        assert isinstance(late, ReadTimeoutError)
        assert others == [None] * 3
        assert fading.connections <= 4 + 3 * 4


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_peer_that_freezes_in_the_middle_of_an_answer(
    kind: str, fading: FadingServer, part: str
) -> None:
    fading.begun = {"head": OK[:20], "body": OK[:-1]}[part]
    with Caller(kind, url=fading.url, preconnect=6, **QUICK) as caller:
        fading.fade("hang", 6)
        assert len(failures(caller, 8)) == 1


def test_a_first_token_that_does_not_come(kind: str, fading: FadingServer) -> None:
    """Its own time limit, not the client's read timeout, ends a generation."""
    with Caller(kind, url=fading.url, preconnect=6) as caller:
        fading.fade("hang", 6)
        limit = timedelta(milliseconds=300)
        with pytest.raises(GenerationTimeoutError):
            caller.call("stream", EndpointName="e", Body={"prompt": ""}, first_token_timeout=limit)
        assert kept(caller) == []
        assert failures(caller, 3) == []


def test_a_stream_that_falls_silent(kind: str, fading: FadingServer) -> None:
    fading.begun = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with Caller(kind, url=fading.url, preconnect=6, **QUICK) as caller:
        fading.fade("hang", 6)
        body = caller.stream("e")["Body"]
        with pytest.raises(ReadTimeoutError):
            list(caller.each(body))
        assert kept(caller) == []
        assert failures(caller, 3) == []


def test_an_answer_that_trickles_to_the_end_of_its_time_says_nothing_of_others(
    kind: str, fading: FadingServer
) -> None:
    """The twin: it is late, and its peer alive."""
    fading.begun, fading.trickle = HEAD_OF_A_LONG_ONE, b"x"
    quick = {"connect_timeout": timedelta(seconds=1), "read_timeout": timedelta(milliseconds=500)}
    with Caller(kind, url=fading.url, preconnect=6, retries=0, **quick) as caller:
        fading.fade("hang", 6)
        with pytest.raises(ReadTimeoutError):
            after(caller, 0)
        assert len(kept(caller)) == 5
        assert not kept(caller)[0].peer.in_doubt


def together(caller: Caller, *works: tuple[int, int]) -> list[Exception | None]:
    """Callers at once: answered after so many milliseconds, so many times; the last failures."""
    invoke = caller.client.invoke_endpoint

    def in_thread(work: tuple[int, int]) -> Exception | None:
        problem = None
        for _ in range(work[1]):
            try:
                invoke(EndpointName="e", Body=b"%d" % work[0])
            except HTTPClientError as error:
                problem = error
        return problem

    async def in_task(work: tuple[int, int]) -> Exception | None:
        problem = None
        for _ in range(work[1]):
            try:
                await invoke(EndpointName="e", Body=b"%d" % work[0])
            except HTTPClientError as error:
                problem = error
        return problem

    async def in_tasks() -> list[Exception | None]:
        return list(await asyncio.gather(*map(in_task, works)))

    if not caller.in_tasks:
        with ThreadPoolExecutor(len(works)) as threads:
            return list(threads.map(in_thread, works))
    found: list[Exception | None] = caller.wait(in_tasks())
    return found
