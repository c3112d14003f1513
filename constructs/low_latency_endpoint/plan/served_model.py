"""What of a pinned model a server loads, what its config.json says of it, and who serves it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from .pinned_model import ARCHITECTURE_NOT_SERVED, OWN_CODE, PinnedFile, PinnedModel

# Each of these means that not every layer keeps a key and a value per token and head: latent
# attention (DeepSeek), state space and linear layers, layers that share what another one keeps,
# cross attention, and older models' own ways to say how many heads there are.
_OTHER_ATTENTION = (
    "kv_lora_rank",
    "attn_layer_indices",
    "attn_layer_period",
    "attn_type_list",
    "conv_L_cache",
    "cross_attention_layers",
    "full_attention_interval",
    "full_attn_idxs",
    "hybrid_override_pattern",
    "layers_block_type",
    "linear_attn_config",
    "linear_num_key_heads",
    "mamba_d_state",
    "mamba_num_heads",
    "multi_query",
    "multi_query_group_num",
    "num_kv_shared_layers",
    "ssm_cfg",
    "state_size",
)
CONFIG_KEYS = (
    "architectures",
    "attention_chunk_size",
    "auto_map",
    "dtype",
    "head_dim",
    "hidden_size",
    "is_encoder_decoder",
    "layer_types",
    "max_position_embeddings",
    "model_type",
    "n_embd",
    "n_head",
    "n_layer",
    "n_positions",
    "n_routed_experts",
    "num_attention_heads",
    "num_experts",
    "num_experts_per_tok",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_local_experts",
    "quantization_config",
    "rope_parameters",
    "rope_scaling",
    "sliding_window",
    "text_config",
    "torch_dtype",
    "use_sliding_window",
    "vocab_size",
    *_OTHER_ATTENTION,
)
"""The keys of ``config.json`` that a lock file keeps, at its top level and in ``text_config``."""


class Attention(NamedTuple):
    """What a model's attention keeps of each token."""

    layers: int  # layers that keep every token
    window_layers: int  # layers that keep the newest tokens alone
    window: int  # how many these are; 0 without such layers
    heads: int  # attention heads
    key_value_heads: int  # heads that keep a key and a value
    head_dim: int  # numbers in each of the two


def kept_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of ``config.json`` that a lock file keeps: its :data:`CONFIG_KEYS`."""
    kept = {key: config[key] for key in CONFIG_KEYS if config.get(key) is not None}
    nested = kept.pop("text_config", None)
    if isinstance(nested, Mapping) and (text := kept_config(nested)):
        kept["text_config"] = text
    return kept


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is said of the language model: in models that also see or hear it is nested."""
    nested = config.get("text_config")
    return {**config, **nested} if isinstance(nested, Mapping) else config


def own_context(config: Mapping[str, Any]) -> int | None:
    """The longest context that the model was made for, in tokens; ``None`` where it is not said."""
    config = text_config(config)
    return count_of(config, "max_position_embeddings", "n_positions")


def attention(config: Mapping[str, Any]) -> Attention | None:
    """What a model's attention keeps per token; ``None`` where no formula holds.

    No formula holds for latent attention (DeepSeek's MLA), for state space and linear layers and
    for encoders with decoders. Where the config names a window but not the layers that have it, as
    Mistral 7B v0.1 does, all layers count as keeping every token: a bound on the safe side.
    """
    config = text_config(config)
    if config.get("is_encoder_decoder") or any(config.get(key) for key in _OTHER_ATTENTION):
        return None
    layers = count_of(config, "num_hidden_layers", "n_layer")
    heads = count_of(config, "num_attention_heads", "n_head")
    hidden = count_of(config, "hidden_size", "n_embd")
    if not layers or not heads or not hidden:
        return None
    windowed = _windowed(config, layers)
    head_dim = count_of(config, "head_dim") or hidden // heads
    if windowed is None or not head_dim:  # a head of no number: a config of no model
        return None
    window_layers, window = windowed
    return Attention(
        layers=layers - window_layers,
        window_layers=window_layers,
        window=window,
        heads=heads,
        key_value_heads=count_of(config, "num_key_value_heads") or heads,
        head_dim=head_dim,
    )


