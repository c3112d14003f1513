"""What one instance holds: in requests per second, in flight, and in its KV cache."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from ..options.scaling import ScalingOptions
from ..options.throughput import HeldTps, MeasuredThroughput, stated
from ..report.numbers import plain_number, readable


class InFlight(NamedTuple):
    """Requests in flight that scaling holds one instance at, and what it follows from."""

    measured: float
    safety_factor: float
    # requests of these lengths that the KV cache has room for; None where that is not known
    room: int | None

    @property
    def safe(self) -> float:
        """The measured limit times the safety factor."""
        return float(stated(self.measured) * stated(self.safety_factor))

    @property
    def bound_by_cache(self) -> bool:
        """Whether the KV cache holds fewer than the load test would allow."""
        return self.room is not None and self.room < self.safe

    @property
    def share(self) -> Fraction:
        """Of the measured limit that one instance is held at."""
        if self.room is not None and self.bound_by_cache:
            return self.room / stated(self.measured)
        return stated(self.safety_factor)

    @property
    def target(self) -> float:
        """The smaller of the two."""
        return float(self.room) if self.room is not None and self.bound_by_cache else self.safe


def load_of_instance(
    scaling: ScalingOptions, measured: MeasuredThroughput, held: HeldTps
) -> dict[str, Any]:
    """Return what one instance holds, and what scaling keeps it at, as inputs."""
    inputs: dict[str, Any] = {"TPS per instance": measured.tps_per_instance}
    if not held.by_target:
        return inputs | {"safety factor": measured.safety_factor}
    target = scaling.invocations_target or scaling.concurrency_target
    return inputs | {"your scaling target": target, "TPS of an instance at it": float(held.kept)}


def cache_limit(measured: MeasuredThroughput, limit: Fraction) -> dict[str, Any]:
    """Return what the KV cache lets an instance hold; nothing where it allows what is measured."""
    if limit == stated(measured.tps_per_instance):
        return {}
    return {"TPS that its KV cache holds": float(limit)}


def cache_note(series: InFlight | None, held: HeldTps) -> str:
    """That the KV cache asks for more instances than the safety factor does, where it does."""
    if series is None or not series.room or not series.bound_by_cache or held.by_target:
        return ""
    return (
        f"; the KV cache holds {series.room:,} of the {readable(series.safe)} requests in flight that "
        f"would be in reach, so {plain_number(float(series.share), 3)} of the limit is counted with, and not "
        "the safety factor"
    )
