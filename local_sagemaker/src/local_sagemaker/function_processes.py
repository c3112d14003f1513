"""The processes of functions that are forked from `lambda_host`, and that one."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import threading
from pathlib import Path

_HOST = Path(__file__).with_name("lambda_host.py")


class ForkedFunction:
    """A supervisor that `lambda_host` has forked, as a `SupervisedProcess`."""

    def __init__(self, held: int, told: int) -> None:
        self._lock = threading.Lock()
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
        with self._lock:
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


_lock = threading.Lock()
_host: _Host | None = None


def forked_function(request: Path, log: int) -> ForkedFunction:
    """Fork a supervisor that runs the function of a request file, with its output in a file."""
    global _host
    with _lock:
        if _host is not None:
            with contextlib.suppress(OSError):
                return _host.fork(request, log)
            _host.close()
        _host = _Host()
        return _host.fork(request, log)


def close_host() -> None:
    """End the process that functions are forked from; the next function gets a new one."""
    global _host
    with _lock:
        if _host is not None:
            _host.close()
            _host = None
