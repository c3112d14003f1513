"""Percentiles measured in real time beside the true ones, on a machine that others use too."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import StepResult

__all__ = ["PRECISION", "Busyness", "Pairs", "agree", "pairs_of", "percentile_of"]

PRECISION = 0.01
#: gevent's sockets wake with the loop; the rest is the request's own way through two processes.
RESOLUTION = 0.001
#: What a busy machine may add to a percentile, as a share of it, however late it made requests.
MOST_HELD_UP = 0.03
#: Runs until one agrees; each later one is longer.
RUNS = 3
#: Share of the time in which some process may wait for a processor; a generator and a server that
#: have two of them to themselves stay far below.
MOST_WAITING = 0.10

#: True and measured percentiles, in seconds.
Pairs = list[tuple[float, float]]


class Busyness:
    """Whether processes had to wait for a processor since this was made.

    By Linux's pressure stall information; where there is none, by the load average.
    """

    def __init__(self) -> None:
        self._since, self._waited = time.monotonic(), _waited()

    @property
    def share(self) -> float:
        """Of the time."""
        waited = _waited()
        if waited is None or self._waited is None:
            load = os.getloadavg()[0]
            return max(0.0, 1 - (os.cpu_count() or 1) / load) if load else 0.0
        return (waited - self._waited) / (time.monotonic() - self._since)

    @property
    def disturbs(self) -> bool:
        """Whether it was too much to judge by the clock."""
        return self.share > MOST_WAITING


def _waited() -> float | None:
    """Seconds in which some process waited for a processor, since the machine started."""
    try:
        some = Path("/proc/pressure/cpu").read_text(encoding="ascii").splitlines()[0]
    except (OSError, IndexError):
        return None
    return int(some.rpartition("total=")[2]) / 1e6


def percentile_of(samples: Sequence[float], percent: float) -> float:
    """By the nearest rank, without a histogram."""
    return sorted(samples)[max(0, math.ceil(percent / 100 * len(samples) - 1e-6) - 1)]


def pairs_of(true: Sequence[float], measured: LatencyHistogram) -> Pairs:
    """The percentiles that at least ten samples lie beyond."""
    assert len(true) == measured.count
    reliable = [one for one in measured.percentiles() if one.reliable]
    assert reliable[-1].percent >= 99
    return [(percentile_of(true, one.percent), one.seconds) for one in reliable]


def agree(run: Callable[[float], tuple[StepResult, Pairs]], *, lower_bounds: bool = True) -> None:
    """All pairs of one run agree; ``run`` takes how many times longer than usual it is to be.

    They agree within 1 %, and as much more as the run itself says that it was held up, but 3 % at
    most. A run that does not agree is repeated. When none does, it is a fault, unless the machine
    was too busy in all of them, or the tool called them client-bound: then a clock on the wall can
    judge one thing only, which no machine excuses: nothing was faster than it can have been.

    Exact figures on a machine of any load are those of a clock that jumps:
    tests/deploy/runtime/test_injected_latencies.py.
    """
    said: list[str] = []
    for number in range(RUNS):
        busyness = Busyness()
        result, pairs = run(1 + number / 2)
        disturbed = busyness.disturbs or not result.valid
        lag, loop_lag = result.send_lag.percentile(99), result.loop_lag_p99
        if lower_bounds:
            early = [pair for pair in pairs if pair[1] < (1 - PRECISION) * pair[0] - RESOLUTION]
            assert not early, early
        wrong = _off(pairs, 2 * (lag + loop_lag))
        if not wrong:
            return
        if not disturbed:
            said.append(
                f"{wrong} (send lag p99 {1000 * lag:.1f} ms, processes waited for a "
                f"processor in {busyness.share:.0%} of the time)"
            )
    assert not said, said


def _off(pairs: Pairs, held_up: float) -> str:
    """Which pairs do not agree; empty when all do."""
    return ", ".join(
        f"{measured:.4f} not {true:.4f}"
        for true, measured in pairs
        if abs(measured - true)
        > max(PRECISION * true, RESOLUTION) + min(held_up, MOST_HELD_UP * true)
    )
