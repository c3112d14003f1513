"""Every stated target is judged by name, or is refused; none is dropped beside another one's verdict."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner

from low_latency_endpoint import LatencyTarget
from low_latency_endpoint.cli import app
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.traffic_shapes import shape
from low_latency_endpoint.settings import parse_settings, plan_endpoint
from low_latency_endpoint.simulate import Constant, OpenLoop, Scenario, SimulationResult, simulate
from low_latency_endpoint.simulate.assumptions import ModelTarget, SimulatedEndpoint, model_of_plan
from low_latency_endpoint.simulate.estimates import Estimate
from low_latency_endpoint.simulate.wording import (
    conditional_sentences,
    shape_sentence,
    steady_sentences,
    steady_table,
    verdict_of,
)

SHIPPED = (Path(__file__).parents[1] / "sentiment.yaml").read_text("utf-8")
FIELDS = [field.name for field in dataclasses.fields(LatencyTarget)]
OF_TOKENS = [name for name in FIELDS if name.startswith(("ttft_", "itl_"))]
WHOLE = [name for name in FIELDS if name not in [*OF_TOKENS, "overhead_share"]]


def settings_of(latency: dict[str, Any], rates: str = "") -> str:
    text = re.sub(r"    latency:\n.*\n", f"    latency: {json.dumps(latency)}\n", SHIPPED)
    if rates:
        text = re.sub(r"    throughput:\n(      .*\n)+", f"    throughput: {rates}\n", text)
    return text


def model_with(latency: dict[str, Any], rates: str = "", **options: Any) -> SimulatedEndpoint:
    settings = parse_settings(settings_of(latency, rates))
    throughput = settings.endpoints["sentiment"].throughput
    return model_of_plan(plan_endpoint(settings, "sentiment"), throughput=throughput, **options)


def shown_name(field: str) -> str:
    """As the answer writes a target: p99_9 is p99.9."""
    return field.replace("_", ".")


def figure_of(field: str, result: SimulationResult) -> dict[str, float | None]:
    """What the result for machines says of it, in milliseconds."""
    name = "mean" if field == "average" else shown_name(field)
    return result.to_dict()["client_latency_ms"][name]


def compared(figure: dict[str, float | None], model_ms: float) -> set[str]:
    """What a comparison of the interval with the model's part allows to say."""
    mean, half = figure["mean"], figure["half_width"]
    if half is None or mean is None:
        return {"too short to tell"}
    if mean + half < model_ms:
        return {"within"}
    if mean - half > model_ms:
        return {"above"}
    return {"too near to tell", "at the limit", "above"}


def random_targets(random: Random, around_ms: float) -> dict[str, str]:
    """Some fields with times that do not fall from percentile to percentile."""
    stated = [name for name in WHOLE if random.random() < 0.5] or [random.choice(WHOLE)]
    times = sorted(round(around_ms * random.uniform(0.5, 5.0), 2) for _ in stated)
    ordered = sorted(stated, key=lambda name: (name == "average", shown_name(name)))
    latency = {name: f"{time}ms" for name, time in zip(ordered, times, strict=True)}
    if "average" in latency:
        latency["average"] = f"{round(around_ms * random.uniform(0.8, 2.0), 2)}ms"
    return latency


@pytest.mark.parametrize("seed", range(60))
def test_each_stated_target_has_its_own_verdict(seed: int) -> None:
    """In the sentences, the table and the result for machines; of a mean and of percentiles alike."""
    random = Random(seed)
    mean_ms = random.uniform(20.0, 60.0)
    share = random.choice([0.1, 0.2, 0.4])
    stated = random_targets(random, mean_ms)
    model = model_with(
        {**stated, "overhead_share": share},
        service_seconds=mean_ms / 1000,
        variation=random.choice([0.0, 0.5, 1.5]),
    )
    assert [target.name for target in model.targets] == [shown_name(name) for name in stated]
    result = simulate(
        model.steady(), requests=random.choice([1000, 4000, 20_000]), replications=3, seed=seed
    )
    sentences = steady_sentences(model, result)
    rows = {row[0]: row[1] for row in steady_table({"": result}, model.targets).rows}
    for name, target in zip(stated, model.targets, strict=True):
        callers_ms = float(stated[name].removesuffix("ms"))
        model_ms = callers_ms * (1 - share)
        allowed = compared(figure_of(name, result), model_ms)
        assert verdict_of(target, result) in allowed
        (row,) = (
            cell
            for head, cell in rows.items()
            if head.startswith(("Mean" if name == "average" else shown_name(name)) + " against")
        )
        assert row == verdict_of(target, result)
        (sentence,) = (said for said in sentences if names(said, name, alone=len(stated) == 1))
        if allowed == {"too short to tell"}:
            assert "too short to tell" in sentence or "too few to tell" in sentence
            assert not re.search("within the|above the", sentence)
        else:
            said = re.search(r"(?:: |That is )(within|above|too near|at the limit)", sentence)
            assert said, sentence
            assert any(word.startswith(said[1]) for word in allowed), (sentence, allowed)
            assert f"the callers' {callers_ms:,g}"[:16] in sentence


