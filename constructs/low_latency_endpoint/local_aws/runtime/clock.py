"""The runtime's clock: the machine's, faster, or standing still until a test moves it."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import threading
import time
from datetime import UTC, datetime

__all__ = ["Clock"]


class Clock:
    """Time as the runtime's waits and its metrics see it.

    Cold starts, health-check timeouts, deployments, cooldowns and alarms follow this clock; the
    milliseconds of a request are always real.

    Parameters
    ----------
    speed
        Seconds of this clock per real second; 0 stands still until `advance`. By default 1.
    start
        Where it starts, in seconds since 1970; by default now.

    Examples
    --------
    >>> clock = Clock(speed=0, start=1000.0)
    >>> clock.advance(60)
    >>> clock.now()
    1060.0
    """

    def __init__(self, speed: float = 1.0, start: float | None = None) -> None:
        if speed < 0:
            raise ValueError(f"a clock does not run backwards: speed {speed}")
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
        """Run at another speed from now on."""
        if speed < 0:
            raise ValueError(f"a clock does not run backwards: speed {speed}")
        with self._lock:
            self._base, self._since, self._speed = self.now(), time.monotonic(), speed
            self._wake(all_of_them=True)

    def advance(self, seconds: float) -> None:
        """Jump ahead; whoever waits for a moment up to there goes on."""
        if seconds < 0:
            raise ValueError(f"a clock does not run backwards: {seconds} s")
        with self._lock:
            self._base += seconds
            self._wake(all_of_them=False)

    def _wake(self, *, all_of_them: bool) -> None:
        while self._waiting and (all_of_them or self._waiting[0][0] <= self.now()):
            _, _, loop, event = heapq.heappop(self._waiting)
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)

    async def sleep(self, seconds: float) -> None:
        """Wait for seconds of this clock."""
        await self.sleep_until(self.now() + seconds)

    async def sleep_until(self, moment: float) -> None:
        """Wait until a moment of this clock."""
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
