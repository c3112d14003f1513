"""Threads that nobody has to wait for: neither who started them, nor the interpreter at its end.

An executor of ``concurrent.futures`` keeps the process until its last call has ended, and takes no
new one once the main thread has ended, although other threads work on.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Work = tuple[Callable[[], Any], "Future[Any]"]


class DaemonThreads:
    """As many threads as calls are under way; idle ones take the next calls. Safe across threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._closed = False
        # Of one that nobody closes. SimpleQueue.put() may be called from the garbage collector.
        weakref.finalize(self, self._work.put, None).atexit = False

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run a call in a thread, or in this one where there is none; its future."""
        future: Future[T] = Future()
        with self._lock:
            takes_it = not self._closed and self._has_thread()
            if takes_it:
                self._work.put((call, future))
        if not takes_it:
            _run(call, future)
        return future

    def close(self) -> None:
        """End the threads when their calls have ended."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._work.put(None)

    def _has_thread(self) -> bool:
        """Whether an idle thread, or a new one, waits for one more call."""
        if self._idle.acquire(blocking=False):
            return True
        return start_daemon(partial(_serve, self._work, self._idle), self._name)


def start_daemon(call: Callable[[], object], name: str) -> bool:
    """Run a call in a thread of its own; false where none can be started.

    That is so at the interpreter's end, and when the system has no more threads.
    """
    try:
        threading.Thread(target=call, name=name, daemon=True).start()
    except RuntimeError:
        return False
    return True


def _serve(work: SimpleQueue[_Work | None], idle: threading.Semaphore) -> None:
    while (item := work.get()) is not None:
        _run(*item)
        del item  # the call and its answer may go
        idle.release()
    work.put(None)  # for the next thread


def _run(call: Callable[[], T], future: Future[T]) -> None:
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
    finally:
        del call, future  # an error's traceback would hold them, and the future the error
