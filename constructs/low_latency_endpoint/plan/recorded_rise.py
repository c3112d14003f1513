"""Rises of recorded traffic that are faster than the settings state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from ..facts.limits import HIGHEST_RATE
from ..facts.scaling_rules import IN_MINUTES
from ..report.numbers import readable
from .scaling_pace import MINUTE, fewest_for_rises

if TYPE_CHECKING:
    from .plan import Plan
    from .traffic_shapes import Shape

#: Standard deviations that two counts of independent callers differ by chance at most: the largest of
#: the differences of a week of minutes is below five in 99 of 100 weeks.
_CHANCE = 5.0
#: Periods over which a rise is measured: the longer ones show a slow rise, which chance hides in one.
_SPANS = (1, 4, 12)


class RecordedRise(NamedTuple):
    """A rise of traffic: the smallest that its counts can mean."""

    tps_per_minute: float
    begins: float  # seconds from the start of the recording


def contradicted_rises(plan: Plan, shape: Shape, peak_tps: float) -> str:
    """What a recording contradicts of the rises that settings state, and what follows; else empty.

    ``peak_tps`` is the rate at the recording's peak, to which all of it is scaled. Where other peaks
    of the day are stated, nothing is judged: the recording has their jumps too.
    """
    if plan.peaks:
        return ""
    measured = plan.request.throughput
    rise = largest_rise(shape, peak_tps)
    held = plan.held_tps
    if rise is None or measured is None or held is None:
        return ""
    if plan.scaling is None or not measured.states_rises:
        return ""
    lag = plan.request.rise_seconds
    fastest = min(rise.tps_per_minute, HIGHEST_RATE)
    recorded = replace(measured, from_tps=None, rise_tps_per_minute=fastest)
    needed = fewest_for_rises(recorded, lag, held)
    if measured.rise_tps_per_minute is not None:
        if rise.tps_per_minute <= measured.rise_tps_per_minute:
            return ""
        said = f"rise_tps_per_minute is {readable(measured.rise_tps_per_minute, 4)}"
    else:
        if needed <= fewest_for_rises(measured, lag, held):
            return ""
        said = f"from_tps is {readable(measured.from_tps, 4)}"
    minimum = plan.fleet.minimum
    enough = "enough for it" if needed <= minimum else "too low for it"
    return (
        f"{shape.name}, with its peak at {readable(peak_tps, 4)} TPS, rises by at least "
        f"{readable(rise.tps_per_minute, 3)} TPS per minute after minute "
        f"{readable(rise.begins / MINUTE, 4)} (without what can be chance), where {said}: such a "
        f"rise needs a minimum of {needed}, and the minimum of {minimum} is {enough}"
    )


def largest_rise(shape: Shape, peak_tps: float) -> RecordedRise | None:
    """The fastest rise of recorded counts that is more than chance; None if there is none.

    Counts of less than a minute are joined to minutes. Of longer periods, a rise is spread over each.
    Traffic that comes back after a lull does not rise: scaling keeps for 15 minutes what it had.
    """
    if not shape.recorded_peak:
        return None
    period, counts = _at_least_minutes(shape, shape.recorded_peak)
    kept = max(1, round(IN_MINUTES * MINUTE / period))
    fastest = max(_rises(counts, kept), default=None)
    if fastest is None or fastest[0] <= 0:
        return None
    per_period, number = fastest
    scale = peak_tps / shape.recorded_peak
    return RecordedRise(scale * per_period / period * MINUTE / period, number * period)


def _rises(counts: Sequence[float], kept: int) -> Iterator[tuple[float, int]]:
    """By how many requests each count is above earlier ones, for each period, less chance.

    Earlier ones are the highest of the periods for which scaling keeps a fleet.
    """
    highest = [max(counts[max(0, at + 1 - kept) : at + 1]) for at in range(len(counts))]
    for span in _SPANS:
        for number, (before, after) in enumerate(zip(highest, counts[span:], strict=False)):
            chance = _CHANCE * math.sqrt(before + after)
            yield (after - before - chance) / span, number


def _at_least_minutes(shape: Shape, peak_tps: float) -> tuple[float, list[float]]:
    """Seconds of a period, a minute or more, and the requests in each that is whole."""
    period = shape.levels[0][0]
    counts = [share * peak_tps * period for _, share in shape.levels]
    size = max(1, round(MINUTE / period))
    whole = len(counts) // size * size
    return size * period, [sum(counts[at : at + size]) for at in range(0, whole, size)]
