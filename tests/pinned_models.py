"""Pinned models for tests: those of published configurations, with hashes of nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from low_latency_endpoint.hugging_face.lock_file import LOCK_NAME, lock_text
from low_latency_endpoint.plan.pinned_model import PinnedFile, PinnedModel

QWEN = PinnedModel(
    model="Qwen/Qwen3-8B",
    revision="main",
    commit="9" * 40,
    license="apache-2.0",
    task="text-generation",
    library="transformers",
    parameters={"BF16": 8_190_735_360},
    config={
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "hidden_size": 4096,
        "head_dim": 128,
        "max_position_embeddings": 40_960,
    },
    files=(
        PinnedFile("config.json", 728, "1" * 64),
        PinnedFile("model.safetensors", 16_381_470_720, "0" * 64),
        PinnedFile("tokenizer.json", 11_422_654, "2" * 64),
    ),
)
"""As its config.json says; its weights in one file."""

LLAMA = replace(QWEN, model="meta-llama/Llama-3.1-8B-Instruct", license="llama3.1", gated=True)
"""Gated, under a licence that asks something; the rest is the other's."""

EMBEDDER = PinnedModel(
    model="BAAI/bge-small-en-v1.5",
    revision="main",
    commit="5" * 40,
    license="mit",
    task="feature-extraction",
    config={"architectures": ["BertModel"], "model_type": "bert", "max_position_embeddings": 512},
    files=(
        PinnedFile("config.json", 743, "1" * 64),
        PinnedFile("model.safetensors", 133_466_304, "0" * 64),
        PinnedFile("tokenizer.json", 711_396, "2" * 64),
    ),
)


def written_lock(folder: Path, *models: PinnedModel) -> Path:
    """A lock file with these models, by default with all of them."""
    path = folder / LOCK_NAME
    path.write_text(lock_text(models or (QWEN, LLAMA, EMBEDDER)), encoding="utf-8")
    return path
