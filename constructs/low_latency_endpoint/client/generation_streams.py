"""Generations as the clients hand them out, and two of them in a race for the first token.

Hedging a generation costs more than hedging a call: both instances' accelerators work until one
hears that nobody listens any more, if it ever does (no page of AWS's says that SageMaker passes a
caller's hang-up on). So it happens on request only, ends with the first token, and the other's
connection is closed then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from botocore.exceptions import HTTPClientError

from .async_http import Answer
from .blocking_http import BlockingConnection, BlockingPool
from .call_attempts import Attempts
from .client_timing import ClientCounts
from .generations import GenerationPart, Limits, Tokens
from .hedging import Claim, HedgingState, Watch, hedged_in_tasks, hedged_in_threads
from .runtime_wire import Wire

__all__ = ["AsyncGeneration", "Generation"]


class Generation(Tokens):
    """The parts of one generation, as they come.

    Iterate once, to the end or inside ``with``: leaving it closes the connection. Its attributes are :class:`~low_latency_endpoint.client.generations.Tokens`'s.
    """

    def __init__(self, pool: BlockingPool, wire: Wire, limits: Limits) -> None:
        super().__init__(wire, limits)
        self._pool = pool
        self._connection: BlockingConnection | None = None
        self._ready: list[GenerationPart] = []

    def begun(self, connection: BlockingConnection, attempts: Attempts) -> Generation:
        """Take the head of the answer, and wait for the first token."""
        self._connection = connection
        self._sent(connection.origin, connection.reader.status, connection.reader.headers, attempts)
        try:
            self._ready = self._next()
        except BaseException:
            self.close()
            raise
        return self

    def __iter__(self) -> Iterator[GenerationPart]:
        try:
            parts, self._ready = self._ready, []
            while parts:
                yield from parts
                self._wanted()
                parts = self._next()
        finally:
            self.close()

    def _next(self) -> list[GenerationPart]:
        """The next parts; empty at the end."""
        while True:
            if self._failure is not None:
                raise self._failure
            if self._connection is None:
                return []
            try:
                data = self._connection.part(self._deadline())
            except HTTPClientError as error:
                if self._done:
                    return []
                raise self._what(error) from error
            if not data:
                return self._ended()
            if parts := self._take(data):
                return parts

    def close(self) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.give_back(connection)

    def __enter__(self) -> Generation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncGeneration(Tokens):
    """As :class:`Generation`, for ``async for`` and ``async with``."""

    def __init__(self, wire: Wire, limits: Limits) -> None:
        super().__init__(wire, limits)
        self._answer: Answer | None = None
        self._ready: list[GenerationPart] = []

    async def begun(self, answer: Answer, attempts: Attempts) -> AsyncGeneration:
        """Take the head of the answer, and wait for the first token."""
        self._answer = answer
        self._sent(answer.origin, answer.status, answer.headers, attempts)
        try:
            self._ready = await self._next()
        except BaseException:
            self.close()
            raise
        return self

    async def __aiter__(self) -> AsyncIterator[GenerationPart]:
        try:
            parts, self._ready = self._ready, []
            while parts:
                for part in parts:
                    yield part
                self._wanted()
                parts = await self._next()
        finally:
            self.close()

    async def _next(self) -> list[GenerationPart]:
        """The next parts; empty at the end."""
        while True:
            if self._failure is not None:
                raise self._failure
            if self._answer is None:
                return []
            try:
                async with asyncio.timeout(self._deadline() - time.monotonic()):
                    data = await self._answer.part()  # what is here needs no time
            except TimeoutError as error:
                if self._done:
                    return []
                raise self.late() from error
            except HTTPClientError as error:
                if self._done:
                    return []
                raise self._what(error) from error
            if not data:
                return self._ended()
            if parts := self._take(data):
                return parts

    def close(self) -> None:
        """Give the connection back, or close it when the answer was not read to its end."""
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.close()

    async def __aenter__(self) -> AsyncGeneration:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def raced_in_threads(
    begin: Callable[[Claim], Generation],
    hedging: HedgingState,
    threads: ThreadPoolExecutor,
    counts: ClientCounts,
) -> Generation:
    """The generation whose first token comes first, of one or two; the other is cancelled."""

    def drop(claim: Claim, future: Future[Generation]) -> None:
        if future.cancel() or (future.done() and future.exception() is not None):
            return  # it never began, or failed by itself
        counts.add("generations_cancelled")
        claim.cancel()
        future.add_done_callback(_close_result)

    return hedged_in_threads(begin, hedging, threads, drop)


def _close_result(future: Future[Generation]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()  # its first token came as well


async def raced_in_tasks(
    begin: Callable[[Watch], Awaitable[AsyncGeneration]],
    hedging: HedgingState,
    counts: ClientCounts,
    full: Callable[[], bool],
) -> AsyncGeneration:
    """As :func:`raced_in_threads`, in the running event loop."""

    def drop(task: asyncio.Future[AsyncGeneration]) -> None:
        counts.add("generations_cancelled")
        if task.done():
            task.result().close()  # its first token came as well
        else:
            task.cancel()  # closes its connection at the loop's next turn

    return await hedged_in_tasks(begin, hedging, full, drop)
