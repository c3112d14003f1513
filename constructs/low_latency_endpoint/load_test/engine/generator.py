"""The load generator's processes: one that sends, or a master and the workers that send for it.

:class:`.generator_process.GeneratorProcess` starts it, and they exchange JSON lines. Workers and
master speak Locust's own protocol, in whose messages steps go out and records come back.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from typing import Any

from .generator_process import problem_of
from .steps import Step

_MODULE = "low_latency_endpoint.load_test.engine.generator"


def main(arguments: list[str] | None = None) -> None:
    """Run the process that the command line asks for."""
    parser = argparse.ArgumentParser(prog=f"python -m {_MODULE}")
    parser.add_argument("--worker", metavar="HOST:PORT", help="be a worker of this master")
    parser.add_argument(
        "--parent",
        action="store_true",
        help="end when standard input ends (how local workers notice)",
    )
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    # Locust replaces parts of the standard library when it is imported, before anything else.
    import locust  # noqa: F401

    if options.worker:
        host, _, port = options.worker.rpartition(":")
        _run_worker(host, int(port), options.parent)
    else:
        _run_master()


def _run_worker(host: str, port: int, parent: bool) -> None:
    import gevent
    from locust.env import Environment
    from locust.event import Events

    from .stepping import StepWorker

    if parent:
        gevent.spawn(_end_with, sys.stdin.fileno())
    environment = Environment(events=Events())  # type: ignore[no-untyped-call]
    runner = environment.create_worker_runner(host, port)
    StepWorker(runner).announce()
    runner.greenlet.join()


def _run_master() -> None:
    import gevent
    from gevent.queue import Queue

    from .stepping import StepMaster

    emit = _private_output()
    requests: Queue[dict[str, Any]] = Queue()
    master: StepMaster | None = None

    def listen() -> None:
        """End with the last line, in the middle of a step too."""
        for line in _lines(sys.stdin.fileno()):
            message = json.loads(line)
            if "stop" not in message:
                requests.put(message)
            elif master is not None:
                master.stop()
        if master is not None:
            master.close()
        os._exit(0)

    gevent.spawn(listen)
    try:
        master = StepMaster(requests.get(), emit)
        while True:
            master.run(Step.of_dict(requests.get()["run"]))
    except Exception as problem:
        emit({"failed": problem_of(problem)})
        if master is not None:
            master.close()
        raise


def _private_output() -> Callable[[dict[str, Any]], None]:
    """Standard output for the protocol alone: what user code prints goes to standard error."""
    descriptor = os.dup(1)
    os.dup2(2, 1)

    def emit(message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        with contextlib.suppress(BrokenPipeError):  # the reader is gone; its end of input tells us
            while data:
                data = data[os.write(descriptor, data) :]

    return emit


def _lines(descriptor: int) -> Iterable[bytes]:
    """Lines of a pipe, without holding up other greenlets."""
    from gevent.fileobject import FileObjectPosix

    lines: Iterable[bytes] = FileObjectPosix(descriptor, "rb", closefd=False)
    return lines


def _end_with(descriptor: int) -> None:
    """End this process at once when its parent does, whatever it was doing."""
    for _ in _lines(descriptor):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
