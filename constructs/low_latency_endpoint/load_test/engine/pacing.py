"""Waking at the right moment, in gevent, whose own timers are rounded to the millisecond."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
from gevent.hub import get_hub

perf_counter = time.perf_counter
#: Moments acted on before the loop looks at sockets again.
_AT_ONCE = 64
_CLOCK_MONOTONIC, _ABSOLUTE, _NONBLOCKING = 1, 1, os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)


class _Moment(ctypes.Structure):
    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class Pacer:
    """Acts at moments of ``time.perf_counter()``."""

    def __init__(self) -> None:
        self._file = -1
        self._waiting: Any = None
        self._wake: Callable[[], None] = self._resume
        self._cancelled = False
        clock = time.get_clock_info("perf_counter").implementation
        if sys.platform == "linux" and "CLOCK_MONOTONIC" in clock:
            self._library = ctypes.CDLL(None, use_errno=True)
            self._file = self._library.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCKING)
        if self._file >= 0:
            self._moment = _Moment()
            self._watcher = get_hub().loop.io(self._file, 1)
            self._watcher.start(self._fired)

    def wait_until(self, moment: float) -> None:
        """Return at the moment, at once when it has passed."""
        left = moment - perf_counter()
        if left <= 0:
            return
        if self._file < 0:
            gevent.sleep(left)
            return
        self._wake = self._resume
        self._arm(moment)
        self._pause()

    def act_at(self, moments: Iterator[float], act: Callable[[float], None]) -> None:
        """Call ``act``, which must not wait, with each moment when it has come."""
        if self._file < 0:
            for each in moments:
                self.wait_until(each)
                if self._cancelled:
                    return
                get_hub().loop.run_callback(act, each)
            return
        moment: float | None = next(moments, None)
        problem: list[BaseException] = []

        def act_on_due() -> None:
            nonlocal moment
            try:
                for _ in range(_AT_ONCE):
                    if self._cancelled:
                        moment = None
                    if moment is None or moment > perf_counter():
                        break
                    act(moment)
                    moment = next(moments, None)
            except Exception as error:
                problem.append(error)
                moment = None
            if moment is None:
                self._resume()
            else:
                self._arm(moment)

        if moment is not None and not self._cancelled:
            self._wake = act_on_due
            self._arm(moment)
            self._pause()
        if problem:
            raise problem[0]

    def cancel(self) -> None:
        """Let :meth:`act_at` return, and act no more."""
        self._cancelled = True
        if self._file >= 0 and self._waiting is not None:
            self._arm(perf_counter())

    def _arm(self, moment: float) -> None:
        """Wake at a moment; one that has passed wakes at once."""
        timer = self._moment
        timer.seconds = int(moment)
        timer.nanoseconds = int(moment % 1 * 1e9)
        self._library.timerfd_settime(self._file, _ABSOLUTE, ctypes.byref(timer), None)

    def _pause(self) -> None:
        self._waiting = gevent.getcurrent()
        try:
            get_hub().switch()
        finally:
            self._waiting = None

    def _resume(self) -> None:
        if self._waiting is not None:
            self._waiting.switch()

    def _fired(self) -> None:
        try:
            os.read(self._file, 8)
        except BlockingIOError:
            return
        self._wake()

    def close(self) -> None:
        """Give the timer back."""
        if self._file >= 0:
            self._watcher.stop()
            self._watcher.close()
            os.close(self._file)
            self._file = -1
