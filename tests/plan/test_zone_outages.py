"""What a zone outage leaves, at the peak and at each minimum, counted instance by instance."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.options.scaling import ScalingSchedule
from low_latency_endpoint.options.throughput import HeldTps, MeasuredThroughput, PeakAtTime
from low_latency_endpoint.plan.fleet_under_load import Fleet, FleetUnderLoad
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.summary import summary_of
from low_latency_endpoint.plan.zone_outages import (
    _enough_at_minimum,
    _enough_at_peak,
    _overloaded,
    _with_room,
    assumed_jump,
    assumed_outage,
)
from tests.depth import examples

from .conftest import planned

HELD = Fraction(9, 10)


def plan_of(zones: int, load: dict[str, Any], **more: Any) -> Plan:
    return planned(
        client_zones=[f"use1-az{number}" for number in range(1, zones + 1)],
        instance_type="ml.m5.xlarge",
        throughput=MeasuredThroughput(**load),
        **more,
    )


AT_PEAK, AT_MINIMUM = "zone-outage", "zone-outage-at-minimum"
BETWEEN = "assumed"


def warnings_of(plan: Plan) -> dict[str, str]:
    """The warnings about zone outages by their ids, of which there is one each."""
    found = [w for w in plan.explanation.warnings if w.id.startswith("zone-outage")]
    texts = {warning.id: str(warning) for warning in found}
    assert len(texts) == len(found)
    return texts


def left_of(instances: int, zones: int) -> int:
    """Instances are dealt out zone by zone, and the fullest one fails."""
    dealt = Counter(number % zones for number in range(instances))
    return instances - max(dealt.values())


def naive_load(instances: int, zones: int, tps: Fraction, limit: int) -> Fraction:
    """What those that are left have to work at; 0 if none are, which is another warning."""
    left = left_of(instances, zones)
    return tps / (left * limit) if left else Fraction(0)


def naive_loads(
    low: int, high: int, zones: int, peak: int, limit: int, share: Fraction
) -> dict[str, Fraction]:
    """The load of the fleet at the peak of a range, and the worst of each fleet that is smaller."""
    needed = zones
    while needed * limit * share < peak:
        needed += 1
    serving = min(max(needed, low), high)
    smaller = [
        naive_load(count, zones, min(Fraction(peak), count * limit * share), limit)
        for count in range(low, serving)
    ]
    at_peak = naive_load(serving, zones, Fraction(peak), limit)
    none = Fraction(0)
    return {AT_PEAK: at_peak, AT_MINIMUM: [*smaller, none][0], BETWEEN: max(smaller, default=none)}


def compare(plan: Plan, ranges: list[dict[str, Fraction]]) -> None:
    """Each warning is there if some range needs it, and has the number of the worst one."""
    texts = warnings_of(plan)
    for warning in (AT_PEAK, AT_MINIMUM):
        worst = max(loads[warning] for loads in ranges)
        assert (warning in texts) == (worst > HELD)
        if worst > HELD:
            assert f"{shown(worst)}% of their limit" in texts[warning]
    worst = max(loads[BETWEEN] for loads in ranges)
    at_minimum = max(loads[AT_MINIMUM] for loads in ranges)
    assert ("no zone fails while" in assumed_in(plan)) == (worst > max(at_minimum, HELD))
    if worst > max(at_minimum, HELD):
        assert f"at up to {shown(worst)} % of the limit" in assumed_in(plan)


def shown(load: Fraction) -> str:
    """Percent, with the digits that show that it is more than 90."""
    percent = [f"{float(load):.{digits}%}".removesuffix("%") for digits in range(5)]
    return next(text for text in percent if float(text) > 90)


def overloaded_one_by_one(standing: FleetUnderLoad) -> list[int]:
    """The fleets below that of the peak that a zone outage overloads, tried one by one."""
    fleets = range(standing.fleet.minimum, standing.serving_at_peak)
    outages = [standing.zone_outage(instances) for instances in fleets]
    return [outage.instances for outage in outages if outage is not None and outage.load > 1]


def enough_one_by_one(standing: FleetUnderLoad) -> int:
    """The smallest minimum of which a zone outage leaves enough, tried one by one."""
    with_room = _with_room(standing)
    for instances in range(standing.fleet.minimum, with_room.serving_at_peak):
        outage = with_room.zone_outage(instances)
        if outage is not None and outage.is_safe:
            return instances
    return max(with_room.serving_at_peak, _enough_at_peak(standing))


def assumed_in(plan: Plan) -> str:
    """What the summary says that the plan assumes."""
    [text] = [line.text for line in summary_of(plan) if line.title == "Assumed"]
    return text


@st.composite
def loads(draw: st.DrawFn) -> dict[str, Any]:
    hundredths = draw(st.integers(20, 100))
    return {
        "peak_tps": draw(st.integers(10, 3000)),
        "tps_per_instance": draw(st.integers(20, 200)),
        "safety_factor": hundredths / 100,
    }


ZONES = st.integers(2, 6)


@given(
    ZONES,
    loads(),
    st.integers(6, 40),
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(6, 40), st.integers(1, 40)), max_size=2),
    st.one_of(st.none(), st.integers(10, 100)),
)
@settings(max_examples=examples(120), deadline=None)
def test_the_warning_is_there_when_a_naive_count_finds_too_few(
    zones: int,
    load: dict[str, Any],
    low: int,
    more: int,
    actions: list[tuple[int, int]],
    percent: int | None,
) -> None:
    """Of the usual range, and of those that a schedule brings; also with a target of one's own."""
    ranges = [(low, low + more)] + [(least, least + further) for least, further in actions]
    schedule = [
        ScalingSchedule(name=f"a{hour}", cron=f"0 {hour} * * ? *", min=least, max=most)
        for hour, (least, most) in enumerate(ranges[1:])
    ]
    limit = load["tps_per_instance"]
    own: dict[str, Any] = {}
    if percent is not None:
        own["invocations_target"] = limit * 60 * percent / 100
    share = Fraction(str(load["safety_factor"]))
    if percent is not None:
        share = Fraction(percent, 100)
    plan = plan_of(
        zones, load, min_instances=low, max_instances=low + more, schedule=schedule, **own
    )
    peak = load["peak_tps"]
    compare(plan, [naive_loads(*span, zones, peak, limit, share) for span in ranges])


