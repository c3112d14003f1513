"""Runs Locust in processes of its own: Locust patches the one it is in."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


def until(reached: Callable[[], object], seconds: float = 120) -> None:
    """Wait for something."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def run_locust(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    enough: Callable[[], object] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Locust to its end, which comes by SIGTERM when there is ``enough``.

    Locust's own ``-t`` may be over before its first user begins, on a busy machine.
    """
    with tempfile.TemporaryDirectory() as kept:
        out = Path(kept, "out")
        err = Path(kept, "err")
        with (
            out.open("wb") as stdout,
            err.open("wb") as stderr,
            subprocess.Popen(
                [sys.executable, "-m", "locust", *arguments],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
            ) as process,
        ):
            try:
                if enough is not None:
                    until(lambda: enough() or process.poll() is not None)
                    process.send_signal(signal.SIGTERM)
                code = process.wait(120)
            finally:
                process.kill()
        return subprocess.CompletedProcess(
            list(arguments), code, out.read_text("utf-8"), err.read_text("utf-8")
        )


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def two_processes() -> list[str]:
    """A master and two forked workers, on a port that no other test has."""
    port = str(free_port())
    return ["--processes", "2", "--master-bind-port", port, "--master-port", port]


def exit_code_said(output: str) -> int:
    """What Locust ends with when no request failed: a busy machine's generator is no measure."""
    return int("the result is invalid" in output)
