"""Count what a replication's requests met: histograms, sums, and one line for each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import kernels
from .compilation import Loops

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class TimelineWindow:
    """What happened from one time to another (attributes: :class:`.replication.Replication`)."""

    begin: float
    end: float
    requests: int
    p50: float
    p99: float
    slow: int
    failed: int
    serving: int
    launched: int
    in_flight: int

    @property
    def over_target(self) -> bool:
        """Whether more than one call in a hundred was answered late or failed."""
        return 100 * (self.slow + self.failed) > self.requests + self.failed


class Counter:
    """Histograms and sums of one replication: those of closed windows, and of the open one."""

    def __init__(self, loops: Loops, target: float | None) -> None:
        self.loops = loops
        self.target = float("inf") if target is None else float(target)
        self.forget()

    def forget(self) -> None:
        """Start anew: what was counted belonged to the start of the run."""
        self.latencies, self.window = (self.loops.same_whole(0, kernels.BINS) for _ in range(2))
        self.sums, self.window_sums = (self.loops.same_float(0.0, 4) for _ in range(2))
        self.windows: list[TimelineWindow] = []

    def take(self, latency: Any, wait: Any, size: int) -> None:
        """Count a block of results into the open window."""
        self.loops.tally(latency, wait, size, self.target, self.window, self.window_sums)

    def close_window(self, begin: float, end: float, **at_end: int) -> None:
        """End a window: note its line and add it to the whole."""
        sums = self.window_sums
        count = float(sums[0])
        p50, p99 = (
            self.loops.quantile(self.window, share * count) if count else 0.0
            for share in (0.50, 0.99)
        )
        self.windows.append(
            TimelineWindow(begin, end, int(count), float(p50), float(p99), int(sums[3]), **at_end)
        )
        self.finish()

    def finish(self) -> None:
        """Count what stands in the open window to the whole."""
        sums = self.window_sums
        if sums[0]:
            self.loops.add_and_clear(self.window, self.latencies)
        for at in range(4):
            self.sums[at] += sums[at]
            sums[at] = 0.0

    @property
    def requests(self) -> int:
        """Requests answered."""
        return int(self.sums[0] + self.window_sums[0])

    @property
    def late(self) -> float:
        """Requests answered later than the target."""
        return float(self.sums[3] + self.window_sums[3])

    def latency(self, percentile: float) -> float:
        """A percentile of the client latency, in seconds."""
        return float(self.loops.quantile(self.latencies, percentile / 100 * self.requests))
