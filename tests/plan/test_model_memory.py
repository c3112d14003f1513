"""Weights and cache against memory: every number here is worked out by hand beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.facts.instance_types import instance_facts
from low_latency_endpoint.plan.model_memory import (
    MIB,
    OVERHEAD_BYTES,
    PREFILL_TOKENS,
    KvCache,
    fitting_types,
    model_fit,
)
from low_latency_endpoint.plan.pinned_model import PinnedModel
from low_latency_endpoint.plan.served_model import (
    CONFIG_KEYS,
    Attention,
    attention,
    kept_config,
    own_context,
    served_task,
    served_weights,
)
from low_latency_endpoint.plan.serving_containers import serving_container
from tests.refusals import refused

from . import pinned_models as published
from .pinned_models import GIB, pinned

LARGE = "ml.p5en.48xlarge"  # 8 GPUs of 144,384 MiB, on which all of these fit


@pytest.mark.parametrize(
    ("model", "per_token", "gib_of_8192"),
    [
        # 2 (key and value) x layers x heads that keep them x head_dim x 2 bytes
        (published.LLAMA_8B, 2 * 32 * 8 * 128 * 2, 1.0),  # 131,072
        (published.QWEN3_8B, 2 * 36 * 8 * 128 * 2, 1.125),  # 147,456
        (published.MISTRAL_7B, 2 * 32 * 8 * 128 * 2, 1.0),
        (published.QWEN25_7B, 2 * 28 * 4 * 128 * 2, 0.4375),  # 57,344
        (published.LLAMA_70B, 2 * 80 * 8 * 128 * 2, 2.5),  # 327,680
        (published.QWEN3_32B, 2 * 64 * 8 * 128 * 2, 2.0),  # 262,144
        (published.QWEN3_30B, 2 * 48 * 4 * 128 * 2, 0.75),  # 98,304
        # All 40 heads keep keys: 800 KiB, the number of the PagedAttention paper.
        (published.OPT_13B, 800 * 1024, 6.25),
    ],
    ids=lambda value: value.model if isinstance(value, PinnedModel) else "",
)
def test_the_cache_of_published_models_is_as_large_as_published(
    model: PinnedModel, per_token: int, gib_of_8192: float
) -> None:
    shape = attention(model.config)
    assert shape is not None
    cache = KvCache.of(shape, parallel=1)
    assert cache.request(1) == 16 * per_token  # a block of 16 tokens
    assert cache.request(8192) == 8192 * per_token == gib_of_8192 * GIB
    assert model_fit(model, "ml.g6e.12xlarge").weight_bytes == model.weight_bytes


def test_the_cache_over_all_gpus_is_that_of_one_until_heads_are_copied() -> None:
    # 8 heads over 4 GPUs: 2 on each, and 4 x 2 = 8. 4 heads over 8 GPUs: a copy each, twice as much.
    assert model_fit(published.QWEN3_8B, "ml.g6.12xlarge").kv_bytes_per_token == 147_456
    assert model_fit(published.QWEN3_30B, "ml.g6.48xlarge").kv_bytes_per_token == 2 * 98_304


def test_qwen3_8b_on_one_gpu_of_22888_mib_needs_a_shorter_context_than_its_own() -> None:
    # 0.92 x 22,888 MiB = 21,056.96; less 1,536 assumed = 19,520.96; less weights of
    # 16,381,470,720 bytes = 15,622.59 MiB: 3,898.37 MiB for the cache, at 147,456 bytes (0.140625
    # MiB) a token 27,721 tokens, 27,712 in blocks of 16. Facts from a like GPU: 28 to 31 thousand.
    fit = model_fit(published.QWEN3_8B, "ml.g6.2xlarge")
    assert fit.kv_tokens == 27_712
    assert fit.model_context == 40_960
    assert fit.context_length == 27 * 1024
    assert fit.concurrent_requests == 1
    assert fit.tensor_parallel == 1
    # 4,096 tokens are 603,979,776 bytes = 576 MiB, which 3,898 MiB hold six times.
    short = model_fit(published.QWEN3_8B, "ml.g6.2xlarge", context_length=4096)
    assert (short.context_length, short.concurrent_requests) == (4096, 6)
    assert short.lines()[1].startswith("147,456 bytes of cache per token: room for 27,712 tokens")


def test_a_model_whose_own_context_fits_needs_no_other() -> None:
    # 0.92 x 45,776 MiB - 1,536 - 15,622.59 = 24,955.33 MiB: 177,460 tokens, four times 40,960.
    fit = model_fit(published.QWEN3_8B, "ml.g6e.2xlarge")
    assert fit.context_length is None
    assert fit.context == 40_960
    assert fit.kv_tokens == 177_456
    assert fit.concurrent_requests == 4


def test_weights_are_spread_over_the_gpus_that_divide_the_heads() -> None:
    # 141,107,412,992 bytes over 8 x 22,888 MiB: 16,821.3 of 19,520.96 MiB each.
    fit = model_fit(published.LLAMA_70B, "ml.g6.48xlarge")
    assert fit.tensor_parallel == 8
    # 2,699.65 MiB each, at 40,960 bytes of a token there: 69,111 tokens.
    assert fit.kv_tokens == 69_104
    assert fit.context_length == 67 * 1024
    # 28 heads: 4 divides them, 8 does not.
    narrow = model_fit(published.QWEN25_7B, "ml.g6.48xlarge")
    assert narrow.tensor_parallel == 4
    assert any("4 stay idle" in warning for warning in narrow.warnings)


def test_layers_with_a_window_keep_it_and_what_is_read_at_once() -> None:
    # gpt-oss-20b: of 24 layers 12 keep every token, 12 the last 128; 2 x 8 x 64 x 2 = 2,048 bytes of
    # a layer, so 24,576 of a token in either half.
    shape = attention(published.GPT_OSS_20B.config)
    assert shape == Attention(12, 12, 128, 64, 8, 64)
    cache = KvCache.of(shape, parallel=1)
    # 131,072 tokens in the one half; in the other 127 + 8,192, in blocks 8,320, and one block more.
    assert cache.request(131_072) == 24_576 * 131_072 + 24_576 * (8320 + 16)
    fit = model_fit(published.GPT_OSS_20B, "ml.g6.2xlarge")
    # 19,520.96 MiB - 13,123.76 = 6,397.2 MiB. A request of its own context needs 3,072 + 195.4
    # MiB, so one fits, and not two.
    assert fit.context_length is None
    assert fit.concurrent_requests == 1
    assert fit.kv_bytes_per_token == 2 * 24_576


def test_a_window_of_unnamed_layers_is_not_counted_on() -> None:
    fit = model_fit(published.MISTRAL_OF_OLD, "ml.g6e.2xlarge")
    assert fit.kv_bytes_per_token == 131_072
    assert any("sliding window is not said" in warning for warning in fit.warnings)
    assert not model_fit(published.MISTRAL_7B, "ml.g6e.2xlarge").warnings
    assert not model_fit(published.QWEN3_8B, "ml.g6e.2xlarge").warnings


@pytest.mark.parametrize(
    "config",
    [
        {"kv_lora_rank": 512},
        {"layer_types": ["linear_attention", "full_attention"]},
        {"layer_types": ["full_attention"]},  # of another number than the layers
        {"full_attention_interval": 4},
        {"mamba_d_state": 256},
        {"layers_block_type": ["mamba", "attention"]},
        {"num_kv_shared_layers": 1},
        {"is_encoder_decoder": True},
        {"multi_query": True},
        {"num_hidden_layers": None},
        {"num_hidden_layers": "36"},
    ],
    ids=lambda config: next(iter(config)),
)
def test_attention_of_another_kind_is_unknown_and_not_a_number(config: dict[str, object]) -> None:
    plain = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
    assert attention(plain) is not None
    assert attention({**plain, **config}) is None


def test_of_an_unknown_cache_the_weights_alone_are_checked() -> None:
    # 688.6 GB over 8 x 144,384 MiB: 82,085 of 131,297 MiB each.
    fit = model_fit(published.DEEPSEEK_V3, LARGE)
    assert fit.kv_bytes_per_token is None
    assert fit.concurrent_requests is None
    assert fit.context_length is None
    assert any("not known" in warning for warning in fit.warnings)
    with refused("LLE355") as caught:
        model_fit(published.DEEPSEEK_V3, "ml.p5.48xlarge")  # 8 x 81,920 MiB
    assert caught.value.allowed.split(", ")[0] == "ml.g7e.48xlarge"


def test_what_does_not_fit_is_refused_with_the_types_that_hold_it() -> None:
    with refused("LLE355", where="endpoints.chat") as caught:
        model_fit(published.LLAMA_70B, "ml.g6.2xlarge", where="endpoints.chat")
    types = caught.value.allowed.split(", ")
    assert 0 < len(types) <= 8
    memory = [instance_facts(name).accelerator_memory_mib or 0 for name in types]  # type: ignore[union-attr]
    assert memory == sorted(memory)
    for name in types:
        assert model_fit(published.LLAMA_70B, name).weight_bytes == published.LLAMA_70B.weight_bytes


def test_a_stated_context_that_does_not_fit_is_refused_and_never_cut() -> None:
    with refused("LLE355") as caught:
        model_fit(published.QWEN3_8B, "ml.g6.2xlarge", context_length=32_768)
    assert "27,712" in caught.value.got
    assert "32,768" in caught.value.got
    for never in (40_961, 0, -1):
        with refused("LLE391"):
            model_fit(published.QWEN3_8B, "ml.g6e.2xlarge", context_length=never)
    with refused("LLE391"):
        model_fit(pinned("a/b", 1), "ml.g6e.2xlarge", context_length=0)


def test_room_for_less_than_a_short_request_is_no_room() -> None:
    # One GPU has 19,520.96 MiB = 20,469,210,153 bytes besides; 1,000 tokens of 147,456 bytes less.
    tight = replace(published.QWEN3_8B, files=pinned("a/b", 20_469_210_153 - 1000 * 147_456).files)
    with refused("LLE355"):
        model_fit(tight, "ml.g6.2xlarge")
    unsaid = {**tight.config, "max_position_embeddings": None}
    with refused("LLE355"):
        model_fit(replace(tight, config=unsaid), "ml.g6.2xlarge")
    # Who says how short the requests are, is believed: 992 tokens are 62 blocks, which have room.
    assert model_fit(tight, "ml.g6.2xlarge", context_length=992).concurrent_requests == 1


def test_positions_that_a_server_would_stretch_are_told_it() -> None:
    stretched = replace(
        published.QWEN25_7B,
        config={**published.QWEN25_7B.config, "rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
    )
    assert model_fit(published.QWEN25_7B, LARGE).context_length is None
    assert model_fit(stretched, LARGE).context_length == 131_072


def test_encoders_need_their_weights_alone() -> None:
    fit = model_fit(published.BGE_SMALL, "ml.g6.12xlarge")
    assert (fit.kv_bytes_per_token, fit.concurrent_requests, fit.context_length) == (None,) * 3
    assert fit.tensor_parallel == 1
    assert any("one of 4 accelerators" in warning for warning in fit.warnings)
    on_cpu = model_fit(published.BGE_SMALL, "ml.c7i.xlarge")
    assert (on_cpu.accelerator, on_cpu.accelerators) == (None, 1)
    assert on_cpu.memory_bytes == 8 * GIB
    assert not on_cpu.warnings


def test_inferentia_holds_weights_and_its_cache_is_unknown() -> None:
    fit = model_fit(published.LLAMA_8B, "ml.inf2.8xlarge")
    assert fit.tensor_parallel == 2  # cores
    assert fit.kv_bytes_per_token is None
    assert fit.weight_bytes == 16_060_522_496


def test_weights_of_32_bits_are_served_with_16() -> None:
    # 32 GB of F32 are 16 GB in memory, and fit into 19,520 MiB.
    full = replace(
        published.QWEN3_8B,
        files=pinned("a/b", 4 * 8_190_735_360).files,
        parameters={"F32": 8_190_735_360},
    )
    fit = model_fit(full, "ml.g6.2xlarge")
    assert fit.weight_bytes == 16_381_470_720
    assert any("32 bits" in warning for warning in fit.warnings)


def test_weights_that_a_repository_has_twice_count_once() -> None:
    twice = pinned(
        "a/b",
        {
            "model-00001-of-00002.safetensors": 5,
            "model-00002-of-00002.safetensors": 6,
            "consolidated.safetensors": 11,
            "original/consolidated.00.pth": 11,
            "pytorch_model.bin": 11,
            "onnx/model.safetensors": 11,
        },
    )
    assert sum(each.size for each in served_weights(twice)) == 11
    assert [each.path for each in served_weights(pinned("a/b", {"consolidated.safetensors": 7}))]
    assert [each.path for each in served_weights(pinned("a/b", {"pytorch_model.bin": 7}))]


def test_of_several_quantizations_the_first_is_served_with_all_its_parts() -> None:
    assert [each.path for each in served_weights(published.GGUF)] == ["Qwen3-8B-Q4_K_M.gguf"]
    assert any(
        "2 GGUF models" in each for each in model_fit(published.GGUF, "ml.g6.xlarge").warnings
    )
    parts = pinned(
        "a/b",
        {"m-00002-of-00002.gguf": 6, "m-00001-of-00002.gguf": 5, "amproj.gguf": 9}
        | {"mmproj-f16.gguf": 1},
    )
    assert [each.path for each in served_weights(parts)] == ["amproj.gguf"]
    parts = replace(parts, files=tuple(f for f in parts.files if f.path != "amproj.gguf"))
    served = [each.path for each in served_weights(parts)]
    assert served == ["m-00001-of-00002.gguf", "m-00002-of-00002.gguf"]
    assert not model_fit(parts, "ml.g6.xlarge").warnings[1:]


def test_files_have_to_lie_on_the_disk() -> None:
    # ml.g6.12xlarge has 3,760 GB of its own; ml.inf2.48xlarge a volume, of 512 GiB at most.
    with refused("LLE356"):
        model_fit(pinned("a/b", 3_760_000_000_001), "ml.g6.12xlarge")
    with refused("LLE356"):
        model_fit(published.LLAMA_70B, "ml.inf2.48xlarge", volume_gb=100)  # of 131.4 GiB
    with refused("LLE356"):
        model_fit(pinned("a/b", 513 * GIB), "ml.inf2.48xlarge")
    assert any(
        "volume_size" in each
        for each in model_fit(published.LLAMA_70B, "ml.inf2.48xlarge").warnings
    )
    enough = model_fit(published.LLAMA_70B, "ml.inf2.48xlarge", volume_gb=200)
    assert not any("volume_size" in each for each in enough.warnings)


def test_of_a_type_that_the_table_does_not_know_nothing_is_claimed() -> None:
    for name in ("ml.m99.large", "ml.p6e-gb200.36xlarge"):
        fit = model_fit(published.QWEN3_8B, name)
        assert fit.kv_tokens is None
        assert any("is not checked" in warning for warning in fit.warnings)
        assert fit.lines() == ()


def test_kept_config_has_what_attention_needs_and_nothing_of_the_rest() -> None:
    config = {
        **published.GPT_OSS_20B.config,
        "bos_token_id": 1,
        "text_config": {"head_dim": 64, "pad_token_id": 0},
        "vision_config": {"hidden_size": 1},
        "kv_lora_rank": None,
    }
    kept = kept_config(config)
    assert attention(kept) == attention(config)
    assert kept["text_config"] == {"head_dim": 64}
    assert not {"bos_token_id", "vision_config", "kv_lora_rank"} & kept.keys()
    assert kept_config(kept) == kept


def test_what_a_model_that_sees_says_of_its_text_is_read() -> None:
    nested = {"model_type": "gemma3", "text_config": dict(published.QWEN3_8B.config)}
    assert attention(nested) == attention(published.QWEN3_8B.config)
    assert own_context(nested) == 40_960
    assert own_context({"n_positions": 1024}) == 1024


def test_a_missing_task_is_that_of_the_class() -> None:
    def of(*names: str) -> str | None:
        return served_task(pinned("a/b", 1, task=None, architectures=list(names)))

    assert of("Qwen3ForCausalLM") == "text-generation"
    assert of("BertForSequenceClassification") == "text-classification"
    assert of("BertModel") is None
    assert of() is None
    assert served_task(pinned("a/b", {"m.gguf": 1}, task=None)) == "text-generation"


@given(
    layers=st.integers(1, 100),
    window_layers=st.integers(0, 100),
    window=st.integers(1, 200_000),
    heads=st.sampled_from([1, 2, 4, 8, 32]),
    parallel=st.sampled_from([1, 2, 4, 8]),
    room=st.integers(0, 2**38),
)
# As many whole blocks as the window keeps, and room for one more of the other layers.
@example(layers=19, window_layers=100, window=1249, heads=1, parallel=1, room=576135168)
def test_the_longest_request_fits_and_a_block_more_does_not(
    layers: int, window_layers: int, window: int, heads: int, parallel: int, room: int
) -> None:
    cache = KvCache.of(Attention(layers, window_layers, window, 64, heads, 128), parallel, room)
    longest = cache.longest_request
    assert longest % 16 == 0
    assert longest == 0 or cache.request(longest) <= room
    assert cache.request(longest + 16) > room


@given(room=st.integers(0, 2**40), shorter=st.integers(0, 2**30))
def test_more_memory_never_holds_less(room: int, shorter: int) -> None:
    shape = attention(published.GPT_OSS_20B.config)
    assert shape is not None
    more, less = KvCache.of(shape, 1, room), KvCache.of(shape, 1, room - shorter)
    assert more.longest_request >= less.longest_request


_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**6) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=5,
)


@given(config=st.dictionaries(st.sampled_from(CONFIG_KEYS), _ANYTHING))
def test_whatever_a_config_says_there_is_an_answer_or_a_coded_refusal(
    config: dict[str, object],
) -> None:
    kept = kept_config({**published.QWEN3_8B.config, **config})
    json.dumps(kept)
    for name in ("ml.g6.12xlarge", "ml.inf2.24xlarge", "ml.m7i.12xlarge"):
        try:
            serving_container(replace(published.QWEN3_8B, config=kept), name)
        except ConfigurationError as refusal:
            assert refusal.code in {"LLE353", "LLE354", "LLE355", "LLE390"}  # noqa: PT017


_COUNTS = (
    *("hidden_size", "num_attention_heads", "num_key_value_heads", "num_hidden_layers", "head_dim"),
    *("max_position_embeddings", "sliding_window", "attention_chunk_size"),
)
_SIZES = (1, 3, 5000, 10**15, 10**400)


@pytest.mark.parametrize(
    "model", [published.QWEN3_8B, published.GPT_OSS_20B], ids=["full", "windows"]
)
def test_sizes_that_cannot_be_have_an_answer_or_a_coded_refusal(model: PinnedModel) -> None:
    config = {key: value for key, value in model.config.items() if key != "head_dim"}
    for key, size in product(_COUNTS, _SIZES):
        for name in ("ml.p5en.48xlarge", "ml.g6.12xlarge", "ml.m7i.12xlarge"):
            try:
                fit = model_fit(replace(model, config={**config, key: size}), name)
            except ConfigurationError as refusal:
                assert refusal.code in {"LLE354", "LLE355"}  # noqa: PT017
            else:
                assert fit.requests_of(1) != 0


def test_fitting_types_hold_the_model_and_are_of_the_kind_asked_for() -> None:
    assert fitting_types(published.QWEN3_8B)[:2] == ("ml.g5.xlarge", "ml.g6.xlarge")
    # Its whole context is 5.6 GiB, for which 22,888 MiB are too few and 32,768 enough.
    assert fitting_types(published.QWEN3_8B, context_length=40_960)[0].startswith("ml.g")
    for kind in ("nvidia", "neuron", None):
        for name in fitting_types(published.BGE_SMALL, accelerator=kind):
            facts = instance_facts(name)
            assert facts.accelerator == kind
            assert facts.family not in ("p2", "p3", "inf1")
    assert fitting_types(pinned("a/b", 10_000 * GIB)) == ()


def test_what_is_assumed_is_what_the_module_says() -> None:
    assert OVERHEAD_BYTES == 1536 * MIB
    assert PREFILL_TOKENS == 8192
