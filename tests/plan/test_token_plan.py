"""A language model's plan: tokens per second, requests in flight, limits on tokens, warnings."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.facts.tables import rows
from low_latency_endpoint.options.latency_target import LatencyTarget
from low_latency_endpoint.options.load import TokenLengths, TokenTraffic
from low_latency_endpoint.options.scaling import InstanceCounts, ScalingOptions
from low_latency_endpoint.options.throughput import MeasuredThroughput
from low_latency_endpoint.options.variant import FurtherOptions, RoutingStrategy
from low_latency_endpoint.plan.decisions import PlanWarning
from low_latency_endpoint.plan.hub_serving import HubModel, HubServing, hub_serving
from low_latency_endpoint.plan.latency_plan import make_plan
from low_latency_endpoint.plan.pinned_model import PinnedFile, PinnedModel
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.scaling_policy import CONCURRENCY_METRIC, INVOCATIONS_METRIC
from low_latency_endpoint.plan.token_floors import DecodePace, decode_paces, hides_pace
from low_latency_endpoint.plan.variant_shares import further_request, shares_of
from tests.refusals import refused

from . import pinned_models
from .conftest import requested
from .pinned_models import DEEPSEEK_V3, GGUF, GPT_OSS_20B, LLAMA_70B, MISTRAL_7B

VLLM = "vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"
ZONES = ("use1-az1", "use1-az2")


def ms(value: float) -> timedelta:
    return timedelta(milliseconds=value)


CHAT = LatencyTarget(ttft_p95=ms(500), itl_p95=ms(50))
SHORT = TokenTraffic(input=512, output=128)
LOAD = MeasuredThroughput(
    peak_tps=24, tps_per_instance=4, safety_factor=0.7, concurrency_per_instance=20
)


def served(model: PinnedModel, instance_type: str, **given_: Any) -> HubServing:
    return hub_serving(HubModel(pinned=replace(model, license="mit"), **given_), [instance_type])


def chat(**given_: Any) -> Plan:
    """The plan of a chat; what is None is left out."""
    stated: dict[str, Any] = {
        "client_zones": ZONES,
        "instance_type": "ml.g5.xlarge",
        "images": [VLLM],
        "latency": CHAT,
        "tokens": SHORT,
        "throughput": LOAD,
        **given_,
    }
    return make_plan(requested(**stated))


def warned(plan: Plan, id: str) -> PlanWarning | None:
    return next((each for each in plan.explanation.warnings if each.id == id), None)


# What is streamed


@pytest.mark.parametrize("given_", [{"tokens": None}, {"latency": None}, {}])
def test_tokens_and_targets_on_them_mean_streaming(given_: dict[str, Any]) -> None:
    plan = chat(**given_)
    assert plan.request.streams is True
    assert plan.request.is_generative
    assert plan.explanation["response_time_limit"].value == 480


def test_whole_calls_are_not_streamed_unless_said() -> None:
    whole = {"latency": LatencyTarget(p99=ms(200)), "tokens": None}
    assert chat(**whole).request.streams is False
    assert chat(**whole).tokens is None
    assert chat(**whole, streaming=True).explanation["response_time_limit"].value == 480


@pytest.mark.parametrize("given_", [{"tokens": None}, {"latency": None}, {}])
def test_tokens_of_what_is_not_streamed_are_refused(given_: dict[str, Any]) -> None:
    with refused("LLE809", says="Set streaming to true or leave it out"):
        chat(**given_, streaming=False)


# Capacity in tokens


def test_capacity_is_counted_in_tokens() -> None:
    plan = chat()
    made = plan.tokens
    # 24 calls per second x 128 and x 512; 4 x 128 on an instance.
    assert made.output_tokens == 3072
    assert made.output_tokens_per_instance == 512
    why = plan.explanation
    assert why["output_tokens_at_peak"].value == 3072
    assert "12,288 tokens per second" in why["output_tokens_at_peak"].note
    assert why["output_tokens_per_instance"].value == 512
    # And the fleet is that of the calls: 24 / (4 x 0.7) = 8.57.
    assert plan.fleet.at_peak == 9


def test_a_call_takes_as_long_as_its_answer() -> None:
    plan = chat()
    # 500 ms, then 127 gaps of 50 ms
    assert plan.explanation["call_duration"].value == pytest.approx(0.5 + 127 * 0.05)
    assert plan.caller_connections == 165  # 24 x 6.85 = 164.4
    assert "callers must stream" not in plan.explanation["call_duration"].note


def test_the_lowest_percentiles_say_how_long_an_ordinary_call_takes() -> None:
    target = LatencyTarget(ttft_p50=ms(200), ttft_p99=ms(900), itl_p50=ms(20), itl_p99=ms(90))
    plan = chat(latency=target)
    assert plan.explanation["call_duration"].value == pytest.approx(0.2 + 127 * 0.02)


def test_without_a_gap_nothing_says_how_long_a_call_takes() -> None:
    plan = chat(latency=LatencyTarget(ttft_p95=ms(500)))
    assert "call_duration" not in plan.explanation
    assert plan.caller_connections is None
    after_the_first = chat(latency=LatencyTarget(itl_p95=ms(50))).explanation["call_duration"]
    assert after_the_first.value == pytest.approx(127 * 0.05)
    assert "from the first token on" in after_the_first.note


def test_long_answers_must_be_streamed_and_the_longest_break() -> None:
    # 1 + 1199 x 0.05 = 60.95 s is beyond a whole answer's 60 s; 9,600 tokens beyond a stream's 480.
    target = LatencyTarget(ttft_p95=ms(1000), itl_p95=ms(50))
    within = chat(latency=target, tokens=TokenTraffic(input=100, output=1180))
    assert "callers must stream" not in within.explanation["call_duration"].note
    beyond = chat(latency=target, tokens=TokenTraffic(input=100, output=1200))
    assert "callers must stream" in beyond.explanation["call_duration"].note
    assert warned(beyond, "answers-longer-than-stream") is None
    longest = chat(latency=target, tokens=TokenTraffic(input=100, output=9600))
    assert "broken answer" in str(warned(longest, "answers-longer-than-stream"))
    tail = TokenTraffic(input=100, output=TokenLengths(p50=400, p95=9600))
    assert warned(chat(latency=target, tokens=tail), "answers-longer-than-stream")


@pytest.mark.parametrize(
    ("tokens", "warning", "says"),
    [
        # 1 + (tokens - 1) x 0.05 s of 480 s
        (8600, None, ""),  # 430.95
        (8621, "answers-near-stream-limit", "takes 432 s at these targets, 90 % of the 480 s"),
        (9400, "answers-near-stream-limit", "takes 471 s at these targets, 98 % of the 480 s"),
        (9581, "answers-near-stream-limit", "takes 480 s at these targets, 100 % of the 480 s"),
        (9582, "answers-longer-than-stream", "takes 480 s at these targets, and SageMaker ends"),
    ],
)
def test_a_stream_is_warned_of_before_its_limit(
    tokens: int, warning: str | None, says: str
) -> None:
    target = LatencyTarget(ttft_p95=ms(1000), itl_p95=ms(50))
    plan = chat(latency=target, tokens=TokenTraffic(input=100, output=tokens))
    about = ("answers-near-stream-limit", "answers-longer-than-stream")
    found = [each for each in plan.explanation.warnings if each.id in about]
    assert [each.id for each in found] == ([warning] if warning else [])
    assert all(says in str(each) for each in found)


# Requests in flight


def test_requests_in_flight_are_the_load_tests_times_the_safety_factor() -> None:
    plan = chat()
    assert (plan.scaling.metric, plan.scaling.target) == (CONCURRENCY_METRIC, 14)
    why = plan.explanation["scaling_target"]
    assert "not known" in why.note
    assert why.inputs["concurrency per instance"] == 20
    assert not why.overridden
    assert "however long its answer is" in plan.explanation["scaling_metric"].rule
    assert warned(plan, "no-concurrency") is None


def test_the_kv_cache_binds_where_it_holds_fewer() -> None:
    # 22,888 MiB x 0.92 - 1,536 - 13,824.5 of weights = 5,696.5 MiB; 1,200 + 800 tokens of 131,072
    # bytes are 250 MiB: 22 requests.
    tokens = TokenTraffic(input=1200, output=800)
    many = replace(LOAD, concurrency_per_instance=40)
    plan = chat(tokens=tokens, throughput=many, hub=served(MISTRAL_7B, "ml.g5.xlarge"), images=[])
    assert plan.tokens.room == plan.explanation["requests_in_kv_cache"].value == 22
    assert plan.scaling.target == 22
    assert plan.explanation["scaling_target"].note.startswith("the KV cache binds")
    # 40 x 0.7 = 28 there; 45,776 MiB hold (42,113.9 - 1,536 - 13,824.5) / 250 = 107.
    larger = chat(
        instance_type="ml.g6e.xlarge",
        tokens=tokens,
        throughput=many,
        hub=served(MISTRAL_7B, "ml.g6e.xlarge"),
        images=[],
    )
    assert larger.scaling.target == 28
    assert "room for 107" in larger.explanation["scaling_target"].note


def test_the_room_is_that_of_layers_with_a_window_too() -> None:
    fit = served(GPT_OSS_20B, "ml.g6.2xlarge").container.fit
    # 6,397.2 MiB. 1,024 tokens: 24,576 bytes of each in the full half, and 1,024 + 16 in the other.
    of_one = 24_576 * 1024 + 24_576 * 1040
    assert fit.requests_of(1024) == int(6397.2 * 2**20) // of_one


def test_the_room_of_the_full_context_is_that_of_the_fit() -> None:
    fit = served(MISTRAL_7B, "ml.g5.xlarge").container.fit
    assert fit.context is not None
    assert fit.requests_of(fit.context) == fit.concurrent_requests


@given(tokens=st.integers(1, 200_000), more=st.integers(0, 10_000))
def test_longer_requests_are_never_more(tokens: int, more: int) -> None:
    for model in (MISTRAL_7B, GPT_OSS_20B):
        fit = served(model, "ml.g6e.xlarge").container.fit
        assert (fit.requests_of(tokens) or 0) >= (fit.requests_of(tokens + more) or 0)


def test_a_cache_without_a_formula_caps_nothing() -> None:
    fit = served(DEEPSEEK_V3, "ml.p5en.48xlarge").container.fit
    assert fit.requests_of(1000) is None


def test_without_a_measured_concurrency_invocations_are_counted_and_the_plan_says_so() -> None:
    plan = chat(throughput=replace(LOAD, concurrency_per_instance=None))
    assert plan.scaling.metric == INVOCATIONS_METRIC
    text = str(warned(plan, "no-concurrency"))
    assert "throughput.concurrency_per_instance" in text
    assert "at most 27.4" in text  # 4 x 6.85 s, by Little's law


@pytest.mark.parametrize(
    ("scaling", "metric", "target"),
    [
        (ScalingOptions(metric="invocations"), INVOCATIONS_METRIC, 168),  # 4 x 0.7 x 60
        (ScalingOptions(invocations_target=90), INVOCATIONS_METRIC, 90),
        (ScalingOptions(metric="concurrency", concurrency_target=5), CONCURRENCY_METRIC, 5),
    ],
)
def test_your_choice_wins(scaling: ScalingOptions, metric: str, target: float) -> None:
    plan = chat(scaling=scaling)
    assert plan.scaling.metric == metric
    assert plan.scaling.target == pytest.approx(target)
    assert plan.explanation["scaling_target"].value == plan.scaling.target
    chosen_for_all = chat(scaling=scaling, throughput=replace(LOAD, concurrency_per_instance=None))
    assert warned(chosen_for_all, "no-concurrency") is None


def test_what_is_no_language_model_still_counts_invocations() -> None:
    plan = chat(latency=LatencyTarget(p99=ms(200)), tokens=None)
    assert plan.scaling.metric == INVOCATIONS_METRIC


def test_no_room_for_one_request_is_warned_of_and_no_target() -> None:
    serving = served(MISTRAL_7B, "ml.g5.xlarge", context_length=4096)
    none = replace(serving.container.fit.cache, room=0)  # type: ignore[type-var]
    fit = replace(serving.container.fit, cache=none)
    full = replace(serving, containers=(replace(serving.container, fit=fit),))
    plan = chat(hub=full, images=[])
    assert warned(plan, "no-room-in-kv-cache")
    assert plan.scaling.metric == INVOCATIONS_METRIC


def test_numbers_of_different_traffic_are_found_by_littles_law() -> None:
    # 6.85 s at the targets; 27 in flight at 4 calls per second are 6.75 s, and 28 are 7 s.
    assert (
        warned(
            chat(throughput=replace(LOAD, concurrency_per_instance=27)),
            "concurrency-contradicts-targets",
        )
        is None
    )
    text = str(
        warned(
            chat(throughput=replace(LOAD, concurrency_per_instance=28)),
            "concurrency-contradicts-targets",
        )
    )
    assert "7 s for each call" in text
    assert "6.85 s" in text


def test_more_in_flight_than_the_cache_holds_was_measured_otherwise() -> None:
    serving = served(MISTRAL_7B, "ml.g5.xlarge")

    def plan_with(in_flight: int) -> Any:
        load = replace(LOAD, concurrency_per_instance=in_flight)
        return chat(hub=serving, images=[], instance_type="ml.g5.xlarge", throughput=load)

    room = plan_with(20).tokens.room
    assert warned(plan_with(room), "concurrency-above-kv-cache") is None
    text = str(warned(plan_with(room + 1), "concurrency-above-kv-cache"))
    assert text.startswith(f"{room + 1} in flight were measured")
    assert f"holds {room} requests of these lengths" in text


def test_a_variant_on_another_type_does_not_inherit_what_was_in_flight_on_the_first() -> None:
    request = chat().request
    share = shares_of([("first", 1), ("b", 1)], LOAD)["b"]

    def in_flight(instance_type: str | None = None, **options: Any) -> float | None:
        further = FurtherOptions(**options)
        made = further_request(request, further, share, instance_type=instance_type)
        assert made.throughput is not None
        return made.throughput.concurrency_per_instance

    assert in_flight() == 20
    assert in_flight("ml.g6e.xlarge") is None
    assert in_flight(tps_per_instance=9) is None
    assert in_flight(tps_per_instance=9, concurrency_per_instance=30) == 30


def test_concurrency_without_a_throughput_of_the_endpoint_is_refused() -> None:
    request = chat(throughput=None).request
    further = FurtherOptions(concurrency_per_instance=30)
    share = shares_of([("first", 1), ("b", 1)], None)["b"]
    with refused("LLE434"):
        further_request(request, further, share)


# Contexts


def test_ordinary_requests_beyond_the_context_are_refused_and_long_ones_warned_of() -> None:
    serving = served(MISTRAL_7B, "ml.g5.xlarge", context_length=4096)
    with refused("LLE897", says="4,096"):
        chat(hub=serving, images=[], tokens=TokenTraffic(input=4000, output=97))
    fits = chat(hub=serving, images=[], tokens=TokenTraffic(input=4000, output=96))
    assert warned(fits, "tokens-above-context") is None
    tail = TokenTraffic(input=TokenLengths(p50=400, p95=4000), output=128)
    assert "4,128" in str(warned(chat(hub=serving, images=[], tokens=tail), "tokens-above-context"))


# Alarms


def test_limits_on_tokens_are_in_seconds_and_no_alarm_watches_whole_calls() -> None:
    target = LatencyTarget(ttft_p50=ms(200), ttft_p95=ms(500), itl_p99=ms(80))
    plan = chat(latency=target)
    assert plan.alarms == ()
    found = [(each.measures, each.percentile, each.seconds) for each in plan.tokens.thresholds]
    assert found == [  # 20 % of the time to first token is kept for network and overhead
        ("time to first token", "p50", 0.16),
        ("time to first token", "p95", 0.4),
        ("inter-token latency", "p99", 0.08),
    ]
    why = plan.explanation["alarm_time_to_first_token_p95"]
    assert (why.value, why.unit, why.title) == (0.4, "seconds", "Alarm on time to first token p95")
    assert plan.explanation["alarm_inter_token_latency_p99"].value == 0.08
    assert [each for each in plan.explanation if "metric" in each.inputs] == []
    own = chat(latency=replace(target, overhead_share=0.1))
    assert own.explanation["alarm_time_to_first_token_p95"].value == pytest.approx(0.45)
    assert own.explanation["alarm_inter_token_latency_p99"].value == 0.08


def test_an_alarm_on_whole_calls_of_a_stream_says_that_its_meaning_is_not_stated() -> None:
    both = LatencyTarget(p99=ms(9000), ttft_p95=ms(500), itl_p95=ms(50))
    plan = chat(latency=both)
    assert plan.thresholds("ModelLatency") == {"p99": 7200}
    note = plan.explanation["alarm_model_latency_p99"].note
    assert "first or with the last byte" in note
    assert plan.caller_connections == 216  # 24 x 9 s: the slowest whole call
    whole = chat(latency=LatencyTarget(p99=ms(200)), tokens=None)
    assert not any("first or with the last byte" in each.note for each in whole.explanation)


def test_tokens_without_a_target_on_them_are_warned_of() -> None:
    assert warned(chat(latency=LatencyTarget(p99=ms(9000))), "no-token-target")
    assert warned(chat(), "no-token-target") is None
    assert warned(chat(), "no-latency-target") is None
    assert warned(chat(), "streamed-first-token") is None
    assert warned(chat(tokens=None), "no-token-lengths")


# Routing


def test_a_shared_prefix_is_a_reason_to_measure_and_not_a_choice() -> None:
    plan = chat(tokens=TokenTraffic(input=1000, output=128, shared_prefix=0.6))
    assert plan.routing == "LEAST_OUTSTANDING_REQUESTS"
    note = plan.explanation["routing_strategy"].note
    assert "about 600 tokens of a prompt are shared" in note
    assert "low-latency compare-routing" in note
    chosen = chat(
        tokens=TokenTraffic(input=1000, output=128, shared_prefix=0.6),
        routing=RoutingStrategy("PREFIX_AWARE", 1024, 16),
    )
    assert "are shared" not in chosen.explanation["routing_strategy"].note
    assert warned(chosen, "prefix-aware-unsure") is None


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"min": 1}, "and there is one at quiet hours"),
        ({"initial": 1}, "and there is one;"),
        ({"min": 2}, None),
        ({"initial": 2}, None),
    ],
)
def test_a_prefix_finds_its_instance_among_two_or_more(
    counts: dict[str, int], said: str | None
) -> None:
    """Source: API reference, ProductionVariantRoutingConfig ("only when two or more instances")."""
    prefix = {"routing": RoutingStrategy("PREFIX_AWARE", 1024, 16)}
    fleet = {
        "instances": InstanceCounts(**counts),
        "scaling": ScalingOptions(enabled="min" in counts),
    }
    found = warned(chat(**fleet, **prefix), "prefix-aware-one-instance")
    assert found is None if said is None else said in str(found)
    assert warned(chat(**fleet), "prefix-aware-one-instance") is None


# The summary


def test_the_summary_has_a_line_of_tokens() -> None:
    lines = {each.title: each.text for each in chat().explanation.summary}
    assert lines["Tokens"] == (
        "512 tokens in, 128 out; 3,072 per second out at peak, 512 at one instance's limit; "
        "6.85 s for a call at the targets"
    )
    assert lines["Scaling"] == "14 requests in flight per instance, 70 % of its limit"
    whole = chat(latency=LatencyTarget(p99=ms(200)), tokens=None).explanation.summary
    assert "Tokens" not in {each.title for each in whole}
    own = chat(
        scaling=ScalingOptions(metric="concurrency", concurrency_target=5)
    ).explanation.summary
    # 20 in flight were measured at the limit
    assert "5 requests in flight per instance, 25 % of its limit" in {each.text for each in own}


# --- how quickly a model writes at best ---------------------------------------------------------

QWEN3_8B = replace(
    pinned_models.QWEN3_8B, config=pinned_models.QWEN3_8B.config | {"vocab_size": 151_936}
)


def qwen3_8b(**config):
    """Qwen3-8B with another config.json; the rest of its keys stay."""
    return replace(QWEN3_8B, config=QWEN3_8B.config | config)


@pytest.mark.parametrize(
    ("model", "instance_type", "milliseconds"),
    [
        # (2 x 8,190,735,360 - 2 x 151,936 x 4,096) bytes are 15.14 GB: / 300, 864, 4 x 600, 8 x 3,350
        (QWEN3_8B, "ml.g6.2xlarge", 50.46),
        (QWEN3_8B, "ml.g6e.xlarge", 17.52),
        (QWEN3_8B, "ml.g5.12xlarge", 6.31),
        (QWEN3_8B, "ml.p5.48xlarge", 0.56),
        (QWEN3_8B, "ml.g6e.48xlarge", 2.19),
        (QWEN3_8B, "ml.inf2.8xlarge", 17.2),  # 880
        # no vocabulary stated: as if it were the largest known, 300,000 x 4,096 x 2 bytes less
        (pinned_models.QWEN3_8B, "ml.g6.2xlarge", 46.41),
        (qwen3_8b(model_type="new", num_experts=0), "ml.g6.2xlarge", 50.46),
        (QWEN3_8B, "ml.g7e.2xlarge", None),  # not in the table
        # What config.json does not say to be dense:
        (pinned_models.QWEN3_30B, "ml.g6e.12xlarge", None),  # 128 experts
        (qwen3_8b(num_experts_per_tok=8), "ml.g6.2xlarge", None),
        (qwen3_8b(num_local_experts=8), "ml.g6.2xlarge", None),
        (qwen3_8b(n_routed_experts=64), "ml.g6.2xlarge", None),
        (qwen3_8b(model_type="ernie4_5_moe"), "ml.g6.2xlarge", None),
        (pinned_models.DEEPSEEK_V3, "ml.p5en.48xlarge", None),  # latent attention
        (qwen3_8b(auto_map={"AutoModel": "own.Own"}), "ml.g6.2xlarge", None),
        (qwen3_8b(text_config={"vocab_size": 151_936}), "ml.g6.2xlarge", None),
        (qwen3_8b(architectures=["DreamForBlockDiffusion"]), "ml.g6.2xlarge", None),
        (qwen3_8b(architectures=None), "ml.g6.2xlarge", None),
        (GGUF, "ml.g6.2xlarge", None),  # no config
        (replace(QWEN3_8B, task="image-text-to-text"), "ml.g6.2xlarge", None),
    ],
)
def test_a_token_reads_the_weights_once(model, instance_type, milliseconds):
    paces = list(decode_paces(served(model, instance_type)))
    assert [round(each.milliseconds, 2) for each in paces] == [milliseconds][
        : milliseconds is not None
    ]


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("tied", [True, None])
@pytest.mark.parametrize("vocabulary", [32_000, 151_936])
def test_floors_hold_however_often_a_tied_embedding_is_stored(copies, tied, vocabulary):
    """A token reads the matrix once, as the output head, and a prompt's tokens compute without it.

    A file of a tied model has it once (Qwen3-4B) or twice (Qwen3-1.7B), and config.json does not
    tell which.
    """
    others = 2 * 3_633_511_936
    matrix = 2 * vocabulary * 4096
    shards = (PinnedFile("model.safetensors", others + copies * matrix, "0" * 64),)
    model = replace(
        qwen3_8b(vocab_size=vocabulary, tie_word_embeddings=tied), files=shards, parameters={}
    )
    (pace,) = decode_paces(served(model, "ml.g6.2xlarge"))
    assert 0 < pace.token_bytes <= others + matrix
    assert 0 < pace.prompt_bytes <= others


def test_a_target_between_tokens_below_that_is_refused():
    def plan(itl, model=QWEN3_8B, instance_type="ml.g6.2xlarge", **asked):
        serving = served(model, instance_type, **asked)
        latency = LatencyTarget(ttft_p95=ms(1), itl_p50=ms(itl), itl_p95=ms(itl + 20))
        return chat(hub=serving, images=[], latency=latency)

    with refused(
        "LLE899",
        "itl_p50 50 ms on ml.g6.2xlarge: a token reads 15.1 GB",
        allowed="more than 50.5 ms",
    ):
        plan(50)
    assert plan(51).explanation["inter_token_floor"].value == 50.46
    plan(50, pace_unknown=True)  # the server was told to load less than the files have
    plan(20, instance_type="ml.g6e.xlarge")
    plan(1, model=replace(QWEN3_8B, config={}))


def line(plan: Plan, title: str) -> str | None:
    return next((each.text for each in plan.explanation.summary if each.title == title), None)


#: Qwen3-8B: 16,381,470,720 bytes, two of each parameter; an embedding of 151,936 x 4,096 numbers has
#: 1,244,659,712. A token reads 15,136,811,008, and is computed with 6,946,075,648 parameters.
LONG_PROMPTS = TokenTraffic(input=2000, output=250)


def floors_of(instance_type: str, **stated: Any) -> Plan:
    values = {"tokens": LONG_PROMPTS, "latency": LatencyTarget(ttft_p95=ms(800), itl_p95=ms(60))}
    hub = served(QWEN3_8B, instance_type)
    return chat(instance_type=instance_type, hub=hub, images=[], **(values | stated))


@pytest.mark.parametrize(
    ("instance_type", "says"),
    [
        # 15.137 GB / 600 GB/s = 25.2 ms; 2 x 6.946e9 x 2,000 / 70e12 = 397 ms
        # of 800 ms less 20 % for the overhead
        (
            "ml.g5.2xlarge",
            (
                "25.2 ms between tokens",
                "42% of itl_p95",
                "397 ms",
                "62% of the 640 ms that ttft_p95 leaves",
            ),
        ),
        # / 300 = 50.5 ms; / 121e12 = 230 ms
        (
            "ml.g6.2xlarge",
            (
                "50.5 ms between tokens",
                "84% of itl_p95",
                "230 ms",
                "36% of the 640 ms that ttft_p95 leaves",
            ),
        ),
        # / 864 = 17.5 ms; / 362.05e12 = 76.7 ms
        (
            "ml.g6e.xlarge",
            (
                "17.5 ms between tokens",
                "29% of itl_p95",
                "76.7 ms",
                "12% of the 640 ms that ttft_p95 leaves",
            ),
        ),
    ],
)
def test_the_floors_are_shown_where_they_refuse_nothing(
    instance_type: str, says: tuple[str, ...]
) -> None:
    plan = floors_of(instance_type)
    text = line(plan, "Floors")
    assert text
    assert all(words in text for words in says), text
    assert {"inter_token_floor", "first_token_floor"} <= {each.name for each in plan.explanation}
    assert not any("floor" in warning for warning in plan.explanation.warnings)


def test_every_family_with_a_data_sheet_has_its_floors() -> None:
    """Of a made-up gigabyte and a thousand tokens: 2 x 5e8 x 1,000 operations."""
    for row in rows("accelerator_speed"):
        pace = DecodePace(
            row["families"],
            10**9,
            float(row["gb_per_second"]),
            1,
            10**9,
            float(row["tflops"]) if row["tflops"] else None,
        )
        assert pace.milliseconds == pytest.approx(1000 / float(row["gb_per_second"]))
        least = pace.prompt_milliseconds(1000)
        assert (least is None) == (not row["tflops"])
        if least is not None:
            assert least == pytest.approx(1000 / float(row["tflops"]))


def test_a_type_without_a_data_sheet_says_so() -> None:
    # 15.137 GB / 8 accelerators x 8,000 GB/s, or fewer of them: only the words are judged.
    text = line(floors_of("ml.p6-b200.48xlarge"), "Floors") or ""
    assert "before the first not known on ml.p6-b200.48xlarge" in text


def test_what_prompts_share_a_cache_may_hold() -> None:
    half = TokenTraffic(input=2000, output=250, shared_prefix=0.5)
    assert "198 ms before the first" in (
        line(floors_of("ml.g5.2xlarge", tokens=half), "Floors") or ""
    )
    without = floors_of("ml.g5.2xlarge", tokens=None)
    assert "before the first" not in (line(without, "Floors") or "")


def test_no_floor_where_the_weights_of_a_token_are_not_known() -> None:
    assert line(chat(), "Floors") is None
    mixture = chat(
        instance_type="ml.g6e.12xlarge",
        hub=served(pinned_models.QWEN3_30B, "ml.g6e.12xlarge"),
        images=[],
    )
    assert line(mixture, "Floors") is None


def test_a_server_with_a_pace_of_its_own_is_seen_by_its_environment():
    assert hides_pace({"SM_VLLM_QUANTIZATION": "fp8"})
    assert hides_pace({"SM_VLLM_LOAD_FORMAT": "bitsandbytes"})
    assert hides_pace({"SM_VLLM_SPECULATIVE_CONFIG": "{}"})  # several tokens in one pass
    assert not hides_pace({"SM_VLLM_MAX_NUM_SEQS": "64"})


# --- how long weights take to load --------------------------------------------------------------


@pytest.mark.parametrize(
    ("gb", "stated", "seconds", "asked"),
    [
        (16.4, None, 300, False),  # 225 + 33: AWS has published 258 to 525
        (30, None, 300, True),
        (141, None, 507, True),  # 225 + 2 x 141
        (141, 600, 600, False),
        (30, 240, 240, False),
    ],
)
def test_a_start_is_no_shorter_than_the_weights_take(gb, stated, seconds, asked):
    model = replace(
        LLAMA_70B, files=tuple(each._replace(size=int(gb * 1e9)) for each in LLAMA_70B.files[:1])
    )
    start = timedelta(seconds=stated) if stated else None
    plan = chat(
        hub=served(model, "ml.p5.48xlarge"),
        instance_type="ml.p5.48xlarge",
        images=[],
        scaling=ScalingOptions(instance_start=start),
        throughput=replace(LOAD, rise_tps_per_minute=1),
    )
    assert plan.request.start_seconds == seconds
    assert any(each.id == "start-not-stated" for each in plan.explanation.warnings) is asked
    # 60 + 90 + 2 x the start, at 1 a minute, / (4 x 0.3)
    expected = min(7, -(-(150 + 2 * seconds) // 72))
    assert plan.fleet.minimum == max(2, expected)
