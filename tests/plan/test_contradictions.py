"""A number of another unit is said first, with the right one; calls that are rare get no scaling."""

from __future__ import annotations

import re
from fractions import Fraction
from random import Random
from typing import Any

import pytest
import yaml

from low_latency_endpoint.settings import explain_variants, parse_settings, planned_variants
from low_latency_endpoint.settings.variant_plans import plan_endpoint

from .test_sizing_jobs import LENGTHS, job

STREAM = {
    "instance_type": "ml.g6e.xlarge",
    "container": {"image": {"uri": "123456789012.dkr.ecr.us-east-1.amazonaws.com/vllm:1"}},
    "latency": {"ttft_p95": "1s", "itl_p95": "50ms"},
    "tokens": LENGTHS,
    "streaming": True,
}


@pytest.mark.parametrize(
    ("tps", "further", "first"),
    [
        (
            {},
            {"scaling": {"invocations_target": 130}},
            "minute is 130, .* 200 per second: .* are 7,800",
        ),
        ({}, {"scaling": {"invocations_target": 780}}, "is 780, .* are 7,800"),
        ({}, {"scaling": {"invocations_target": 781}}, None),
        ({}, {"scaling": {"invocations_target": 468_000}}, "are 7,800"),
        ({}, {"alarms": {"model_latency": {"p99": "160s"}}}, "160,000 ms, .* follow 160 ms"),
        ({}, {"alarms": {"model_latency": {"p99": "16ms"}}}, "at 16 ms, .* follow 160 ms"),
        ({}, {"alarms": {"model_latency": {"p99": "300ms"}}}, None),
        ({}, {"alarms": {"overhead_latency": {"Average": "4s"}}}, "4,000 ms, .* follow 40 ms"),
        ({}, {"alarms": {"model_latency": {"p90": "2s"}}}, None),  # no such target
        (
            {"tps_per_instance": 0.4},
            {},
            "calls of 0.4, .* 200 ms it answers, one after another, 5:",
        ),
        ({"tps_per_instance": 1}, {}, None),
        ({"tps_per_instance": 500_000, "peak_tps": 1e6}, {}, "48 vCPUs serve of HTTP 48,000"),
        ({"tps_per_instance": 12_000, "peak_tps": 60_000}, {}, None),
        ({}, {"instances": {"min": 80}}, "the minimum is 80, and .* needs 8"),
        ({}, {"instances": {"min": 40}}, None),
        (
            {"concurrency_per_instance": 40},
            {"scaling": {"metric": "concurrency", "concurrency_target": 2}},
            "are 26",
        ),
        (
            {"concurrency_per_instance": 40},
            {"scaling": {"metric": "concurrency", "concurrency_target": 20}},
            None,
        ),
    ],
)
def test_an_order_of_magnitude_is_said_first(tps, further, first):
    stated = job(tps | {"rise_tps_per_minute": 1}, **further)
    found = explain_variants(parse_settings(yaml.safe_dump(stated)), "e")["e"].warnings
    said = [number for number, each in enumerate(found) if each.id.startswith("contradiction")]
    assert said == ([0] if first else [])
    assert not first or re.search(first, found[0]), found[0]


@pytest.mark.parametrize(
    ("peak", "limit", "further", "alarms", "fleet"),
    [
        (0.002, 20, {}, 0, (2, 2)),
        (0.016, 20, {}, 0, (2, 2)),
        (0.017, 20, {}, 2, (2, 4)),  # more than one a minute
        (0.016, 0.15, {}, 2, (2, 4)),  # calls of six seconds: more than a tenth of an instance
        (1, 200, {}, 2, (2, 4)),
        (0.002, 20, {"instances": {"max": 3}}, 0, (2, 3)),  # as stated
        (0.002, 20, {"instances": {"min": 1, "initial": 1}}, 0, (1, 1)),
        (0.002, 20, {"scaling": {"invocations_target": 600}}, 0, (2, 4)),  # who states it, has it
    ],
)
def test_rare_calls_get_a_fixed_fleet_without_alarms_on_latency(
    peak, limit, further, alarms, fleet
):
    load = {"peak_tps": peak, "tps_per_instance": limit, "safety_factor": 0.5}
    settings = parse_settings(yaml.safe_dump(job(load, p99="7s", **further)))
    plan = plan_endpoint(settings, "e")
    assert (plan.fleet.minimum, plan.fleet.maximum) == fleet
    assert len(plan.alarms) == alarms
    ids = {each.id for each in plan.explanation.warnings}
    assert ("rare-calls" in ids, "fleet-never-scales" in ids) == (alarms == 0, False)
    # The longest period has ten requests beyond p99 from 10 / (0.01 x 21,600 s) on.
    assert ("few-samples-p99" in ids) is (alarms > 0 and peak < 0.0463)
    # And ten requests from 10 / 21,600 s on.
    assert ("few-requests" in ids) is (peak < 0.00047)


