"""What serves the endpoint: variants, instances, and that they stay as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.run_plans import (
    SearchPlan,
    confirm_plan,
    limit_plan,
    rate_plan,
)
from low_latency_endpoint.load_test.search.serving import read_fleet, read_joined
from low_latency_endpoint.simulate.load_test_result import read_load_test_result
from tests.refusals import refused

from .fake_account import GOAL, FakeAws, TwoVariants, kinds, limit_test, loaded
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


def test_another_fleet_than_the_planned_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    aws, plan = FakeAws(instances=[1], scaled=False), confirm_plan(40, GOAL, seconds=20)
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
