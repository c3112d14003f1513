"""How many processes of the load generator a machine carries, and how long they take to start."""

from __future__ import annotations

import os
from contextlib import suppress

from ...errors import ConfigurationError
from ...report.numbers import readable
from .generator_process import NO_REPORT

#: To connect, on a machine that is not busy with starting.
CONNECT_SECONDS = 60.0
#: Added for each process that shares a processor: 3 s of processor time were measured (imports and a
#: client of AWS), on a machine that others use as well it takes three times as long.
START_SECONDS = 10.0
#: From here on processes are only in each other's way. Our judgement: some wait for input.
_TOO_MANY = 2.0


def available_processors() -> int:
    """Those of this machine that this process may use."""
    with suppress(AttributeError, OSError):  # only Linux tells
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def start_seconds(processes: int, processors: int) -> float:
    """How long processes may take to start before something is wrong."""
    return CONNECT_SECONDS + START_SECONDS * processes / processors


def fix_of_silence(processes: int, processors: int) -> str:
    """What helps against processes of this machine that are too busy to report."""
    if processes > processors:
        return (
            f"Use at most --processes {processors}, one for each processor of this machine; or a machine "
            "with more processors, or a fleet."
        )
    return (
        "See what else keeps this machine busy, and that the function that makes payloads does not "
        "block; or use another machine."
    )


def not_started(ready: int, processes: int, processors: int) -> ConfigurationError:
    """Processes of this machine that did not start in their time."""
    return NO_REPORT.error(
        got=f"{ready} of {processes} workers after "
        f"{readable(start_seconds(processes, processors))} s on {_counted(processors)}",
        allowed=f"{processes} workers",
        fix=fix_of_silence(processes, processors),
    )


def doubt_of_processes(processes: int, processors: int) -> str:
    """What to say before so many are started; empty where it makes sense."""
    if processes <= _TOO_MANY * processors:
        return ""
    return (
        f"{processes} processes share {_counted(processors)}: they send no more than {processors}, and "
        f"may take up to {readable(start_seconds(processes, processors))} s to start. Use --processes "
        f"{processors}; each sends for many users"
    )


def _counted(processors: int) -> str:
    return f"{processors} processor" + ("s" if processors != 1 else "")
