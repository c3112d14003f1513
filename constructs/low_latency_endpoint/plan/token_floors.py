"""The shortest times that a language model's accelerators allow, by their data sheets.

Between two tokens of a stream they read the weights once; before the first token they compute with
them once for each token of the prompt. No server is as quick, so a target near a floor is not held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from ..errors import rule
from ..facts.instance_types import instance_facts
from ..facts.tables import number, rows
from ..report.numbers import milliseconds, readable
from .pinned_model import PinnedModel
from .served_model import count_of, is_dense_decoder, weight_bytes

if TYPE_CHECKING:
    from ..options.latency_target import LatencyTarget
    from .hub_serving import HubServing

ITL_BELOW_FLOOR = rule(
    "LLE899",
    "the accelerators' memory is too slow for the inter-token latency",
    fix="Raise the target, quantize the model, or choose a type with more bandwidth or "
    "more accelerators.",
    source="https://developer.nvidia.com/blog/mastering-llm-techniques-inference-optimization/",
)
_LARGEST_VOCABULARY = 300_000  # of a config that states none: the largest known have 262,400
EMBEDDING_BYTES = 2  # of a number of the embedding


class AcceleratorSpeed(NamedTuple):
    """What the data sheet of one accelerator states."""

    gb_per_second: float  # of its memory
    tflops: float | None  # dense, 16 bits; None where no data sheet was found


class DecodePace(NamedTuple):
    """What bounds the times of a model on an instance type."""

    instance_type: str
    token_bytes: int  # weights that a token reads at the least
    gb_per_second: float  # of one accelerator's memory, by its data sheet
    accelerators: int  # over which the model is spread
    prompt_bytes: int = 0  # weights that each token of a prompt is computed with, at the least
    tflops: float | None = None

    @property
    def milliseconds(self) -> float:
        """Between two tokens of a stream, at the least."""
        return self.token_bytes / (self.gb_per_second * self.accelerators * 1e6)

    def prompt_milliseconds(self, tokens: float) -> float | None:
        """Before the first token after a prompt that no cache holds; ``None`` where not known.

        Two operations for each of the weights, of 16 bits. Weights of fewer bits are more in as many
        bytes and computed faster in the same proportion, so this bounds them too.
        """
        if self.tflops is None:
            return None
        operations = 2 * self.prompt_bytes / EMBEDDING_BYTES * tokens
        return operations / (self.tflops * self.accelerators * 1e9)


def decode_paces(serving: HubServing) -> Iterator[DecodePace]:
    """Of each type that a model runs on, where bytes and bandwidth are known."""
    pinned = serving.model.pinned
    read = None if serving.model.pace_unknown else token_bytes(pinned)
    for name, container in zip(serving.instance_types, serving.containers, strict=True):
        facts = instance_facts(name)
        fit = container.fit
        if read and facts and facts.family in _speeds():
            spread = fit.tensor_parallel if fit.accelerator == "nvidia" else fit.accelerators
            speed = _speeds()[facts.family]
            yield DecodePace(
                name,
                read,
                speed.gb_per_second,
                spread,
                max(read - _embedding_bytes(pinned), 0),
                speed.tflops,
            )


@cache
def _speeds() -> Mapping[str, AcceleratorSpeed]:
    """By instance family."""
    return {
        family: AcceleratorSpeed(float(row["gb_per_second"]), number(row["tflops"]))
        for row in rows("accelerator_speed")
        for family in row["families"].split()
    }


def hides_pace(environment: Mapping[str, object]) -> bool:
    """Whether a server is told to make its weights smaller, or to write several tokens at once."""
    hiding = ("QUANT", "LOAD_FORMAT", "SPECULAT")
    return any(word in name.upper() for name in environment for word in hiding)


def token_bytes(pinned: PinnedModel) -> int | None:
    """Weights that each token reads, in bytes: a bound from below; None where none is known.

    The input embedding is looked up and not read. A tied one is read as the output's, but some files
    have it twice (Qwen3-1.7B) and others once (Qwen3-4B). config.json does not tell which, so one is
    taken off of both.
    """
    if not count_of(pinned.config, "hidden_size", "n_embd") or not is_dense_decoder(pinned):
        return None
    return max(weight_bytes(pinned) - _embedding_bytes(pinned), 0)


def _embedding_bytes(pinned: PinnedModel) -> int:
    """Of the input embedding; as much again of the output's, which only a prompt's last token needs."""
    hidden = count_of(pinned.config, "hidden_size", "n_embd") or 0
    vocabulary = count_of(pinned.config, "vocab_size") or _LARGEST_VOCABULARY
    return EMBEDDING_BYTES * vocabulary * hidden


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
