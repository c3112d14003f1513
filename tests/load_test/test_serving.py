"""What serves the endpoint, that it stays as it is, and what CloudWatch says of each step."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.account.clock import AccountClock, Reading
from low_latency_endpoint.account.metrics import Series
from low_latency_endpoint.load_test.engine.arrivals import RampArrivals
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search import load_testing
from low_latency_endpoint.load_test.search.load_testing import StepEvent, run
from low_latency_endpoint.load_test.search.run_plans import (
    SearchPlan,
    confirm_plan,
    limit_plan,
    rate_plan,
    users_plan,
)
from low_latency_endpoint.load_test.search.serving import JoinedMetrics, read_fleet, read_joined
from low_latency_endpoint.simulate.load_test_result import read_load_test_result
from tests.refusals import refused

from .fake_account import (
    FLEET,
    GOAL,
    MADE,
    FakeAws,
    TwoVariants,
    kinds,
    limit_test,
    loaded,
    metrics_of,
)
from .fake_generator import FakeGenerator


def test_the_fleet_is_read() -> None:
    fleet = read_fleet(FakeAws().account(), "sentiment")
    assert (fleet.variant, fleet.instances, fleet.instance_type) == ("primary", 2, "ml.m5.xlarge")
    assert (fleet.routing, fleet.minimum, fleet.maximum) == ("LEAST_OUTSTANDING_REQUESTS", 2, 6)
    assert fleet.scales


def test_all_variants_that_get_requests_are_the_fleet() -> None:
    fleet = read_fleet(TwoVariants().account(), "sentiment")
    assert (fleet.variant, fleet.instances, fleet.instance_type) == ("a, b", 4, "ml.m5.xlarge")
    assert [each.instances for each in fleet.parts] == [1, 3]
    assert (fleet.minimum, fleet.maximum) == (4, 7), "the one that does not scale stays"
    one = read_fleet(TwoVariants().account(), "sentiment", "b")
    assert (one.variant, one.instances, one.parts) == ("b", 3, ())
    assert one.variants == fleet.variants == ("a", "b", "idle")
    assert len(json.loads(json.dumps(fleet.to_dict()))["variants"]) == 2


def test_cloudwatch_is_read_of_all_of_them() -> None:
    counted: dict[str, list[float]] = {
        "a.Invocations.Sum": [300],
        "b.Invocations.Sum": [900],
        "a.ModelLatency.SampleCount": [300],
        "b.ModelLatency.SampleCount": [900],
        "a.CPUUtilization.Average": [400],
        "b.CPUUtilization.Average": [200],
    }
    for statistic in ("Average", "Maximum"):
        counted[f"a.ModelLatency.{statistic}"] = [10_000]
        counted[f"b.ModelLatency.{statistic}"] = [50_000]
    account = TwoVariants(series=counted).account()
    found = read_joined(
        account, "sentiment", read_fleet(account, "sentiment"), start=0, end=60, answers=1200
    )
    assert found.complete
    window = found.during(0, 60)
    assert window.get("Invocations.Sum") == 20
    assert window.get("ModelLatency.Average") == pytest.approx((10 * 300 + 50 * 900) / 1200)
    assert window.get("ModelLatency.Maximum") == 50
    # By instances: 100 % of one, 50 % of three, on four processors each.
    assert window.get("CPUUtilization.Average") == pytest.approx((100 + 3 * 50) / 4)


def test_a_limit_is_divided_by_the_instances_of_all_variants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    report = limit_test(monkeypatch, TwoVariants(), FakeGenerator(instances=4))
    assert report.run.limit.instances == report.instances == 4
    assert report.run.limit.tps_per_instance == pytest.approx(200, rel=0.06)


@pytest.mark.parametrize(
    ("aws", "target", "code"),
    [
        (FakeAws(denied=("DescribeEndpoint",)), {}, "LLT136"),
        (FakeAws(), {"inference_component": "copies"}, "LLT136"),
        (TwoVariants("ml.c7i.xlarge"), {}, "LLT137"),
    ],
)
def test_a_limit_that_cannot_be_divided_is_refused_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, aws: FakeAws, target: dict[str, str], code: str
) -> None:
    generator = FakeGenerator()
    to = Target("sentiment", "us-east-1", **target)  # type: ignore[arg-type]
    with refused(code):
        limit_test(monkeypatch, aws, generator, target=to)
    assert generator.steps == []
    if code == "LLT136":
        told = limit_test(monkeypatch, aws, generator, target=to, instances=2)
        assert told.run.limit.tps_per_instance == pytest.approx(100, rel=0.06)


def test_a_search_needs_the_number_of_instances() -> None:
    with refused("LLT136"):
        run(limit_plan(SearchPlan(GOAL, 20)), FakeGenerator())


def test_the_simulator_is_not_told_of_one_instance_where_nobody_knows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    aws, plan = FakeAws(denied=("DescribeEndpoint",)), rate_plan([100, 700], seconds=20)
    for stated in (None, 3):
        generator = FakeGenerator(instances=3)
        report = loaded(monkeypatch, aws, plan, generator, metrics_wait=None, instances=stated)
        assert json.loads(report.to_json())["instances"] == stated
        file = tmp_path / f"{stated}.json"
        file.write_text(report.to_json(), "utf-8")
    assert read_load_test_result(tmp_path / "3.json").instances == 3
    with refused("LLS123") as caught:
        read_load_test_result(tmp_path / "None.json")
    assert "--instances" in caught.value.fix


def test_a_fleet_that_changed_is_seen_without_cloudwatch(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, warned = FakeAws(instances=[2, 3]), []
    report = limit_test(monkeypatch, aws, FakeGenerator(instances=2), warn=warned.append)
    assert aws.asked.count("sagemaker.DescribeEndpoint") == 2
    assert kinds(report.verdicts)[:1] == ["fleet-changed"]
    assert report.invalid
    (warning,) = warned
    assert "Scaling may change the number of instances" in warning
    assert "from 2 to 6" in warning
    assert "fleet-scales" in kinds(report.verdicts)
    fixed = limit_test(
        monkeypatch, FakeAws(scaled=False), FakeGenerator(instances=2), warn=warned.append
    )
    assert len(warned) == 1
    assert {"fleet-scales", "fleet-changed"}.isdisjoint(kinds(fixed.verdicts))


_BOTH = {"DynamicScalingInSuspended": True, "DynamicScalingOutSuspended": True}


@pytest.mark.parametrize(
    ("suspended", "scheduled", "said"),
    [
        (_BOTH, [], None),
        ({**_BOTH, "ScheduledScalingSuspended": True}, ["night"], None),
        (_BOTH, ["night", "day"], "(scheduled actions: night, day)"),
        ({"DynamicScalingInSuspended": True}, [], "from 3 to 6"),
        ({"DynamicScalingOutSuspended": True}, [], "from 2 to 3"),
        ({"ScheduledScalingSuspended": True}, ["night"], "from 2 to 6"),
    ],
)
def test_suspended_scaling_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
    suspended: dict[str, bool],
    scheduled: list[str],
    said: str | None,
) -> None:
    aws, warned = FakeAws(instances=[3]), []
    aws.suspended, aws.scheduled = suspended, scheduled
    report = limit_test(monkeypatch, aws, FakeGenerator(instances=3), warn=warned.append)
    assert ("fleet-scales" in kinds(report.verdicts)) is bool(said)
    assert [said in text for text in warned if said is not None] == [True] * bool(said)
    assert len(warned) == bool(said)
    json.dumps(report.fleet.to_dict())


def test_scheduled_actions_are_read_where_they_alone_move_the_fleet() -> None:
    """Not permitted: nobody knows, and that is said."""
    operation = "application-autoscaling.DescribeScheduledActions"
    aws = FakeAws()
    read_fleet(aws.account(), "sentiment")
    assert operation not in aws.asked
    for limits, suspended in (((2, 6), _BOTH), ((2, 2), {})):
        aws = FakeAws(denied=("DescribeScheduledActions",))
        aws.scaled, aws.suspended = {"primary": limits}, suspended
        fleet = read_fleet(aws.account(), "sentiment")
        assert aws.asked.count(operation) == 1
        assert not fleet.scales
        assert fleet.unknown == (
            "scheduled actions: application-autoscaling:DescribeScheduledActions: not permitted",
        )


def test_one_of_two_variants_is_suspended() -> None:
    aws = TwoVariants()
    assert read_fleet(aws.account(), "sentiment").scales
    aws.suspended = _BOTH
    fleet = read_fleet(aws.account(), "sentiment")
    assert (fleet.scales, fleet.fewest, fleet.most) == (False, 4, 4)


def test_another_fleet_than_the_planned_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, plan = FakeAws(instances=[1], scaled=False), confirm_plan(40, GOAL, seconds=80)
    for planned, said in ((8, True), (1, False), (None, False)):
        warned: list[str] = []
        options = {"warn": warned.append, "planned_instances": planned}
        report = loaded(monkeypatch, aws, plan, FakeGenerator(), metrics_wait=None, **options)
        assert ("fleet-not-planned" in kinds(report.verdicts)) is said
        assert [
            text.startswith("Warning: The fleet has 1 instance, the plan says 8 at the peak")
            for text in warned
        ] == [True] * said
        assert report.run.held, "what was sent did hold"


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


def test_cloudwatch_is_complete_with_all_that_an_instance_answered() -> None:
    """It counts the settling and the container's refusals too; what never came there it does not."""
    (step,) = run(rate_plan([50], seconds=60, alone_seconds=0), FakeGenerator()).steps
    settling = step.result.step.settle_seconds
    assert settling == 5
    assert step.invocations == pytest.approx(50 * (60 + settling), rel=0.05)
    assert step.invocations > step.result.completed
    errors = {"424 ModelError 503": 5_000, "timeout": 7, "400 ThrottlingException": 9}
    refused_too = replace(step, result=replace(step.result, sent=9_000, errors=errors), timeline=())
    assert refused_too.invocations == step.result.completed + 5_000


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
    assert sum(step.seconds for step in generator.steps) <= 10 + 2 * 65 + 2 * 60


