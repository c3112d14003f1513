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
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from botocore.exceptions import ClientError

from .arguments import checked_class, duration, milliseconds
from .daemon_threads import DaemonThreads
from .event_loops import run_without_loop
from .timing import CLIENT_DURATION, HEDGE_PERCENTILE, HEDGE_SHARE, THROTTLES, Budget, ClientCounts

T = TypeVar("T")

_WINDOW = 1_000  # most recent calls that the percentile is of
_ENOUGH = 100  # below this a percentile says nothing
_RECOMPUTE_EVERY = 50
_FINAL_STATUS = frozenset({400, 403, 404, 413})


@checked_class
@dataclass(frozen=True, kw_only=True)
class Hedging:
    """When to send a call twice; its time counts from its sending, when the connection is there.

    Parameters
    ----------
    budget : float, optional
        Share of calls that may be sent twice; 0.05 by default. Beyond it calls just wait.
    percentile : float, optional
        A call is sent again when it takes longer than this percentile of the last 1,000; 95 by
        default. Until 100 calls are known, the client's latency target takes its place.
    delay : timedelta or str, optional
        A fixed time instead of a percentile; text such as ``30ms``.

    Raises
    ------
    ConfigurationError
        ``LLC101``, ``LLC105``, ``LLC106``, ``LLC120``, ``LLC121`` or ``LLC125``.

    Examples
    --------
    >>> Hedging(budget=0.02, percentile=99)
    Hedging(budget=0.02, percentile=99, delay=None)
    """

    budget: float = 0.05
    percentile: float = 95
    delay: timedelta | str | None = None

    def __post_init__(self) -> None:
        HEDGE_SHARE.check(self.budget, "budget")
        HEDGE_PERCENTILE.check(self.percentile, "percentile")
        if self.delay is not None:
            CLIENT_DURATION.check(milliseconds(self.delay, "delay"), "delay")


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
        self.delay_seconds = duration(hedging.delay or latency_target, "delay").total_seconds()

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


class RaceLost(Exception):
    """Ends a racer whose result nobody waits for."""


class Claim:
    """One copy of a call: when a request first went out, and its connection, to end it by."""

    def __init__(self, sent: Any) -> None:
        self._lock = threading.Lock()
        self._connection: Any = None
        self._lost = False
        self._sent = sent

    def watch(self, connection: Any) -> None:
        """For :attr:`.call_attempts.Attempts.watch`: before a request goes out."""
        with self._lock:
            if connection is not None and self._lost:
                connection.abort()
                raise RaceLost
            self._connection = connection
        if connection is not None and not self._sent.done():
            self._sent.set_result(time.monotonic())

    def doubt(self) -> None:
        """Have the other copy go where its peer is known to be alive."""
        with self._lock:
            if self._connection is not None:
                self._connection.doubt()

    def cancel(self) -> None:
        """End what the copy has begun, and let it begin nothing more."""
        with self._lock:
            self._lost = True
            if self._connection is not None:
                self._connection.interrupt()


class ThreadRace:
    """Copies run in threads; one whose answer nobody needs any more runs to its end."""

    future: Callable[[], Any] = Future

    def __init__(self) -> None:
        # For as many calls as there are: one that waits for a thread would look late.
        self._threads = DaemonThreads("hedging")

    def start(self, copy: Coroutine[Any, Any, T]) -> Any:
        """Begin a copy; its future."""
        return self._threads.submit(partial(run_without_loop, copy))

    async def first(self, copies: Iterable[Any], seconds: float | None = None) -> None:
        """Wait until one is done."""
        wait(copies, seconds, FIRST_COMPLETED)

    def drop(self, claim: Claim, copy: Any) -> None:
        """Let it run: its connection is kept when it has its answer."""

    def hang_up(self, claim: Claim, copy: Any) -> None:
        """Close its connection now."""
        claim.cancel()

    def close(self) -> None:
        """Begin nothing more."""
        self._threads.close()


class TaskRace:
    """Copies run as tasks of the running event loop, and are cancelled."""

    def future(self) -> Any:
        """One that a :class:`Claim` sets."""
        return asyncio.get_running_loop().create_future()

    def start(self, copy: Coroutine[Any, Any, T]) -> Any:
        """Begin a copy; its future."""
        return asyncio.ensure_future(copy)

    async def first(self, copies: Iterable[Any], seconds: float | None = None) -> None:
        """Wait until one is done."""
        await asyncio.wait(copies, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)

    def drop(self, claim: Claim, copy: Any) -> None:
        """Its connection is closed at the loop's next turn."""
        copy.cancel()

    hang_up = drop

    def close(self) -> None:
        """The event loop ends its tasks."""


async def hedged(
    call: Callable[[Claim], Coroutine[Any, Any, T]],
    hedging: HedgingState,
    race: ThreadRace | TaskRace,
    is_full: Callable[[], bool],
    drop: Callable[[Claim, Any], None] | None = None,
) -> T:
    """Return the first good result of one or two calls; the other is dropped.

    An error that the other copy would get as well, such as a wrong name, is raised at once. When
    both fail, the first call's own error is raised. No second copy waits: none is made while
    the connections are full.
    """
    sent = race.future()
    claims = [Claim(sent)]
    copies = [race.start(call(claims[0]))]
    kept = None
    try:
        await race.first((*copies, sent))
        await race.first(copies, hedging.delay_seconds)
        if not copies[0].done() and not is_full() and hedging.allow():
            claims[0].doubt()
            claims.append(Claim(sent))
            copies.append(race.start(call(claims[1])))
        winner = await _first_decided(copies, race)
        if winner is not copies[0] and not _failed(winner):
            hedging.won()
        result: T = winner.result()
        kept = winner
        return result
    finally:
        hedging.record(time.monotonic() - sent.result() if sent.done() else None)
        for claim, copy in zip(claims, copies, strict=True):
            if copy is not kept and not _failed(copy):
                (drop or race.drop)(claim, copy)


async def _first_decided(copies: list[Any], race: ThreadRace | TaskRace) -> Any:
    """Return the first copy that ends well or with a final error; the first copy when all fail."""
    waiting = copies
    while waiting:
        await race.first(waiting)
        for copy in copies:
            if copy.done() and (not _failed(copy) or _is_final(copy)):
                return copy
        waiting = [copy for copy in copies if not copy.done()]
    return copies[0]


def _is_final(copy: Any) -> bool:
    """Return whether a copy failed with an error of the request, which every instance gives."""
    error = None if copy.cancelled() else copy.exception()
    if not isinstance(error, ClientError):
        return False
    # An error inside a stream has no status.
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status in _FINAL_STATUS and error.response["Error"].get("Code") not in THROTTLES


def _failed(copy: Any) -> bool:
    return copy.done() and (copy.cancelled() or copy.exception() is not None)


async def raced(
    begin: Callable[[Claim], Coroutine[Any, Any, T]],
    hedging: HedgingState,
    race: ThreadRace | TaskRace,
    is_full: Callable[[], bool],
    counts: ClientCounts,
) -> T:
    """The generation whose first token comes first, of one or two; the other is hung up on.

    Hedging a generation costs more than hedging a call: both instances' accelerators work until one
    hears that nobody listens any more, if it ever does (no page of AWS's says that SageMaker passes
    a caller's hang-up on). So it happens on request only, and ends with the first token.
    """

    def drop(claim: Claim, copy: Any) -> None:
        counts.add("generations_cancelled")
        race.hang_up(claim, copy)
        # Its first token may have come as well.
        copy.add_done_callback(lambda copy: _failed(copy) or copy.result().close())

    return await hedged(begin, hedging, race, is_full, drop)