@given(ZONES, loads(), st.integers(10, 4000))
@settings(max_examples=examples(60), deadline=None)
def test_each_peak_of_the_day_is_judged_with_its_own_minimum(
    zones: int, load: dict[str, Any], tps: int
) -> None:
    night = PeakAtTime(tps=tps, start="22:00", end="06:00")
    plan = plan_of(zones, load | {"peaks": {"night": night}, "rise_tps_per_minute": 1})
    factor = Fraction(str(load["safety_factor"]))
    [of_night] = plan.peaks
    spans = [
        (plan.fleet.minimum, plan.fleet.maximum, load["peak_tps"]),
        (of_night.range.minimum, of_night.range.maximum, tps),
    ]
    limit = load["tps_per_instance"]
    assert plan.scaling is not None
    compare(plan, [naive_loads(low, high, zones, peak, limit, factor) for low, high, peak in spans])


@given(ZONES, loads(), st.integers(2, 40))
@settings(max_examples=examples(40), deadline=None)
def test_a_fixed_fleet_has_the_peak_at_all_hours(
    zones: int, load: dict[str, Any], count: int
) -> None:
    plan = plan_of(zones, load, enabled=False, initial_instances=count)
    worst = naive_load(count, zones, Fraction(load["peak_tps"]), load["tps_per_instance"])
    texts = warnings_of(plan)
    assert [*texts] == [AT_PEAK] * (worst > HELD)
    for text in texts.values():
        assert "scaling" not in text
        [enough] = re.findall(r"Raise the number of instances to ([\d,]+)", text)
        number = int(enough.replace(",", ""))
        assert not warnings_of(plan_of(zones, load, enabled=False, initial_instances=number))


