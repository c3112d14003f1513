"""The thread with an event loop that a server runs in."""

from __future__ import annotations

import asyncio
import errno
import logging
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
_SILENT_SECONDS = 60.0
logger = logging.getLogger(__name__)


class LoopThread:
    """Runs coroutines for other threads."""

    def __init__(
        self,
        begin: Callable[[], Coroutine[Any, Any, None]],
        end: Callable[[], Coroutine[Any, Any, None]],
        make_room: Callable[[asyncio.AbstractEventLoop], None],
    ) -> None:
        self._begin = begin
        self._end = end
        self._make_room = make_room  # when no file is free for a connection
        self._told_of_files = -_SILENT_SECONDS
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
                loop.set_exception_handler(self._explain)
                self._thread = threading.Thread(
                    target=self._serve, args=(loop,), name="local-runtime", daemon=True
                )
                self._thread.start()
                asyncio.run_coroutine_threadsafe(self._begin(), loop).result(30)
                self._loop = loop
            return self._loop

    @staticmethod
    def _serve(loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()

    def _explain(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a mistake; that no file is free for a connection, which comes by the thousand, once."""
        if getattr(context.get("exception"), "errno", None) not in (errno.EMFILE, errno.ENFILE):
            loop.default_exception_handler(context)
            return
        self._make_room(loop)
        if time.monotonic() > self._told_of_files + _SILENT_SECONDS:
            self._told_of_files = time.monotonic()
            logger.warning("No more connections: this process may open no more files (ulimit -n).")

    def run(self, work: Coroutine[Any, Any, T], timeout: float | None = 60.0) -> T:
        """Run in the loop and wait; starts the thread when it does not run yet."""
        return asyncio.run_coroutine_threadsafe(work, self._started()).result(timeout)

    def stop(self) -> None:
        """End everything in the loop, and the thread. Stopping twice is no error."""
        with self._starting:
            loop, self._loop = self._loop, None
            thread = self._thread
        if loop is None or thread is None or sys.is_finalizing():  # then no thread runs any more
            return
        asyncio.run_coroutine_threadsafe(self._last(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=10)
        loop.close()

    async def _last(self) -> None:
        await self._end()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.get_running_loop().shutdown_default_executor()
