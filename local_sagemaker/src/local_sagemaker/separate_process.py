"""The process that `LocalAws.start` starts; for a terminal there is `local-sagemaker`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import os
import shutil
import signal
import sys
import threading
from pathlib import Path

from . import lambda_runner, serving, task_runner
from .cloudwatch import evaluation
from .runtime.options import RuntimeOptions
from .runtime.service import Runtime


def main() -> None:
    """Serve until the parent closes our standard input, which its death does too."""
    parser = argparse.ArgumentParser(
        prog="python -m local_sagemaker.separate_process", description=__doc__
    )
    parser.add_argument("--region", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="removed at the end")
    parser.add_argument("--runtime", required=True, help="options of the runtime, as JSON")
    arguments = parser.parse_args()
    # Ctrl-C goes to every process of a terminal: what happens then is the parent's to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    threading.Thread(target=_wait_for_parent, args=[stopped], daemon=True).start()
    options = RuntimeOptions.from_json(arguments.runtime)
    runtime = Runtime(options, arguments.region, arguments.folder)
    with (
        serving.logging_to(arguments.log),
        serving.serving_in_thread(arguments.port, runtime) as url,
    ):
        logging.captureWarnings(True)
        if not runtime.options.model_servers:
            evaluation.BACKGROUND.start()  # otherwise the runtime evaluates, by its own clock
        told = {"url": url, "credentials": dataclasses.asdict(runtime.credentials)}
        print(json.dumps(told), flush=True)
        while not stopped.wait(0.2):
            pass
        runtime.stop()  # its model servers may be processes
        lambda_runner.forget()
        task_runner.forget()
    shutil.rmtree(arguments.folder, ignore_errors=True)
    # Not sys.exit: threads of running operations must not delay the end.
    os._exit(0)


def _wait_for_parent(stopped: threading.Event) -> None:
    sys.stdin.read()
    stopped.set()


if __name__ == "__main__":
    main()
