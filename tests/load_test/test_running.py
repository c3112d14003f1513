"""A run from plan to result: steps, events, what CloudWatch adds, and what is said of it."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.load_test.arrivals import RampArrivals
from low_latency_endpoint.load_test.joined_metrics import JoinedMetrics, read_joined
from low_latency_endpoint.load_test.judging import LatencyGoal
from low_latency_endpoint.load_test.latencies import LatencyHistogram
from low_latency_endpoint.load_test.limit_search import SearchPlan
from low_latency_endpoint.load_test.load_testing import load_test
from low_latency_endpoint.load_test.payloads import Payloads
from low_latency_endpoint.load_test.result_file import LoadTestReport, read_found_limit
from low_latency_endpoint.load_test.rules import GENERATOR
from low_latency_endpoint.load_test.run_plans import (
    RunPlan,
    confirm_plan,
    limit_plan,
    rate_plan,
    users_plan,
)
from low_latency_endpoint.load_test.running import (
    Event,
    LoadTestRun,
    Second,
    StepEnded,
    StepStarted,
    run,
)
from low_latency_endpoint.load_test.saturation import concurrency, verdicts
from low_latency_endpoint.load_test.serving import Fleet, read_fleet
from low_latency_endpoint.load_test.steps import Step, StepResult, Target
from low_latency_endpoint.load_test.steps_table import steps_csv
from low_latency_endpoint.operations.diagnosis.asking import Account
from low_latency_endpoint.operations.diagnosis.measurements import Series
from low_latency_endpoint.planning.simulation.load_test_result import read_load_test_result

from .fake_generator import QUEUE_FULL, FakeGenerator

GOAL = LatencyGoal({"p99": 0.2})
FLEET = Fleet("primary", ("primary",), "ml.m5.12xlarge", 1, "RANDOM")


def kinds(found: tuple[Any, ...]) -> list[str]:
    """The kinds of verdicts."""
    return [each.kind for each in found]


# -------------------------------------------------------------------------------------------- runs


def test_steps_run_in_order_and_tell_of_themselves() -> None:
    events: list[Event] = []
    done = run(rate_plan([50, 100], seconds=10, goal=GOAL), FakeGenerator(), events.append)
    started = [each for each in events if isinstance(each, StepStarted)]
    assert [(each.step.name, each.number, each.of, each.purpose) for each in started] == [
        ("alone", 1, 3, "alone"), ("50 TPS", 2, 3, "rate"), ("100 TPS", 3, 3, "rate")]
    assert [each.measured for each in events if isinstance(each, StepEnded)] == list(done.steps)
    seconds = [each for each in events if isinstance(each, Second) and each.step.name == "50 TPS"]
    assert len(seconds) == 11, "one of settling, ten that count"
    assert [each.result.step.name for each in done.loads] == ["50 TPS", "100 TPS"]
    assert done.alone is not None
    assert done.alone.result.service.percentile(50) == pytest.approx(0.02, rel=0.002)


def test_users_wait_for_their_answers() -> None:
    done = run(users_plan([4, 8], seconds=10, alone_seconds=0), FakeGenerator())
    rates = [each.result.rate for each in done.steps]
    assert rates == pytest.approx([200, 200], rel=0.05), "four workers, and no more than they do"
    assert [each.offered for each in done.steps] == [None, None]
    assert done.steps[1].result.latency.percentile(50) == pytest.approx(0.04, rel=0.01)


def test_a_ramp_is_a_step() -> None:
    done = run(rate_plan([RampArrivals(10, 190)], seconds=20, goal=GOAL), FakeGenerator())
    assert done.loads[0].result.step.name == "10 to 190 TPS"
    assert done.loads[0].offered == pytest.approx(100)


def test_confirm_holds_or_does_not() -> None:
    def held(instances: int) -> bool:
        return run(confirm_plan(1000, GOAL, seconds=20),
                   FakeGenerator(instances=instances, queue_limit=20)).held

    assert held(6)
    assert not held(4)


def test_a_run_without_a_target_is_judged_by_errors() -> None:
    assert run(rate_plan([150], seconds=10), FakeGenerator()).held
    assert not run(rate_plan([300], seconds=10), FakeGenerator(queue_limit=5)).held


def test_interrupting_keeps_the_whole_steps() -> None:
    generator = FakeGenerator()

    def emit(event: Event) -> None:
        if isinstance(event, Second) and event.step.name == "100 TPS":
            raise KeyboardInterrupt

    done = run(rate_plan([50, 100, 150], seconds=10, goal=GOAL), generator, emit)
    assert done.interrupted
    assert not done.held
    assert [each.result.step.name for each in done.steps] == ["alone", "50 TPS"]


def test_a_generator_that_ends_keeps_the_whole_steps() -> None:
    class Ending(FakeGenerator):
        def run(self, step: Step, progress: Any = lambda each: None) -> StepResult:
            if step.name == self.broken:
                raise GENERATOR.error(got="a worker was lost", allowed="a generator that runs")
            self.broken, name = "", self.broken
            result = super().run(step, progress)
            self.broken = name
            return result

    plan = rate_plan([50, 100, 150], seconds=10, goal=GOAL)
    done = run(plan, Ending(broken="100 TPS"))
    assert [each.result.step.name for each in done.steps] == ["alone", "50 TPS"]
    assert (done.interrupted, done.held) == (True, False)
    assert "a worker was lost" in done.failure
    with pytest.raises(ConfigurationError) as caught:  # nothing to keep
        run(plan, Ending(broken="50 TPS"))
    assert caught.value.code == GENERATOR.code


def test_an_endpoint_that_answers_nothing_is_not_loaded() -> None:
    generator = FakeGenerator(broken="404 ValidationError")
    with pytest.raises(ConfigurationError) as caught:
        run(rate_plan([50, 100], seconds=10), generator)
    assert caught.value.code == "LLE954"
    assert len(generator.steps) == 1


def test_a_plan_is_steps_or_a_search() -> None:
    with pytest.raises(ConfigurationError) as caught:
        RunPlan("rate", GOAL)
    assert caught.value.code == "LLE950"


# -------------------------------------------------------------------------------------- the account


@dataclass
class FakeAws:
    """AWS as far as a load test reads it."""

    instances: list[int] = field(default_factory=lambda: [2])
    """At each reading; the last one stays."""
    invocations: list[float] = field(default_factory=lambda: [1000.0])
    denied: tuple[str, ...] = ()
    missing: bool = False
    scaled: bool = True
    series: dict[str, list[float]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def account(self) -> Account:
        return Account(lambda service: self, lambda text: None)

    def __getattr__(self, operation: str) -> Callable[..., dict[str, Any]]:
        if operation.startswith("__"):
            raise AttributeError(operation)

        def call(**request: Any) -> dict[str, Any]:
            self.asked.append(operation)
            if operation in self.denied:
                raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}},
                                  operation)
            return dict(getattr(self, f"_{operation}")(**request))

        return call

    def _describe_endpoint(self, EndpointName: str) -> dict[str, Any]:  # noqa: N803
        if self.missing:
            raise ClientError({"Error": {"Code": "ValidationException", "Message":
                                         f'Could not find endpoint "{EndpointName}".'}},
                              "DescribeEndpoint")
        count = self.instances.pop(0) if len(self.instances) > 1 else self.instances[0]
        return {"EndpointConfigName": "c", "ProductionVariants": [
            {"VariantName": "primary", "CurrentInstanceCount": count}]}

    def _describe_endpoint_config(self, **_: Any) -> dict[str, Any]:
        return {"ProductionVariants": [{
            "VariantName": "primary", "InstanceType": "ml.m5.xlarge",
            "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}}]}

    def _describe_scalable_targets(self, **_: Any) -> dict[str, Any]:
        return {"ScalableTargets": [{"MinCapacity": 2, "MaxCapacity": 6}] if self.scaled else []}

    def _get_metric_data(self, MetricDataQueries: list[dict[str, Any]], StartTime: datetime,  # noqa: N803
                         **_: Any) -> dict[str, Any]:
        counted = self.invocations.pop(0) if len(self.invocations) > 1 else self.invocations[0]
        results = []
        for query in MetricDataQueries:
            stat = query["MetricStat"]
            name = f"{stat['Metric']['MetricName']}.{stat['Stat']}"
            values = [counted] if name == "Invocations.Sum" else self.series.get(name, [])
            results.append({"Id": query["Id"], "Values": values, "Timestamps": [
                StartTime + timedelta(minutes=number) for number in range(len(values))]})
        return {"MetricDataResults": results}


def test_the_fleet_is_read() -> None:
    fleet = read_fleet(FakeAws().account(), "sentiment")
    assert (fleet.variant, fleet.instances, fleet.instance_type) == ("primary", 2, "ml.m5.xlarge")
    assert (fleet.routing, fleet.minimum, fleet.maximum) == ("LEAST_OUTSTANDING_REQUESTS", 2, 6)
    assert fleet.scales


@dataclass
class TwoVariants(FakeAws):
    """Requests are divided between two variants; a third has no weight."""

    types: tuple[str, str, str] = ("ml.m5.xlarge", "ml.m5.xlarge", "ml.g5.xlarge")

    def _describe_endpoint(self, EndpointName: str) -> dict[str, Any]:  # noqa: N803
        return {"EndpointConfigName": "c", "ProductionVariants": [
            {"VariantName": name, "CurrentInstanceCount": count, "CurrentWeight": weight}
            for name, count, weight in (("a", 1, 1.0), ("b", 3, 2.0), ("idle", 9, 0.0))]}

    def _describe_endpoint_config(self, **_: Any) -> dict[str, Any]:
        return {"ProductionVariants": [{"VariantName": name, "InstanceType": kind} for name, kind
                                       in zip(("a", "b", "idle"), self.types, strict=True)]}

    def _describe_scalable_targets(self, ResourceIds: list[str], **_: Any) -> dict[str, Any]:  # noqa: N803
        return {"ScalableTargets": [{"MinCapacity": 3, "MaxCapacity": 6}]
                if ResourceIds == ["endpoint/sentiment/variant/b"] else []}


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
    @dataclass
    class Counted(TwoVariants):
        def _get_metric_data(self, MetricDataQueries: list[dict[str, Any]],  # noqa: N803
                             StartTime: datetime, **_: Any) -> dict[str, Any]:  # noqa: N803
            values = {("a", "Invocations"): 300, ("b", "Invocations"): 900,
                      ("a", "ModelLatency"): 10_000, ("b", "ModelLatency"): 50_000,
                      ("a", "SampleCount"): 300, ("b", "SampleCount"): 900,
                      ("a", "CPUUtilization"): 400, ("b", "CPUUtilization"): 200}
            results = []
            for query in MetricDataQueries:
                stat = query["MetricStat"]
                variant = {each["Name"]: each["Value"] for each in stat["Metric"]["Dimensions"]}[
                    "VariantName"]
                value = values.get((variant, stat["Stat"])) or values.get(
                    (variant, stat["Metric"]["MetricName"]))
                results.append({"Id": query["Id"], "Values": [value] if value else [],
                                "Timestamps": [StartTime] if value else []})
            return {"MetricDataResults": results}

    account = Counted().account()
    found = read_joined(account, "sentiment", read_fleet(account, "sentiment"), start=0, end=60,
                        answers=1200)
    assert found.complete
    window = found.during(0, 60)
    assert window.get("Invocations.Sum") == 20
    assert window.get("ModelLatency.Average") == pytest.approx((10 * 300 + 50 * 900) / 1200)
    assert window.get("ModelLatency.Maximum") == 50
    # By instances: 100 % of one, 50 % of three, on four processors each.
    assert window.get("CPUUtilization.Average") == pytest.approx((100 + 3 * 50) / 4)


def limit_test(monkeypatch: pytest.MonkeyPatch, aws: FakeAws, generator: FakeGenerator,
               target: Target | None = None, **options: Any) -> LoadTestReport:
    """Look for the limit of what an account describes."""
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing.open_clients",
                        lambda profile, region: (lambda service: aws, region))
    return load_test(
        target or Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"),
        limit_plan(SearchPlan(GOAL, 20, poisson=False)), generator=lambda: generator,
        metrics_wait=None, **options)


def test_a_limit_is_divided_by_the_instances_of_all_variants(
        monkeypatch: pytest.MonkeyPatch) -> None:
    report = limit_test(monkeypatch, TwoVariants(), FakeGenerator(instances=4))
    assert report.run.limit is not None
    assert report.run.limit.instances == report.instances == 4
    assert report.run.limit.tps_per_instance == pytest.approx(200, rel=0.06)


@pytest.mark.parametrize(("aws", "target", "code"), [
    (FakeAws(denied=("describe_endpoint",)), {}, "LLE988"),
    (FakeAws(), {"inference_component": "copies"}, "LLE988"),
    (TwoVariants(types=("ml.m5.xlarge", "ml.c7i.xlarge", "ml.g5.xlarge")), {}, "LLE989"),
])
def test_a_limit_that_cannot_be_divided_is_refused_before_anything_is_sent(
        monkeypatch: pytest.MonkeyPatch, aws: FakeAws, target: dict[str, str], code: str) -> None:
    generator = FakeGenerator()
    to = Target("sentiment", "us-east-1", **target)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError) as caught:
        limit_test(monkeypatch, aws, generator, to)
    assert caught.value.code == code
    assert generator.steps == []
    if code == "LLE988":
        told = limit_test(monkeypatch, aws, generator, to, instances=2)
        assert told.run.limit is not None
        assert told.run.limit.tps_per_instance == pytest.approx(100, rel=0.06)


def test_a_search_needs_the_number_of_instances() -> None:
    with pytest.raises(ConfigurationError) as caught:
        run(limit_plan(SearchPlan(GOAL, 20)), FakeGenerator())
    assert caught.value.code == "LLE988"


def test_the_simulator_is_not_told_of_one_instance_where_nobody_knows(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing.open_clients", lambda *_: (
        lambda service: FakeAws(denied=("describe_endpoint",)), "us-east-1"))
    for stated in (None, 3):
        report = load_test(
            Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"),
            rate_plan([100, 700], seconds=20), generator=lambda: FakeGenerator(instances=3),
            metrics_wait=None, instances=stated)
        assert json.loads(report.to_json())["instances"] == stated
        file = tmp_path / f"{stated}.json"
        file.write_text(report.to_json(), "utf-8")
    assert read_load_test_result(tmp_path / "3.json").instances == 3
    with pytest.raises(ConfigurationError) as caught:
        read_load_test_result(tmp_path / "None.json")
    assert caught.value.code == "LLE873"
    assert "--instances" in caught.value.mend


def test_a_fleet_that_changed_is_seen_without_cloudwatch(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, warned = FakeAws(instances=[2, 3]), []
    report = limit_test(monkeypatch, aws, FakeGenerator(instances=2), warn=warned.append)
    assert aws.asked.count("describe_endpoint") == 2
    assert kinds(report.verdicts)[:1] == ["fleet-changed"]
    assert report.invalid
    (warning,) = warned
    assert "Scaling may change the number of instances" in warning
    assert "from 2 to 6" in warning
    assert "fleet-scales" in kinds(report.verdicts)
    fixed = limit_test(monkeypatch, FakeAws(scaled=False), FakeGenerator(instances=2),
                       warn=warned.append)
    assert len(warned) == 1
    assert {"fleet-scales", "fleet-changed"}.isdisjoint(kinds(fixed.verdicts))


def test_another_fleet_than_the_planned_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing.open_clients", lambda *_: (
        lambda service: FakeAws(instances=[1], scaled=False), "us-east-1"))
    for planned, said in ((8, True), (1, False), (None, False)):
        warned: list[str] = []
        report = load_test(
            Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"),
            confirm_plan(40, GOAL, seconds=20), generator=FakeGenerator, metrics_wait=None,
            warn=warned.append, planned_instances=planned)
        assert ("fleet-not-planned" in kinds(report.verdicts)) is said
        assert [text.startswith("Warning: The fleet has 1 instance, the plan says 8 at the peak")
                for text in warned] == [True] * said
        assert report.run.held, "what was sent did hold"


def test_what_may_not_be_read_is_unknown() -> None:
    fleet = read_fleet(FakeAws(denied=("describe_scalable_targets",)).account(), "sentiment")
    assert fleet.instances == 2
    assert fleet.unknown == (
        "scaling: application-autoscaling:DescribeScalableTargets: not permitted",)
    blind = read_fleet(FakeAws(denied=("describe_endpoint",)).account(), "sentiment")
    assert (blind.instances, len(blind.unknown)) == (None, 1)
    metrics = read_joined(FakeAws(denied=("get_metric_data",)).account(), "sentiment", blind,
                          start=0, end=60, answers=10)
    assert metrics.unknown == ("CloudWatch: cloudwatch:GetMetricData: not permitted",)


def test_an_endpoint_or_variant_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_fleet(FakeAws(missing=True).account(), "nowhere", region="eu-west-1")
    assert (caught.value.code, caught.value.got) == ("LLE581", "nowhere in eu-west-1")
    with pytest.raises(ConfigurationError) as caught:
        read_fleet(FakeAws().account(), "sentiment", "canary")
    assert (caught.value.code, caught.value.allowed) == ("LLE581", "primary")


def test_cloudwatch_is_waited_for() -> None:
    aws, slept, said = FakeAws(invocations=[0.0, 400.0, 990.0, 1000.0]), [], []
    found = read_joined(aws.account(), "sentiment", FLEET, start=0, end=100, answers=1000,
                        sleep=slept.append, progress=said.append)
    assert found.complete
    assert slept == [1, 2]
    assert said[-1] == "CloudWatch has counted 400 of 1,000 requests"


def test_cloudwatch_is_not_waited_for_in_vain() -> None:
    aws, slept = FakeAws(invocations=[10.0]), []
    found = read_joined(aws.account(), "sentiment", FLEET, start=0, end=100, answers=1000,
                        wait=30, sleep=slept.append)
    assert not found.complete
    assert sum(slept) == 30


def metrics_of(**series: list[float | None]) -> JoinedMetrics:
    """Series by ``Metric_Statistic`` with a value for each minute from the fake clock's start."""
    first = datetime.fromtimestamp(FakeGenerator().clock, UTC)
    return JoinedMetrics({
        tuple(name.split("_")): Series({  # type: ignore[misc]
            first + timedelta(minutes=minute): value
            for minute, value in enumerate(values) if value is not None})
        for name, values in series.items()}, True)