class Stated(NamedTuple):
    """What a settings file states, as far as an advice may change it."""

    zones: int
    load: dict[str, Any]
    minimum: int | None
    maximum: int | None
    schedule: dict[str, dict[str, int]]  # minimum and maximum of actions, hour by hour
    target: float | None = None  # invocations per instance and minute

    @property
    def plan(self) -> Plan:
        """The plan of it."""
        counts = {"min_instances": self.minimum, "max_instances": self.maximum}
        stated = {name: count for name, count in counts.items() if count is not None}
        schedule = [
            ScalingSchedule(
                name=name, cron=f"0 {hour} * * ? *", min=counts["min"], max=counts["max"]
            )
            for hour, (name, counts) in enumerate(self.schedule.items())
        ]
        own: dict[str, Any] = {}
        if self.target is not None:
            own["invocations_target"] = self.target
        return plan_of(self.zones, self.load, schedule=schedule, **own, **stated)

    def after(self, remedy: str) -> Stated:
        """What is stated once somebody has done what a remedy says, and nothing else."""
        changed = self
        factor = re.search(r"safety factor to (0\.\d+)", remedy)
        if factor:
            changed = changed._replace(load=self.load | {"safety_factor": float(factor[1])})
        target = re.search(r"scaling.invocations_target to ([\d,]*\d)", remedy)
        if target:
            changed = changed._replace(target=int(target[1].replace(",", "")))
        owner = ""
        sought = r"(the|its) (minimum|maximum)(?: of (\w+))? to ([\d,]*\d)"
        for article, option, name, number in re.findall(sought, remedy):
            owner = owner if article == "its" else name
            changed = changed.with_count(option, owner, int(number.replace(",", "")))
        assert changed != self, remedy
        return changed

    def with_count(self, option: str, name: str, count: int) -> Stated:
        """Another minimum or maximum, of an action or of the usual range."""
        if not name and option == "minimum":
            return self._replace(minimum=count)
        if not name:
            return self._replace(maximum=count)
        counts = self.schedule[name] | {option[:3]: count}
        return self._replace(schedule=self.schedule | {name: counts})


def remedies_of(text: str) -> list[str]:
    """What a warning advises, but for more zones."""
    _, advice = text.split("is safe. ")
    *remedies, last = advice.split("; or ")
    assert last.startswith("serve from more zones")
    return remedies


def follow(stated: Stated, warning: str, choose: Callable[[list[str]], str]) -> None:
    """Do what a warning says until it is gone: a few times, as it may turn to other ranges."""
    for _ in range(3 * len(stated.plan.under_load)):
        texts = warnings_of(stated.plan)
        if warning not in texts:
            return
        before = {told.id for told in stated.plan.explanation.warnings}
        stated = stated.after(choose(remedies_of(texts[warning])))
        new = {told.id for told in stated.plan.explanation.warnings} - before
        # An action that set the usual number back no longer does.
        restored = {"minimum-not-restored", "maximum-not-restored"}
        assert new <= {AT_PEAK, AT_MINIMUM} | restored, (texts[warning], stated)
    assert warning not in warnings_of(stated.plan), stated


@given(
    ZONES,
    loads(),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(0, 20),
    st.one_of(st.none(), st.integers(10, 120)),
)
@settings(max_examples=examples(120), deadline=None)
def test_each_advice_ends_the_warning(
    zones: int, load: dict[str, Any], low: int, more: int, rise: int, percent: int | None
) -> None:
    """Of one range, whose minimum and maximum are stated or derived, each remedy does by itself."""
    load = load | {"rise_tps_per_minute": rise}
    minimum = low if low >= zones else None
    maximum = (minimum or 41) + more if more else None
    stated = Stated(zones, load, minimum, maximum, {})
    if percent is not None:
        stated = stated._replace(target=load["tps_per_instance"] * 60 * percent / 100)
    for warning, text in warnings_of(stated.plan).items():
        for remedy in remedies_of(text):
            assert warning not in warnings_of(stated.after(remedy).plan), (text, remedy)


@given(
    st.data(),
    ZONES,
    loads(),
    st.lists(st.tuples(st.integers(6, 40), st.integers(1, 40)), min_size=2, max_size=4),
)
@settings(max_examples=examples(120), deadline=None)
def test_each_advice_ends_the_warning_of_scheduled_ranges(
    data: st.DataObject, zones: int, load: dict[str, Any], spans: list[tuple[int, int]]
) -> None:
    (low, more), *actions = spans
    schedule = {
        f"a{hour}": {"min": least, "max": least + further}
        for hour, (least, further) in enumerate(actions)
    }
    stated = Stated(zones, load, low, low + more, schedule)
    for warning in (AT_PEAK, AT_MINIMUM):
        follow(stated, warning, lambda remedies: data.draw(st.sampled_from(remedies)))


@given(st.data(), ZONES, loads(), st.integers(10, 4000))
@settings(max_examples=examples(60), deadline=None)
def test_each_advice_ends_the_warning_of_other_peaks(
    data: st.DataObject, zones: int, load: dict[str, Any], tps: int
) -> None:
    night = PeakAtTime(tps=tps, start="22:00", end="06:00")
    load = load | {"peaks": {"night": night}, "rise_tps_per_minute": 1}
    stated = Stated(zones, load, None, None, {})
    for warning in (AT_PEAK, AT_MINIMUM):
        follow(stated, warning, lambda remedies: data.draw(st.sampled_from(remedies)))


