"""Keep-alive connections from the runtime to one model server.

llhttp (through httptools) reads the answers. A request is sent once and never again: the model may
have worked on it. What can be known is looked at before: whether a kept connection has ended.
"""

from __future__ import annotations

import asyncio
import errno
import selectors
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import cast

import httptools


class Unreachable(Exception):
    """Nothing listens there."""


class OutOfFiles(Unreachable):
    """This process may open no more files, which says nothing of who listens there."""


class Broken(Exception):
    """The connection ended, or what came over it was no HTTP, before the answer was whole."""


@dataclass(slots=True)
class Response:
    """An answer; header names are in lower case, `body` is empty for a stream."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    chunks: AsyncIterator[bytes] | None = None
    hang_up: Callable[[], None] | None = None
    """Ends the connection of a stream, which then is Broken: nobody waits for it any more."""


class _Answer:
    """What llhttp tells of the answer to one request."""

    def __init__(self) -> None:
        self.parser = httptools.HttpResponseParser(self)
        self.status = 0
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        self.headed = self.whole = self.reusable = False
        self.more = False
        """Another answer has begun, for which nobody has asked."""

    def on_message_begin(self) -> None:
        """Note a second answer; an interim one counts for none."""
        self.more = self.whole

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.headed:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Note that the head is whole, unless it is an interim answer's (1xx)."""
        if self.whole:
            return
        status = self.parser.get_status_code()
        if status < 200:
            self.headers.clear()
        else:
            self.status, self.headed = status, True

    def on_body(self, data: bytes) -> None:
        if not self.whole:
            self.parts.append(data)

    def on_message_complete(self) -> None:
        """Note the end of an answer that is no interim one."""
        if self.headed and not self.whole:
            self.whole = True
            self.reusable = self.parser.should_keep_alive()

    @property
    def ends_with_connection(self) -> bool:
        """Whether its body has no length, so that the end of the connection is its own."""
        return self.headed and not self.headers.keys() & {"content-length", "transfer-encoding"}


class _Exchange(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._streaming = False
        self._lost = False
        self._answer = _Answer()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if exc is None and self._answer.ends_with_connection:
            self._answer.whole = True
        self._wake()

    def data_received(self, data: bytes) -> None:
        answer = self._answer
        if answer.whole or self._lost:
            self.drop()  # nobody has asked for it
            return
        try:
            answer.parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.drop()
        if answer.more:
            self.drop()
        if answer.whole or self._lost or (self._streaming and answer.headed):
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    @property
    def is_idle(self) -> bool:
        """Whether the server still holds it open, with nothing on it: another request may go."""
        # Readable there is its end, or a stray answer, which the loop may not have come to yet.
        if self._lost or self.transport is None or self.transport.is_closing():
            return False
        with selectors.PollSelector() as selector:  # no limit of descriptors
            selector.register(self.transport.get_extra_info("socket"), selectors.EVENT_READ)
            return not selector.select(0)

    @property
    def reusable(self) -> bool:
        """Whether both sides keep it after this answer."""
        return self._answer.reusable and not self._lost

    def drop(self) -> None:
        """Close it; it takes no request any more."""
        self._lost = True
        if self.transport is not None:
            self.transport.close()

    async def send(self, data: bytes, streaming: bool) -> Response:
        """Send a request; gives the whole answer, or its head when streaming."""
        answer = self._answer = _Answer()
        self._streaming = streaming
        if self.transport is None or self._lost:
            raise Broken
        self.transport.write(data)
        await self._wait()
        if not answer.headed or (not answer.whole and not streaming):
            raise Broken
        if streaming:
            return Response(answer.status, answer.headers)
        return Response(answer.status, answer.headers, b"".join(answer.parts))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body of a streamed answer as it comes."""
        answer = self._answer
        while True:
            parts, answer.parts = answer.parts, []
            for part in parts:
                yield part
            if answer.parts:
                continue
            if answer.whole:
                return
            if self._lost:
                raise Broken
            await self._wait()


class Connections:
    """The connections to one model server, opened when needed and kept."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._idle: list[_Exchange] = []
        self._closed = False

    async def request(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
        *,
        streaming: bool = False,
    ) -> Response:
        """Send a request, once."""
        lines = [f"{method} {path} HTTP/1.1", f"host: {self._host}:{self._port}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += [f"content-length: {len(body)}", "", ""]
        data = "\r\n".join(lines).encode("latin-1", "replace") + body
        exchange = self._kept() or await self._open()
        done = False
        try:
            response = await exchange.send(data, streaming)
            done = True
        finally:
            if not done:
                exchange.drop()
        if streaming:
            response.chunks = self._stream(exchange)
            response.hang_up = exchange.drop
        else:
            self._keep(exchange)
        return response

    def _kept(self) -> _Exchange | None:
        """Give a kept connection that the server has not ended."""
        while self._idle:
            exchange = self._idle.pop()
            if exchange.is_idle:
                return exchange
            exchange.drop()
        return None

    async def _open(self) -> _Exchange:
        loop = asyncio.get_running_loop()
        try:
            _, exchange = await loop.create_connection(_Exchange, self._host, self._port)
        except OSError as error:
            full = error.errno in (errno.EMFILE, errno.ENFILE)
            raise (OutOfFiles if full else Unreachable)(str(error)) from error
        return exchange

    async def _stream(self, exchange: _Exchange) -> AsyncIterator[bytes]:
        whole = False
        try:
            async for chunk in exchange.chunks():
                yield chunk
            whole = True
        finally:
            if whole:
                self._keep(exchange)
            else:
                exchange.drop()

    def _keep(self, exchange: _Exchange) -> None:
        if exchange.reusable and not self._closed:
            self._idle.append(exchange)
        else:
            exchange.drop()

    def close(self) -> None:
        """Close what is idle now and whatever comes back later."""
        self._closed = True
        while self._idle:
            self._idle.pop().drop()
