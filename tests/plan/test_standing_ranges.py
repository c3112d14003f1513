"""Ranges of a schedule: which stand when, held against a walk of a week minute by minute."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.options.scaling import ScalingSchedule
from low_latency_endpoint.options.throughput import MeasuredThroughput
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.schedule_times import cron_of, order_of
from low_latency_endpoint.plan.standing_ranges import CapacityRange, StandingRanges, check_ranges
from tests.depth import examples
from tests.refusals import refused

from .conftest import planned

WEEK = 7 * 24 * 60
WEEKDAYS = ["MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN"]


def action(name: str, cron: str = "", **more: Any) -> ScalingSchedule:
    return ScalingSchedule(name=name, **({"cron": cron} if cron else {}), **more)


def ranges(usual: tuple[int, int], *schedule: ScalingSchedule) -> set[tuple[str, int, int]]:
    """All that stands: the action's name, minimum and maximum."""
    standing = StandingRanges(CapacityRange(*usual), schedule).all
    return {(each.action.name if each.action else "", *each.range) for each in standing}


NIGHT = action("night", "0 22 * * ? *", min=2)
MORNING = action("morning", "0 7 * * ? *", min=8)


# A week, minute by minute: the model knows nothing of orders, laps and deployments but what it is told


class Minutes:
    """Actions by the minute of the week at which they run, in one time zone."""

    def __init__(self, schedule: list[tuple[str, int, list[int], int | None, int | None]]) -> None:
        self.schedule = schedule  # name, minute of the day, weekdays from Monday, min, max

    def actions(self) -> list[ScalingSchedule]:
        return [
            action(
                name,
                f"{minute % 60} {minute // 60} ? * {','.join(WEEKDAYS[day] for day in days)} *",
                time_zone="Europe/Berlin",
                min=low,
                max=high,
            )
            for name, minute, days, low, high in self.schedule
        ]

    def walked(self, usual: tuple[int, int], deployed_at: int) -> set[tuple[int, int]]:
        """Minimum and maximum of each minute of the two weeks after a deployment."""
        standing = [usual]
        seen = {usual}
        for minute in range(deployed_at, deployed_at + 2 * WEEK):
            day, of_day = divmod(minute % WEEK, 1440)
            for _, at, days, low, high in self.schedule:
                if at == of_day and day in days:
                    before = standing[-1]
                    standing.append((low or before[0], high or before[1]))
            seen.add(standing[-1])
        return seen

    def all(self, usual: tuple[int, int]) -> set[tuple[int, int]]:
        """Those of a deployment before any of the actions, which are all the moments that differ."""
        moments = {day * 1440 + at for _, at, days, _, _ in self.schedule for day in days}
        return {found for at in moments for found in self.walked(usual, at)} | {usual}

    def last(self, option: int) -> set[int]:
        """The values of the minimum, 3, or the maximum, 4, that are set each week."""
        return {entry[option] for entry in self.schedule if entry[option] is not None}


LOW = st.integers(1, 12)
HIGH = st.integers(9, 40)


@st.composite
def schedules(
    draw: st.DrawFn, low: st.SearchStrategy[int] = LOW, high: st.SearchStrategy[int] = HIGH
) -> Minutes:
    """Up to four actions, at different minutes: AWS states no order within one."""
    minutes = draw(st.lists(st.integers(0, 1439), min_size=1, max_size=4, unique=True))
    found = []
    for number, minute in enumerate(minutes):
        days = sorted(draw(st.sets(st.integers(0, 6), min_size=1)))
        least = draw(st.none() | low)
        most = draw(st.none() | high)
        if least is None and most is None:
            least = draw(low)
        assume(least is None or most is None or least <= most)
        found.append((f"a{number}", minute, days, least, most))
    return Minutes(found)


LOAD = {"peak_tps": 800, "tps_per_instance": 100, "safety_factor": 0.6}