def test_a_step_gets_its_own_minutes() -> None:
    start = FakeGenerator().clock  # a full minute
    metrics = metrics_of(ModelLatency_p99=[10, 20, 30], CPUUtilization_Average=[5, 50, 95],
                         Invocations_Sum=[600, 6000, 12000], CPUUtilization_Maximum=[9, 60, 99])
    inside = metrics.during(start + 50, start + 130)
    assert inside.values == {"ModelLatency.p99": 20, "CPUUtilization.Average": 50,
                             "Invocations.Sum": 100, "CPUUtilization.Maximum": 60}
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
    events: list[Event] = []
    done = run(plan, generator, events.append, clock=lambda: generator.clock)
    starts = [each for each in events if isinstance(each, StepStarted)][1:]
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
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing.open_clients", lambda *_: (
        lambda service: FakeAws(invocations=[1e9]), "us-east-1"))
    for wait, whole in ((1.0, True), (0.0, False), (None, False)):
        report = load_test(Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"),
                           rate_plan([20], seconds=60), generator=FakeGenerator,
                           metrics_wait=wait)
        assert report.run.plan.whole_minutes is whole


def test_a_busy_minute_counts_more() -> None:
    start = FakeGenerator().clock
    metrics = metrics_of(ModelLatency_p99=[10, 40], ModelLatency_SampleCount=[300, 100])
    assert metrics.during(start, start + 120).get("ModelLatency.p99") == pytest.approx(17.5)


