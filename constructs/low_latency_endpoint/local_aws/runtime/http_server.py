"""An HTTP/1.1 server small enough to add microseconds: one request at a time per connection."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

__all__ = ["Connection", "Handler", "Request", "listen"]

logger = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
_HEAD_LIMIT = 64 * 1024
_REASONS = {status.value: status.phrase for status in HTTPStatus}


@dataclass(slots=True)
class Request:
    """A request; header names are in lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    received: float = 0.0
    """When its first byte came, by `time.perf_counter`."""
    too_large: bool = False
    """The body was longer than the server takes, and was not kept."""


Handler = Callable[["Request", "Connection"], Awaitable[None]]


@dataclass(slots=True)
class _Pending:
    request: Request
    missing: int
    parts: list[bytes] = field(default_factory=list)


class Connection(asyncio.Protocol):
    """One client's connection.

    Parameters
    ----------
    handler
        Answers each request with `send`, or with `start_stream`, `send_chunk` and `end_stream`.
    largest_body
        Bytes of the largest body kept; by default there is no limit.
    number
        The how manieth connection of its server this is.
    """

    def __init__(
        self, handler: Handler, largest_body: int | None, number: int, open_ones: set[Connection]
    ) -> None:
        self._handler = handler
        self._largest_body = largest_body
        self.number = number
        self._open_ones = open_ones
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._began = 0.0
        self._pending: _Pending | None = None
        self._busy: asyncio.Task[None] | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._keep = True

    # ------------------------------------------------------------------------------- from asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note the end; a request under way goes on, as a model does that nobody waits for."""
        self._transport = None
        self._writable.set()
        self._open_ones.discard(self)

    def pause_writing(self) -> None:
        """Hold `drain` back."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Let `drain` go on."""
        self._writable.set()

    def data_received(self, data: bytes) -> None:
        """Take bytes; start the handler once a request is whole."""
        if not self._began:
            self._began = time.perf_counter()
        if self._pending is not None:
            data = self._take_body(data)
        if data:
            self._buffer += data
        if self._busy is None:
            self._next()

    def _take_body(self, data: bytes) -> bytes:
        """Add to the body under way; gives what belongs to the next request."""
        pending = self._pending
        assert pending is not None
        taken = data[: pending.missing]
        pending.missing -= len(taken)
        if not pending.request.too_large:
            pending.parts.append(taken)
        return data[len(taken) :]

    def _next(self) -> None:
        """Start the next request when it is whole."""
        if self._pending is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _HEAD_LIMIT:
                    self._refuse(431)
                return
            head = self._buffer[:end].decode("latin-1")
            del self._buffer[: end + 4]
            self._pending = self._parse(head)
            if self._pending is None:
                return
            if self._buffer:
                rest = self._take_body(bytes(self._buffer))
                self._buffer[:] = rest
        if self._pending.missing:
            return
        request = self._pending.request
        request.body = b"".join(self._pending.parts)
        request.received, self._began = self._began, 0.0
        self._pending = None
        self._busy = asyncio.get_running_loop().create_task(self._answer(request))

    def _parse(self, head: str) -> _Pending | None:
        first, *lines = head.split("\r\n")
        words = first.split(" ")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        length = headers.get("content-length", "0")
        if len(words) != 3 or not length.isdecimal():
            self._refuse(400)
            return None
        if "transfer-encoding" in headers:
            self._refuse(411)
            return None
        self._keep = headers.get("connection", "").lower() != "close"
        request = Request(words[0], words[1], headers)
        missing = int(length)
        if self._largest_body is not None and missing > self._largest_body:
            request.too_large = True
        elif headers.get("expect", "").lower() == "100-continue":
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        return _Pending(request, missing)

    async def _answer(self, request: Request) -> None:
        try:
            await self._handler(request, self)
        except Exception:
            # A mistake of ours must look like one, never like the model's.
            logger.exception("%s %s failed", request.method, request.target)
            self._keep = False
        self._busy = None
        if not self._keep:
            self.close()
        elif self._transport is not None and self._buffer:
            self._began = self._began or time.perf_counter()
            self._next()

    def _refuse(self, status: int) -> None:
        self.send(status, (), b"")
        self.close()

    # -------------------------------------------------------------------------------- for handlers

    @property
    def is_open(self) -> bool:
        """Whether the client still listens."""
        return self._transport is not None

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def send(
        self, status: int, headers: Iterable[tuple[str, str]], body: bytes, reason: str = ""
    ) -> None:
        """Send a whole answer."""
        lines = [f"HTTP/1.1 {status} {reason or _REASONS.get(status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += [f"content-length: {len(body)}", "", ""]
        self._write("\r\n".join(lines).encode("latin-1", "replace") + body)

    def start_stream(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Send the head of an answer whose body comes in chunks."""
        lines = [f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += ["transfer-encoding: chunked", "", ""]
        self._write("\r\n".join(lines).encode("latin-1", "replace"))

    async def send_chunk(self, data: bytes) -> None:
        """Send one chunk; waits while the client does not read."""
        if data:
            self._write(b"%x\r\n%b\r\n" % (len(data), data))
            await self._writable.wait()

    def end_stream(self) -> None:
        """Send the last chunk."""
        self._write(b"0\r\n\r\n")

    def close(self) -> None:
        """Close the connection once everything is written."""
        self._keep = False
        if self._transport is not None:
            self._transport.close()


class Listener:
    """A listening server with the connections it has."""

    def __init__(self, server: asyncio.Server, open_ones: set[Connection]) -> None:
        self._server = server
        self._open_ones = open_ones
        self.port: int = server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Stop listening and drop every connection."""
        self._server.close()
        for connection in list(self._open_ones):
            connection.close()


async def listen(
    handler: Handler, *, port: int = 0, largest_body: int | None = None
) -> Listener:
    """Listen on a loopback port; a free one when it is 0."""
    open_ones: set[Connection] = set()
    count = 0

    def accept() -> Connection:
        nonlocal count
        count += 1
        return Connection(handler, largest_body, count - 1, open_ones)

    loop = asyncio.get_running_loop()
    server = await loop.create_server(accept, LOOPBACK, port, backlog=1024)
    return Listener(server, open_ones)
