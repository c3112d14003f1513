"""What a zone outage leaves, at the peak and at each minimum, counted instance by instance."""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.options.scaling import ScalingSchedule
from low_latency_endpoint.options.throughput import MeasuredThroughput, PeakAtTime
from low_latency_endpoint.plan.plan import Plan
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


def warning_of(plan: Plan) -> str:
    """The only warning about zone outages; empty without one."""
    texts = [str(warning) for warning in plan.explanation.warnings if warning.id == "zone-outage"]
    assert len(texts) <= 1
    return "".join(texts)


def left_of(instances: int, zones: int) -> int:
    """Instances are dealt out zone by zone, and the fullest one fails."""
    dealt = Counter(number % zones for number in range(instances))
    return instances - max(dealt.values())


def naive_load(instances: int, zones: int, tps: Fraction, limit: int) -> Fraction:
    """What those that are left have to work at; 0 if none are, which is another warning."""
    left = left_of(instances, zones)
    return tps / (left * limit) if left else Fraction(0)


def worst_load(
    low: int, high: int, zones: int, peak: int, limit: int, share: Fraction, factor: Fraction
) -> Fraction:
    """The worst of a range: of the fleet at the peak, and of the minimum where that is smaller."""
    needed = zones
    while needed * limit * factor < peak:
        needed += 1
    serving = min(max(needed, low), high)
    worst = naive_load(serving, zones, Fraction(peak), limit)
    if low < serving:
        tps = min(Fraction(peak), low * limit * share)
        worst = max(worst, naive_load(low, zones, tps, limit))
    return worst


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
    factor = Fraction(str(load["safety_factor"]))
    share = factor if percent is None else Fraction(percent, 100)
    plan = plan_of(
        zones, load, min_instances=low, max_instances=low + more, schedule=schedule, **own
    )
    peak = load["peak_tps"]
    worst = max(worst_load(*span, zones, peak, limit, share, factor) for span in ranges)
    text = warning_of(plan)
    assert bool(text) == (worst > HELD)
    if text:
        assert f"{float(worst):.0%} of their limit" in text


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
    worst = max(
        worst_load(low, high, zones, peak, limit, factor, factor) for low, high, peak in spans
    )
    assert bool(warning_of(plan)) == (plan.scaling is not None and worst > HELD)


@given(ZONES, loads(), st.integers(2, 40))
@settings(max_examples=examples(40), deadline=None)
def test_a_fixed_fleet_has_the_peak_at_all_hours(
    zones: int, load: dict[str, Any], count: int
) -> None:
    plan = plan_of(zones, load, enabled=False, initial_instances=count)
    worst = naive_load(count, zones, Fraction(load["peak_tps"]), load["tps_per_instance"])
    text = warning_of(plan)
    assert bool(text) == (worst > HELD)
    if text:
        assert "scaling" not in text
        [enough] = re.findall(r"Raise the number of instances to ([\d,]+)", text)
        number = int(enough.replace(",", ""))
        assert not warning_of(plan_of(zones, load, enabled=False, initial_instances=number))


@given(ZONES, loads(), st.integers(6, 40), st.integers(1, 40))
@settings(max_examples=examples(120), deadline=None)
def test_each_advice_ends_the_warning(
    zones: int, load: dict[str, Any], low: int, more: int
) -> None:
    """Each by itself, with the maximum that the text names, or as large as the minimum has to be."""
    text = warning_of(plan_of(zones, load, min_instances=low, max_instances=low + more))
    most = low + more

    def named(words: str) -> float | None:
        numbers = re.findall(words + r" ([\d,.]*\d)", text)
        return float(numbers[0].replace(",", "")) if numbers else None

    most = int(named("(?:ith a maximum of|aise the maximum to)") or most)
    changes: list[tuple[dict[str, Any], int]] = []
    minimum, factor = named("aise the minimum to"), named("ower the safety factor to")
    if minimum is not None:
        changes.append((load, int(minimum)))
    if factor is not None:
        changes.append((load | {"safety_factor": factor}, low))
    if "aise the maximum" in text:
        changes.append((load, low))
    assert bool(changes) == bool(text)
    for changed, least in changes:
        after = plan_of(zones, changed, min_instances=least, max_instances=max(most, least))
        assert not warning_of(after), text


def test_a_zone_is_lost_at_the_minimum() -> None:
    """4 in three zones are 2, 1 and 1: 2 are left, 240 a second, of up to 4 x 120 x 0.55 = 264.

    7 at the peak leave 4: 430 of 480, 89.6 %. 5 leave 3 of 330, 91.7 %; 6 leave 4 of 396. With a
    factor of 0.45 4 have up to 216, 90 %.
    """
    load = {"peak_tps": 430, "tps_per_instance": 120, "safety_factor": 0.55}
    text = warning_of(plan_of(3, load, min_instances=4))
    assert text.startswith(
        "if a zone fails at the minimum, 2 of 4 instances remain (240 of up to 264 TPS, for which "
        "scaling leaves 4) until scaling replaces the others. They work at up to 110% of their limit"
    )
    assert "Raise the minimum to 6, lower the safety factor to 0.45, or serve from more" in text
    assert not warning_of(plan_of(3, load, min_instances=6))


def test_the_worst_range_has_the_numbers_and_the_others_a_name() -> None:
    """Of 10 in three zones 6 are left, 600 of 1,200; of 20 by day 13."""
    load = {"peak_tps": 1200, "tps_per_instance": 100, "safety_factor": 0.6}
    cap = ScalingSchedule(name="cap", cron="0 20 ? * FRI *", min=4, max=10)
    back = ScalingSchedule(name="back", cron="0 6 ? * MON *", min=12, max=30)
    text = warning_of(plan_of(3, load, min_instances=4, max_instances=30, schedule=[cap, back]))
    assert text.startswith(f"cap ({cap.when}): if a zone fails at the peak, 6 of 10 instances")
    assert text.endswith("Also, no worse: the usual range, back")


def test_a_higher_peak_at_a_set_time_is_named_as_a_jump() -> None:
    """2000 / 108 = 18.5. Nothing is stated of rises, and the minimum is: no peak raises it."""
    night = PeakAtTime(tps=2000, start="22:00", end="06:00")
    load = {"peak_tps": 900, "tps_per_instance": 120, "peaks": {"night": night}}
    plan = plan_of(2, load, min_instances=4, max_instances=30)
    texts = {warning.id: str(warning) for warning in plan.explanation.warnings}
    assert "the jump to 2,000 TPS at its start needs a minimum of 19" in texts["minimum-below-rise"]
    assert "as stated" not in texts["minimum-below-rise"]
    assert "throughput.peaks" not in texts["jumps-unknown"]
    assert "throughput.peaks" in str(
        [*plan_of(2, {"peak_tps": 900, "tps_per_instance": 120}).explanation.warnings]
    )


@given(ZONES, loads(), st.sampled_from([0, 1, 5, 20]))
@settings(max_examples=examples(60), deadline=None)
def test_a_lower_factor_ends_the_warning_with_the_minimum_that_follows_from_it(
    zones: int, load: dict[str, Any], rise: int
) -> None:
    load = load | {"rise_tps_per_minute": rise}
    text = warning_of(plan_of(zones, load))
    factors = re.findall(r"ower the safety factor to (0\.\d+)", text)
    for factor in factors:
        changed = plan_of(zones, load | {"safety_factor": float(factor)})
        assert not warning_of(changed), text