def plan_of(schedule: list[ScalingSchedule], **load: Any) -> Plan:
    measured = MeasuredThroughput(**{**LOAD, **load})
    return planned(
        client_zones=["use1-az1", "use1-az2", "use1-az4"],
        instance_type="ml.m5.xlarge",
        throughput=measured,
        schedule=schedule,
    )


def warned(plan: Plan) -> set[str]:
    return {warning.id for warning in plan.explanation.warnings}


@given(schedules())
@settings(max_examples=examples(40), deadline=None)
def test_ranges_are_those_of_a_walk_minute_by_minute(model: Minutes) -> None:
    usual = (8, 28)
    walked = model.all(usual)
    schedule = tuple(model.actions())
    if any(low > high for low, high in walked):
        with pytest.raises(ConfigurationError, match="LLE621"):
            check_ranges(schedule, CapacityRange(*usual))
        return
    check_ranges(schedule, CapacityRange(*usual))
    standing = StandingRanges(CapacityRange(*usual), schedule)
    assert {tuple(each.range) for each in standing.all} == walked
    for option, name in ((3, "min"), (4, "max")):
        assert set(standing.later_values(name)) == model.last(option)
    week = standing.of_week()
    assert week is not None
    steady = model.walked(tuple(week[max(week)]), 0)  # which a week later are all there are
    assert {tuple(each) for each in week.values()} == steady


