"""What ``config.json`` of a model says of its shape, and what its attention keeps per token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

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
    if windowed is None:
        return None
    window_layers, window = windowed
    return Attention(
        layers=layers - window_layers,
        window_layers=window_layers,
        window=window,
        heads=heads,
        key_value_heads=count_of(config, "num_key_value_heads") or heads,
        head_dim=count_of(config, "head_dim") or hidden // heads,
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
