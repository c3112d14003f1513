"""A process that is a local AWS: `local-sagemaker` in a terminal, or what `LocalAws.start` starts."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from .runtime.options import RuntimeOptions
from .server import LocalAws


def _spare_what_stays(phase: str, info: dict[str, int]) -> None:
    """Look no more through what survived a full collection, each of which halts every stream."""
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
        # Whoever reads the announcement reads nothing else: moto prints, too. A signal may reach
        # another thread; its handler runs when this one wakes up.
        with contextlib.redirect_stdout(sys.stderr):
            while not stopped.wait(0.2):
                pass


def main() -> None:
    """Be the process of `LocalAws.start`, whose arguments it has: serve until that closes our input."""
    region, port, log, folder, options = sys.argv[1:]
    # Ctrl-C goes to every process of a terminal: what happens then is the parent's to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    threading.Thread(target=_wait_for_parent, args=[stopped], daemon=True).start()
    logging.captureWarnings(True)
    runtime = RuntimeOptions.from_json(options)
    serve_until(stopped, region, int(port), runtime, _tell_parent, Path(log))
    shutil.rmtree(folder, ignore_errors=True)  # should the parent not be there any more
    # Not sys.exit: threads of running operations must not delay the end.
    os._exit(0)


def _wait_for_parent(stopped: threading.Event) -> None:
    sys.stdin.read()
    stopped.set()


def _tell_parent(aws: LocalAws) -> None:
    told = {
        "url": aws.url,
        "credentials": dataclasses.asdict(aws.credentials),
        "model_servers": str(aws.model_server_folder),
    }
    print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
