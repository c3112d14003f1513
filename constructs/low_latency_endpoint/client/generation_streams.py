"""Generations as the clients hand them out, and two of them in a race for the first token.

Hedging a generation costs more than hedging a call: both instances' accelerators work until one
hears that nobody listens any more, if it ever does (no page of AWS's says that SageMaker passes a
caller's hang-up on). So it happens on request only, ends with the first token, and the other's
connection is closed then.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from botocore.exceptions import HTTPClientError

from .async_http import Answer
from .blocking_http import BlockingConnection, BlockingPool
from .call_attempts import Attempts
from .client_timing import ClientCounts
from .generations import GenerationPart, Limits, Tokens
from .hedging import HedgingState, Moment, Watch, first_good, noting, since
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


class Claim:
    """The connection of one racer, so that another thread can end it; safe across threads."""

    def __init__(self, sent: Moment) -> None:
        self._lock = threading.Lock()
        self._connection: BlockingConnection | None = None
        self._lost = False
        self._note = noting(sent)

    def watch(self, connection: BlockingConnection | None) -> None:
        """Take note of the racer's connection before its request goes out."""
        with self._lock:
            if connection is not None and self._lost:
                connection.abort()
                raise RaceLost
            self._connection = connection
        self._note(connection)

    def cancel(self) -> None:
        """End what the racer has begun, and let it begin nothing more."""
        with self._lock:
            self._lost = True
            if self._connection is not None:
                self._connection.interrupt()


class RaceLost(Exception):
    """Ends a racer whose result nobody waits for."""


def raced_in_threads(
    begin: Callable[[Claim], Generation],
    hedging: HedgingState,
    threads: ThreadPoolExecutor,
    counts: ClientCounts,
) -> Generation:
    """The generation whose first token comes first, of one or two; the other is cancelled.

    When both fail, the first one's own error is raised.
    """
    sent: Future[float] = Future()
    claims = [Claim(sent)]
    futures = [threads.submit(begin, claims[0])]
    either: tuple[Future[Any], ...] = (*futures, sent)
    kept: Future[Generation] | None = None
    try:
        wait(either, return_when=FIRST_COMPLETED)
        done, _ = wait(futures, hedging.delay_seconds)
        winner = futures[0]
        if not done and hedging.allow():
            claims.append(Claim(sent))
            futures.append(threads.submit(begin, claims[1]))
            winner = first_good(*futures)
            if winner is futures[1]:
                hedging.won()
        generation = winner.result()
        kept = winner
        return generation
    finally:
        hedging.record(since(sent))
        for claim, future in zip(claims, futures, strict=True):
            if future is not kept:
                _drop(claim, future, counts)


def _drop(claim: Claim, future: Future[Generation], counts: ClientCounts) -> None:
    if future.cancel() or (future.done() and future.exception() is not None):
        return  # it never began, or failed by itself
    counts.add("generations_cancelled")
    claim.cancel()
    future.add_done_callback(_close_result)


def _close_result(future: Future[Generation]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()  # its first token came as well


async def raced_in_tasks(
    begin: Callable[[Watch], Awaitable[AsyncGeneration]],
    hedging: HedgingState,
    counts: ClientCounts,
    full: Callable[[], bool],
) -> AsyncGeneration:
    """As :func:`raced_in_threads`, in the running event loop; ``full`` as of ``hedged_in_tasks``."""
    sent: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    tasks = [asyncio.ensure_future(begin(noting(sent)))]
    either: tuple[asyncio.Future[Any], ...] = (*tasks, sent)
    kept: asyncio.Future[AsyncGeneration] | None = None
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait(tasks, timeout=hedging.delay_seconds)
        winner = tasks[0]
        if not done and not full() and hedging.allow():
            tasks.append(asyncio.ensure_future(begin(noting(sent))))
            waiting = set(tasks)
            while waiting:
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                good = [task for task in tasks if task not in waiting and not task.exception()]
                if good:
                    winner = good[0]
                    break
            if winner is tasks[1]:
                hedging.won()
        generation = await winner
        kept = winner
        return generation
    finally:
        hedging.record(since(sent))
        for task in tasks:
            if task is kept or task.cancelled():
                continue
            if not task.done():
                task.cancel()  # closes its connection at the loop's next turn
            elif task.exception() is None:
                task.result().close()  # its first token came as well
            else:
                continue  # failed by itself
            counts.add("generations_cancelled")
