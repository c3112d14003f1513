"""Settings of a language model: targets on tokens, lengths, requests in flight."""

from __future__ import annotations

from datetime import timedelta

import pytest

from low_latency_endpoint.options.load import TokenLengths, TokenTraffic
from low_latency_endpoint.plan.scaling_policy import CONCURRENCY_METRIC, INVOCATIONS_METRIC
from low_latency_endpoint.settings import explain_variants, parse_settings, plan_endpoint
from low_latency_endpoint.settings.stack import Settings
from tests.settings_files import mistakes

HEAD = """\
client_zones: {ids: [use1-az1, use1-az2]}
endpoints:
  chat:
    containers: [{image: {dlc: {repository: vllm, tag: 0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker}}}]
    instance_type: ml.g5.xlarge
"""
CHAT = {
    "latency": "{ttft_p95: 500ms, itl_p95: 50ms}",
    "tokens": "{input: 512, output: {p50: 128, p95: 500}, shared_prefix: 0.5}",
    "throughput": "{peak_tps: 12, tps_per_instance: 3, concurrency_per_instance: 20}",
}


def text_of(**changes: str | None) -> str:
    lines = {**CHAT, **changes}
    return HEAD + "".join(
        f"    {name}: {value}\n" for name, value in lines.items() if value is not None
    )


def read(**changes: str | None) -> Settings:
    return parse_settings(text_of(**changes))


def test_a_chat_is_planned_as_it_is_written() -> None:
    request = plan_endpoint(read(), "chat").request
    assert request.latency is not None
    assert request.latency.milliseconds == {}
    assert request.latency.ttft_milliseconds == {"p95": 500}
    assert request.latency.itl_milliseconds == {"p95": 50}
    assert request.tokens == TokenTraffic(
        input=512, output=TokenLengths(p50=128, p95=500), shared_prefix=0.5
    )
    assert request.streams is True
    assert request.throughput is not None
    assert request.throughput.concurrency_per_instance == 20


def test_targets_on_tokens_stand_beside_those_of_whole_calls() -> None:
    settings = read(latency="{p99: 9s, ttft_p50: 200ms, itl_p99: 80ms}")
    stated = settings.endpoints["chat"].latency
    assert stated is not None
    assert stated.ttft_p50 == timedelta(milliseconds=200)
    assert stated.milliseconds == {"p99": 9000}
    assert plan_endpoint(settings, "chat").thresholds("ModelLatency") == {"p99": 7200}


@pytest.mark.parametrize(
    ("changes", "streams"),
    [
        ({"latency": "{p99: 9s}", "tokens": None}, False),
        ({"latency": "{p99: 9s}", "tokens": None, "streaming": "true"}, True),
        ({"latency": "{p99: 9s}", "tokens": None, "streaming": "false"}, False),
        ({"latency": "{p99: 9s}"}, True),
        ({"tokens": None}, True),
        ({"streaming": "true"}, True),
    ],
)
def test_what_streams(changes: dict[str, str | None], streams: bool) -> None:
    plan = plan_endpoint(read(**changes), "chat")
    assert plan.request.streams is streams
    assert plan.request.response_limit_seconds == (480 if streams else 60)


@pytest.mark.parametrize(
    ("changes", "key", "code", "meant"),
    [
        ({"streaming": "false"}, "streaming", "LLE809", "Set streaming to true or leave it out"),
        ({"streaming": "false", "tokens": None}, "streaming", "LLE809", "the whole call (p99)"),
        ({"streaming": "false", "latency": "{p99: 9s}"}, "streaming", "LLE809", "no tokens"),
        ({"latency": "{ttft_p50: 1s, ttft_p95: 500ms}"}, "latency", "LLE803", "ttft_p50: 1,000 ms"),
        ({"latency": "{itl_p90: 50ms, itl_p99: 40ms}"}, "latency", "LLE803", "itl_p90: 50 ms"),
        ({"latency": "{}"}, "latency", "LLE802", "itl_p95 of 50ms"),
        ({"latency": "{ttft-p95: 500ms}"}, "latency", "LLE904", "Did you mean ttft_p95?"),
        ({"latency": "{tpot_p95: 50ms}"}, "latency", "LLE904", "itl_p95"),
        ({"tokens": "512"}, "tokens", "LLE906", "{input: 512}"),
        ({"tokens": "{input: 512}"}, "tokens", "LLE905", "output: 128"),
        ({"tokens": "{input: {p50: 3, p95: 2}, output: 1}"}, "tokens", "LLE894", "p50: 3"),
        ({"tokens": "{input: {p50: 3}, output: 1}"}, "tokens", "LLE905", "p95: 1800"),
        ({"tokens": "{input: {mean: 3}, output: 1}"}, "tokens", "LLE904", "p50, p95"),
    ],
)
def test_mistakes_name_their_line_and_the_form_that_is_meant(
    changes: dict[str, str | None], key: str, code: str, meant: str
) -> None:
    lines = (text := text_of(**changes)).splitlines()
    found = [
        (lines[line - 1].split(":")[0].strip(), f"{error.fix} {error.allowed}")
        for line, error in mistakes(text)
        if error.code == code
    ]
    assert [at for at, _ in found] == [key]
    assert meant in found[0][1]


def test_scaling_is_on_requests_in_flight_unless_invocations_are_chosen() -> None:
    policy = plan_endpoint(read(), "chat").scaling
    assert policy is not None
    assert (policy.metric, policy.target) == (CONCURRENCY_METRIC, 10)  # 20 x 0.5, AWS's start
    chosen = plan_endpoint(read(scaling="{metric: invocations}"), "chat").scaling
    assert chosen is not None
    assert (chosen.metric, chosen.target) == (INVOCATIONS_METRIC, 90)  # 3 x 0.5 x 60
    own = plan_endpoint(read(scaling="{metric: concurrency, concurrency_target: 7}"), "chat")
    assert own.scaling is not None
    assert own.scaling.target == 7


def test_a_further_variant_states_what_was_in_flight_on_its_own_type() -> None:
    variants = (
        "{b: {instance_type: ml.g6e.xlarge, tps_per_instance: 6, concurrency_per_instance: 40}}"
    )
    from low_latency_endpoint.settings.variant_plans import planned_variants

    first, second = (each.plan for each in planned_variants(read(variants=variants)))
    assert first.scaling is not None
    assert second.scaling is not None
    assert (first.scaling.target, second.scaling.target) == (10, 20)


def test_the_explanation_of_a_file_has_tokens_and_no_threshold_on_whole_calls() -> None:
    explained = explain_variants(read(), "chat")["chat"]
    assert explained["output_tokens_at_peak"].unit == "tokens per second"
    assert [each for each in explained if each.inputs.get("metric") == "ModelLatency"] == []
    assert "Tokens" in {each.title for each in explained.summary}