def test_of_rare_streams_the_gaps_alone_are_watched():
    rare = {"peak_tps": 0.002, "tps_per_instance": 1}
    plan = plan_endpoint(parse_settings(yaml.safe_dump(job(rare, **STREAM))), "e")
    assert plan.tokens
    assert {each.measures for each in plan.tokens.thresholds} == {"inter-token latency"}


UNDERCUT = "contradiction-slow-requests"
PERCENTILES = {"p50": "50", "p90": "10", "p95": "5", "p99": "1", "p99_9": "0.1"}  # % beyond


def _burn_rate(
    target: dict[str, int], overhead: str, threshold: int, objective: str
) -> tuple[Fraction, str]:
    """How fast a budget burns at models that just meet each target: the fastest, and whose.

    Such a model takes no time for most calls, and a little more than its part for the others.
    """
    found = [(Fraction(0), "")]
    for name, callers in target.items():
        taken = callers * (1 - Fraction(overhead)) + Fraction(1, 10**9)
        late = Fraction(PERCENTILES[name]) / 100 if taken > threshold else Fraction(0)
        found.append((late / (1 - Fraction(objective)), name))
    return max(found)


def test_an_objective_that_a_target_undercuts_is_said():
    random = Random(59)
    said = set()
    for _ in range(150):
        names = sorted(
            random.sample(list(PERCENTILES), random.randint(1, 3)), key=list(PERCENTILES).index
        )
        times = sorted(random.sample(range(20, 400, 20), len(names)))
        target: dict[str, int] = dict(zip(names, times, strict=True))
        overhead = random.choice(["0.2", "0.1", "0.5"])
        threshold = random.choice(
            [8 * random.randint(1, 40), int(times[-1] * (1 - Fraction(overhead)))]
        )
        objective = random.choice(["0.95", "0.99", "0.995", "0.999", "0.9999", "0.99999"])
        slow = {"threshold": f"{threshold}ms", "objective": float(objective)}
        latency = {name: f"{each}ms" for name, each in target.items()}
        stated: Any = job(
            {"peak_tps": random.choice([0.002, 1000])},
            latency=latency | {"overhead_share": float(overhead)},
            alarms={"slow_requests": slow},
            **random.choice([{}, {"variants": {"b": {}}}, {"shadow": {"name": "b"}}]),
        )
        burn_rate, name = _burn_rate(target, overhead, threshold, objective)
        for variant in planned_variants(parse_settings(yaml.safe_dump(stated))):
            warnings = variant.plan.explanation.warnings
            texts = [str(each) for each in warnings if each.id == UNDERCUT]
            assert len(texts) == (burn_rate > 6 and not variant.shadow), (target, slow)
            statistic = name.replace("_", ".")
            assert all(f"the target {statistic} lets" in text for text in texts)
            said.add(bool(texts))
    assert said == {True, False}


def test_the_numbers_of_an_undercut_objective():
    """1 % of the calls may take longer than 0.8 x 150 ms; of 99.99 % below it, 0.01 % may."""
    slow = {"threshold": "120ms", "objective": 0.9999}
    stated = job(p99="150ms", alarms={"slow_requests": slow})
    plan = plan_endpoint(parse_settings(yaml.safe_dump(stated)), "e")
    text = plan.explanation.warnings[0]
    assert "p99 lets 1 % of the calls take longer in the model than 120 ms" in text
    assert "lets 0.01 %: " in text
    assert "100 times too fast" in text