def names(sentence: str, field: str, *, alone: bool) -> bool:
    """Whether a sentence is the one with the verdict on a field's target."""
    if field == "average":
        return sentence.startswith("The average")
    if field == "p99" and (alone or "to tell p99" in sentence):
        return "99 of 100 within" in sentence or "to tell p99" in sentence.replace("p99.9", "")
    return re.match(rf"{re.escape(shown_name(field))}(:| is)", sentence) is not None


@pytest.mark.parametrize("field", OF_TOKENS)
@pytest.mark.parametrize("beside", [{}, {"p99": "2s"}], ids=["alone", "beside p99"])
def test_a_target_of_tokens_is_refused(field: str, beside: dict[str, str]) -> None:
    """Even without tokens: no simulated call has a first token."""
    with pytest.raises(ConfigurationError) as caught:
        model_with({**beside, field: "500ms"}, service_seconds=0.045)
    assert caught.value.code == "LLS147"


def test_targets_are_those_that_the_alarms_watch() -> None:
    latency = {"p50": "40ms", "p99_9": "333.333ms", "average": "60ms", "overhead_share": 0.3}
    plan = plan_endpoint(parse_settings(settings_of(latency)), "sentiment")
    parts = [target.model * 1000 for target in model_with(latency, service_seconds=0.02).targets]
    watched = [alarm.milliseconds for alarm in plan.alarms if alarm.metric == "ModelLatency"]
    assert parts == pytest.approx(watched, rel=1e-12)


def test_rare_calls_have_verdicts_although_no_alarm_watches_them() -> None:
    """At a call in 1,000 s the plan sets no alarm; all targets were dropped with it."""
    rare = "{peak_tps: 0.001, tps_per_instance: 5}"
    model = model_with({"average": "40ms", "p99": "200ms"}, rare, service_seconds=0.045)
    result = simulate(model.steady(), requests=20_000, replications=3)
    # 45 ms on average and p99 121 ms (log-normal, CV 0.5) against 32 and 160 ms.
    assert {target.name: verdict_of(target, result) for target in model.targets} == {
        "average": "above",
        "p99": "within",
    }


@pytest.mark.parametrize(("average", "helps"), [("50ms", False), ("60ms", True)])
def test_more_instances_are_no_help_where_the_mean_alone_is_late(average: str, helps: bool) -> None:
    """45 ms alone, four at once with a slope of 0.5: more while others are at work."""
    model = model_with(
        {"average": average}, service_seconds=0.045, concurrency=4, slope=0.5, peak_tps=200
    )
    result = simulate(model.steady(), requests=100_000, replications=3)
    (target,) = model.targets
    assert verdict_of(target, result) == "above"
    # The model may take 40 or 48 ms.
    said = " ".join(steady_sentences(model, result))
    assert ("a request alone takes 45 ms on average, so more instances do not" in said) != helps


@pytest.mark.parametrize("time", [0.001, 0.0125, 0.033, 0.1, 1 / 3])
def test_a_constant_mean_that_is_the_target_is_at_the_limit(time: float) -> None:
    """Means are not counted in bins: one part in 10,000 more is above, and less is within.

    Late calls, which are counted at an equal target for p99, decide nothing of it.
    """
    scenario = Scenario(
        service=Constant(time),
        traffic=OpenLoop(2 / time),
        instances=1,
        concurrency=50,
        latency_target=time,
    )
    result = simulate(scenario, requests=20_000, replications=3)
    verdicts = {
        share: verdict_of(ModelTarget(None, time, share * time), result)
        for share in (0.9999, 1.0, 1.0001)
    }
    assert verdicts == {0.9999: "above", 1.0: "at the limit", 1.0001: "within"}