# ----------------------------------------------------------------------------------------- verdicts


def overloaded(**more: Any) -> LoadTestRun:
    """A minute alone, then rising rates; the last, too much for four workers, has minute 6."""
    return run(rate_plan([50, 150, 230], seconds=130, goal=GOAL, alone_seconds=60),
               FakeGenerator(**more))


def test_full_processors() -> None:
    done = overloaded(queue_limit=20)
    metrics = metrics_of(CPUUtilization_Average=[25, 25, 25, 70, 75, 75, 97, 97])
    found = verdicts(done, FLEET, metrics)
    assert kinds(found) == ["errors", "cpu", "queueing"]
    errors, cpu, _ = found
    assert errors.title == "Requests fail at 230 TPS: the instances are full (CPU 97 %)"
    assert QUEUE_FULL in errors.evidence[0]
    assert (cpu.title, cpu.severity) == ("The CPU is full", "limit")
    assert cpu.advice == "A safety factor of at most 0.67 keeps it near 65 %."


def test_errors_while_the_processor_is_idle_are_the_containers() -> None:
    metrics = metrics_of(CPUUtilization_Average=[20] * 8)
    errors = verdicts(overloaded(queue_limit=20), FLEET, metrics)[0]
    assert errors.kind == "errors"
    assert "though the hardware is not full" in errors.title
    assert "more workers" in errors.advice


