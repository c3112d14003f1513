"""From settings to answers: the command, the load test's file, the published table."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from examples.published_routing_gains import CASES, gains
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.traffic_shapes import shape, shapes
from low_latency_endpoint.settings import parse_settings, plan_endpoint
from low_latency_endpoint.simulate import Scenario
from low_latency_endpoint.simulate.assumptions import model_of_plan
from low_latency_endpoint.simulate.load_test_result import (
    load_test_result_of,
    read_load_test_result,
)

REPOSITORY = Path(__file__).parents[2]
SHIPPED = str(REPOSITORY / "tests" / "sentiment.yaml")
RESULT = {
    "schema": "low-latency-endpoint/load-test-result/1",
    "source": "a load test of the tests",
    "instances": 1,
    "rate": 200.0,
    "concurrency": 10,
    "service_time_ms": {
        "quantiles": {"0": 31, "0.25": 38, "0.5": 42, "0.75": 50, "0.9": 66, "0.99": 118, "1": 160}
    },
}


MEASURED = ("--service-time", "45ms")


def run(settings: str, *arguments: str) -> str:
    done = CliRunner().invoke(app, ["simulate", "--settings", settings, *arguments])
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


# --- the command -------------------------------------------------------------------------------


def test_the_answer_comes_first_as_a_sentence() -> None:
    # wrapped where it is narrow
    output = " ".join(run(SHIPPED, *MEASURED, "--replications", "2").split())
    assert re.match(
        r"8 instances with LEAST_OUTSTANDING_REQUESTS at 1,000 requests per second: "
        r"99 of 100 within [\d.]+ ± [\d.]+ ms",
        output,
    )
    verdict = output.index(
        "within the 160 ms that the model may take of the callers' 200 ms"  # 80 % of them
    )
    assert verdict < output.index("p99.9") < output.index("Assumed - ")


@pytest.mark.parametrize("target", ["20ms", "200ms"])
def test_without_a_measured_service_time_there_is_no_verdict(tmp_path: Path, target: str) -> None:
    """It used to be made from the target, so that every target was held."""
    settings = tmp_path / "endpoint.yaml"
    settings.write_text(
        Path(SHIPPED).read_text("utf-8").replace("p99: 200ms", f"p99: {target}"), "utf-8"
    )
    text = " ".join(run(str(settings), "--replications", "2", "--requests", "2000").split())
    assert text.startswith("Nobody has measured how long a call takes")
    assert not re.search(r"(within|above) the target", text)
    answer = json.loads(run(str(settings), "--replications", "2", "--json"))
    assert answer["verdicts"] == {}
    assert "steady" not in answer
    found = answer["if_a_call_takes"]
    assert len(found) == 10  # five times, two variations
    # Far from saturation a p99 is the law's own: mean x exp(2.3263 s - s^2 / 2), s^2 = ln(1 + CV^2).
    for each in found:
        factor = {0.5: 2.6852, 1.0: 4.9036}[each["variation"]]
        alone = factor * each["mean_service_ms"]
        assert each["p99_ms"] > 0.98 * alone
        if target != "20ms":  # there an instance works on one at once, and others wait
            assert each["p99_ms"] == pytest.approx(alone, rel=0.03)


@pytest.mark.parametrize(
    ("tps", "p99", "more", "busy"),
    [
        # p99 of a lognormal law is 2.6852 times its mean (variation 0.5): 0.6 x 80 ms / 2.6852 = 17.9 ms.
        (1, "100ms", {}, "2%"),
        (200, "50ms", {"concurrency": 64}, "3%"),  # 0.6 x 40 / 2.6852 = 8.9 ms, of 64 at once
    ],
)
def test_what_is_made_from_the_target_stays_within_it(
    tps: int, p99: str, more: dict[str, Any], busy: str
) -> None:
    text = Path(SHIPPED).read_text("utf-8").replace("p99: 200ms", f"p99: {p99}")
    text = re.sub(r"tps_per_instance: \d+", f"tps_per_instance: {tps}", text)
    text = re.sub(r"peak_tps: \d+", f"peak_tps: {4 * tps}", text)
    settings = parse_settings(text)
    throughput = settings.endpoints["sentiment"].throughput
    assert throughput
    model = model_of_plan(plan_endpoint(settings, "sentiment"), throughput=throughput, **more)
    (said,) = (each for each in model.assumed if "a request alone takes" in each)
    assert 2.6852 * model.service.mean_seconds <= 0.8 * float(p99.removesuffix("ms")) / 1000
    assert f"so it is {busy} busy" in said


def test_an_instance_is_as_busy_as_is_said_whatever_the_slope() -> None:
    settings = parse_settings(Path(SHIPPED).read_text("utf-8"))
    throughput = settings.endpoints["sentiment"].throughput
    assert throughput
    plan = plan_endpoint(settings, "sentiment")
    for slope in (0.0, 0.5, 3.0):
        model = model_of_plan(plan, throughput=throughput, concurrency=8, slope=slope)
        (said,) = (each for each in model.assumed if "a request alone takes" in each)
        assert "so it is 90% busy at the measured 200 requests per second" in said
        assert 0.9 * model.steady(instances=1).instance_rate == pytest.approx(200)


def test_each_target_is_held_against_the_models_part(tmp_path: Path) -> None:
    settings = tmp_path / "endpoint.yaml"
    text = Path(SHIPPED).read_text("utf-8")
    line = next(line for line in text.splitlines() if line.strip().startswith("p99: 200ms"))
    settings.write_text(
        text.replace(line, "      p50: 50ms\n      p99: 160ms\n      p99_9: 300ms"), "utf-8"
    )
    answer = json.loads(run(str(settings), *MEASURED, "--json"))
    # 45 ms on average, CV 0.5: p50 40.2, p99 120.8, p99.9 173 ms; of the callers' targets 80 %.
    assert {name: each["verdict"] for name, each in answer["verdicts"].items()} == {
        "p50": "above",
        "p99": "within",
        "p99.9": "within",
    }
    assert [each["model_target_ms"] for each in answer["verdicts"].values()] == pytest.approx(
        [40, 128, 240]
    )
    sentences = " ".join(answer["answer"])
    assert "above the 40 ms that the model may take of the callers' 50 ms" in sentences


def test_a_run_that_is_too_short_says_so() -> None:
    text = " ".join(
        run(SHIPPED, *MEASURED, "--tps", "1700", "--requests", "20000").split()  # load 0.956
    )
    assert "too short to tell p99" in text
    assert not re.search("within the|above the", text)
    answer = json.loads(run(SHIPPED, *MEASURED, "--tps", "1700", "--requests", "20000", "--json"))
    assert answer["verdicts"]["p99"]["verdict"] == "too short to tell"
    assert answer["steady"]["client_latency_ms"]["p99"]["half_width"] is None


def test_a_fleet_that_is_too_small_is_an_error_with_a_code() -> None:
    done = CliRunner().invoke(app, ["simulate", "--settings", SHIPPED, "--instances", "4"])
    assert isinstance(done.exception, ConfigurationError)
    assert done.exception.code == "LLS127"


def test_the_example_of_help_without_a_settings_file_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    help_text = CliRunner().invoke(app, ["simulate", "--help"]).output
    lines = re.sub(r"\\\n\s*", "", help_text).splitlines()
    (example,) = [
        line for line in lines if "--service-time" in line and "--compare-routing " in line
    ]
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*shlex.split(example)[1:], "--requests", "20000"])
    assert done.exit_code == 0, done.output


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
    pytest.importorskip("jinja2")
    page = tmp_path / "page.html"
    run(SHIPPED, "--compare-routing", "--replications", "3", "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert "LEAST_OUTSTANDING_REQUESTS" in text
    assert "Assumed" in text
    assert not re.search(r'<(script|link|img)[^>]+(src|href)="(?!data:)', text), "from elsewhere"


def test_the_page_leaves_out_what_the_runs_cannot_tell(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    page = tmp_path / "page.html"
    run(SHIPPED, *MEASURED, "--requests", "50000", "--html", str(page))  # too few for p99.9
    text = page.read_text(encoding="utf-8")
    assert "too short to tell" in text
    assert ">p99<" in text
    assert ">p99.9<" not in text.split("<table")[0]


def test_prefix_routing_says_how_it_is_simulated() -> None:
    answer = json.loads(
        run(SHIPPED, *MEASURED, "--routing", "prefix-aware", "--json", "--replications", "3")
    )
    assert answer["steady"]["routing"] == "LEAST_OUTSTANDING_REQUESTS"
    assert any(each.startswith("PREFIX_AWARE is simulated as") for each in answer["assumed"])


def test_a_language_model_is_refused(tmp_path: Path) -> None:
    settings = tmp_path / "endpoint.yaml"
    settings.write_text(
        Path(SHIPPED).read_text() + "    tokens: {input: 512, output: 64}\n", encoding="utf-8"
    )
    done = CliRunner().invoke(app, ["simulate", "--settings", str(settings), *MEASURED])
    assert isinstance(done.exception, ConfigurationError)
    assert done.exception.code == "LLS147"


@pytest.mark.parametrize(
    "wrong",
    [
        ("--compare-routing", "--traffic", "spike"),
        ("--service-time", "45"),
        ("--compare-routing", "--routing", "random"),
        ("--traffic", "spike", "--instances", "3"),
        ("--traffic", "spike", "--traffic-from", "counts.csv"),
        ("--traffic", "spike", "--period", "60s"),
        ("--from-load-test", "result.json", "--variation", "1"),
        ("--traffic", "spike", "--requests", "1000"),
        ("--service-time", "45ms", "--instance-start", "60s"),
        ("--variation", "1"),
        ("--concurrency", "8"),
    ],
    ids=" ".join,
)
def test_options_that_would_be_dropped_are_refused(wrong: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["simulate", "--settings", SHIPPED, *wrong])
    assert done.exit_code == 2, done.output


def test_prefix_routing_is_left_out_of_a_comparison_and_that_is_said(tmp_path: Path) -> None:
    settings = tmp_path / "endpoint.yaml"
    settings.write_text(
        Path(SHIPPED)
        .read_text("utf-8")
        .replace(
            "    warm_up:",
            "    routing: {prefix_aware: {prefix_length: 1024, "
            "concurrency_threshold: 16}}\n    warm_up:",
            1,
        ),
        "utf-8",
    )
    answer = json.loads(run(str(settings), "--compare-routing", "--json", "--replications", "3"))
    assert any(
        each.startswith("The settings route PREFIX_AWARE, which is not compared")
        for each in answer["answer"]
    )


def test_so_many_replications_as_were_asked_for() -> None:
    for arguments, found in (
        (("--traffic", "spike"), lambda answer: answer["traffic"]["spike"]),
        (MEASURED, lambda answer: answer["steady"]),
    ):
        answer = json.loads(
            run(SHIPPED, *arguments, "--tps", "50", "--replications", "5", "--json")
        )
        assert found(answer)["replications"] == 5


def test_what_befalls_an_endpoint_over_time_is_told() -> None:
    output = run(SHIPPED, "--traffic", "spike", "--tps", "100", "--replications", "2")
    # Nobody measured: 160 ms x 0.6 / 2.53 (p99 of the law over its mean), for 8 at once.
    assert output.startswith("If a call takes 36 ms on average: spike: 99 of 100 requests within")
    assert "made by hand, not recorded" in output


def test_json_holds_the_time_over_the_target_and_the_timeline() -> None:
    answer = json.loads(run(SHIPPED, "--traffic", "spike", "--tps", "100", "--json"))
    found = answer["traffic"]["spike"]
    assert found["replications"] == 4
    assert set(found["time_over_target_seconds"]) == {"mean", "half_width"}
    assert len(found["timeline"]) == 50  # minutes
    assert sum(line["requests"] for line in found["timeline"]) == pytest.approx(
        found["requests"] / 4
    )


def test_all_shapes_are_those_that_ship() -> None:
    options = ("--traffic", "all", "--tps", "1", "--replications", "2", "--json")
    assert list(json.loads(run(SHIPPED, *options))["traffic"]) == list(shapes())


def test_recorded_traffic_is_simulated_at_the_planned_peak(tmp_path: Path) -> None:
    counts = tmp_path / "counts.csv"
    lines = [f"{60 * minute},{100 if minute < 10 else 1000}" for minute in range(20)]
    counts.write_text("\n".join(lines), "utf-8")
    options = ("--traffic-from", str(counts), *MEASURED, "--replications", "2", "--json")
    answer = json.loads(run(SHIPPED, *options))
    assert list(answer["traffic"]) == ["counts"]
    assert any(
        "counts (recorded: 20 periods of 60 s, at most 16.67 requests per second, times in seconds "
        "from a start) has its peak at 1,000" in sentence
        for sentence in answer["assumed"]
    )


@pytest.mark.realtime
def test_the_first_command_compiles_and_says_so(tmp_path: Path) -> None:
    pytest.importorskip("numba")
    program = "from low_latency_endpoint.cli import app; app()"
    command = [
        sys.executable,
        "-c",
        program,
        "simulate",
        "--settings",
        SHIPPED,
        "--processes",
        "2",
        *MEASURED,
    ]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        for _ in range(2)
    )
    assert first.stderr.count("Compiling the simulator") == 1
    assert second.stderr == ""
    assert first.stdout == second.stdout != ""


# --- the load test's file ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"schema": "other"}, "LLS123"),
        ({"rate": -1}, "LLS106"),
        ({"rate": "fast"}, "LLS106"),
        ({"service_time_ms": {}}, "LLS123"),
        ({"service_time_ms": {"samples": [1, "x"]}}, "LLS123"),
        ({"service_time_ms": {"samples": [5]}}, "LLS120"),
        ({"concurrency": 0}, "LLS104"),
        ({"service_time_ms": {"quantiles": {"0.5": 1, "1": 2}}}, "LLS120"),
        ({"service_time_ms": {"quantiles": {"0": 3, "1": 2}}}, "LLS120"),
        ({"service_time_ms": {"quantiles": {"0": 1, "0.5": 3, "0.50001": 2, "1": 4}}}, "LLS120"),
        ({"instances": 0}, "LLS103"),
        ({"slope": -1}, "LLS105"),
    ],
)
def test_a_bad_file_has_a_code(change: dict[str, object], code: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_test_result_of({**RESULT, **change}, "result.json")
    assert caught.value.code == code


INVALID = {
    "kind": "client-bound",
    "severity": "invalid",
    "title": "the generator was the limit",
    "evidence": ["cpu 99 %"],
}
LIMIT = {"tps_per_instance": 187.0, "rate": 190.0, "problem": "", "lower_bound": False}


@pytest.mark.parametrize(
    "change",
    [
        {"verdicts": [INVALID], "limit": LIMIT},
        {"verdicts": [INVALID]},
        {"limit": {**LIMIT, "problem": "not confirmed"}},
        {"limit": None, "interrupted": True},
        {"limit": None, "failure": "the generator ended"},
    ],
)
def test_what_a_plan_refuses_is_not_simulated(change: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_test_result_of({**RESULT, **change}, "result.json")
    assert caught.value.code == "LLT114"


def simulated(folder: Path, change: dict[str, object]) -> dict[str, object]:
    path = folder / "result.json"
    path.write_text(json.dumps({**RESULT, **change}), encoding="utf-8")
    return json.loads(run(SHIPPED, "--from-load-test", str(path), "--json"))


def test_the_simulator_takes_the_throughput_that_the_plan_takes() -> None:
    assert load_test_result_of({**RESULT, "limit": LIMIT}).rate_per_instance == 187


@pytest.mark.parametrize(
    ("limit", "holds"),
    [
        (None, "200"),
        ({**LIMIT, "tps_per_instance": 150.0, "lower_bound": True}, "200"),
        ({**LIMIT, "tps_per_instance": 300.0, "lower_bound": True}, "300"),
    ],
)
def test_a_rate_that_is_no_limit_is_not_taken_for_one(
    limit: object, holds: str, tmp_path: Path
) -> None:
    answer = simulated(tmp_path, {"limit": limit, "rate": 10.0, "concurrency": None})
    assert any(
        each.startswith(f"an instance holds {holds} requests per second")
        for each in answer["assumed"]
    )


def test_without_any_throughput_it_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text(json.dumps({**RESULT, "limit": None, "concurrency": None}), encoding="utf-8")
    text = Path(SHIPPED).read_text("utf-8").splitlines(keepends=True)
    at = next(number for number, line in enumerate(text) if line.strip() == "throughput:")
    settings = tmp_path / "endpoint.yaml"
    settings.write_text("".join(text[:at] + text[at + 5 :]), "utf-8")
    done = CliRunner().invoke(
        app,
        ["simulate", "--settings", str(settings), "--tps", "100", "--from-load-test", str(path)],
    )
    assert isinstance(done.exception, ConfigurationError)
    assert done.exception.code == "LLS125"


def test_a_load_test_of_something_else_is_a_warning(tmp_path: Path) -> None:
    answer = simulated(
        tmp_path, {"endpoint": "toxicity", "fleet": {"instance_type": "ml.g5.xlarge"}}
    )
    assert answer["warnings"] == [
        "the load test called toxicity, the settings' endpoint is sentiment",
        "the load test ran on ml.g5.xlarge, the settings have ml.m5.12xlarge: measure again on the "
        "type that is planned",
    ]
    assert not simulated(tmp_path, {"endpoint": "sentiment"})["warnings"]


def test_the_slope_that_no_load_test_measures_is_among_what_is_assumed(tmp_path: Path) -> None:
    assert any("slope 0" in each for each in simulated(tmp_path, {"slope": 0.0})["assumed"])
    assert not any("slope 0" in each for each in simulated(tmp_path, {"slope": 0.01})["assumed"])


@pytest.mark.parametrize("content", [None, "", "[1]", "{"])
def test_no_file_no_json_no_object(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        read_load_test_result(path)
    assert caught.value.code == "LLS123"


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


@pytest.mark.parametrize(("mean", "variation"), [(30, 0.2), (100, 0.5), (110, 0.3), (150, 0.0)])
def test_more_instances_are_no_help_where_a_call_alone_is_late(mean: int, variation: float) -> None:
    """The model may take 160 ms; of a log-normal law p99 is e ** (mu + 2.326 sigma)."""
    sigma = math.sqrt(math.log1p(variation**2))
    alone = mean * math.exp(2.3263 * sigma - sigma**2 / 2)
    options = ["--service-time", f"{mean}ms", "--variation", str(variation)]
    output = " ".join(run(SHIPPED, *options, "--concurrency", "90", "--replications", "2").split())
    assert ("so more instances do not help" in output) == (alone > 160)


@pytest.mark.parametrize("name", sorted(shapes()))
def test_a_stated_start_moves_all_that_an_instance_starts_for(name: str) -> None:
    """Whatever befalls the fleet: no part of a scenario keeps the assumed five minutes."""
    text = Path(SHIPPED).read_text("utf-8")

    def scenario_with(start: str) -> Scenario:
        settings = parse_settings(text)
        endpoint = settings.endpoints["sentiment"]
        scaling = replace(endpoint.scaling, instance_start=start)
        settings = replace(settings, endpoints={"sentiment": replace(endpoint, scaling=scaling)})
        plan = plan_endpoint(settings, "sentiment")
        model = model_of_plan(plan, throughput=endpoint.throughput)
        return model.over_time(shape(name))

    scenario = scenario_with("11m")
    starts = [scenario.scaling, scenario.deployment, *scenario.faults]
    named = {"instance_seconds", "replacement_seconds"}
    found = [
        getattr(part, field.name)
        for part in starts
        if part is not None
        for field in fields(part)
        if field.name in named
    ]
    assert found
    assert set(found) == {660.0}


ROUTING = "simulate --compare-routing --service-time 40ms --concurrency 4 --replications 2"
STATED = "--tps 300 --instances 5"


def test_routing_is_compared_without_a_settings_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the same numbers as with one."""
    line = [*ROUTING.split(), *STATED.split(), "--requests", "2000", "--json"]
    of_settings = json.loads(CliRunner().invoke(app, [*line, "--settings", SHIPPED]).output)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, f"{done.output} {done.exception}"
    answer = json.loads(done.output)
    assert answer["settings"] is None
    assert answer["answer"] == of_settings["answer"]
    for name, strategy in answer["routing"].items():
        assert strategy["client_latency_ms"] == of_settings["routing"][name]["client_latency_ms"]


@pytest.mark.parametrize(
    ("stated", "missing"),
    [
        ("--tps 300", "needs --instances too"),
        ("--instances 5", "needs --tps too"),
        ("", "needs --tps and --instances too"),
    ],
)
def test_what_no_settings_file_states_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: str, missing: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*ROUTING.split(), *stated.split()])
    assert done.exit_code == 2
    assert missing in " ".join(done.output.replace("│", " ").split())