@pytest.mark.parametrize("seed", range(12))
def test_what_is_not_judged_over_time_is_named(seed: int) -> None:
    random = Random(seed)
    stated = random_targets(random, 45.0)
    model = model_with(stated, service_seconds=0.045)
    flat = dataclasses.replace(shape("steady"), levels=((180.0, 0.02),))
    result = simulate(model.over_time(flat), replications=2, **model.length_of(flat))
    sentence = shape_sentence(model, flat, result)
    found = re.search(r"not judged over time, where only a target for p99 is: ([^;]*)\.$", sentence)
    others = [shown_name(name) for name in stated if name != "p99"]
    assert (found[1].split(", ") if found else []) == others
    assert ("p99 within" in sentence or "p99 above" in sentence) == ("p99" in stated)


@pytest.mark.parametrize("seed", range(40))
def test_each_target_has_what_follows_if_nobody_measured(seed: int) -> None:
    """A time keeps a target if it is within at each variation, and misses it if above at one."""
    random = Random(seed)
    latency = random_targets(random, 50.0) | {"p99": "2s"}
    if "p99_9" in latency:
        latency["p99_9"] = "2s"
    model = model_with(latency)
    assert not model.measured
    found = {
        target: {
            (seconds, variation): Estimate(
                target.model * random.uniform(0.5, 1.2), random.choice([1e-4, 0.01, math.inf])
            )
            for seconds in (0.016, 0.032, 0.048)
            for variation in (0.5, 1.0)
        }
        for target in model.targets
    }
    sentences = conditional_sentences(model, found, 20_000)
    for target, values in found.items():
        named = "the average" if target.percentile is None else target.name
        text = " ".join(said for said in sentences if f" {named} within" in said)
        kept: list[str] = []
        unknown: list[str] = []
        for seconds in (0.016, 0.032, 0.048):
            both = [values[seconds, variation] for variation in (0.5, 1.0)]
            time = f"{1000 * seconds:g} ms"
            if all(value.high < target.model for value in both):
                kept.append(time)
            elif not any(value.low > target.model for value in both):
                unknown.append(time)
        assert (f"Up to {kept[-1]} on average" in text) if kept else ("Up to" not in text)
        assert ("None of the times" in text) == (not kept and not unknown)
        assert (f"a mean of {', '.join(unknown)} keeps" in text) == bool(unknown)


def run_json(tmp_path: Path, latency: dict[str, Any], *options: str) -> dict[str, Any]:
    path = tmp_path / "endpoint.yaml"
    path.write_text(settings_of(latency), encoding="utf-8")
    done = CliRunner().invoke(app, ["simulate", "--settings", str(path), *options, "--json"])
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


# 45 ms on average and p99 121 ms (log-normal, CV 0.5): the model may take 40 and 160 ms.
MISSED = {"average": "50ms", "p99": "200ms"}
EXPECTED = {"average": "above", "p99": "within"}


def test_the_command_judges_the_average_for_machines(tmp_path: Path) -> None:
    options = ("--service-time", "45ms", "--replications", "2")
    answer = run_json(tmp_path, MISSED, *options)
    assert {name: one["verdict"] for name, one in answer["verdicts"].items()} == EXPECTED
    assert any("The average is 45" in sentence for sentence in answer["answer"])
    compared_answer = run_json(tmp_path, MISSED, *options, "--compare-routing")
    for found in compared_answer["routing"].values():
        assert {name: one["verdict"] for name, one in found["verdicts"].items()} == EXPECTED


def test_an_average_alone_has_a_verdict(tmp_path: Path) -> None:
    options = ("--service-time", "45ms", "--replications", "2")
    answer = run_json(tmp_path, {"average": "50ms"}, *options)
    assert answer["verdicts"]["average"]["verdict"] == "above"
    assert answer["verdicts"]["average"]["model_target_ms"] == pytest.approx(40)


def test_what_is_not_measured_has_the_average_for_machines(tmp_path: Path) -> None:
    answer = run_json(tmp_path, MISSED, "--replications", "2", "--requests", "2000")
    assert answer["verdicts"] == {}
    for tried in answer["if_a_call_takes"]:
        assert tried["average_ms"] > 0.9 * tried["mean_service_ms"]
