"""Connections of an event loop: asyncio's or uvloop's."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from .call_attempts import Attempts
from .http_answers import MalformedAnswer
from .http_connections import NEVER, Connection, Pool, Prepare, peer_watch
from .timing import CallTiming
from .tls_trust import name_of

_MOST_UNREAD = 1024 * 1024  # of a stream whose reader is slow; then the socket is not read


class AsyncConnection(Connection, asyncio.Protocol):
    """The reader is fed as bytes come; a task that waits for them is woken."""

    _pool: AsyncPool

    def __init__(self, pool: AsyncPool, origin: str) -> None:
        super().__init__(pool, origin)
        self._loop = pool.loop
        self._sockets = pool.sockets
        self._transport: Any = None
        self._waiter: asyncio.Future[None] | None = None
        self._failure: Exception | None = None
        self._paused = False
        self._timer: asyncio.TimerHandle | None = None  # one per connection, not per request
        self._timer_due = NEVER
        self._of_parent = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self.peer = self._pool.peer(transport.get_extra_info("peername"))
        below = transport.get_extra_info("socket")  # of TLS, too
        self._heard = peer_watch(below)
        for option in self._sockets:
            below.setsockopt(*option)

    def data_received(self, data: bytes) -> None:
        self.silent_since = self.peer.heard = time.monotonic()
        reader = self.reader
        try:
            reader.feed(data)
        except MalformedAnswer as error:
            self._fail(error)
            return
        if self._waiter is not None:
            self._wake()
        elif not reader.complete and sum(map(len, reader.parts)) > _MOST_UNREAD:
            self._transport.pause_reading()
            self._paused = True

    def connection_lost(self, exc: Exception | None) -> None:
        closed_here, self.closed = self.closed, True
        self._cancel_timer()
        self._pool.lost(self)
        if exc is None and closed_here:
            exc = ConnectionAbortedError("closed here")
        elif exc is None:
            try:
                self.reader.end()
            except MalformedAnswer as problem:
                exc = problem
        self._failure = self._failure or exc
        self._wake()

    def heard(self) -> bool:
        return self.closed or self._transport.is_closing() or self._heard()

    async def ended(self) -> bool:
        # The event loop has not read it: TLS's session tickets after the handshake, or the peer's
        # end. Two turns of the loop tell.
        try:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        except BaseException:
            self.abort()
            raise
        return self.heard()

    def abort(self) -> None:
        self.closed = True
        if self._of_parent:
            return
        if not self._loop.is_closed():
            self._transport.abort()
            return
        # Nobody watches the socket any more. uvloop has closed it and knows no shutdown().
        with suppress(OSError, TypeError, AttributeError):
            self._transport.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._pool.lost(self)

    _interrupt = abort

    def forsake(self) -> None:
        self._pool.call_in_loop(self.give_back)

    def leave_to_parent(self) -> None:
        # Both processes' loops watch by one epoll: what a child takes out is lost to the parent.
        self._of_parent = self.closed = True

    async def _send(self, data: bytes) -> bool:
        self._transport.write(data)
        return True

    async def _read(self) -> None:
        if self._failure is None:
            if self._paused:
                self._paused = False
                self._transport.resume_reading()
            self.silent_since = now = time.monotonic()
            self._set_timer(now, now + self._read_seconds)
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._failure is not None and not self.reader.complete:
            raise self._failure

    def _fail(self, error: Exception) -> None:
        self._failure = error
        self.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _set_timer(self, now: float, silence_ends: float) -> None:
        due = min(silence_ends, self._deadline)
        if due < self._timer_due:
            self._cancel_timer()
            self._timer = self._loop.call_later(due - now, self._check_time)
            self._timer_due = due

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer, self._timer_due = None, NEVER

    def _check_time(self) -> None:
        self._cancel_timer()
        if self._waiter is None:
            return  # the next one that waits sets it anew
        now = time.monotonic()
        silence_ends = self.silent_since + self._read_seconds
        if now >= silence_ends and self._transport.get_write_buffer_size():
            silence_ends = now + self._read_seconds  # the peer still reads, or does not
        if now >= min(silence_ends, self._deadline):
            self._fail(TimeoutError("the read timeout, or the call's deadline"))
        else:
            self._set_timer(now, silence_ends)


class AsyncPool(Pool[AsyncConnection]):
    """Belongs to the running event loop. Requests beyond ``connections`` wait for their turn."""

    owner = "AsyncRuntimeClient"

    def __init__(
        self,
        timing: CallTiming,
        sockets: list[tuple[int, int, int]],
        tls: ssl.SSLContext | None,
        connections: int,
    ) -> None:
        super().__init__(timing, sockets, tls, None)
        self.loop = asyncio.get_running_loop()
        self._turns = asyncio.Semaphore(connections)
        self._is_of_parent = False

    async def exchange(
        self, prepare: Prepare, body: bytes, attempts: Attempts, *, stream: bool = False
    ) -> AsyncConnection:
        """As of every pool; where the request goes is chosen when its turn comes."""
        if self._turns.locked():
            began = time.monotonic()
            await self._turns.acquire()
            attempts.deadline += time.monotonic() - began
        else:
            await self._turns.acquire()  # does not wait
        try:
            return await super().exchange(prepare, body, attempts, stream=stream)
        except BaseException:
            self._turns.release()
            raise

    def close(self) -> None:
        """As of every pool; from outside of its loop, which then does it."""
        self.closed = True
        if self.is_here() or self.loop.is_closed():
            super().close()
        else:
            self.call_in_loop(super().close)

    def forsake(self) -> None:
        """As of every pool."""
        self.call_in_loop(super().forsake)

    def is_here(self) -> bool:
        """Whether the running event loop is the pool's."""
        return self.loop is asyncio.get_running_loop()

    def is_open_elsewhere(self) -> bool:
        """Whether another event loop runs now and uses the pool."""
        return not self.closed and not self.is_here() and self.loop.is_running()

    def call_in_loop(self, call: Callable[[], None]) -> None:
        """Have the event loop call, from any thread; not at all once the loop is closed."""
        if not self._is_of_parent:
            with suppress(RuntimeError):
                self.loop.call_soon_threadsafe(call)

    def leave_to_parent(self) -> None:
        """As of every pool; its event loop is the parent's as well."""
        self._is_of_parent = self.closed = True
        super().leave_to_parent()

    def give_back(self, connection: AsyncConnection) -> None:
        """As of every pool; the next one has its turn."""
        self._turns.release()
        super().give_back(connection)

    @staticmethod
    async def sleep(seconds: float) -> None:
        await asyncio.sleep(seconds)

    def is_full(self) -> bool:
        return self._turns.locked()

    async def _connected(self, origin: str, seconds: float) -> AsyncConnection:
        host, port, secure = name_of(origin)
        async with asyncio.timeout(seconds):
            _, connection = await self.loop.create_connection(
                lambda: AsyncConnection(self, origin),
                host,
                port,
                ssl=self._tls if secure else None,
                server_hostname=host if secure else None,
            )
        return connection

    async def _together(
        self, start: Callable[[], Coroutine[Any, Any, AsyncConnection]], number: int
    ) -> list[AsyncConnection | BaseException]:
        return await asyncio.gather(*(start() for _ in range(number)), return_exceptions=True)
