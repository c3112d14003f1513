"""Scheduled actions at local times that clocks skip when they go forward.

AWS does not say what Application Auto Scaling does with such a time:
https://docs.aws.amazon.com/autoscaling/application/userguide/scheduled-scaling-using-cron-expressions.html
EventBridge Scheduler, which has the same cron syntax, does not run then:
https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
A time that comes twice in autumn is harmless: the action sets the same range again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import NamedTuple

from ..options.scaling import ScalingSchedule
from .daily_peaks import lead_minutes
from .decisions import PlanWarning
from .plan import Plan
from .schedule_times import Cron, Group, clock_of_zone, times_of
from .standing_ranges import CapacityRange, StandingRanges

YEARS = range(2027, 2055)
"""28 years, within which each date is on each day of the week. They are fixed, so that a plan does
not depend on the day on which it is made."""
_STATED_YEARS = range(1970, 2200)  # that a cron can state; others are not looked at
_LONGEST_DAYS = 8 * 366  # between two runs, as for February 29 around 2100
_DAY = timedelta(days=1)
_ID = "time-skipped-by-clocks"


def clock_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """The warning about scheduled actions whose time the clocks skip on some day.

    On a machine without the time zone, a warning says that nobody looked.
    """
    schedule = plan.standing_ranges.schedule
    skipped = skipped_actions(plan.standing_ranges)
    if skipped:
        advice = "Choose times that the clocks do not skip, or UTC"
        if plan.peaks:
            lead = lead_minutes(plan.request.start_seconds)
            advice = (
                "Move the start or end of the peak, so that neither it nor the time "
                f"{lead} minutes before it is skipped"
            )
        yield PlanWarning(
            _ID,
            "AWS does not say whether a scheduled action runs on the day on which clocks go forward "
            f"and skip its time. {'. '.join(action.text for action in skipped)}. {advice}",
        )
    unknown = sorted({_zone_name(action) for action in schedule if _clock_of(action) is None})
    if unknown:
        yield PlanWarning(
            _ID,
            f"this machine does not know the time zone {', '.join(unknown)}: whether its clocks skip "
            "the time of a scheduled action is not known. Install the Python package tzdata",
        )


class SkippedTimes(NamedTuple):
    """Local times that do not exist, because the clocks of a time zone go forward."""

    begin: datetime  # the first of them, without a time zone
    end: datetime  # the first that exists again, at the same moment

    def covers(self, local: datetime) -> bool:
        """Whether a local time is one of them."""
        return self.begin <= local < self.end

    @property
    def text(self) -> str:
        """The times and their day in words."""
        return f"{self.begin:%H:%M} to {self.end:%H:%M} on {self.begin:%Y-%m-%d}"


class SkippedAction(NamedTuple):
    """A scheduled action whose time the clocks skip, and what stands if it does not run."""

    action: ScalingSchedule
    runs: tuple[datetime, ...]  # local times that are skipped
    times: SkippedTimes
    standing: CapacityRange  # if it does not run: of those that can stand, the lowest
    otherwise: CapacityRange  # if it runs

    @property
    def text(self) -> str:
        """The action, its time and the ranges in words."""
        at = f"at {self.runs[0]:%H:%M}"
        if len(self.runs) > 1:
            at = f"from {self.runs[0]:%H:%M} to {self.runs[-1]:%H:%M}"
        return (
            f"{self.action.name} {at} {_zone_name(self.action)} (the clocks skip {self.times.text}): "
            f"if it does not run, {self.standing.text} instances stand in place of "
            f"{self.otherwise.text}, until another action changes them"
        )


def skipped_actions(standing: StandingRanges) -> list[SkippedAction]:
    """The actions whose time is skipped on some day, each with the lowest range that stands then.

    Left out are those after which the same range stands anyway, as with an action of each hour.
    """
    lowest: dict[int, SkippedAction] = {}
    for zone, times in _all_skipped_times(standing.schedule):
        runs = _runs_within(standing.schedule, zone, times)
        if not runs:
            continue
        moment = times.end.replace(tzinfo=clock_of_zone(zone)).astimezone(UTC)
        ranges = _ranges_after(standing, runs, moment)
        if ranges is None:
            continue
        for index, local_times in runs.items():
            if index not in lowest or ranges[0] < lowest[index].standing:
                action = standing.schedule[index]
                lowest[index] = SkippedAction(action, tuple(local_times), times, *ranges)
    return [lowest[index] for index in sorted(lowest)]


def _all_skipped_times(schedule: Sequence[ScalingSchedule]) -> Iterator[tuple[str, SkippedTimes]]:
    """What the clocks of each known time zone skip, in ``YEARS`` and those of the schedule."""
    years = set(YEARS)
    for action in schedule:
        time = times_of(action)
        if isinstance(time, datetime):
            years.add(time.year)
        elif time is not None:
            years |= time.years
    zones = {_zone_name(action) for action in schedule if _clock_of(action)}
    for zone in sorted(zones - {"UTC"}):  # which skips nothing
        for year in sorted(years.intersection(_STATED_YEARS)):
            for times in skipped_times(zone, year):
                yield zone, times


@lru_cache(maxsize=4096)
def skipped_times(zone: str, year: int) -> tuple[SkippedTimes, ...]:
    """The local times that do not exist in a time zone, of a year in UTC."""
    clock = clock_of_zone(zone)
    skipped: list[SkippedTimes] = []
    if clock is None:
        return ()
    day = datetime(year, 1, 1, tzinfo=UTC)
    while day.year == year:
        change = _change_forward(clock, day, day + _DAY)
        if change is not None:
            end = change.astimezone(clock).replace(tzinfo=None)
            ahead = _offset(clock, change) - _offset(clock, change - timedelta(seconds=1))
            skipped.append(SkippedTimes(end - ahead, end))
        day += _DAY
    return tuple(skipped)


def _change_forward(clock: tzinfo, first: datetime, last: datetime) -> datetime | None:
    """The moment between two others, in UTC, at which clocks go forward; None if they do not."""
    before = _offset(clock, first)
    if _offset(clock, last) <= before:
        return None
    while last - first > timedelta(seconds=1):
        middle = first + timedelta(seconds=(last - first) // timedelta(seconds=2))
        if _offset(clock, middle) > before:
            last = middle
        else:
            first = middle
    return last


def _offset(clock: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(clock).utcoffset() or timedelta()


def _runs_within(
    schedule: Sequence[ScalingSchedule], zone: str, times: SkippedTimes
) -> dict[int, list[datetime]]:
    """The local times among the skipped ones at which actions of this zone would run."""
    runs: dict[int, list[datetime]] = {}
    for index, action in enumerate(schedule):
        if _zone_name(action) != zone:
            continue
        within = [run for run in _runs_near(times_of(action), times) if times.covers(run)]
        if within:
            runs[index] = within
    return runs


def _runs_near(time: Cron | datetime | None, times: SkippedTimes) -> Iterator[datetime]:
    """The local times of an action on the days of the skipped ones; none where they are not known.

    A rate counts from the creation of the action, whatever clocks show.
    """
    if isinstance(time, datetime):
        yield time
    elif time is not None:
        for day in range(times.begin.toordinal(), times.end.toordinal() + 1):
            yield from _runs_of_day(time, date.fromordinal(day))


def _ranges_after(
    standing: StandingRanges, skipped: Mapping[int, Sequence[datetime]], moment: datetime
) -> tuple[CapacityRange, CapacityRange] | None:
    """The lowest range once clocks have gone forward: without the skipped runs, and with them.

    Args:
        standing: The schedule and the usual range.
        skipped: The skipped local times by the action's index.
        moment: At which clocks go forward, in UTC.

    Returns:
        None where the skipped runs make no difference. Of each action the last run counts, because
        it sets the same numbers each time. One of unknown times may run between any two others.
    """
    last = {index: _last_run(action, moment) for index, action in enumerate(standing.schedule)}
    any_time = frozenset(
        index
        for index, action in enumerate(standing.schedule)
        if times_of(action) is None or _clock_of(action) is None
    )
    earlier = {index: run for index, run in last.items() if run is not None and run < moment}
    at_once = {index: run for index, run in last.items() if run == moment}
    order_of_skipped = _groups({index: runs[-1] for index, runs in skipped.items()})
    without: set[CapacityRange] = set()
    with_them: set[CapacityRange] = set()
    for before in standing.brought_to(standing.usual, _groups(earlier), any_time):
        not_run = standing.brought_to(before, _groups(at_once))
        run = standing.brought_to(before, [*order_of_skipped, *_groups(at_once)])
        if not_run != run:
            without |= not_run
            with_them |= run
    return (min(without), min(with_them)) if without else None


def _groups(runs: Mapping[int, datetime]) -> list[Group]:
    """Actions in the order of their runs, those of one moment together."""
    groups: dict[datetime, list[int]] = defaultdict(list)
    for index, run in sorted(runs.items()):
        groups[run].append(index)
    return [tuple(groups[run]) for run in sorted(groups)]


def _last_run(action: ScalingSchedule, moment: datetime) -> datetime | None:
    """The last run of an action up to a moment, in UTC; None if there is none, or not known."""
    clock = _clock_of(action)
    time = times_of(action)
    if clock is None or time is None:
        return None
    if isinstance(time, datetime) and time.year not in _STATED_YEARS:
        return None
    for local in _runs_back(time, moment.astimezone(clock).date()):
        run = local.replace(tzinfo=clock).astimezone(UTC)
        exists = run.astimezone(clock).replace(tzinfo=None) == local
        if exists and run <= moment:
            return run
    return None


def _runs_back(time: Cron | datetime, day: date) -> Iterator[datetime]:
    """The local times of an action up to a day, the last one first."""
    if isinstance(time, datetime):
        yield time
        return
    if time.years:
        past = [year for year in time.years if year <= day.year]
        day = min(day, date(max(past, default=1970), 12, 31))
    for back in range(_LONGEST_DAYS):
        yield from reversed(_runs_of_day(time, day - back * _DAY))


def _runs_of_day(cron: Cron, day: date) -> list[datetime]:
    """The local times at which a cron runs on a day."""
    if not cron.runs_on(day):
        return []
    midnight = datetime(day.year, day.month, day.day)
    return [midnight + timedelta(minutes=minute) for minute in cron.minutes]


def _zone_name(action: ScalingSchedule) -> str:
    return action.time_zone or "UTC"


def _clock_of(action: ScalingSchedule) -> tzinfo | None:
    return clock_of_zone(_zone_name(action))
