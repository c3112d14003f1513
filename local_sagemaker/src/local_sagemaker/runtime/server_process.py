"""A model server of a process of its own: it and all of its children end with the local AWS."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence

from ..task_runner import SUPERVISOR
from .server_output import ServerOutput

__all__ = ["ServerProcess"]

_GRACE_SECONDS = 2.0
"""From SIGTERM to SIGKILL, once the local AWS has ended or waits no longer."""


class ServerProcess:
    """A model server's process, beside a supervisor that ends its children too.

    Parameters
    ----------
    command, variables, directory
        What runs, with what environment, and where; by default where the local AWS runs.
    output
        Keeps what it writes.

    Raises
    ------
    OSError, ValueError
        When no process can be started so.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str],
                 directory: str | None, output: ServerOutput) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(SUPERVISOR), str(_GRACE_SECONDS), *command],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=dict(variables), cwd=directory,
        )
        assert self._process.stdout is not None
        output.follow(self._process.stdout)

    @property
    def exit_code(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        """Send it SIGTERM. Does not wait."""
        self._process.terminate()

    def hang_up(self) -> None:
        """Have it end within the grace. Does not wait."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def wait(self, timeout: float) -> None:
        """Wait for its end, which comes after the timeout and the grace at the latest."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        self.hang_up()
        try:
            self._process.wait(_GRACE_SECONDS + 10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
