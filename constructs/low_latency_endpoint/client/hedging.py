"""Hedged requests: a second copy of a call that is slower than most, within a budget.

A call that has not answered after the chosen percentile of recent calls is sent once more; the
first answer wins. It cuts the tail that single slow instances cause, costs a few per cent more
load, and is off unless asked for. Never for calls that are not idempotent.

Idea and numbers: Dean and Barroso, "The Tail at Scale", CACM 56(2), 2013.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from ..facts.durations import seconds_of
from .client_timing import CLIENT_DURATION, HEDGE_PERCENTILE, HEDGE_SHARE, Budget, ClientCounts

T = TypeVar("T")
Watch = Callable[[Any], None]
Moment = Future[float] | asyncio.Future[float]  # of the first sending, by time.monotonic()

_WINDOW = 1_000  # most recent calls that the percentile is of
_ENOUGH = 100  # below this a percentile says nothing
_RECOMPUTE_EVERY = 50
_MOST_THREADS = 20_000  # two for each of the most calls at a moment


@dataclass(frozen=True, kw_only=True)
class Hedging:
    """When to send a call twice; its time counts from its sending, when the connection is there.

    boto3's client does not tell that: its calls count from their beginning.

    Parameters
    ----------
    budget : float, optional
        Share of calls that may be sent twice; 0.05 by default. Beyond it calls just wait.
    percentile : float, optional
        A call is sent again when it takes longer than this percentile of the last 1,000; 95 by
        default. Until 100 calls are known, the client's latency target takes its place.
    delay : timedelta, optional
        A fixed time instead of a percentile.

    Raises
    ------
    ConfigurationError
        ``LLC101``, ``LLC105`` or ``LLC106``.

    Examples
    --------
    >>> Hedging(budget=0.02, percentile=99)
    Hedging(budget=0.02, percentile=99, delay=None)
    """

    budget: float = 0.05
    percentile: float = 95
    delay: timedelta | None = None

    def __post_init__(self) -> None:
        HEDGE_SHARE.check(self.budget, "hedging budget")
        HEDGE_PERCENTILE.check(self.percentile, "hedging percentile")
        if self.delay is not None:
            CLIENT_DURATION.check(seconds_of(self.delay, "hedging delay") * 1000, "hedging delay")


class HedgingState:
    """One client's recent latencies and what is left of its budget; safe across threads."""

    def __init__(self, hedging: Hedging, latency_target: timedelta, counts: ClientCounts) -> None:
        self._hedging = hedging
        self._counts = counts
        self._budget = Budget(hedging.budget, reserve=1)
        self._lock = threading.Lock()
        self._window: list[float] = []
        self._next = 0
        #: How long to wait from the first sending before a second copy goes out.
        self.delay_seconds = (hedging.delay or latency_target).total_seconds()

    def start_anew(self) -> None:
        """In a forked child: a thread of the parent's may have held a lock."""
        self._lock = threading.Lock()
        self._budget = Budget(self._hedging.budget, reserve=1)

    def record(self, seconds: float | None) -> None:
        """Count a call, and its latency; one that was not sent has none."""
        self._budget.earn()
        if self._hedging.delay is not None or seconds is None:
            return
        with self._lock:
            if len(self._window) < _WINDOW:
                self._window.append(seconds)
            else:
                self._window[self._next % _WINDOW] = seconds
            self._next += 1
            if len(self._window) >= _ENOUGH and self._next % _RECOMPUTE_EVERY == 0:
                ordered = sorted(self._window)
                rank = int(len(ordered) * self._hedging.percentile / 100)
                self.delay_seconds = ordered[min(rank, len(ordered) - 1)]

    def allow(self) -> bool:
        """Take one hedged request from the budget."""
        if self._budget.spend():
            self._counts.add("hedges")
            return True
        return False

    def won(self) -> None:
        """The second copy answered first."""
        self._counts.add("hedges_won")


