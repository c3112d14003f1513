"""What the servers that compute nothing have in common: settings, a cold start, work to give up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from .specifications import LanguageModelServer, SimulatedModelServer

Settings = TypeVar("Settings", LanguageModelServer, SimulatedModelServer)


class InstanceTask(Generic[Settings]):
    """One instance's server, at its place in the variant; `sleep` waits by the runtime's clock."""

    def __init__(
        self,
        settings: Settings,
        place: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings: Settings = settings
        self._slowness = settings.slow_instances.get(place, 1.0)
        self._place = place
        self._random = random.Random(f"{settings.seed}/{place}")
        self._sleep = sleep
        self._ready = settings.cold_start == 0
        self._tasks: set[asyncio.Task[None]] = set()

    def change(self, settings: Settings) -> None:
        """Behave otherwise from now on; it stays as warm as it is."""
        self._settings = settings
        self._slowness = settings.slow_instances.get(self._place, 1.0)

    def start(self) -> None:
        if not self._ready:
            self._begin(self._warm())

    async def _warm(self) -> None:
        await self._sleep(self._settings.cold_start)
        self._ready = True

    def _begin(self, work: Awaitable[None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def stop(self) -> None:
        """Give up the cold start and whatever is under way."""
        for task in self._tasks:
            task.cancel()
