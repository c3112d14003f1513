"""The runtime's connections to model servers, against servers that do what servers do.

Each server is a script of raw bytes, so that what it sends is what stands here.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import pytest

from local_sagemaker.runtime.http_client import Broken, Connections, Response, Unreachable

T = TypeVar("T")
Script = Callable[["Peer"], Awaitable[None]]
CALLS = int(os.environ.get("HOSTILE_CALLS", "1000"))
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """One connection as the server sees it."""

    def __init__(
        self, server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server = server
        self.reader, self.writer = reader, writer

    async def request(self) -> bytes:
        """Read one request; gives its body. The end of the connection ends the script."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        body = await self.reader.readexactly(length)
        self.server.seen.append(body)
        return body

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def reset(self) -> None:
        """End the connection with RST."""
        self.writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.writer.transport.abort()


class Server:
    """Runs a script for each connection, and keeps what it was sent."""

    def __init__(self, script: Script) -> None:
        self.seen: list[bytes] = []
        self.connections = 0
        self._script = script

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._script(Peer(self, reader, writer))
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass  # the client has gone, or the test is over
        finally:
            writer.close()


def against(script: Script, work: Callable[[Connections, Server], Coroutine[Any, Any, T]]) -> T:
    """Run some work with connections to a server."""

    async def run() -> T:
        server = Server(script)
        listening = await asyncio.start_server(server, "127.0.0.1", 0)
        connections = Connections("127.0.0.1", listening.sockets[0].getsockname()[1])
        try:
            return await asyncio.wait_for(work(connections, server), 300)
        finally:
            connections.close()
            listening.close()

    return asyncio.run(run())


async def post(connections: Connections, body: bytes = b"x") -> Response:
    return await connections.request("POST", "/invocations", (), body)


async def streamed(connections: Connections, body: bytes = b"x") -> bytes:
    response = await connections.request("POST", "/invocations", (), body, streaming=True)
    assert response.chunks is not None
    return b"".join([chunk async for chunk in response.chunks])


def answering(*answers: bytes, then: Callable[[Peer], None] | None = None) -> Script:
    """A script that gives one answer after the other on a connection, then ends it."""

    async def script(peer: Peer) -> None:
        for answer in answers:
            await peer.request()
            peer.send(answer)
        if then is not None:
            await peer.writer.drain()
            then(peer)

    return script


def always(*parts: bytes, pause: float = 0.0) -> Script:
    """A script that gives one answer as often as it is asked, in parts."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            for part in parts:
                peer.send(part)
                await asyncio.sleep(pause)

    return script


@pytest.mark.parametrize("dies", [False, True], ids=["the connection", "all of its worker's"])
def test_a_request_that_ends_connections_is_sent_once_whatever_waits_in_the_pool(dies):
    """It was executed eleven times: once for each idle connection, and on a fresh one."""
    peers: list[Peer] = []

    async def script(peer: Peer) -> None:
        peers.append(peer)
        while await peer.request() != b"poison":
            await asyncio.sleep(0.05)  # so that ten callers need ten connections
            peer.send(OK)
        for each in peers if dies else ():  # as of a process of gunicorn's
            each.reset()

    async def work(connections: Connections, server: Server) -> None:
        await asyncio.gather(*(post(connections) for _ in range(10)))
        assert server.connections == 10
        with pytest.raises(Broken):
            await post(connections, b"poison")
        assert server.seen.count(b"poison") == 1
        # The others are used if they live: nothing was drawn with it.
        assert (await post(connections)).body == b"ok"
        assert server.connections == 10 + dies

    against(script, work)


def test_connections_that_the_server_has_closed_are_not_used():
    """Each answer is the last of its connection, and the server does not say so."""

    async def work(connections: Connections, server: Server) -> None:
        for number in range(50):
            assert (await post(connections, b"%d" % number)).body == b"ok"
            await asyncio.sleep(0.002)  # the FIN is on its way
        assert server.seen == [b"%d" % number for number in range(50)]

    against(answering(OK), work)


def test_an_end_that_the_loop_has_not_seen_yet_is_seen():
    """The FIN lies in the socket's buffer while the loop was busy with something else."""

    async def work(connections: Connections, server: Server) -> None:
        await post(connections)
        (exchange,) = connections._idle
        # What a busy loop is to this connection: one whose socket nobody reads.
        assert exchange.transport is not None
        exchange.transport.pause_reading()
        await asyncio.sleep(0.1)
        assert (await post(connections, b"again")).body == b"ok"
        assert server.seen == [b"x", b"again"]

    against(answering(OK), work)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n",
    ],
    ids=["204", "304", "304 with a length"],
)
def test_answers_without_a_body_end_with_their_head(head):
    """A 204 was waited for until the sixty seconds were over."""

    async def work(connections: Connections, server: Server) -> None:
        for _ in range(2):
            answer = await asyncio.wait_for(post(connections), 5)
            assert answer.body == b""
        assert await asyncio.wait_for(streamed(connections), 5) == b""
        assert server.connections == 1

    against(always(head), work)


