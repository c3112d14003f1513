"""Other peaks at set times: the schedule that follows, and what takes the largest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.scaling import ScalingSchedule
from low_latency_endpoint.options.throughput import MeasuredThroughput, PeakAtTime
from low_latency_endpoint.plan.plan import Plan
from tests.depth import examples
from tests.refusals import refused

from .conftest import planned

LEAD = 9  # three minutes above the target, one of delay, five of start


def peak(tps: float, start: str, end: str, zone: str | None = "Europe/Berlin") -> PeakAtTime:
    return PeakAtTime(tps=tps, start=start, end=end, time_zone=zone)


NIGHT = peak(2000, "22:00", "06:00")


def plan_of(peaks: dict[str, PeakAtTime], rise: Any = None, **more: Any) -> Plan:
    load = {"peak_tps": 800, "tps_per_instance": 100, "safety_factor": 0.6, **(rise or {})}
    return planned(
        client_zones=["use1-az1", "use1-az2"],
        instance_type="ml.m5.xlarge",
        latency=LatencyTarget(p99=timedelta(milliseconds=200)),
        throughput=MeasuredThroughput(**load, peaks=peaks),
        **more,
    )


def times(plan: Plan) -> list[tuple[str, str | None, int | None, int | None]]:
    return [(each.name, each.cron, each.min, each.max) for each in plan.schedule]


def warned(plan: Plan) -> set[str]:
    return {warning.id for warning in plan.explanation.warnings}


def test_a_higher_peak_is_a_jump_that_is_known_before() -> None:
    """2000 / 60 = 33.3 are there before it, and 34 beside those of a lost zone of two."""
    plan = plan_of({"night": NIGHT})
    assert times(plan) == [
        ("night", "51 21 * * ? *", 34, 68),
        ("after-night", "0 6 * * ? *", 2, 28),
    ]
    assert {each.time_zone for each in plan.schedule} == {"Europe/Berlin"}
    # Jumps of the day are as unknown as without the night, whose zone outage is the worse one.
    assert warned(plan) == {"jumps-unknown", "zone-outage", "zone-outage-at-minimum"}


@pytest.mark.parametrize("rise", [{"rise_tps_per_minute": 25}, {"from_tps": 700}])
def test_what_is_stated_of_rises_is_about_the_rest_of_the_day(rise: dict[str, float]) -> None:
    """By day 25 x 12.5 / 40 = 7.8, or 800 / 90 = 8.9 of which 700 / 60 keep 12; by night a jump."""
    plan = plan_of({"night": NIGHT}, rise)
    by_day = 8 if "rise_tps_per_minute" in rise else 2
    assert times(plan) == [
        ("night", "51 21 * * ? *", 34, 68),
        ("after-night", "0 6 * * ? *", by_day, 28),
    ]
    assert warned(plan) == {"zone-outage", "zone-outage-at-minimum"}


def test_a_quiet_time_ends_before_the_traffic_is_back() -> None:
    """300 / 60 = 5, and 10 at most."""
    plan = plan_of({"quiet": peak(300, "01:00", "05:00")}, {"from_tps": 300})
    assert times(plan) == [
        # 300 / 90 = 3.3, and 5 are kept at 300: none for the jump. By day 800 / 90 = 8.9.
        ("quiet", "0 1 * * ? *", 2, 10),
        ("after-quiet", "51 4 * * ? *", 9, 28),
    ]


def test_of_peaks_at_once_the_highest_counts() -> None:
    """The jumps: 1200 / 60 = 20 and 1800 / 60 = 30."""
    plan = plan_of(
        {"day": peak(1200, "08:00", "20:00"), "noon": peak(1800, "12:00", "14:00")},
        {"rise_tps_per_minute": 1},
    )
    assert times(plan) == [
        ("day", "51 7 * * ? *", 20, 40),
        ("noon", "51 11 * * ? *", 30, 60),
        ("after-noon", "0 14 * * ? *", 20, 40),
        ("after-day", "0 20 * * ? *", 2, 28),
    ]


def test_a_quiet_time_that_is_no_longer_than_the_lead_has_no_range() -> None:
    """The usual range stands from nine minutes before its end on, which is its begin."""
    plan = plan_of({"lull": peak(80, "17:05", "17:14"), "night": NIGHT})
    [text] = [each for each in plan.explanation.warnings if each.id == "peak-without-range"]
    assert text == (
        "lull (from 17:05 to 17:14 Europe/Berlin) has no range of its own: it is no longer than the 9 "
        "minutes by which the next range is set ahead"
    )
    assert [load.name for load in plan.under_load] == ["", "night"]
    assert [served.tps for served in plan.other_peaks] == [2000]
    plan = plan_of({"noon": peak(900, "23:00", "23:30"), "night": NIGHT})
    [text] = [each for each in plan.explanation.warnings if each.id == "peak-without-range"]
    assert text.endswith("other peaks that are as high or higher cover it")
    assert "peak-without-range" not in warned(plan_of({"lull": peak(80, "17:05", "17:15")}))


def test_a_peak_right_after_another_is_not_cut_short() -> None:
    plan = plan_of(
        {"first": peak(1200, "08:00", "12:00"), "second": peak(1800, "12:00", "14:00")},
        {"rise_tps_per_minute": 1},
    )
    assert times(plan) == [
        ("first", "51 7 * * ? *", 20, 40),
        ("second", "51 11 * * ? *", 30, 60),
        ("after-second", "0 14 * * ? *", 2, 28),
    ]


def test_the_lead_is_as_long_as_an_instance_takes() -> None:
    """Four minutes of the decision and fifteen of the start."""
    plan = plan_of({"night": NIGHT}, instance_start=timedelta(minutes=15))
    assert plan.schedule[0].cron == "41 21 * * ? *"
    assert plan.explanation["scheduled_range_1"].inputs["lead in minutes"] == 19


def test_a_peak_like_the_usual_one_needs_no_schedule() -> None:
    assert plan_of({"same": peak(800, "08:00", "09:00")}).schedule == ()


def test_peaks_that_cover_the_day_get_one_action() -> None:
    """A deployment sets the usual range, 28 at most; for 100 it is 4, as max(ceil(2 x 1.5), 2 x 2)."""
    halves = {"a": peak(100, "00:00", "12:00"), "b": peak(100, "12:00", "00:00")}
    assert times(plan_of(halves)) == [("a", "0 0 * * ? *", 2, 4)]


def test_what_has_to_hold_the_most_takes_the_highest_peak() -> None:
    usual, plan = plan_of({}), plan_of({"night": NIGHT})
    assert (plan.most, plan.largest_fleet, plan.fewest) == (68, 68, 2)
    assert plan.addresses.value > usual.addresses.value
    assert plan.caller_connections == 400  # 2000 x 0.2 s
    assert plan.fleet.initial == 28  # 34, as far as the usual maximum lets them
    assert plan.fleet.at_peak == usual.fleet.at_peak == 14


def test_a_fixed_fleet_holds_the_highest_peak() -> None:
    plan = plan_of({"night": NIGHT}, enabled=False)
    assert (plan.fleet.minimum, plan.fleet.initial, plan.fleet.maximum) == (34, 34, 34)
    assert plan.schedule == ()
    assert "peak_range_1" in plan.explanation
    small = plan_of({"night": NIGHT}, enabled=False, initial_instances=14)
    assert "maximum-below-peak" in warned(small)


def test_counts_that_are_stated_hold_by_night_too() -> None:
    plan = plan_of({"night": NIGHT}, max_instances=30)
    assert [(each.min, each.max) for each in plan.schedule] == [(30, 30), (2, 30)]
    assert "maximum-below-peak" in warned(plan)
    [text] = [each for each in plan.explanation.warnings if each.id == "maximum-below-peak"]
    assert text.startswith("night (from 22:00 to 06:00 Europe/Berlin): the maximum of 30 instances")


@pytest.mark.parametrize(
    ("code", "make"),
    [
        ("LLE643", lambda: peak(2000, "22", "06:00")),
        ("LLE643", lambda: peak(2000, "22:00", "24:00")),
        ("LLE644", lambda: peak(2000, "22:00", "22:00")),
        ("LLE613", lambda: peak(2000, "22:00", "06:00", "Mars")),
        ("LLE645", lambda: plan_of({"a": NIGHT, "b": peak(900, "08:00", "09:00", "UTC")})),
        (
            "LLE646",
            lambda: plan_of(
                {"a": NIGHT}, schedule=[ScalingSchedule(name="b", cron="0 1 * * ? *", min=3)]
            ),
        ),
        ("LLE626", lambda: plan_of({"Steps": NIGHT})),
        ("LLE611", lambda: plan_of({"a:b": NIGHT})),
    ],
)
def test_what_is_refused(code: str, make: Any) -> None:
    with refused(code):
        make()


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.tuples(
            st.sampled_from([100, 500, 800, 1300, 2000]), st.integers(0, 95), st.integers(1, 90)
        ),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([{}, {"rise_tps_per_minute": 25}, {"from_tps": 100}]),
    st.sampled_from([1, 5, 40]),
)
@settings(max_examples=examples(40), deadline=None)
def test_at_each_minute_the_range_holds_the_load_of_the_lead_that_follows(
    stated: dict[str, tuple[int, int, int]], rise: dict[str, float], start_minutes: int
) -> None:
    """Each minute of two days by itself, with a plan of the load alone beside it."""

    def clock(quarter: int) -> str:
        return f"{quarter // 4 % 24:02}:{quarter % 4 * 15:02}"

    peaks = {
        name: peak(tps, clock(begin), clock(begin + length))
        for name, (tps, begin, length) in stated.items()
    }
    start = timedelta(minutes=start_minutes)
    plan = plan_of(peaks, rise, instance_start=start)
    alone = {}
    for name, at_time in peaks.items():
        jump = {"from_tps": 0} if at_time.tps > 800 else rise
        if "from_tps" in jump:
            jump = {"from_tps": min(jump["from_tps"], at_time.tps)}
        fleet = plan_of({}, {**jump, "peak_tps": at_time.tps}, instance_start=start).fleet
        minimum = fleet.at_peak if at_time.tps > 800 else fleet.minimum
        alone[name] = (minimum, fleet.maximum)
    usual = plan_of({}, rise, instance_start=start).fleet
    assert (plan.fleet.minimum, plan.fleet.maximum) == (usual.minimum, usual.maximum)

    def needed(minute: int) -> tuple[float, tuple[int, int]]:
        loads = [
            (tps, alone[name])
            for name, (tps, begin, length) in stated.items()
            if (minute - 15 * begin) % 1440 < 15 * length
        ]
        return max(loads, default=(800, (usual.minimum, usual.maximum)))

    loads = [needed(minute) for minute in range(1440)]
    changes = {}
    for each in plan.schedule:
        assert each.cron is not None
        minutes, hours, *_ = each.cron.split(" ")
        changes[60 * int(hours) + int(minutes)] = (each.min, each.max)
    standing: Any = (usual.minimum, usual.maximum)
    counted = {800.0}
    for minute in range(2 * 1440):
        standing = changes.get(minute % 1440, standing)
        if minute >= 1440:
            ahead = [loads[(minute + later) % 1440] for later in range(4 + start_minutes + 1)]
            assert standing == max(ahead)[1]
            counted.add(max(ahead)[0])
    assert {each.peak.tps for each in plan.standing_peaks} | {800.0} == counted
    told = [each for each in plan.explanation.warnings if each.id == "peak-without-range"]
    assert len(told) == len(plan.peaks) - len(plan.standing_peaks)


def test_that_a_higher_peak_is_over_in_time_is_assumed() -> None:
    """At 06:00 the maximum falls to that of 800, 14 x 2, and takes six of 34 away at once."""

    def said(plan: Plan) -> str:
        [line] = [line.text for line in plan.explanation.summary if line.title == "Assumed"]
        return line

    assert "night is over at 06:00, when 28 instances at most stay" in said(
        plan_of({"night": NIGHT})
    )
    low = {"quiet": peak(300, "01:00", "05:00")}
    assert "is over at" not in said(plan_of(low))
    assert "is over at" not in said(plan_of({"night": NIGHT}, max_instances=40))
