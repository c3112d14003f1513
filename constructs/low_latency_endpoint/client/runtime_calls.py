"""Calls of SageMaker Runtime, written once for both clients; see ``without_event_loop``."""

from __future__ import annotations

import logging
import time
from typing import Any, TypeVar

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, ReadTimeoutError

from .answer_streams import EventStream, GenerationStream
from .call_attempts import Attempts
from .client_base import ClientBase, opened_ahead
from .generation_requests import (
    NEW_SESSION,
    NOT_TWICE,
    OPENED_BY_STREAM,
    generation_body,
    with_conversation,
)
from .generations import Limits
from .hedging import Claim, TaskRace, ThreadRace, hedged, raced
from .http_connections import Connection, Pool
from .renewed_credentials import CredentialsEnded
from .runtime_wire import Operation, Prepared

_log = logging.getLogger(__name__)
Streamed = TypeVar("Streamed", bound=GenerationStream)


class RuntimeCalls(ClientBase):
    """What both clients do; each has its pool, and its way to run two copies of a call."""

    _race: ThreadRace | TaskRace

    def _open_pool(self) -> Pool[Any]:
        """The pool, or an error when calls cannot be made now."""
        raise NotImplementedError

    async def _preconnect(self, connections: int) -> int:
        pool = self._open_pool()
        opened = await opened_ahead(pool.open, self.route, self._regional, connections, self.counts)
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
