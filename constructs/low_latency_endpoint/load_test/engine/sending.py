"""Sends the requests of one step from one process, each at its moment, and records what came of them."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import resource
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

import gevent
from gevent.event import Event
from gevent.hub import get_hub

from .arrivals import Arrivals
from .latencies import LatencyHistogram
from .measurement import CHECK_FAILED, NO_ANSWER, Invocation, Measurement, TokenResult
from .steps import MOST_CALLERS, Step
from .target import TokenLimits

perf_counter = time.perf_counter
_OTHER_FILES = 100
_LOOP_TICK = 0.020
_DRAIN_RESERVE = 5.0
_LATE_SENDS = 0.25  # the last requests of a step may start a little late, as all others may
#: Moments acted on before the loop looks at sockets again.
_AT_ONCE = 64
_CLOCK_MONOTONIC, _ABSOLUTE, _NONBLOCKING = 1, 1, os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)


class Pacer:
    """Acts at moments of ``time.perf_counter()``; gevent's own timers round to the millisecond."""

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
            # struct itimerspec: seconds and nanoseconds of an interval, and of the moment.
            self._moment = (ctypes.c_long * 4)()
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
            for act_time in moments:
                self.wait_until(act_time)
                if self._cancelled:
                    return
                get_hub().loop.run_callback(act, act_time)
            gevent.sleep(0)  # until the last one is acted on
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
        timer[2], timer[3] = int(moment), int(moment % 1 * 1e9)
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


