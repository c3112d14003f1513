"""Waiting for what comes by itself, and looking at processes of this machine."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def wait_for(found: Callable[[], Any], seconds: float = 60) -> Any:
    """The first answer that is true; none within the time is a failure."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := found():
            return answer
        time.sleep(0.02)
    raise AssertionError(f"waited in vain: {found()}")


def until(read: Callable[[], Any], holds: Callable[[Any], bool], seconds: float = 60) -> Any:
    """What is read, once it is as it should be."""
    return wait_for(lambda: (found,) if holds(found := read()) else None, seconds)[0]


def alive(process_id: int) -> bool:
    """Whether a process runs; one that ended and was not waited for does not."""
    try:
        state = Path(f"/proc/{process_id}/stat").read_text("latin-1")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state.rpartition(")")[2].split()[0] != "Z"


def processes(marker: str, where: str = "cmdline") -> set[int]:
    """The living processes with the marker in their command line, or their environment."""
    found = set()
    for file in Path("/proc").glob(f"[0-9]*/{where}"):
        with contextlib.suppress(OSError):
            if marker.encode() in file.read_bytes() and alive(int(file.parent.name)):
                found.add(int(file.parent.name))
    return found


def processes_of(endpoint: str) -> set[int]:
    """The living processes that are, or came of, an endpoint's model servers."""
    return processes(f"/{endpoint}-", "environ")
