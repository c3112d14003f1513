"""Scheduled actions at local times that clocks skip, held against a walk from day to day."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.scaling import ScalingSchedule
from low_latency_endpoint.options.throughput import MeasuredThroughput, PeakAtTime
from low_latency_endpoint.plan import clock_changes
from low_latency_endpoint.plan.clock_changes import YEARS, skipped_actions, skipped_times
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.schedule_times import clock_of_zone
from low_latency_endpoint.plan.standing_ranges import CapacityRange, StandingRanges
from tests.depth import examples

from .conftest import planned

ID = "time-skipped-by-clocks"
ZONES = sorted(available_timezones())
USUAL = CapacityRange(4, 40)
MINUTE = timedelta(minutes=1)
WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


def exists(local: datetime, zone: str) -> bool:
    """Whether a local time comes back from UTC as it was."""
    clock = ZoneInfo(zone)
    return (
        local.replace(tzinfo=clock).astimezone(UTC).astimezone(clock).replace(tzinfo=None) == local
    )


def is_skipped(local: datetime, zone: str) -> bool:
    years = (local.year - 1, local.year, local.year + 1)
    return any(times.covers(local) for year in years for times in skipped_times(zone, year))


def minutes_of(year: int, step: int) -> Iterator[datetime]:
    """The local times of a year, a step of minutes apart."""
    local = datetime(year, 1, 1)
    while local.year == year:
        yield local
        local += step * MINUTE


# Which times are skipped


@pytest.mark.parametrize("year", [YEARS[0], YEARS[-1]])
def test_random_minutes_of_all_zones(year: int) -> None:
    rng = random.Random(year)
    for zone in ZONES:
        minutes = [datetime(year, 1, 1) + rng.randrange(365 * 1440) * MINUTE for _ in range(10)]
        for times in skipped_times(zone, year):
            length = (times.end - times.begin) // MINUTE
            minutes += [times.begin - MINUTE, times.begin, times.end - MINUTE, times.end]
            minutes += [times.begin + rng.randrange(length) * MINUTE for _ in range(4)]
        for local in minutes:
            assert is_skipped(local, zone) != exists(local, zone), (zone, local)


@settings(max_examples=examples(40), deadline=None)
@given(st.sampled_from(ZONES), st.sampled_from(YEARS))
def test_no_skipped_time_of_a_year_is_missed(zone: str, year: int) -> None:
    for local in minutes_of(year, 15):
        assert is_skipped(local, zone) != exists(local, zone), (zone, local)


def test_zones_that_change_by_other_steps_and_at_other_hours() -> None:
    """Days of tzdata for 2027, by the rules of each zone."""
    texts = {
        zone: [times.text for times in skipped_times(zone, 2027)]
        for zone in (
            "Europe/Berlin",
            "America/Havana",
            "Africa/Cairo",
            "Australia/Lord_Howe",
            "Antarctica/Troll",
            "Asia/Tokyo",
        )
    }
    assert texts == {
        "Europe/Berlin": ["02:00 to 03:00 on 2027-03-28"],
        "America/Havana": ["00:00 to 01:00 on 2027-03-14"],
        "Africa/Cairo": ["00:00 to 01:00 on 2027-04-30"],
        "Australia/Lord_Howe": ["02:00 to 02:30 on 2027-10-03"],
        "Antarctica/Troll": ["01:00 to 03:00 on 2027-03-28"],
        "Asia/Tokyo": [],
    }


# Which actions are warned of, and what stands


class Action:
    """An action of a day's minutes on some days of the week."""

    def __init__(
        self, name: str, minute: int, days: list[int], low: int | None, high: int | None
    ) -> None:
        self.name = name
        self.minute = minute
        self.days = days
        self.low = low
        self.high = high

    def __repr__(self) -> str:
        return (
            f"{self.name} {self.minute // 60}:{self.minute % 60} {self.days} {self.low} {self.high}"
        )

    def schedule(self, zone: str) -> ScalingSchedule:
        days = ",".join(WEEKDAYS[day] for day in self.days)
        return ScalingSchedule(
            name=self.name,
            cron=f"{self.minute % 60} {self.minute // 60} ? * {days} *",
            time_zone=zone,
            min=self.low,
            max=self.high,
        )

    def after(self, before: CapacityRange) -> CapacityRange:
        return CapacityRange(self.low or before.minimum, self.high or before.maximum)


