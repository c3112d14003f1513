"""A process that is a local AWS, of a terminal or of another one: it serves until it is stopped."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

from .runtime.options import RuntimeOptions
from .server import LocalAws


def _spare_what_stays(phase: str, info: dict[str, int]) -> None:
    """Look no more through what has survived a full collection: modules, mostly.

    Each such collection would halt the process for a tenth of a second or more, and every stream
    with it. What becomes garbage later in a ring stays, which is little.
    """
    if phase == "stop" and info["generation"] == 2:
        gc.freeze()


def serve_until(
    stopped: threading.Event,
    region: str,
    port: int,
    runtime: RuntimeOptions,
    announce: Callable[[LocalAws], None],
    log_path: Path | None = None,
) -> None:
    """Serve in this process until something happens; nothing stays behind."""
    with LocalAws.in_process(region, port=port, runtime=runtime, log_path=log_path) as aws:
        if not runtime.model_servers:  # otherwise the runtime evaluates, by its own clock
            aws.evaluate_alarms_in_background()
        gc.freeze()
        gc.callbacks.append(_spare_what_stays)
        announce(aws)
        # A signal may reach another thread; its handler runs when this one wakes up.
        while not stopped.wait(0.2):
            pass