def test_a_zone_is_lost_at_the_minimum() -> None:
    """4 in three zones are 2, 1 and 1: 2 are left, 240 a second, of up to 4 x 120 x 0.55 = 264.

    12 at the peak leave 8: 790 of 960. 5 leave 3 of 330, 91.7 %; 6 leave 4 of 396, 82.5 %; 7 leave 4,
    480 of 462, 96.3 %; 10 leave 6 of 660, 91.7 %. With a factor of 0.45 4 have up to 216, 90 %.
    """
    load = {"peak_tps": 790, "tps_per_instance": 120, "safety_factor": 0.55}
    plan = plan_of(3, load, min_instances=4)
    texts = warnings_of(plan)
    assert [*texts] == [AT_MINIMUM]
    text = texts[AT_MINIMUM]
    assert text.startswith(
        "if a zone fails at the minimum, 2 of 4 instances remain (240 of up to 264 TPS, for which "
        "scaling leaves 4) until scaling replaces the others. They work at up to 110% of their limit"
    )
    assert "Raise the minimum to 6; or lower the safety factor to 0.45, for 15 instances" in text
    assert "no zone fails" not in assumed_in(plan)
    plan = plan_of(3, load, min_instances=6)
    assert not warnings_of(plan)
    assert "no zone fails while 7 instances serve: 4 would remain, at up to 96 % of" in assumed_in(
        plan
    )
    assert "no zone fails" not in assumed_in(plan_of(3, load, min_instances=11))


def test_a_worse_peak_of_another_range_is_told_beside_a_worse_minimum() -> None:
    """20 at the peak of 600 leave 10: 120 %. The morning's 16 leave 8, 150 %.

    3 in two zones leave one: 3 x 50 x 0.6 = 90 of 50, 180 % before the morning and in it.
    """
    load = {"peak_tps": 600, "tps_per_instance": 50, "safety_factor": 0.6, "rise_tps_per_minute": 4}
    morning = ScalingSchedule(name="morning", cron="0 6 * * ? *", max=16)
    texts = warnings_of(plan_of(2, load, min_instances=3, schedule=[morning]))
    assert texts[AT_PEAK].startswith(
        f"morning ({morning.when}): if a zone fails at the peak, 8 of 16"
    )
    assert "They work at 150% of their limit" in texts[AT_PEAK]
    # 600 / (50 x 0.9) = 13.3: 14 in the other zone
    assert "Raise the minimum of morning to 28 and its maximum to 29 or more; or" in texts[AT_PEAK]
    assert texts[AT_PEAK].endswith("Also, no worse: the usual range")
    assert "180% of their limit" in texts[AT_MINIMUM]


def test_the_worst_range_has_the_numbers_and_the_others_a_name() -> None:
    """Of 10 in three zones 6 are left, 600 of 1,200; of 20 by day 13."""
    load = {"peak_tps": 1200, "tps_per_instance": 100, "safety_factor": 0.6}
    cap = ScalingSchedule(name="cap", cron="0 20 ? * FRI *", min=4, max=10)
    back = ScalingSchedule(name="back", cron="0 6 ? * MON *", min=12, max=30)
    plan = plan_of(3, load, min_instances=4, max_instances=30, schedule=[cap, back])
    text = warnings_of(plan)[AT_PEAK]
    assert text.startswith(f"cap ({cap.when}): if a zone fails at the peak, 6 of 10 instances")
    assert text.endswith("Also, no worse: the usual range, back")


def test_a_higher_peak_at_a_set_time_is_named_as_a_jump() -> None:
    """2000 / 108 = 18.5. Nothing is stated of rises; the stated maximum leaves no room for 19."""
    night = PeakAtTime(tps=2000, start="22:00", end="06:00")
    load = {"peak_tps": 900, "tps_per_instance": 120, "peaks": {"night": night}}
    plan = plan_of(2, load, min_instances=4, max_instances=15)
    texts = {warning.id: str(warning) for warning in plan.explanation.warnings}
    assert "the jump to 2,000 TPS at its start needs a minimum of 19" in texts["minimum-below-rise"]
    assert "as stated" not in texts["minimum-below-rise"]


def test_a_stated_minimum_takes_no_peak_its_own_away() -> None:
    """What was advised once for the usual range left the jump of the opening to six instances."""
    peaks = {
        "opening": PeakAtTime(tps=1117, start="00:10", end="02:45"),
        "quiet": PeakAtTime(tps=61, start="03:00", end="05:55"),
    }
    load = {
        "peak_tps": 430,
        "tps_per_instance": 37,
        "safety_factor": 0.58,
        "rise_tps_per_minute": 2.3,
        "peaks": peaks,
    }
    ranges = {peak.name: peak.range.minimum for peak in plan_of(3, load, min_instances=6).peaks}
    # 1,117 / (37 x 0.58) = 52.05; the quiet time alone would have three
    assert ranges == {"opening": 53, "quiet": 6}


