"""The process that functions are forked from: boto3 and its data are there already.

That is half a second less for each invocation.

`lambda_runner` starts it as a script where forking is safe, on Linux, and asks over a socket. Each
invocation gets a supervisor of its own (see `process_supervisor`), and below it the function's
process. It ends when the local AWS closes the socket or dies, and imports nothing of the library's.

    python -I lambda_host.py SOCKET_DESCRIPTOR
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

_OURS: frozenset[str]

if TYPE_CHECKING:
    from botocore.loaders import create_loader

    from . import lambda_bootstrap, process_supervisor
    from .botocore_data import read_once
else:
    sys.path.insert(0, str(Path(__file__).parent))
    import lambda_bootstrap
    import process_supervisor

    _OURS = frozenset(sys.modules)
    import boto3  # noqa: F401
    from botocore.loaders import create_loader
    from botocore_data import read_once

    del sys.path[0]  # functions import the library's modules no more than at AWS


def main(asked: socket.socket) -> None:
    """Fork whatever is asked for, until nobody can ask any more."""
    read_once()
    loader = create_loader()
    for name in ("endpoints", "partitions", "sdk-default-configuration", "_retry"):
        loader.load_data(name)  # what every client needs
    gc.freeze()  # forked processes leave alone what they do not change
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is not the functions'
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # supervisors tell the local AWS how it ended
    while True:
        request, descriptors, _, _ = socket.recv_fds(asked, 4096, 3)
        if not request:
            return
        if not os.fork():
            asked.close()
            _supervise(Path(request.decode()), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        asked.send(b".")


def _supervise(request: Path, held: int, log: int, told: int) -> None:
    """Be the supervisor of one invocation, and tell the status that it ended with."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in ((0, held), (1, log), (2, log)):
        os.dup2(descriptor, number)
    os.close(held)
    os.close(log)
    os.set_inheritable(told, False)

    def start(prepare: Callable[[], None]) -> int:
        pid = os.fork()
        if not pid:
            os.close(told)
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            prepare()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            _be_the_function(**json.loads(request.read_text()))
        return pid

    status = process_supervisor.supervise(start, 0.0)
    os.write(told, str(status).encode())
    os._exit(0)


def _be_the_function(folder: str, environment: dict[str, str], event: str, answer: str) -> None:
    """Become what a new process would be, and end as it would."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    brought = {entry.name.removesuffix(".py") for entry in Path(folder).iterdir()}
    loaded = set(sys.modules) - _OURS
    if brought & loaded:  # the function has a boto3, or something that boto3 needs, of its own
        for name in loaded:
            del sys.modules[name]
    lambda_bootstrap.main(Path(event), Path(answer))
    sys.exit()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
