"""Whether a machine's memory holds the bodies of a load test's requests, before any is sent."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ...errors import rule
from ...report.numbers import readable

BODIES_IN_MEMORY = rule(
    "LLT145",
    "the bodies of the requests do not fit the memory of the machine that sends",
    fix="Use fewer users, smaller bodies, or more machines, such as a fleet.",
)
#: A process has each body that it sends until the answer has come, and answers come on top.
_SHARE = 0.5
_CGROUP = Path("/sys/fs/cgroup")


def check_bodies(users: int, body_bytes: int, available: int | None, where: str = "") -> str:
    """Refuse callers whose bodies need more memory than there is.

    Returns
    -------
    str
        A warning where they need more than half of it, as answers need memory, too; else nothing.
    """
    needed = users * body_bytes
    if available is None or needed <= _SHARE * available:
        return ""
    got = f"{users:,} users with bodies of {_size(body_bytes)}: {_size(needed)}"
    if needed > available:
        raise BODIES_IN_MEMORY.error(
            got=got, allowed=f"at most {_size(available)}, which are available", where=where
        )
    return (
        f"{got} of the {_size(available)} of memory that are available, and answers come on top. "
        "Use fewer users, or more machines"
    )


def doubt_of_stalls(callers: int, body_bytes: int, available: int | None) -> str:
    """What an open loop would hold if nothing were answered; nothing where that fits."""
    needed = callers * body_bytes
    if available is None or needed <= available:
        return ""
    return (
        f"if the endpoint stalls, {callers:,} requests with bodies of {_size(body_bytes)} wait for "
        f"answers: {_size(needed)} of the {_size(available)} of memory that are available. Use a "
        "shorter --timeout, or more machines"
    )


def available_bytes() -> int | None:
    """Memory that is left on this machine, or in its container; ``None`` where nothing tells."""
    left = [one for one in (_of_machine(), _of_container(_CGROUP)) if one is not None]
    return min(left, default=None)


def _of_machine() -> int | None:
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024 * int(line.split()[1])
    return None


def _of_container(folder: Path) -> int | None:
    """What a control group (version 2) leaves; pages of files are given back when needed."""
    with suppress(OSError, ValueError, KeyError):
        most = int((folder / "memory.max").read_text("ascii"))  # "max": no limit
        used = int((folder / "memory.current").read_text("ascii"))
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return max(0, most - used + int(stat["inactive_file"]))
    return None


def _size(count: float) -> str:
    if count >= 1e9:
        return f"{readable(count / 1e9, 3)} GB"
    return f"{readable(count / 1e6, 3)} MB"