def test_waiting_inside_the_instances_or_before_them() -> None:
    done = overloaded()
    waiting = 1000 * done.loads[-1].result.latency.mean
    inside = metrics_of(ModelLatency_Average=[20] * 5 + [30, waiting, waiting],
                        CPUUtilization_Average=[30] * 8)
    found = verdicts(done, FLEET, inside)
    assert kinds(found) == ["queueing"]
    assert found[0].title == "Requests wait inside the instances"
    assert "an instance works on about 4 at once; the others wait" in found[0].evidence
    assert "more workers" in found[0].advice
    before = metrics_of(ModelLatency_Average=[20] * 8, OverheadLatency_Average=[2] * 8)
    assert kinds(verdicts(done, FLEET, before)) == ["before-the-model"]
    routed = metrics_of(ModelLatency_Average=[20] * 8,
                        OverheadLatency_Average=[2] * 6 + [waiting - 20] * 2)
    assert kinds(verdicts(done, FLEET, routed)) == ["overhead"]


def test_throttling_is_no_limit_of_the_instances() -> None:
    done = overloaded(queue_limit=20)
    last = done.steps[-1]
    throttled = replace(last.result, errors={"429 ThrottlingException": last.result.failed})
    done = replace(done, steps=(*done.steps[:-1], replace(last, result=throttled)))
    assert "throttled" in kinds(verdicts(done, FLEET, JoinedMetrics()))


