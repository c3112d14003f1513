"""One HTTP/1.1 connection on asyncio: a request goes out, its answer is read, byte by byte."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

if TYPE_CHECKING:
    from .async_http import HttpPool

__all__ = ["Answer", "Connection"]

_LARGEST_HEAD = 64 * 1024
_MOST_UNREAD = 1024 * 1024  # of a stream whose reader is slow; then the socket is not read
_MALFORMED = "the answer is not HTTP/1.1"


class Answer:
    """Status, headers (names in lower case) and body; of a stream, what came so far."""

    __slots__ = ("_connection", "_parts", "_unread", "complete", "failure", "headers", "status",
                 "waiter")

    def __init__(self, status: int, headers: Mapping[str, str], connection: Connection) -> None:
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


class Connection(asyncio.Protocol):
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

    def give_up(self) -> None:
        """Close at once, and end the exchange."""
        self.abort()
        self.release(self._answer)

    def abort(self) -> None:
        """Close at once."""
        self.closed = True
        if self._transport is not None:
            self._transport.abort()
