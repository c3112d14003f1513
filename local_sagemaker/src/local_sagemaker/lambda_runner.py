"""Runs a deployed Python function in a process of this machine, without Docker.

The code runs with the user's own rights on this machine. What it gets is a minimal environment:
nothing of the user's, and an endpoint URL and keys that can only reach the local AWS. Children that
a function leaves behind are frozen by Lambda; here they end with the invocation.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .admission import Session
from .archives import Unpackable, unpack_code
from .processes import HeldFolder, SupervisedProcess, process_environment

_HOST = Path(__file__).with_name("lambda_host.py")


class ForkedFunction:
    """A supervisor that `lambda_host` has forked, as a `SupervisedProcess`."""

    def __init__(self, held: int, told: int) -> None:
        self._host_lock = threading.Lock()
        self._held: int | None = held
        self._told = told
        self._status: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its exit status; subprocess.TimeoutExpired when that takes longer."""
        if self._status is None:
            with selectors.DefaultSelector() as selector:
                selector.register(self._told, selectors.EVENT_READ)
                if not selector.select(timeout):
                    raise subprocess.TimeoutExpired("function", timeout or 0.0)
            # Nothing is told by a supervisor that somebody has killed.
            self._status = int(os.read(self._told, 16) or -9)
            os.close(self._told)
        return self._status

    @property
    def exit_code(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0.0)
        return self._status

    def hang_up(self) -> None:
        """Have it kill the function with all its children, and end. Does not wait."""
        with self._host_lock:
            held, self._held = self._held, None
        if held is not None:
            os.close(held)


class _Host:
    """The process that functions are forked from."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-I", str(_HOST), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
            )

    def fork(self, request: Path, log: int) -> ForkedFunction:
        """Fork a supervisor and its function; OSError when the host is gone."""
        theirs, held = os.pipe()
        told, tells = os.pipe()
        try:
            socket.send_fds(self._socket, [os.fsencode(request)], [theirs, log, tells])
            if not self._socket.recv(1):
                raise ConnectionResetError("the process that functions are forked from has ended")
        except OSError:
            os.close(held)
            os.close(told)
            raise
        finally:
            os.close(theirs)
            os.close(tells)
        return ForkedFunction(held, told)

    def close(self) -> None:
        """End it, and wait. Functions that run are not its business."""
        self._socket.close()
        self._process.wait()


_host_lock = threading.Lock()
_host: _Host | None = None


def forked_function(request: Path, log: int) -> ForkedFunction:
    """Fork a supervisor that runs the function of a request file, with its output in a file."""
    global _host
    with _host_lock:
        if _host is not None:
            with contextlib.suppress(OSError):
                return _host.fork(request, log)
            _host.close()
        _host = _Host()
        return _host.fork(request, log)


logger = logging.getLogger(__name__)

_BOOTSTRAP = Path(__file__).with_name("lambda_bootstrap.py")
_INIT_SECONDS = 10.0
"""Source: Lambda developer guide, "Lambda execution environment lifecycle" (init phase)."""
_lock = threading.Lock()
_folder: HeldFolder | None = None
"""Where archives are unpacked, each into a folder called as its digest."""
_running: set[ForkedFunction | SupervisedProcess] = set()
_background: list[tuple[str, threading.Thread]] = []
"""The asynchronous invocations, by the function's ARN."""


@dataclass(frozen=True)
class PythonFunction:
    name: str
    arn: str
    runtime: str
    handler: str
    code: bytes
    timeout: int
    memory: int
    environment: Mapping[str, str]
    region: str
    url: str
    log_group: str = ""  # by default the one that is called as the function
    session: Session | None = None  # of its role; by default it has the local AWS's own key
    network: Mapping[str, Any] | None = None  # of its VPC; see `function_networks`


@dataclass(frozen=True)
class InvocationResult:
    """How an invocation ended: with the answer as JSON, or Lambda's error document."""

    payload: str
    failed: bool
    log: str

    @property
    def error(self) -> str:
        """The error's message, empty when there was none."""
        if not self.failed:
            return ""
        document = json.loads(self.payload)
        return str(document.get("errorMessage", self.payload))


