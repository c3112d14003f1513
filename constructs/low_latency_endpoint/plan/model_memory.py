"""Does a pinned model fit on an instance type, and how many requests at a time?

Weights are as large as their files. What is left of the accelerators' memory keeps keys and values,
a fixed number of bytes for each token of each request (:mod:`.model_config`). Bytes and formulas
are exact; what a server needs besides is assumed, on the safe side, by the constants here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from ..errors.frozen import dataclass
from ..facts.instance_types import InstanceFacts, instance_facts, instance_types
from ..facts.limits import VOLUME_SIZE
from .pinned_model import CONTEXT_LENGTH, DOES_NOT_FIT, NO_DISK, PinnedModel
from .served_model import (
    Attention,
    attention,
    count_of,
    generates,
    is_gguf,
    own_context,
    text_config,
    weight_bytes,
    weight_doubts,
)

MIB, GIB = 2**20, 2**30
GPU_MEMORY_UTILIZATION = 0.92
"""Share of each GPU that vLLM takes, of the one tag in use, 0.30.0; images of 2025 took 0.90.

Source: vllm-project/vllm, vllm/config/cache.py."""
CPU_MEMORY_UTILIZATION = 0.8
"""Share of the main memory for a model on a CPU. Assumed: the rest is the system's and Python's."""
OVERHEAD_BYTES = round(1.5 * GIB)
"""Of each accelerator, for activations and CUDA graphs. Assumed: the larger end of 1.0 to 1.5."""
KV_VALUE_BYTES = 2
"""Of a number in the cache: servers keep 16 bits, whatever the weights have, unless told otherwise."""
BLOCK_TOKENS = 16
"""vLLM gives memory out in blocks of that many tokens; source: vllm/config/cache.py."""
PREFILL_TOKENS = 8192
"""What a layer with a window keeps besides its window while it reads a prompt, in tokens.

