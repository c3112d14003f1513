"""Published models as a lock file pins them: sizes and shapes of their own files, without the bytes.

Shapes are those of each model's ``config.json``; weights are parameters times bytes, as published.
"""

from __future__ import annotations

from typing import Any

from low_latency_endpoint.plan.pinned_model import PinnedFile, PinnedModel

GIB = 2**30


def pinned(
    model: str,
    weights: int | dict[str, int],
    *,
    task: str | None = "text-generation",
    files: tuple[str, ...] = (),
    parameters: dict[str, int] | None = None,
    **config: Any,
) -> PinnedModel:
    """A pinned model with weights of so many bytes, by file where there are several."""
    sizes = {"model.safetensors": weights} if isinstance(weights, int) else weights
    sizes = {**sizes, **dict.fromkeys(("config.json", *files), 1000)}
    return PinnedModel(
        model=model,
        revision="main",
        commit="0123456789" * 4,
        task=task,
        parameters=parameters or {},
        config=config,
        files=tuple(PinnedFile(path, size, "0" * 64) for path, size in sizes.items()),
    )


def dense(
    model: str,
    parameters: int,
    layers: int,
    heads: int,
    kv_heads: int | None,
    hidden: int,
    context: int,
    **config: Any,
) -> PinnedModel:
    """A decoder with weights of 16 bits."""
    if kv_heads is not None:
        config["num_key_value_heads"] = kv_heads
    return pinned(
        model,
        2 * parameters,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        hidden_size=hidden,
        max_position_embeddings=context,
        **config,
    )


LLAMA_8B = dense(
    "meta-llama/Llama-3.1-8B", 8_030_261_248, 32, 32, 8, 4096, 131_072,
    model_type="llama", architectures=["LlamaForCausalLM"],
    rope_scaling={"factor": 8.0, "rope_type": "llama3"},
)  # fmt: skip
QWEN3_8B = dense(
    "Qwen/Qwen3-8B", 8_190_735_360, 36, 32, 8, 4096, 40_960,
    head_dim=128, sliding_window=None, use_sliding_window=False,
    model_type="qwen3", architectures=["Qwen3ForCausalLM"],
)  # fmt: skip
MISTRAL_7B = dense(
    "mistralai/Mistral-7B-v0.3", 7_248_023_552, 32, 32, 8, 4096, 32_768,
    sliding_window=None, model_type="mistral", architectures=["MistralForCausalLM"],
)  # fmt: skip
MISTRAL_OF_OLD = dense(
    "mistralai/Mistral-7B-v0.1", 7_241_732_096, 32, 32, 8, 4096, 32_768,
    sliding_window=4096, model_type="mistral", architectures=["MistralForCausalLM"],
)  # fmt: skip
QWEN25_7B = dense(
    "Qwen/Qwen2.5-7B", 7_615_616_512, 28, 28, 4, 3584, 131_072,
    sliding_window=131_072, use_sliding_window=False,
    model_type="qwen2", architectures=["Qwen2ForCausalLM"],
)  # fmt: skip
LLAMA_70B = dense(
    "meta-llama/Llama-3.1-70B", 70_553_706_496, 80, 64, 8, 8192, 131_072,
    model_type="llama", architectures=["LlamaForCausalLM"],
)  # fmt: skip
QWEN3_32B = dense(
    "Qwen/Qwen3-32B", 32_762_123_264, 64, 64, 8, 5120, 40_960,
    head_dim=128, model_type="qwen3", architectures=["Qwen3ForCausalLM"],
)  # fmt: skip
QWEN3_30B = dense(
    "Qwen/Qwen3-30B-A3B", 30_532_122_624, 48, 32, 4, 2048, 40_960,
    head_dim=128, num_experts=128, model_type="qwen3_moe", architectures=["Qwen3MoeForCausalLM"],
)  # fmt: skip
OPT_13B = dense(
    "facebook/opt-13b", 12_853_473_280, 40, 40, None, 5120, 2048,
    model_type="opt", architectures=["OPTForCausalLM"],
)  # fmt: skip
GPT_OSS_20B = pinned(
    "openai/gpt-oss-20b", 13_761_264_768,
    num_hidden_layers=24, num_attention_heads=64, num_key_value_heads=8, head_dim=64,
    hidden_size=2880, max_position_embeddings=131_072, sliding_window=128,
    layer_types=["sliding_attention", "full_attention"] * 12,
    model_type="gpt_oss", architectures=["GptOssForCausalLM"],
)  # fmt: skip
DEEPSEEK_V3 = pinned(
    "deepseek-ai/DeepSeek-V3", 688_586_727_753,
    num_hidden_layers=61, num_attention_heads=128, num_key_value_heads=128, hidden_size=7168,
    kv_lora_rank=512, max_position_embeddings=163_840, model_type="deepseek_v3",
    architectures=["DeepseekV3ForCausalLM"],
)  # fmt: skip
BGE_SMALL = pinned(
    "BAAI/bge-small-en-v1.5", 133_466_304, task="feature-extraction", files=("tokenizer.json",),
    num_hidden_layers=12, num_attention_heads=12, hidden_size=384, max_position_embeddings=512,
    model_type="bert", architectures=["BertModel"],
)  # fmt: skip
GGUF = pinned(
    "Qwen/Qwen3-8B-GGUF",
    {"Qwen3-8B-Q4_K_M.gguf": 5_027_783_488, "Qwen3-8B-Q8_0.gguf": 8_709_518_112},
)
