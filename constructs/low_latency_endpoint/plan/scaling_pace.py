"""How fast scaling follows the traffic, and the fleet that it keeps along a day, minute by minute."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from ..errors.frozen import dataclass
from ..errors.impossible import falling, out_of_range, refuse
from ..facts.scaling_rules import IN_MINUTES, IN_SHARE, OUT_DATAPOINTS
from ..options.throughput import HELD_SHARE, instances_for, stated
from ..report.numbers import plain_number
from .decisions import IMPOSSIBLE

if TYPE_CHECKING:
    from ..options.throughput import HeldTps, MeasuredThroughput

METRIC_PERIOD_SECONDS = 60
"""Of SageMakerVariantInvocationsPerInstance: CloudWatch has it once a minute."""

METRIC_DELAY_SECONDS = 60
"""From the end of a minute until its value can be seen: assumed, AWS states no number."""

INSTANCE_SECONDS = 300
"""From the decision to a new instance's first request, where nobody states it: assumed, "minutes"
by AWS's pages. AWS has published 258 to 525 s for a language model of 16 GB (blog of June 2026 on
container caching)."""

SCALE_OUT_SECONDS = 60
"""The cooldown after scaling out, where nobody states it: one period of the metric."""

SCALE_IN_SECONDS = 300
"""The cooldown after scaling in, where nobody states it: AWS's default."""

START_SECONDS, START_BYTES_PER_SECOND = 225, 1_000_000_000
"""Of a start, what does not depend on the weights, and how fast these come: assumed, optimistic.
Weights are moved twice, from S3 onto the disk and from there into memory; with 16 GB both together
are the 258 s that AWS has published with the image in its cache."""


def start_floor(weight_bytes: int) -> int:
    """Seconds that the start of an instance takes at the least with weights of so many bytes."""
    return math.ceil(START_SECONDS + 2 * weight_bytes / START_BYTES_PER_SECOND)


def jump_seconds(instance_seconds: int) -> int:
    """From a jump at the start of a minute until the instances that it needs serve.

    They are one scale-out. A cooldown holds it back only where another one, as large, came before.
    """
    return OUT_DATAPOINTS * METRIC_PERIOD_SECONDS + METRIC_DELAY_SECONDS + instance_seconds


def rise_seconds(instance_seconds: int, cooldown: int) -> int:
    """How far the fleet lags behind traffic that goes on rising.

    The last value seen is of the middle of a minute: a minute and a half before, with the delay. What
    is decided on it serves after one start, and is all there is until the next scale-out serves. That
    one is decided at the first full minute after the start of the first and its cooldown, which is
    counted as a minute at least; or, where the first was enough for a while, after three minutes above
    the target. AWS lets a larger scale-out through before, and does not define larger: it is not
    counted on.
    """
    period = METRIC_PERIOD_SECONDS
    held_back = instance_seconds + max(cooldown, period)
    decided = max(OUT_DATAPOINTS * period, period * math.ceil(held_back / period))
    return METRIC_DELAY_SECONDS + period // 2 + decided + instance_seconds


class RisesHeld(NamedTuple):
    """The smallest minimum with which scaling follows the stated rises, and how it follows."""

    fewest: int
    worked_out: str


def fewest_for_rises(measured: MeasuredThroughput, lag_seconds: int, held: HeldTps) -> int:
    """The minimum of :func:`minimum_for_rises` alone."""
    return minimum_for_rises(measured, lag_seconds, held).fewest