def hedging_threads() -> ThreadPoolExecutor:
    """Threads for as many calls as there are: one that waits for a thread would look late."""
    return ThreadPoolExecutor(_MOST_THREADS, "hedging")


class RaceLost(Exception):
    """Ends a racer whose result nobody waits for."""


class Claim:
    """The connection of one copy of a call, so that another thread can end it."""

    def __init__(self, sent: Moment) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        self._lost = False
        self._note = noting(sent)

    def watch(self, connection: Any) -> None:
        """Take note of the connection before the request goes out on it."""
        with self._lock:
            if connection is not None and self._lost:
                connection.abort()
                raise RaceLost
            self._connection = connection
        self._note(connection)

    def cancel(self) -> None:
        """End what the copy has begun, and let it begin nothing more."""
        with self._lock:
            self._lost = True
            if self._connection is not None:
                self._connection.interrupt()


def noting(sent: Moment) -> Watch:
    """For :attr:`.call_attempts.Attempts.watch`: note when a request first goes out."""

    def watch(connection: Any) -> None:
        if connection is not None and not sent.done():
            sent.set_result(time.monotonic())

    return watch


def _since(sent: Moment) -> float | None:
    return time.monotonic() - sent.result() if sent.done() else None


def hedged_in_threads(
    call: Callable[[Claim], T],
    hedging: HedgingState,
    threads: ThreadPoolExecutor,
    drop: Callable[[Claim, Future[T]], None] = lambda *_: None,
) -> T:
    """The first good result of one or two calls; the other is dropped, or runs to its end.

    When both fail, the first call's own error is raised.
    """
    sent: Future[float] = Future()
    claims = [Claim(sent)]
    futures = [threads.submit(call, claims[0])]
    either: tuple[Future[Any], ...] = (*futures, sent)
    kept: Future[T] | None = None
    try:
        wait(either, return_when=FIRST_COMPLETED)
        done, _ = wait(futures, hedging.delay_seconds)
        winner = futures[0]
        if not done and hedging.allow():
            claims.append(Claim(sent))
            futures.append(threads.submit(call, claims[1]))
            winner = first_good(*futures)
            if winner is futures[1]:
                hedging.won()
        result = winner.result()
        kept = winner
        return result
    finally:
        hedging.record(_since(sent))
        for claim, future in zip(claims, futures, strict=True):
            if future is not kept:
                drop(claim, future)


def first_good(first: Future[T], second: Future[T]) -> Future[T]:
    """The first of two to end well; the first one when both fail."""
    done, waiting = wait((first, second), return_when=FIRST_COMPLETED)
    for future in (*(one for one in (first, second) if one in done), *waiting):
        if future.exception() is None:  # waits for the one that is still under way
            return future
    return first


async def hedged_in_tasks(
    call: Callable[[Watch], Awaitable[T]],
    hedging: HedgingState,
    full: Callable[[], bool],
    drop: Callable[[asyncio.Future[T]], Any] = lambda task: task.cancel(),
) -> T:
    """As :func:`hedged_in_threads`; no second copy waits: not while the connections are ``full``."""
    sent: asyncio.Future[float] = asyncio.get_running_loop().create_future()
    tasks = [asyncio.ensure_future(call(noting(sent)))]
    either: tuple[asyncio.Future[Any], ...] = (*tasks, sent)
    kept: asyncio.Future[T] | None = None
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        done, _ = await asyncio.wait(tasks, timeout=hedging.delay_seconds)
        winner = tasks[0]
        if not done and not full() and hedging.allow():
            tasks.append(asyncio.ensure_future(call(noting(sent))))
            waiting = set(tasks)
            while waiting:
                _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                good = [task for task in tasks if task not in waiting and not task.exception()]
                if good:
                    winner = good[0]
                    break
            if winner is tasks[1]:
                hedging.won()
        result = await winner
        kept = winner
        return result
    finally:
        hedging.record(_since(sent))
        for task in tasks:
            failed = task.done() and (task.cancelled() or task.exception() is not None)
            if task is not kept and not failed:
                drop(task)
