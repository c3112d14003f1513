"""HTTP/1.1 for one purpose: small POSTs on kept connections, with as little work as Python allows.

aiohttp spends about 90 microseconds of processor time on such a request, most of it on what
SageMaker Runtime never asks for (cookies, redirects, form data, proxies). This does the rest:
pooling, timeouts, TLS, ``Content-Length`` and chunked answers, and botocore's errors.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)

from .call_attempts import Attempts, StaleConnectionError, no_answer
from .client_base import ClientOptions
from .client_timing import CLIENT_CLOSED
from .http_answers import AnswerReader, MalformedAnswer
from .kept_connections import KeptConnections, peer_watch
from .runtime_wire import Prepared
from .tls_trust import name_of

_MOST_UNREAD = 1024 * 1024  # of a stream whose reader is slow; then the socket is not read
_NEVER = float("inf")
Prepare = Callable[[str], Prepared]  # of an origin


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

    @property
    def origin(self) -> str:
        """Where the request went."""
        return self._connection.url

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
        self._read_seconds = pool.read_seconds
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
        self,
        data: bytes,
        *,
        stream: bool,
        reused: bool,
        deadline: float,
        silence: float | None = None,
    ) -> asyncio.Future[Answer]:
        """Write a request; the future is done with the answer's end, of a stream with its head.

        ``silence`` is the longest of the peer in seconds, by default the read timeout.
        """
        self._waiter = waiter = self._loop.create_future()
        self._answer, self._stream, self._reused = None, stream, reused
        self._reader.expect(stream=stream)
        self._deadline = deadline
        self._silent_since = now = time.monotonic()
        self._read_seconds = self._pool.read_seconds if silence is None else silence
        seconds = min(self._read_seconds, deadline - now)
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
        left = self._silent_since + self._read_seconds - now
        waits_for_peer = not self._paused and not self._transport.get_write_buffer_size()
        if (left <= 0 and waits_for_peer) or now >= self._deadline:
            self._fail(ReadTimeoutError(endpoint_url=self.url))
            self.abort()
            return
        again = min(left if left > 0 else self._read_seconds, self._deadline - now)
        if again == _NEVER:
            return  # whoever reads the stream looks at the time
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
            self._fail(no_answer(error, self.url))
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
        if self._timer is not None and self._read_seconds != self._pool.read_seconds:
            self._timer.cancel()  # it may come later than the next answer is due
            self._timer = None
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


class HttpPool:
    """Kept connections by origin; belongs to the running event loop.

    Requests beyond the options' ``connections`` wait for their turn.
    """

    def __init__(self, options: ClientOptions) -> None:
        self.loop = asyncio.get_running_loop()
        self.read_seconds = options.timing.read_timeout.total_seconds()
        self.closed = False
        self._connect_seconds = options.timing.connect_timeout.total_seconds()
        self._options = options
        self._turns = asyncio.Semaphore(options.connections)
        self.is_full = self._turns.locked  # whether a request would have to wait for its turn
        self._kept: KeptConnections[AsyncConnection] = KeptConnections()
        self._all: set[AsyncConnection] = set()

    async def exchange(
        self, prepare: Prepare, body: bytes, attempts: Attempts, *, stream: bool = False
    ) -> Answer:
        """Send a request and get its answer; ``close()`` it when done.

        Where it goes is chosen when its turn comes, and it is signed when the connection is there.
        """
        if self._turns.locked():
            began = time.monotonic()
            await self._turns.acquire()
            attempts.deadline += time.monotonic() - began
        else:
            await self._turns.acquire()  # does not wait
        connection = None
        try:
            origin = attempts.choose()
            prepared = prepare(origin)
            connection = None if attempts.fresh else await self._take(origin, attempts)
            reused = connection is not None
            if connection is None:
                left = attempts.deadline - time.monotonic()
                connection = await self._connect(origin, min(self._connect_seconds, left))
            data = prepared.signed(body)
            attempts.sending(connection)
        except BaseException:
            if connection is not None:
                connection.abort()
            self._turns.release()
            raise
        waiter = connection.send(
            data, stream=stream, reused=reused, deadline=attempts.deadline, silence=attempts.silence
        )
        try:
            return await waiter
        except BaseException as error:  # the task's cancellation too
            connection.give_up()  # half an answer is no use to anybody
            if isinstance(error, StaleConnectionError):
                self._kept.beware(origin, time.monotonic())
            raise

    async def open(self, origin: str, number: int) -> int:
        """Open connections ahead; returns how many are open. Failures are not raised."""
        made = await asyncio.gather(
            *(self._connect(origin, self._options.ahead_seconds) for _ in range(number)),
            return_exceptions=True,
        )
        good = [one for one in made if isinstance(one, AsyncConnection)]
        for connection in good:
            self._keep(connection)
        return len(good)

    def give_back(self, connection: AsyncConnection) -> None:
        """Take a connection whose exchange is over."""
        self._turns.release()
        if not connection.closed:
            self._keep(connection)

    def lost(self, connection: AsyncConnection) -> None:
        """Forget a connection that has ended."""
        self._all.discard(connection)
        self._kept.lost(connection.url, connection, time.monotonic())

    def close(self) -> None:
        """Close all connections, for good; what is under way ends with an error."""
        self.closed = True
        self._kept.close()
        for connection in list(self._all):
            connection.abort()

    def _keep(self, connection: AsyncConnection) -> None:
        self._kept.put(connection.url, connection, time.monotonic())

    async def _take(self, origin: str, attempts: Attempts) -> AsyncConnection | None:
        """A kept connection that the peer has not ended; ``None`` for a new one."""
        while not self.closed:
            connection, pause = self._kept.take(origin, time.monotonic(), sure=attempts.sure)
            if connection is None:
                if not pause:
                    return None
                await asyncio.sleep(pause)
                continue
            if connection.usable and not connection.heard():
                return connection
            # Something came that the event loop has not read: TLS's session tickets after the
            # handshake, or the peer's end. Two turns of the loop tell.
            try:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            except BaseException:
                connection.abort()
                raise
            if connection.usable and not connection.heard():
                return connection
            connection.abort()
            self._kept.ended(origin, connection, time.monotonic())
        return None

    async def _connect(self, origin: str, seconds: float) -> AsyncConnection:
        if self.closed:
            raise CLIENT_CLOSED.error(got="a call after close()", allowed="calls before it")
        host, port, secure = name_of(origin)
        try:
            async with asyncio.timeout(seconds):
                plain = await self._tcp(host, port)
                try:
                    _, connection = await self.loop.create_connection(
                        lambda: AsyncConnection(self, origin, plain),
                        sock=plain,
                        ssl=self._options.tls if secure else None,
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
        if self.closed:  # meanwhile
            connection.abort()
            raise ConnectionClosedError(endpoint_url=origin, request=None)
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
                for level, name, value in self._options.sockets:
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
