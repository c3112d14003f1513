"""Call ``InvokeEndpoint`` from asyncio, with boto3's parameters and errors.

:class:`AsyncRuntimeClient` is the class. It shares everything but waiting with
:class:`~low_latency_client.blocking_client.RuntimeClient`. It runs on any asyncio event loop, and
takes less processor time on uvloop's, which the ``uvloop`` extra installs. A proxy is refused
(LLC119).
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from typing import Self, Unpack

from .async_http import AsyncPool
from .call_parameters import (
    AsyncEventsAnswer,
    AsyncInvokeAnswer,
    EventsParameters,
    GenerationParameters,
    InvokeParameters,
    SessionParameters,
)
from .client_base import ClientBase
from .generation_requests import closing, opening, session_id
from .generations import limits_of
from .hedging import TaskRace
from .response_streams import AsyncGeneration, AsyncResponseStream
from .timing import CLIENT_LOOP

__all__ = ["AsyncGeneration", "AsyncResponseStream", "AsyncRuntimeClient"]

_ENTER_SECONDS = 60.0  # for a provider's first credentials


class AsyncRuntimeClient(ClientBase):
    """Invokes SageMaker endpoints from one event loop.

    Calls beyond ``concurrency`` wait for a connection, as long as it takes. Signature, zone, and the
    clocks of ``longest_call``, hedging and first tokens begin when a call's turn comes, not before.
    Arguments and attributes are those of :class:`~low_latency_client.client_base.ClientBase`.

    Raises
    ------
    ConfigurationError
        ``LLC101`` to ``LLC110``, ``LLC119`` to ``LLC123``, ``LLC125``, ``LLC124``; calls after ``close()``: ``LLC111``.
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

    _pool: AsyncPool | None

    def _begin(self) -> None:
        self._of_parent: AsyncPool | None = None
        self._entries = 0  # of the pool: each task that enters the client leaves it by itself
        self._race = TaskRace()

    async def __aenter__(self) -> Self:
        if self._pool is not None and self._pool.is_open_elsewhere():
            raise CLIENT_LOOP.error(
                got="a client that another event loop has entered",
                allowed="a client for each event loop",
                where="AsyncRuntimeClient",
            )
        if not self._is_entered():
            try:
                await self._enter()
            except BaseException:  # nobody leaves what was not entered
                if not self._is_entered():
                    self._credentials.close()
                raise
        self._entries += 1
        return self

    async def _enter(self) -> None:
        self._credentials.start()
        for pause in self._credentials.waits(time.monotonic() + _ENTER_SECONDS):
            await asyncio.sleep(pause)
        await asyncio.to_thread(self._find_route)
        if self._is_entered():  # by another task meanwhile
            return
        if self._pool is not None:
            self._pool.close()  # of an event loop before this one
        pool = AsyncPool(self.timing, self._sockets, self._tls, self._connections)
        self._pool = pool
        self._entries = 0
        try:
            if self._opened_ahead:
                await self.preconnect(self._opened_ahead)
        except BaseException:
            pool.close()
            raise

    def _is_entered(self) -> bool:
        return self._pool is not None and not self._pool.closed and self._pool.is_here()

    def start_anew(self) -> None:
        """In a forked child, which has to enter the client in an event loop of its own."""
        super().start_anew()
        if self._pool is not None:
            self._pool.leave_to_parent()
            self._of_parent = self._pool  # uvloop's transports would end with it, the parent's too
            self._pool = None

    async def __aexit__(self, *_: object) -> None:
        self._entries -= 1
        if self._entries <= 0:
            await self.close()

    async def close(self) -> None:
        """Close all connections, whoever has entered the client."""
        self._entries = 0
        self._credentials.close()
        if self._pool is not None:
            self._pool.close()
            await asyncio.sleep(0)  # so that the event loop sees the sockets go

    async def preconnect(self, connections: int) -> int:
        """Open connections now, to the zone and one to the Region; returns how many are open."""
        return await self._preconnect(connections)

    async def invoke_endpoint(self, **parameters: Unpack[InvokeParameters]) -> AsyncInvokeAnswer:
        """As :meth:`.blocking_client.RuntimeClient.invoke_endpoint`, but ``Body`` is ``bytes``."""
        answer: AsyncInvokeAnswer = await self._invoke(parameters)
        return answer

    async def invoke_endpoint_with_response_stream(
        self, **parameters: Unpack[EventsParameters]
    ) -> AsyncEventsAnswer:
        """As :meth:`.blocking_client.RuntimeClient.invoke_endpoint_with_response_stream`; ``Body``
        is an :class:`AsyncResponseStream`.
        """
        answer: AsyncEventsAnswer = await self._events(AsyncResponseStream, parameters)
        return answer

    async def stream(
        self,
        *,
        first_token_timeout: timedelta | str | None = None,
        gap_timeout: timedelta | str | None = None,
        total_timeout: timedelta | str | None = None,
        conversation: str | None = None,
        hedge_generations: bool = False,
        **parameters: Unpack[GenerationParameters],
    ) -> AsyncGeneration:
        """As :meth:`.blocking_client.RuntimeClient.stream`, for ``async for`` and ``async with``."""
        limits = limits_of(self.timing, first_token_timeout, gap_timeout, total_timeout)
        return await self._generate(
            AsyncGeneration, limits, conversation, hedge_generations, parameters
        )

    async def open_session(self, **parameters: Unpack[SessionParameters]) -> str:
        """As :meth:`.blocking_client.RuntimeClient.open_session`."""
        answer = await self.invoke_endpoint(**opening(parameters))
        return session_id(answer.get("NewSessionId"))

    async def close_session(self, session: str, **parameters: Unpack[SessionParameters]) -> None:
        """As :meth:`.blocking_client.RuntimeClient.close_session`."""
        await self.invoke_endpoint(**closing(session, parameters))

    def _open_pool(self) -> AsyncPool:
        pool = self._pool
        if pool is None or (pool.loop is not asyncio.get_running_loop() and not pool.closed):
            raise CLIENT_LOOP.error(
                got="a client that was not entered" if pool is None else "another event loop",
                allowed="the event loop in which the client was entered",
                where="AsyncRuntimeClient",
            )
        pool.check_open()
        return pool
