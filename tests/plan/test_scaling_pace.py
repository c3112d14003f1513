"""How fast traffic may rise: the minimum that follows, by hand and against the simulator."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.scaling import InstanceCounts, ScalingOptions
from low_latency_endpoint.options.throughput import MeasuredThroughput, tps_held
from low_latency_endpoint.plan.latency_plan import make_plan
from low_latency_endpoint.plan.scaling_pace import fewest_for_rises, jump_seconds, rise_seconds
from low_latency_endpoint.simulate import Shape, simulate
from low_latency_endpoint.simulate.assumptions import SimulatedEndpoint, model_of_plan
from tests.refusals import refused

from .conftest import requested


def planned(
    *,
    instances: InstanceCounts | None = None,
    scaling: ScalingOptions | None = None,
    **throughput: Any,
):
    return make_plan(
        requested(
            client_zones=["use1-az1", "use1-az2"],
            instance_type="ml.c6i.4xlarge",
            latency=LatencyTarget(p99=timedelta(milliseconds=100)),
            throughput=MeasuredThroughput(
                **({"peak_tps": 2000, "tps_per_instance": 250} | throughput)
            ),
            instances=instances or InstanceCounts(),
            scaling=scaling or ScalingOptions(),
        )
    )


def test_detection_and_start() -> None:
    assert jump_seconds(300) == 3 * 60 + 60 + 300  # three minutes, their delay, a start: 9 minutes
    # A delay, half a minute, a start, the cooldown, a start: 12.5 minutes.
    assert rise_seconds(300, 60) == 60 + 30 + 300 + 60 + 300
    assert rise_seconds(300, 0) == rise_seconds(300, 60)  # the alarm is judged once a minute
    assert rise_seconds(258, 60) == 60 + 30 + 360 + 258  # 318 s, and judged at 360
    assert rise_seconds(300, 600) == 60 + 30 + 300 + 600 + 300
    assert rise_seconds(10, 60) == 60 + 30 + 180 + 10  # three minutes above the target first


@pytest.mark.parametrize(
    ("throughput", "minimum"),
    [
        ({}, 2),  # one per zone
        ({"from_tps": 0}, 9),  # 2000 / (250 x 0.9): at 8 they would stand at 100 % for 9 minutes
        ({"from_tps": 100}, 9),
        ({"from_tps": 1000}, 9),  # kept there: 1000 / 125 = 8
        ({"from_tps": 1001}, 2),  # 9 are kept there
        ({"from_tps": 100, "safety_factor": 0.8}, 9),
        ({"peak_tps": 1800, "from_tps": 100}, 8),  # 90 % exactly
        ({"peak_tps": 1801, "from_tps": 100}, 9),
        ({"rise_tps_per_minute": 0}, 2),
        ({"rise_tps_per_minute": 20}, 2),  # 20 x 12.5 / (250 x 0.5) = 2
        ({"rise_tps_per_minute": 21}, 3),
        ({"rise_tps_per_minute": 40}, 4),
        ({"rise_tps_per_minute": 40, "safety_factor": 0.8}, 9),  # / (250 x 0.2) = 10; 9 hold all
        ({"rise_tps_per_minute": 1, "safety_factor": 1.0}, 9),  # nothing in reserve
        ({"rise_tps_per_minute": 1e6}, 9),
    ],
)
def test_the_minimum_follows_from_what_is_stated(
    throughput: dict[str, float], minimum: int
) -> None:
    assert planned(**throughput).fleet.minimum == minimum


def test_a_start_that_is_stated_is_what_the_minimum_bridges() -> None:
    """40 a minute: 60 + 90 + 2 x 900 s are 32.5 minutes, 1,300 / 125 = 10.4; 9 hold the peak."""
    slow = ScalingOptions(instance_start=timedelta(minutes=15))
    assert planned(scaling=slow, rise_tps_per_minute=40).fleet.minimum == 9
    assert planned(scaling=slow, rise_tps_per_minute=20).fleet.minimum == 6  # 650 / 125 = 5.2
    assert (
        "requests are late for about 19 minutes" in warnings(planned(scaling=slow))["jumps-unknown"]
    )  # 4 + 15
    assert "an instance serves" not in str(
        planned(scaling=slow, rise_tps_per_minute=20).explanation.summary
    )
    quick = ScalingOptions(instance_start=timedelta(minutes=2))
    assert (
        planned(scaling=quick, rise_tps_per_minute=40).fleet.minimum == 3
    )  # 40 x 6.5 / 125 = 2.08


@pytest.mark.parametrize(
    ("minutes", "minimum"),
    [
        (0, 11),  # 12.5 minutes of 50: 625 / (150 x 0.4) = 10.4
        (1, 11),
        (5, 14),  # 16.5 minutes: 825 / 60 = 13.75
        (10, 15),  # 21.5 minutes: 17.9; 2000 / (150 x 0.9) = 14.8 hold the peak
        (20, 15),
    ],
)
def test_the_minimum_bridges_the_cooldown_of_scaling_out(minutes: int, minimum: int) -> None:
    scaling = ScalingOptions(scale_out_cooldown=timedelta(minutes=minutes))
    stated = {"tps_per_instance": 150, "safety_factor": 0.6, "rise_tps_per_minute": 50}
    plan = planned(scaling=scaling, **stated)
    assert plan.fleet.minimum == minimum
    assert "minimum-below-rise" not in warnings(plan)
    (decision,) = (each for each in plan.explanation if each.name == "min_instances")
    assert decision.inputs["scale-out cooldown in seconds"] == 60 * minutes
    fewer = planned(scaling=scaling, instances=InstanceCounts(min=minimum - 1), **stated)
    assert f"needs a minimum of {minimum}" in warnings(fewer)["minimum-below-rise"]


def test_a_long_cooldown_is_in_the_warning_of_jumps() -> None:
    slow = planned(scaling=ScalingOptions(scale_out_cooldown=timedelta(minutes=20)))
    text = warnings(slow)["jumps-unknown"]
    assert "A second jump that is not larger than the first waits up to 20 minutes more" in text
    assert "A second jump" not in warnings(planned())["jumps-unknown"]


@given(
    rise=st.integers(1, 400),
    share=st.sampled_from([0.3, 0.5, 0.65, 0.9]),
    peak=st.integers(300, 5000),
)
def test_at_every_rate_the_fleet_holds_what_comes_until_it_has_followed(
    rise: int, share: float, peak: int
) -> None:
    measured = MeasuredThroughput(
        peak_tps=peak, tps_per_instance=250, safety_factor=share, rise_tps_per_minute=rise
    )
    lag = rise_seconds(300, 60)
    held = tps_held(measured, None, ScalingOptions())
    least = fewest_for_rises(measured, lag, held)
    limit = Fraction(250)
    factor = Fraction(str(share))
    comes = rise * Fraction(lag, 60)

    def holds(minimum: int) -> bool:
        return all(
            limit * max(Fraction(minimum), Fraction(rate) / (limit * factor))
            >= min(Fraction(peak) / Fraction("0.9"), rate + comes)
            for rate in range(0, peak + 1, 7)
        )

    assert holds(least)
    assert least == 1 or not holds(least - 1)


def warnings(plan) -> dict[str, str]:
    return {each.id: str(each) for each in plan.explanation.warnings}


def test_without_a_word_on_rises_the_plan_warns_with_numbers() -> None:
    text = warnings(planned())["jumps-unknown"]
    assert "the minimum of 2 holds 450 of 2,000 TPS at 90% of its limit" in text
    assert "requests are late for about 9 minutes" in text
    assert (
        "raise the minimum: 9 hold a jump to the peak. throughput.peaks raises it at known hours"
        in text
    )


@pytest.mark.parametrize(
    "stated",
    [
        {"from_tps": 0},
        {"rise_tps_per_minute": 20},
        {"instances": InstanceCounts(min=9)},
        {"scaling": ScalingOptions(enabled=False)},
        {"peak_tps": 450},  # the minimum holds it
    ],
)
def test_where_it_is_known_or_does_not_matter_it_does_not_warn(stated: dict[str, Any]) -> None:
    assert not {"jumps-unknown", "minimum-below-rise"} & set(warnings(planned(**stated)))


def test_a_minimum_below_what_the_rise_asks_for_is_a_warning() -> None:
    plan = planned(instances=InstanceCounts(min=3), from_tps=100)
    assert plan.fleet.minimum == 3  # as chosen
    text = warnings(plan)["minimum-below-rise"]
    assert "the minimum of 3 instances holds 750 TPS" in text
    assert "needs a minimum of 9" in text
    capped = planned(instances=InstanceCounts(max=6), from_tps=100)
    assert (capped.fleet.minimum, capped.fleet.maximum) == (6, 6)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [({"from_tps": 2001}, "LLE607"), ({"from_tps": 1, "rise_tps_per_minute": 1}, "LLE609")],
)
def test_what_cannot_be_is_refused(wrong: dict[str, float], code: str) -> None:
    with refused(code):
        planned(**wrong)


# --- against the simulator ----------------------------------------------------------------------


def model(plan) -> SimulatedEndpoint:
    return model_of_plan(
        plan, throughput=plan.request.throughput, service_seconds=0.02, variation=0.5
    )


def minutes_late(plan, shape: Shape) -> float:
    found = simulate(model(plan).over_time(shape), replications=2).time_over_target
    assert found
    return found.mean / 60


JUMP = Shape("jump", "a jump to the peak", ((600.0, 0.05), (2400.0, 1.0)))


def rise(tps_per_minute: float, peak: float) -> Shape:
    """From nothing to the peak in steps of five seconds, then the peak."""
    steps = int(peak / tps_per_minute * 12)
    levels = [(600.0, 0.001)]
    levels += [(600.0 + 5 * (step + 1), (step + 1) / steps) for step in range(steps)]
    return Shape("rise", "a rise to the peak", (*levels, (levels[-1][0] + 1200.0, 1.0)))


def test_a_jump_that_is_stated_is_held_and_one_that_is_not_is_late() -> None:
    pytest.importorskip("numba")
    assert minutes_late(planned(from_tps=100), JUMP) == 0
    # Two instances hold 500 of 2,000: late until eight more serve, and their queue is gone.
    assert minutes_late(planned(), JUMP) >= 8


def test_a_rise_at_the_stated_rate_is_held() -> None:
    pytest.importorskip("numba")
    per_minute = 80
    plan = planned(rise_tps_per_minute=per_minute)
    shape = rise(per_minute, 2000)
    assert minutes_late(plan, shape) == 0
    fewer = planned(instances=InstanceCounts(min=max(1, plan.fleet.minimum // 2)))
    assert minutes_late(fewer, shape) >= 1
