"""Reading requests: what is no HTTP is refused at once, and nothing is waited for for ever."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from waiting import until

from local_sagemaker import LocalAws
from local_sagemaker.runtime.http_server import Connection, Limits, Request, listening

PATIENCE = 30.0
"""Seconds after which a test takes a server for one that waits for ever."""


class Echo:
    """Notes each request and sends its body back."""

    def __init__(self) -> None:
        self.seen: list[Request] = []

    async def __call__(self, request: Request, connection: Connection) -> None:
        self.seen.append(request)
        connection.send(200, (), request.body)


def received(port: int, *pieces: bytes, end: bool = False) -> bytes:
    """Send pieces; everything until the server closes the connection."""
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
            if end:
                connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionError):
            while chunk := connection.recv(65536):
                got += chunk
    return got


def post(port: int, *headers: str, body: bytes = b"") -> bytes:
    head = ["POST / HTTP/1.1", f"Host: localhost:{port}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


NO_HTTP = {
    "no number": ["Content-Length: abc"],
    "negative": ["Content-Length: -1"],
    "signed": ["Content-Length: +1"],
    "empty": ["Content-Length:"],
    "5000 digits": ["Content-Length: " + "9" * 5000],
    "hexadecimal": ["Content-Length: 0x1"],
    "two lengths": ["Content-Length: 1", "Content-Length: 2"],
    "the same length twice": ["Content-Length: 1", "Content-Length: 1"],
    "a list of lengths": ["Content-Length: 1, 1"],
    "other digits": ["Content-Length: \N{ARABIC-INDIC DIGIT ONE}"],
    "length and chunks": ["Content-Length: 3", "Transfer-Encoding: chunked"],
    "chunks and length": ["Transfer-Encoding: chunked", "Content-Length: 3"],
    "a space before the colon": ["Content-Length : 1"],
    "a folded line": ["X: a", " Content-Length: 1"],
    "no colon": ["nonsense"],
    "a NUL": ["X: a\0b"],
    "a NUL in a name": ["X\0: a"],
    "a bare line feed": ["X: a\nTransfer-Encoding: chunked"],
    "chunked is not last": ["Transfer-Encoding: chunked, gzip"],
}
NO_REQUEST_LINE = {
    "no version": b"GET /\r\n\r\n",
    "no version and headers": b"GET /\r\nHost: x\r\n\r\n",
    "another version": b"GET / HTTP/2.0\r\n\r\n",
    "version 3": b"GET / HTTP/3\r\n\r\n",
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00",
    "no method of HTTP": b"BREW / HTTP/1.1\r\n\r\n",
    "nothing but lines": b"nonsense\r\n\r\n",
    "for a proxy": b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel": b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an asterisk": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "line feeds": b"GET / HTTP/1.1\nHost: localhost\n\n",
}
NO_CHUNKS = {
    "no number": b"zz\r\n",
    "negative": b"-1\r\n",
    "hexadecimal sign": b"0x1\r\na\r\n0\r\n\r\n",
    "a line feed": b"1\na\r\n0\r\n\r\n",
    "longer than told": b"1\r\nab\r\n0\r\n\r\n",
    "endless": b"f" * 17 + b"\r\n",
}


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.in_process() as running:
        yield running


@pytest.fixture(params=["main", "runtime"])
def door(request: pytest.FixtureRequest, aws: LocalAws) -> int:
    url = aws.url if request.param == "main" else aws.runtime_url()
    return int(url.rpartition(":")[2])


class TestWhatIsNoHttp:
    @pytest.mark.parametrize("headers", NO_HTTP.values(), ids=NO_HTTP.keys())
    def test_a_head_is_refused_at_once(self, door, headers):
        answer = received(door, post(door, *headers, body=b"0\r\n\r\n"))
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert answer.count(b"HTTP/1.1 ") == 1

    @pytest.mark.parametrize("line", NO_REQUEST_LINE.values(), ids=NO_REQUEST_LINE.keys())
    def test_a_request_line_is_refused_at_once(self, door, line):
        assert received(door, line).startswith(b"HTTP/1.1 400 ")

    @pytest.mark.parametrize("chunks", NO_CHUNKS.values(), ids=NO_CHUNKS.keys())
    def test_chunks_are_refused_at_once(self, aws, chunks):
        answer = received(aws.port, post(aws.port, "Transfer-Encoding: chunked", body=chunks))
        assert answer.startswith(b"HTTP/1.1 400 ")

    @pytest.mark.parametrize("length", [6 * 1024**3, 99999999999999, 2**63, 2**64 - 1])
    def test_a_huge_length_is_refused_before_its_body(self, aws, length):
        answer = received(aws.port, post(aws.port, f"Content-Length: {length}"))
        assert answer.startswith(b"HTTP/1.1 400 ")
        runtime = int(aws.runtime_url().rpartition(":")[2])
        answer = received(runtime, post(runtime, f"Content-Length: {length}"))
        assert answer.startswith(b"HTTP/1.1 413 ")

    @pytest.mark.parametrize(
        "head",
        [
            ["X: " + "y" * 70_000],
            [f"X-{number}: y" for number in range(300)],
            [f"X-{number}: {'y' * 1000}" for number in range(100)],
        ],
        ids=["one long", "many", "long and many"],
    )
    def test_a_large_head_is_refused(self, door, head):
        assert received(door, post(door, *head)).startswith(b"HTTP/1.1 431 ")

    def test_a_head_that_never_ends_is_refused_while_it_comes(self, door):
        piece = b"X: " + b"y" * 1000
        endless = [f"GET / HTTP/1.1\r\nHost: localhost:{door}\r\n".encode(), *[piece] * 200]
        assert received(door, *endless).startswith(b"HTTP/1.1 431 ")

    def test_a_trailer_is_no_header(self):
        echo = Echo()
        with listening(echo, limits=Limits(chunked=True)) as listener:
            body = b"2\r\nab\r\n0\r\nHost: evil\r\nAuthorization: x\r\n\r\n"
            answer = received(
                listener.port,
                post(listener.port, "Transfer-Encoding: chunked", "Connection: close", body=body),
            )
        assert answer.endswith(b"\r\n\r\nab")
        assert "authorization" not in echo.seen[0].headers
        assert echo.seen[0].headers["host"] != "evil"

    def test_what_was_smuggled_behind_a_refused_head_is_not_answered(self):
        echo = Echo()
        with listening(echo, limits=Limits(chunked=True)) as listener:
            inner = post(listener.port)
            for headers in (
                ["Content-Length: 3", "Transfer-Encoding: chunked"],
                ["Content-Length: abc"],
                ["Transfer-Encoding: xchunked"],
            ):
                answer = received(listener.port, post(listener.port, *headers, body=inner))
                assert answer.startswith(b"HTTP/1.1 400 ")
                assert answer.count(b"HTTP/1.1 ") == 1
        assert echo.seen == []


bodies = st.lists(st.binary(max_size=300), min_size=1, max_size=5)


class TestAnyBytes:
    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(bodies=bodies, cuts=st.lists(st.integers(1, 400), max_size=8), chunked=st.booleans())
    def test_requests_arrive_as_they_were_sent_however_they_are_cut(self, bodies, cuts, chunked):
        echo = Echo()
        with listening(echo, limits=Limits(chunked=True)) as listener:
            data = b""
            for number, body in enumerate(bodies):
                last = ["Connection: close"] if number == len(bodies) - 1 else []
                if chunked:
                    pieces = [body[at : at + 7] for at in range(0, len(body), 7)]
                    coded = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
                    data += post(listener.port, "Transfer-Encoding: chunked", *last, body=coded)
                else:
                    data += post(listener.port, f"Content-Length: {len(body)}", *last, body=body)
            parts, at = [], 0
            for cut in cuts:
                parts.append(data[at : at + cut])
                at += cut
            answer = received(listener.port, *filter(None, parts), data[at:])
        assert [one.body for one in echo.seen] == bodies
        assert answer.count(b"HTTP/1.1 200 OK\r\n") == len(bodies)
        assert b"".join(bodies) == b"".join(
            part.partition(b"\r\n\r\n")[2] for part in answer.split(b"HTTP/1.1 200 OK\r\n")
        )

    @settings(max_examples=150)
    @given(
        head=st.sampled_from(
            ["", "Content-Length: 3", "Transfer-Encoding: chunked", "Expect: 100-continue"]
        ),
        at=st.integers(0, 150),
        cut=st.integers(0, 20),
        noise=st.binary(max_size=20),
    )
    @example(head="", at=0, cut=0, noise=b"\r\n")
    @example(head="Transfer-Encoding: chunked", at=150, cut=0, noise=b"0\r\n\r\nGET")
    def test_broken_requests_are_answered_or_hung_up_on(self, head, at, cut, noise):
        with listening(Echo(), limits=Limits(chunked=True, request_seconds=2)) as listener:
            whole = post(listener.port, *filter(None, [head]), body=b"abc")
            answer = received(listener.port, whole[:at] + noise + whole[at + cut :], end=True)
            statuses = {part[:3] for part in answer.split(b"HTTP/1.1 ")[1:]}
            assert statuses <= {b"100", b"200", b"400", b"403", b"408"}
            fresh = received(listener.port, post(listener.port, "Connection: close"))
            assert fresh.startswith(b"HTTP/1.1 200 ")


def is_closed(connection: socket.socket) -> bool:
    """Whether the server has closed: with a reset where bytes came that it had not read yet."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


