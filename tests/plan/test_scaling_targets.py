"""A scaling target of one's own takes the safety factor's place in all numbers, counted by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.options.throughput import MeasuredThroughput, PeakAtTime
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.recorded_rise import contradicted_rises
from low_latency_endpoint.plan.summary import summary_of
from low_latency_endpoint.settings import parse_settings, stack_cost
from low_latency_endpoint.simulate import Shape
from low_latency_endpoint.simulate.assumptions import model_of_plan
from tests.depth import examples

from .conftest import planned

HELD = Fraction(9, 10)  # of a limit that counts as held


class Load(NamedTuple):
    """Whole numbers: a fleet's load, and what keeps an instance at how much of its limit."""

    zones: int
    peak: int
    limit: int
    factor: int  # in hundredths
    target: int  # invocations per instance and minute
    start: int  # in minutes, as the next one
    cooldown: int
    rise: dict[str, float]

    @property
    def kept(self) -> Fraction:
        """Requests per second that the target leaves an instance."""
        return Fraction(self.target, 60)

    @property
    def lag(self) -> Fraction:
        """Minutes: those of the metric, until the second decision, and the second start."""
        return Fraction(3, 2) + max(3, self.start + max(self.cooldown, 1)) + self.start

    @property
    def measured(self) -> dict[str, Any]:
        return {
            "peak_tps": self.peak,
            "tps_per_instance": self.limit,
            "safety_factor": self.factor / 100,
            **self.rise,
        }

    def plan(self, *, own: bool = True, **more: Any) -> Plan:
        """The plan of it, with or without the target."""
        if own:
            more.setdefault("invocations_target", self.target)
        return planned(
            client_zones=[f"use1-az{number}" for number in range(1, self.zones + 1)],
            instance_type="ml.m5.xlarge",
            throughput=MeasuredThroughput(**self.measured | more.pop("load", {})),
            instance_start=timedelta(minutes=self.start),
            scale_out_cooldown=timedelta(minutes=self.cooldown),
            **more,
        )