@cache
def days_of_change(zone: str) -> list[tuple[date, frozenset[int]]]:
    """Each day with the minutes that do not exist on it; days without any are left out."""
    days = []
    for ordinal in range(date(YEARS[0], 1, 1).toordinal(), date(YEARS[-1], 12, 31).toordinal()):
        day = datetime.fromordinal(ordinal)
        clock = ZoneInfo(zone)
        if (day + timedelta(days=1)).replace(tzinfo=clock).utcoffset() == day.replace(
            tzinfo=clock
        ).utcoffset() and exists(day, zone):
            continue
        skipped = [minute for minute in range(1440) if not exists(day + minute * MINUTE, zone)]
        if skipped:
            days.append((day.date(), frozenset(skipped)))
    return days


def walked(actions: list[Action], zone: str) -> dict[str, CapacityRange]:
    """What stands at least if an action is skipped, by a walk through the week before."""
    lowest: dict[str, CapacityRange] = {}
    ordered = sorted(actions, key=lambda action: action.minute)
    for day, skipped in days_of_change(zone):
        of_day = [action for action in ordered if day.weekday() in action.days]
        standing = USUAL
        for before in range(7, 0, -1):
            weekday = (day - timedelta(days=before)).weekday()
            for action in ordered:
                if weekday in action.days:
                    standing = action.after(standing)
        for action in of_day:
            if action.minute < min(skipped):
                standing = action.after(standing)
        run = standing
        for action in of_day:
            if action.minute in skipped:
                run = action.after(run)
        for action in of_day:  # those of the moment at which clocks go forward
            if action.minute == max(skipped) + 1:
                run = action.after(run)
                standing = action.after(standing)
        if run != standing:
            for action in of_day:
                if action.minute in skipped:
                    known = lowest.get(action.name, standing)
                    lowest[action.name] = min(known, standing)
    return lowest


CHANGING = [
    "Europe/Berlin",
    "America/New_York",
    "America/Havana",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Australia/Lord_Howe",
    "Asia/Beirut",
    "Atlantic/Azores",
    "Antarctica/Troll",
]


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[Action]]:
    """Actions at different minutes, most of them near the skipped ones."""
    zone = draw(st.sampled_from(CHANGING))
    minute = st.one_of(
        st.integers(0, 200), st.sampled_from([0, 60, 120, 150, 180]), st.integers(0, 1439)
    )
    actions = []
    for number, at in enumerate(draw(st.lists(minute, min_size=1, max_size=4, unique=True))):
        days = sorted(draw(st.sets(st.integers(0, 6), min_size=1)))
        low = draw(st.none() | st.integers(1, 8))
        high = draw(st.none() | st.integers(9, 40))
        assume(low is not None or high is not None)
        actions.append(Action(f"a{number}", at, days, low, high))
    return zone, actions


@settings(max_examples=examples(80), deadline=None)
@given(cases())
def test_actions_and_ranges_are_those_of_a_walk(case: tuple[str, list[Action]]) -> None:
    zone, actions = case
    schedule = tuple(action.schedule(zone) for action in actions)
    told = {
        skipped.action.name: skipped.standing
        for skipped in skipped_actions(StandingRanges(USUAL, schedule))
    }
    assert told == walked(actions, zone)


def names(*schedule: ScalingSchedule) -> set[str]:
    skipped = skipped_actions(StandingRanges(USUAL, schedule))
    return {action.action.name for action in skipped}


def action(name: str, zone: str | None, **more: Any) -> ScalingSchedule:
    return ScalingSchedule(name=name, time_zone=zone, **{"min": 20, "max": 30, **more})


EVENING = ScalingSchedule(
    name="evening", cron="0 20 * * ? *", time_zone="Europe/Berlin", min=2, max=9
)


