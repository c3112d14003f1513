"""`python -m low_latency_endpoint.local_aws`: serve until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
from pathlib import Path

from . import serving
from .cloudwatch import evaluation
from .runtime.options import RuntimeOptions
from .runtime.service import Runtime
from .server import LocalAws


def main() -> int:
    """Start the server, say how to use it, and wait."""
    parser = argparse.ArgumentParser(
        prog="python -m low_latency_endpoint.local_aws",
        description="Run a local AWS on loopback. Nothing leaves this machine.",
    )
    parser.add_argument("--region", default="us-east-1", help="default: us-east-1")
    parser.add_argument("--port", type=int, default=0, help="default: a free port")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--runtime", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        options = RuntimeOptions.from_json(arguments.runtime) if arguments.runtime else None
        runtime = Runtime(options, arguments.region)
        return _serve_for_parent(arguments.port, arguments.log, runtime)
    stopped = threading.Event()
    for wanted in (signal.SIGINT, signal.SIGTERM):
        signal.signal(wanted, lambda *_: stopped.set())
    aws = LocalAws.in_process(region=arguments.region, port=arguments.port)
    aws.evaluate_alarms_in_background()
    for name, value in aws.exports().items():
        print(f"export {name}={value}")
    print(f"# serving at {aws.url}, log in {aws.log_path}; Ctrl-C stops and forgets everything")
    sys.stdout.flush()
    # A signal may reach another thread; its handler runs when this one wakes up.
    while not stopped.wait(0.2):
        pass
    aws.stop()
    return 0


def _serve_for_parent(port: int, log: Path, runtime: Runtime) -> int:
    """Serve until the parent closes our standard input, which its death does too."""
    serving.log_to(log)
    logging.captureWarnings(True)
    _, url, _ = serving.serve_in_thread(port, runtime)
    if not runtime.options.model_servers:
        evaluation.BACKGROUND.start()  # otherwise the runtime evaluates, by its own clock
    print(url, flush=True)
    sys.stdin.read()
    runtime.stop()  # its model servers may be processes
    # Not sys.exit: threads of running operations must not delay the end.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