def test_nothing_saturated() -> None:
    generator = FakeGenerator()
    generator.clock += 30  # no full minute
    done = run(rate_plan([50], seconds=60, goal=GOAL, alone_seconds=60), generator)
    found = verdicts(done, FLEET, metrics_of(CPUUtilization_Average=[10, 30, 30]))
    assert kinds(found) == ["not-saturated"]
    assert "CPU at 30 % (in minutes shared with other steps)" in found[0].evidence
    warm = verdicts(done, FLEET, metrics_of(CPUUtilization_Average=[10, 80, 80]))
    assert [(each.kind, each.severity) for each in warm] == [
        ("cpu", "risk"), ("not-saturated", "fine")]


def test_a_client_at_its_limit_makes_the_result_invalid() -> None:
    done = run(rate_plan([50, 150], seconds=20, goal=GOAL), FakeGenerator(client_bound_above=100))
    found = verdicts(done, FLEET, JoinedMetrics())
    assert (found[0].kind, found[0].severity) == ("client-bound", "invalid")
    assert found[0].title == "Client-bound: result invalid"
    assert LoadTestReport(Target("e", "us-east-1"), done, verdicts=found).invalid
    assert not done.held


def test_a_stumble_alone_is_told_and_spoils_nothing() -> None:
    done = run(rate_plan([150], seconds=20, goal=GOAL),
               FakeGenerator(unlucky=lambda step: step.name == "alone"))
    found = verdicts(done, FLEET, JoinedMetrics())
    assert [(each.kind, each.severity) for each in found] == [
        ("client-bound", "risk"), ("not-saturated", "fine")]
    assert done.held


