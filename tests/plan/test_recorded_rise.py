"""Rises of recorded traffic that the settings do not state."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.recorded_rise import contradicted_rises, largest_rise
from low_latency_endpoint.plan.recorded_traffic import recording_of, shape_of_counts
from low_latency_endpoint.plan.traffic_shapes import Shape
from low_latency_endpoint.settings import parse_settings, plan_endpoint

STEP = [6000.0] * 30 + [12_000.0] * 30  # a minute: 100 and 200 a second
# Less what chance can be, five times the root of 18,000: 6,000 - 670.8 requests a minute.
STEP_RISE = (6000 - 670.8) / 60


def recorded(counts: list[float], seconds: float = 60.0) -> Shape:
    lines = [f"{number * seconds},{count}" for number, count in enumerate(counts)]
    return recording_of("\n".join(lines), "day").shape(seconds)


def settings_text(**throughput: Any) -> str:
    """At 50 TPS an instance, of which half is used, with a peak of 200, where nothing else is stated."""
    stated = {"peak_tps": 200, "tps_per_instance": 50, "safety_factor": 0.5, **throughput}
    fields = ", ".join(f"{name}: {value}" for name, value in stated.items())
    return f"""
region: us-east-1
client_zones: {{ids: [use1-az1, use1-az2]}}
alarm_topic_arn: arn:aws:sns:us-east-1:123456789012:on-call
endpoints:
  leads:
    endpoint_name: leads
    containers:
      - image: {{dlc: {{repository: huggingface-pytorch-inference, tag: 2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04}}}}
        data: {{s3: s3://my-bucket/leads/model.tar.gz}}
    instance_type: ml.c7i.2xlarge
    latency: {{p99: 200ms}}
    throughput: {{{fields}}}
"""


def planned(**throughput: Any) -> Plan:
    return plan_endpoint(parse_settings(settings_text(**throughput)), "leads")


def test_a_step_within_a_minute() -> None:
    rise = largest_rise(recorded(STEP), 200.0)
    assert rise is not None
    assert rise.tps_per_minute == pytest.approx(STEP_RISE, rel=1e-4)
    assert rise.begins == 29 * 60
    scaled = largest_rise(recorded(STEP), 50.0)  # to a fourth of the recorded peak
    assert scaled is not None
    assert scaled.tps_per_minute == pytest.approx(STEP_RISE / 4, rel=1e-4)


@given(st.sampled_from([1, 2, 5, 10, 15, 20, 30]))
def test_shorter_periods_show_the_same_rise(parts: int) -> None:
    counts = [count / parts for count in STEP for _ in range(parts)]
    rise = largest_rise(recorded(counts, 60 / parts), 200.0)
    assert rise is not None
    assert rise.tps_per_minute == pytest.approx(STEP_RISE, rel=1e-4)


@given(st.integers(1, 14), st.integers(15, 40))
def test_a_lull_is_no_rise(minutes: int, at: int) -> None:
    """Such as periods that a file leaves out: scaling takes nothing away for 15 minutes."""
    counts = [6000.0] * at + [0.0] * minutes + [6000.0] * 20
    assert largest_rise(recorded(counts), 100.0) is None


def test_a_longer_period_spreads_the_rise() -> None:
    """From 30,000 to 60,000 in five minutes: less chance 1,500, 28,500 / 300 s / 5 minutes."""
    rise = largest_rise(recorded([30_000.0] * 6 + [60_000.0] * 6, 300.0), 200.0)
    assert rise is not None
    assert rise.tps_per_minute == pytest.approx(28_500 / 300 / 5)


def test_single_requests_are_counted_by_the_minute() -> None:
    times = [0.1 * number for number in range(6000)]  # 10 a second for ten minutes
    times += [600 + 0.01 * number for number in range(60_000)]  # then 100
    rise = largest_rise(recording_of("\n".join(map(str, times)), "ticks").shape(), 100.0)
    assert rise is not None
    # 600 and 6,000 in a minute: less 5 x sqrt(6,600) = 406.2
    assert rise.tps_per_minute == pytest.approx((5400 - 406.2) / 60, rel=0.01)


@given(st.floats(0.01, 5000.0), st.integers(0, 1000))
def test_chance_is_no_rise(mean: float, seed: int) -> None:
    """A day of independent callers at one rate: normal of the same variance, as counts are large."""
    chance = random.Random(seed)
    counts = [max(0.0, round(chance.gauss(mean, mean**0.5))) for _ in range(1440)]
    if any(counts):
        assert largest_rise(recorded(counts), 100.0) is None


@given(st.floats(0.5, 5.0), st.integers(0, 100))
def test_a_slow_rise_is_seen_through_chance(tps_per_minute: float, seed: int) -> None:
    """An hour's rise from 50 a second: no more than it is, and half of it at the least."""
    chance = random.Random(seed)
    means = [60 * (50 + tps_per_minute * minute) for minute in range(60)]
    counts = [round(chance.gauss(mean, mean**0.5)) for mean in means]
    rise = largest_rise(recorded(counts), max(counts) / 60)
    if tps_per_minute > 1.5:
        assert rise is not None
    if rise is not None:
        assert rise.tps_per_minute < tps_per_minute * 1.2 + 0.2


@pytest.mark.parametrize(
    ("throughput", "said"),
    [
        ({"rise_tps_per_minute": 1}, "rise_tps_per_minute is 1"),
        ({"rise_tps_per_minute": 80}, "rise_tps_per_minute is 80"),
        ({"rise_tps_per_minute": 100}, ""),
        ({"from_tps": 0}, ""),  # the minimum holds a jump to the peak
        ({}, ""),  # nothing is stated: the plan warns of that
        ({"from_tps": 190}, "from_tps is 190"),  # 8 are kept then, and the minimum is low
    ],
)
def test_what_a_recording_contradicts_is_said(throughput: dict[str, Any], said: str) -> None:
    text = contradicted_rises(planned(**throughput), recorded(STEP), 200.0)
    assert said in text
    assert bool(said) == bool(text)
    if text:
        assert "needs a minimum of 5" in text  # the jump to 200 at 0.9 x 50 an instance


def test_a_shape_that_ships_contradicts_nothing() -> None:
    made = shape_of_counts("made", STEP, 60.0)
    assert contradicted_rises(planned(rise_tps_per_minute=1), made, 200.0) == ""


@pytest.mark.parametrize(
    "command",
    [
        ["plan", "--cost"],
        ["simulate", "--service-time", "10ms", "--concurrency", "2", "--replications", "3"],
    ],
    ids=["plan", "simulate"],
)
@pytest.mark.parametrize(("rise", "is_said"), [(0.1, True), (5, False)])
def test_the_commands_that_read_a_recording_say_it_once(
    command: list[str], rise: float, is_said: bool, tmp_path: Path
) -> None:
    """From 2 to 4 requests a second within a minute."""
    settings = tmp_path / "endpoint.yaml"
    settings.write_text(
        settings_text(peak_tps=4, tps_per_instance=1, rise_tps_per_minute=rise), "utf-8"
    )
    recording = tmp_path / "day.csv"
    counts = [120] * 20 + [240] * 20
    lines = [f"{60 * minute},{count}" for minute, count in enumerate(counts)]
    recording.write_text("\n".join(lines), "utf-8")
    arguments = [*command, "--settings", str(settings), "--traffic-from", str(recording)]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert done.output.count("rise_tps_per_minute") == int(is_said)


def test_a_rise_faster_than_settings_can_state_is_judged_as_the_fastest() -> None:
    """In periods of 45 s, which are no minutes: 1.33 billion a minute."""
    shape = recorded([1.0] * 30 + [1e10] * 30, 45.0)
    rise = largest_rise(shape, 1e9)
    assert rise is not None
    assert rise.tps_per_minute > 1e9
    plan = planned(rise_tps_per_minute=10, peak_tps=1e9, tps_per_instance=1e8)
    assert "where rise_tps_per_minute is 10" in contradicted_rises(plan, shape, 1e9)