@pytest.mark.parametrize(
    ("stated", "warns"),
    [
        ({"cron": "36 2 * * ? *"}, True),
        ({"cron": "36 2,14 * * ? *"}, True),
        ({"cron": "0-59 2 * * ? *"}, True),
        ({"cron": "0/20 1-2 * * ? *"}, False),  # has run at 01:40
        ({"cron": "0/20 2-3 * * ? *"}, False),  # runs at 03:00, the moment after 02:00
        ({"cron": "5 2-3 * * ? *"}, True),  # an hour late is up to an hour of load
        ({"cron": "0 3 * * ? *"}, False),
        ({"cron": "59 1 * * ? *"}, False),
        ({"cron": "36 2 ? * MON-FRI *"}, False),  # clocks change on Sunday
        ({"cron": "36 2 ? * SUN *"}, True),
        ({"cron": "36 2 ? 4-12 * *"}, False),  # in March
        ({"cron": "36 2 25 * ? *"}, True),  # the last Sunday is from 25 to 31
        ({"cron": "36 2 24 * ? *"}, False),
        ({"cron": "36 2 * * ? 2025"}, True),
        ({"cron": "36 2 ? 1 * 2027"}, False),
        ({"at": "2027-03-28T02:36:00"}, True),
        ({"at": "2027-03-27T02:36:00"}, False),
        ({"at": "0001-01-01T00:00:00"}, False),
        ({"at": "9999-12-31T23:59:59"}, False),
        ({"cron": "36 2 * * ? *", "time_zone": None}, False),
        ({"cron": "36 2 * * ? *", "time_zone": "Etc/UTC"}, False),
        ({"cron": "36 2 ? * 1#5 *"}, False),  # not read by this library
        ({"rate": "1 day", "time_zone": None}, False),
    ],
)
def test_which_expressions_are_warned_of(stated: dict[str, Any], warns: bool) -> None:
    stated = {"time_zone": "Europe/Berlin", **stated}
    rush = ScalingSchedule(name="rush", min=20, max=30, **stated)
    assert names(rush, EVENING) == ({"rush"} if warns else set())


def test_a_range_that_stands_anyway_is_not_warned_of() -> None:
    assert not names(
        ScalingSchedule(name="all", cron="36 2 * * ? *", time_zone="Europe/Berlin", min=4)
    )


def test_a_rate_may_have_run_before_the_skipped_time() -> None:
    rush = action("rush", "Europe/Berlin", cron="36 2 * * ? *")
    rate = ScalingSchedule(name="rate", rate="1 day", min=1, max=2)
    [skipped] = skipped_actions(StandingRanges(USUAL, (rush, rate)))
    assert (skipped.action, skipped.standing) == (rush, CapacityRange(1, 2))


@pytest.mark.parametrize("day", range(25, 32))
def test_the_lowest_range_of_all_years_is_named(day: int) -> None:
    """The last Sunday of March is each of these days in some of 28 years."""
    rush = action("rush", "Europe/Berlin", cron="36 2 * * ? *")
    monthly = action("monthly", "Europe/Berlin", cron=f"0 1 {day} * ? *", min=1, max=2)
    [skipped] = skipped_actions(StandingRanges(USUAL, (rush, EVENING, monthly)))
    assert (skipped.standing, skipped.times.begin.day) == (CapacityRange(1, 2), day)


def test_actions_in_several_zones_stand_in_their_order() -> None:
    """Clocks of Berlin go forward at 01:00 UTC, an hour after the action of Tokyo, at 09:00."""
    rush = action("rush", "Europe/Berlin", cron="36 2 * * ? *")
    tokyo = action("tokyo", "Asia/Tokyo", cron="0 9 * * ? *", min=3, max=5)
    later = action("later", "Asia/Tokyo", cron="1 10 * * ? *", min=1, max=2)
    [skipped] = skipped_actions(StandingRanges(USUAL, (later, rush, tokyo)))
    assert (skipped.action, skipped.standing) == (rush, CapacityRange(3, 5))


# In a plan