def test_a_fleet_that_changed_makes_the_result_invalid() -> None:
    done = run(limit_plan(SearchPlan(GOAL, 20, instances=1)), FakeGenerator())
    found = verdicts(done, FLEET, JoinedMetrics(), replace(FLEET, instances=2))
    assert (found[0].kind, found[0].severity) == ("fleet-changed", "invalid")
    report = LoadTestReport(Target("e", "us-east-1"), done, FLEET, verdicts=found, peak_tps=1000)
    assert report.throughput is None
    assert "number of instances changed" in report.to_dict()["limit"]["problem"]


def test_concurrency_by_littles_law() -> None:
    assert concurrency(overloaded(queue_limit=20), 1) == 4
    assert concurrency(overloaded(workers=7, service=0.035, queue_limit=20), 1) == 7
    idle = run(rate_plan([50], seconds=10, goal=GOAL), FakeGenerator())
    assert concurrency(idle, 1) is None, "instances that were never full tell nothing"


# -------------------------------------------------------------------------------------- the results


def found_limit(**more: Any) -> LoadTestReport:
    """A finished search with everything around it."""
    done = run(limit_plan(SearchPlan(GOAL, 20, instances=1, poisson=False)),
               FakeGenerator(queue_limit=20))
    return LoadTestReport(Target("sentiment", "us-east-1"), done, FLEET,
                          verdicts=verdicts(done, FLEET, JoinedMetrics()), payload="1 given body",
                          **{"peak_tps": 1000.0, "safety_factor": 1.0, **more})


