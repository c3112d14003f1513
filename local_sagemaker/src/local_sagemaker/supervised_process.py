"""A process of this machine that leaves nothing behind, whatever becomes of the local AWS."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_SUPERVISOR = Path(__file__).with_name("process_supervisor.py")


class SupervisedProcess:
    """A process beside its `process_supervisor`."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str | Path | None = None,
        *,
        grace: float = 2.0,
        output: int = subprocess.PIPE,
    ) -> None:
        self.grace = grace
        self._process = subprocess.Popen(
            [sys.executable, "-I", str(_SUPERVISOR), str(grace), *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            cwd=folder,
        )

    @property
    def output(self) -> IO[bytes]:
        """What it writes, where that is a pipe."""
        assert self._process.stdout is not None
        return self._process.stdout

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status; subprocess.TimeoutExpired when that takes longer."""
        return self._process.wait(timeout)

    def terminate(self) -> None:
        """Send it SIGTERM. Does not wait."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def hang_up(self) -> None:
        """Have it end within the grace, with all of its children. Does not wait."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def end(self, patience: float) -> None:
        """Wait for its end, which comes after the patience and the grace at the latest."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(patience)
        self.hang_up()
        try:
            self.wait(self.grace + 10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self.wait()
