"""Scheduled actions that follow from other peaks at set times of the day."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from ..options.scaling import ScalingSchedule
from ..options.throughput import MeasuredThroughput, PeakAtTime
from .scaling_pace import jump_seconds
from .schedule_times import MINUTES_PER_DAY
from .standing_ranges import CapacityRange


class DailyPeak(NamedTuple):
    """One of the other peaks, with the load during it and the range that the load asks for."""

    name: str
    peak: PeakAtTime
    measured: MeasuredThroughput
    at_peak: int
    range: CapacityRange

    @property
    def label(self) -> str:
        """The peak and its times in words."""
        return f"{self.name} ({self.peak.text})"

    @property
    def begin(self) -> int:
        """The minute of the day at which it begins."""
        return _minute_of(self.peak.start)

    @property
    def end(self) -> int:
        """The minute of the day at which it ends."""
        return _minute_of(self.peak.end)

    def covers(self, minute: int) -> bool:
        """Whether it goes on in a minute of the day."""
        length = (self.end - self.begin) % MINUTES_PER_DAY
        return (minute - self.begin) % MINUTES_PER_DAY < length


def lead_minutes(start_seconds: int) -> int:
    """How long before a higher load its range is set, in minutes.

    As long as target tracking and the start of an instance take after a jump: the instances of the
    new minimum serve by then, also where a scheduled action runs some minutes late, or an update
    of the endpoint is under way, of which there is one at a time. AWS states no time for either.
    """
    return math.ceil(jump_seconds(start_seconds) / 60)


def daily_schedule(
    peaks: Sequence[DailyPeak], usual_tps: float, usual: CapacityRange, lead: int
) -> tuple[ScalingSchedule, ...]:
    """The scheduled actions of a day with these peaks; none if the usual range always holds.

    At each minute the range holds the highest load of this minute and of the ``lead`` that follow.
    So a range rises ahead of its load, and falls at the end of the load that needed it. Peaks that
    cover the day with one range get a single action, because a deployment sets the usual range.
    """
    if not peaks:
        return ()
    ranges: Mapping[str, CapacityRange] = {peak.name: peak.range for peak in peaks} | {"": usual}
    changes = _changes(peaks, lead)
    loads = [_highest_ahead(peaks, usual_tps, minute, lead) for minute in changes]
    actions: list[ScalingSchedule] = []
    first = 0
    for number, (minute, load) in enumerate(zip(changes, loads, strict=True)):
        before = loads[number - 1]
        capacity = ranges[load.name]
        if capacity == ranges[before.name]:
            continue
        begins = any(peak.name == load.name and _begins(peak, minute, lead) for peak in peaks)
        if load.name == peaks[0].name and begins:
            first = len(actions)
        name = load.name if begins else f"after-{before.name or 'usual'}"
        actions.append(_action(name, minute, peaks[0].peak.time_zone, capacity))
    capacity = ranges[loads[0].name]
    if not actions and capacity != usual:
        actions = [_action(loads[0].name, changes[0], peaks[0].peak.time_zone, capacity)]
    return (*actions[first:], *actions[:first])


def standing_names(peaks: Sequence[DailyPeak], usual_tps: float, lead: int) -> set[str]:
    """The names of the peaks whose range stands in some minute.

    A higher one may cover the others, or the time that ranges rise ahead of what follows.
    """
    minutes = _changes(peaks, lead)
    return {_highest_ahead(peaks, usual_tps, minute, lead).name for minute in minutes}


def _changes(peaks: Sequence[DailyPeak], lead: int) -> list[int]:
    """The minutes of the day at which the highest load of what follows can change."""
    times = {time for peak in peaks for time in (peak.begin, peak.end)}
    return sorted({(time - ahead) % MINUTES_PER_DAY for time in times for ahead in (0, lead)})


def _action(
    name: str, minute: int, time_zone: str | None, capacity: CapacityRange
) -> ScalingSchedule:
    """An action that sets a range in a minute of each day."""
    return ScalingSchedule(
        name=name,
        cron=f"{minute % 60} {minute // 60} * * ? *",
        time_zone=time_zone,
        min=capacity.minimum,
        max=capacity.maximum,
    )


class _Load(NamedTuple):
    """The highest load of a minute; the name of its peak is empty for the usual one."""

    tps: float
    name: str


def _highest(peaks: Sequence[DailyPeak], usual_tps: float, minute: int) -> _Load:
    """Of several peaks at once the highest counts, of none the usual one."""
    going_on = [peak for peak in peaks if peak.covers(minute)]
    if not going_on:
        return _Load(usual_tps, "")
    highest = max(going_on, key=lambda peak: peak.peak.tps)
    return _Load(highest.peak.tps, highest.name)


def _highest_ahead(peaks: Sequence[DailyPeak], usual_tps: float, minute: int, lead: int) -> _Load:
    """The highest load of a minute and of those that follow within the lead."""
    loads = [
        _highest(peaks, usual_tps, (minute + later) % MINUTES_PER_DAY) for later in range(lead + 1)
    ]
    return max(loads, key=lambda load: load.tps)


def _begins(peak: DailyPeak, minute: int, lead: int) -> bool:
    """Whether a change of this minute is for the beginning of a peak."""
    return (peak.begin - minute) % MINUTES_PER_DAY in (0, lead)


def share_of_day(peak: PeakAtTime) -> Fraction:
    """The part of a day that a peak lasts."""
    minutes = (_minute_of(peak.end) - _minute_of(peak.start)) % MINUTES_PER_DAY
    return Fraction(minutes, MINUTES_PER_DAY)


def _minute_of(clock: str) -> int:
    hours, minutes = clock.split(":")
    return 60 * int(hours) + int(minutes)