@pytest.mark.parametrize(
    "interim", [b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_interim_answers_are_not_the_answer(interim):
    async def work(connections: Connections, server: Server) -> None:
        for _ in range(2):
            answer = await post(connections)
            assert (answer.status, answer.body) == (200, b"ok")
            assert "link" not in answer.headers
        assert await streamed(connections) == b"ok"
        assert server.connections == 1

    against(always(interim, interim + OK[:20], OK[20:], pause=0.01), work)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.0 200 OK\r\n\r\nto the end",
        b"HTTP/1.1 200 OK\r\n\r\nto the end",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nto the end",
    ],
    ids=["1.0", "1.1", "1.1 close"],
)
def test_a_body_without_a_length_ends_with_its_connection(answer):
    async def work(connections: Connections, server: Server) -> None:
        for number in range(2):
            assert (await post(connections, b"%d" % number)).body == b"to the end"
        assert await streamed(connections, b"2") == b"to the end"
        assert server.seen == [b"0", b"1", b"2"]

    against(answering(answer), work)


def test_a_body_without_a_length_that_is_reset_is_not_whole():
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await asyncio.sleep(0.1)
        peer.reset()

    async def work(connections: Connections, server: Server) -> None:
        with pytest.raises(Broken):
            await post(connections)
        assert server.seen == [b"x"]

    against(script, work)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Len",
        OK[:-1],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"HTTP/1.1 103 Early Hints\r\n\r\n",
        b"garbage\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 two OK\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: it\r\nConnection: upgrade\r\n\r\n",
    ],
    ids=lambda answer: repr(answer[:40]) + str(len(answer)),
)
@pytest.mark.parametrize("reused", [False, True])
def test_half_and_malformed_answers_are_broken_and_not_asked_for_again(answer, reused):
    async def work(connections: Connections, server: Server) -> None:
        for _ in range(reused):
            await post(connections, b"before")
        with pytest.raises(Broken):
            await asyncio.wait_for(post(connections), 5)
        assert server.seen == [b"before"] * reused + [b"x"]

    against(answering(*([OK] * reused), answer), work)


def test_an_answer_that_trickles_is_put_together():
    chunked = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n"
        b"0\r\nTrailer: x\r\n\r\n"
    )

    async def script(peer: Peer) -> None:
        for answer in (OK, chunked, OK):
            await peer.request()
            for place in range(len(answer)):
                peer.send(answer[place : place + 1])
                await asyncio.sleep(0)

    async def work(connections: Connections, server: Server) -> None:
        bodies = [(await post(connections)).body for _ in range(3)]
        assert bodies == [b"ok", b"abcde", b"ok"]
        assert server.connections == 1

    against(script, work)


@pytest.mark.parametrize("pause", [0.0, 0.02], ids=["at once", "later"])
def test_a_stray_second_answer_is_nobody_s(pause):
    async def script(peer: Peer) -> None:
        body = await peer.request()
        own = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        peer.send(own if pause else own + OK)
        await asyncio.sleep(pause)
        peer.send(OK if pause else b"")
        await peer.request()

    async def work(connections: Connections, server: Server) -> None:
        for number in range(5):
            assert (await post(connections, b"mine %d" % number)).body == b"mine %d" % number
            await asyncio.sleep(0.05)
        assert server.connections == 5

    against(script, work)


