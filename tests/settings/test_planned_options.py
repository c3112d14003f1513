"""A fact is stated once and read wherever it matters: each planned option moves a result."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from low_latency_endpoint.cli.cost_view import cost_parts
from low_latency_endpoint.options.option import Options, options_of
from low_latency_endpoint.plan.endpoint_request import EndpointRequest
from low_latency_endpoint.plan.hourly_cost import NOT_IN_IT
from low_latency_endpoint.report.document import Sentence
from low_latency_endpoint.settings import explain_variants, parse_settings, stack_cost
from tests.pinned_models import QWEN, written_lock

NIGHT = {"tps": 30, "from": "22:00", "to": "06:00"}
LOAD = {"peak_tps": 12, "tps_per_instance": 2, "safety_factor": 0.7, "rise_tps_per_minute": 0.2}
ENDPOINT: dict[str, Any] = {
    "containers": [{"image": {"uri": "example/image:1"}}],
    "instance_type": "ml.g4dn.xlarge",
    "latency": {"p99": "2s"},
    "throughput": LOAD,
}
STREAM: dict[str, Any] = {
    **ENDPOINT,
    "containers": [{"image": {"uri": "example/vllm:1"}}],  # whose metrics are known
    "latency": {"ttft_p95": "800ms", "itl_p95": "40ms"},
    "tokens": {"input": 512, "output": 128},
    "throughput": {**LOAD, "concurrency_per_instance": 24},
}
#: With a model whose KV cache is known, prompts take room in it.
HUB: dict[str, Any] = {
    "instance_type": "ml.g6e.2xlarge",
    "hugging_face": {"model": QWEN.model},
    "latency": {"ttft_p95": "1s", "itl_p95": "60ms"},
    "tokens": {"input": 512, "output": 128},
    "throughput": LOAD,
}
LENGTHS = {"input": {"p50": 200, "p95": 2000}, "output": 100}
#: Class and field of each planned option, where it is stated, and another value for it.
CHANGES: dict[str, tuple[dict[str, Any], str, Any]] = {
    **{
        f"LatencyTarget.{name}": (ENDPOINT, f"latency.{name}", "900ms")
        for name in ("average", "p50", "p90", "p95", "p99")
    },
    **{
        f"LatencyTarget.{name}": (STREAM, f"latency.{name}", "30ms")
        for name in ("ttft_p50", "ttft_p90", "ttft_p95", "itl_p50", "itl_p90", "itl_p95")
    },
    "LatencyTarget.p99_9": (ENDPOINT, "latency.p99_9", "3s"),
    "LatencyTarget.ttft_p99": (STREAM, "latency.ttft_p99", "1s"),
    "LatencyTarget.itl_p99": (STREAM, "latency.itl_p99", "60ms"),
    "LatencyTarget.overhead_share": (ENDPOINT, "latency.overhead_share", 0.3),
    "MeasuredThroughput.peak_tps": (ENDPOINT, "throughput.peak_tps", 24),
    "MeasuredThroughput.tps_per_instance": (ENDPOINT, "throughput.tps_per_instance", 3),
    "MeasuredThroughput.safety_factor": (ENDPOINT, "throughput.safety_factor", 0.5),
    "MeasuredThroughput.rise_tps_per_minute": (ENDPOINT, "throughput.rise_tps_per_minute", 1),
    "MeasuredThroughput.from_tps": (
        {**ENDPOINT, "throughput": {"peak_tps": 12, "tps_per_instance": 2}},
        "throughput.from_tps",
        1,
    ),
    "PeakAtTime.tps": (
        {**ENDPOINT, "throughput": {**LOAD, "peaks": {"night": NIGHT}}},
        "throughput.peaks.night.tps",
        60,
    ),
    "MeasuredThroughput.concurrency_per_instance": (
        STREAM,
        "throughput.concurrency_per_instance",
        30,
    ),
    "InstanceCounts.min": (ENDPOINT, "instances.min", 7),
    "InstanceCounts.initial": (ENDPOINT, "instances.initial", 7),
    "InstanceCounts.max": (ENDPOINT, "instances.max", 20),
    "ScalingOptions.scale_out_cooldown": (ENDPOINT, "scaling.scale_out_cooldown", "9m"),
    "ScalingOptions.instance_start": (ENDPOINT, "scaling.instance_start", "20m"),
    "TokenLengths.p50": ({**HUB, "tokens": LENGTHS}, "tokens.input.p50", 300),
    "TokenLengths.p95": ({**HUB, "tokens": LENGTHS}, "tokens.input.p95", 3000),
    "TokenTraffic.input": (HUB, "tokens.input", 4000),
    "TokenTraffic.output": (STREAM, "tokens.output", 500),
    "LoadOptions.payload_bytes": (ENDPOINT, "payload_bytes", 5_000_000),
}


#: Planned options that move no number, and what reads them.
READ_ELSEWHERE = {
    "TokenTraffic.shared_prefix": "the note on routing, and the prompts of a load test",
    "ScalingOptions.scale_in_cooldown": "the scaling policy, and the cost of a day",
    "EndpointRequest.warm_up_requests": "the function of the warm-up",
}


@pytest.fixture(autouse=True)
def locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a lock file of the Hub's model."""
    written_lock(tmp_path, QWEN)
    monkeypatch.chdir(tmp_path)


