"""Streamed answers of SageMaker Runtime, written once for threads and asyncio."""

from __future__ import annotations

import time
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import timedelta
from typing import Any, Protocol, Self, TypeVar

from botocore.exceptions import HTTPClientError

from .call_attempts import Attempts
from .event_loops import run_without_loop
from .generations import GenerationPart, Tokens
from .http_connections import Connection
from .runtime_wire import LONGEST_STREAM, EventBuffer, Wire

__all__ = ["AsyncGeneration", "AsyncResponseStream", "Generation", "ResponseStream"]

T_co = TypeVar("T_co", covariant=True)


class _Parts(Protocol[T_co]):
    async def _next(self) -> Iterable[T_co] | None:
        """Those that come next; ``None`` at the end."""

    def close(self) -> None: ...


class _ForThreads(_Parts[T_co]):
    """``for`` and ``with``."""

    def __iter__(self) -> Iterator[T_co]:
        try:
            while (parts := run_without_loop(self._next())) is not None:
                yield from parts
        finally:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _ForTasks(_Parts[T_co]):
    """``async for`` and ``async with``."""

    async def __aiter__(self) -> AsyncIterator[T_co]:
        try:
            while (parts := await self._next()) is not None:
                for part in parts:
                    yield part
        finally:
            self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class _Answer:
    """Of one connection, as long as it is read."""

    _connection: Connection | None = None

    def close(self) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.give_back()

    def __del__(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.forsake()
            warnings.warn(
                f"unclosed {type(self).__name__}", ResourceWarning, stacklevel=2, source=self
            )


class EventStream(_Answer):
    """Events of a response stream.

    Attributes
    ----------
    time_to_first_byte : timedelta or None
        From the call to the first event; ``None`` until it came.
    """

    def __init__(self, connection: Connection, wire: Wire, started: float) -> None:
        self._connection = connection
        self._wire, self._started = wire, started
        self._buffer = EventBuffer(connection.reader.headers)
        self._left = LONGEST_STREAM.total_seconds()
        self.time_to_first_byte: timedelta | None = None

    async def _next(self) -> Iterator[dict[str, Any]] | None:
        if self._connection is None:
            return None
        asked = time.monotonic()
        data = await self._connection.part(asked + self._left)
        self._left -= time.monotonic() - asked
        if data:
            return self._complete(data)
        self._buffer.check_end()
        return None

    def _complete(self, data: bytes) -> Iterator[dict[str, Any]]:
        """boto3's events that are complete with these bytes."""
        for event in self._wire.events(self._buffer, data):
            if self.time_to_first_byte is None:
                self.time_to_first_byte = timedelta(seconds=time.perf_counter() - self._started)
            yield event


class ResponseStream(EventStream, _ForThreads[dict[str, Any]]):
    """Events of a response stream, as they come: ``{"PayloadPart": {"Bytes": b"..."}}``.

    Iterate once, to the end or inside ``with``, so that the connection is free again.
    """


class AsyncResponseStream(EventStream, _ForTasks[dict[str, Any]]):
    """As :class:`ResponseStream`, for ``async for`` and ``async with``."""


class GenerationStream(_Answer, Tokens):
    """The parts of a generation, and what came of it so far."""

    _ready: list[GenerationPart] | None = None

    async def begin(self, connection: Connection, attempts: Attempts) -> None:
        """Take the head of the answer, and wait for the first token."""
        self._connection = connection
        reader = connection.reader
        self._origin, self._began = connection.origin, attempts.sent
        self._buffer = EventBuffer(reader.headers)
        self.response = self._wire.answer(
            self._wire.stream, reader.status, reader.headers, None, attempts.made
        )
        del self.response["Body"]
        try:
            self._ready = await self._next()
        except BaseException:
            self.close()
            raise

    async def _next(self) -> list[GenerationPart] | None:
        if ready := self._ready:
            self._ready = None
            return ready
        self._asked = time.monotonic()  # from here on the gap counts, not while the caller works
        while self._failure is None and self._connection is not None:
            try:
                data = await self._connection.part(self._deadline())
            except HTTPClientError as error:
                if self._done:
                    break
                raise self._lost(error) from error
            if parts := self._take(data) if data else self._ended():
                return parts
            if not data:
                break
        if self._failure is not None:
            raise self._failure
        self.close()
        return None


class Generation(GenerationStream, _ForThreads[GenerationPart]):
    """The parts of one generation, as they come.

    Iterate once, to the end or inside ``with``: leaving it closes the connection. Its attributes
    are :class:`~low_latency_client.generations.Tokens`'s.
    """


class AsyncGeneration(GenerationStream, _ForTasks[GenerationPart]):
    """As :class:`Generation`, for ``async for`` and ``async with``."""
