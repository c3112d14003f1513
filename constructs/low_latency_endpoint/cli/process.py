"""What the world may do to any command: closed or full streams, odd terminals, missing packages.

Here once for all commands, so that each may just print, read and import.
"""

from __future__ import annotations

import contextlib
import io
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

from ..errors import LowLatencyEndpointError, SettingsError
from ..errors.installation import install_command
from ..report.visible import visible, visible_lines

INTERRUPTED = 128 + signal.SIGINT  # as shells have it
_USAGE = 2
#: Narrower tables are columns of single letters, or nothing; wider ones are not looked at.
_LEAST_WIDTH, _MOST_WIDTH = 40, 1000

#: The extra that brings a package: pyproject.toml's, by the names that are imported.
_EXTRAS = {
    "boto3": "operations",
    "botocore": "operations",
    "low_latency_client": "operations",
    "numba": "simulation",
    "jinja2": "report",
    "gevent": "load-test",
    "geventhttpclient": "load-test",
    "hdrh": "load-test",
    "huggingface_hub": "hugging-face",
    "locust": "load-test",
    "local_sagemaker": "",
}


class CannotPrint(OSError):
    """Standard output takes no more."""


class _Output(io.FileIO):
    """A standard stream. When nobody reads on, the rest goes nowhere and the command goes on."""

    def __init__(self, descriptor: int, *, must_arrive: bool) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._must_arrive = must_arrive

    def write(self, data: Any) -> int:
        try:
            while (
                written := super().write(data)
            ) is None:  # a pipe that is full and does not block
                select.select([], [self.fileno()], [])
            return written
        except OSError as error:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            if self._must_arrive and not isinstance(error, BrokenPipeError):
                raise CannotPrint(error.errno, error.strerror) from error
            return len(data)


def use_streams() -> None:
    """Streams that are there, say when they are full, and print any text."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:  # closed: the next file to be opened would take its place
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = _text(1, sys.stdout, must_arrive=True)
    sys.stderr = _text(2, sys.stderr, must_arrive=False)


def _text(descriptor: int, before: Any, *, must_arrive: bool) -> io.TextIOWrapper:
    errors = getattr(before, "errors", "strict")
    return io.TextIOWrapper(
        io.BufferedWriter(_Output(descriptor, must_arrive=must_arrive)),
        encoding=getattr(before, "encoding", "utf-8"),
        errors="backslashreplace" if errors == "strict" else errors,
        line_buffering=os.isatty(descriptor) or descriptor == 2,
    )


def use_width() -> None:
    """Rich takes COLUMNS and LINES as they are: 0 prints nothing, and "²" is a digit to it."""
    for name in ("COLUMNS", "LINES"):
        text = os.environ.get(name)
        if text is None:
            continue
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
        if not number:
            del os.environ[name]
        elif name == "COLUMNS":
            os.environ[name] = str(min(max(number, _LEAST_WIDTH), _MOST_WIDTH))


def interruptible() -> None:
    """A command begins: Ctrl-C and SIGTERM end it in order, with what it has found so far."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    if not isinstance(raw, _Output):  # within another program
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def guarded(run: Callable[[], Any]) -> int | str | None:
    """Run the commands' application; its exit code.

    What no command can fix itself is one line here.
    """
    code: int | str | None = 0
    try:
        run()
    except SystemExit as leaving:
        code = leaving.code
    except LowLatencyEndpointError as error:
        # Each problem with its line, and a blank line between two.
        code = _said("\n\n".join(error.parts if isinstance(error, SettingsError) else [str(error)]))
    except KeyboardInterrupt:
        code = INTERRUPTED
    except CannotPrint as error:
        code = _said(f"standard output cannot be written: {error.strerror}")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        code = _said(needs(package)) if package in _EXTRAS else _fault()
    except OSError as error:
        where = visible(f"{error.filename}: ") if error.filename is not None else ""
        code = _said(f"{where}{error.strerror or error}")
    except Exception:
        code = _fault()
    try:
        sys.stdout.flush()
    except CannotPrint as error:
        code = _said(f"standard output cannot be written: {error.strerror}")
    return code


def _fault() -> int:
    """Say that it is not the user's: exit code 1 would be that something was judged, and is wrong."""
    return _said(
        f"{traceback.format_exc()}\nA fault of low-latency: please report it with this text."
    )


def check_packages(*packages: str) -> None:
    """Say at once, before anything is read or sent, that a package is missing."""
    from importlib.util import find_spec

    for package in packages:
        if find_spec(package) is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)


def needs(package: str) -> str:
    """What to install when a package is missing."""
    extra = _EXTRAS[package]
    how = install_command(extra) if extra else "its wheel is what `make wheel` builds too"
    return f"This needs {package}, which is not installed: {how}"


def _said(text: str) -> int:
    with contextlib.suppress(OSError, ValueError):
        print(visible_lines(text), file=sys.stderr, flush=True)
    return _USAGE