@given(
    schedules(),
    st.sampled_from(
        [{}, {"rise_tps_per_minute": 25}, {"from_tps": 100}, {"rise_tps_per_minute": 1}]
    ),
    st.sampled_from([0.3, 0.6, 0.95]),
)
@settings(max_examples=examples(40), deadline=None)
def test_a_warning_is_there_when_a_range_deserves_it(
    model: Minutes, rise: dict[str, float], factor: float
) -> None:
    usual_plan = plan_of([], safety_factor=factor, **rise)
    usual = (usual_plan.fleet.minimum, usual_plan.fleet.maximum)
    walked = model.all(usual)
    if any(low > high for low, high in walked):
        with pytest.raises(ConfigurationError, match="LLE621"):
            plan_of(model.actions(), safety_factor=factor, **rise)
        return
    found = warned(plan_of(model.actions(), safety_factor=factor, **rise))
    needed = -(-800 // (100 * factor)) if factor != 0.6 else 14  # 800 / 60 = 13.3
    at_peak = max(needed, 3)
    fleets = [(min(max(at_peak, low), high), 800.0) for low, high in walked]
    # Scaling leaves the minimum up to its number times what it keeps an instance at.
    quiet = [(low, min(800.0, low * 100 * factor)) for low, high in walked if low < high]
    quiet = [(low, tps) for low, tps in quiet if low < at_peak]

    def too_few(served: list[tuple[int, float]]) -> bool:
        """Whether some of these, less those of the fullest zone, have more than 90 % to do."""
        left = [(fleet - -(-fleet // 3), tps) for fleet, tps in served]
        return any(count > 0 and 90 * count < tps for count, tps in left)

    lowest = min(low for low, _ in walked)
    # A jump from 100 or more needs 800 / 90 = 8.9; a rise of 25 in 12.5 minutes 312.5 of what the
    # factor leaves of an instance, at most as many as the jump; one of 1 a twenty-fifth of it.
    for_rise = {0.3: 5, 0.6: 8, 0.95: 9} if rise.get("rise_tps_per_minute") == 25 else {}
    if "from_tps" in rise:
        for_rise = dict.fromkeys([0.3, 0.6, 0.95], 9)
    if rise.get("rise_tps_per_minute") == 1:
        for_rise = {0.3: 1, 0.6: 1, 0.95: 3}  # 12.5 / 70, / 40, / 5
    expected = {
        "minimum-below-rise": bool(rise) and lowest < for_rise[factor],
        "jumps-unknown": not rise and lowest < 9,
        "maximum-below-peak": any(high < needed for _, high in walked),
        "zone-outage": too_few(fleets),
        "zone-outage-at-minimum": too_few(quiet),
        "one-instance": lowest == 1,
        "zones-without-instance": lowest == 2,
        "fleet-never-scales": any(1 < low == high for low, high in walked),
        "no-reserve": factor > 0.9,
        "minimum-not-restored": bool(model.last(3)) and usual[0] not in model.last(3),
        "maximum-not-restored": bool(model.last(4)) and usual[1] not in model.last(4),
    }
    assert found & expected.keys() == {name for name, there in expected.items() if there}


@given(schedules(low=st.just(8), high=st.just(28)))
@settings(max_examples=examples(15), deadline=None)
def test_the_usual_range_at_set_times_changes_no_warning(model: Minutes) -> None:
    usual = planned_by_two_zones([])
    assert (usual.fleet.minimum, usual.fleet.maximum) == (8, 28)
    same = planned_by_two_zones(model.actions())
    assert [*same.explanation.warnings] == [*usual.explanation.warnings]


def planned_by_two_zones(schedule: list[ScalingSchedule]) -> Plan:
    """8 for a rise of 25 x 12.5 / 40; 800 / 60 = 14 at the peak, twice as many at most."""
    return planned(
        client_zones=["use1-az1", "use1-az2"],
        instance_type="ml.m5.xlarge",
        throughput=MeasuredThroughput(**LOAD, rise_tps_per_minute=25),
        schedule=schedule,
    )


@given(schedules(), st.integers(0, 1439), st.integers(0, 3), st.integers(0, 5))
@settings(max_examples=examples(40), deadline=None)
def test_an_action_that_lowers_takes_no_warning_away(
    model: Minutes, minute: int, less: int, fewer: int
) -> None:
    assume(minute not in {entry[1] for entry in model.schedule})
    try:
        before = planned_by_two_zones(model.actions())
    except ConfigurationError:
        assume(False)
    lowest = min(standing.fleet.minimum for standing in before.under_load)
    smallest = min(standing.fleet.maximum for standing in before.under_load)
    added = action(
        "added",
        f"{minute % 60} {minute // 60} * * ? *",
        time_zone="Europe/Berlin",
        min=max(lowest - less, 1),
        max=max(smallest - fewer, lowest),
    )
    try:
        after = planned_by_two_zones([*model.actions(), added])
    except ConfigurationError:
        return  # its maximum meets a higher minimum
    gone = warned(before) - warned(after)
    restores = {
        "minimum-not-restored" if added.min == before.fleet.minimum else "",
        "maximum-not-restored" if added.max == before.fleet.maximum else "",
        "time-skipped-by-clocks",  # it may set before a skipped time what would be set then
    }
    # One instance in place of two is one warning in place of the other. A later action that sets a
    # maximum alone now meets a lower minimum, so that its range may scale where it could not.
    replaced = {"zones-without-instance"} if added.min == 1 else set()
    assert gone - restores <= replaced | {"fleet-never-scales"}


# By hand


def test_what_is_not_stated_stays() -> None:
    day = action("day", "0 8 * * ? *", max=40)
    assert ranges((8, 28), NIGHT, MORNING, day) == {
        ("", 8, 28),
        *(("night", 2, high) for high in (28, 40)),
        *(("morning", 8, high) for high in (28, 40)),
        ("day", 8, 40),
    }


def test_a_range_that_stands_until_the_first_action_only() -> None:
    standing = StandingRanges(CapacityRange(8, 28), (NIGHT,))
    assert ranges((8, 28), NIGHT) == {("", 8, 28), ("night", 2, 28)}
    assert (standing.later_values("min"), standing.later_values("max")) == ([2], [])


def test_one_time_actions_come_in_the_order_of_their_times() -> None:
    launch = action("launch", at="2030-03-01T08:00:00", min=20)
    over = action("over", at="2030-03-01T20:00:00", min=8)
    small = action("small", "0 22 * * ? *", max=10)
    large = action("large", "0 6 * * ? *", max=28)
    # The launch is over when the maximum falls at 22:00, so 20 never meets 10.
    check_ranges((launch, over, small, large), CapacityRange(8, 28))
    late = action("late", at="2030-03-02T20:00:00", min=8)
    with refused("LLE621"):
        check_ranges((launch, late, small, large), CapacityRange(8, 28))
    standing = StandingRanges(CapacityRange(8, 28), (launch, over))
    assert standing.later_values("min") == [8]
    assert StandingRanges(CapacityRange(8, 28), (over, launch)).later_values("min") == [8]
    assert StandingRanges(CapacityRange(8, 28), (launch,)).later_values("min") == [20]


def test_actions_of_one_moment_run_in_any_order() -> None:
    other = action("other", "0 22 * * ? *", min=4)
    assert ranges((8, 28), NIGHT, other) == {("", 8, 28), ("night", 2, 28), ("other", 4, 28)}


@pytest.mark.parametrize(
    "any_time",
    [
        {"rate": "1 day"},
        {"cron": "0 8 ? * 2#1 *"},
        {"cron": "0 8 15W * ? *"},
        {"cron": "0 8 1W,15W * ? *"},
    ],
)
def test_an_action_of_unknown_times_may_come_at_any(any_time: dict[str, str]) -> None:
    """So 20 may meet the maximum of the night."""
    small = action("small", "0 22 * * ? *", max=10)
    large = action("large", "0 6 * * ? *", max=28)
    odd = ScalingSchedule(name="odd", min=20, **any_time)
    with refused("LLE621"):
        check_ranges((small, large, odd), CapacityRange(8, 28))
    assert ("odd", 20, 28) in ranges((8, 28), odd)
    assert StandingRanges(CapacityRange(8, 28), (odd,)).of_week() is None


def test_clocks_that_change_on_different_days_change_the_order() -> None:
    """17:30 in New York is 22:30 or 21:30 UTC: the night at 22:00 comes before it, or after it."""
    evening = action("evening", "30 17 * * ? *", time_zone="America/New_York", min=12)
    night = action("night", "0 22 * * ? *", min=2, max=10)
    back = action("back", "0 4 * * ? *", min=8, max=28)
    # In summer: 12 at 21:30, night at 22:00. In winter 12 comes while the maximum is 10.
    with refused("LLE621", where="schedule[0]"):
        check_ranges((evening, night, back), CapacityRange(8, 28))
    always_before = action("evening", "30 16 * * ? *", time_zone="America/New_York", min=12)
    check_ranges((always_before, night, back), CapacityRange(8, 28))


@given(
    st.lists(
        st.tuples(
            st.integers(0, 47),
            st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
            st.sampled_from([1, 3, 5, None]),
            st.sampled_from([28, 30, None]),
        )
        .filter(lambda entry: entry[2:] != (None, None))
        # Two o'clock is skipped in spring. The ranges count such a run, a warning of its own does not.
        .filter(lambda entry: entry[1] == "UTC" or entry[0] not in (4, 5)),
        min_size=2,
        max_size=4,
    )
)
@example([(0, "UTC", 1, 30), (4, "UTC", 3, None), (41, "America/New_York", 1, 28)])
@settings(max_examples=examples(6), deadline=None)
def test_several_time_zones_along_a_year(entries: list[tuple[int, str, Any, Any]]) -> None:
    """Each half hour of a year in UTC is held against the clock of each zone."""
    schedule = [
        action(f"a{at}", f"{at % 2 * 30} {at // 2} * * ? *", time_zone=zone, min=low, max=high)
        for at, zone, low, high in entries
    ]
    moments: list[list[ScalingSchedule]] = []
    for half_hour in range(366 * 48):
        now = datetime(2024, 1, 1, tzinfo=ZoneInfo("UTC")) + timedelta(minutes=30 * half_hour)
        local = [now.astimezone(ZoneInfo(each.time_zone or "UTC")) for each in schedule]
        clocks = [f"{each.minute} {each.hour} * * ? *" for each in local]
        now_run = [each for each, clock in zip(schedule, clocks, strict=True) if each.cron == clock]
        if now_run:
            moments.append(now_run)
    assume(all(len(together) == 1 for together in moments))
    standing, seen = {(8, 28)}, {(8, 28)}
    for [running] in moments:
        standing = {(running.min or low, running.max or high) for low, high in standing}
        seen |= standing
        standing.add((8, 28))  # a deployment
    found = StandingRanges(CapacityRange(8, 28), tuple(schedule)).all
    assert {tuple(each.range) for each in found} == seen


def test_dates_and_days_of_the_week_meet_in_some_years() -> None:
    """The first of December is a Tuesday in 2026 and 2032, not in 2027 to 2031."""
    sale = action("sale", "0 8 1 12 ? *", min=20)
    over = action("over", "0 12 1 12 ? *", min=8)
    small = action("small", "0 7 ? * TUE *", max=10)
    large = action("large", "0 9 ? * TUE *", max=28)
    with refused("LLE621"):
        check_ranges((sale, over, small, large), CapacityRange(8, 28))
    small_later = action("small", "0 13 ? * TUE *", max=10)
    large_later = action("large", "0 14 ? * TUE *", max=28)
    check_ranges((sale, over, small_later, large_later), CapacityRange(8, 28))
    assert order_of((sale, small)).differs_by_week


@pytest.mark.parametrize(
    ("cron", "first_day", "runs"),
    [
        ("15 12 * * ? *", "2026-03-01", True),
        ("15 12 1 * ? *", "2026-03-01", True),
        ("15 12 L * ? *", "2026-02-28", True),
        ("15 12 L * ? *", "2026-02-27", False),
        ("15 12 ? * MON-FRI *", "2026-03-02", True),  # a Monday
        ("15 12 ? * MON-FRI *", "2026-03-01", False),
        ("15 12 ? * FRI-MON *", "2026-03-01", True),
        ("15 12 ? * FRI-MON *", "2026-03-03", False),
        ("15 12 ? * 1 *", "2026-03-01", True),  # 1 is Sunday
        ("15 12 * 2,MAR ? 2026-2027", "2026-03-01", True),
        ("15 12 * 1/3 ? *", "2026-04-30", True),  # January, April, July, October
        ("15 12 * 1/3 ? *", "2026-05-01", False),
    ],
)
def test_crons_as_application_auto_scaling_has_them(cron: str, first_day: str, runs: bool) -> None:
    read = cron_of(cron)
    assert read is not None
    assert read.minutes == (12 * 60 + 15,)
    assert read.runs_on(datetime.fromisoformat(first_day).date()) is runs


def test_minutes_and_hours_are_lists_ranges_and_steps() -> None:
    read = cron_of("0/30 8-9 * * ? *")
    assert read is not None
    assert read.minutes == (480, 510, 540, 570)
    assert cron_of("0 8 * *") is None


def test_a_week_of_ranges_begins_with_what_the_week_before_left() -> None:
    week = StandingRanges(CapacityRange(8, 28), (NIGHT, MORNING)).of_week()
    assert week is not None
    assert list(week.items())[:3] == [(7 * 60, (8, 28)), (22 * 60, (2, 28)), (31 * 60, (8, 28))]
    assert len(week) == 14


@pytest.mark.parametrize(
    ("of", "when"),
    [
        ({"cron": "0 22 * * ? *"}, "from 22:00 UTC"),
        (
            {"cron": "45 7 ? * MON-FRI *", "time_zone": "Europe/Berlin"},
            "from 07:45 Europe/Berlin MON-FRI",
        ),
        ({"cron": "0 8 1 DEC ? *"}, "from 08:00 UTC days 1 months DEC"),
        ({"cron": "0/5 8 * * ? *"}, "cron(0/5 8 * * ? *) UTC"),
        ({"at": "2030-03-01T08:00:00"}, "from 2030-03-01 08:00:00 UTC"),
        ({"rate": "1 day"}, "every 1 day"),
    ],
)
def test_times_in_words(of: dict[str, str], when: str) -> None:
    assert ScalingSchedule(name="a", min=2, **of).when == when
