"""Does a pinned model fit on an instance type, and how many requests at a time?

Weights are as large as their files. What is left of the accelerators' memory keeps keys and values,
a fixed number of bytes for each token of each request (:mod:`.model_config`). Bytes and formulas
are exact; what a server needs besides is assumed, on the safe side, by the constants here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from .hugging_face_rules import CONTEXT_TOO_LONG, DOES_NOT_FIT, NO_DISK
from .instance_types import InstanceFacts, instance_facts, instance_types
from .limits import INSTANCE_TYPE
from .model_config import GENERATION_TASKS, Attention, attention, own_context, text_config
from .pinned_model import PinnedFile, PinnedModel

MIB, GIB = 2**20, 2**30
GPU_MEMORY_UTILIZATION = 0.92
"""Share of each GPU that vLLM takes; source: vllm-project/vllm, vllm/config/cache.py."""
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
_MOST_TYPES = 8  # that an error names
_OLD_FAMILIES = ("p2", "p3", "inf1")  # for which no image of today's servers is built
_SHARD = re.compile(r"-\d{5}-of-\d{5}(?=\.)")


@dataclass(frozen=True, kw_only=True)
class ModelFit:
    """How a model lies in the memory of an instance.

    Attributes
    ----------
    model, instance_type : str
        What was asked about.
    accelerator : str or None
        As in :class:`.instance_types.InstanceFacts`; ``None`` for main memory.
    accelerators : int
        GPUs or chips of the instance; 1 for main memory.
    memory_bytes : int
        Of one accelerator, or of the main memory.
    tensor_parallel : int
        Over how many accelerators the model is spread; on Neuron over how many cores.
    weight_bytes : int
        Of all weights that are loaded.
    kv_bytes_per_token : int or None
        What the cache keeps of one token in all layers together, over all accelerators; ``None``
        where no formula is known, or where the model keeps none.
    kv_tokens : int or None
        The longest request for which there is room when it is alone, in whole blocks; as many tokens
        have room in all requests together, if no layer has a window. ``None`` as above.
    model_context : int or None
        The longest context the model was made for; ``None`` where its files do not say it.
    context_length : int or None
        What the server has to be told; ``None`` where the model's own context fits.
    concurrent_requests : int or None
        How many requests of the full context have room at the same time; ``None`` as above.
    warnings : tuple of str
        What is assumed, unknown or wasted.
    """

    model: str
    instance_type: str
    accelerator: str | None
    accelerators: int
    memory_bytes: int
    tensor_parallel: int
    weight_bytes: int
    kv_bytes_per_token: int | None = None
    kv_tokens: int | None = None
    model_context: int | None = None
    context_length: int | None = None
    concurrent_requests: int | None = None
    warnings: tuple[str, ...] = ()

    @property
    def context(self) -> int | None:
        """The context that is served, in tokens."""
        return self.context_length or self.model_context

    def lines(self) -> tuple[str, ...]:
        """What the plan says of it."""
        where = "main memory" if self.accelerator is None else "accelerators' memory"
        lines = [
            f"weights {_gib(self.weight_bytes)} of {_gib(self.memory_bytes * self.accelerators)} "
            f"{where}, spread over {self.tensor_parallel}"
        ]
        if self.kv_bytes_per_token is not None:
            lines.append(
                f"{self.kv_bytes_per_token:,} bytes of cache per token: room for {self.kv_tokens:,} "
                f"tokens, so {self.concurrent_requests} at a time with {self.context:,} tokens each"
            )
        return (*lines, *self.warnings)


def generates(pinned: PinnedModel) -> bool:
    """Whether a model writes text token by token, by its task."""
    return pinned.task in GENERATION_TASKS


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


def model_fit(
    pinned: PinnedModel,
    instance_type: str,
    *,
    context_length: int | None = None,
    volume_gb: int | None = None,
    where: str = "",
) -> ModelFit:
    raise NotImplementedError


def fitting_types(
    pinned: PinnedModel, *, accelerator: str | None = "nvidia", context_length: int | None = None
) -> tuple[str, ...]:
    raise NotImplementedError
