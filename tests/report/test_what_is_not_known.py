"""A sentence that was not tested is not said: neither the all-clear nor its negation.

Each function that gives a verdict gets what is too short, too few or unread, and nothing else.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.load_test.report import tone
from low_latency_endpoint.load_test.report import verdict as load_verdict
from low_latency_endpoint.load_test.search.judging import LatencyGoal
from low_latency_endpoint.load_test.search.run_plans import confirm_plan, rate_plan
from low_latency_endpoint.load_test.search.saturation import verdicts
from low_latency_endpoint.load_test.search.serving import JoinedMetrics
from low_latency_endpoint.operate.sagemaker_jobs import Job, recommendations
from low_latency_endpoint.settings import load_settings, plan_endpoint
from low_latency_endpoint.simulate import compare, simulate
from low_latency_endpoint.simulate.assumptions import SimulatedEndpoint, model_of_plan
from low_latency_endpoint.simulate.estimates import Estimate
from low_latency_endpoint.simulate.wording import (
    comparison_sentence,
    conditional_sentences,
    steady_sentences,
)
from tests.load_test.fake_account import report_of

UNKNOWN = Estimate(0.1, math.inf)
#: Both sentences of each verdict, as far as it has them.
YES = r"\b(holds?|keeps?) p?\d|\bkeep p99 within the|That is within|Nothing is saturated|cuts p99"
NO = r"\bNone\b|does not hold|That is above|lengthens p99|\bmisses\b|the same p99"
GOAL = LatencyGoal({"p99": 0.2})
SHIPPED = Path(__file__).parents[1] / "sentiment.yaml"


def model_of(**options: Any) -> SimulatedEndpoint:
    settings = load_settings(SHIPPED)
    throughput = settings.endpoints["sentiment"].throughput
    plan = plan_endpoint(settings, "sentiment")
    return model_of_plan(plan, throughput=throughput, **options)


def said(sentences: list[str] | str) -> str:
    text = " ".join([sentences] if isinstance(sentences, str) else sentences)
    asked = re.sub(r"whether [^.:]*", "", text)
    assert not re.search(YES, asked), text
    assert not re.search(NO, asked), text
    return text


def test_simulated_times_nobody_measured() -> None:
    model = model_of()
    times = [(seconds, cv) for seconds in (0.016, 0.032) for cv in (0.5, 1.0)]
    (target,) = model.targets
    text = said(conditional_sentences(model, {target: dict.fromkeys(times, UNKNOWN)}, 53_900))
    assert "Too few requests to tell whether a mean of 16 ms, 32 ms keeps" in text
    assert "--requests 54000" in text


@pytest.mark.parametrize(
    ("slow", "expected"),
    [
        (Estimate(9.0, 0.1), "Up to 16 ms on average, of those tried, keep p99"),
        (UNKNOWN, "Too few requests to tell whether a mean of 32 ms keeps p99"),
    ],
)
def test_a_time_that_was_found_out_is_said(slow: Estimate, expected: str) -> None:
    found = {(0.016, 0.5): Estimate(0.02, 0.001), (0.032, 0.5): slow}
    model = model_of()
    (target,) = model.targets
    text = " ".join(conditional_sentences(model, {target: found}, 1))
    assert expected in text
    assert "Up to 16 ms" in text
    missed = dict.fromkeys(found, Estimate(9.0, 0.1))
    text = " ".join(conditional_sentences(model, {target: missed}, 1))
    assert "None of the times tried keeps p99" in text
    assert "Too few" not in text


def test_a_simulation_too_short() -> None:
    model = model_of(service_seconds=0.045)
    options: dict[str, Any] = {"replications": 2, "requests": 1000, "processes": 1}
    result = simulate(model.steady(), **options)
    assert result.too_short(99.0)
    assert "--requests" in said(steady_sentences(model, result))
    strategies = ("RANDOM", "LEAST_OUTSTANDING_REQUESTS")
    both = compare({each: model.steady(routing=each) for each in strategies}, **options)
    assert "--requests" in said(comparison_sentence(model, both))


@pytest.mark.parametrize("plan", [rate_plan, confirm_plan])
def test_a_load_test_of_too_few_requests(plan: Any) -> None:
    made = (
        rate_plan([20], seconds=6, goal=GOAL)
        if plan is rate_plan
        else confirm_plan(20, GOAL, seconds=6)
    )
    report = report_of(made, variation=0.5)
    assert report.run.loads[0].judgement.outcome == "unclear"
    assert "too few requests to say more" in said(load_verdict(report))
    assert (report.held, report.to_dict()["held"], tone(report)) == (None, None, "careful")


def test_a_load_test_without_a_latency_target() -> None:
    report = report_of(rate_plan([20], seconds=6, goal=LatencyGoal({})))
    assert load_verdict(report) == "No errors; there was no latency target to judge by"
    assert tone(report) == "careful"


def test_a_load_test_whose_metrics_were_not_read() -> None:
    report = report_of(confirm_plan(100, GOAL, seconds=20), variation=0.5)
    (found,) = verdicts(report.run, replace(report.fleet, maximum=None), JoinedMetrics())
    assert (found.kind, found.severity) == ("not-read", "risk")
    assert "was not read" in said(found.title)


def test_a_load_test_without_a_target_counts_its_errors() -> None:
    report = report_of(rate_plan([100], seconds=6), variation=0.5)
    assert load_verdict(report).startswith("No errors; ")
    step = report.run.loads[0]
    failing = replace(step, result=replace(step.result, errors={"timeout": 2}))
    some = replace(report, run=replace(report.run, steps=(failing,)))
    assert load_verdict(some).startswith("2 requests failed; ")


def test_a_recommendation_without_a_latency() -> None:
    answer = {"EndpointConfiguration": {"InstanceType": "ml.c6i.large"}, "ModelConfiguration": {}}
    job = Job("sentiment-1", "COMPLETED", "", {"InferenceRecommendations": [answer]})
    assert [result.within_target for result in recommendations(job, target_ms=150)] == [None]