def test_shorter_steps_and_shapes_are_left_as_they_are() -> None:
    for made in (rate_plan([50], seconds=59), rate_plan([RampArrivals(1, 50)], seconds=90)):
        plan = replace(made, whole_minutes=True)
        generator = FakeGenerator()
        run(plan, generator, clock=lambda: 1_800_000_007.0)
        assert generator.steps == list(plan.steps)


def test_minutes_are_waited_for_where_cloudwatch_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, plan = FakeAws(invocations=[1e9]), rate_plan([20], seconds=60)
    for wait, whole in ((1.0, True), (0.0, False), (None, False)):
        report = loaded(monkeypatch, aws, plan, FakeGenerator(), metrics_wait=wait)
        assert report.run.plan.whole_minutes is whole


@pytest.mark.parametrize("speed", [1.0, 2.0, 10.0, 60.0])
@pytest.mark.parametrize("ahead", [0.0, 7.0, 29.5, 59.9, 86_417.3])
@pytest.mark.parametrize("kind", ["rate", "users"])
def test_a_minute_of_the_accounts_clock_lies_in_each_step_of_a_minute(
    monkeypatch: pytest.MonkeyPatch, speed: float, ahead: float, kind: str
) -> None:
    """A local AWS may be ahead of the machine's clock, and faster."""
    generator = FakeGenerator()
    began = generator.clock

    def read_clock() -> Reading:
        generator.clock += 0.25
        wall = generator.clock
        return Reading(wall, began + ahead + (wall - began) * speed)

    monkeypatch.setattr(load_testing, "read_clock", read_clock)
    plan = users_plan([2], alone_seconds=0) if kind == "users" else rate_plan([20], seconds=60)
    report = loaded(monkeypatch, FakeAws(invocations=[1e9]), plan, generator, metrics_wait=1.0)
    assert report.run.plan.whole_minutes is (speed == 1.0), "else it has one anyhow"
    (step,) = report.run.loads
    result = step.result
    assert result.seconds == pytest.approx(60), "it counts for as long as it was to"
    clock = AccountClock(Reading(began, began + ahead), Reading(began + 1, began + ahead + speed))
    first = datetime.fromtimestamp(60 * (clock.account(result.started_at) // 60), UTC)
    minutes = range(int(60 * speed) // 60 + 2)
    counted = Series({first + timedelta(minutes=minute): 50.0 for minute in minutes})
    metrics = JoinedMetrics({("CPUUtilization", "Average"): counted}, clock=clock)
    window = metrics.of(result)
    assert (window.get("CPUUtilization.Average"), window.shared) == (50.0, False)


def test_a_busy_minute_counts_more() -> None:
    start = FakeGenerator().clock
    metrics = metrics_of(ModelLatency_p99=[10, 40], ModelLatency_SampleCount=[300, 100])
    assert metrics.during(start, start + 120).get("ModelLatency.p99") == pytest.approx(17.5)


class Updated(FakeAws):
    """AWS of an endpoint whose descriptions differ from reading to reading; the last one stays."""

    def __init__(self, *changes: dict[str, Any], **more: Any) -> None:
        super().__init__(scaled=False, **more)
        self.changes = list(changes)

    def _endpoint(self, request: Mapping[str, Any]) -> Any:
        change = self.changes.pop(0) if len(self.changes) > 1 else self.changes[0]
        return {**super()._endpoint(request), **change}


PENDING = {
    "EndpointConfigName": "new",
    "StartTime": MADE,
    "ProductionVariants": [{"VariantName": "primary"}],
}
UPDATING = {"EndpointStatus": "Updating", "PendingDeploymentSummary": PENDING}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (UPDATING, "updating to new since 00:00"),
        (UPDATING | {"EndpointStatus": "RollingBack"}, "rolling back from new"),
        ({"EndpointStatus": "SystemUpdating"}, "SageMaker's maintenance"),
    ],
)
def test_no_load_test_of_two_fleets(
    change: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = FakeGenerator()
    with refused("LLT140", words):
        limit_test(monkeypatch, Updated(change), generator)
    with refused("LLT140", words):
        loaded(monkeypatch, Updated(change), rate_plan([10.0]), generator)


@pytest.mark.parametrize(
    ("before", "after", "invalid"),
    [
        ({}, UPDATING, True),
        ({}, {"EndpointConfigName": "new"}, True),
        ({}, {"EndpointStatus": "RollingBack"}, True),
        ({}, {"LastModifiedTime": MADE + timedelta(minutes=9)}, True),  # it was rolled back
        ({}, {}, False),
        ({"EndpointStatus": "Updating"}, {"EndpointStatus": "Updating"}, False),  # it scales
    ],
)
def test_a_run_in_which_an_update_begins_or_ends_is_invalid(
    before: dict[str, Any], after: dict[str, Any], invalid: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = limit_test(monkeypatch, Updated(before, after), FakeGenerator(instances=2))
    assert ("fleet-updated" in kinds(report.verdicts)) is invalid
    report = replace(report, peak_tps=100.0)
    assert (report.throughput is None) is invalid
    told = report.to_dict()
    assert bool(told["limit"]["problem"]) is invalid
    assert told["limit"]["confirmed"] is not invalid
