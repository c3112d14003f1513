"""What is simulated of a language model's endpoint: its server, its requests, its routing."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from ..errors import rule
from ..plan.limits import number_range
from ..plan.rules import PREFIX_SETTINGS
from ..plan.token_traffic import TokenLengths, TokenTraffic
from . import kernels
from .fleet_changes import SIMULATED_INSTANCES
from .scenario import CONCURRENCY, PREFIXES, SIMULATED_ROUTING
from .service_laws import SECONDS, VARIATION, Constant, LawParameters
from .traffic import TRACE, ClosedLoop, OpenLoop

ITERATION_TIMES = rule(
    "LLS136",
    "the time of an iteration is not valid",
    fix="Give (tokens in the batch, seconds) for one or more batches: tokens rise from 1 on, times "
    "are above zero.",
)
BATCHED_TOKENS = number_range(
    "LLS137", "the tokens of a batch", 1, 1_000_000, unit="tokens", fix="vLLM starts at 2048."
)
SEQUENCES = number_range(
    "LLS138",
    "the requests that a server works on at once",
    1,
    4096,
    fix="Give at most as many as tokens fit into a batch: each gets one in every iteration.",
)
KV_TOKENS = number_range(
    "LLS139",
    "the room of the KV cache",
    1,
    10_000_000_000,
    unit="tokens",
    fix="Give the tokens that the server prints at its start ('GPU KV cache size' of vLLM).",
)
TOKEN_TRACE = rule(
    "LLS140",
    "the requests of a trace do not fit together",
    fix="Give every request a time, tokens of its prompt and of its answer, one or more each; of a "
    "shared prefix always the same number, less than the prompt has.",
)
TOKEN_PARTS = rule(
    "LLS141",
    "parts of the simulation of a language model do not fit together",
    fix="Give tokens with an open or a closed loop without pauses, and no tokens with a trace, "
    "which has its own.",
)
_ROUTINGS = ("RANDOM", "LEAST_OUTSTANDING_REQUESTS", "PREFIX_AWARE")


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationTime:
    """How long one iteration of a server takes.

    ``overhead + table(tokens) + cached x seconds_per_cached_token + pairs x
    seconds_per_attended_pair``: *tokens* are all tokens that the iteration computes, of prompts and
    one of each answer; *cached* those that it reads from the KV cache; *pairs* the tokens that each
    prompt token looks back on, itself included.

    Parameters
    ----------
    points : tuple of (int, float)
        Tokens and seconds; straight lines in between, the last one goes on. Below the first point
        an iteration takes as long as there. Times may fall where a larger batch takes another
        kernel.
    seconds_per_cached_token : float
        By default 0. The keys and values of a token divided by the memory's bandwidth: 65 ns for
        Llama 3.1 8B (131,072 bytes) at 2 TB/s.
    seconds_per_attended_pair : float
        By default 0: prompts are short enough.
    overhead_seconds : float
        Of every iteration, such as scheduling and launching. By default 0.

    Raises
    ------
    ConfigurationError
        ``LLS136`` for points that do not rise, ``LLS111`` for times out of range.

    Examples
    --------
    >>> law = IterationTime(points=((1, 0.010), (128, 0.013), (256, 0.020)))
    >>> round(law.seconds(192), 4), round(law.seconds(512), 4)
    (0.0165, 0.034)
    """

    points: tuple[tuple[int, float], ...]
    seconds_per_cached_token: float = 0.0
    seconds_per_attended_pair: float = 0.0
    overhead_seconds: float = 0.0

    def __post_init__(self) -> None:
        for tokens, seconds in self.points:
            SECONDS.check(seconds, f"points, {tokens} tokens")
        for name in ("seconds_per_cached_token", "seconds_per_attended_pair", "overhead_seconds"):
            SECONDS.check(getattr(self, name), name)
        rises = all(a[0] < b[0] for a, b in pairwise(self.points))
        if (
            not self.points
            or not rises
            or self.points[0][0] < 1
            or min(seconds for _, seconds in self.points) + self.overhead_seconds <= 0
            or (len(self.points) > 1 and self.points[-1][1] < self.points[-2][1])
        ):
            raise ITERATION_TIMES.error(
                got=f"{len(self.points)} points, the first {self.points[:3]}",
                allowed="tokens that rise from 1 or more, times above zero, the last not below that before",
                where="points",
            )

    def seconds(self, tokens: int, cached: int = 0, pairs: float = 0.0) -> float:
        """How long an iteration takes."""
        found = self.points[0][1]
        if len(self.points) > 1 and tokens > self.points[0][0]:
            low, high = next(
                (pair for pair in pairwise(self.points) if tokens <= pair[1][0]), self.points[-2:]
            )
            rise = (high[1] - low[1]) / (high[0] - low[0])
            found = high[1] + rise * (tokens - high[0])
        return (
            self.overhead_seconds
            + found
            + self.seconds_per_cached_token * cached
            + self.seconds_per_attended_pair * pairs
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenServer:
    """A server with continuous batching, on one instance.

    Parameters
    ----------
    iteration : IterationTime
        How long an iteration takes.
    max_batched_tokens : int
        Tokens of an iteration: those that decode come first, prompts get the rest. By default 2048.
    max_sequences : int
        Requests that it works on at once; the others wait. By default 256.
    kv_tokens : int, optional
        Tokens that the KV cache has room for. By default without a limit.
    block_tokens : int
        Tokens of one of its blocks. By default 16.
    prefix_cache : bool
        Whether whole blocks of a shared prefix are kept for the next request that begins alike. By
        default yes.
    chunked_prefill : bool
        Whether prompts are read in chunks beside the answers of others. Without, whole prompts in
        iterations of their own: answers stall meanwhile. By default yes.

    Raises
    ------
    ConfigurationError
        ``LLS137``, ``LLS138``, ``LLS139`` for numbers out of range.
    """

    iteration: IterationTime
    max_batched_tokens: int = 2048
    max_sequences: int = 256
    kv_tokens: int | None = None
    block_tokens: int = 16
    prefix_cache: bool = True
    chunked_prefill: bool = True

    def __post_init__(self) -> None:
        BATCHED_TOKENS.check(self.max_batched_tokens, "max_batched_tokens")
        SEQUENCES.check(self.max_sequences, "max_sequences")
        BATCHED_TOKENS.check(self.block_tokens, "block_tokens")
        if self.max_sequences > self.max_batched_tokens:
            raise SEQUENCES.rule.error(
                got=f"{self.max_sequences} requests with {self.max_batched_tokens} tokens",
                allowed=f"at most {self.max_batched_tokens}",
                where="max_sequences",
            )
        if self.kv_tokens is not None:
            KV_TOKENS.check(self.kv_tokens, "kv_tokens")
            if self.kv_tokens < self.block_tokens:
                raise KV_TOKENS.rule.error(
                    got=f"{self.kv_tokens} tokens",
                    allowed=f"at least one block of {self.block_tokens}",
                    where="kv_tokens",
                )


@dataclass(frozen=True, slots=True)
class TokenTrace:
    """Recorded requests of a language model, once.

    Parameters
    ----------
    seconds : tuple of float
        Arrival times from the start of the run, in order.
    input, output : tuple of int
        Tokens of each prompt and of each answer.
    prefix : tuple of int, optional
        Which prefix each prompt begins with, from 0 on; -1 for none. By default none.
    shared : tuple of int, optional
        Tokens of that prefix.

    Raises
    ------
    ConfigurationError
        ``LLS121`` for times that fall, ``LLS140`` for lengths that do not fit together.
    """

    seconds: tuple[float, ...]
    input: tuple[int, ...]
    output: tuple[int, ...]
    prefix: tuple[int, ...] = ()
    shared: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        times, count = self.seconds, len(self.seconds)
        if (
            not count
            or not all(math.isfinite(each) and each >= 0 for each in times)
            or any(later < earlier for earlier, later in pairwise(times))
        ):
            raise TRACE.error(
                got=f"{count} times", where="seconds", allowed="times from 0 on that do not fall"
            )
        if problem := self._problem(count):
            raise TOKEN_TRACE.error(got=problem, allowed="as many of each, in tokens")

    def _problem(self, count: int) -> str:
        for name in ("input", "output"):
            values = getattr(self, name)
            if len(values) != count:
                return f"{len(values)} of {name} for {count} times"
            if min(values) < 1:
                return f"{min(values)} tokens of {name}"
        if len(self.prefix) != len(self.shared) or len(self.prefix) not in (0, count):
            return f"{len(self.prefix)} prefixes, {len(self.shared)} lengths of them"
        known: dict[int, int] = {}
        for prompt, prefix, shared in zip(self.input, self.prefix, self.shared, strict=False):
            if prefix < -1 or prefix >= PREFIXES.maximum:  # type: ignore[operator]
                return f"prefix {prefix}"
            if prefix >= 0 and (
                not 0 <= shared < prompt or known.setdefault(prefix, shared) != shared
            ):
                return f"{shared} tokens of prefix {prefix} in a prompt of {prompt}"
        return ""


@dataclass(frozen=True, kw_only=True)
class TokenScenario:
    """An endpoint that serves a language model, and its traffic.

    Parameters
    ----------
    server : TokenServer
        What runs on each instance.
    traffic : OpenLoop, ClosedLoop or TokenTrace
        Who sends requests. Users of a closed loop make no pauses.
    tokens : TokenTraffic, optional
        Tokens of prompts and answers, and the share of the prompts that is shared; not with a
        trace. A prompt has at least one token more than what it shares.
    prefixes : int
        Number of different shared prefixes, such as system prompts. By default 1.
    popularity : float
        Exponent of Zipf's law for them. By default 0: all equally popular.
    instances : int
        By default 1.
    routing : str
        ``RANDOM``, ``LEAST_OUTSTANDING_REQUESTS`` or ``PREFIX_AWARE``. By default ``RANDOM``.
    concurrency_threshold : int, optional
        Outstanding requests at which ``PREFIX_AWARE`` passes an instance over; only with that.
    network_seconds : float
        Added to the time to first token: network, SageMaker's overhead. By default 0.
    ttft_target, itl_target : float, optional
        Seconds, for goodput: the share of requests whose time to first token keeps the first and
        whose time per output token keeps the second.

    Raises
    ------
    ConfigurationError
        ``LLS141`` for parts that do not fit together, ``LLS104`` to ``LLS114`` and others for
        numbers out of range.
    """

    server: TokenServer
    traffic: OpenLoop | ClosedLoop | TokenTrace
    tokens: TokenTraffic | None = None
    prefixes: int = 1
    popularity: float = 0.0
    instances: int = 1
    routing: str = "RANDOM"
    concurrency_threshold: int | None = None
    network_seconds: float = 0.0
    ttft_target: float | None = field(default=None)
    itl_target: float | None = field(default=None)

    def __post_init__(self) -> None:
        SIMULATED_INSTANCES.check(self.instances, "instances")
        PREFIXES.check(self.prefixes, "prefixes")
        VARIATION.check(self.popularity, "popularity")
        SECONDS.check(self.network_seconds, "network_seconds")
        for name in ("ttft_target", "itl_target"):
            if getattr(self, name) is not None:
                SECONDS.check(getattr(self, name), name)
        if self.routing not in _ROUTINGS:
            raise SIMULATED_ROUTING.rule.error(
                got=repr(self.routing), allowed=", ".join(_ROUTINGS), where="routing"
            )
        if (self.routing == "PREFIX_AWARE") != (self.concurrency_threshold is not None):
            raise PREFIX_SETTINGS.error(
                got=f"{self.routing}, threshold {self.concurrency_threshold}",
                allowed="PREFIX_AWARE with a threshold; no threshold otherwise",
                fix="Give concurrency_threshold with PREFIX_AWARE.",
                where="routing",
            )
        if self.concurrency_threshold is not None:
            CONCURRENCY.check(self.concurrency_threshold, "concurrency_threshold")
        traffic = self.traffic
        paused = isinstance(traffic, ClosedLoop) and traffic.think != Constant(0.0)
        kind = type(traffic).__name__
        if (
            not isinstance(traffic, (OpenLoop, ClosedLoop, TokenTrace))
            or paused
            or isinstance(traffic, TokenTrace) == (self.tokens is not None)
        ):
            raise TOKEN_PARTS.error(
                got=f"{kind}{' with pauses' if paused else ''} and "
                f"{'no tokens' if self.tokens is None else 'tokens'}",
                allowed="OpenLoop or ClosedLoop with tokens, or TokenTrace without",
                where="traffic",
            )

    @property
    def shared_tokens(self) -> int:
        """Tokens of a shared prefix: its share of the mean prompt, as load tests send it."""
        if self.tokens is None:
            return 0
        mean = self.tokens.mean_input
        return min(round(self.tokens.shared_prefix * mean), math.ceil(mean) - 1)

    @property
    def prefix_count(self) -> int:
        """Different prefixes that occur."""
        if isinstance(self.traffic, TokenTrace):
            return max(self.traffic.prefix, default=-1) + 1
        return self.prefixes if self.shared_tokens else 0

    def with_(self, **changes: Any) -> TokenScenario:
        """A copy with some parts changed."""
        return replace(self, **changes)


def lengths_law(stated: int | TokenLengths) -> LawParameters:
    """Lengths in tokens, before rounding, as the loops draw them."""
    if not isinstance(stated, TokenLengths):
        return LawParameters(kernels.CONSTANT, float(stated))
    if stated.p95 == stated.p50:
        return LawParameters(kernels.CONSTANT, float(stated.p50))
    return LawParameters(kernels.LOGNORMAL, math.log(stated.p50), stated.deviation)
