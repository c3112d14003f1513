"""In which order scheduled actions run: their cron, at and rate expressions along a calendar.

Start at :func:`order_of`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

from ..options.scaling import ScalingSchedule

MINUTES_PER_DAY = 24 * 60
DAYS_PER_WEEK = 7
MINUTES_PER_WEEK = DAYS_PER_WEEK * MINUTES_PER_DAY
MONDAY = date(2024, 1, 1)  # where a calendar without dates of its own begins
WEEKS_PER_YEAR = 52  # both changes of the clock are within it
WEEKS_PER_CALENDAR = 1461  # 28 years, after which each date is on the same day of the week again
LONGEST_DAYS = 30 * 366  # between one-time actions, beyond which no order is worked out
MOST_RUNS = 20_000
"""Of one action along the calendar, beyond which its order among the others is not worked out."""

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")  # 1 to 7

Group = tuple[int, ...]  # actions of one moment, by their index; AWS states no order of them


class RunOrder(NamedTuple):
    """The order in which the actions of a schedule run."""

    once: tuple[Group, ...]  # up to the last one-time action, with the recurring ones between
    lap: tuple[Group, ...]  # the recurring ones, again and again
    any_time: frozenset[int]  # actions that may run between any two of these
    # of each group of the lap, in minutes; in UTC where there are several time zones
    lap_minutes: tuple[float, ...] = ()
    differs_by_week: bool = False  # whether a week of the lap does not stand for the others


@lru_cache(maxsize=256)
def order_of(schedule: tuple[ScalingSchedule, ...]) -> RunOrder:
    """The order in which scheduled actions run, whenever the stack is deployed.

    A week is enough where all times are in one time zone. Several zones change their clocks on
    different days, so that the order can differ: a year. Days of the month and of the week come
    together differently in each year: 28 years. An action whose times are not known (a rate counts
    from its creation) or not worked out (``W`` and ``#`` in a cron, more than 20,000 runs) may run
    at any time.
    """
    times = {index: times_of(action) for index, action in enumerate(schedule)}
    zones = _zones_of(schedule, times)
    if zones is None:
        return RunOrder((), (), frozenset(times))
    crons = {index: time for index, time in times.items() if isinstance(time, Cron)}
    weeks = WEEKS_PER_YEAR if len(set(zones.values())) > 1 else 1
    if any(cron.has_dates for cron in crons.values()):
        weeks = WEEKS_PER_CALENDAR
    recurring = {
        index: cron
        for index, cron in crons.items()
        if not cron.years and cron.runs_per_week * weeks <= MOST_RUNS
    }
    once = _one_time_runs(times, zones)
    begin = MONDAY
    before: tuple[Group, ...] = ()
    if once:
        known = [moment for moments in once.values() for moment in moments]
        begin = _day(max(known)) + timedelta(days=1)
        start = _day(min(known)) - timedelta(weeks=weeks)
        before = tuple(_groups(recurring, once, start, begin - timedelta(days=1), zones).values())
    lap = _groups(recurring, {}, begin, begin + timedelta(weeks=weeks, days=-1), zones)
    return RunOrder(
        before,
        tuple(lap.values()),
        frozenset(times) - recurring.keys() - once.keys(),
        tuple(lap),
        weeks == WEEKS_PER_CALENDAR,
    )


def clock_of_zone(name: str) -> tzinfo | None:
    """The clock of a time zone; None where this machine's database does not have it."""
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # few apps have a schedule in a time zone

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        return None


def _zones_of(
    schedule: Sequence[ScalingSchedule], times: Mapping[int, Cron | datetime | None]
) -> dict[int, tzinfo | None] | None:
    """The time zone of each action whose times are known; None where all are in the same one.

    None in place of them all where this machine's database of time zones lacks one.
    """
    names = {
        index: schedule[index].time_zone or "UTC"
        for index, time in times.items()
        if time is not None
    }
    if len(set(names.values())) < 2:
        return dict.fromkeys(names)
    zones = {index: clock_of_zone(name) for index, name in names.items()}
    return None if None in zones.values() else zones


def _one_time_runs(
    times: Mapping[int, Cron | datetime | None], zones: Mapping[int, tzinfo | None]
) -> dict[int, list[float]]:
    """The minutes at which actions of one time, or of stated years, run; none if too far apart."""
    runs: dict[int, list[float]] = {}
    for index, time in times.items():
        if isinstance(time, datetime):
            runs[index] = [_minute(time, zones[index])]
        elif time is not None and time.years:
            first = date(min(time.years), 1, 1)
            last = date(max(time.years), 12, 31)
            if time.runs_per_week * (last - first).days / DAYS_PER_WEEK <= MOST_RUNS:
                runs[index] = [*_runs(time, first, last, zones[index])]
    known = [moment for moments in runs.values() for moment in moments]
    if known and max(known) - min(known) > LONGEST_DAYS * MINUTES_PER_DAY:
        return {}
    return runs


def minute_of_week(minutes: float) -> int:
    """The minute of the week, which begins on Monday, of a moment in minutes."""
    return int(minutes - MONDAY.toordinal() * MINUTES_PER_DAY) % MINUTES_PER_WEEK


class Cron(NamedTuple):
    """A cron expression; an empty set leaves a field open."""

    minutes: tuple[int, ...]  # of the day at which it runs
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]  # 1 is Sunday
    years: frozenset[int]

    @property
    def has_dates(self) -> bool:
        """Whether it differs between weeks."""
        return bool(self.days or self.months)

    @property
    def runs_per_week(self) -> int:
        """How often it runs in a week at most."""
        return len(self.minutes) * (len(self.weekdays) or DAYS_PER_WEEK)

    def runs_on(self, day: date) -> bool:
        """Whether it runs on a day."""
        return (
            (not self.weekdays or day.isoweekday() % DAYS_PER_WEEK + 1 in self.weekdays)
            and (not self.months or day.month in self.months)
            and (not self.years or day.year in self.years)
            and (not self.days or day.day in self.days or (0 in self.days and _is_last(day)))
        )


