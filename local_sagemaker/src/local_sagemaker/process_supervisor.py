"""Runs beside a task's, a function's or a model server's process, and leaves nothing of it.

The local AWS starts it with a pipe as standard input. When the pipe closes, which the death of the
local AWS does too, all processes that came of the command are stopped: with SIGTERM and, after a
grace, SIGKILL. When the command ends by itself, what it has left behind is killed. On Linux that
holds for children with a session of their own as well; elsewhere for the command's process group.
Started as a script, it imports nothing of the library's.

    python -I process_supervisor.py GRACE_SECONDS COMMAND ...
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(grace: float, command: list[str]) -> int:
    """Run the command; gives its exit status as a container would."""
    started: list[subprocess.Popen[bytes]] = []  # kept: Popen looks after one that is forgotten

    def start(prepare: Callable[[], None]) -> int:
        started.append(
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=prepare
            )
        )
        return started[0].pid

    try:
        return supervise(start, grace)
    except OSError as error:
        print(f"{command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127 if isinstance(error, FileNotFoundError) else 126


def supervise(start: Callable[[Callable[[], None]], int], grace: float) -> int:
    """Start a child (its process ID), with a function that it calls first; gives its exit status."""
    prctl = _prctl()
    prctl(_PR_SET_CHILD_SUBREAPER, 1)  # whoever loses its parent becomes our child, and is found

    def as_a_program_expects() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # should somebody kill this process
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is not the command's
    # Before the child is there: a signal may never end this process alone.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.signal(signal.SIGTERM, lambda number, frame: _signal(child, signal.SIGTERM))
    child = start(as_a_program_expects)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    ended = threading.Event()
    threading.Thread(target=_until_parent_ends, args=[child, ended, grace], daemon=True).start()
    status = _wait(child)
    ended.set()
    _kill_all(child)  # what it left behind
    return 128 - status if status < 0 else status


def _prctl() -> Callable[[int, int], Any]:
    """Linux's prctl; elsewhere nothing."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            function = ctypes.CDLL(None).prctl
            return lambda option, value: function(option, value, 0, 0, 0)
    return lambda option, value: None


def _wait(child: int) -> int:
    """Wait for the child; its orphans are ours, and must not stay as zombies either."""
    while True:
        process, status = os.waitpid(-1, 0)
        if process == child:
            return os.waitstatus_to_exitcode(status)


def _until_parent_ends(child: int, ended: threading.Event, grace: float) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    if grace:
        _signal(child, signal.SIGTERM)
        ended.wait(grace)
    _kill_all(child)


def _signal(child: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, number)


def _kill_all(child: int) -> None:
    """Kill the command's process group and, on Linux, every other descendant of ours."""
    _signal(child, signal.SIGKILL)
    deadline = time.monotonic() + 5.0
    while (left := _descendants()) and time.monotonic() < deadline:
        for process in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.002)


def _descendants() -> set[int]:
    """The living processes below this one; empty where there is no /proc."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            state, parent = entry.read_text("latin-1").rpartition(")")[2].split()[:2]
            if state not in "ZX":
                parents[int(entry.parent.name)] = int(parent)
    found: set[int] = set()
    level = {os.getpid()}
    while level:
        level = {process for process, parent in parents.items() if parent in level} - found
        found |= level
    return found


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
