"""The minimum that the plan derives from jumps and rises, against the simulator."""

from __future__ import annotations

import pytest

from low_latency_endpoint.options.scaling import ScalingOptions
from low_latency_endpoint.options.throughput import MeasuredThroughput, tps_held
from low_latency_endpoint.plan.scaling_pace import fewest_for_rises, jump_seconds, rise_seconds
from low_latency_endpoint.simulate import (
    Constant,
    Scenario,
    Shape,
    ShapedLoop,
    TargetTracking,
    simulate,
)

SERVICE = 0.05  # seconds, one at a time: 20 a second would be all; at 18, p99 is below TARGET
TARGET = 0.2
MEASURED = 18.0
FACTOR = 0.65
PEAK = 400.0


def seconds_over_target(
    minimum: int, levels: tuple[tuple[float, float], ...], cooldown: float = 60.0
) -> float:
    scenario = Scenario(
        service=Constant(SERVICE),
        traffic=ShapedLoop(PEAK, Shape("faster than scaling", "", levels)),
        instances=minimum,
        routing="LEAST_OUTSTANDING_REQUESTS",
        latency_target=TARGET,
        scaling=TargetTracking(
            MEASURED * FACTOR * 60, minimum, maximum=60, scale_out_cooldown=cooldown
        ),
    )
    run = simulate(
        scenario, seconds=levels[-1][0], window=60.0, discard=0.0, replications=2, seed=3
    ).replications[0]
    return run.seconds_over_target


def rising(minimum: int, per_minute: float) -> tuple[tuple[float, float], ...]:
    """Ten minutes of what the minimum has settled at, then up to the peak by minutes."""
    low = minimum * MEASURED * FACTOR
    levels, rate, end = [(600.0, low / PEAK)], low, 600.0
    while rate < PEAK:
        rate, end = min(rate + per_minute, PEAK), end + 60.0
        levels.append((end, rate / PEAK))
    return (*levels, (end + 900.0, 1.0))


def test_a_rise_at_the_stated_rate_keeps_the_target_from_the_planned_minimum() -> None:
    """6 a minute: 75 requests a second in 12.5 minutes, and 18 x 0.35 = 6.3 free: 12 instances."""
    measured = MeasuredThroughput(
        peak_tps=PEAK, tps_per_instance=MEASURED, safety_factor=FACTOR, rise_tps_per_minute=6.0
    )
    minimum = fewest_for_rises(
        measured, rise_seconds(300, 60), tps_held(measured, None, ScalingOptions())
    )
    assert minimum == 12
    assert seconds_over_target(minimum, rising(minimum, 6.0)) == 0
    assert seconds_over_target(minimum // 2, rising(minimum // 2, 6.0)) >= 300


def test_a_rise_keeps_the_target_although_the_cooldown_is_long() -> None:
    """Ten minutes: 21.5 minutes of 6 a minute are 129 requests a second, and 129 / 6.3 is 20.5."""
    measured = MeasuredThroughput(
        peak_tps=PEAK, tps_per_instance=MEASURED, safety_factor=FACTOR, rise_tps_per_minute=6.0
    )
    minimum = fewest_for_rises(
        measured, rise_seconds(300, 600), tps_held(measured, None, ScalingOptions())
    )
    assert minimum == 21
    assert seconds_over_target(minimum, rising(minimum, 6.0), 600.0) == 0
    assert seconds_over_target(6, rising(6, 6.0), 600.0) >= 300  # as late as with a short one


@pytest.mark.parametrize("start", [0.05, 0.25])
def test_a_jump_keeps_the_target_from_the_planned_minimum(start: float) -> None:
    """400 / (18 x 0.9) = 24.7: 25 instances; half of them are late until new ones serve."""
    measured = MeasuredThroughput(
        peak_tps=PEAK, tps_per_instance=MEASURED, safety_factor=FACTOR, from_tps=start * PEAK
    )
    minimum = fewest_for_rises(
        measured, rise_seconds(300, 60), tps_held(measured, None, ScalingOptions())
    )
    assert minimum == 25
    levels = ((600.0, start), (2400.0, 1.0))
    assert seconds_over_target(minimum, levels) == 0
    assert seconds_over_target(minimum // 2, levels) >= jump_seconds(300)
