"""What a model server that really computes tells of its process's load."""

from __future__ import annotations

import os
import resource
import sys
import time


class OwnLoad:
    """CPU in percent of one core since the last time, memory in percent of the machine."""

    def __init__(self) -> None:
        self._told = (time.perf_counter(), time.process_time())

    def utilization(self) -> dict[str, float]:
        """Tell it in AWS's names."""
        before, self._told = self._told, (time.perf_counter(), time.process_time())
        elapsed = max(self._told[0] - before[0], 1e-9)
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak *= 1 if sys.platform == "darwin" else 1024
        return {
            "CPUUtilization": 100.0 * (self._told[1] - before[1]) / elapsed,
            "MemoryUtilization": 100.0 * peak / pages,
        }
