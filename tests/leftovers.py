"""Whoever leaves something for the tests after it fails, and is named."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

_STARTED: weakref.WeakSet[subprocess.Popen[Any]] = weakref.WeakSet()
#: pytest's own, and what mkdocs-material sets when it is imported.
_IGNORED = {"PYTEST_CURRENT_TEST", "NO_MKDOCS_2_WARNING"}
_SECONDS = 5


def watch_processes() -> None:
    """Keep every process that Python starts from now on in view."""
    start = subprocess.Popen.__init__

    def started(process: subprocess.Popen[Any], *args: Any, **options: Any) -> None:
        start(process, *args, **options)
        _STARTED.add(process)

    subprocess.Popen.__init__ = started  # type: ignore[method-assign]


def _surroundings() -> dict[str, Any]:
    """What one test can change under the next, by name."""
    environment = {k: v for k, v in os.environ.items() if k not in _IGNORED}
    return {
        **{f"environment variable {name}": value for name, value in environment.items()},
        "working directory": _folder(),
        "sys.path": list(sys.path),
        "handler of SIGINT": signal.getsignal(signal.SIGINT),
        "handler of SIGTERM": signal.getsignal(signal.SIGTERM),
        "level of the root logger": logging.root.level,
        "switch interval": sys.getswitchinterval(),
    }


def _folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "deleted"


def _threads() -> set[threading.Thread]:
    """Without those of an event loop's own pool, which end with the loop."""
    return {
        thread
        for thread in threading.enumerate()
        if not (thread.daemon or thread.name.startswith("asyncio_"))
    }


#: What goes on in a process that uses it: a local AWS ends its own (test_nothing_is_left.py), jsii's
#: Node.js serves all that is made with the CDK.
_KEPT = ("local_sagemaker", "jsii")


def _processes() -> set[subprocess.Popen[Any]]:
    return {
        process
        for process in _STARTED
        if process.returncode is None and not any(kept in str(process.args) for kept in _KEPT)
    }


class Leftovers:
    """Fixtures that compare before and after."""

    @pytest.fixture(autouse=True, scope="module")
    @classmethod
    def _no_local_aws_goes_on(cls) -> Iterator[None]:
        """All local AWSs of a process share one state, which lasts until the last one stops."""
        yield
        serving = sys.modules.get("local_sagemaker.serving")
        if serving is not None and serving.SERVED:
            urls = ", ".join(sorted(runtime.aws_url for runtime in serving.SERVED.values()))
            pytest.fail(f"left for the next file: the local AWS at {urls} runs", pytrace=False)

    @pytest.fixture(autouse=True)
    def _nothing_is_left(self) -> Iterator[None]:
        before, threads, processes = _surroundings(), _threads(), _processes()
        yield
        after = _surroundings()
        left = [
            f"{name} is {after.get(name, 'gone')!r}, it was {before.get(name, 'not there')!r}"
            for name in before.keys() | after.keys()
            if before.get(name) != after.get(name)
        ]
        for thread in _threads() - threads:
            thread.join(_SECONDS)
            if thread.is_alive():
                left.append(f"thread {thread.name} runs")
        left += [
            f"process {process.args} runs"
            for process in _processes() - processes
            if process.poll() is None
        ]
        left += [f"process {child.name} runs" for child in multiprocessing.active_children()]
        if left:
            pytest.fail("left for the next test: " + "; ".join(left), pytrace=False)