def groups(of: type[Options] = Options) -> Iterator[type[Options]]:
    """Those of the library: tests declare some of their own."""
    for group in of.__subclasses__():
        if group.__module__.startswith("low_latency_endpoint."):
            yield group
        yield from groups(group)


def planned_options() -> set[str]:
    """Every option that the plan calculates with, by the class that declares it."""
    return {
        f"{group.__name__}.{option.name}"
        for group in {*groups(), EndpointRequest}
        for option in options_of(group)
        if option.option is not None
        and option.option.planned
        and option.name in group.__annotations__
    }


def results(endpoint: dict[str, Any]) -> dict[str, Any]:
    """What the plan decides, warns of and costs, without the inputs that it repeats."""
    settings = parse_settings(
        yaml.safe_dump(
            {
                "client_zones": {"ids": ["use1-az1", "use1-az2"]},
                "prices": {endpoint["instance_type"]: 0.7},
                "endpoints": {"e": endpoint},
            }
        )
    )
    plan, cost = explain_variants(settings, "e")["e"], stack_cost(settings)
    return {
        "decided": {decision.name: decision.value for decision in plan},
        "warned": [str(warning) for warning in plan.warnings],
        "cost": cost.to_dict(),
        "said": [str(part) for part in cost_parts(settings, cost) if isinstance(part, Sentence)],
    }