def test_a_server_that_closes_just_when_we_send_is_not_asked_twice():
    """Nobody can know whether it has worked on it: the caller hears of it, and decides."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(OK)
        await peer.reader.read(1)  # the first byte of the second, then the end

    async def work(connections: Connections, server: Server) -> None:
        await post(connections)
        with pytest.raises(Broken):
            await post(connections, b"second")
        assert server.connections == 1

    against(script, work)


def test_one_that_is_given_up_is_not_used_again():
    async def slow(peer: Peer) -> None:
        await peer.request()
        await asyncio.sleep(0.2)
        peer.send(OK)
        await peer.request()

    async def work(connections: Connections, server: Server) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(post(connections, b"first"), 0.05)
        assert (await post(connections, b"second")).body == b"ok"
        assert server.seen == [b"first", b"second"]
        assert server.connections == 2

    against(slow, work)


def test_a_stream_comes_as_it_is_sent_and_its_break_is_told():
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def script(peer: Peer) -> None:
        body = b""
        while body != b"break":
            body = await peer.request()
            peer.send(head + b"3\r\none\r\n")
            await asyncio.sleep(0.05)
            peer.send(b"3\r\ntwo\r\n" + (b"0\r\n\r\n" if body == b"whole" else b""))

    async def work(connections: Connections, server: Server) -> None:
        whole = await connections.request("POST", "/", (), b"whole", streaming=True)
        assert whole.chunks is not None
        assert [chunk async for chunk in whole.chunks] == [b"one", b"two"]
        with pytest.raises(Broken):
            await streamed(connections, b"break")

    against(script, work)


def test_nothing_that_listens_is_unreachable():
    async def work(connections: Connections, server: Server) -> None:
        with pytest.raises(Unreachable):
            await post(Connections("127.0.0.1", 1))

    against(always(OK), work)


BREAKING = ("close before", "half", "reset", "garbage")
HARMLESS = ("close after", "trickle", "hints", "no content", "stray", "fine", "fine", "fine")


def test_a_hostile_server_never_gets_a_request_twice_nor_mixes_answers_up():
    """Unique bodies, fifty callers, some of whom give up; by hand with many more."""
    chance = random.Random(12)

    async def script(peer: Peer) -> None:
        while True:
            body = await peer.request()
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            match chance.choice(BREAKING + HARMLESS):
                case "close after":  # and does not say so
                    peer.send(answer)
                    return
                case "close before":
                    return
                case "half":
                    peer.send(answer[: chance.randrange(len(answer))])
                    return
                case "reset":
                    peer.send(answer[: chance.randrange(len(answer))])
                    peer.reset()
                    return
                case "trickle":
                    for place in range(0, len(answer), 7):
                        peer.send(answer[place : place + 7])
                        await asyncio.sleep(0.001)
                case "hints":
                    peer.send(b"HTTP/1.1 103 Early Hints\r\n\r\n" + answer)
                case "no content":
                    peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")
                case "stray":
                    peer.send(answer + OK)
                case "garbage":
                    peer.send(b"\x00\x01" + answer)
                    return
                case _:
                    peer.send(answer)

    async def work(connections: Connections, server: Server) -> None:
        ends: Counter[str] = Counter()

        async def caller(name: int) -> None:
            for number in range(CALLS // 50):
                body = b"body %d of %d" % (number, name)
                patience = 0.002 if chance.random() < 0.05 else 10.0
                try:
                    async with asyncio.timeout(patience):
                        answer = await post(connections, body)
                except (Broken, TimeoutError) as error:
                    ends[type(error).__name__] += 1
                    continue
                assert answer.body == (b"" if answer.status == 204 else body)
                ends["answered"] += 1

        await asyncio.gather(*(caller(name) for name in range(50)))
        assert max(Counter(server.seen).values()) == 1
        # The share of faults that leave no whole answer: 4 of 12 kinds; and who gave up.
        assert ends.total() == CALLS
        assert ends["answered"] / CALLS > 0.55, ends

    against(script, work)
