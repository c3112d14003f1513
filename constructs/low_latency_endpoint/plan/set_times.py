"""Set times along a shape of traffic: which range stands when, and which other peak goes on.

Cost and simulation both read it. A shape of a day or a week that has no times of its own is taken to
begin on a Monday at 00:00, in the time zone of the set times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING

from .daily_peaks import DailyPeak
from .schedule_times import DAYS_PER_WEEK, MINUTES_PER_DAY, MONDAY, clock_of_zone, order_of
from .standing_ranges import CapacityRange, StandingRanges
from .traffic_shapes import Shape

if TYPE_CHECKING:
    from .plan import Plan

_DAY_SECONDS = 60 * MINUTES_PER_DAY


@dataclass(frozen=True)
class TimesAlong:
    """Set times along one shape, in seconds from its begin."""

    shape: Shape  # with other peaks at their full rate; single requests as they were recorded
    ranges: tuple[tuple[float, CapacityRange], ...]  # from when each stands, the first from 0
    begin: str  # in words
    has_peaks: bool  # whether the shape has other peaks
    same_each_day: bool  # whether each day of the week has the same ranges

    @property
    def text(self) -> str:
        """When the traffic is taken to begin, and what comes in it."""
        text = f"set times as in traffic that begins on {self.begin}"
        if not self.has_peaks:
            return text
        if self.shape.recorded_peak is not None:
            return f"{text}, its highest count taken for the highest peak"
        return f"{text}, other peaks at their full rate"


@dataclass(frozen=True)
class SetTimes:
    """What a plan states by time: ranges of its schedule, and other peaks of the day."""

    standing: StandingRanges
    peaks: tuple[DailyPeak, ...] = ()
    text: str = ""  # each action with its range and time, or each peak

    @classmethod
    def of(cls, plan: Plan) -> SetTimes:
        """Those of a plan."""
        named = plan.scheduled_ranges or [peak.label for peak in plan.peaks]
        return cls(plan.standing_ranges, plan.peaks, "; ".join(named))

    def along(self, shape: Shape, usual_tps: float) -> TimesAlong | None:
        """Set times along a shape, whose peak is the usual one; None if none are, or left out."""
        if not self or self.why_left_out(shape):
            return None
        begin = self._begin(shape)
        peaks = () if shape.times else self.peaks
        return TimesAlong(
            _with_peaks(shape, peaks, usual_tps, begin),
            _ranges_from(self._week, begin, shape.seconds),
            _begin_words(shape, begin, self._zone),
            bool(peaks),
            _same_each_day(self._week),
        )

    def why_left_out(self, shape: Shape) -> str:
        """Why set times are left out along a shape; empty where they count or there are none."""
        if not self:
            return ""
        if len(self._zones) > 1:
            return "they are in several time zones"
        if self.standing.schedule and not self._week:
            return "they do not come each week at known times"
        if shape.begin is None and shape.seconds not in (
            _DAY_SECONDS,
            DAYS_PER_WEEK * _DAY_SECONDS,
        ):
            return "the traffic has no time of day"
        if self._clock(shape) is None:
            return f"this machine does not know the time zone {self._zone}"
        return ""

    def __bool__(self) -> bool:
        """Whether anything is stated by time."""
        return bool(self.standing.schedule or self.peaks)

    @property
    def _zones(self) -> set[str]:
        stated = [action.time_zone for action in self.standing.schedule]
        stated += [peak.peak.time_zone for peak in self.peaks]
        return {zone or "UTC" for zone in stated}

    @property
    def _zone(self) -> str:
        return next(iter(self._zones))

    @cached_property
    def _week(self) -> Mapping[int, CapacityRange]:
        """The ranges by the minute of the week; none where actions run once, or weeks differ."""
        schedule = self.standing.schedule
        if not schedule or order_of(schedule).once:
            return {}
        return self.standing.of_week() or {}

    def _clock(self, shape: Shape) -> tzinfo | None:
        """The clock of the set times; UTC stands in for it where the traffic has no zone."""
        if shape.begin is None or shape.begin.tzinfo is None:
            return UTC
        return clock_of_zone(self._zone)

    def _begin(self, shape: Shape) -> datetime:
        """When a shape begins on the clock of the set times."""
        clock = self._clock(shape)
        if shape.begin is None:
            return datetime(MONDAY.year, MONDAY.month, MONDAY.day, tzinfo=clock)
        if shape.begin.tzinfo is None:
            return shape.begin.replace(tzinfo=clock)
        return shape.begin.astimezone(clock)


def _ranges_from(
    week: Mapping[int, CapacityRange], begin: datetime, seconds: float
) -> tuple[tuple[float, CapacityRange], ...]:
    """The ranges from a moment on by their second, the first of them the one that stands then."""
    changes = sorted(
        (_seconds_until(day, minute % MINUTES_PER_DAY, begin), capacity)
        for day in _days(begin, seconds)
        for minute, capacity in week.items()
        if minute // MINUTES_PER_DAY == day.weekday()
    )
    before = [capacity for second, capacity in changes if second <= 0]
    later = [change for change in changes if 0 < change[0] < seconds]
    return (*((0.0, capacity) for capacity in before[-1:]), *later)


def _begin_words(shape: Shape, begin: datetime, zone: str) -> str:
    if shape.begin is None:
        return f"{begin:%A} at {begin:%H:%M} {zone} (assumed)"
    without = "" if shape.begin.tzinfo else " (assumed: its times have no zone)"
    return f"{begin:%A, %Y-%m-%d} at {begin:%H:%M} {zone}{without}"


def _with_peaks(
    shape: Shape, peaks: Sequence[DailyPeak], usual_tps: float, begin: datetime
) -> Shape:
    """A shape in which other peaks replace the usual traffic while they go on, at full rate.

    A recording has its peaks already: its highest count is taken for the highest peak of the day.
    """
    if not peaks:
        return shape
    if shape.recorded_peak is not None:
        highest = max(usual_tps, *(peak.peak.tps for peak in peaks)) / usual_tps
        return replace(shape, levels=tuple((end, share * highest) for end, share in shape.levels))
    edges = {end for end, _ in shape.levels}
    for peak in peaks:
        for day in _days(begin, shape.seconds):
            edges |= {_seconds_until(day, minute, begin) for minute in (peak.begin, peak.end)}
    levels: list[tuple[float, float]] = []
    before = 0.0
    for end in sorted(edge for edge in edges if 0 < edge <= shape.seconds):
        middle = (before + end) / 2
        clock = datetime.fromtimestamp(begin.timestamp() + middle, begin.tzinfo)
        minute = 60 * clock.hour + clock.minute
        going_on = [peak.peak.tps / usual_tps for peak in peaks if peak.covers(minute)]
        levels.append((end, max(going_on, default=shape.share_at(middle))))
        before = end
    return replace(shape, levels=tuple(levels))


def _days(begin: datetime, seconds: float) -> Iterator[date]:
    """The days from a week before a moment to some seconds after it."""
    last = begin + timedelta(seconds=seconds)
    for ordinal in range(begin.toordinal() - DAYS_PER_WEEK, last.toordinal() + 2):
        yield date.fromordinal(ordinal)


def _seconds_until(day: date, minute: int, begin: datetime) -> float:
    """From a moment to a minute of a day on the same clock."""
    hour, rest = divmod(minute, 60)
    moment = datetime(day.year, day.month, day.day, hour, rest, tzinfo=begin.tzinfo)
    return moment.timestamp() - begin.timestamp()


def _same_each_day(week: Mapping[int, CapacityRange]) -> bool:
    """Whether each day of a week has the same ranges at the same minutes."""
    days = [
        {
            minute % MINUTES_PER_DAY: capacity
            for minute, capacity in week.items()
            if minute // MINUTES_PER_DAY == day
        }
        for day in range(DAYS_PER_WEEK)
    ]
    return all(day == days[0] for day in days)
