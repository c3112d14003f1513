"""Every ten seconds of the clock something is due; none is left out, however fast the clock is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from .clock import Clock

__all__ = ["TICK", "Ticks"]

logger = logging.getLogger(__name__)

TICK = 10.0
"""Seconds: the finest period of SageMaker's metrics and of the alarms on them."""


class Ticks:
    """Runs the work of each tick in order, once.

    Parameters
    ----------
    clock
        The runtime's.
    work
        Gets the moment of the tick, a multiple of ten seconds.
    """

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
        """Go on for ever."""
        while True:
            await self._clock.sleep_until(self._next)
            await self.caught_up()
