"""An HTTP/1.1 server that adds microseconds.

llhttp reads, and what it does not take for HTTP is refused: two lengths, a length beside chunks,
broken chunks, folded lines. Nothing here waits for ever for bytes that do not come.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast
from weakref import WeakKeyDictionary

import httptools

from ..admission import Admit, Refused, refuse_pages
from .loop_thread import LoopThread
from .open_files import most_connections, most_files, open_files

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_HEAD_LIMIT = 64 * 1024
_MOST_HEADERS = 200
_DROPPED = 1 << 30
"""Bytes of a body that is not wanted that are still read, so that its sender reads the answer."""
_SLOWEST = 1_000_000.0  # bytes per second of a body, below which it runs out of time
_ACCEPTED_AT_ONCE = 1
"""In a turn of the loop: an idle connection's file is free some turns after a new one came."""
_REASONS = {status.value: status.phrase for status in HTTPStatus}
_BODILESS = frozenset({204, 304})


@dataclass(frozen=True)
class Limits:
    """What a server takes."""

    largest_body: int | None = None
    too_large: int = 413
    chunked: bool = False
    request_seconds: float = 60.0
    idle_seconds: float = 350.0  # PrivateLink forgets a connection after as long without a byte
    rest_seconds: float = 5.0  # without a whole request, after which a connection may give way
    most_connections: int = field(default_factory=most_connections)
    most_files: int = field(default_factory=most_files)


