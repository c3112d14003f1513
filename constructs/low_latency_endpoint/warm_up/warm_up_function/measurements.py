"""What was sent in a zone, how long it took, and whether that is good enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

AVERAGE = "Average"


def percentile(milliseconds: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile: the smallest value that ``percent`` of all do not exceed."""
    ordered = sorted(milliseconds)
    # Rounded first: 99.9 / 100 * 1000 is 999.0000000000001 in binary.
    return ordered[max(0, math.ceil(round(percent / 100 * len(ordered), 9)) - 1)]


def statistic(milliseconds: Sequence[float], name: str) -> float:
    """A statistic by CloudWatch's name: ``Average``, ``p99``, ``p99.9``."""
    if name == AVERAGE:
        return sum(milliseconds) / len(milliseconds)
    return percentile(milliseconds, float(name.removeprefix("p")))


def meets(last: Sequence[float | None], target: Mapping[str, float]) -> bool:
    """Whether these requests hold the target; one that failed took longer than any target."""
    times = [math.inf if taken is None else taken for taken in last]
    return bool(times) and all(
        statistic(times, name) <= milliseconds for name, milliseconds in target.items()
    )


@dataclass
class Zone:
    """The requests of one zone: counts, and the first and the last of their times."""

    sent: int = 0  # requests that have ended, and how many of them with an error
    failed: int = 0
    # milliseconds in the order in which they ended; None for a request that failed
    first: list[float | None] = field(default_factory=list)
    last: list[float | None] = field(default_factory=list)
    error: str = ""  # the latest failure

    def add(self, milliseconds: float | None, keep: int, error: str = "") -> None:
        """Count one request; of the times, the first ``keep`` and the last ``keep`` stay."""
        self.sent += 1
        if milliseconds is None:
            self.failed += 1
            self.error = error
        else:
            milliseconds = round(milliseconds, 3)
        if len(self.first) < keep:
            self.first.append(milliseconds)
        self.last = [*self.last, milliseconds][-keep:]

    def settled(self, requests: int, keep: int, target: Mapping[str, float]) -> bool:
        """Whether enough was sent, and the last of it succeeded and meets the target."""
        window = keep if target else min(keep, requests)
        recent = self.last[-window:]
        if self.sent < requests or len(recent) < window or None in recent:
            return False
        return not target or meets(recent, target)

    def report(self) -> dict[str, Any]:
        """Counts and percentiles, for people; times of requests that succeeded."""
        return {
            "requests": self.sent,
            "failed": self.failed,
            "first": _percentiles(self.first),
            "last": _percentiles(self.last),
            **({"error": self.error[:200]} if self.error else {}),
        }

    def to_dict(self) -> dict[str, Any]:
        """The zone as JSON-safe data."""
        return asdict(self)


def _percentiles(times: Sequence[float | None]) -> dict[str, float]:
    known = [taken for taken in times if taken is not None]
    return {
        f"p{percent}": round(percentile(known, percent), 1) for percent in (50, 90, 99) if known
    }


def embedded(
    namespace: str,
    dimensions: Mapping[str, str],
    metrics: Mapping[str, tuple[float, str]],
    seconds: float,
) -> dict[str, Any]:
    """Values with their units at a time, as CloudWatch's embedded metric format has them in a log."""
    return {
        "_aws": {
            "Timestamp": int(seconds * 1000),
            "CloudWatchMetrics": [
                {
                    "Namespace": namespace,
                    "Dimensions": [list(dimensions)],
                    "Metrics": [
                        {"Name": name, "Unit": unit} for name, (_, unit) in metrics.items()
                    ],
                }
            ],
        },
        **dimensions,
        **{name: value for name, (value, _) in metrics.items()},
    }