def plan_of(**more: Any) -> Plan:
    throughput = {"peak_tps": 430, "tps_per_instance": 37, "safety_factor": 0.58}
    return planned(
        client_zones=["use1-az1", "use1-az2", "use1-az4"],
        instance_type="ml.c6i.2xlarge",
        latency=LatencyTarget(p99=timedelta(milliseconds=180)),
        throughput=MeasuredThroughput(
            **throughput, rise_tps_per_minute=2.3, peaks=more.pop("peaks", {})
        ),
        **more,
    )


def warning_of(plan: Plan) -> str:
    """The text of the warning; empty without one."""
    texts = [str(warning) for warning in plan.explanation.warnings if warning.id == ID]
    return texts[0] if texts else ""


def test_the_end_of_a_quiet_time_is_moved_into_the_skipped_hour() -> None:
    """The usual range is set 9 minutes ahead. The quiet one: 61 / (37 * 0.58) = 2.8, times 1.5 4.3."""
    quiet = PeakAtTime(tps=61, start="00:40", end="02:45", time_zone="Europe/Berlin")
    text = warning_of(plan_of(peaks={"quiet": quiet}))
    assert (
        "after-quiet at 02:36 Europe/Berlin (the clocks skip 02:00 to 03:00 on 2027-03-28)" in text
    )
    assert "if it does not run, 3 to 5 instances stand in place of" in text
    assert "AWS does not say" in text
    assert "Move the start or end of the peak" in text
    assert "9 minutes before it" in text


def test_the_start_of_a_peak_is_moved_into_the_skipped_hour() -> None:
    """From 02:56 for 03:05; 430 / (37 * 0.58) = 20.04 at most 1.5 times: 31 or 32 before it."""
    rush = PeakAtTime(tps=1117, start="03:05", end="05:45", time_zone="Europe/Berlin")
    plan = plan_of(peaks={"rush": rush})
    usual = CapacityRange(plan.fleet.minimum, plan.fleet.maximum)
    assert "rush at 02:56 Europe/Berlin (the clocks skip 02:00 to 03:00" in warning_of(plan)
    assert f"if it does not run, {usual.text} instances stand" in warning_of(plan)


@pytest.mark.parametrize(("start", "end"), [("00:40", "03:09"), ("01:50", "04:00")])
def test_a_peak_outside_of_the_skipped_hour_is_not_warned_of(start: str, end: str) -> None:
    for tps in (61, 1117):
        peak = PeakAtTime(tps=tps, start=start, end=end, time_zone="Europe/Berlin")
        assert not warning_of(plan_of(peaks={"peak": peak}))


def test_an_action_of_your_own() -> None:
    rush = action("rush", "Africa/Cairo", cron="0,30 0 * * ? *")
    quiet = action("quiet", "Africa/Cairo", cron="0 20 * * ? *", min=3, max=9)
    text = warning_of(plan_of(schedule=(rush, quiet)))
    assert "rush from 00:00 to 00:30 Africa/Cairo (the clocks skip 00:00 to 01:00 on" in text
    assert "3 to 9 instances stand in place of 20 to 30" in text
    assert text.endswith("Choose times that the clocks do not skip, or UTC")


def test_nothing_stands_that_no_policy_scales() -> None:
    rush = PeakAtTime(tps=1117, start="03:05", end="05:45", time_zone="Europe/Berlin")
    assert not warning_of(plan_of(peaks={"rush": rush}, enabled=False))


def test_a_machine_without_time_zones_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    assert clock_of_zone("Mars/Olympus_Mons") is None

    def only_utc(name: str) -> tzinfo | None:
        return clock_of_zone(name) if name == "UTC" else None

    monkeypatch.setattr(clock_changes, "clock_of_zone", only_utc)
    skipped_times.cache_clear()
    rush = action("rush", "Europe/Berlin", cron="36 2 * * ? *")
    quiet = action("quiet", None, cron="0 20 * * ? *", min=3, max=9)
    assert "does not know the time zone Europe/Berlin" in warning_of(
        plan_of(schedule=(rush, quiet))
    )
    assert not warning_of(plan_of(schedule=(quiet,)))
