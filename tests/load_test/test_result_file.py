"""The result: its throughput, its file, its lines."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from low_latency_endpoint.facts.prices import your_price
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import StepResult
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.limit_search import AssuredRate, Limit, limit_so_far
from low_latency_endpoint.load_test.search.load_testing import run
from low_latency_endpoint.load_test.search.result_file import LoadTestReport
from low_latency_endpoint.load_test.search.run_plans import SearchPlan, limit_plan, rate_plan
from low_latency_endpoint.load_test.search.settings_file import read_found_limit
from low_latency_endpoint.load_test.search.steps_table import steps_csv
from low_latency_endpoint.plan.hourly_cost import LoadTestCost
from low_latency_endpoint.plan.load_test_validity import impossible_limit
from low_latency_endpoint.simulate.load_test_result import read_load_test_result
from tests.refusals import refused

from .fake_account import FLEET, GOAL, metrics_of, report_of
from .fake_generator import FakeGenerator


def found_limit(**more: Any) -> LoadTestReport:
    """A finished search with everything around it."""
    return report_of(limit_plan(SearchPlan(GOAL, 20, instances=1, poisson=False)), more=more)


def test_a_limit_is_a_measured_throughput() -> None:
    report = found_limit()
    assert report.throughput.tps_per_instance == pytest.approx(200, rel=0.06)
    assert report.throughput.instances_at_peak(2) == -(-1000 // report.throughput.tps_per_instance)
    assert found_limit(peak_tps=None).throughput is None, "no peak, nothing to size for"


def test_what_a_million_requests_cost_at_the_limit() -> None:
    """An instance for 3.60 an hour that holds about 200 a second, 720,000 an hour: 5."""
    report = found_limit(price=your_price(3.6))
    assert report.cost.usd_per_million == pytest.approx(5, rel=0.06)
    limit = report.run.limit
    assert limit.tps_per_instance is not None
    exactly = 3.6 / (limit.tps_per_instance * 3600) * 1e6
    assert report.to_dict()["cost"]["usd_per_million_requests"] == pytest.approx(exactly, abs=1e-4)
    assert any("A million requests cost" in line for line in report.cost.lines())
    unpriced = found_limit().cost
    assert (unpriced.usd, unpriced.usd_per_million) == (None, None)
    # Without a price the instance hours: 1 / 0.72 million.
    assert any("take 1.4" in line or "take 1.3" in line for line in unpriced.lines())
    unknown = found_limit(stated_instances=None)
    assert replace(unknown, run=replace(unknown.run, steps=())).cost is None


def test_what_the_load_test_itself_cost() -> None:
    """Three instances at 2 an hour for 20 minutes: an instance hour, 2 dollars."""
    cost = LoadTestCost(
        instance_type="ml.g5.xlarge",
        instances=3,
        seconds=1200,
        price=your_price(2.0),
        tps_per_instance=50,
        lower_bound=True,
    )
    assert (cost.instance_hours, cost.usd) == (pytest.approx(1.0), pytest.approx(2.0))
    # 2 / (50 x 3,600) x 1,000,000, and less where one holds more than 50.
    assert list(cost.lines()) == [
        "A million requests cost at most 11.11 US dollars at the limit: ml.g5.xlarge for 2 an "
        "hour (yours).",
        "While the load test ran, its 3 instances cost 2.00 US dollars (1 instance hours).",
    ]


def test_instances_of_several_types_have_no_price_to_give() -> None:
    """As with instance pools: --price of one type would not say what the others cost."""
    cost = LoadTestCost(instance_type="", instances=3, seconds=1200, price=None)
    (line,) = cost.lines()
    assert line.startswith("The load test took 1 instance hours. What they cost is not known: ")
    assert "--price" not in line


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
    measured = planned.measured
    assert (measured.endpoint, measured.instance_type) == ("sentiment", "ml.m5.12xlarge")
    content = json.loads(file.read_text())
    assert content["limit"]["low"] <= content["limit"]["high"]
    assert content["throughput"]["peak_tps"] == 1000
    assert content["limit"]["confidence"] == content["throughput"]["confidence"] == 0.95
    assert {name: content["throughput"][name] for name in ("low", "high")} == {
        name: content["limit"][name] for name in ("low", "high")
    }
    # Every step comes back with its whole histograms.
    assert [StepResult.of_dict(each).latency for each in content["steps"]] == [
        each.result.latency for each in report.run.steps
    ]
    assert content["steps"][1]["judgement"]["kept"], "it shows the way"
    assert len(content["steps"][1]["timeline"]) == len(report.run.steps[1].timeline)


def test_rates_are_a_file_for_the_simulator_too(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    file.write_text(report_of(rate_plan([50, 150, 400], seconds=20, goal=GOAL)).to_json(), "utf-8")
    content = json.loads(file.read_text("utf-8"))
    assert content["rate"] == pytest.approx(150, rel=0.05), "the highest that held"
    simulated = read_load_test_result(file)
    assert simulated.rate is None, "no limit was looked for"
    assert simulated.service.mean_seconds == pytest.approx(0.02, rel=0.002)
    with refused("LLT114", got="a run with rate"):
        read_found_limit(file)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "LLT113"),
        ("{", "LLT113"),
        ("[]", "LLT113"),
        ('{"schema": "other"}', "LLT113"),
        ("\xff", "LLT113"),
        ('{"schema": "S"}', "LLT114"),
        ('{"schema": "S", "limit": 3}', "LLT114"),
        ('{"schema": "S", "limit": {"tps_per_instance": null}}', "LLT114"),
        ('{"schema": "S", "limit": {"tps_per_instance": true}}', "LLT114"),
        ('{"schema": "S", "limit": {"tps_per_instance": NaN}}', "LLT113"),
        ('{"schema": "S", "limit": {"tps_per_instance": 5, "problem": "client-bound"}}', "LLT114"),
    ],
)
def test_files_that_are_no_limit(tmp_path: Path, content: str | None, code: str) -> None:
    file = tmp_path / "result.json"
    if content is not None:
        file.write_bytes(
            content.replace('"S"', '"low-latency-endpoint/load-test-result/1"').encode("latin-1")
        )
    with refused(code, where=str(file)):
        read_found_limit(file)


#: What a plan would size the fleet by, and no load test finds: by place, the value that cannot be.
IMPOSSIBLE: list[tuple[str, Any]] = [
    ("limit.tps_per_instance", 5000.0),
    ("limit.tps_per_instance", 1.0),
    ("limit.high", 1.0),
    ("limit.low", -1.0),
    ("limit.confidence", 0.0),
    ("limit.confidence", 0.01),
    ("limit.confidence", 1.0),
    ("limit.confirmed", False),
    ("limit.assured.tps_per_instance", 5000.0),
    ("limit.assured.requests", 0),
    ("limit.assured.failures", 1.5),
    ("limit.assured.confidence", 2.0),
    ("held", False),
    ("interrupted", True),
    ("failure", "killed"),
    ("ended_at", "2020-01-01T00:00:00+00:00"),
    ("rate", -5.0),
    ("rate", 4.0),
    ("instances", -5),
    ("instances", 1000),
    ("latency_target.targets_ms", {"p99": -1.0}),
    ("latency_target.allowed_errors", 5.0),
    ("steps.0.completed", -1),
    ("steps.0.completed", 10**9),
    ("steps.0.tokens", {"prompt_tokens": 1, "cached_tokens": 9}),
    ("service_time_ms.quantiles", {"0": 9.0, "0.5": 90.0, "0.9": 1.0, "1": 50.0}),
    ("service_time_ms.quantiles", {"0": -5.0, "1": 3.0}),
    ("service_time_ms.quantiles", {"0": 5.0, "0.0": 6.0, "1": 9.0}),
    ("service_time_ms.quantiles", {"0": 5.0, "nan": 6.0, "1": 9.0}),
    ("service_time_ms.quantiles", {"0": 5.0, "2": 9.0}),
    ("service_time_ms", {"samples": [5.0, -1.0]}),
]


@pytest.mark.parametrize(("place", "value"), IMPOSSIBLE, ids=str)
def test_no_reader_takes_what_no_load_test_finds(tmp_path: Path, place: str, value: Any) -> None:
    content = found_limit().to_dict()
    file = tmp_path / "result.json"
    file.write_text(json.dumps(content), "utf-8")
    read_found_limit(file)
    *outer, name = place.split(".")
    inner: Any = content
    for key in outer:
        inner = inner[int(key) if isinstance(inner, list) else key]
    inner[name] = value
    file.write_text(json.dumps(content), "utf-8")
    with refused("LLT113"):
        read_found_limit(file)
    with refused("LLS123"):
        read_load_test_result(file)


@given(rate=st.floats(1e-6, 1e6), instances=st.integers(1, 300))
def test_every_rate_makes_a_limit(rate: float, instances: int) -> None:
    """What is written agrees with itself as a reader wants it, however small it is."""
    assume(rate / instances > 1e-6)
    assured = AssuredRate(rate, 0.001, 1, "")
    limit = Limit(rate, None, instances, None, True, "", assured=assured)
    assert list(impossible_limit(limit.to_dict())) == []


def test_no_limit_is_made_that_a_reader_would_refuse() -> None:
    limit = found_limit().run.limit
    assert limit is not None
    assert limit.rate is not None
    above = AssuredRate(2 * limit.rate, 0.001, 100, "")
    changes: list[dict[str, Any]] = [
        {"confidence": 0.0},
        {"confirmed": False},
        {"assured": above},
        {"assured": replace(above, rate=limit.rate, requests=0)},
        {"instances": 0},
    ]
    for change in changes:
        with refused("LLT176"):
            replace(limit, **change)


def test_a_stopped_search_is_read_as_a_lower_bound(tmp_path: Path) -> None:
    report = found_limit()
    plan = report.run.plan
    assert plan.search is not None
    limit = limit_so_far(plan.search, report.run.steps)
    stopped = replace(report.run, limit=limit, interrupted=True, failure="killed")
    file = tmp_path / "result.json"
    file.write_text(replace(report, run=stopped).to_json(), "utf-8")
    assert read_found_limit(file, accept_lower_bound=True).lower_bound
    assert read_load_test_result(file).lower_bound


def test_a_line_for_each_step() -> None:
    report = found_limit()
    lines = steps_csv(report).splitlines()
    assert len(lines) == 1 + len(report.run.steps)
    first = dict(zip(lines[0].split(","), lines[2].split(","), strict=True))
    assert (first["purpose"], first["outcome"], first["p50_ms"]) == ("rise", "unclear", "20")


def test_the_line_holds_what_is_flagged() -> None:
    done = run(rate_plan([50], seconds=4, goal=GOAL), FakeGenerator(first_byte_share=0.25))
    late = replace(
        done.steps[1],
        result=replace(done.steps[1].result, send_lag=LatencyHistogram.of([0.004] * 200)).judged(),
    )
    done = replace(done, steps=(done.steps[0], late))
    metrics = metrics_of(InvocationsPerInstance_Sum=[3000])
    report = LoadTestReport(Target("e", "us-east-1"), done, FLEET, metrics)
    _, row = csv.DictReader(steps_csv(report).splitlines())
    assert int(row["samples"]) == late.result.latency.count
    assert int(row["samples_beyond_p99"]) == late.result.latency.count - math.ceil(
        0.99 * late.result.latency.count
    )
    assert "send lag p99 is 4 ms" in row["warnings"]
    assert "fewer than ten samples" in row["warnings"]
    assert float(row["first_byte_p99_ms"]) == pytest.approx(5, rel=0.001)
    assert row["first_byte_p99_ms"] == row["first_byte_p50_ms"]
    assert row["generator_us_per_request"] == "0"
    assert row["invocations_per_instance_minute"] == "3000"