def test_a_limit_is_a_measured_throughput() -> None:
    report = found_limit()
    assert report.throughput is not None
    assert report.throughput.tps_per_instance == pytest.approx(200, rel=0.06)
    assert report.throughput.instances_at_peak(2) == \
        -(-1000 // report.throughput.tps_per_instance)
    assert found_limit(peak_tps=None).throughput is None, "no peak, nothing to size for"


def test_the_file_is_read_by_simulator_and_plan(tmp_path: Path) -> None:
    report = found_limit()
    file = tmp_path / "result.json"
    file.write_text(report.to_json(), encoding="utf-8")
    simulated = read_load_test_result(file)
    assert simulated.rate == report.run.limit.tps_per_instance  # type: ignore[union-attr]
    assert (simulated.instances, simulated.concurrency) == (1, 4)
    assert simulated.service.mean_seconds == pytest.approx(0.02, rel=0.002)
    planned = read_found_limit(file)
    assert planned.tps_per_instance == report.run.limit.tps_per_instance  # type: ignore[union-attr]
    assert (planned.endpoint, planned.instance_type) == ("sentiment", "ml.m5.12xlarge")
    content = json.loads(file.read_text())
    assert content["limit"]["low"] <= content["limit"]["high"]
    assert content["throughput"]["peak_tps"] == 1000
    assert {name: content["throughput"][name] for name in ("confidence", "low", "high")} == {
        name: content["limit"][name] for name in ("confidence", "low", "high")}
    # Every step comes back with its whole histograms.
    assert [StepResult.of_dict(each).latency for each in content["steps"]] == [
        each.result.latency for each in report.run.steps]
    assert content["steps"][1]["judgement"]["outcome"] == "held"
    assert len(content["steps"][1]["timeline"]) == len(report.run.steps[1].timeline)


def test_rates_are_a_file_for_the_simulator_too(tmp_path: Path) -> None:
    done = run(rate_plan([50, 150, 400], seconds=20, goal=GOAL), FakeGenerator(queue_limit=20))
    file = tmp_path / "result.json"
    file.write_text(LoadTestReport(Target("e", "us-east-1"), done, FLEET).to_json(), "utf-8")
    content = json.loads(file.read_text("utf-8"))
    assert content["rate"] == pytest.approx(150, rel=0.05), "the highest that held"
    simulated = read_load_test_result(file)
    assert simulated.rate is None, "no limit was looked for"
    assert simulated.service.mean_seconds == pytest.approx(0.02, rel=0.002)
    with pytest.raises(ConfigurationError) as caught:
        read_found_limit(file)
    assert (caught.value.code, caught.value.got) == ("LLE956", "a run of --rate")


@pytest.mark.parametrize(("content", "code"), [
    (None, "LLE955"), ("{", "LLE955"), ("[]", "LLE955"), ('{"schema": "other"}', "LLE955"),
    ("\xff", "LLE955"), ('{"schema": "S"}', "LLE956"), ('{"schema": "S", "limit": 3}', "LLE956"),
    ('{"schema": "S", "limit": {"tps_per_instance": null}}', "LLE956"),
    ('{"schema": "S", "limit": {"tps_per_instance": true}}', "LLE956"),
    ('{"schema": "S", "limit": {"tps_per_instance": NaN}}', "LLE956"),
    ('{"schema": "S", "limit": {"tps_per_instance": 5, "problem": "client-bound"}}', "LLE956"),
])
def test_files_that_are_no_limit(tmp_path: Path, content: str | None, code: str) -> None:
    file = tmp_path / "result.json"
    if content is not None:
        file.write_bytes(content.replace(
            '"S"', '"low-latency-endpoint/load-test-result/1"').encode("latin-1"))
    with pytest.raises(ConfigurationError) as caught:
        read_found_limit(file)
    assert caught.value.code == code
    assert caught.value.where == str(file)


def test_a_line_for_each_step() -> None:
    report = found_limit()
    lines = steps_csv(report).splitlines()
    assert len(lines) == 1 + len(report.run.steps)
    first = dict(zip(lines[0].split(","), lines[2].split(","), strict=True))
    assert (first["purpose"], first["outcome"], first["p50_ms"]) == ("rise", "held", "20")


def test_the_line_holds_what_is_flagged() -> None:
    done = run(rate_plan([50], seconds=4, goal=GOAL), FakeGenerator(first_byte_share=0.25))
    late = replace(done.steps[1], result=replace(
        done.steps[1].result, send_lag=LatencyHistogram.of([0.004] * 200)).judged())
    done = replace(done, steps=(done.steps[0], late))
    metrics = metrics_of(InvocationsPerInstance_Sum=[3000])
    report = LoadTestReport(Target("e", "us-east-1"), done, FLEET, metrics)
    _, row = csv.DictReader(steps_csv(report).splitlines())
    assert int(row["samples"]) == late.result.latency.count
    assert int(row["samples_beyond_p99"]) == late.result.latency.count - math.ceil(
        0.99 * late.result.latency.count)
    assert "send lag p99 is 4 ms" in row["warnings"]
    assert "fewer than ten samples" in row["warnings"]
    assert float(row["first_byte_p99_ms"]) == pytest.approx(5, rel=0.001)
    assert row["first_byte_p99_ms"] == row["first_byte_p50_ms"]
    assert row["generator_us_per_request"] == "0"
    assert row["invocations_per_instance_minute"] == "3000"


# ------------------------------------------------------------------------------------ first bytes


def test_a_stream_is_judged_by_its_first_byte() -> None:
    def outcome(goal: dict[str, float], share: float) -> str:
        plan = rate_plan([100], seconds=20, goal=LatencyGoal(goal), alone_seconds=0)
        (step,) = run(plan, FakeGenerator(first_byte_share=share)).steps
        assert step.judgement.bounds["ttfb-p99"].value == pytest.approx(
            share * step.result.latency.percentile(99), rel=0.01)
        return step.judgement.outcome

    assert outcome({"ttfb-p99": 0.015}, share=0.1) == "held"
    assert outcome({"ttfb-p99": 0.015}, share=0.9) == "broken"
    assert outcome({"ttfb-p99": 0.015, "p99": 0.010}, share=0.1) == "broken", "both are kept"
    assert outcome({"ttfb-p99": 0.015, "ttfb-Average": 0.001}, share=0.1) == "broken"


def test_the_limit_of_a_stream_is_that_of_its_first_byte() -> None:
    plan = limit_plan(SearchPlan(LatencyGoal({"ttfb-p99": 0.2}), 20, instances=1, poisson=False))
    done = run(plan, FakeGenerator(first_byte_share=0.5))
    assert done.limit is not None
    assert done.limit.rate == pytest.approx(200, rel=0.06)
    assert "ttfb-p99 within 200 ms" in done.limit.how


def test_a_target_for_the_first_byte_needs_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = FakeGenerator()
    with pytest.raises(ConfigurationError) as caught:
        load_test(Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"),
                  rate_plan([10], goal=LatencyGoal({"ttfb-p99": 0.1})),
                  generator=lambda: generator)
    assert (caught.value.code, caught.value.got) == ("LLE991", "ttfb-p99")
    assert generator.steps == []


def test_the_whole_test_opens_and_closes_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, generator, said = FakeAws(invocations=[1e9]), FakeGenerator(instances=2), []
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing.open_clients",
                        lambda profile, region: (lambda service: aws, region))
    report = load_test(
        Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"),
        limit_plan(SearchPlan(GOAL, 20, poisson=False)), generator=lambda: generator,
        say=said.append)
    assert generator.closed
    assert report.run.limit is not None
    assert report.run.limit.instances == 2, "what SageMaker says serves"
    assert report.run.limit.tps_per_instance == pytest.approx(200, rel=0.06)
    assert said == ["Reading the endpoint", "Starting the load generator", "Reading CloudWatch"]
    assert "get_metric_data" in aws.asked