class StepRun:
    """One step in one process."""

    def __init__(
        self,
        step: Step,
        invoke: Callable[[int], Invocation],  # sends request number n, and waits for its answer
        start: float,
        *,
        part: int = 0,
        parts: int = 1,
        timeout_seconds: float = 60.0,
        streaming: bool = False,
        tokens: TokenLimits | None = None,
    ) -> None:
        self.step = step
        self._invoke = invoke
        self._start, self._part, self._parts = start, part, parts
        self._counts_from = start + step.settle_seconds
        self._end = start + step.seconds
        self._last_send = self._end + _LATE_SENDS
        self._timeout, self._streaming, self._tokens = timeout_seconds, streaming, tokens
        self.records = self._nothing()
        self._most_callers = callers_allowed()
        self._interval, self._interval_cpu = self._nothing(), time.process_time()
        self._interval_since = start
        self._counted_since = perf_counter(), self._interval_cpu
        self._wakes_at = self._counts_from  # when the loop is to wake the watcher
        self._callers: list[Any] = []
        self._idle: list[Any] = []
        self._postponed: deque[tuple[float, int]] = deque()
        self._under_way = 0
        self._all_answered = Event()
        self._pacer: Pacer | None = None

    def run(self) -> Measurement:
        """Send everything, wait for the answers, and return the records."""
        self._pacer = pacer = Pacer()
        watcher = gevent.spawn(self._watch)
        try:
            if self.step.arrivals is not None:
                self._send_arrivals(pacer)
            else:
                self._send_in_turn(pacer)
        finally:
            self._pacer = None
            pacer.close()  # first, as killing lets the loop run
            gevent.killall([*self._callers, watcher])
        self.records.memory_bytes = _resident_bytes()
        return self.records

    def stop(self) -> None:
        """Send no more; :meth:`run` returns when what is under way is answered."""
        self._end = min(self._end, perf_counter())
        self._last_send = self._end + _LATE_SENDS
        if self._pacer is not None:
            self._pacer.cancel()

    def _nothing(self) -> Measurement:
        return Measurement(
            processes=1,
            first_byte=LatencyHistogram() if self._streaming else None,
            tokens=TokenResult() if self._tokens is not None else None,
        )

    def take_interval(self) -> tuple[Measurement, float]:
        """What happened since the last time this was asked, and how long that was."""
        now, cpu = perf_counter(), time.process_time()
        taken, seconds = self._interval, max(now - self._interval_since, 1e-9)
        taken.cpu_seconds = cpu - self._interval_cpu
        taken.cpu_share = taken.cpu_seconds / seconds
        self._interval, self._interval_since, self._interval_cpu = self._nothing(), now, cpu
        return taken, seconds

    # --- open loop -----------------------------------------------------------------------------
    def _send_arrivals(self, pacer: Pacer) -> None:
        arrivals = cast(Arrivals, self.step.arrivals)
        start, records, counts_from = self._start, self.records, self._counts_from
        idle, callers, postponed = self._idle, self._callers, self._postponed
        number = self._part - self._parts

        def send(due: float) -> None:
            nonlocal number
            number += self._parts
            if due >= counts_from:
                records.intended += 1
            self._interval.intended += 1
            self._under_way += 1
            if idle:
                idle.pop().switch((due, number))
            elif len(callers) < self._most_callers:
                callers.append(gevent.spawn(self._call, (due, number)))
            else:
                records.postponed += 1
                self._interval.postponed += 1
                postponed.append((due, number))

        offsets = arrivals.offsets(
            self.step.seconds, seed=self.step.seed, part=self._part, parts=self._parts
        )
        pacer.act_at((start + offset for offset in offsets), send)
        pacer.wait_until(self._end)
        self._close_window()
        self._drain()

    def _call(self, task: tuple[float, int]) -> None:
        me, wait, postponed = gevent.getcurrent(), get_hub().switch, self._postponed
        while True:
            due, number = task
            # What could not be sent in the time of the step would load what follows.
            if perf_counter() < self._last_send:
                self._perform(due, number)
            self._under_way -= 1
            if postponed:
                task = postponed.popleft()
                continue
            if not self._under_way:
                self._all_answered.set()
            self._idle.append(me)
            task = wait()

    def _drain(self) -> None:
        """Wait for what is under way; the answers' own timeouts end it."""
        if self._under_way:
            self._all_answered.clear()
            with suppress(gevent.Timeout), gevent.Timeout(self._timeout + _DRAIN_RESERVE):
                while self._under_way:
                    self._all_answered.wait()
                    self._all_answered.clear()

    # --- closed loop ---------------------------------------------------------------------------
    def _send_in_turn(self, pacer: Pacer) -> None:
        users = cast(int, self.step.users)
        pacer.wait_until(self._start)
        for user in range(self._part, users, self._parts):
            # Callers who begin together stay together for long; within the settling time they
            # are spread out.
            spread = min(self.step.settle_seconds, 1.0) * user / users
            self._callers.append(gevent.spawn_later(spread, self._call_in_turn, user))
        pacer.wait_until(self._end)
        self._close_window()
        gevent.joinall(self._callers, timeout=self._timeout + _DRAIN_RESERVE)

    def _call_in_turn(self, user: int) -> None:
        number, users = user, self.step.users or 1
        while perf_counter() < self._end:
            self._perform(None, number)
            number += users

    # --- both ----------------------------------------------------------------------------------
    def _perform(self, due: float | None, number: int) -> None:
        begun = perf_counter()
        records, interval = self.records, self._interval
        counts = self._counts_from <= (begun if due is None else due)
        if counts:
            records.sent += 1
            if due is None:
                records.intended += 1
        if due is None:
            interval.intended += 1
        interval.sent += 1
        try:
            answer: Invocation = self._invoke(self.step.first_number + number)
        except Exception as problem:  # a fault of the client is a result too, not the run's end
            answer = Invocation.given_up(f"client {type(problem).__name__}", begun)
            answer = answer._replace(message=str(problem))
        except gevent.GreenletExit as stop:  # whoever waited has waited all the same
            self._take(Invocation.given_up(NO_ANSWER, begun, *stop.args), due, counts)
            raise
        self._take(answer, due, counts)

    def _take(self, answer: Invocation, due: float | None, counts: bool) -> None:
        """Record what became of a request that was sent."""
        records, interval = self.records, self._interval
        started, ended = answer.started, answer.ended
        if due is not None:
            interval.send_lag.record(started - due)
            if counts:
                records.send_lag.record(started - due)
        latency = ended - (started if due is None else due)
        self._record(interval, answer, latency)
        if counts:
            self._record(records, answer, latency)
        if answer.error is None and self._counts_from <= ended < self._end:
            records.answered_in_time += 1
            if answer.tokens is not None and records.tokens is not None:
                records.tokens.tokens_in_time += answer.tokens.output_tokens

    def _record(self, records: Measurement, answer: Invocation, latency: float) -> None:
        error, first_byte = answer.error, answer.first_byte
        if error is None:
            records.completed += 1
        else:
            records.count_failed(error, answer.message)
            if answer.unanswered:
                records.unanswered += 1
                if self._streaming and first_byte is None:
                    first_byte = answer.ended
            elif not error.startswith(CHECK_FAILED):  # that is a whole answer, if a wrong one
                records.refused.record(latency)
                return
        records.latency.record(latency)
        records.service.record(answer.ended - answer.started)
        if first_byte is not None and records.first_byte is not None:
            records.first_byte.record(first_byte - answer.ended + latency)
        if self._tokens is not None and records.tokens is not None:
            records.tokens.count(answer, latency, self._tokens)

    def _watch(self) -> None:
        """From when requests count: processor time, and how late the loop wakes a greenlet."""
        gevent.sleep(max(0.0, self._counts_from - perf_counter()))
        self._counted_since = perf_counter(), time.process_time()
        self._record_loop_lag()
        while (now := perf_counter()) < self._end:
            self._wakes_at = now + _LOOP_TICK
            gevent.sleep(_LOOP_TICK)
            self._record_loop_lag()

    def _record_loop_lag(self) -> None:
        """How late the watcher wakes, or should have; each tick that was left out counts too."""
        # A loop that is blocked for most of a step would else have few samples beside many good ones.
        lag = perf_counter() - self._wakes_at
        record = self.records.loop_lag.record
        record(lag)
        for missed in range(1, int(lag / _LOOP_TICK) + 1):
            record(lag - missed * _LOOP_TICK)
        self._wakes_at = math.inf

    def _close_window(self) -> None:
        """The time that counts is over."""
        since, cpu = self._counted_since
        self.records.cpu_seconds = time.process_time() - cpu
        self.records.cpu_share = self.records.cpu_seconds / max(perf_counter() - since, 1e-9)
        if self._wakes_at < perf_counter():  # the loop has come to nothing else
            self._record_loop_lag()


def keep_for_good() -> None:
    """Take what is loaded out of garbage collection: 50 ms in which no request starts."""
    gc.collect()
    gc.freeze()


def callers_allowed() -> int:
    """How many requests this process may have under way: each is an open file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CALLERS + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        more = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (more, hard))
            soft = more
    allowed = MOST_CALLERS if soft == resource.RLIM_INFINITY else soft - _OTHER_FILES
    return max(1, min(MOST_CALLERS, allowed))


def _resident_bytes() -> int:
    """Resident memory now; its peak where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