class TestWaiting:
    """For what does not come: each of these would hold its connection for ever."""

    LIMITS = Limits(request_seconds=0.4, idle_seconds=0.4, chunked=True)

    HALVES: ClassVar[dict[str, Callable[[int], bytes]]] = {
        "nothing": lambda port: b"",
        "half a line": lambda port: b"POST / HT",
        "half a head": lambda port: post(port)[:-2],
        "half a body": lambda port: post(port, "Content-Length: 5", body=b"ab"),
        "half a chunk": lambda port: post(port, "Transfer-Encoding: chunked", body=b"5\r\nab"),
        "no body": lambda port: post(port, "Expect: 100-continue", "Content-Length: 5"),
        "no second request": lambda port: post(port, "Content-Length: 2", body=b"ab"),
    }

    @pytest.mark.parametrize("begin", HALVES.values(), ids=HALVES)
    def test_half_a_request_is_not_waited_for(self, begin):
        with listening(Echo(), limits=self.LIMITS) as listener:
            received(listener.port, begin(listener.port))  # ends only when the server closes

    @pytest.mark.parametrize("where", ["head", "body"])
    def test_a_byte_now_and_then_does_not_help(self, where):
        with listening(Echo(), limits=self.LIMITS) as listener:
            begin = f"POST / HTTP/1.1\r\nHost: localhost:{listener.port}\r\nX: "
            if where == "body":
                begin += "\r\nContent-Length: 100000\r\n\r\n"
            given_up = time.monotonic() + PATIENCE
            with socket.create_connection(("127.0.0.1", listener.port)) as connection:
                connection.sendall(begin.encode())
                with contextlib.suppress(ConnectionError):
                    while time.monotonic() < given_up:
                        connection.sendall(b"x")
                        time.sleep(0.05)
            assert time.monotonic() < given_up

    def test_a_handler_has_the_time_it_takes(self):
        async def slow(request: Request, connection: Connection) -> None:
            await asyncio.sleep(1.5)
            connection.send(200, (), b"late")

        with listening(slow, limits=self.LIMITS) as listener:
            answer = received(listener.port, post(listener.port, "Connection: close"))
        assert answer.endswith(b"late")

    def test_idle_connections_beyond_the_limit_give_way(self):
        with (
            contextlib.ExitStack() as stack,
            listening(Echo(), limits=Limits(most_connections=20, rest_seconds=0.5)) as listener,
        ):
            many = [
                stack.enter_context(
                    socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE)
                )
                for _ in range(60)
            ]
            time.sleep(0.6)  # one that has just come may be about to ask
            answer = received(listener.port, post(listener.port, "Connection: close"))
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert [one.recv(1) for one in many[:41]] == [b""] * 41

    @pytest.mark.parametrize(
        "begun",
        [b"P", b"POST / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\nHost: localhost\r\nA: b", b"\r\n"],
        ids=["a byte", "a line", "half a head", "an empty line"],
    )
    @pytest.mark.parametrize("rest", [False, True], ids=["head", "body"])
    def test_half_requests_beyond_the_limit_give_way(self, begun: bytes, rest: bool):
        limits = Limits(most_connections=20, rest_seconds=0.5)
        with contextlib.ExitStack() as stack, listening(Echo(), limits=limits) as listener:
            place = ("127.0.0.1", listener.port)
            if rest:
                begun = post(listener.port, "Content-Length: 9", body=begun[:8])
            many = [
                stack.enter_context(socket.create_connection(place, timeout=PATIENCE))
                for _ in range(60)
            ]
            for one in many:
                one.sendall(begun)
            time.sleep(0.6)
            answer = received(listener.port, post(listener.port, "Connection: close"))
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert all(is_closed(one) for one in many[:30])

    def test_half_requests_that_hold_all_files_give_way(self):
        limits = Limits(most_files=8, rest_seconds=0.5)
        with contextlib.ExitStack() as stack, listening(Echo(), limits=limits) as listener:
            place = ("127.0.0.1", listener.port)
            held = [
                stack.enter_context(socket.create_connection(place, timeout=PATIENCE))
                for _ in range(20)
            ]
            for one in held:
                one.sendall(b"P")
            time.sleep(0.6)
            listener.make_room()
            assert is_closed(held[0])

    def test_a_request_beyond_the_busy_connections_is_told_so(self):
        async def busy(request: Request, connection: Connection) -> None:
            if request.body:
                await asyncio.sleep(PATIENCE)
            connection.send(200, (), b"")

        with (
            contextlib.ExitStack() as stack,
            listening(busy, limits=Limits(most_connections=3)) as listener,
        ):
            place = ("127.0.0.1", listener.port)
            many = [
                stack.enter_context(socket.create_connection(place, timeout=PATIENCE))
                for _ in range(3)
            ]
            for one in many:
                one.sendall(post(listener.port, "Content-Length: 1", body=b"x"))
            until(
                lambda: [one._busy for one in listener._open],
                lambda busy: len(busy) == 3 and all(busy),
            )
            answer = received(listener.port, post(listener.port))
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"3 connections at once" in answer
            assert b"ulimit -n" in answer
            many[0].close()
            until(lambda: len(listener._open), lambda count: count < 3)
            answer = received(listener.port, post(listener.port, "Connection: close"))
            assert answer.startswith(b"HTTP/1.1 200 ")

    def test_idle_connections_hold_no_thread(self, aws, door):
        aws.client("sts").get_caller_identity()
        with contextlib.ExitStack() as stack:
            before = threading.active_count()
            for _ in range(200):
                stack.enter_context(socket.create_connection(("127.0.0.1", door)))
            assert aws.client("sts").get_caller_identity()["Account"] == aws.account
            assert threading.active_count() <= before + 5


def test_a_client_that_sends_and_never_reads_is_hung_up_on():
    large = b"x" * 1_000_000

    async def answer(request: Request, connection: Connection) -> None:
        connection.send(200, (), large)

    with listening(answer, limits=Limits(idle_seconds=0.4)) as listener:
        given_up = time.monotonic() + PATIENCE
        with (
            socket.create_connection(("127.0.0.1", listener.port), timeout=PATIENCE) as connection,
            contextlib.suppress(ConnectionError),
        ):
            while time.monotonic() < given_up:
                connection.sendall(post(listener.port))
                time.sleep(0.01)
        assert time.monotonic() < given_up
