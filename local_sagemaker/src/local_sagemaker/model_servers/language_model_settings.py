"""What a language model's server is told: its times, its room, its faults."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from .checks import check_places, check_ranges

_RANGES = {
    **dict.fromkeys(
        ("step_seconds", "seconds_per_token", "seconds_per_cached_token"), (0, math.inf)
    ),
    **dict.fromkeys(("max_batched_tokens", "max_sequences", "kv_tokens"), (1, math.inf)),
    **dict.fromkeys(("block_tokens", "output_tokens", "tokens_per_chunk"), (1, math.inf)),
    **dict.fromkeys(("extra_first_token_seconds", "extra_gap_seconds"), (0, math.inf)),
    **dict.fromkeys(("failure_share", "mid_stream_share"), (0, 1)),
    "context_tokens": (1, math.inf),
    "cold_start": (0, math.inf),
    "failure_status": (400, 599),
}


@dataclass(frozen=True)
class LanguageModelServer:
    """A language model's server that computes nothing: continuous batching in the time it is told.

    It speaks OpenAI's chat and text completions as vLLM does, streamed or whole, at `/invocations`,
    `/v1/chat/completions` and `/v1/completions`. An iteration takes ``max(step_seconds,
    seconds_per_token x its tokens) + seconds_per_cached_token x the tokens whose keys and values it
    reads``. A token is a word: text is split at white space, and each token generated is one word.

    Parameters
    ----------
    step_seconds
        The least time of an iteration, in which the weights are read; by default 20 ms.
    seconds_per_token
        Of each token that an iteration computes, prefill or decode; by default 0.1 ms.
    seconds_per_cached_token
        Of each token computed before that its sequences attend to; by default 0.
    max_batched_tokens, max_sequences
        Tokens of an iteration, and sequences at work at a time; by default 2048 and 256.
    kv_tokens
        Tokens that the KV cache has room for; by default 32,768.
    block_tokens
        Tokens of a block of the KV cache; by default 16.
    context_tokens
        Tokens of a prompt and its answer together, at most; by default all that the cache holds.
    prefix_cache
        Whether an instance finds the beginning of a prompt that it has computed before.
    output_tokens
        Where the model ends its answer by itself, unless the request has ``ignore_eos`` or a
        larger ``min_tokens``; ``max_tokens`` may end it before. By default 128.
    tokens_per_chunk
        Tokens of a chunk of a stream after the first, which has one; by default 1.
    extra_first_token_seconds
        A fault: a request waits for so long before it is seen by the scheduler. By default 0.
    extra_gap_seconds
        A fault: an iteration in which sequences go on takes longer by so much. A first token that
        comes out of such an iteration comes later too. By default 0.
    failure_share
        That share of requests fails; by default none.
    mid_stream_share
        Share of the failing streams that fail in their middle, with an error event, half of the
        tokens sent; the others fail with `failure_status` before anything is sent. By default half.
    failure_status
        By default 500.
    cold_start
        Seconds until `/ping` answers 200, by the runtime's clock; by default 0.
    slow_instances
        Factor of an iteration's time by the instance's place in its variant, counted from 0.
    model_name
        The one name that requests may have for ``model``; others are answered with 404, as vLLM
        does. By default any is taken, and metrics say ``language-model``.
    stateful_sessions
        Whether `/invocations` keeps sessions, as AWS's vLLM and SGLang images do with
        `SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true`: `{"requestType": "NEW_SESSION"}` opens one,
        `{"requestType": "CLOSE"}` closes it. By default it does not, as theirs, and refuses both
        and any `SessionId`.
    in_process
        True: a task of the local AWS. False: a process of its own for each instance.
    seed
        Of the random draws; each instance adds its place.

    Examples
    --------
    >>> LanguageModelServer(kv_tokens=28_000, context_tokens=8_192).max_batched_tokens
    2048
    """

    step_seconds: float = 0.02
    seconds_per_token: float = 0.0001
    seconds_per_cached_token: float = 0.0
    max_batched_tokens: int = 2048
    max_sequences: int = 256
    kv_tokens: int = 32_768
    block_tokens: int = 16
    context_tokens: int | None = None
    prefix_cache: bool = True
    output_tokens: int = 128
    tokens_per_chunk: int = 1
    extra_first_token_seconds: float = 0.0
    extra_gap_seconds: float = 0.0
    failure_share: float = 0.0
    mid_stream_share: float = 0.5
    failure_status: int = 500
    cold_start: float = 0.0
    slow_instances: Mapping[int, float] = field(default_factory=dict)
    model_name: str | None = None
    stateful_sessions: bool = False
    in_process: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges(self, _RANGES)
        check_places(self.slow_instances)
        if self.max_batched_tokens < self.max_sequences:
            # Else a sequence could wait for its token; vLLM refuses it too (config/scheduler.py).
            raise ValueError(
                "max_batched_tokens must be at least max_sequences: "
                f"{self.max_batched_tokens} < {self.max_sequences}"
            )
        if self.kv_tokens < self.block_tokens:
            raise ValueError(f"kv_tokens must hold a block: {self.kv_tokens} < {self.block_tokens}")
        if self.context_tokens is not None and self.context_tokens > self.room_tokens:
            # Source: vllm/v1/core/kv_cache_utils.py, which refuses to start.
            raise ValueError(
                f"context_tokens must fit into the KV cache's {self.room_tokens} tokens: "
                f"{self.context_tokens}"
            )
        if self.step_seconds == 0 and self.seconds_per_token == 0:
            raise ValueError("step_seconds or seconds_per_token must be above 0")

    @property
    def room_tokens(self) -> int:
        """Tokens of the KV cache's whole blocks."""
        return self.kv_tokens // self.block_tokens * self.block_tokens

    @property
    def longest(self) -> int:
        """Tokens of a prompt and its answer together, at most."""
        return self.context_tokens or self.room_tokens