Source: ``SlidingWindowSpec.max_memory_usage_bytes`` in vllm/v1/kv_cache_interface.py, which counts
``sliding_window - 1 + max_num_batched_tokens``; that has several defaults, of which this is largest.
"""
LEAST_CONTEXT = 1024
"""In tokens. Assumed: a model that has no room for one request of this length does not fit."""
DEFAULT_VOLUME_BYTES = 16 * GIB
"""Of files that need no volume to be asked for. Assumed: AWS does not say how large the default is."""
_MOST_TYPES = 8  # that an error names
_OLD_FAMILIES = ("p2", "p3", "inf1")  # for which no image of today's servers is built


@dataclass(frozen=True)
class KvCache:
    """What one accelerator keeps of requests, in bytes."""

    full: int  # of each token, in the layers that keep all of them
    windowed: int  # of each token in the layers that keep the last ``kept`` alone
    kept: int  # in tokens
    room: int  # for all requests together

    @classmethod
    def of(cls, shape: Attention, parallel: int, room: int = 0) -> KvCache:
        """The cache of a model on one of several accelerators."""
        # More accelerators than heads: each keeps a copy of one (vllm/model_executor/models/qwen3.py)
        heads = -(-shape.key_value_heads // parallel)
        of_layer = 2 * heads * shape.head_dim * KV_VALUE_BYTES
        return cls(
            of_layer * shape.layers,
            of_layer * shape.window_layers,
            shape.window - 1 + PREFILL_TOKENS,
            max(0, room),
        )

    def request(self, tokens: int) -> int:
        """Of one request."""
        if not self.windowed:
            return self.full * _blocks(tokens)
        # One block more, as the window may begin within one.
        return self.full * _blocks(tokens) + self.windowed * (
            _blocks(min(tokens, self.kept)) + BLOCK_TOKENS
        )

    @property
    def longest_request(self) -> int:
        """How many tokens one request may have that is alone, in whole blocks."""
        room = max(0, self.room - (self.windowed and self.windowed * BLOCK_TOKENS))
        short = room // (self.full + self.windowed) // BLOCK_TOKENS * BLOCK_TOKENS
        if not self.windowed or short < self.kept:
            return short
        rest = room - self.windowed * _blocks(self.kept)
        return rest // self.full // BLOCK_TOKENS * BLOCK_TOKENS


@dataclass(frozen=True, kw_only=True)
class ModelFit:
    """How a model lies in the memory of an instance."""

    instance_type: str
    # as in :class:`.instance_types.InstanceFacts`; ``None`` for main memory
    accelerator: str | None
    accelerators: int  # GPUs or chips of the instance; 1 for main memory
    memory_bytes: int  # of one accelerator, or of the main memory
    # over how many accelerators the model is spread; on Neuron over how many cores
    tensor_parallel: int
    weight_bytes: int  # of all weights that are loaded
    # what the cache keeps of one token in all layers together, over all accelerators; ``None``
    # where no formula is known, or where the model keeps none
    kv_bytes_per_token: int | None = None
    # the longest request for which there is room when it is alone, in whole blocks; as many tokens
    # have room in all requests together, if no layer has a window. ``None`` as above.
    kv_tokens: int | None = None
    # the longest context the model was made for; ``None`` where its files do not say it
    model_context: int | None = None
    # what the server has to be told; ``None`` where the model's own context fits
    context_length: int | None = None
    # how many requests of the full context have room at the same time; ``None`` as above
    concurrent_requests: int | None = None
    warnings: tuple[str, ...] = ()  # what is assumed, unknown or wasted
    cache: KvCache | None = None
    """What one accelerator keeps of requests, and the room it has for them; ``None`` as above."""

    def requests_of(self, tokens: int) -> int | None:
        """How many requests that hold so many tokens each have room at the same time."""
        return None if self.cache is None else self.cache.room // self.cache.request(tokens)

    @property
    def context(self) -> int | None:
        """The context that is served, in tokens."""
        return self.context_length or self.model_context

    def lines(self) -> tuple[str, ...]:
        """What the explanation says of weights and cache."""
        lines = []
        if self.memory_bytes:
            kind = "of main memory" if self.accelerator is None else f"{self.accelerator}"
            lines.append(
                f"{_gib(self.weight_bytes)} of weights; {self.accelerators} x "
                f"{_gib(self.memory_bytes)} {kind}, tensor parallel {self.tensor_parallel}"
            )
        if self.kv_bytes_per_token is not None:
            lines.append(
                f"{self.kv_bytes_per_token:,} bytes of cache per token: room for {self.kv_tokens:,} "
                "tokens of one request"
            )
        return tuple(lines)


def model_fit(
    pinned: PinnedModel,
    instance_type: str,
    *,
    context_length: int | None = None,
    volume_gb: int | None = None,
    where: str = "",
) -> ModelFit:
    """How a pinned model lies in the memory of an instance type."""
    own = own_context(pinned.config)
    if context_length is not None and not 1 <= context_length <= (own or context_length):
        allowed = f"1 to {own:,} tokens" if own else "at least 1 token"
        raise CONTEXT_LENGTH.error(got=f"{context_length:,}", allowed=allowed, where=where)
    facts = instance_facts(instance_type)
    disk_doubts = _check_disk(pinned, facts, volume_gb, where)
    memory = _memory(facts)
    if facts is None or memory is None:
        doubt = f"the memory of {instance_type} is not known: whether the model fits is not checked"
        return ModelFit(
            instance_type=instance_type,
            accelerator=facts.accelerator if facts else None,
            accelerators=0,
            memory_bytes=0,
            tensor_parallel=1,
            weight_bytes=weight_bytes(pinned),
            model_context=own,
            context_length=context_length,
            warnings=(doubt, *disk_doubts),
        )
    fit = _fit(pinned, facts, memory, context_length)
    if isinstance(fit, str):
        kind = facts.accelerator
        fitting = fitting_types(pinned, accelerator=kind, context_length=context_length)
        raise DOES_NOT_FIT.error(
            got=f"{pinned.model} on {instance_type}: {fit}",
            allowed=", ".join(fitting) or "no type that this version knows",
            where=where,
        )
    return replace(fit, warnings=(*fit.warnings, *disk_doubts))


def fitting_types(
    pinned: PinnedModel, *, accelerator: str | None = "nvidia", context_length: int | None = None
) -> tuple[str, ...]:
    """Instance types that hold a model: of each family the smallest, those with least memory first."""
    of_family: dict[str, str] = {}
    for facts in sorted(instance_types().values(), key=_size):
        if facts.accelerator != accelerator or facts.family in _OLD_FAMILIES or facts.burstable:
            continue
        memory = _memory(facts)
        if memory and not isinstance(_fit(pinned, facts, memory, context_length), str):
            of_family.setdefault(facts.family, facts.name)
    return tuple(of_family.values())[:_MOST_TYPES]


def _size(facts: InstanceFacts) -> tuple[float, float, int, str]:
    return (facts.accelerator_memory_mib or 0, facts.memory_gib or 0, facts.vcpus or 0, facts.name)


class _Memory(NamedTuple):
    accelerators: int
    each: int
    usable: int
    """Of each, for weights and cache."""


def _memory(facts: InstanceFacts | None) -> _Memory | None:
    """The memory that holds a model; ``None`` where the table does not know it."""
    if facts is None:
        return None
    if facts.accelerator is None:
        each, accelerators, share = round((facts.memory_gib or 0) * GIB), 1, CPU_MEMORY_UTILIZATION
    else:
        accelerators, share = facts.accelerator_count or 0, GPU_MEMORY_UTILIZATION
        each = (facts.accelerator_memory_mib or 0) * MIB // max(accelerators, 1)
    if not each:
        return None
    return _Memory(accelerators, each, max(0, round(each * share) - OVERHEAD_BYTES))


def _fit(
    pinned: PinnedModel, facts: InstanceFacts, memory: _Memory, context_length: int | None
) -> ModelFit | str:
    """The fit, or why there is none."""
    weights = weight_bytes(pinned)
    shape = attention(pinned.config) if generates(pinned) else None
    spread, parallel, doubts = _spread(pinned, facts, memory.accelerators)
    room = memory.usable - -(-weights // spread)
    fit = ModelFit(
        instance_type=facts.name,
        accelerator=facts.accelerator,
        accelerators=memory.accelerators,
        memory_bytes=memory.each,
        tensor_parallel=parallel,
        weight_bytes=weights,
        model_context=own_context(pinned.config),
        context_length=context_length,
        warnings=(*doubts, *weight_doubts(pinned)),
    )
    if room < 0:
        return (
            f"weights of {_gib(weights)}, room for {_gib(memory.usable * spread)} on {spread} x "
            f"{_gib(memory.each)}"
        )
    if not generates(pinned):
        return fit
    if shape is None or facts.accelerator == "neuron":
        unknown = (
            "how much its cache keeps of a token is not known, so neither is how many requests fit"
        )
        return replace(fit, warnings=(*fit.warnings, unknown))
    return _with_cache(fit, pinned, shape, room)


def _with_cache(fit: ModelFit, pinned: PinnedModel, shape: Attention, room: int) -> ModelFit | str:
    """The fit with what the room for the cache holds, or why that is too little."""
    spread = fit.tensor_parallel
    cache = KvCache.of(shape, spread, room)
    longest = cache.longest_request
    own, told = fit.model_context, fit.context_length
    if told is None and own and own > longest:
        told = longest // 1024 * 1024
    elif told is None and _is_stretched(pinned):
        told = own  # else the server would compute a longer one
    wanted = told or own
    if (wanted or LEAST_CONTEXT) > longest:
        return (
            f"beside weights of {_gib(fit.weight_bytes)} there is room for {longest:,} tokens, and "
            f"one request needs {fit.context_length or min(own or LEAST_CONTEXT, LEAST_CONTEXT):,}"
        )
    return replace(
        fit,
        kv_bytes_per_token=(cache.full + cache.windowed) * spread,
        kv_tokens=longest,
        context_length=told,
        concurrent_requests=room // cache.request(wanted) if wanted else None,
        cache=cache,
    )


def _blocks(tokens: int) -> int:
    return -(-tokens // BLOCK_TOKENS) * BLOCK_TOKENS


def _spread(
    pinned: PinnedModel, facts: InstanceFacts, accelerators: int
) -> tuple[int, int, tuple[str, ...]]:
    """Over how many accelerators the weights lie, the degree that a server is told, and doubts."""
    if facts.accelerator == "neuron" and generates(pinned):
        return accelerators, facts.neuron_cores or accelerators, ()
    if not generates(pinned):
        idle = f"the server uses one of {accelerators} accelerators: the others stay idle"
        return 1, 1, (idle,) if accelerators > 1 else ()
    if is_gguf(pinned):
        return accelerators, accelerators, ()  # llama.cpp deals out layers, so any number will do
    parallel = _parallel(pinned, accelerators)
    idle = (
        f"tensor parallelism over {parallel} of {accelerators} accelerators, as it has to divide the "
        f"model's heads: {accelerators - parallel} stay idle"
    )
    return parallel, parallel, (idle,) if parallel < accelerators else ()


def _parallel(pinned: PinnedModel, accelerators: int) -> int:
    """The largest power of two that divides the heads, and the heads with keys or is divided."""
    config = text_config(pinned.config)
    shape = attention(config)
    heads = shape.heads if shape else count_of(config, "num_attention_heads", "n_head") or 0
    cached = shape.key_value_heads if shape else 0
    parallel = 1
    while (
        parallel * 2 <= accelerators
        and heads % (parallel * 2) == 0
        and (cached % (parallel * 2) == 0 or (parallel * 2) % max(cached, 1) == 0)
    ):
        parallel *= 2
    return parallel


def _is_stretched(pinned: PinnedModel) -> bool:
    """Whether a server may multiply the model's context, as vLLM does for scaled positions."""
    config = text_config(pinned.config)
    scaled = config.get("rope_scaling") or config.get("rope_parameters")
    return isinstance(scaled, Mapping) and "factor" in scaled