@dataclass(slots=True)
class Request:
    """A request; header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    received: float = 0.0  # when its first byte came, by `time.perf_counter`
    too_large: bool = False  # the body was longer than the server takes, and was not kept
    version: str = "1.1"
    raw_headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    """The headers as they were written, in their order."""
    refused: Refused | None = None
    keep: bool = True  # whether the connection is to stay open


Handler = Callable[["Request", "Connection"], Awaitable[None]]


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, listener: Listener, number: int) -> None:
        self._listener = listener
        self._limits = listener.limits
        self.number = number
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._requests: deque[Request] = deque()
        self._busy: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._keep = True
        self._paused = False
        self._refusal = 0
        self.lost: Callable[[], object] | None = None
        """Called when the client has gone before the request under way is answered."""
        # of the request that comes in
        self._request: Request | None = None
        self._began = 0.0
        self._ended = 0
        self._in_head = False
        self._head_size = 0
        self._came = 0
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._parts: list[bytes] = []
        self._body_size = 0
        self._waits_since = time.perf_counter()
        self._patience = self._limits.request_seconds

    # ------------------------------------------------------------------------------- from asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._listener.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end; a request under way goes on unless its handler has set `lost`."""
        self._transport = None
        self._writable.set()
        self._listener.closed(self)
        if self.lost is not None:
            self.lost()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Take bytes; start the handler once a request is whole."""
        if self._refusal:
            return
        ended, self._came = self._ended, len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(400)
        if self._in_head and self._ended == ended:
            self._head_size += len(data)
            if self._head_size > _HEAD_LIMIT:
                self._refuse(431)
        if self._busy is None:
            self._next()
        if self._requests and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    # ------------------------------------------------------------------------------- from llhttp

    def on_message_begin(self) -> None:
        self._began = time.perf_counter()
        self._in_head = True
        self._head_size = self._body_size = 0
        self._target = b""
        self._headers = []
        self._parts = []
        self._request = None

    def on_url(self, url: bytes) -> None:
        """Take the target, which may come in pieces."""
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; what follows a chunked body are none, whatever it is called."""
        if self._in_head:
            self._headers.append((name, value))
            if len(self._headers) > _MOST_HEADERS:
                self._refuse(431)

    def on_headers_complete(self) -> None:
        """Judge a request by its head."""
        self._in_head = False
        headers: dict[str, str] = {}
        for raw_name, raw_value in self._headers:
            name, value = raw_name.lower().decode("latin-1"), raw_value.decode("latin-1").strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        parser, limits = self._parser, self._limits
        request = self._request = Request(
            parser.get_method().decode("latin-1"),
            self._target.decode("latin-1"),
            headers,
            received=self._began,
            version=parser.get_http_version(),
            raw_headers=self._headers,
            # An upgrade is an offer, which a server may leave (RFC 9110, 7.8).
            keep=parser.should_keep_alive() and not parser.should_upgrade(),
        )
        large = (
            self._head_size + self._came > _HEAD_LIMIT
            and (
                len(self._target) + sum(len(name) + len(value) + 4 for name, value in self._headers)
            )
            > _HEAD_LIMIT
        )
        # A request to pass on (CONNECT, an absolute target) is for a proxy.
        if request.version not in ("1.0", "1.1") or not request.target.startswith("/"):
            self._refuse(400)
        elif large:
            self._refuse(431)
        elif "transfer-encoding" in headers and not limits.chunked:
            self._refuse(411)
        request.refused = self._listener.admit(request.target, headers, self._listener.port)
        if self._listener.is_full and not request.refused:
            request.keep, request.refused = False, self._listener.too_many
        length = int(headers.get("content-length") or 0)
        if limits.largest_body is not None and length > limits.largest_body:
            request.too_large = True
        if (request.too_large or request.refused) and length > _DROPPED:
            self._refuse(limits.too_large)
        if not (self._refusal or request.too_large or request.refused or self._busy) and (
            headers.get("expect", "").lower() == "100-continue"
        ):
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, data: bytes) -> None:
        request = cast(Request, self._request)
        self._body_size += len(data)
        largest = self._limits.largest_body
        if largest is not None and self._body_size > largest:
            request.too_large = True
            if self._body_size > largest + _DROPPED:  # in chunks, which say no length
                self._refuse(self._limits.too_large)
        if not (request.too_large or request.refused or self._refusal):
            self._parts.append(data)

    def on_message_complete(self) -> None:
        """Have the request answered when its turn comes."""
        request, self._request = self._request, None
        self._ended += 1
        self._began = 0.0
        if request is not None and not self._refusal:
            if self._parts and not request.too_large:
                request.body = b"".join(self._parts)
            self._requests.append(request)
        self._parts = []

    # --------------------------------------------------------------------------------- in its turn

    def _refuse(self, status: int) -> None:
        """Read no further; the status goes out once everything before it is answered."""
        self._refusal = self._refusal or status
        self._began = 0.0
        self._parts = []

    def _next(self) -> None:
        if self._requests:
            request = self._requests.popleft()
            self._keep = request.keep
            self._busy = asyncio.get_running_loop().create_task(self._answer(request))
        elif self._refusal:
            self.send(self._refusal, [("connection", "close")], b"")
            self.close()

    async def _answer(self, request: Request) -> None:
        try:
            if request.refused is not None:
                self.send(*request.refused)
            else:
                await self._listener.handler(request, self)
        except Exception:
            # A mistake of ours must look like one, never like the model's.
            logger.exception("%s %s failed", request.method, request.target)
            self._keep = False
        self.lost = None
        if not self._writable.is_set():
            await self._read_by_client()
        self._busy = None
        self._waits_since, self._patience = time.perf_counter(), self._limits.idle_seconds
        if not self._keep:
            self.close()
            return
        self._next()
        if self._paused and not self._requests and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    async def _read_by_client(self) -> None:
        """Wait while the client does not read; one that never does is hung up on."""
        try:
            # wait_for of Python 3.11 may swallow a cancellation, which is how a hang-up reaches us.
            async with asyncio.timeout(self._limits.idle_seconds):
                await self._writable.wait()
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way on it, nor on its way."""
        return self._busy is None and not self._began

    @property
    def waits_since(self) -> float:
        """When its last request was answered, or when the one began that is on its way."""
        return self._began or self._waits_since

    def gives_way(self, now: float) -> bool:
        """Whether it may end where others need its file: nobody asks, or hardly."""
        return self.is_idle or (self._busy is None and self._lags(now, self._limits.rest_seconds))

    def _lags(self, now: float, seconds: float) -> bool:
        """Whether a request on its way takes longer than those seconds and its body's."""
        return now - self._began > seconds + self._body_size / _SLOWEST

    def end_if_late(self, now: float) -> None:
        """Close it when it has been waited for for too long."""
        if self._busy is not None or self._transport is None:
            return
        late = now - self._waits_since > self._patience
        if self._began:
            late = self._lags(now, self._limits.request_seconds)
        if late:
            if self._began:
                self.send(408, [("connection", "close")], b"")
            self.drop()

    def drop(self) -> None:
        """Close it, also when its client does not read what was written."""
        self.close()
        if self._transport is not None and self._transport.get_write_buffer_size():
            self._transport.abort()

    # -------------------------------------------------------------------------------- for handlers

    @property
    def port(self) -> int:
        """The port that the client has come to."""
        return self._listener.port

    @property
    def is_open(self) -> bool:
        """Whether the client still listens."""
        return self._transport is not None

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def send(
        self,
        status: int,
        headers: Iterable[tuple[str, str]],
        body: bytes,
        reason: str = "",
        *,
        length: int | None = None,
    ) -> None:
        """Send a whole answer; to HEAD without the body whose length it states."""
        given = [*headers]
        if status not in _BODILESS:
            given.append(("content-length", str(len(body) if length is None else length)))
        self._write(_head(status, given, reason) + body)

    def start_stream(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Send the head of an answer whose body comes in chunks."""
        self._write(_head(status, [*headers, ("transfer-encoding", "chunked")]))

    async def send_chunk(self, data: bytes) -> None:
        """Send one chunk; waits while the client does not read."""
        if data:
            self._write(b"%x\r\n%b\r\n" % (len(data), data))
            await self._read_by_client()

    def end_stream(self) -> None:
        self._write(b"0\r\n\r\n")

    def close(self) -> None:
        """Close the connection once everything is written."""
        self._keep = False
        if self._transport is not None:
            self._transport.close()


@dataclass(frozen=True, slots=True)
class Nobody:
    """Where the answer to a copied request goes: it takes it like a connection, and drops it."""

    number: int  # the connection's whose request was copied

    def send(self, status: int, headers: Iterable[tuple[str, str]], body: bytes = b"") -> None:
        """Drop a whole answer."""

    def start_stream(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Drop the beginning of a stream."""

    async def send_chunk(self, chunk: bytes) -> None:
        """Drop a part of a stream; others have their turn, as a slow reader would let them."""
        await asyncio.sleep(0)

    def end_stream(self) -> None:
        """Drop the end of a stream."""


def _head(status: int, headers: Iterable[tuple[str, str]], reason: str = "") -> bytes:
    lines = [f"HTTP/1.1 {status} {reason or _REASONS.get(status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


_connections: set[Connection] = set()
"""All of this process, each of which is a file."""
_listeners: WeakKeyDictionary[Listener, asyncio.AbstractEventLoop] = WeakKeyDictionary()


class Listener:
    """A listening server with the connections it has."""

    def __init__(self, handler: Handler, admit: Admit, limits: Limits) -> None:
        self.handler = handler
        self.admit = admit
        self.limits = limits
        self.port = 0
        self._count = 0
        self._open: dict[Connection, None] = {}
        self._server: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self, port: int) -> None:
        loop, listening = asyncio.get_running_loop(), socket.create_server((LOOPBACK, port))
        self._server = await loop.create_server(
            self._accept, sock=listening, backlog=_ACCEPTED_AT_ONCE
        )
        listening.listen(1024)  # as many may wait
        self.port = listening.getsockname()[1]
        _listeners[self] = loop
        self._watch = loop.create_task(self._end_late_ones())

    def _accept(self) -> Connection:
        self._count += 1
        return Connection(self, self._count - 1)

    def opened(self, connection: Connection) -> None:
        """Take a connection; where there are too many, those go that have been idle for longest."""
        surplus = len(self._open) + 1 - self.limits.most_connections
        if surplus > 0:
            self._end_idle(surplus, time.perf_counter() - self.limits.rest_seconds)
        if (
            len(_connections) > self.limits.most_files // 4
            and open_files() > self.limits.most_files
        ):
            self._end_idle(1)
        self._open[connection] = None
        _connections.add(connection)

    def make_room(self) -> None:
        """End a fifth of the idle connections, as this process may open no more files."""
        self._end_idle(len(self._open) // 5 + 1)

    def _end_idle(self, most: int, since: float = math.inf) -> None:
        """End so many connections, which have waited since then, for longest before others."""
        now = time.perf_counter()
        idle = [one for one in self._open if one.waits_since < since and one.gives_way(now)]
        for one in sorted(idle, key=lambda one: one.waits_since)[:most]:
            del self._open[one]
            one.drop()

    @property
    def is_full(self) -> bool:
        """Whether more requests are under way than this listener serves at once."""
        most = self.limits.most_connections
        return len(self._open) > most and sum(not one.is_idle for one in self._open) > most

    @property
    def too_many(self) -> Refused:
        """The answer to a request beyond the connections that this listener serves at once."""
        text = (
            f"The local AWS serves {self.limits.most_connections} connections at once, and all are "
            "busy. The limit of open files decides how many: ulimit -n."
        )
        headers = [("content-type", "text/plain"), ("connection", "close")]
        return Refused(503, headers, text.encode())

    def closed(self, connection: Connection) -> None:
        self._open.pop(connection, None)
        _connections.discard(connection)

    async def _end_late_ones(self) -> None:
        pause = min(self.limits.request_seconds, self.limits.idle_seconds, 20.0) / 4
        while True:
            await asyncio.sleep(pause)
            now = time.perf_counter()
            for connection in list(self._open):
                connection.end_if_late(now)

    def close(self) -> None:
        """Stop listening and drop every connection."""
        if self._server is not None:
            self._server.close()
        if self._watch is not None:
            self._watch.cancel()
        for connection in list(self._open):
            connection.close()


async def listen(
    handler: Handler, *, port: int = 0, admit: Admit = refuse_pages, limits: Limits | None = None
) -> Listener:
    """Listen on a loopback port, a free one for 0; `admit` has to refuse web pages."""
    listener = Listener(handler, admit, limits or Limits())
    await listener.start(port)
    return listener


def make_room(loop: asyncio.AbstractEventLoop) -> None:
    """End idle connections of all listeners that run in the loop."""
    for listener in [one for one, its_loop in _listeners.items() if its_loop is loop]:
        listener.make_room()


@contextlib.contextmanager
def listening(
    handler: Handler, *, port: int = 0, admit: Admit = refuse_pages, limits: Limits | None = None
) -> Iterator[Listener]:
    """Listen in a thread of its own, and drop every connection at the end."""

    listeners: list[Listener] = []

    async def nothing() -> None:
        return

    async def close() -> None:
        for listener in listeners:
            listener.close()

    thread = LoopThread(nothing, close, make_room)
    try:
        listeners.append(thread.run(listen(handler, port=port, admit=admit, limits=limits)))
        yield listeners[0]
    finally:
        thread.stop()
