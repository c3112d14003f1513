"""How a Locust run ends: on SIGINT and SIGTERM with its result and a telling exit code."""

from __future__ import annotations

import locust  # noqa: F401  # isort: skip  # first: it patches the standard library

import contextlib
import logging
import os
import signal
import sys
import termios
import time
from collections.abc import Callable
from typing import Any

import gevent
import zmq
from gevent.hub import get_hub
from locust.runners import STATE_INIT, WorkerRunner

_log = logging.getLogger(__name__)

INTERRUPTED = 130  # 128 + SIGINT, as shells have it
INVALID = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_PARENT_SECONDS = 0.5
_POLL_SECONDS = 0.1
#: For the last report of a worker that has left: it is under way, or will never come.
FAREWELL_SECONDS = 3.0


class _Ending:
    """What the signals of this process do; the second one ends it at once."""

    def __init__(self, runner: Any, web_ui: Any) -> None:
        self._runner, self._web_ui = runner, web_ui
        self._hub = get_hub()
        self._asked = False
        self._terminal: list[Any] | None = None
        with contextlib.suppress(termios.error, OSError, ValueError):
            self._terminal = termios.tcgetattr(sys.stdin.fileno())  # Locust changes it

    def install(self, **_: Any) -> None:
        """Take the signals, unless somebody else has; again at each test, as Locust takes one."""
        with contextlib.suppress(ValueError):  # not the main thread: not this process's master
            for number in _SIGNALS:
                # Python does not see that Locust's libev took one over after it was ours.
                if signal.getsignal(number) in (
                    None,
                    signal.SIG_DFL,
                    signal.SIG_IGN,
                    signal.default_int_handler,
                    self._receive,
                ):
                    signal.signal(number, self._receive)

    def _receive(self, number: int, frame: Any) -> None:
        """In the middle of anything: only note it."""
        if self._asked:
            if self._terminal is not None:
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, self._terminal)
            os._exit(INTERRUPTED)
        self._asked = True
        self._hub.loop.run_callback_threadsafe(gevent.spawn, self._end, signal.Signals(number).name)

    def _end(self, name: str) -> None:
        _log.info("Got %s: ending the test; once more to end without its result", name)
        began = self._web_ui is not None or self._runner.state != STATE_INIT
        self._runner.quit()
        if self._web_ui is not None:
            self._web_ui.stop()
        if not began and not isinstance(self._runner, WorkerRunner):
            # Locust may still wait for workers, and would for ever.
            self._hub.parent.throw(SystemExit(INTERRUPTED))


def heed_signals(parser: Any = None, **_: Any) -> None:
    """Take SIGINT back from whoever had it ignored; before Locust connects to anything."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGINT, signal.default_int_handler)


def take_part(environment: Any, runner: Any, web_ui: Any = None, **_: Any) -> None:
    """Locust has made its runner: from here on signals are heard."""
    ending = _Ending(runner, web_ui)
    ending.install()
    environment.events.test_start.add_listener(ending.install)
    if isinstance(runner, WorkerRunner) and getattr(environment.parsed_options, "processes", None):
        gevent.spawn(_end_with_parent, os.getppid())


def _end_with_parent(parent: int) -> None:
    """A forked worker whose master was ended at once would wait for it for a minute."""
    while os.getppid() == parent:
        gevent.sleep(_PARENT_SECONDS)
    os._exit(INTERRUPTED)


def hear_those_who_left(environment: Any, missing: Callable[[], object]) -> None:
    """Read the last reports of workers, which a master that quits hears for half a second only."""
    ends = time.perf_counter() + FAREWELL_SECONDS
    server = environment.runner.server
    while missing() and time.perf_counter() < ends:
        if not server.socket.getsockopt(zmq.EVENTS) & zmq.POLLIN:
            gevent.sleep(_POLL_SECONDS)
            continue
        _, message = server.recv_from_client()
        if message.type == "stats":
            environment.events.worker_report.fire(client_id=message.node_id, data=message.data)


def invalid(environment: Any, why: str) -> None:
    """The run's figures are not the endpoint's: say so, and let Locust end with 1."""
    _log.error("the result is invalid: %s", why)
    if not environment.process_exit_code:
        environment.process_exit_code = INVALID
        environment.low_latency_invalid = True


def valid(environment: Any, **_: Any) -> None:
    """A new test: what was said of the last one is no longer so."""
    if getattr(environment, "low_latency_invalid", False):
        environment.process_exit_code = None
        environment.low_latency_invalid = False


def sends_open_loop(environment: Any) -> bool:
    """Whether a user of the run sends at given times, and so is judged by its records."""
    return any(hasattr(user_class, "arrivals") for user_class in environment.user_classes)
