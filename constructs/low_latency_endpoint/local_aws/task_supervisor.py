"""Runs beside a task's process, as Fargate's init does: passes signals on, and leaves nothing.

The local AWS starts it with a pipe as standard input. When the pipe closes, which the death of the
local AWS does too, the task's processes are stopped. Started as a script, it imports nothing of
the library's.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

_GRACE_SECONDS = 2.0


def main(command: list[str]) -> int:
    """Run the command; gives its exit status as a container would."""
    # Before the child is there: a signal may never end this process alone.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    signal.signal(signal.SIGTERM, lambda number, frame: _signal(child, signal.SIGTERM))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal is not the task's
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, start_new_session=True,
        preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM]),
    )
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    threading.Thread(target=_until_parent_ends, args=[child], daemon=True).start()
    status = child.wait()
    _signal(child, signal.SIGKILL)  # what it left behind
    return 128 - status if status < 0 else status


def _until_parent_ends(child: subprocess.Popen[bytes]) -> None:
    while os.read(sys.stdin.fileno(), 1024):
        pass
    _signal(child, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(_GRACE_SECONDS)
    _signal(child, signal.SIGKILL)


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    """Signal every process of the task."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
