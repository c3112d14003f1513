"""A thread with an event loop, started when it is first needed."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines for other threads."""

    def __init__(
        self, begin: Callable[[], Awaitable[None]], end: Callable[[], Awaitable[None]]
    ) -> None:
        self._begin = begin
        self._end = end
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def runs(self) -> bool:
        """Whether it has been started and not been stopped."""
        return self._loop is not None

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._serve, args=(loop,), name="local-runtime", daemon=True
                )
                self._thread.start()
                asyncio.run_coroutine_threadsafe(self._first(), loop).result(30)
                self._loop = loop
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()

    async def _first(self) -> None:
        await self._begin()

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = 60.0) -> T:
        """Run in the loop and wait; starts the thread when it does not run yet."""
        return asyncio.run_coroutine_threadsafe(work, self._started()).result(timeout)

    def stop(self) -> None:
        """End everything in the loop, and the thread. Stopping twice is no error."""
        with self._starting:
            loop, self._loop = self._loop, None
        if loop is None or sys.is_finalizing():  # then no thread runs any more
            return
        asyncio.run_coroutine_threadsafe(self._last(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        assert self._thread is not None
        self._thread.join(timeout=10)
        loop.close()

    async def _last(self) -> None:
        await self._end()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_default_executor()
