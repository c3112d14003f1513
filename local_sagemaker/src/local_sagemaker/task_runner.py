"""Runs an ECS task as a process of this machine, without Docker.

What is run is the container's entry point and command, with the task's environment, when that is
Python: the image's file system is not there, this interpreter and its packages are. Like a
function (see `lambda_runner`) it runs with the user's own rights, gets nothing of the user's
environment, and can reach the local AWS only, with a session of its task role. Its address is
127.0.0.1.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .admission import Session
from .processes import HeldFolder, SupervisedProcess, process_environment

ADDRESS = "127.0.0.1"

_SOURCES = str(Path(__file__).resolve().parents[1])

_lock = threading.Lock()
_running: dict[str, RunningTask] = {}


@dataclass(frozen=True)
class Task:
    """What is needed to run a task's essential container."""

    arn: str
    command: Sequence[str]
    environment: Mapping[str, str]
    region: str
    url: str
    runtime_url: str
    log: Callable[[list[str]], None]
    ended: Callable[[], None]
    session: Session | None = None


class RunningTask:
    """A task's process."""

    def __init__(self, task: Task) -> None:
        self._scratch = HeldFolder("local-task-")
        self.started_at = time.time()
        self.stopped_at: float | None = None
        scratch = self._scratch.path
        self._process = SupervisedProcess(
            [sys.executable, *task.command[1:]], _environment(task, str(scratch)), scratch
        )
        self._reader = threading.Thread(target=self._read, args=[task], daemon=True)
        self._reader.start()

    @property
    def exit_code(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.exit_code

    def terminate(self, grace: float) -> None:
        """Ask it to end; after the grace it is made to. Does not wait."""
        self._process.terminate()
        threading.Thread(target=self._process.end, args=[grace], daemon=True).start()

    def hang_up(self) -> None:
        """Have the supervisor stop the task and itself. Does not wait."""
        self._process.hang_up()

    def close(self) -> None:
        """Stop it and wait."""
        self._process.end(0.0)
        self._reader.join(5)

    def _read(self, task: Task) -> None:
        for line in self._process.output:
            # Logs are not worth failing for: a reset may have taken the group away.
            with contextlib.suppress(Exception):
                task.log([line.decode("utf-8", "replace").rstrip("\n")])
        self._process.wait()
        self.stopped_at = time.time()
        self._process.output.close()
        self.hang_up()  # nobody listens any more
        self._scratch.remove()
        task.ended()


def why_not(command: Sequence[str]) -> str | None:
    """Say why a container cannot be run here; None when it can.

    Examples
    --------
    >>> why_not(["python", "-m", "http.server"])
    >>> why_not(["nginx"])
    'the local AWS has no Docker: it runs Python commands that task definitions state, not nginx'
    """
    name = Path(command[0]).name if command else "the image's own command"
    if name in ("python", "python3"):
        return None
    return (
        "the local AWS has no Docker: it runs Python commands that task definitions state, "
        f"not {name}"
    )


def start(task: Task) -> RunningTask:
    running = RunningTask(task)
    with _lock:
        for arn in [arn for arn, other in _running.items() if other.exit_code is not None]:
            del _running[arn]
        _running[task.arn] = running
    return running


def forget() -> None:
    with _lock:
        tasks = list(_running.values())
        _running.clear()
    for task in tasks:
        task.hang_up()
    for task in tasks:
        task.close()


def _environment(task: Task, scratch: str) -> dict[str, str]:
    variables = {"PYTHONPATH": _SOURCES, "PYTHONUNBUFFERED": "1", **task.environment}
    return {
        **process_environment(
            variables, scratch, region=task.region, url=task.url, session=task.session
        ),
        "AWS_EXECUTION_ENV": "AWS_ECS_FARGATE",
        "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": task.runtime_url,
    }