def run(function: PythonFunction, event: Any) -> InvocationResult:
    if not function.runtime.startswith("python"):
        return failure(
            "Runtime.NotEmulated",
            f"the local AWS runs Python functions only; {function.name} is {function.runtime}",
        )
    try:
        root = _unpacked(function.code)
    except Unpackable as error:
        return failure("Runtime.CodeNotUnpacked", str(error))
    with tempfile.TemporaryDirectory(
        dir=root.parent, prefix="run-", ignore_cleanup_errors=True
    ) as scratch:
        files = Path(scratch)
        answer, log_file = files / "answer.json", files / "log"
        (files / "event.json").write_text(json.dumps(event))
        if function.network is not None:
            (files / "network.json").write_text(json.dumps(function.network))
        # The output goes to a file: a pipe ends when the last child that holds it does.
        with log_file.open("wb") as output:
            process = _start(function, root, files, output.fileno())
            with _lock:
                _running.add(process)
            timed_out = False
            try:
                _wait_for_start(process, files / "begun")
                process.wait(function.timeout)
            except subprocess.TimeoutExpired:
                timed_out = True
            finally:
                process.hang_up()  # whatever of it still runs ends
                status = process.wait()
                with _lock:
                    _running.discard(process)
        log = ""
        with contextlib.suppress(FileNotFoundError):  # a reset took the folder away
            log = log_file.read_text("utf-8", "replace")
        if timed_out:
            message = f"Task timed out after {function.timeout:.2f} seconds"
            return failure("Sandbox.Timedout", message, log)
        if not answer.exists():
            message = f"Runtime exited with error: exit status {status}"
            return failure("Runtime.ExitError", message, log)
        result = json.loads(answer.read_text())
        return InvocationResult(json.dumps(result["payload"]), result["failed"], log)


def _start(
    function: PythonFunction, root: Path, files: Path, log: int
) -> ForkedFunction | SupervisedProcess:
    """Start a function's process: forked where that is safe, else a Python of its own."""
    environment = _environment(function, str(files))
    event, answer = str(files / "event.json"), str(files / "answer.json")
    if sys.platform != "linux":
        command = [sys.executable, "-I", str(_BOOTSTRAP), event, answer]
        return SupervisedProcess(command, environment, root, grace=0, output=log)
    request = {"folder": str(root), "environment": environment, "event": event, "answer": answer}
    (files / "request.json").write_text(json.dumps(request))
    return forked_function(files / "request.json", log)


def _wait_for_start(process: ForkedFunction | SupervisedProcess, begun: Path) -> None:
    """Wait until the function's process runs, which its timeout does not count."""
    deadline = time.monotonic() + _INIT_SECONDS
    while not begun.exists() and process.exit_code is None and time.monotonic() < deadline:
        time.sleep(0.005)


def in_background(arn: str, work: Callable[[], object]) -> None:
    """Run a function's asynchronous invocation in a thread of its own."""

    def logged() -> None:
        try:
            work()
        except Exception:
            logger.exception("the invocation of %s failed", arn)

    thread = threading.Thread(target=logged, name=f"invocation of {arn}", daemon=True)
    with _lock:
        _background.append((arn, thread))
        thread.start()


def is_running(arn: str | None = None) -> bool:
    """Whether an asynchronous invocation, of one function or of any, has not ended yet."""
    with _lock:
        _background[:] = [each for each in _background if each[1].is_alive()]
        return any(arn in (None, name) for name, _ in _background)


def failure(kind: str, message: str, log: str = "") -> InvocationResult:
    """Give the result of an invocation that Lambda itself ended."""
    payload = json.dumps({"errorType": kind, "errorMessage": message})
    return InvocationResult(payload, True, f"{log}\n{message}".strip())


def _environment(function: PythonFunction, scratch: str) -> dict[str, str]:
    return {
        **process_environment(
            function.environment,
            scratch,
            region=function.region,
            url=function.url,
            session=function.session,
        ),
        "_HANDLER": function.handler,
        "AWS_LAMBDA_FUNCTION_NAME": function.name,
        "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(function.memory),
        "AWS_LAMBDA_LOG_GROUP_NAME": function.log_group or f"/aws/lambda/{function.name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": "local",
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{function.runtime}",
        "LAMBDA_TASK_ROOT": str(_unpacked(function.code)),
        "LOCAL_FUNCTION_ARN": function.arn,
        "LOCAL_FUNCTION_TIMEOUT": str(function.timeout),
    }


def forget() -> None:
    """Stop the functions that run and what they are forked from, and remove all unpacked code."""
    global _folder, _host
    with _lock, _host_lock:
        for process in _running:
            process.hang_up()
        if _host is not None:
            _host.close()
            _host = None
        if _folder is not None:
            _folder.remove()
            _folder = None


def _unpacked(code: bytes) -> Path:
    """Unpack a function's archive, once per archive."""
    global _folder
    with _lock:
        if _folder is None:
            _folder = HeldFolder("local-lambda-code-")
        target = _folder.path / hashlib.sha256(code).hexdigest()
        if not target.exists():
            unpack_code(code, target)
        return target
