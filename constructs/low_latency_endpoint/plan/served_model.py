"""What of a pinned model a server loads, and for which task."""

from __future__ import annotations

import re

from .model_config import text_config
from .pinned_model import PinnedFile, PinnedModel

GENERATION_TASKS = frozenset(
    {"text-generation", "image-text-to-text", "video-text-to-text", "any-to-any"}
)
"""The Hub's tasks whose models write text token by token, and so keep keys and values."""
_TASK_OF_CLASS = {
    "ForCausalLM": "text-generation",
    "LMHeadModel": "text-generation",
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMaskedLM": "fill-mask",
}
_SHARD = re.compile(r"-\d{5}-of-\d{5}(?=\.)")


def served_task(pinned: PinnedModel) -> str | None:
    """The Hub's task of a model; where its card names none, what its class is for."""
    if pinned.task:
        return pinned.task
    for architecture in architectures(pinned):
        for ending, task in _TASK_OF_CLASS.items():
            if architecture.endswith(ending):
                return task
    return "text-generation" if is_gguf(pinned) else None


def architectures(pinned: PinnedModel) -> tuple[str, ...]:
    """The classes that ``config.json`` names."""
    stated = pinned.config.get("architectures")
    return tuple(map(str, stated)) if isinstance(stated, (list, tuple)) else ()


def generates(pinned: PinnedModel) -> bool:
    """Whether a model writes text token by token, by its task."""
    return served_task(pinned) in GENERATION_TASKS


def served_weights(pinned: PinnedModel) -> tuple[PinnedFile, ...]:
    """The files whose weights a server loads: of one format, and of one model where there are more.

    A repository often has its weights twice, for transformers and for its makers' own code
    (``consolidated.safetensors``, ``original/``), and a GGUF repository once for each quantization,
    of which the first by name is taken.
    """
    weights = [each for each in pinned.files if each.is_weights]
    top = [each for each in weights if "/" not in each.path] or weights
    for suffix in (".safetensors", ".gguf"):
        if same := [each for each in top if each.path.endswith(suffix)]:
            return _first_gguf(same) if suffix == ".gguf" else _without_copies(same)
    return tuple(top)


def is_gguf(pinned: PinnedModel) -> bool:
    """Whether llama.cpp alone loads the model's weights."""
    served = served_weights(pinned)
    return bool(served) and all(each.path.endswith(".gguf") for each in served)


def weight_bytes(pinned: PinnedModel) -> int:
    """Of the weights, as a server keeps them in memory."""
    stored = sum(each.size for each in served_weights(pinned))
    return stored // 2 if _in_32_bits(pinned) else stored


def _in_32_bits(pinned: PinnedModel) -> bool:
    """Whether all weights have 32 bits, of which servers of generative models load 16."""
    return set(pinned.parameters) == {"F32"} and generates(pinned)


def weight_doubts(pinned: PinnedModel) -> tuple[str, ...]:
    """What is assumed of the weights, or better said at pinning."""
    doubts = []
    if _in_32_bits(pinned):
        doubts.append("the weights have 32 bits; vLLM and SGLang load them with 16")
    served = served_weights(pinned)
    ggufs = {_SHARD.sub("", each.path) for each in pinned.files if each.path.endswith(".gguf")}
    ggufs = {each for each in ggufs if not is_projector(each)}
    if is_gguf(pinned) and len(ggufs) > 1:
        doubts.append(
            f"of {len(ggufs)} GGUF models {served[0].path} is served, the first by name: pin the "
            "one that you mean alone"
        )
    config = text_config(pinned.config)
    windowed = config.get("sliding_window") and config.get("use_sliding_window") is not False
    if generates(pinned) and windowed and not config.get("layer_types"):
        doubts.append(
            "which layers have the sliding window is not said: all count as keeping every token"
        )
    return tuple(doubts)


def _first_gguf(files: list[PinnedFile]) -> tuple[PinnedFile, ...]:
    models = sorted(each for each in files if not is_projector(each.path)) or sorted(files)
    first = _SHARD.sub("", models[0].path)
    return tuple(each for each in models if _SHARD.sub("", each.path) == first)


def is_projector(path: str) -> bool:
    """Whether it is the part of a model that sees, which llama.cpp keeps in a file of its own."""
    return path.rpartition("/")[2].startswith("mmproj")


def _without_copies(files: list[PinnedFile]) -> tuple[PinnedFile, ...]:
    return tuple(each for each in files if not each.path.startswith("consolidated")) or tuple(files)
