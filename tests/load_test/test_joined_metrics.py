"""CloudWatch's side of a step: read, waited for, of the same minutes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.load_test.engine.arrivals import RampArrivals
from low_latency_endpoint.load_test.search.load_testing import StepEvent, run
from low_latency_endpoint.load_test.search.run_plans import rate_plan
from low_latency_endpoint.load_test.search.serving import read_fleet, read_joined
from tests.refusals import refused

from .fake_account import FLEET, GOAL, FakeAws, loaded, metrics_of
from .fake_generator import FakeGenerator


def test_what_may_not_be_read_is_unknown() -> None:
    fleet = read_fleet(FakeAws(denied=("DescribeScalableTargets",)).account(), "sentiment")
    assert fleet.instances == 2
    assert fleet.unknown == (
        "scaling: application-autoscaling:DescribeScalableTargets: not permitted",
    )
    blind = read_fleet(FakeAws(denied=("DescribeEndpoint",)).account(), "sentiment")
    assert (blind.instances, len(blind.unknown)) == (None, 1)
    denied = FakeAws(denied=("GetMetricData",)).account()
    for of, said in (
        (fleet, "cloudwatch:GetMetricData: not permitted"),
        (blind, "the variant is not known"),
    ):
        metrics = read_joined(denied, "sentiment", of, start=0, end=60, answers=10)
        assert metrics.unknown == (f"CloudWatch: {said}",)


def test_an_endpoint_or_variant_that_is_not_there_is_refused() -> None:
    aws = FakeAws(missing=True)
    aws.answers["sagemaker.ListEndpoints"] = {"Endpoints": []}
    with refused("LLA101", got="nowhere in eu-west-1"):
        read_fleet(aws.account("eu-west-1"), "nowhere")
    with refused("LLA101", allowed="primary"):
        read_fleet(FakeAws().account(), "sentiment", "canary")


def test_cloudwatch_is_waited_for() -> None:
    aws, slept, said = FakeAws(invocations=[0.0, 400.0, 990.0, 1000.0]), [], []
    counted: dict[str, Any] = {"start": 0, "end": 100, "answers": 1000, "sleep": slept.append}
    found = read_joined(aws.account(), "sentiment", FLEET, **counted, progress=said.append)
    assert found.complete
    assert slept == [1, 2]
    assert said[-1] == "CloudWatch has counted 400 of 1,000 requests"
    slept.clear()
    in_vain = FakeAws(invocations=[10.0]).account()
    assert not read_joined(in_vain, "sentiment", FLEET, **counted, wait=30).complete
    assert sum(slept) == 30


def test_a_step_gets_its_own_minutes() -> None:
    start = FakeGenerator().clock  # a full minute
    metrics = metrics_of(
        ModelLatency_p99=[10, 20, 30],
        CPUUtilization_Average=[5, 50, 95],
        Invocations_Sum=[600, 6000, 12000],
        CPUUtilization_Maximum=[9, 60, 99],
    )
    inside = metrics.during(start + 50, start + 130)
    assert inside.values == {
        "ModelLatency.p99": 20,
        "CPUUtilization.Average": 50,
        "Invocations.Sum": 100,
        "CPUUtilization.Maximum": 60,
    }
    assert not inside.shared
    short = metrics.during(start + 65, start + 75)
    assert (short.get("ModelLatency.p99"), short.shared) == (20, True)
    both = metrics.during(start + 40, start + 80)
    assert (both.get("ModelLatency.p99"), both.shared) == (15, True)
    assert metrics.during(start + 600, start + 700).values == {}


@pytest.mark.parametrize("late", [0.0, 7.0, 29.5, 54.7, 59.99])
def test_steps_of_a_minute_have_minutes_of_their_own(late: float) -> None:
    generator = FakeGenerator()
    generator.clock += late  # not at a full minute
    plan = replace(rate_plan([50, 100], seconds=60, goal=GOAL), whole_minutes=True)
    events: list[StepEvent] = []
    done = run(plan, generator, events.append, clock=lambda: generator.clock)
    starts = [each for each in events if each.began][1:]
    for each, started in zip(done.loads, starts, strict=True):
        result = each.result
        # The fake generator needs no time to begin, so it counts a lead's length early.
        assert math.remainder(result.started_at + 0.3, 60) == pytest.approx(0, abs=1e-6)
        assert result.seconds == pytest.approx(60), "what counts is as long as it was to be"
        assert started.waits == pytest.approx(result.step.settle_seconds - 5)
        window = metrics_of(ModelLatency_p99=list(range(10))).of(result)
        assert not window.shared
        minute = round((result.started_at + 0.3 - FakeGenerator().clock) / 60)
        assert window.get("ModelLatency.p99") == minute
    assert plan.seconds == 10 + 2 * 65 + 2 * 60, "what is announced is the most that it may take"
    assert sum(step.seconds for step in generator.steps) <= plan.seconds


def test_shorter_steps_and_shapes_are_left_as_they_are() -> None:
    for made in (rate_plan([50], seconds=59), rate_plan([RampArrivals(1, 50)], seconds=90)):
        plan = replace(made, whole_minutes=True)
        generator = FakeGenerator()
        run(plan, generator, clock=lambda: 1_800_000_007.0)
        assert generator.steps == list(plan.steps)
        assert plan.seconds == made.seconds


def test_minutes_are_waited_for_where_cloudwatch_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, plan = FakeAws(invocations=[1e9]), rate_plan([20], seconds=60)
    for wait, whole in ((1.0, True), (0.0, False), (None, False)):
        report = loaded(monkeypatch, aws, plan, FakeGenerator(), metrics_wait=wait)
        assert report.run.plan.whole_minutes is whole


def test_a_busy_minute_counts_more() -> None:
    start = FakeGenerator().clock
    metrics = metrics_of(ModelLatency_p99=[10, 40], ModelLatency_SampleCount=[300, 100])
    assert metrics.during(start, start + 120).get("ModelLatency.p99") == pytest.approx(17.5)
