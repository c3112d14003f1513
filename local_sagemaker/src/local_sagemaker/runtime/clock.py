"""The runtime's clock: the machine's, faster, or standing still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

FASTEST = 10_000.0
"""The highest speed: each tick of ten seconds is worked on its own, however fast the clock is."""
LONGEST_JUMP = 86_400.0  # seconds: the most that one `advance` takes, for the same reason
_LATEST = 253_402_300_799.0  # the end of the year 9999, after which there are no dates


class Clock:
    """Time as the runtime's waits and its metrics see it.

    Cold starts, health-check timeouts, deployments, cooldowns and alarms follow this clock; the
    milliseconds of a request are always real.

    Examples
    --------
    >>> clock = Clock(speed=0, start=1000.0)
    >>> clock.advance(60)
    >>> clock.now()
    1060.0
    """

    def __init__(self, speed: float = 1.0, start: float | None = None) -> None:
        check_clock(speed, start)
        self._lock = threading.Lock()
        self._speed = speed
        self._base = time.time() if start is None else start
        self._since = time.monotonic()
        self._waiting: list[tuple[float, int, asyncio.AbstractEventLoop, asyncio.Event]] = []
        self._numbers = itertools.count()

    @property
    def speed(self) -> float:
        """Seconds of this clock per real second."""
        return self._speed

    def now(self) -> float:
        """Give seconds since 1970."""
        return self._base + (time.monotonic() - self._since) * self._speed

    def moment(self) -> datetime:
        """Give the present as the services' records have it."""
        return datetime.fromtimestamp(self.now(), UTC)

    def set_speed(self, speed: float) -> None:
        check_clock(speed)
        with self._lock:
            self._base, self._since, self._speed = self.now(), time.monotonic(), speed
            self._wake(all_of_them=True)

    def advance(self, seconds: float) -> None:
        """Jump ahead; whoever waits for a moment up to there goes on."""
        self.check_jump(seconds)
        with self._lock:
            self._base += seconds
            self._wake(all_of_them=False)

    def check_jump(self, seconds: float) -> None:
        """Refuse a jump that no `advance` takes."""
        if not 0 <= seconds <= LONGEST_JUMP:  # NaN too
            raise ValueError(
                "a clock does not run backwards, nor further than a day at a time: "
                f"0 to {LONGEST_JUMP:.0f} s, not {seconds}"
            )
        if self.now() + seconds > _LATEST:
            raise ValueError(f"there are no dates after the year 9999: {seconds} s from now")

    def _wake(self, *, all_of_them: bool) -> None:
        while self._waiting and (all_of_them or self._waiting[0][0] <= self.now()):
            _, _, loop, event = heapq.heappop(self._waiting)
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def sleep(self, seconds: float) -> None:
        await self.sleep_until(self.now() + seconds)

    async def sleep_until(self, moment: float) -> None:
        loop = asyncio.get_running_loop()
        while True:
            event = asyncio.Event()
            with self._lock:
                left = moment - self.now()
                if left <= 0:
                    return
                timeout = left / self._speed if self._speed else None
                entry = (moment, next(self._numbers), loop, event)
                heapq.heappush(self._waiting, entry)
            try:
                await asyncio.wait_for(event.wait(), timeout)
            except TimeoutError:
                continue
            finally:
                with self._lock:
                    if entry in self._waiting:
                        self._waiting.remove(entry)
                        heapq.heapify(self._waiting)


def check_clock(speed: float, start: float | None = None) -> None:
    """Refuse what no clock can have."""
    if not 0 <= speed <= FASTEST:  # NaN too
        raise ValueError(
            f"a clock does not run backwards, nor faster than {FASTEST:.0f} times: speed {speed}"
        )
    if start is not None and not 0 <= start <= _LATEST - LONGEST_JUMP:
        raise ValueError(f"a clock starts between 1970 and 9999: {start} s after 1970")


logger = logging.getLogger(__name__)

TICK = 10.0  # seconds: the finest period of SageMaker's metrics and of the alarms on them


class Ticks:
    """Runs the work of each tick in order, once."""

    def __init__(self, clock: Clock, work: Callable[[float], Awaitable[None]]) -> None:
        self._clock = clock
        self._work = work
        self._next = (clock.now() // TICK + 1) * TICK
        self._lock = asyncio.Lock()

    async def caught_up(self) -> None:
        """Do the work of every tick up to now."""
        until = self._clock.now()
        async with self._lock:
            while self._next <= until:
                at, self._next = self._next, self._next + TICK
                try:
                    await self._work(at)
                except Exception:
                    # One bad tick must not end all later ones.
                    logger.exception("the tick of %s failed", at)

    async def run(self) -> None:
        while True:
            await self._clock.sleep_until(self._next)
            await self.caught_up()