def test_waiting_for_cloudwatch_may_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing.open_clients",
                        lambda profile, region: (lambda service: FakeAws(), region))

    def say(text: str) -> None:
        if "has counted" in text:
            raise KeyboardInterrupt

    report = load_test(Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"),
                       rate_plan([200], seconds=20), generator=FakeGenerator, say=say)
    assert report.run.held
    assert report.metrics.unknown == ("CloudWatch: interrupted",)


def test_the_generator_is_closed_when_nothing_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = FakeGenerator(broken="403 AccessDeniedException")
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing.open_clients",
                        lambda profile, region: (lambda service: FakeAws(), region))
    with pytest.raises(ConfigurationError):
        load_test(Target("sentiment", "us-east-1"), Payloads.of_bytes(b"{}"),
                  rate_plan([10], seconds=6), generator=lambda: generator)
    assert generator.closed


# ------------------------------------------------------------------------------------------- docs

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "load-tests.md").read_text("utf-8")


def test_the_documented_lines_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                  capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOCS, re.S)
    monkeypatch.chdir(tmp_path)
    Path("body.json").write_text("{}")
    aws = FakeAws(invocations=[1e9])
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing.open_clients",
                        lambda profile, region: (lambda service: aws, region))
    monkeypatch.setattr("low_latency_endpoint.load_test.load_testing._processes",
                        lambda *given: FakeGenerator())
    exec(compile(code, "docs/load-tests.md", "exec"), {})
    assert "Nothing is saturated at 100 TPS" in capsys.readouterr().out
    assert Path("report.html").stat().st_size > 1_000_000


def test_the_page_names_what_there_is() -> None:
    from low_latency_endpoint.load_test import saturation

    named = set(re.findall(r"^\| `([a-z][a-z-]+)`(?:, `([a-z-]+)`)? \|", DOCS, re.M))
    kinds_named = {name for pair in named for name in pair if name}
    source = Path(saturation.__file__).read_text("utf-8")
    described = set(re.findall(r"``([a-z-]+)``", (saturation.Verdict.__doc__ or "").partition(
        "severity")[0]))
    assert kinds_named == described - {"unexplained"}
    assert all(f'"{kind}"' in source or kind in ("cpu", "gpu") for kind in described)
    options = set(re.findall(r"`(--[a-z-]+)", DOCS))
    shown = CliRunner().invoke(app, ["load-test", "--help"]).output
    shown += CliRunner().invoke(app, ["plan", "--help"]).output
    assert {option for option in options if option not in shown} == set()
