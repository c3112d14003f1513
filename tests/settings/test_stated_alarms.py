"""Thresholds that a settings file states, held against the callers' targets."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.plan.decisions import PlanWarning
from low_latency_endpoint.settings import explain_variants, parse_settings
from tests.depth import examples

SERVED: dict[str, Any] = {
    "containers": [{"image": {"uri": "example/vllm:1"}}],  # whose metrics are known
    "instance_type": "ml.g6e.2xlarge",
    "throughput": {"peak_tps": 10, "tps_per_instance": 2},
}
#: What watches it, the callers' target in ms, and what follows: 80 %, and all of it between tokens.
PLACES = {
    "model_latency": ("p99", 200, 160.0),
    "tokens.ttft": ("ttft_p95", 500, 400.0),
    "tokens.itl": ("itl_p95", 50, 50.0),
}


def warnings_of(endpoint: dict[str, Any]) -> dict[str, PlanWarning]:
    file = {"client_zones": {"ids": ["use1-az1", "use1-az2"]}, "endpoints": {"e": endpoint}}
    plan = explain_variants(parse_settings(yaml.safe_dump(file)), "e")["e"]
    return {warning.id: warning for warning in plan.warnings}


def stated(place: str, thresholds: dict[str, str]) -> dict[str, Any]:
    group, _, part = place.partition(".")
    return {group: {part: thresholds}} if part else {group: thresholds}


@given(st.sampled_from(sorted(PLACES)), st.integers(1, 4000))
@settings(max_examples=examples(60), deadline=None)
def test_a_threshold_above_the_target_is_told(place: str, milliseconds: int) -> None:
    """Whether by a little, or by so much that it is in another unit."""
    name, target, follows = PLACES[place]
    statistic = name.rpartition("_")[2]
    endpoint = SERVED | {
        "latency": {name: f"{target}ms"},
        "tokens": {"input": 100, "output": 100},
        "alarms": stated(place, {statistic: f"{milliseconds}ms"}),
    }
    if not name.startswith(("ttft", "itl")):
        del endpoint["tokens"]
    told = [
        warning for warning in warnings_of(endpoint) if warning.startswith("alarm-above-target")
    ]
    unit = [warning for warning in warnings_of(endpoint) if warning.startswith("contradiction-")]
    late = milliseconds >= target and milliseconds > follows
    assert bool(told or unit) == (late or milliseconds <= follows / 10)
    assert not (told and unit)


@given(
    st.sets(st.sampled_from(["p50", "p90", "p95", "p99"]), min_size=1),
    st.sets(st.sampled_from(["p50", "p90", "p95", "p99"]), min_size=1),
)
@settings(max_examples=examples(40), deadline=None)
def test_targets_that_no_alarm_watches_are_told(targets: set[str], watched: set[str]) -> None:
    order = sorted(targets)
    latency = {name: f"{100 + 10 * number}ms" for number, name in enumerate(order)}
    alarms = {"model_latency": dict.fromkeys(sorted(watched), "50ms")}
    told = warnings_of(SERVED | {"latency": latency, "alarms": alarms})
    warning = told.get("target-not-watched-ModelLatency")
    missing = targets - watched
    assert (warning is not None) == bool(missing)
    for name in missing:
        assert f"{name} " in str(warning)


def test_a_looser_pager_that_leaves_a_statistic_out() -> None:
    """65 ms less 7 % are 60.45."""
    latency = {"p50": "19ms", "p99": "65ms", "overhead_share": 0.07}
    told = warnings_of(SERVED | {"latency": latency, "alarms": {"model_latency": {"p99": "90ms"}}})
    text = str(told["alarm-above-target-ModelLatency-p99"])
    assert "stands at 90 ms, and the callers' target is 65 ms" in text
    assert "follow 60.45 ms" in text
    assert "watches the target p50 19 ms" in str(told["target-not-watched-ModelLatency"])


@pytest.mark.parametrize(
    ("server", "environment", "told"),
    [
        ("sglang", {}, True),
        ("sglang", {"SM_SGLANG_ENABLE_METRICS": "false"}, True),
        ("sglang", {"SM_SGLANG_ENABLE_METRICS": "true"}, False),
        ("vllm", {}, False),
    ],
)
def test_metrics_that_nothing_switches_on_are_told(
    server: str, environment: dict[str, str], told: bool
) -> None:
    endpoint = SERVED | {
        "containers": [{"image": {"uri": f"example/{server}:1"}, "environment": environment}],
        "latency": {"ttft_p95": "800ms"},
        "tokens": {"input": 100, "output": 100},
    }
    assert ("sglang-metrics-off" in warnings_of(endpoint)) is told
