"""What target tracking holds at its target: invocations, or requests in flight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ...account.metrics import Series
from .measurements import ScalingReading

INVOCATIONS, IN_FLIGHT = "invocations per instance and minute", "requests in flight on an instance"

#: How far above the target the metric is before the load alone is too much. Of requests in flight
#: CloudWatch has the maximum of a period only, which lies above what scaling sees of it.
_TOO_MUCH = {INVOCATIONS: 1.2, IN_FLIGHT: 1.5}
#: The same for a risk: at the maximum, and above the target.
_ABOVE = {INVOCATIONS: 1.0, IN_FLIGHT: 1.5}


@dataclass(frozen=True, slots=True)
class TrackedMetric:
    """A metric per instance, and the value that scaling aims at."""

    series: Series
    target: float
    unit: str

    @property
    def concurrency(self) -> bool:
        """Whether scaling follows requests in flight, queued ones too."""
        return self.unit == IN_FLIGHT

    def peak(self, times: Iterable[datetime]) -> float | None:
        """The highest value at these times."""
        return self.series.only(times).max

    def too_much(self, value: float) -> bool:
        """Whether this is more than the instances were meant for, beyond any doubt."""
        return value >= _TOO_MUCH[self.unit] * self.target

    def times_above(self) -> list[datetime]:
        """Periods above the target."""
        limit = _ABOVE[self.unit] * self.target
        return sorted(time for time, value in self.series.points.items() if value >= limit)

    def words(self, value: float) -> str:
        """A value beside the target."""
        form = ".3g" if max(value, self.target) < 100 else ",.0f"
        return f"{value:{form}} {self.unit} against a target of {self.target:{form}}"


def tracked_unit(scaling: ScalingReading | None) -> str | None:
    """Which of the two a policy tracks; ``None`` when it tracks neither, or nothing."""
    if scaling is None or not scaling.target:
        return None
    if "InvocationsPerInstance" in scaling.metric:
        return INVOCATIONS
    return IN_FLIGHT if "ConcurrentRequests" in scaling.metric else None
