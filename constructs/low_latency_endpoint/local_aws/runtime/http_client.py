"""Keep-alive connections from the runtime to one model server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass

__all__ = ["Broken", "Connections", "Response", "Unreachable"]


class Unreachable(Exception):
    """Nothing listens there."""


class Broken(Exception):
    """The connection ended, or what came over it was no HTTP, before the answer was whole."""


@dataclass(slots=True)
class Response:
    """An answer; header names are in lower case, `body` is empty for a stream."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    chunks: AsyncIterator[bytes] | None = None


class _Exchange(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._waiter: asyncio.Future[None] | None = None
        self._streaming = False
        self._status = 0
        self._headers: dict[str, str] = {}
        self._headed = self._whole = self._lost = self._chunked = False
        self._missing: int | None = 0
        self._parts: list[bytes] = []
        self.reusable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost, self.reusable = True, False
        if self._headed and self._missing is None and not self._chunked:
            self._whole = True  # a body without a length ends with its connection
        self._wake()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            self._parse()
        except ValueError:
            self._lost, self.reusable = True, False
            if self.transport is not None:
                self.transport.close()
        if self._whole or self._lost or (self._streaming and self._headed):
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _parse(self) -> None:
        if not self._headed:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
            del self._buffer[: end + 4]
            self._status = int(first.split(" ", 2)[1]) if first.startswith("HTTP/1.") else 0
            if not 100 <= self._status <= 599:
                raise ValueError(first)
            self._headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines)
            }
            self._headed = True
            self._chunked = "chunked" in self._headers.get("transfer-encoding", "").lower()
            length = self._headers.get("content-length")
            self._missing = None if length is None else int(length)
            if self._headers.get("connection", "").lower() == "close":
                self.reusable = False
        if self._chunked:
            self._parse_chunks()
        else:
            taken = bytes(self._buffer if self._missing is None else self._buffer[: self._missing])
            del self._buffer[: len(taken)]
            if taken:
                self._parts.append(taken)
            if self._missing is not None:
                self._missing -= len(taken)
                self._whole = self._missing == 0

    def _parse_chunks(self) -> None:
        while not self._whole:
            end = self._buffer.find(b"\r\n")
            if end < 0:
                return
            size = int(bytes(self._buffer[:end]).split(b";")[0], 16)
            if len(self._buffer) < end + 2 + size + 2:
                return
            if size:
                self._parts.append(bytes(self._buffer[end + 2 : end + 2 + size]))
            else:
                self._whole = True
            del self._buffer[: end + 2 + size + 2]

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    async def send(self, data: bytes, streaming: bool) -> Response:
        """Send a request; gives the whole answer, or its head when streaming."""
        self._headed = self._whole = self._chunked = False
        self._streaming, self._missing = streaming, 0
        self._parts.clear()
        if self.transport is None or self._lost:
            raise Broken
        self.transport.write(data)
        await self._wait()
        if not self._headed or (not self._whole and not streaming):
            raise Broken
        if streaming:
            return Response(self._status, self._headers)
        return Response(self._status, self._headers, b"".join(self._parts))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body of a streamed answer as it comes."""
        while True:
            parts, self._parts = self._parts, []
            for part in parts:
                yield part
            if self._parts:
                continue
            if self._whole:
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
        """Send a request.

        Raises
        ------
        Unreachable
            When nothing listens.
        Broken
            When the server hung up.
        """
        lines = [f"{method} {path} HTTP/1.1", f"host: {self._host}:{self._port}"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines += [f"content-length: {len(body)}", "", ""]
        data = "\r\n".join(lines).encode("latin-1", "replace") + body
        while True:
            reused = bool(self._idle)
            exchange = self._idle.pop() if reused else await self._open()
            done = False
            try:
                response = await exchange.send(data, streaming)
                done = True
            except Broken:
                # A kept connection that the server has closed meanwhile says nothing about it.
                if reused and not exchange._headed:
                    continue
                raise
            finally:
                if not done:
                    self._drop(exchange)
            if streaming:
                response.chunks = self._stream(exchange)
            else:
                self._keep(exchange)
            return response

    async def _open(self) -> _Exchange:
        loop = asyncio.get_running_loop()
        try:
            _, exchange = await loop.create_connection(_Exchange, self._host, self._port)
        except OSError as error:
            raise Unreachable(str(error)) from error
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
                self._drop(exchange)

    def _keep(self, exchange: _Exchange) -> None:
        if exchange.reusable and not self._closed:
            self._idle.append(exchange)
        else:
            self._drop(exchange)

    @staticmethod
    def _drop(exchange: _Exchange) -> None:
        exchange.reusable = False
        if exchange.transport is not None:
            exchange.transport.close()

    def close(self) -> None:
        """Close what is idle now and whatever comes back later."""
        self._closed = True
        while self._idle:
            self._drop(self._idle.pop())
