"""HTTP/1.1 for one purpose: small POSTs on kept connections, with as little work as Python allows.

aiohttp spends about 90 microseconds of processor time on such a request, most of it on what
SageMaker Runtime never asks for (cookies, redirects, form data, proxies). This does the rest:
pooling, timeouts, TLS, ``Content-Length`` and chunked answers, and botocore's errors.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)

from .client_timing import AHEAD_TIMEOUT

__all__ = ["Answer", "HttpPool"]

_LARGEST_HEAD = 64 * 1024
_MOST_UNREAD = 1024 * 1024  # of a stream whose reader is slow; then the socket is not read
_MALFORMED = "the answer is not HTTP/1.1"


class Answer:
    """Status, headers (names in lower case) and body; of a stream, what came so far."""

    __slots__ = ("_connection", "_parts", "_unread", "complete", "failure", "headers", "status",
                 "waiter")

    def __init__(self, status: int, headers: Mapping[str, str], connection: _Connection) -> None:
        self.status = status
        self.headers = headers
        self.complete = False
        self.failure: Exception | None = None
        self.waiter: asyncio.Future[None] | None = None
        self._parts: deque[bytes] = deque()
        self._unread = 0
        self._connection = connection

    def feed(self, data: bytes) -> bool:
        """Keep a part of the body; returns whether the reader is too slow."""
        self._parts.append(data)
        self._unread += len(data)
        self.wake()
        return self._unread > _MOST_UNREAD

    def wake(self) -> None:
        """Tell the reader that something came, or that nothing more will."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def part(self) -> bytes:
        """The next bytes of the body; empty at its end."""
        while not self._parts:
            if self.complete:
                return b""
            if self.failure is not None:
                raise self.failure
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
        data = self._parts.popleft()
        self._unread -= len(data)
        if self._unread <= _MOST_UNREAD:
            self._connection.resume()
        return data

    async def read(self) -> bytes:
        """The whole body."""
        if self.complete and len(self._parts) == 1:
            return self._parts.popleft()
        parts = []
        while data := await self.part():
            parts.append(data)
        return b"".join(parts)

    def close(self) -> None:
        """Give the connection back; close it when the body is not at its end."""
        self._connection.release(self)