def _windowed(config: Mapping[str, Any], layers: int) -> tuple[int, int] | None:
    """Layers with a window, and the window; ``None`` where layers are of a kind not known here."""
    kinds = config.get("layer_types")
    if kinds is None or config.get("use_sliding_window") is False:
        return 0, 0
    if not isinstance(kinds, (list, tuple)) or len(kinds) != layers:
        return None
    windows = {
        "full_attention": None,
        "sliding_attention": count_of(config, "sliding_window"),
        "chunked_attention": count_of(config, "attention_chunk_size"),
    }
    if any(not isinstance(kind, str) or kind not in windows for kind in kinds):
        return None
    windowed = [window for kind in kinds if (window := windows[kind])]
    if len(windowed) == layers:
        return 0, 0  # as above: what every layer forgets is not counted on
    return len(windowed), max(windowed, default=0)


def count_of(config: Mapping[str, Any], *keys: str) -> int | None:
    """The first of the keys that holds a whole number above zero."""
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


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
    architectures = pinned.config.get("architectures")
    return tuple(map(str, architectures)) if isinstance(architectures, (list, tuple)) else ()


def generates(pinned: PinnedModel) -> bool:
    """Whether a model writes text token by token, by its task."""
    return served_task(pinned) in GENERATION_TASKS


# Of the decoders with experts in transformers 5.24.0 whose config.json is not nested, each states one
# of these, but Ernie 4.5's and DBRX. The one has "moe" in its model_type, the other no hidden_size.
_EXPERTS = ("n_routed_experts", "num_experts", "num_experts_per_tok", "num_local_experts")


def is_dense_decoder(pinned: PinnedModel) -> bool:
    """Whether config.json says that a model of text reads all its weights for each token.

    It does not say so of models with experts, of those whose attention has no formula in
    :func:`attention`, of those that also see or hear, and of a class that is code beside the weights.
    """
    config = pinned.config
    if served_task(pinned) != "text-generation" or config.get("text_config"):
        return False
    if config.get("auto_map") or not _writes_token_by_token(pinned):
        return False
    if "moe" in _model_type(pinned) or any(config.get(key) for key in _EXPERTS):
        return False
    return attention(config) is not None


def _writes_token_by_token(pinned: PinnedModel) -> bool:
    """Whether the class is a decoder's; one that writes whole blocks has another name."""
    classes = architectures(pinned)
    return bool(classes) and all(name.endswith(("ForCausalLM", "LMHeadModel")) for name in classes)


def served_weights(pinned: PinnedModel) -> tuple[PinnedFile, ...]:
    """The files whose weights a server loads: of one format, and of one model where there are more.

    A repository often has its weights twice, for transformers and for its makers' own code
    (``consolidated.safetensors``, ``original/``), and a GGUF repository once for each quantization,
    of which the first by name is taken.
    """
    weights = [file for file in pinned.files if file.is_weights]
    top = [weight for weight in weights if "/" not in weight.path] or weights
    for suffix in (".safetensors", ".gguf"):
        if same := [each for each in top if each.path.endswith(suffix)]:
            return _first_gguf(same) if suffix == ".gguf" else _without_copies(same)
    return tuple(top)


def is_gguf(pinned: PinnedModel) -> bool:
    """Whether llama.cpp alone loads the model's weights."""
    served = served_weights(pinned)
    return bool(served) and all(file.path.endswith(".gguf") for file in served)


def weight_bytes(pinned: PinnedModel) -> int:
    """Of the weights, as a server keeps them in memory."""
    stored = sum(weight.size for weight in served_weights(pinned))
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
    ggufs = {_SHARD.sub("", file.path) for file in pinned.files if file.path.endswith(".gguf")}
    ggufs = {gguf for gguf in ggufs if not is_projector(gguf)}
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
    models = sorted(file for file in files if not is_projector(file.path)) or sorted(files)
    first = _SHARD.sub("", models[0].path)
    return tuple(model for model in models if _SHARD.sub("", model.path) == first)


