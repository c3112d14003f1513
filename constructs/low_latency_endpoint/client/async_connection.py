"""One HTTP/1.1 connection on asyncio: a request goes out, its answer comes in."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from .call_attempts import StaleConnectionError
from .http_answers import AnswerReader, MalformedAnswer
from .kept_connections import peer_watch

if TYPE_CHECKING:
    from .async_http import HttpPool

_MOST_UNREAD = 1024 * 1024  # of a stream whose reader is slow; then the socket is not read
_NEVER = float("inf")


class Answer:
    """Status, headers (names in lower case) and body; of a stream, what came so far."""

    __slots__ = (
        "_connection",
        "_parts",
        "_unread",
        "complete",
        "failure",
        "headers",
        "status",
        "waiter",
    )

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        parts: list[bytes],
        connection: AsyncConnection,
    ) -> None:
        self.status = status
        self.headers = headers
        self.complete = False
        self.failure: Exception | None = None
        self.waiter: asyncio.Future[None] | None = None
        self._parts = parts  # the reader's own list, which grows
        self._unread = 0
        self._connection = connection

    def came(self) -> bool:
        """Tell the reader that something came; returns whether it is too slow."""
        self._unread = sum(map(len, self._parts))
        self.wake()
        return self._unread > _MOST_UNREAD

    def wake(self) -> None:
        """Tell the reader that something came, or that nothing more will."""
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    async def part(self) -> bytes:
        """The next bytes of the body, all that are there; empty at its end."""
        while not self._parts:
            if self.complete:
                return b""
            if self.failure is not None:
                raise self.failure
            self.waiter = asyncio.get_running_loop().create_future()
            await self.waiter
        data = b"".join(self._parts)
        self._parts.clear()
        self._unread = 0
        self._connection.resume()
        return data

    async def read(self) -> bytes:
        """The whole body."""
        if self.complete:
            return b"".join(self._parts)
        parts = []
        while data := await self.part():
            parts.append(data)
        return b"".join(parts)

    def close(self) -> None:
        """Give the connection back; close it when the body is not at its end."""
        self._connection.release(self)


class AsyncConnection(asyncio.Protocol):
    """One connection, one exchange at a time."""

    def __init__(self, pool: HttpPool, url: str, raw: socket.socket) -> None:
        self.url = url
        self.idle_since = 0.0
        self.closed = False
        self.heard = peer_watch(raw)
        self._raw = raw  # the socket below TLS; held so that its number stays ours
        self._pool = pool
        self._loop = pool.loop
        self._transport: Any = None
        self._reader = AnswerReader()
        self._waiter: asyncio.Future[Answer] | None = None
        self._answer: Answer | None = None
        self._stream = False
        self._reused = False
        self._paused = False
        self._deadline = _NEVER
        self._silent_since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    @property
    def usable(self) -> bool:
        """Whether neither side has closed it, as far as the event loop has seen."""
        return not (self.closed or self._transport.is_closing())

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._pool.lost(self)
        error: Exception | None = exc
        if exc is None:
            try:
                self._reader.end()
            except MalformedAnswer as problem:
                error = problem
            else:
                if self._waiter is not None and self._reader.complete:
                    self._complete()
                    return
        # The peer's farewell or its reset; not the kernel's word that nobody is there any more.
        ended = exc is None or isinstance(exc, (ConnectionResetError, BrokenPipeError))
        stale = ended and self._reused and not self._reader.started
        kind = StaleConnectionError if stale else ConnectionClosedError
        self._fail(kind(endpoint_url=self.url, error=error, request=None))

    def send(
        self, data: bytes, *, stream: bool, reused: bool, deadline: float
    ) -> asyncio.Future[Answer]:
        """Write a request; the future is done with the answer's end, of a stream with its head."""
        self._waiter = waiter = self._loop.create_future()
        self._answer, self._stream, self._reused = None, stream, reused
        self._reader.expect()
        self._deadline = deadline
        self._silent_since = now = time.monotonic()
        seconds = min(self._pool.read_seconds, deadline - now)
        if self._timer is not None and seconds < self._pool.read_seconds:
            self._timer.cancel()  # it may come after the deadline
            self._timer = None
        if self._timer is None:
            self._timer = self._loop.call_later(seconds, self._check_time)
        self._transport.write(data)
        return waiter

    def _check_time(self) -> None:
        """One timer per connection, not per request: it looks when the last byte came."""
        self._timer = None
        if self.closed or self._waiter is None:
            return
        now = time.monotonic()
        left = self._silent_since + self._pool.read_seconds - now
        waits_for_peer = not self._paused and not self._transport.get_write_buffer_size()
        if (left <= 0 and waits_for_peer) or now >= self._deadline:
            self._fail(ReadTimeoutError(endpoint_url=self.url))
            self.abort()
            return
        again = min(left if left > 0 else self._pool.read_seconds, self._deadline - now)
        self._timer = self._loop.call_later(again, self._check_time)

    def data_received(self, data: bytes) -> None:
        self._silent_since = time.monotonic()
        reader = self._reader
        if self._waiter is None:  # nobody asked
            self.abort()
            return
        try:
            reader.feed(data)
        except MalformedAnswer as error:
            self._fail(ConnectionClosedError(endpoint_url=self.url, error=error, request=None))
            self.abort()
            return
        if self._stream and reader.status:
            self._streamed()
        if reader.complete:
            self._complete()

    def _streamed(self) -> None:
        reader = self._reader
        if self._answer is None:
            self._answer = Answer(reader.status, reader.headers, reader.parts, self)
            if reader.status < 300:
                self._deadline = _NEVER  # from here on only silence counts
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(self._answer)
        if self._answer.came() and not self._paused:
            self._transport.pause_reading()
            self._paused = True

    def resume(self) -> None:
        """The reader caught up."""
        if self._paused and not self.closed:
            self._paused = False
            self._silent_since = time.monotonic()
            self._transport.resume_reading()

    def _complete(self) -> None:
        answer, reader, waiter = self._answer, self._reader, self._waiter
        if answer is None:
            self._answer = answer = Answer(reader.status, reader.headers, reader.parts, self)
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
        if self._waiter is None or answer is not self._answer:
            return
        reusable = answer is not None and answer.complete and self._reader.keep and not self._paused
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
        self._transport.abort()
