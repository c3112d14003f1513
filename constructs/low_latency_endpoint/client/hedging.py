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
from typing import TypeVar

from ..plan.durations import seconds_of
from .client_timing import CLIENT_DURATION, HEDGE_PERCENTILE, HEDGE_SHARE, Budget, ClientCounts

T = TypeVar("T")

_WINDOW = 1_000  # most recent calls that the percentile is of
_ENOUGH = 100  # below this a percentile says nothing
_RECOMPUTE_EVERY = 50


@dataclass(frozen=True, kw_only=True)
class Hedging:
    """When to send a call twice.

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
        #: How long to wait for the first answer before a second is asked for.
        self.delay_seconds = (hedging.delay or latency_target).total_seconds()

    def start_anew(self) -> None:
        """In a forked child: a thread of the parent's may have held a lock."""
        self._lock = threading.Lock()
        self._budget = Budget(self._hedging.budget, reserve=1)

    def record(self, seconds: float) -> None:
        """Count a call and its latency."""
        self._budget.earn()
        if self._hedging.delay is not None:
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


def hedged_in_threads(
    call: Callable[[], T], hedging: HedgingState, threads: ThreadPoolExecutor
) -> T:
    """The first good result of one or two calls; the later one runs to its end and is dropped.

    When both fail, the first call's own error is raised.
    """
    started = time.monotonic()
    first = threads.submit(call)
    try:
        done, _ = wait((first,), hedging.delay_seconds)
        if done or not hedging.allow():
            return first.result()
        second = threads.submit(call)
        winner = first_good(first, second)
        if winner is second:
            hedging.won()
        return winner.result()
    finally:
        hedging.record(time.monotonic() - started)


def first_good(first: Future[T], second: Future[T]) -> Future[T]:
    """The first of two to end well; the first one when both fail."""
    done, waiting = wait((first, second), return_when=FIRST_COMPLETED)
    for future in (*(one for one in (first, second) if one in done), *waiting):
        if future.exception() is None:  # waits for the one that is still under way
            return future
    return first


async def hedged_in_tasks(call: Callable[[], Awaitable[T]], hedging: HedgingState) -> T:
    """The first good result of one or two calls; the other is cancelled.

    When both fail, the first call's own error is raised.
    """
    started = time.monotonic()
    tasks = [asyncio.ensure_future(call())]
    try:
        done, _ = await asyncio.wait(tasks, timeout=hedging.delay_seconds)
        if not done and hedging.allow():
            tasks.append(asyncio.ensure_future(call()))
            waiting = set(tasks)
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                good = [task for task in tasks if task in done and task.exception() is None]
                if good:
                    if good[0] is tasks[1]:
                        hedging.won()
                    return good[0].result()
        return await tasks[0]
    finally:
        hedging.record(time.monotonic() - started)
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # seen, so that asyncio does not complain of it later
            task.cancel()
