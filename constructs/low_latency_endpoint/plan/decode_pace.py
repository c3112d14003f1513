"""How quickly a model writes at best: every token reads the weights once from the memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ..errors import rule
from ..facts.instance_types import instance_facts
from ..facts.tables import rows
from ..report.numbers import milliseconds, readable
from .model_config import attention, count_of
from .served_model import served_task, weight_bytes

if TYPE_CHECKING:
    from ..options.latency_target import LatencyTarget
    from .hub_serving import HubServing
    from .pinned_model import PinnedModel

ITL_BELOW_FLOOR = rule(
    "LLE899",
    "the accelerators' memory is too slow for the inter-token latency",
    fix="Give the target more time, quantize the model, or choose a type with more bandwidth or more "
    "accelerators.",
    source="https://developer.nvidia.com/blog/mastering-llm-techniques-inference-optimization/",
)
_LARGEST_VOCABULARY = 300_000  # of a config that states none: the largest known have 262,400


class DecodePace(NamedTuple):
    """What bounds the time between tokens on an instance type."""

    instance_type: str
    token_bytes: int  # weights that a token reads at the least
    gb_per_second: float  # of one accelerator's memory, by its data sheet
    accelerators: int  # over which the model is spread

    @property
    def milliseconds(self) -> float:
        """Between two tokens of a stream, at the least."""
        return self.token_bytes / (self.gb_per_second * self.accelerators * 1e6)


@cache
def _table(name: str, keys: str, value: str) -> Mapping[str, str]:
    return {key: row[value] for row in rows(name) for key in row[keys].split()}


def hides_pace(environment: Mapping[str, object]) -> bool:
    """Whether a server is told to make its weights smaller, or to write several tokens at once."""
    hiding = ("QUANT", "LOAD_FORMAT", "SPECULAT")
    return any(word in name.upper() for name in environment for word in hiding)


def token_bytes(pinned: PinnedModel) -> int | None:
    """Weights that each token reads, in bytes: a bound from below; None where none is known.

    The input embedding is looked up and not read. Of experts a token reads those that are active;
    all weights but attention's count as experts', and attention's as 4 bits where any are quantized.
    """
    config = pinned.config
    reads = _table("decoders", "model_types", "reads").get(str(config.get("model_type")))
    hidden = count_of(config, "hidden_size", "n_embd")
    if reads is None or hidden is None or served_task(pinned) != "text-generation":
        return None
    vocabulary = count_of(config, "vocab_size") or _LARGEST_VOCABULARY
    read = max(weight_bytes(pinned) - 2 * vocabulary * hidden, 0)
    if reads == "all":
        return read
    experts = count_of(config, "num_local_experts", "num_experts", "n_routed_experts")
    active, shape = count_of(config, "num_experts_per_tok", "experts_per_token"), attention(config)
    if experts is None or active is None:
        return None
    size, always = 0.5 if config.get("quantization_config") else 2, 0.0
    if shape is not None:
        heads = 2 * (shape.heads + shape.key_value_heads) * shape.head_dim
        always = (shape.layers + shape.window_layers) * heads * hidden * size
    return round(always + max(read - always, 0) * active / experts)


def decode_paces(serving: HubServing) -> Iterator[DecodePace]:
    """Of each type that a model runs on, where bytes and bandwidth are known."""
    read = None if serving.model.pace_unknown else token_bytes(serving.model.pinned)
    for name, container in zip(serving.instance_types, serving.containers, strict=True):
        facts, fit = instance_facts(name), container.fit
        known = _table("memory_bandwidth", "families", "gb_per_second")
        if read and facts and facts.family in known:
            spread = fit.tensor_parallel if fit.accelerator == "nvidia" else fit.accelerators
            yield DecodePace(name, read, float(known[facts.family]), spread)


def check_itl(latency: LatencyTarget, serving: HubServing) -> None:
    """Raise where a target between tokens is shorter than reading the weights takes."""
    for pace in decode_paces(serving):
        for percentile, target in latency.itl_milliseconds.items():
            if target < pace.milliseconds:
                raise ITL_BELOW_FLOOR.error(
                    got=f"itl_{percentile} {milliseconds(target, 6)} on {pace.instance_type}: a token reads "
                    f"{readable(pace.token_bytes / 1e9, 3)} GB of weights at {pace.accelerators} x "
                    f"{readable(pace.gb_per_second)} GB/s",
                    allowed=f"more than {milliseconds(pace.milliseconds, 3)}",
                    where=f"itl_{percentile}",
                )
