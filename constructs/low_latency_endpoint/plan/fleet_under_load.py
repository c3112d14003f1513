"""A fleet in a range of instances, the load that it has to hold, and what a zone outage leaves of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

from ..errors.frozen import dataclass
from ..errors.impossible import falling, out_of_range, refuse
from ..options.throughput import HELD_SHARE, HeldTps, MeasuredThroughput, instances_for, stated
from .decisions import IMPOSSIBLE
from .standing_ranges import CapacityRange


@dataclass(frozen=True)
class Fleet:
    """Numbers of instances that hold together."""

    # that hold the peak; at least one per client zone and at least two, unless fewer are stated
    at_peak: int
    minimum: int
    initial: int
    maximum: int

    def __post_init__(self) -> None:
        refuse(IMPOSSIBLE, "fleet", out_of_range(vars(self), low=1))
        ordered = {name: getattr(self, name) for name in ("minimum", "initial", "maximum")}
        refuse(IMPOSSIBLE, "fleet", falling(ordered))

    def within(self, capacity: CapacityRange) -> Fleet:
        """The fleet while another range stands; instances at first are those nearest to them."""
        initial = min(max(self.initial, capacity.minimum), capacity.maximum)
        return replace(self, initial=initial, **capacity._asdict())

    @property
    def serving_at_peak(self) -> int:
        """Instances in service at the peak: those needed, as far as the maximum lets them."""
        return min(max(self.at_peak, self.minimum), self.maximum)


class FleetUnderLoad(NamedTuple):
    """A range that can stand, and the load that it has to hold."""

    name: str  # of the scheduled action or the peak that brings it; empty for the usual range
    times: str
    fleet: Fleet
    measured: MeasuredThroughput | None
    zones: int
    held_tps: HeldTps | None  # of an instance; None without a throughput
    scales: bool

    @property
    def limit_tps(self) -> Fraction:
        """What one instance holds, in requests per second; 0 without a throughput."""
        return self.held_tps.limit if self.held_tps else Fraction(0)

    @property
    def label(self) -> str:
        """Name and times in words; empty for the usual range."""
        return f"{self.name} ({self.times})" if self.name else ""

    @property
    def prefix(self) -> str:
        """The label before a text about the range; empty for the usual range."""
        return f"{self.label}: " if self.label else ""

    @property
    def serving_at_peak(self) -> int:
        """Instances in service at the peak; those of a fixed fleet always are."""
        return self.fleet.serving_at_peak if self.scales else self.fleet.initial

    def left_by_zone_outage(self, instances: int) -> int:
        """Instances that are left when the fullest zone of a fleet of so many fails."""
        return instances - -(-instances // self.zones)

    def zone_outage(self, instances: int) -> FleetWithoutZone | None:
        """A zone outage of a fleet of so many; ``None`` without a throughput, or with none left.

        The load is that of the peak. Fewer instances than serve there are left by scaling only below
        their number times what it keeps each at.
        """
        left = self.left_by_zone_outage(instances)
        if self.measured is None or self.held_tps is None or not left:
            return None
        tps = stated(self.measured.peak_tps)
        if instances < self.serving_at_peak and self.scales:
            tps = min(tps, instances * self.held_tps.kept)
        return FleetWithoutZone(instances, left, self.limit_tps * left, tps)

    @property
    def outage_at_peak(self) -> FleetWithoutZone | None:
        """A zone outage of the fleet that serves the peak."""
        return self.zone_outage(self.serving_at_peak)

    @property
    def outage_at_minimum(self) -> FleetWithoutZone | None:
        """A zone outage of the minimum; ``None`` where it is the fleet of the peak."""
        return self._outage_below_peak(self.fleet.minimum)

    def enough_below_peak(self, instances: int, share: float) -> int | None:
        """The fewest of which a zone outage leaves enough, at a share of the limit.

        So many instances, or more by whole rounds of the zones. Each round adds as much to what is
        held as the one before, and to the load, so no fleet has to be tried. ``None`` where it takes
        the fleet of the peak, or where nothing is known of the load.
        """
        if self.measured is None or self.held_tps is None or self.zones < 2 or not self.scales:
            return None
        held = stated(share) * self.limit_tps
        left = self.left_by_zone_outage(instances)
        rounds = [math.ceil((stated(self.measured.peak_tps) / held - left) / (self.zones - 1))]
        missing = self.held_tps.kept * instances - held * left
        gained = held * (self.zones - 1) - self.held_tps.kept * self.zones
        if missing <= 0:
            rounds.append(0)
        elif gained > 0:
            rounds.append(math.ceil(missing / gained))
        fewest = instances + self.zones * max(0, min(rounds))
        return fewest if fewest < self.serving_at_peak else None

    @property
    def overloaded_below_peak(self) -> Iterator[range]:
        """The fleets from the minimum up to that of the peak that a zone outage overloads.

        Those that leave the same rest when divided by the zones are a range each.
        """
        minimum, at_peak = self.fleet.minimum, self.serving_at_peak
        if self.measured is None or self.zones < 2 or not self.scales:
            return
        for instances in range(minimum, minimum + self.zones):
            enough = self.enough_below_peak(instances, 1.0)
            first = instances if self.left_by_zone_outage(instances) else instances + self.zones
            yield range(first, at_peak if enough is None else enough, self.zones)

    @property
    def worst_outage_below_peak(self) -> FleetWithoutZone | None:
        """The worst zone outage of the fleets from the minimum up to that of the peak.

        Of fleets that leave the same rest when divided by the zones, the smallest is the worst. One
        instance leaves none. ``None`` where the minimum is the fleet of the peak.
        """
        minimum = self.fleet.minimum
        smallest = range(minimum, minimum + self.zones + 1)
        outages = [self._outage_below_peak(instances) for instances in smallest]
        known = [outage for outage in outages if outage is not None]
        return max(known, key=lambda outage: outage.load, default=None)

    @property
    def after_jump(self) -> FleetWithoutZone | None:
        """A zone outage of the fleet that meets a stated jump to the peak, before scaling follows.

        ``None`` without such a jump, or if the fleet of the peak meets it.
        """
        measured, held = self.measured, self.held_tps
        if measured is None or held is None or measured.from_tps is None or not self.scales:
            return None
        kept = instances_for(measured.from_tps, held.kept) if measured.from_tps else 0
        instances = max(self.fleet.minimum, kept)
        left = self.left_by_zone_outage(instances)
        if instances >= self.serving_at_peak or not left:
            return None
        return FleetWithoutZone(instances, left, self.limit_tps * left, stated(measured.peak_tps))

    def _outage_below_peak(self, instances: int) -> FleetWithoutZone | None:
        if not self.scales or instances >= self.serving_at_peak:
            return None
        return self.zone_outage(instances)


class FleetWithoutZone(NamedTuple):
    """What is left of a fleet when its fullest zone fails, and the load that it may have then."""

    instances: int  # of the fleet
    left: int
    held: Fraction  # requests per second, by those that are left at the measured limit
    tps: Fraction  # of the load

    @property
    def load(self) -> Fraction:
        """The load as a share of what is held."""
        return self.tps / self.held

    @property
    def is_safe(self) -> bool:
        """Whether the load leaves a reserve."""
        return self.load <= stated(HELD_SHARE)


def also(ranges: Sequence[FleetUnderLoad], worst: FleetUnderLoad) -> str:
    """The other ranges that a warning is about, after its text, without their numbers."""
    different = [standing for standing in ranges if worst.name or standing.fleet != worst.fleet]
    names = dict.fromkeys(standing.name or "the usual range" for standing in different)
    names.pop(worst.name or "the usual range", None)
    return f". Also, no worse: {', '.join(names)}" if names else ""