@st.composite
def loads(draw: st.DrawFn) -> Load:
    peak = draw(st.integers(50, 3000))
    limit = draw(st.integers(20, 200))
    percent = draw(st.integers(10, 130))
    return Load(
        zones=draw(st.integers(2, 4)),
        peak=peak,
        limit=limit,
        factor=draw(st.integers(20, 100)),
        target=limit * 60 * percent // 100,
        start=draw(st.sampled_from([2, 5, 9])),
        cooldown=draw(st.sampled_from([1, 5])),
        rise=draw(
            st.sampled_from(
                [{}, {"from_tps": peak // 3}, {"rise_tps_per_minute": 3}, {"from_tps": peak}]
            )
        ),
    )


def enough_for(tps: Fraction | int, each: Fraction) -> int:
    """The first number of instances whose sum is enough."""
    instances = math.floor(tps / each)
    while instances * each < tps:
        instances += 1
    return instances


def bears_its_rise(load: Load, minimum: int) -> bool:
    """Whether a minimum holds what comes, from all rates at which it may start."""
    jump = load.peak / HELD
    if "from_tps" in load.rise:
        stands = max(minimum, enough_for(int(load.rise["from_tps"]), load.kept))
        return stands * load.limit >= jump
    if "rise_tps_per_minute" not in load.rise or minimum * load.limit >= jump:
        return True
    # Of the rates that the minimum is left at, the highest is the worst; above it there are more.
    comes = 3 * load.lag
    return load.kept < load.limit and minimum * load.kept + comes <= minimum * load.limit


@settings(deadline=None, max_examples=examples(150))
@given(loads())
def test_each_number_is_counted_with_the_target(load: Load) -> None:
    plan = load.plan()
    ids = {warning.id for warning in plan.explanation.warnings}
    per_instance = min(load.kept, Fraction(load.limit))
    assert plan.fleet.at_peak == max(load.zones, enough_for(load.peak, per_instance))
    minimum = plan.fleet.minimum
    assert bears_its_rise(load, minimum)
    assert minimum == load.zones or not bears_its_rise(load, minimum - 1)
    assert plan.fleet.initial == max(plan.fleet.at_peak, minimum)
    assert plan.fleet.maximum >= plan.fleet.initial * Fraction(3, 2)
    assert ("no-reserve" in ids) == (load.kept > HELD * load.limit)
    assert plan.held_tps is not None
    assert (plan.held_tps.limit, plan.held_tps.kept) == (load.limit, load.kept)
    simulated = model_of_plan(
        plan, throughput=plan.request.throughput, service_seconds=0.02, variation=0.5
    )
    assert simulated.instances == plan.fleet.initial
    text = str(plan.explanation["instances_at_peak"])
    assert "safety factor" not in text + str(plan.explanation["min_instances"])


@settings(deadline=None, max_examples=examples(60))
@given(loads(), st.integers(1, 60))
def test_stated_counts_are_judged_with_the_target(load: Load, count: int) -> None:
    """The minimum that somebody states, and the maximum, stay as they are and are warned of."""
    least = load.zones + count
    plan = load.plan(min_instances=least, max_instances=least + count)
    ids = {warning.id for warning in plan.explanation.warnings}
    assert (plan.fleet.minimum, plan.fleet.maximum) == (least, least + count)
    needed = enough_for(load.peak, min(load.kept, Fraction(load.limit)))
    assert ("maximum-below-peak" in ids) == (needed > least + count)
    assert ("minimum-below-rise" in ids) == (not bears_its_rise(load, least))


@settings(deadline=None, max_examples=examples(60))
@given(loads(), st.integers(20, 4000))
def test_a_peak_of_the_day_is_counted_with_the_target(load: Load, tps: int) -> None:
    night = {"night": PeakAtTime(tps=tps, start="22:00", end="06:00")}
    [peak] = load.plan(load={"peaks": night}).peaks
    per_instance = min(load.kept, Fraction(load.limit))
    assert peak.at_peak == max(load.zones, enough_for(tps, per_instance))
    rise = dict(load.rise)
    if tps > load.peak:
        rise = {"from_tps": 0}
    elif "from_tps" in rise:
        rise = {"from_tps": min(rise["from_tps"], tps)}
    at_night = load._replace(peak=tps, rise=rise)
    assert bears_its_rise(at_night, peak.range.minimum)


@settings(deadline=None, max_examples=examples(100))
@given(loads(), st.sampled_from([{}, {"night": PeakAtTime(tps=900, start="22:00", end="06:00")}]))
def test_the_factors_own_target_changes_no_number(load: Load, peaks: dict[str, Any]) -> None:
    stated = load.limit * load.factor * 60 / 100
    own = load.plan(load={"peaks": peaks}, invocations_target=stated)
    derived = load.plan(own=False, load={"peaks": peaks})
    for name in ("fleet", "scaling", "schedule", "peaks", "addresses", "alarms"):
        assert getattr(own, name) == getattr(derived, name)
    values = [
        {decision.name: decision.value for decision in plan.explanation} for plan in (own, derived)
    ]
    assert values[0] == values[1]
    ids = [[warning.id for warning in plan.explanation.warnings] for plan in (own, derived)]
    assert ids[0] == ids[1]


# --- minute by minute ---------------------------------------------------------------------------


def shares_of_limit(load: Load, minimum: int, maximum: int, phase: Fraction) -> Iterator[Fraction]:
    """The load of an instance as a share of its limit, at the end of each minute of a rise.

    CloudWatch has a minute one minute late; scaling acts on three minutes above the target, and
    again after the instances serve and its cooldown. The rise begins at what the minimum is left at.
    """
    low = min(minimum * load.kept, Fraction(load.peak))
    rise = Fraction(load.rise["rise_tps_per_minute"])
    fleet = minimum
    serving_at, wanted, free_at = -1, minimum, 0
    seen: list[Fraction] = []
    for minute in range(int(load.peak / rise) + 60):
        if minute == serving_at:
            fleet = wanted
        before = min(Fraction(load.peak), low + rise * max(Fraction(0), minute - 5 + phase))
        after = min(Fraction(load.peak), low + rise * max(Fraction(0), minute - 4 + phase))
        seen.append((before + after) / 2 / fleet)
        yield after / (fleet * load.limit)
        known = seen[:-1]
        above = len(known) >= 3 and all(value > load.kept for value in known[-3:])
        if above and minute + 1 >= free_at and wanted == fleet:
            wanted = min(maximum, enough_for(known[-1] * fleet, load.kept))
            serving_at = minute + 1 + load.start
            free_at = serving_at + max(load.cooldown, 1)


@settings(deadline=None, max_examples=examples(60))
@given(loads(), st.integers(1, 25), st.integers(0, 9))
def test_no_minute_of_the_stated_rise_is_above_the_limit(
    load: Load, per_minute: int, tenths: int
) -> None:
    load = load._replace(
        rise={"rise_tps_per_minute": per_minute}, target=min(load.target, load.limit * 59)
    )
    fleet = load.plan().fleet
    shares = shares_of_limit(load, fleet.minimum, fleet.maximum, Fraction(tenths, 10))
    assert max(shares) <= 1


def test_the_minute_by_minute_count_finds_what_the_factor_planned() -> None:
    """With 35 of 38 a second kept, six instances are late, and the 23 that the plan has are not."""
    load = Load(3, 763, 38, 58, 2100, 5, 1, {"rise_tps_per_minute": 7.4})
    assert max(shares_of_limit(load, 6, 53, Fraction(0))) > Fraction(11, 10)
    assert max(shares_of_limit(load, 23, 53, Fraction(0))) < 1


# --- by hand ------------------------------------------------------------------------------------

JOB = {"peak_tps": 763, "tps_per_instance": 38, "safety_factor": 0.58, "rise_tps_per_minute": 7.4}


def job(**stated: Any) -> Plan:
    given = {"load": JOB} | stated
    return planned(
        client_zones=["use1-az1", "use1-az2", "use1-az4"],
        instance_type="ml.c7i.2xlarge",
        throughput=MeasuredThroughput(**given.pop("load")),
        **given,
    )


@pytest.mark.parametrize(
    ("load", "target", "at_peak", "minimum"),
    [
        # 763 / 35 = 21.8; 7.4 x 12.5 / 3 = 30.8, and no more than 763 / (38 x 0.9) = 22.3
        ({}, 2100, 22, 23),
        ({}, 720, 64, 4),  # 763 / 12 = 63.6; 92.5 / 26 = 3.6
        # 763 / 22.8 = 33.5; 12.7 x 12.5 / 15.2 = 10.4
        ({"safety_factor": 0.3, "rise_tps_per_minute": 12.7}, 1368, 34, 11),
        ({"rise_tps_per_minute": 1}, 2400, 21, 23),  # above the limit: 763 / 38 = 20.1
    ],
)
def test_the_target_sizes_the_fleet(
    load: dict[str, float], target: int, at_peak: int, minimum: int
) -> None:
    plan = job(load=JOB | load, invocations_target=target)
    assert (plan.fleet.at_peak, plan.fleet.minimum) == (at_peak, minimum)


@pytest.mark.parametrize(
    ("target", "share", "safe"),
    [(2100, "92%", "2,052"), (2400, "105%", "2,052")],  # 0.9 x 38 x 60
)
def test_a_target_without_reserve_is_told_with_one_that_has_it(
    target: int, share: str, safe: str
) -> None:
    [text] = [
        str(w) for w in job(invocations_target=target).explanation.warnings if w.id == "no-reserve"
    ]
    assert text == (
        f"the scaling target lets the peak use up to {share} of the measured limit; only 90% is safe. "
        f"Lower scaling.invocations_target to {safe}"
    )
    followed = job(invocations_target=int(safe.replace(",", "")))
    assert "no-reserve" not in {warning.id for warning in followed.explanation.warnings}


def test_a_maximum_below_what_the_target_needs_is_told() -> None:
    """64 instances at 12 a second each."""
    warnings = job(invocations_target=720, max_instances=53).explanation.warnings
    [text] = [str(warning) for warning in warnings if warning.id == "maximum-below-peak"]
    assert "below the 64 that the peak needs with this scaling target" in text


def test_a_million_requests_cost_what_the_target_brings() -> None:
    """64 x 0.3427 USD an hour for 763 x 3,600 requests: 7.985 USD a million, and the link's hours."""
    endpoint = {
        "containers": [{"image": {"uri": "example/image:1"}}],
        "instance_type": "ml.c7i.2xlarge",
        "throughput": JOB,
        "scaling": {"invocations_target": 720},
    }
    text = yaml.safe_dump(
        {
            "client_zones": {"ids": ["use1-az1", "use1-az2", "use1-az4"]},
            "prices": {"ml.c7i.2xlarge": 0.3427},
            "endpoints": {"fraud": endpoint},
        }
    )
    cost = stack_cost(parse_settings(text))
    assert cost.usd_per_million("fraud") == pytest.approx(7.985, rel=0.005)


def test_a_recorded_rise_is_judged_with_the_target() -> None:
    """10 a minute for 20 minutes: with 3 a second in reserve as for a jump, with 26 five or fewer."""
    levels = tuple((60.0 * (minute + 1), (20 + min(minute, 20)) / 40) for minute in range(60))
    shape = Shape("recorded", "a rise", levels, recorded_peak=4_000.0)
    close = contradicted_rises(job(invocations_target=2100), shape, 763.0)
    wide = contradicted_rises(job(invocations_target=720), shape, 763.0)
    assert "needs a minimum of 23" in close
    assert "needs a minimum of 23" not in wide


# --- requests in flight -------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(60))
@given(loads(), st.integers(1, 40), st.integers(1, 60))
def test_requests_in_flight_are_requests_per_second_by_littles_law(
    load: Load, measured: int, target: int
) -> None:
    """Measured with so many in flight at the limit, each call takes measured / limit seconds."""
    plan = load.plan(
        own=False, load={"concurrency_per_instance": measured}, concurrency_target=target
    )
    kept = Fraction(target * load.limit, measured)
    per_instance = min(kept, Fraction(load.limit))
    assert plan.fleet.at_peak == max(load.zones, enough_for(load.peak, per_instance))
    ids = {warning.id for warning in plan.explanation.warnings}
    assert ("no-reserve" in ids) == (kept > HELD * load.limit)
    assert "as the safety factor would" not in assumed_in(plan)


def assumed_in(plan: Plan) -> str:
    """What the summary says that the plan assumes."""
    [text] = [line.text for line in summary_of(plan) if line.title == "Assumed"]
    return text


@pytest.mark.parametrize(
    ("stated", "why"),
    [
        ({"concurrency_target": 4}, "says it only with throughput.concurrency_per_instance"),
        ({"invocations_target": -1.8881545897087503e289}, "is known at deployment only"),
    ],
)
def test_what_a_target_does_not_say_is_assumed_by_the_factor(
    stated: dict[str, Any], why: str
) -> None:
    plan = job(**stated)
    derived = job()
    assert plan.fleet == derived.fleet
    text = assumed_in(plan)
    assert f"at 58 % of its limit, as the safety factor would: your target {why}" in text
    assert "as the safety factor would" not in assumed_in(derived)
