"""The fleet that target tracking keeps along a day of traffic, minute by minute."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator

from ..errors.frozen import dataclass
from ..options.capacity import stated

MINUTE = 60.0
_IN_MINUTES = 15
_IN_BELOW = 0.9


@dataclass(frozen=True)
class FleetAlong:
    """Instances along a day."""

    least: int
    mean: float  # over the time of the day: what is paid for
    most: int
    tps: float | None  # requests per second on average; None where they are not known


def fleet_along(
    levels: Iterable[tuple[float, float]],
    *,
    target_tps: float,
    minimum: int,
    maximum: int,
    scale_in_seconds: float = 300.0,
) -> FleetAlong:
    """The instances that are paid for along a day that repeats.

    Scaling out is counted as immediate: an instance is paid for while it starts. Scaling in waits
    until the load of all of the last 15 minutes was below nine tenths of the target, as the alarms
    do that target tracking makes, and for the cooldown; then it keeps what the busiest of these
    minutes needs.
    """
    rates = list(_minutes(levels))
    # The day repeats: it begins with the fleet with which the one before it ended.
    fleet, rest = minimum, 0.0
    back: deque[float] = deque(maxlen=_IN_MINUTES)
    counts: list[int] = []
    for rate in rates * 2:
        back.append(rate)
        rest -= MINUTE
        fleet = max(fleet, min(_needed(rate, target_tps), maximum))
        counts.append(fleet)
        if len(back) == _IN_MINUTES and rest <= 0 and max(back) < _IN_BELOW * target_tps * fleet:
            kept = max(_needed(max(back), target_tps), minimum)
            if kept < fleet:
                fleet, rest = kept, scale_in_seconds
    counts = counts[len(rates) :]
    return FleetAlong(min(counts), sum(counts) / len(counts), max(counts), sum(rates) / len(rates))


def _needed(rate: float, target: float) -> int:
    return math.ceil(stated(rate) / stated(target))


def _minutes(levels: Iterable[tuple[float, float]]) -> Iterator[float]:
    """The mean rate of each minute; a last part of a minute counts as one."""
    requests = filled = 0.0
    for seconds, rate in levels:
        left = seconds
        while left > 0:
            part = min(left, MINUTE - filled)
            requests, filled, left = requests + part * rate, filled + part, left - part
            if filled >= MINUTE - 1e-9:
                yield requests / filled
                requests = filled = 0.0
    if filled > 0:
        yield requests / filled