def minimum_for_rises(measured: MeasuredThroughput, lag_seconds: int, held: HeldTps) -> RisesHeld:
    """The smallest minimum with which scaling follows the rises of traffic that are stated.

    With *t* requests per second at an instance's limit, of which scaling uses a share *s*, and a peak
    of *P*, scaling keeps ``x / (t s)`` instances at a rate of *x*, and never fewer than the minimum *m*.

    - A jump from *f* to *P*: ``P / (0.9 t)``, which bear it for the minutes of :func:`jump_seconds`,
      unless as many are kept at *f*.
    - A rise of *r* per second each second, and a lag of *D* (:func:`rise_seconds`): the worst *x* is ``m t s``, so that
      ``m t >= m t s + r D``, and no more than for a jump. The limit is reached at the lag's end alone.
    """
    holding = instances_for(measured.peak_tps, held.limit, HELD_SHARE)
    peak, limit = measured.peak_tps, float(held.limit)
    if measured.from_tps is not None:
        kept = instances_for(measured.from_tps, held.kept) if measured.from_tps else 0
        worked_out = f"{plain_number(peak)} / ({plain_number(limit)} x {plain_number(HELD_SHARE)}) = {plain_number(peak / (limit * HELD_SHARE), 3)}"
        return RisesHeld(1 if kept >= holding else holding, worked_out)
    if measured.rise_tps_per_minute is None:
        return RisesHeld(1, "")
    rise, lag = measured.rise_tps_per_minute, lag_seconds / 60
    comes = stated(rise) * Fraction(lag_seconds, 60)
    spare = held.limit - held.planned
    worked_out = f"{plain_number(rise)} x {plain_number(lag)} / ({_spare_text(measured, held)})"
    if not spare:
        return RisesHeld(holding, worked_out)
    worked_out += f" = {plain_number(rise * lag / float(spare), 3)}"
    return RisesHeld(min(holding, math.ceil(comes / spare)), worked_out)


def _spare_text(measured: MeasuredThroughput, held: HeldTps) -> str:
    """What scaling leaves of an instance's limit, as a difference or as a share."""
    limit = float(held.limit)
    if held.by_target or held.limit < stated(measured.tps_per_instance):
        return f"{plain_number(limit, 4)} - {plain_number(float(held.planned), 4)}"
    return f"{plain_number(limit)} x (1 - {plain_number(measured.safety_factor)})"


MINUTE = 60.0


@dataclass(frozen=True)
class FleetAlong:
    """Instances along a day."""

    least: int
    mean: float  # over the time of the day: what is paid for
    most: int
    tps: float | None  # requests per second on average; None where they are not known

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, "fleet along a day", out_of_range(vars(self)))
        fleets = {"fewest": self.least, "average": self.mean, "most": self.most}
        refuse(IMPOSSIBLE, "fleet along a day", falling(fleets))


def fleet_along(
    levels: Iterable[tuple[float, float]],
    *,
    target_tps: float,
    minimum: int,
    maximum: int,
    scale_in_seconds: float = 300.0,
    ranges: Mapping[int, tuple[int, int]] | None = None,
) -> FleetAlong:
    """The instances that are paid for along a day that repeats.

    Scaling out is counted as immediate where a load lasts for the three minutes after which its alarm
    acts: an instance is paid for while it starts. Scaling in waits
    until the load of all of the last 15 minutes was below nine tenths of the target, as the alarms
    do that target tracking makes, and for the cooldown; then it keeps what the busiest of these
    minutes needs. ``ranges`` are minimum and maximum from these minutes on: at once instances are
    added up to the minimum, and taken away down to the maximum.
    """
    rates = list(_minutes(levels))
    lasting = [min(following) for following in _runs_of(rates, OUT_DATAPOINTS)]
    # The day repeats: it begins with the fleet with which the one before it ended.
    fleet, rest = minimum, 0.0
    back: deque[float] = deque(maxlen=IN_MINUTES)
    counts: list[int] = []
    changes = ranges or {}
    if changes:  # the last range of the day before stands at its beginning
        minimum, maximum = changes[max(changes)]
        fleet = minimum
    for number, rate in enumerate(rates * 2):
        minimum, maximum = changes.get(number % len(rates), (minimum, maximum))
        fleet = min(max(fleet, minimum), maximum)
        back.append(rate)
        rest -= MINUTE
        fleet = max(fleet, min(_needed(lasting[number % len(rates)], target_tps), maximum))
        counts.append(fleet)
        if len(back) == IN_MINUTES and rest <= 0 and max(back) < IN_SHARE * target_tps * fleet:
            kept = max(_needed(max(back), target_tps), minimum)
            if kept < fleet:
                fleet, rest = kept, scale_in_seconds
    counts = counts[len(rates) :]
    return FleetAlong(min(counts), sum(counts) / len(counts), max(counts), sum(rates) / len(rates))


def _runs_of(rates: Sequence[float], size: int) -> Iterator[list[float]]:
    """Each rate with those that follow it in a day that repeats, so many in all."""
    for number in range(len(rates)):
        yield [rates[(number + ahead) % len(rates)] for ahead in range(size)]


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
