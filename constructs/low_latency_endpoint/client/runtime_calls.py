"""Calls of SageMaker Runtime and their streamed answers, written once for threads and asyncio."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from datetime import timedelta
from typing import Any, Protocol, Self, TypeVar

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, ReadTimeoutError

from .call_attempts import Attempts
from .client_base import ClientBase
from .event_loops import run_without_loop
from .generation_requests import (
    NEW_SESSION,
    NOT_TWICE,
    OPENED_BY_STREAM,
    generation_body,
    with_conversation,
)
from .generations import GenerationPart, Limits, Tokens
from .hedging import Claim, TaskRace, ThreadRace, hedged, raced
from .http_connections import Connection, Pool
from .runtime_wire import LONGEST_STREAM, EventBuffer, Operation, Prepared, Wire
from .signing import CredentialsEnded

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
    are :class:`~low_latency_endpoint.client.generations.Tokens`'s.
    """


class AsyncGeneration(GenerationStream, _ForTasks[GenerationPart]):
    """As :class:`Generation`, for ``async for`` and ``async with``."""


_log = logging.getLogger(__name__)
Streamed = TypeVar("Streamed", bound=GenerationStream)


class RuntimeCalls(ClientBase):
    """What both clients do; each has its pool, and its way to run two copies of a call."""

    _race: ThreadRace | TaskRace

    def _open_pool(self) -> Pool[Any]:
        """The pool, or an error when calls cannot be made now."""
        raise NotImplementedError

    async def _preconnect(self, connections: int) -> int:
        """Open connections where calls go first, and one to the other name; returns how many."""
        pool = self._open_pool()
        opened = 0
        regional_connections = connections
        if self.route is not None:
            opened = await pool.open(self.route.zonal, connections)
            if opened:
                regional_connections = 1
        opened += await pool.open(self._regional, regional_connections)
        self.counts.add("connections_opened", opened)
        if not opened:
            _log.warning("no connection to %s could be opened", self._regional)
        return opened

    async def _invoke(self, parameters: dict[str, Any]) -> dict[str, Any]:
        pool = self._open_pool()
        idempotent, body = self._taken_apart(parameters)
        if self._hedging is None or not idempotent:
            return await self._answer(Attempts(self._rules, idempotent), parameters, body)
        first: list[Attempts] = []

        async def copy(claim: Claim) -> dict[str, Any]:
            attempts = Attempts(self._rules, idempotent)
            attempts.watch = claim.watch
            if first:
                attempts.deadline = first[0].deadline
            first.append(attempts)
            return await self._answer(attempts, parameters, body)

        return await hedged(copy, self._hedging, self._race, pool.is_full)

    async def _answer(
        self, attempts: Attempts, parameters: dict[str, Any], body: bytes
    ) -> dict[str, Any]:
        operation = self._wire.invoke
        connection = await self._send(operation, parameters, body, attempts)
        reader = connection.reader
        status, headers, content = reader.status, reader.headers, b"".join(reader.parts)
        connection.give_back()
        return self._wire.answer(operation, status, headers, content, attempts.made)

    async def _events(self, kind: type[EventStream], parameters: dict[str, Any]) -> dict[str, Any]:
        idempotent, body = self._taken_apart(parameters)
        started = time.perf_counter()
        attempts = Attempts(self._rules, idempotent)
        operation = self._wire.stream
        connection = await self._send(operation, parameters, body, attempts)
        return self._wire.answer(
            operation,
            connection.reader.status,
            connection.reader.headers,
            kind(connection, self._wire, started),
            attempts.made,
        )

    async def _generate(
        self,
        kind: type[Streamed],
        limits: Limits,
        conversation: str | None,
        hedge_generations: bool,
        parameters: dict[str, Any],
    ) -> Streamed:
        pool = self._open_pool()
        given = {"ContentType": "application/json", **with_conversation(parameters, conversation)}
        body = generation_body(given.pop("Body", None))
        if given.get("SessionId") == NEW_SESSION:
            raise OPENED_BY_STREAM.error(got=NEW_SESSION, allowed="the ID of an open session")
        idempotent = bool(given.pop("Idempotent", False))
        hedging = self._generation_hedging if hedge_generations else None
        if hedge_generations and (hedging is None or given.get("SessionId")):
            raise NOT_TWICE.error(
                got="a SessionId" if hedging else "a client without hedging",
                allowed="a client with hedging=Hedging(...), a call without SessionId",
                where="hedge_generations",
            )

        async def begin(claim: Claim | None = None) -> Streamed:
            attempts = Attempts(self._rules, idempotent)
            attempts.first_token = limits.first
            attempts.silence = float("inf")  # the limits take its place
            attempts.watch = claim.watch if claim else None
            generation = kind(self._wire, limits)
            try:
                connection = await self._send(self._wire.stream, given, body, attempts)
            except ReadTimeoutError as error:
                raise generation.late(self._regional) from error
            await generation.begin(connection, attempts)
            return generation

        if hedging is None:
            return await begin()
        return await raced(begin, hedging, self._race, pool.is_full, self.counts)

    async def _send(
        self, operation: Operation, parameters: dict[str, Any], body: bytes, attempts: Attempts
    ) -> Connection:
        """One call with its retries; the connection holds an answer below 300."""
        pool, stream = self._open_pool(), operation is self._wire.stream

        def prepare(origin: str) -> Prepared:
            return self._wire.prepare(origin, operation, parameters)

        while True:
            error: Any
            try:
                connection: Connection = await pool.exchange(prepare, body, attempts, stream=stream)
            except CredentialsEnded:
                for seconds in self._credentials.waits(attempts.deadline):
                    await pool.sleep(seconds)
                continue
            except (HTTPClientError, NoConnectionError) as problem:
                pause = attempts.failed(problem)
                error = problem
            else:
                reader = connection.reader
                if reader.status < 300:
                    attempts.answered(reader.status)
                    return connection
                content = b"".join(reader.parts)
                error = self._wire.error(
                    operation, reader.status, reader.headers, content, attempts.made + 1
                )
                code = error.response.get("Error", {}).get("Code")
                pause = attempts.answered(reader.status, str(code))
                if attempts.watch is not None:
                    attempts.watch(None)
                connection.give_back()
            if pause is None or pool.closed:
                raise error
            await pool.sleep(pause)
