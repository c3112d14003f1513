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
from .decisions import Decision, SummaryLine
from .pinned_model import PinnedModel
from .served_model import count_of, is_dense_decoder, weight_bytes

if TYPE_CHECKING:
    from ..options.latency_target import LatencyTarget
    from .hub_serving import HubServing
    from .plan import Plan

ITL_BELOW_FLOOR = rule(
    "LLE899",
    "the accelerators' memory is too slow for the inter-token latency",
    fix="Raise the target, quantize the model, or choose a type with more bandwidth or "
    "more accelerators.",
    source="https://developer.nvidia.com/blog/mastering-llm-techniques-inference-optimization/",
)
_LARGEST_VOCABULARY = 300_000  # of a config that states none: the largest known have 262,400
_EMBEDDING_BYTES = 2  # of a number of the embedding


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
        operations = 2 * self.prompt_bytes / _EMBEDDING_BYTES * tokens
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

    The input embedding is looked up and not read.
    """
    if not count_of(pinned.config, "hidden_size", "n_embd") or not is_dense_decoder(pinned):
        return None
    return max(weight_bytes(pinned) - _embedding_bytes(pinned), 0)


def _embedding_bytes(pinned: PinnedModel) -> int:
    """Of the input embedding; as much again of the output's, which only a prompt's last token needs."""
    hidden = count_of(pinned.config, "hidden_size", "n_embd") or 0
    vocabulary = count_of(pinned.config, "vocab_size") or _LARGEST_VOCABULARY
    return _EMBEDDING_BYTES * vocabulary * hidden


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


# --- in the plan ---------------------------------------------------------------------------------


def floor_lines(plan: Plan) -> Iterator[SummaryLine]:
    """The floors on the slowest type, each as a share of its tightest target."""
    hub = plan.request.serving.hub
    paces = list(decode_paces(hub)) if hub else []
    if not paces:
        return
    latency = plan.request.latency
    slowest = _slowest_between(paces)
    between = f"{milliseconds(slowest.milliseconds, 3)} between tokens on {slowest.instance_type}"
    between += _share("itl", slowest.milliseconds, latency.itl_milliseconds if latency else {})
    parts = [between]
    tokens = _uncached_tokens(plan)
    prompt = _slowest_before_first(paces, tokens)
    if prompt is not None:
        least = prompt.prompt_milliseconds(tokens) or 0.0
        first = f"{milliseconds(least, 3)} before the first, after a mean prompt"
        if prompt != slowest:
            first += f" on {prompt.instance_type}"
        first += _share("ttft", least, latency.ttft_milliseconds if latency else {})
        parts.append(first)
    unknown = [pace.instance_type for pace in paces if tokens and pace.tflops is None]
    if unknown:
        parts.append(f"before the first not known on {', '.join(unknown)}")
    yield SummaryLine("Floors", "at the least " + "; ".join(parts))


def _share(name: str, floor: float, targets: Mapping[str, float]) -> str:
    """A floor as a share of the tightest target, in words; empty without one."""
    if not targets:
        return ""
    percentile, target = min(targets.items(), key=lambda item: item[1])
    return f", {floor / target:.0%} of {name}_{percentile}"


def explain_floors(plan: Plan) -> Iterator[Decision]:
    """Both floors on the slowest type; notes have the other types."""
    hub = plan.request.serving.hub
    paces = list(decode_paces(hub)) if hub else []
    if not paces:
        return
    pace = _slowest_between(paces)
    yield Decision(
        name="inter_token_floor",
        value=round(pace.milliseconds, 2),
        unit="ms",
        rule="bytes of the weights that a token reads / bandwidth of the accelerators' memory: no "
        "gap between tokens is shorter, and real ones are longer",
        inputs={
            "instance type": pace.instance_type,
            "bytes read": pace.token_bytes,
            "GB per second of an accelerator": pace.gb_per_second,
            "accelerators": pace.accelerators,
        },
        source=ITL_BELOW_FLOOR.source,
        note=_others({other.instance_type: other.milliseconds for other in paces if other != pace}),
    )
    tokens = _uncached_tokens(plan)
    prompt = _slowest_before_first(paces, tokens)
    if prompt is not None:
        yield _first_token_floor(prompt, paces, tokens)


def _first_token_floor(prompt: DecodePace, paces: list[DecodePace], tokens: float) -> Decision:
    others = {
        pace.instance_type: pace.prompt_milliseconds(tokens) for pace in paces if pace != prompt
    }
    return Decision(
        name="first_token_floor",
        value=round(prompt.prompt_milliseconds(tokens) or 0.0, 2),
        unit="ms",
        rule="2 x parameters but for the embeddings x tokens of a mean prompt / the accelerators' "
        "operations per second at full use: no first token comes earlier, unless a cache holds more "
        "of the prompt",
        inputs={
            "instance type": prompt.instance_type,
            "parameters": prompt.prompt_bytes // _EMBEDDING_BYTES,
            "tokens that no cache holds": tokens,
            "TFLOP/s of an accelerator": prompt.tflops or 0.0,
            "accelerators": prompt.accelerators,
        },
        source=ITL_BELOW_FLOOR.source,
        note=_others(others),
    )


def _others(floors: Mapping[str, float | None]) -> str:
    """The floors of the other types, in words."""
    return ", ".join(
        f"{name} {milliseconds(floor, 3) if floor is not None else 'not known'}"
        for name, floor in floors.items()
    )


def _slowest_between(paces: list[DecodePace]) -> DecodePace:
    return max(paces, key=lambda pace: pace.milliseconds)


def _slowest_before_first(paces: list[DecodePace], tokens: float) -> DecodePace | None:
    """The type with the longest floor before the first token; ``None`` where none is known."""
    known = [pace for pace in paces if pace.prompt_milliseconds(tokens)]
    return max(known, key=lambda pace: pace.prompt_milliseconds(tokens) or 0.0, default=None)


def _uncached_tokens(plan: Plan) -> float:
    """Of a mean prompt, less what prompts share; 0 where nobody stated its length."""
    traffic = plan.request.tokens
    if traffic is None:
        return 0.0
    return round(traffic.mean_input * (1 - traffic.shared_prefix), 1)
