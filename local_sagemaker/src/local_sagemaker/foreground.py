"""A local AWS of a terminal: it serves until it is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from .runtime.options import RuntimeOptions
from .server import LocalAws


def serve_until_stopped(
    region: str, port: int, runtime: RuntimeOptions, announce: Callable[[LocalAws], None]
) -> None:
    """Serve in this process until Ctrl-C, SIGTERM or SIGHUP; nothing stays behind.

    Parameters
    ----------
    announce
        Called once when the server is ready.

    Raises
    ------
    LocalAwsError
        When it cannot start.
    """
    stopped = threading.Event()
    # Before the start, which takes seconds: a signal in these seconds must not leave files either.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), lambda *_: stopped.set())
    with LocalAws.in_process(region=region, port=port, runtime=runtime) as aws:
        if not runtime.model_servers:  # otherwise the runtime evaluates, by its own clock
            aws.evaluate_alarms_in_background()
        announce(aws)
        # A signal may reach another thread; its handler runs when this one wakes up.
        while not stopped.wait(0.2):
            pass
        aws.evaluate_alarms_in_background(on=False)
