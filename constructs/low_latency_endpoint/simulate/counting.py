"""Count what a replication's requests met: histograms, sums, and one line for each window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import kernels
from .compilation import Loops

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class TimelineWindow:
    """What happened from one time to another; times in seconds.

    Attributes
    ----------
    begin, end : float
        The window.
    requests : int
        Requests answered in it.
    p50, p99 : float
        Percentiles of their client latency; 0 when there was none.
    slow : int
        Answered later than the latency target.
    failed : int
        Lost with an instance, or met no instance.
    serving, launched : int
        Instances at the end: that serve, and that are paid for.
    in_flight : int
        Requests in the system at the end.
    """

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
        """Whether p99 was above the latency target: more than one call in a hundred was answered
        late or failed."""
        return 100 * (self.slow + self.failed) > self.requests + self.failed


class Counter:
    """Histograms and sums of one replication."""

    def __init__(self, loops: Loops, target: float | None) -> None:
        self.loops = loops
        self.target = float("inf") if target is None else float(target)
        self.latencies, self.waits, self.window = (
            loops.same_whole(0, kernels.BINS) for _ in range(3)
        )
        self.sums = loops.same_float(0.0, 7)
        self.window_sums = loops.same_float(0.0, 7)
        self.windows: list[TimelineWindow] = []
        self.by_window = False

    def forget(self) -> None:
        """Start anew: what was counted belonged to the start of the run."""
        for name in ("latencies", "waits", "window"):
            setattr(self, name, self.loops.same_whole(0, kernels.BINS))
        self.sums = self.loops.same_float(0.0, 7)
        self.window_sums = self.loops.same_float(0.0, 7)
        self.windows = []

    def take(self, latency: Any, wait: Any, hop: Any, size: int) -> None:
        """Count a block of results."""
        histogram = self.window if self.by_window else self.latencies
        sums = self.window_sums if self.by_window else self.sums
        self.loops.tally(latency, wait, hop, size, self.target, histogram, self.waits, sums)

    def close_window(
        self, begin: float, end: float, *, failed: int, serving: int, launched: int, in_flight: int
    ) -> None:
        """End a window: note its line and add it to the whole."""
        sums = self.window_sums
        count = float(sums[0])
        p50, p99 = (
            self.loops.quantile(self.window, share * count) if count else 0.0
            for share in (0.50, 0.99)
        )
        self.windows.append(
            TimelineWindow(
                begin,
                end,
                int(count),
                float(p50),
                float(p99),
                int(sums[5]),
                failed,
                serving,
                launched,
                in_flight,
            )
        )
        self._add_window()

    def _add_window(self) -> None:
        sums = self.window_sums
        if sums[0]:
            self.loops.add_and_clear(self.window, self.latencies)
        for at in range(7):
            self.sums[at] = max(self.sums[at], sums[at]) if at == 2 else self.sums[at] + sums[at]
            sums[at] = 0.0

    def finish(self) -> None:
        """Count what stands in an open window to the whole."""
        self._add_window()

    @property
    def requests(self) -> int:
        """Requests answered."""
        return int(self.sums[0] + self.window_sums[0])

    @property
    def late(self) -> float:
        """Requests answered later than the target."""
        return float(self.sums[5] + self.window_sums[5])

    def latency(self, percentile: float) -> float:
        """A percentile of the client latency, in seconds."""
        return float(self.loops.quantile(self.latencies, percentile / 100 * self.requests))

    def wait(self, percentile: float) -> float:
        """A percentile of the wait in line, in seconds; 0 when so many did not wait."""
        rank = percentile / 100 * self.requests - float(self.sums[4])
        return float(self.loops.quantile(self.waits, rank)) if rank > 0 else 0.0