def is_projector(path: str) -> bool:
    """Whether it is the part of a model that sees, which llama.cpp keeps in a file of its own."""
    return path.rpartition("/")[2].startswith("mmproj")


def _without_copies(files: list[PinnedFile]) -> tuple[PinnedFile, ...]:
    return tuple(file for file in files if not file.path.startswith("consolidated")) or tuple(files)


_CLASSIFIES = frozenset({"text-classification", "text-ranking"})
_EMBEDS = frozenset({"feature-extraction", "sentence-similarity"})
# Text Embeddings Inference 1.8.2, backends/candle/src/lib.rs: model_type of config.json. Which of
# them classify say the files of models/.
_TEI_CLASSIFIES = frozenset(
    {"bert", "camembert", "gte", "modernbert", "new", "roberta", "xlm-roberta"}
)
_TEI_ON_GPU_ONLY = frozenset({"mistral", "qwen2"})
_TEI_EMBEDS = _TEI_CLASSIFIES | _TEI_ON_GPU_ONLY | {
    "distilbert", "gemma3_text", "mpnet", "nomic_bert", "qwen3",
}  # fmt: skip
_GENERATIVE = frozenset({"vllm", "sglang"})
# The only encoder with a decoder that vLLM kept: https://github.com/vllm-project/vllm/pull/24907
_WHISPER = "WhisperForConditionalGeneration"


def tei_serves(pinned: PinnedModel, *, gpu: bool) -> bool:
    """Whether Text Embeddings Inference serves a model for its task.

    It needs the fast tokenizer's file besides: "text-embeddings-inference only supports fast
    tokenizers" (router/src/lib.rs).
    """
    kind = _model_type(pinned)
    if not any(file.path == "tokenizer.json" for file in pinned.files):
        return False
    if kind in _TEI_ON_GPU_ONLY and not gpu:
        return False
    task = served_task(pinned)
    if task in _CLASSIFIES:
        return kind in _TEI_CLASSIFIES
    return task in _EMBEDS and kind in _TEI_EMBEDS


def check_served(pinned: PinnedModel, server: str, *, gpu: bool, where: str) -> tuple[str, ...]:
    """Raise where a server does not serve a kind of model; return what is doubtful."""
    kind = _model_type(pinned)
    if server == "tei" and not tei_serves(pinned, gpu=gpu):
        raise ARCHITECTURE_NOT_SERVED.error(
            got=f"{kind or 'no model_type'} for {served_task(pinned)}"
            f" on {'a GPU' if gpu else 'a CPU'}, and Text Embeddings Inference",
            allowed=", ".join(sorted(_TEI_EMBEDS)) + ", with a tokenizer.json",
            where=where,
        )
    if server in _GENERATIVE and _encodes_first(pinned):
        named = ", ".join(architectures(pinned)) or kind or "no architecture"
        raise ARCHITECTURE_NOT_SERVED.error(
            got=f"{named}, an encoder-decoder model, and {server}",
            allowed="decoder-only models",
            where=where,
        )
    if server == "huggingface" and generates(pinned):
        return ("transformers answers one request after the other: slow for text generation",)
    return ()


def trusts_own_code(
    pinned: PinnedModel, server: str, trust_remote_code: bool | None, where: str
) -> bool:
    """Whether the container runs code beside the weights; TEI and llama.cpp cannot run any."""
    if server in ("tei", "llama-cpp") or not _has_own_code(pinned):
        return False
    if trust_remote_code is None:
        code = [file.path for file in pinned.files if file.path.endswith(".py")]
        raise OWN_CODE.error(
            got=f"{pinned.model} with {', '.join(code[:4])}",
            allowed="trust_remote_code=True, or False",
            where=where,
        )
    return trust_remote_code


def _has_own_code(pinned: PinnedModel) -> bool:
    return bool(pinned.config.get("auto_map")) and any(
        file.path.endswith(".py") for file in pinned.files
    )


def _encodes_first(pinned: PinnedModel) -> bool:
    return bool(pinned.config.get("is_encoder_decoder")) and _WHISPER not in architectures(pinned)


def _model_type(pinned: PinnedModel) -> str:
    return str(pinned.config.get("model_type") or "")