class _Connection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self, pool: HttpPool, url: str) -> None:
        self.url = url
        self.idle_since = 0.0
        self.closed = False
        self._pool = pool
        self._loop = pool.loop
        self._transport: Any = None
        self._buffer = b""
        self._waiter: asyncio.Future[Answer] | None = None
        self._answer: Answer | None = None
        self._stream = False
        self._left: int | None = 0  # of the body, or of the chunk; None: until closed
        self._chunked = False
        self._keep = True
        self._paused = False
        self._silent_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        if exc is None and self._answer is not None and self._left is None:
            self._complete()
        else:
            self._fail(ConnectionClosedError(endpoint_url=self.url, error=exc, request=None))

    def send(self, data: bytes, *, stream: bool) -> asyncio.Future[Answer]:
        """Write a request; the future is done with the answer's end, of a stream with its head."""
        self._waiter = waiter = self._loop.create_future()
        self._answer, self._stream, self._keep, self._buffer = None, stream, True, b""
        self._silent_since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_later(self._pool.read_seconds, self._check_silence)
        self._transport.write(data)
        return waiter

    def _check_silence(self) -> None:
        """One timer per connection, not per request: it looks when the last byte came."""
        self._timer = None
        if self.closed or (self._waiter is None and self._answer is None):
            return
        left = self._silent_since + self._pool.read_seconds - self._loop.time()
        if left <= 0 and not self._paused and not self._transport.get_write_buffer_size():
            self._fail(ReadTimeoutError(endpoint_url=self.url))
            self.abort()
            return
        again = left if left > 0 else self._pool.read_seconds
        self._timer = self._loop.call_later(again, self._check_silence)

    def data_received(self, data: bytes) -> None:
        self._silent_since = self._loop.time()
        if self._buffer:
            data = self._buffer + data
        try:
            while self._answer is None:
                if self._waiter is None:
                    raise ValueError("bytes that nobody asked for")
                end = data.find(b"\r\n\r\n")
                if end < 0:
                    if len(data) > _LARGEST_HEAD:
                        raise ValueError(_MALFORMED)
                    self._buffer = data
                    return
                self._head(data[:end])
                data = data[end + 4:]
            self._body(data)
        except ValueError as error:
            self._fail(ConnectionClosedError(endpoint_url=self.url, error=error, request=None))
            self.abort()

    def _head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        if not first.startswith("HTTP/1."):
            raise ValueError(_MALFORMED)
        status = int(first[9:12])
        if status < 200:
            return  # an interim answer; the real one follows
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon:
                raise ValueError(_MALFORMED)
            name, value = name.lower(), value.strip()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        self._answer = Answer(status, headers, self)
        self._keep = (not first.startswith("HTTP/1.0")
                      and headers.get("connection", "").lower() != "close")
        self._chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        if self._chunked:
            self._left = 0
        elif "content-length" in headers:
            self._left = int(headers["content-length"])
            if self._left < 0:
                raise ValueError(_MALFORMED)
        else:
            self._left = 0 if status in (204, 304) else None
            self._keep = self._keep and self._left == 0
        if self._stream and self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(self._answer)

    def _body(self, data: bytes) -> None:
        if self._chunked:
            self._chunks(data)
            return
        self._buffer = b""
        if self._left is None:
            self._feed(data)
            return
        if len(data) > self._left:
            raise ValueError("bytes that nobody asked for")
        self._left -= len(data)
        self._feed(data)
        if not self._left:
            self._complete()

    def _chunks(self, data: bytes) -> None:
        """``_left`` counts the current chunk with its line end; 0: a size comes next."""
        while data:
            if self._left:
                piece = data[:self._left]
                self._left -= len(piece)
                data = data[len(piece):]
                text_end = len(piece) + min(self._left, 2) - 2
                self._feed(piece[:text_end] if text_end > 0 else b"")
                continue
            end = data.find(b"\r\n")
            if end < 0:
                break
            size = int(data[:end].split(b";", 1)[0], 16)
            if size < 0:
                raise ValueError(_MALFORMED)
            if size == 0:
                end = data.find(b"\r\n\r\n", end)  # past trailers, which nobody needs
                if end < 0:
                    break
                self._buffer = b""
                self._complete()
                return
            self._left = size + 2
            data = data[end + 2:]
        if len(data) > _LARGEST_HEAD:
            raise ValueError(_MALFORMED)
        self._buffer = data

    def _feed(self, data: bytes) -> None:
        if data and self._answer is not None and self._answer.feed(data) and self._stream:
            self._transport.pause_reading()
            self._paused = True

    def resume(self) -> None:
        """The reader caught up."""
        if self._paused and not self.closed:
            self._paused = False
            self._silent_since = self._loop.time()
            self._transport.resume_reading()

    def _complete(self) -> None:
        answer, waiter = self._answer, self._waiter
        assert answer is not None
        answer.complete = True
        answer.wake()
        if waiter is not None and not waiter.done():
            waiter.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if self._answer is not None and not self._answer.complete:
            self._answer.failure = error
            self._answer.wake()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)

    def release(self, answer: Answer | None) -> None:
        """End the exchange; once per exchange, whatever became of it."""
        if answer is not self._answer or (answer is None and self._waiter is None):
            return
        reusable = (answer is not None and answer.complete and self._keep and not self._paused)
        self._waiter = self._answer = None
        if not reusable:
            self.abort()
        self._pool.give_back(self)

    def abort(self) -> None:
        """Close at once."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()


class HttpPool:
    """Kept connections by origin; belongs to the running event loop.

    Parameters
    ----------
    limit : int
        Most connections in use at the same moment; further requests wait.
    connect_timeout, read_timeout : timedelta
        For name, TCP and TLS together; for the longest silence after a request.
    idle : timedelta
        A connection unused for longer is not used again.
    options : list of tuple
        Socket options of every connection.
    tls : ssl.SSLContext
        For ``https`` origins.
    """

    def __init__(self, *, limit: int, connect_timeout: timedelta, read_timeout: timedelta,
                 idle: timedelta, options: list[tuple[int, int, int]],
                 tls: ssl.SSLContext) -> None:
        self.loop = asyncio.get_running_loop()
        self.read_seconds = read_timeout.total_seconds()
        self._connect_seconds = connect_timeout.total_seconds()
        self._ahead_seconds = max(connect_timeout, AHEAD_TIMEOUT).total_seconds()
        self._idle_seconds = idle.total_seconds()
        self._options = options
        self._tls = tls
        self._turns = asyncio.Semaphore(limit)
        self._idle: dict[str, list[_Connection]] = {}
        self._all: set[_Connection] = set()

    async def exchange(self, origin: str, data: bytes, *, stream: bool = False) -> Answer:
        """Send a request and get its answer; ``close()`` it when done.

        Raises
        ------
        botocore.exceptions.HTTPClientError, botocore.exceptions.ConnectionError
            As boto3 does.
        """
        await self._turns.acquire()
        try:
            connection = self._kept(origin)
            if connection is None:
                connection = await self._connect(origin, self._connect_seconds)
        except BaseException:
            self._turns.release()
            raise
        waiter = connection.send(data, stream=stream)
        try:
            return await waiter
        except BaseException:  # the task's cancellation too: half an answer is no use to anybody
            connection.abort()
            connection.release(connection._answer)
            raise

    async def open(self, origin: str, number: int) -> int:
        """Open connections ahead; returns how many are open. Failures are not raised."""
        made = await asyncio.gather(
            *(self._connect(origin, self._ahead_seconds) for _ in range(number)),
            return_exceptions=True,
        )
        good = [one for one in made if isinstance(one, _Connection)]
        for connection in good:
            self._keep(connection)
        return len(good)

    def give_back(self, connection: _Connection) -> None:
        """Take a connection whose exchange is over."""
        self._turns.release()
        if connection.closed:
            self._all.discard(connection)
        else:
            self._keep(connection)

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._all):
            connection.abort()
        self._all.clear()
        self._idle.clear()

    def _keep(self, connection: _Connection) -> None:
        connection.idle_since = self.loop.time()
        self._idle.setdefault(connection.url, []).append(connection)

    def _kept(self, origin: str) -> _Connection | None:
        kept = self._idle.get(origin)
        while kept:
            connection = kept.pop()  # the one used last: the others may grow old and go
            if connection.closed:
                self._all.discard(connection)
            elif self.loop.time() - connection.idle_since > self._idle_seconds:
                connection.abort()
                self._all.discard(connection)
            else:
                return connection
        return None

    async def _connect(self, origin: str, seconds: float) -> _Connection:
        parts = urlsplit(origin)
        host, secure = parts.hostname or "", parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        try:
            async with asyncio.timeout(seconds):
                plain = await self._tcp(host, port)
                try:
                    _, connection = await self.loop.create_connection(
                        lambda: _Connection(self, origin), sock=plain,
                        ssl=self._tls if secure else None,
                        server_hostname=host if secure else None,
                    )
                except BaseException:
                    plain.close()
                    raise
        except ssl.SSLError as error:
            raise SSLError(endpoint_url=origin, error=error) from error
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=origin, error=error) from error
        except OSError as error:
            raise EndpointConnectionError(endpoint_url=origin, error=error) from error
        self._all.add(connection)
        return connection

    async def _tcp(self, host: str, port: int) -> socket.socket:
        """A connected socket with the options set; addresses one after the other."""
        failure: OSError | None = None
        for family, kind, protocol, _, address in await self.loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            made = socket.socket(family, kind, protocol)
            try:
                made.setblocking(False)
                for level, name, value in self._options:
                    made.setsockopt(level, name, value)
                await self.loop.sock_connect(made, address)
            except BaseException as error:
                made.close()
                if not isinstance(error, OSError) or isinstance(error, TimeoutError):
                    raise
                failure = error
            else:
                return made
        raise failure or OSError(f"{host} has no address")