def cron_of(text: str) -> Cron | None:
    """A cron expression's six fields, read; None for one that this module does not read."""
    try:
        minutes, hours, days, months, weekdays, years = text.split(" ")
        clock = tuple(
            60 * hour + minute
            for hour in sorted(_numbers(hours, 0, 23))
            for minute in sorted(_numbers(minutes, 0, 59))
        )
        return Cron(
            clock,
            _open(days, 1, 31),
            _open(months, 1, 12, _MONTHS),
            _open(weekdays, 1, 7, _WEEKDAYS),
            _open(years, 1970, 2199),
        )
    except ValueError:
        return None


def times_of(action: ScalingSchedule) -> Cron | datetime | None:
    """The times of an action; None where they are not known."""
    if action.cron is not None:
        return cron_of(action.cron)
    if action.at is None:
        return None
    try:
        return datetime.fromisoformat(action.at)
    except ValueError:
        return None


def _open(field: str, low: int, high: int, names: Sequence[str] = ()) -> frozenset[int]:
    """The numbers of a field; none of one that leaves all of them open. 0 is the last day."""
    if field in ("*", "?"):
        return frozenset()
    if field == "L" and (low, high) == (1, 31):
        return frozenset({0})
    return _numbers(field, low, high, names)


def _numbers(field: str, low: int, high: int, names: Sequence[str] = ()) -> frozenset[int]:
    """The numbers that a field lists.

    Raises:
        ValueError: Another form, or a number out of range.
    """
    numbers = set[int]()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, dash, last = span.partition("-")
        if first == "*":
            begin, end = low, high
        else:
            begin = _number(first, names)
            end = _number(last, names) if dash else begin
            if step and not dash:
                end = high
        if not (low <= begin <= high and low <= end <= high):
            raise ValueError(field)
        if end < begin:  # FRI-MON
            end += high - low + 1
        every = int(step) if step else 1
        if every < 1:
            raise ValueError(field)
        for number in range(begin, end + 1, every):
            numbers.add((number - low) % (high - low + 1) + low)
    return frozenset(numbers)


def _number(text: str, names: Sequence[str]) -> int:
    if text.upper() in names:
        return names.index(text.upper()) + 1
    if not re.fullmatch(r"\d{1,4}", text):
        raise ValueError(text)
    return int(text)


def _is_last(day: date) -> bool:
    return (day + timedelta(days=1)).day == 1


def _runs(cron: Cron, first: date, last: date, zone: tzinfo | None) -> Iterator[float]:
    """The minutes at which a cron runs, both days included."""
    for ordinal in range(first.toordinal(), last.toordinal() + 1):
        day = date.fromordinal(ordinal)
        if not cron.runs_on(day):
            continue
        for minute in cron.minutes:
            if zone is None:
                yield ordinal * MINUTES_PER_DAY + minute
            else:
                clock = datetime(day.year, day.month, day.day, minute // 60, minute % 60)
                yield _minute(clock, zone)


def _day(minutes: float) -> date:
    return date.fromordinal(int(minutes) // MINUTES_PER_DAY)


def _minute(moment: datetime, zone: tzinfo | None) -> float:
    """A moment in minutes, in UTC where the schedule has several time zones."""
    seconds = moment.hour * 3600 + moment.minute * 60 + moment.second
    minutes = moment.toordinal() * MINUTES_PER_DAY + seconds / 60
    if zone is None:
        return minutes
    offset = moment.replace(tzinfo=zone).utcoffset() or timedelta()
    return minutes - offset.total_seconds() / 60


def _groups(
    recurring: Mapping[int, Cron],
    moments: Mapping[int, Sequence[float]],
    first: date,
    last: date,
    zone_of: Mapping[int, tzinfo | None],
) -> dict[float, Group]:
    """The actions between two days by their minute, in the order in which they run."""
    at: dict[float, list[int]] = defaultdict(list)
    begin = first.toordinal() * MINUTES_PER_DAY
    end = (last.toordinal() + 1) * MINUTES_PER_DAY
    day = timedelta(days=1)
    for index, cron in recurring.items():
        # A zone's evening is the next day's morning in UTC.
        for moment in _runs(cron, first - day, last + day, zone_of[index]):
            if begin <= moment < end:
                at[moment].append(index)
    for index, runs in moments.items():
        for moment in runs:
            at[moment].append(index)
    return {moment: tuple(sorted(set(at[moment]))) for moment in sorted(at)}