def with_value(endpoint: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(endpoint)
    *parents, name = place.split(".")
    part = changed
    for parent in parents:
        part = part.setdefault(parent, {})
    part[name] = value
    return changed


def test_every_planned_option_is_changed_here() -> None:
    assert planned_options() == {*CHANGES, *READ_ELSEWHERE}, (
        "add another value of the option to CHANGES, or to READ_ELSEWHERE who reads it"
    )


@pytest.mark.parametrize("option", CHANGES)
def test_a_planned_option_moves_another_result(option: str) -> None:
    """The decision that repeats the option does not count."""
    endpoint, place, value = CHANGES[option]
    name = option.split(".")[1]
    before = results(endpoint)
    after = results(with_value(endpoint, place, value))
    for repeated in (name, f"{name}_instances"):
        before["decided"].pop(repeated, None)
        after["decided"].pop(repeated, None)
    assert before != after


def test_the_cost_reads_each_setting_that_its_text_names() -> None:
    """What "says" a number in the cost's text changes the cost."""
    said = " ".join([NOT_IN_IT, *results(ENDPOINT)["said"]])
    names = {
        name
        for sentence in re.findall(r"((?:neither )?[a-z_.]+ n?or [a-z_.]+) says", said)
        for name in re.findall(r"[a-z]+(?:[_.][a-z]+)+", sentence)
    }
    values = {"payload_bytes": 5_000_000, "warm_up.payload": {"text": "x" * 1000}}
    assert names == set(values)
    for place, value in values.items():
        before = results(ENDPOINT)["cost"]
        assert results(with_value(ENDPOINT, place, value))["cost"] != before, place


# ------------------------------------------------------------------------- the callers' request


def test_five_megabytes_cost_a_third_of_the_fleet() -> None:
    """12 x 5 MB x 3,600 s = 216 GB an hour, at 0.01 for a GB."""
    found = results(with_value(ENDPOINT, "payload_bytes", 5_000_000))
    data = found["cost"]["endpoints"]["e"]["data_at_peak"]
    assert (data["per_hour"], data["usd"]) == (pytest.approx(216), pytest.approx(2.16))
    assert any("216 GB of requests in an hour" in said for said in found["said"])
    # And a million of them are 5,000 GB.
    without = results(ENDPOINT)["cost"]["endpoints"]["e"]["usd_per_million_requests"]
    with_data = found["cost"]["endpoints"]["e"]["usd_per_million_requests"]
    assert with_data - without == pytest.approx(50)


def test_a_stated_size_wins_over_that_of_a_tiny_warm_up() -> None:
    warmed = with_value(ENDPOINT, "warm_up.payload", {"text": "x" * 40})
    found = results(with_value(warmed, "payload_bytes", 5_000_000))
    assert found["cost"]["endpoints"]["e"]["data_at_peak"]["per_hour"] == pytest.approx(216)
    (warning,) = [text for text in found["warned"] if "the warm-up sends" in text]
    assert "40 bytes" in warning
    assert "5,000,000" in warning


def test_without_a_stated_size_the_warm_ups_is_an_assumption() -> None:
    found = results(with_value(ENDPOINT, "warm_up.payload", {"text": "x" * 40}))
    # 12 x 40 bytes x 3,600
    data = found["cost"]["endpoints"]["e"]["data_at_peak"]
    assert data["per_hour"] == pytest.approx(0.001728)
    assert any(
        "(the warm-up's largest: payload_bytes states the callers')" in s for s in found["said"]
    )
    assert not any("the warm-up sends" in text for text in found["warned"])


@pytest.mark.parametrize("sender", ["warm_up", "canary"])
@pytest.mark.parametrize(
    ("sent", "stated", "warns"),
    [(100, 100, False), (11, 100, False), (10, 100, True), (101, 100, True), (100, None, False)],
)
def test_a_sender_of_another_size_is_told(
    sender: str, sent: int, stated: int | None, warns: bool
) -> None:
    endpoint = with_value(ENDPOINT, f"{sender}.payload", {"text": "x" * sent})
    if stated is not None:
        endpoint = with_value(endpoint, "payload_bytes", stated)
    name = sender.replace("_", "-")
    said = any(f"the {name} sends" in text for text in results(endpoint)["warned"])
    assert said is warns


def test_a_canary_without_a_payload_sends_the_warm_ups_first() -> None:
    payloads = [{"text": "x" * 10}, {"text": "x" * 90}]
    endpoint = with_value(with_value(ENDPOINT, "payload_bytes", 100), "canary", {})
    told = results(with_value(endpoint, "warm_up.payload", payloads))["warned"]
    assert [text for text in told if "canary sends 10 bytes, and callers send 100" in text]
    assert not [text for text in told if "warm-up sends" in text]


def test_a_canary_is_held_against_the_assumed_size_too() -> None:
    """Of two payloads the callers are taken to send the larger, and the canary sends the first."""
    payloads = [{"text": "ping"}, {"text": "x" * 300_000}]
    endpoint = with_value(with_value(ENDPOINT, "canary", {}), "warm_up.payload", payloads)
    endpoint = with_value(endpoint, "latency.p99", "100ms")  # 2.4 Mbit in 20 ms
    told = results(endpoint)["warned"]
    (warning,) = [text for text in told if "the canary sends 4 bytes" in text]
    assert "callers send 300,000 (the warm-up's largest: payload_bytes states" in warning
    (warning,) = [text for text in told if "Mbit/s" in text]
    assert "a request of 300,000 bytes (the warm-up's largest: payload_bytes states" in warning


@pytest.mark.parametrize(
    ("size", "target", "warns"),
    [
        (5_000_000, "2s", True),  # 5 MB in 400 ms: 100 Mbit/s
        (2_500_000, "2s", False),  # 50 Mbit/s
        (2_500_001, "2s", True),
        (99_999, "10ms", False),  # a small one: the target is what is short
        (100_000, "10ms", True),
    ],
)
def test_the_overhead_alarm_is_held_against_the_size(size: int, target: str, warns: bool) -> None:
    endpoint = with_value(with_value(ENDPOINT, "payload_bytes", size), "latency.p99", target)
    said = any("Mbit/s" in text for text in results(endpoint)["warned"])
    assert said is warns


@pytest.mark.parametrize(
    ("peak", "least", "warns"), [(0.06, 20, True), (0.07, 20, False), (0.06, 18, False)]
)
def test_silent_alarms_on_tokens_are_told(peak: float, least: int, warns: bool) -> None:
    """0.06 x 300 s = 18 first tokens in five minutes, 0.07 x 300 s = 21."""
    endpoint = with_value(STREAM, "throughput", {"peak_tps": peak, "tps_per_instance": 0.1})
    endpoint = with_value(endpoint, "alarms.tokens.minimum_requests", least)
    said = any("on tokens stay silent" in text for text in results(endpoint)["warned"])
    assert said is warns


def test_results_are_data() -> None:
    """What is compared above is whole, and not the text of objects."""
    assert json.dumps(results(ENDPOINT), sort_keys=True)
    assert "object at 0x" not in json.dumps(results(STREAM))