def _check_disk(
    pinned: PinnedModel, facts: InstanceFacts | None, volume_gb: int | None, where: str
) -> tuple[str, ...]:
    """Doubts about the disk that holds the files; raises where they have no room on it for sure."""
    if facts is None or facts.local_storage_gb is None:
        return ()
    if facts.local_storage_gb:
        room, what = facts.local_storage_gb * 10**9, "of local storage"
    elif volume_gb is not None:
        room, what = volume_gb * GIB, "of the volume"
    else:
        room, what = int(VOLUME_SIZE.maximum or 0) * GIB, "of the largest volume"
    if pinned.total_bytes > room:
        raise NO_DISK.error(
            got=f"{pinned.model}: {_gib(pinned.total_bytes)} of files on {facts.name}",
            allowed=f"up to {_gib(room)}, the size {what}",
            where=where,
        )
    if (
        facts.local_storage_gb
        or volume_gb is not None
        or pinned.total_bytes <= DEFAULT_VOLUME_BYTES
    ):
        return ()
    return (
        f"{facts.name} has no local storage, and how large its volume is by default AWS does not "
        f"say: for {_gib(pinned.total_bytes)} of files ask for one, volume_size",
    )


def _gib(size: int) -> str:
    return f"{size / GIB:.1f} GiB"
