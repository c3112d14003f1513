"""``InvokeEndpoint`` for asyncio: boto3's parameters and errors at a sixth of its processor time.

The twin of :class:`~low_latency_endpoint.client.runtime_client.RuntimeClient`: what is not
waiting, the two share.

Needs the ``operations`` extra (boto3). Runs on any asyncio event loop; on uvloop's, which the
``async-client`` extra brings, it needs still less. A proxy is refused (LLC119).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from typing import Any

from botocore.exceptions import ConnectionError as NoConnectionError
from botocore.exceptions import HTTPClientError, ReadTimeoutError

from .async_http import Answer, HttpPool
from .call_attempts import Attempts
from .client_base import ClientBase
from .client_timing import CLIENT_CLOSED, CLIENT_LOOP
from .generation_streams import AsyncGeneration, raced_in_tasks
from .hedging import Watch, hedged_in_tasks
from .renewed_credentials import CredentialsEnded
from .runtime_wire import Events, Operation, Wire
from .sessions import closing, opening, session_id

_log = logging.getLogger(__name__)
_ENTER_SECONDS = 60.0  # for a provider's first credentials


class AsyncRuntimeClient(ClientBase):
    """Invokes SageMaker endpoints from one event loop; its attributes are
    :class:`~low_latency_endpoint.client.client_base.ClientBase`'s.

    Parameters
    ----------
    region, **options
        See :class:`~low_latency_endpoint.client.client_base.ClientOptions`. Calls beyond
        ``concurrency`` wait for a connection, as long as it takes. Signature, zone, and the clocks of
        ``longest_call``, hedging and first tokens begin when a call's turn comes, not before.

    Raises
    ------
    ConfigurationError
        ``LLC101`` to ``LLC110``, ``LLC119``; calls after ``close()``: ``LLC111``.
    botocore.exceptions.CredentialRetrievalError
        From entering the client, when the first credentials do not come within a minute.

    Examples
    --------
    ::

        async with AsyncRuntimeClient("us-east-1", latency_target=timedelta(milliseconds=50)) as c:
            answer = await c.invoke_endpoint(
                EndpointName="sentiment", ContentType="application/json", Body=b'{"inputs": "x"}')
            print(answer["Body"])
    """

    def _begin(self) -> None:
        self._pool: HttpPool | None = None

    async def __aenter__(self) -> AsyncRuntimeClient:
        self._credentials.start()
        for pause in self._credentials.waits(time.monotonic() + _ENTER_SECONDS):
            await asyncio.sleep(pause)
        await asyncio.to_thread(self._find_route)
        self._pool = HttpPool(self.options)
        if self.options.preconnect:
            await self.preconnect(self.options.preconnect)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        self._credentials.close()
        if self._pool is not None:
            self._pool.close()
            await asyncio.sleep(0)  # so that the event loop sees the sockets go

    async def preconnect(self, connections: int) -> int:
        """Open connections now, to the zone and one to the Region; returns how many are open."""
        pool, opened = self._http(), 0
        if self.route is not None:
            opened += await pool.open(self.route.zonal, connections)
            connections = 1 if opened else connections
        opened += await pool.open(self._regional, connections)
        self.counts.add("connections_opened", opened)
        if not opened:
            _log.warning("no connection to %s could be opened", self._regional)
        return opened

    async def invoke_endpoint(self, **parameters: Any) -> dict[str, Any]:
        """As :meth:`.runtime_client.RuntimeClient.invoke_endpoint`, but ``Body`` is ``bytes``."""
        idempotent, body = self._taken_apart(parameters)
        first: list[Attempts] = []

        async def call(watch: Watch | None = None) -> dict[str, Any]:
            attempts = Attempts(self._rules, idempotent)
            attempts.watch = watch
            if first:
                attempts.deadline = first[0].deadline
            first.append(attempts)
            answer = await self._send(self._wire.invoke, parameters, body, attempts, stream=False)
            content = await answer.read()
            answer.close()
            return self._wire.answer(
                self._wire.invoke, answer.status, answer.headers, content, attempts.made
            )

        if self._hedging is None or not idempotent:
            return await call()
        return await hedged_in_tasks(call, self._hedging, self._http().is_full)

    async def invoke_endpoint_with_response_stream(self, **parameters: Any) -> dict[str, Any]:
        """As :meth:`.runtime_client.RuntimeClient.invoke_endpoint_with_response_stream`; ``Body``
        is an :class:`AsyncResponseStream`.
        """
        idempotent, body = self._taken_apart(parameters)
        started = time.perf_counter()
        attempts = Attempts(self._rules, idempotent)
        answer = await self._send(self._wire.stream, parameters, body, attempts, stream=True)
        return self._wire.answer(
            self._wire.stream,
            answer.status,
            answer.headers,
            AsyncResponseStream(answer, self._wire, started),
            attempts.made,
        )

    async def stream(
        self,
        *,
        first_token_timeout: timedelta | None = None,
        gap_timeout: timedelta | None = None,
        total_timeout: timedelta | None = None,
        conversation: str | None = None,
        hedge_generations: bool = False,
        **parameters: Any,
    ) -> AsyncGeneration:
        """As :meth:`.runtime_client.RuntimeClient.stream`, for ``async for`` and ``async with``."""
        call = self._generation(
            first_token_timeout,
            gap_timeout,
            total_timeout,
            conversation,
            hedge_generations,
            parameters,
        )

        async def begin(watch: Watch | None = None) -> AsyncGeneration:
            attempts = Attempts(self._rules, call.idempotent)
            attempts.first_token = call.limits.first
            attempts.silence = float("inf")  # the limits take its place
            attempts.watch = watch
            generation = AsyncGeneration(self._wire, call.limits)
            try:
                answer = await self._send(
                    self._wire.stream, dict(call.parameters), call.body, attempts, stream=True
                )
            except ReadTimeoutError as error:
                raise generation.late(self._regional) from error
            return await generation.begun(answer, attempts)

        if call.hedging is None:
            return await begin()
        return await raced_in_tasks(begin, call.hedging, self.counts, self._http().is_full)

    async def open_session(self, **parameters: Any) -> str:
        """As :meth:`.runtime_client.RuntimeClient.open_session`."""
        answer = await self.invoke_endpoint(**opening(parameters))
        return session_id(answer.get("NewSessionId"))

    async def close_session(self, session: str, **parameters: Any) -> None:
        """As :meth:`.runtime_client.RuntimeClient.close_session`."""
        await self.invoke_endpoint(**closing(session, parameters))

    async def _send(
        self,
        operation: Operation,
        parameters: dict[str, Any],
        body: bytes,
        attempts: Attempts,
        *,
        stream: bool,
    ) -> Answer:
        """One call with its retries; an answer below 300 is returned as it is."""
        pool = self._http()
        prepare = partial(self._wire.prepare, operation=operation, parameters=parameters)
        while True:
            error: Any
            try:
                answer = await pool.exchange(prepare, body, attempts, stream=stream)
                if answer.status < 300:
                    attempts.answered(answer.status)
                    return answer
                try:
                    content = await answer.read()
                finally:
                    answer.close()
                error = self._wire.error(
                    operation, answer.status, answer.headers, content, attempts.made + 1
                )
                pause = attempts.answered(
                    answer.status, str(error.response.get("Error", {}).get("Code"))
                )
            except CredentialsEnded:
                for seconds in self._credentials.waits(attempts.deadline):
                    await asyncio.sleep(seconds)
                continue
            except (HTTPClientError, NoConnectionError) as problem:
                pause = attempts.failed(problem)
                error = problem
            if pause is None or pool.closed:
                raise error
            await asyncio.sleep(pause)

    def _http(self) -> HttpPool:
        pool = self._pool
        if pool is None or (pool.loop is not asyncio.get_running_loop() and not pool.closed):
            raise CLIENT_LOOP.error(
                got="a client that was not entered" if pool is None else "another event loop",
                allowed="the event loop in which the client was entered",
            )
        if pool.closed:
            raise CLIENT_CLOSED.error(got="a call after close()", allowed="calls before it")
        return pool


class AsyncResponseStream(Events):
    """As :class:`.runtime_client.ResponseStream`, for ``async for`` and ``async with``."""

    def __init__(self, answer: Answer, wire: Wire, started: float) -> None:
        super().__init__(wire, answer.headers, started)
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        try:
            while data := await self._part():
                for event in self._complete(data):
                    yield event
            self._buffer.check_end()
        finally:
            self.close()

    async def _part(self) -> bytes:
        asked = time.monotonic()
        try:
            async with asyncio.timeout(self._left):
                return await self._answer.part()
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self._answer.origin, error=error) from error
        finally:
            self._left -= time.monotonic() - asked

    def close(self) -> None:
        """Give the connection back, or close it when the stream was not read to its end."""
        self._answer.close()

    async def __aenter__(self) -> AsyncResponseStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
