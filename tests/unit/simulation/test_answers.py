"""From settings to answers: the command, the load test's file, the search, the published table."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.planning.simulation import simulate
from low_latency_endpoint.planning.simulation.assumptions import Model, model_of_plan
from low_latency_endpoint.planning.simulation.estimates import Estimate
from low_latency_endpoint.planning.simulation.load_test_result import (
    load_test_result_of,
    read_load_test_result,
)
from low_latency_endpoint.planning.simulation.published import CASES, gains
from low_latency_endpoint.planning.simulation.searching import (
    Candidate,
    Found,
    Goal,
    adopt,
    pareto_front,
    parse_goal,
    search,
)
from low_latency_endpoint.planning.simulation.traffic import Shape
from low_latency_endpoint.settings import load_settings, plan_endpoint

REPOSITORY = Path(__file__).parents[3]
SHIPPED = str(REPOSITORY / "endpoint.yaml")
RESULT = {
    "schema": "low-latency-endpoint/load-test-result/1",
    "source": "a load test of the tests",
    "instances": 1,
    "rate": 200.0,
    "concurrency": 10,
    "service_time_ms": {"quantiles": {"0": 31, "0.5": 42, "0.99": 118, "1": 160}},
}


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["simulate", *arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


@pytest.fixture(scope="module")
def model() -> Model:
    settings = load_settings(SHIPPED)
    endpoint = settings.endpoints["sentiment"]
    assert endpoint.throughput
    return model_of_plan(plan_endpoint(settings, "sentiment"), latency=endpoint.latency.target,
                         throughput=endpoint.throughput.measured)


# --- the command -------------------------------------------------------------------------------

def test_the_answer_comes_first_as_a_sentence() -> None:
    output = " ".join(run(SHIPPED, "--replications", "4").split())  # wrapped where it is narrow
    assert re.match(r"At 1,000 requests per second 8 instances with LEAST_OUTSTANDING_REQUESTS "
                    r"answer 99 of 100 within [\d.]+ ± [\d.]+ ms", output)
    assert output.index("target of 200 ms") < output.index("p99.9") < output.index("Assumed:")


def test_a_fleet_that_is_too_small_is_an_error_with_a_code() -> None:
    done = CliRunner().invoke(app, ["simulate", SHIPPED, "--instances", "4"])
    assert isinstance(done.exception, ConfigurationError)
    assert done.exception.code == "LLE877"


def test_json_holds_every_number_and_every_assumption() -> None:
    answer = json.loads(run(SHIPPED, "--compare-routing", "--json", "--replications", "4"))
    both = answer["routing"]
    assert set(both) == {"RANDOM", "LEAST_OUTSTANDING_REQUESTS"}
    for found in both.values():
        assert found["utilisation"]["mean"] == pytest.approx(0.5625, abs=0.01)  # 1000 / 8 x 4.5 ms
        assert found["littles_law"] < 1e-9
    assert any("--from-load-test" in each for each in answer["assumed"])


def test_a_load_test_replaces_the_assumptions(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps(RESULT), encoding="utf-8")
    answer = json.loads(run(SHIPPED, "--from-load-test", str(path), "--json"))
    assert "service times from a load test of the tests" in answer["assumed"]
    mean = read_load_test_result(path).service.mean_seconds
    assert answer["steady"]["utilisation"]["mean"] == pytest.approx(125 * mean / 10, rel=0.01)


def test_the_page_is_whole_and_has_the_answer(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    page = tmp_path / "page.html"
    run(SHIPPED, "--compare-routing", "--replications", "3", "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert "LEAST_OUTSTANDING_REQUESTS" in text
    assert "Assumed" in text
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", text)  # nothing from elsewhere


def test_prefix_routing_says_how_it_is_simulated() -> None:
    answer = json.loads(run(SHIPPED, "--routing", "prefix-aware", "--json", "--replications", "3"))
    assert answer["steady"]["routing"] == "LEAST_OUTSTANDING_REQUESTS"
    assert any(each.startswith("PREFIX_AWARE is simulated as") for each in answer["assumed"])


def test_options_that_exclude_each_other_are_refused() -> None:
    for wrong in (["--compare-routing", "--traffic", "spike"], ["--adopt", "x.md"],
                  ["--service-time", "45"]):
        done = CliRunner().invoke(app, ["simulate", SHIPPED, *wrong])
        assert done.exit_code == 2


def test_what_befalls_an_endpoint_over_time_is_told() -> None:
    output = run(SHIPPED, "--traffic", "spike", "--tps", "100", "--replications", "2")
    assert output.startswith("spike: 99 of 100 requests within")
    assert "made, not recorded" in output


@pytest.mark.parametrize("arguments", [
    [], ["--compare-routing"], ["--search", "p99<200ms at 1000 TPS, cheapest"]],
    ids=["plain", "compare", "search"])
def test_commands_answer_with_nothing_compiled_yet(arguments: list[str], tmp_path: Path) -> None:
    """How long it takes, `make bench` says."""
    pytest.importorskip("numba")
    done = subprocess.run(
        [sys.executable, "-c", "from low_latency_endpoint.cli import app; app()", "simulate",
         SHIPPED, "--processes", "2", *arguments],
        capture_output=True, text=True, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert list(tmp_path.rglob("*.nbc")), "the machine code is kept for the next command"


# --- the load test's file ----------------------------------------------------------------------

def test_the_file_survives_writing_and_reading() -> None:
    first = load_test_result_of(RESULT)
    again = load_test_result_of(json.loads(json.dumps(first.to_dict())))
    assert again.rate_per_instance == 200
    assert again.service.mean_seconds == pytest.approx(first.service.mean_seconds, rel=1e-3)


@pytest.mark.parametrize(("change", "code"), [
    ({"schema": "other"}, "LLE873"), ({"rate": -1}, "LLE855"), ({"rate": "fast"}, "LLE855"),
    ({"service_time_ms": {}}, "LLE873"), ({"service_time_ms": {"samples": [1, "x"]}}, "LLE873"),
    ({"service_time_ms": {"samples": [5]}}, "LLE870"), ({"concurrency": 0}, "LLE853"),
    ({"service_time_ms": {"quantiles": {"0.5": 1, "1": 2}}}, "LLE870"),
    ({"service_time_ms": {"quantiles": {"0": 3, "1": 2}}}, "LLE870"),
    ({"instances": 0}, "LLE852"), ({"slope": -1}, "LLE854"),
])
def test_a_bad_file_has_a_code(change: dict[str, object], code: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_test_result_of({**RESULT, **change}, "result.json")
    assert caught.value.code == code


@pytest.mark.parametrize("content", [None, "", "[1]", "{"])
def test_no_file_no_json_no_object(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_load_test_result(path)
    assert caught.value.code == "LLE873"


# --- the search --------------------------------------------------------------------------------

def test_goals_are_read_or_refused() -> None:
    assert parse_goal("p99 < 0.2s at 1,000 TPS, fastest") == Goal(99.0, 0.2, 1000.0, "fastest")
    assert parse_goal("p99.9<500ms at 20 tps").percentile == 99.9
    for text in ("", "p99<200 at 1000 TPS", "p98<200ms at 10 TPS", "p99<0ms at 10 TPS"):
        with pytest.raises(ConfigurationError) as caught:
            parse_goal(text)
        assert caught.value.code == "LLE874"


SHORT = Shape("short", "a rise", ((600.0, 0.3), (1800.0, 1.0)))


def test_a_search_finds_what_holds_and_the_plan_adopts_it(model: Model) -> None:
    result = search(model, parse_goal("p99<200ms at 100 TPS, cheapest"), over=SHORT,
                    requests=20_000)
    best = result.best
    assert best
    assert best.holds
    assert best.latency.high < 0.2
    # One instance fewer does not hold it, or cannot serve the rate at all.
    fewer = [each for each in result.steady if each.cost < best.cost - 0.5]
    assert not any(each.holds for each in fewer)
    capacity = model.steady(instances=1).instance_rate
    assert best.candidate.maximum == int(100 / capacity) + 1
    # What is told apart is judged again by a simulation of its own.
    again = simulate(
        model.steady(instances=best.candidate.maximum, routing=best.candidate.routing)
        .with_(traffic=model.steady().traffic.__class__(100.0)), requests=50_000, seed=9)
    assert again.percentile(99.0).mean == pytest.approx(best.latency.mean, rel=0.1)

    settings = load_settings(SHIPPED)
    plan = adopt(plan_endpoint(settings, "sentiment"), best, result)
    decision = plan["min_instances"]
    assert decision.value == best.candidate.minimum
    assert "simulation" in decision.rule
    assert "confirm it with a load test" in decision.note
    assert plan["subnet_size"] == plan_endpoint(settings, "sentiment")["subnet_size"]


def test_a_front_holds_nothing_that_is_beaten(model: Model) -> None:
    result = search(model, parse_goal("p99<200ms at 100 TPS"), over=SHORT, requests=10_000)
    for front, all_found in ((result.front, result.steady),
                             (result.front_over_time, result.over_time)):
        assert front == pareto_front(all_found)
        for point in front:
            assert not any(other.cost < point.cost and other.latency.mean < point.latency.mean
                           for other in all_found)


def test_an_impossible_goal_finds_nothing(model: Model) -> None:
    result = search(model, parse_goal("p99<20ms at 100 TPS"), over=SHORT, requests=10_000)
    assert result.best is None


# --- the published table -----------------------------------------------------------------------

def test_batching_gives_the_published_gains_and_one_worker_does_not() -> None:
    cases = {case.name: case for case in CASES}
    batching = gains(cases["batching, slope 0.4, CV 1"], (5, 20), requests=40_000, replications=6)
    for gain, expected in zip(batching, (0.14545, 0.17273), strict=True):
        assert gain.throughput.mean == pytest.approx(expected, abs=0.006)  # arrival theorem
        assert -0.33 < gain.p99.mean < -0.04
    for name in ("1 worker, CV 0.25", "1 worker, CV 1"):
        (one,) = gains(cases[name], (20,), requests=40_000, replications=6)
        assert one.p99.mean < -0.40
    (four,) = gains(cases["4 workers, CV 0.5"], (20,), requests=40_000, replications=6)
    assert four.throughput.mean > 0.25


def test_one_instance_leaves_nothing_to_route() -> None:
    (gain,) = gains(CASES[0], (1,), requests=20_000, replications=3)
    assert (gain.throughput.mean, gain.p99.mean) == (0, 0)


def test_a_plan_that_scales_on_concurrency_takes_the_search_over_with_its_metric() -> None:
    settings = load_settings(SHIPPED)
    endpoint = settings.endpoints["sentiment"]
    scaling = endpoint.scaling.model_copy(update={"concurrency_target": 3.0})
    by_concurrency = settings.model_copy(update={"endpoints": {
        "sentiment": endpoint.model_copy(update={"scaling": scaling})}})
    plan = plan_endpoint(by_concurrency, "sentiment")
    assert plan["scaling_target"].value == 3
    assert endpoint.throughput
    made = model_of_plan(plan, latency=endpoint.latency.target,
                         throughput=endpoint.throughput.measured)
    assert made.scales
    assert any("simulated on invocations" in each for each in made.assumed)
    found = Found(Candidate("RANDOM", 2, 8, 0.5, 60.0), Estimate(0.1, 0.01), 4.0, 0, True)
    result = SimpleNamespace(goal=Goal(99, 0.2, 1000), seed=1, assumed=(), tps_per_instance=200.0)
    adopted = adopt(plan, found, cast(Any, result))
    assert adopted["scaling_target"].value == 6000  # 200 x 0.5 x 60
    assert adopted["scaling_target"].unit == "invocations per instance per minute"
    assert adopted["scaling_metric"].value == "SageMakerVariantInvocationsPerInstance"