def test_what_a_stated_jump_leaves_until_scaling_follows_is_assumed() -> None:
    """300 TPS on 4 of 100 are 75 %, and 2 that are left bear 150 %; 0.6 would keep five."""
    load = {"peak_tps": 300, "tps_per_instance": 100, "safety_factor": 0.6, "from_tps": 50}
    plan = plan_of(2, load)
    assert (plan.fleet.minimum, plan.fleet.at_peak) == (4, 5)
    said = (
        "75 % of the limit is enough for 4 instances after a jump to 300 TPS until scaling follows, "
        "and no zone fails then (150 %)"
    )
    assert assumed_jump(plan) == said
    [line] = [line.text for line in plan.explanation.summary if line.title == "Assumed"]
    assert said in line
    assert assumed_jump(plan_of(2, load, min_instances=5)) == ""
    assert assumed_jump(plan_of(2, load | {"from_tps": 290})) == ""
    assert assumed_jump(plan_of(2, {**load, "from_tps": None, "rise_tps_per_minute": 5})) == ""


def test_all_fleets_that_a_lost_zone_overloads_are_named() -> None:
    """Of three zones 4 instances lose two and 7 lose three: 240 on 200, and 420 on 400."""
    load = {"peak_tps": 900, "tps_per_instance": 100, "safety_factor": 0.6}
    plan = plan_of(3, load, min_instances=3)
    assert assumed_outage(plan).startswith(
        "no zone fails while 4 or 7 instances serve: of 4, 2 would"
    )
    assert "at up to 120 % of the limit" in assumed_outage(plan)
    many = plan_of(2, load, min_instances=2)
    sizes = overloaded_one_by_one(many.usual)
    assert f"while {sizes[0]} to {sizes[-1]} instances serve" in assumed_outage(many)


@st.composite
def fleets_under_load(draw: st.DrawFn) -> FleetUnderLoad:
    """Fleets of every rest, with targets below and above the limit and where both are equal."""
    limit = draw(st.fractions(1, 60, max_denominator=6))
    shares = st.sampled_from(
        [Fraction(1, 3), Fraction(1, 2), Fraction(9, 20), HELD, Fraction(3, 2)]
    )
    kept = limit * draw(shares | st.fractions(Fraction(1, 50), 2, max_denominator=50))
    minimum = draw(st.integers(1, 20))
    at_peak = draw(st.integers(1, 120))
    maximum = draw(st.integers(minimum, 150))
    load = MeasuredThroughput(peak_tps=draw(st.integers(1, 2000)), tps_per_instance=50)
    return FleetUnderLoad(
        name="",
        times="",
        fleet=Fleet(at_peak, minimum, minimum, maximum),
        measured=load,
        zones=draw(st.integers(2, 6)),
        held_tps=HeldTps(limit, kept, by_target=True),
        scales=True,
    )


@given(fleets_under_load())
@settings(max_examples=examples(500))
def test_what_is_calculated_of_all_fleets_is_what_they_have_one_by_one(
    standing: FleetUnderLoad,
) -> None:
    assert _enough_at_minimum(standing) == enough_one_by_one(standing)
    ranges = [*standing.overloaded_below_peak]
    overloaded = sorted(instances for fleets in ranges for instances in fleets)
    assert overloaded == overloaded_one_by_one(standing)
    found = _overloaded(standing)
    assert found[:5] == overloaded[:5]
    assert found[-1:] == overloaded[-1:]
    assert len(found) > 4 or found == overloaded


@pytest.mark.parametrize("tps_per_instance", [1e-3, 1e-6])
@pytest.mark.parametrize("safety_factor", [0.5, 0.9, 1.0])
def test_a_fleet_of_any_size_is_planned_at_once(
    tps_per_instance: float, safety_factor: float
) -> None:
    """Up to 10^17 instances that the peak needs, of which the subnets have room for some."""
    load = {
        "peak_tps": 1e9,
        "tps_per_instance": tps_per_instance,
        "safety_factor": safety_factor,
        "rise_tps_per_minute": 10,
    }
    for maximum in (12, 10_000):
        begun = time.process_time()
        plan = plan_of(2, load, min_instances=2, max_instances=maximum)
        assert AT_MINIMUM in warnings_of(plan)
        assert assumed_in(plan)
        assert time.process_time() - begun < 5
