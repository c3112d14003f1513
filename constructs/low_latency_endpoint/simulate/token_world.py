"""The arrays of :func:`.token_core.serve`, and the requests of one replication in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import kernels
from .compilation import Loops
from .scenario import cumulated
from .service_laws import Constant, Exponential, LawParameters
from .token_blocks import SUMS_SIZE
from .token_core import (
    BLOCK_TOKENS,
    BLOCKS,
    BUDGET,
    CHUNKED,
    INSTANCES,
    LAW_SIZE,
    LEAST_OUTSTANDING,
    LEAVES,
    NEVER,
    OVERHEAD,
    PER_CACHED,
    PER_PAIR,
    PLAN_SIZE,
    POINTS,
    PREFIX,
    PREFIXES,
    RANDOM,
    REQUESTS,
    ROUTING,
    SEQUENCES,
    THRESHOLD,
    USERS,
    WINDOW_BEGIN,
    WINDOW_END,
)
from .token_serving import TokenScenario, TokenTrace, lengths_law
from .traffic import ClosedLoop, OpenLoop
from .workload import Law, Stream
from .world import home_of

_ROUTING = {
    "RANDOM": RANDOM,
    "LEAST_OUTSTANDING_REQUESTS": LEAST_OUTSTANDING,
    "PREFIX_AWARE": PREFIX,
}
_BOUNDLESS = 1 << 40  # blocks of a cache that nobody limited


@dataclass(frozen=True)
class Served:
    """What a replication left behind: arrays by request, and sums over the counted time.

    Attributes
    ----------
    arrival, first, end : sequence of float
        Times in seconds from the start; ``first`` is infinite for a refused request.
    output, hit, preempted, instance : sequence of int
        Tokens of the answer; prompt tokens found in a cache; times preempted; which instance.
    gaps : sequence of int
        Histogram of the gaps between tokens (:func:`.kernels.quantile` reads it).
    sums : sequence of float
        By the places of :mod:`.token_blocks`.
    """

    arrival: Any
    prompt: Any
    output: Any
    first: Any
    end: Any
    hit: Any
    preempted: Any
    instance: Any
    gaps: Any
    sums: Any


def served(
    scenario: TokenScenario,
    loops: Loops,
    serve: Callable[..., int],
    *,
    requests: int,
    window: tuple[int, int] | None,
    seed: int,
    replication: int,
) -> Served:
    """Draw the requests of one replication and serve them.

    Parameters
    ----------
    window : (int, int) or None
        First and last request that count: between their arrivals gaps and tokens are counted.
        ``None`` counts everything.
    """
    server, traffic = scenario.server, scenario.traffic
    wholes, floats = loops.wholes, loops.floats
    same_whole, same_float = loops.same_whole, loops.same_float
    arrival, prompt, output, prefix, shared, pick = _requests(
        scenario, loops, requests, seed, replication
    )
    instances, sequences = scenario.instances, server.max_sequences
    prefixes = scenario.prefix_count
    nodes = prefixes + 1
    leaves = 1
    while leaves < instances:
        leaves *= 2
    block = server.block_tokens
    plan = same_whole(0, PLAN_SIZE)
    for at, value in (
        (REQUESTS, requests),
        (INSTANCES, instances),
        (LEAVES, leaves),
        (SEQUENCES, sequences),
        (BUDGET, server.max_batched_tokens),
        (BLOCKS, _BOUNDLESS if server.kv_tokens is None else server.kv_tokens // block),
        (BLOCK_TOKENS, block),
        (ROUTING, _ROUTING[scenario.routing]),
        (THRESHOLD, scenario.concurrency_threshold or 0),
        (USERS, traffic.users if isinstance(traffic, ClosedLoop) else 0),
        (PREFIXES, prefixes),
        (CHUNKED, int(server.chunked_prefill)),
        (POINTS, len(server.iteration.points)),
    ):
        plan[at] = value
    law = same_float(0.0, LAW_SIZE)
    law[OVERHEAD] = server.iteration.overhead_seconds
    law[PER_CACHED] = server.iteration.seconds_per_cached_token
    law[PER_PAIR] = server.iteration.seconds_per_attended_pair
    law[WINDOW_BEGIN], law[WINDOW_END] = 0.0, NEVER
    if window is not None:
        if isinstance(traffic, ClosedLoop):
            # When they arrive is only known afterwards: everything is counted.
            law[WINDOW_BEGIN], law[WINDOW_END] = _closed_window(
                scenario, loops, serve, requests, window, seed, replication
            )
        else:
            law[WINDOW_BEGIN], law[WINDOW_END] = arrival[window[0]], arrival[window[1]]
    heads = [k * nodes + prefixes for k in range(instances)]
    ring = list(range(instances * nodes))
    waste = same_whole(0, instances * nodes)
    for at in heads:
        waste[at] = plan[BLOCKS]
    found = Served(
        arrival=arrival,
        prompt=prompt,
        output=output,
        first=same_float(0.0, requests),
        end=same_float(0.0, requests),
        hit=same_whole(0, requests),
        preempted=same_whole(0, requests),
        instance=same_whole(0, requests),
        gaps=same_whole(0, kernels.BINS),
        sums=same_float(0.0, SUMS_SIZE),
    )
    serve(
        plan,
        law,
        floats([tokens for tokens, _ in server.iteration.points]),
        floats([seconds for _, seconds in server.iteration.points]),
        arrival,
        prompt,
        output,
        prefix,
        shared,
        pick,
        wholes([home_of(each, range(instances)) for each in range(prefixes)] or [0]),
        same_whole(0, requests),  # computed: tokens whose keys and values are in the cache
        same_whole(0, requests),  # made: tokens of the answer
        same_whole(0, requests),  # held: blocks
        same_whole(0, requests),  # held_shared: of these, the prefix's
        same_whole(0, requests),  # chunk: prompt tokens in the running iteration
        same_whole(-1, requests),  # behind: who waits next
        same_float(0.0, requests),  # last: when the last token came
        same_whole(0, instances * sequences),  # running: requests in order of admission
        same_whole(0, instances),  # members: how many run
        same_whole(0, instances),  # decoding: how many of them, the first, have read the prompt
        same_whole(0, instances),  # moving: how many of these get a token from the iteration
        same_whole(-1, instances),  # line_head
        same_whole(-1, instances),  # line_tail
        same_whole(0, instances),  # outstanding
        same_whole(plan[BLOCKS], instances),  # free: blocks
        same_whole(0, instances * nodes),  # cached: blocks of a prefix
        same_whole(0, instances * nodes),  # used_by: requests that hold some of them
        waste,  # blocks in the line behind a prefix
        wholes(ring),  # before
        wholes(ring),  # after
        same_whole(0, instances),  # steps: iterations of the segment
        same_float(0.0, instances),  # begin: when it began
        same_float(0.0, instances),  # first_step: how long its first iteration is
        same_float(0.0, instances),  # slope: how much longer each next one
        same_float(NEVER, 2 * leaves),  # ends: a tournament over the instances
        wholes([0] * leaves + [min(at, instances - 1) for at in range(leaves)]),
        found.first,
        found.end,
        found.hit,
        found.preempted,
        found.instance,
        found.gaps,
        found.sums,
    )
    return found


def _closed_window(
    scenario: TokenScenario,
    loops: Loops,
    serve: Callable[..., int],
    requests: int,
    window: tuple[int, int],
    seed: int,
    replication: int,
) -> tuple[float, float]:
    """The times of a closed loop's counted requests, from the same run without a window."""
    first = served(
        scenario, loops, serve, requests=requests, window=None, seed=seed, replication=replication
    )
    return float(first.arrival[window[0]]), float(first.arrival[window[1]])


def _requests(
    scenario: TokenScenario, loops: Loops, requests: int, seed: int, replication: int
) -> tuple[Any, ...]:
    """Arrivals, prompts, answers, prefixes, their lengths, and what the router draws."""
    traffic = scenario.traffic

    def stream(purpose: str) -> Stream:
        return Stream(loops, seed, replication, purpose)

    pick = loops.same_float(0.0, requests)
    stream("picks").uniform(pick, requests)
    if isinstance(traffic, TokenTrace):
        none = [0] * requests
        return (
            loops.floats(traffic.seconds),
            loops.wholes(traffic.input),
            loops.wholes(traffic.output),
            loops.wholes(traffic.prefix or [-1] * requests),
            loops.wholes((traffic.shared if scenario.server.prefix_cache else ()) or none),
            pick,
        )
    numbers = loops.same_float(0.0, requests)
    tokens = scenario.tokens
    assert tokens is not None
    lengths = []
    for purpose, stated in (("prompts", tokens.input), ("answers", tokens.output)):
        Law(loops, lengths_law(stated)).fill(stream(purpose), numbers, requests)
        lengths.append([max(1, round(each)) for each in numbers])
    begins = scenario.shared_tokens
    prefix = loops.same_whole(-1, requests)
    shared = loops.same_whole(0, requests)
    if begins:
        lengths[0] = [max(each, begins + 1) for each in lengths[0]]
        weights = [(rank + 1) ** -scenario.popularity for rank in range(scenario.prefixes)]
        total = sum(weights)
        shares = loops.floats(cumulated(tuple(each / total for each in weights)))
        stream("prefixes").uniform(numbers, requests)
        loops.choose(shares, len(shares) - 1, numbers, prefix, requests)
        if scenario.server.prefix_cache:
            shared = loops.same_whole(begins, requests)
    arrival = loops.same_float(0.0, requests)
    if isinstance(traffic, OpenLoop):
        gap = 1 / traffic.rate
        law: LawParameters = (Exponential(gap) if traffic.poisson else Constant(gap)).parameters()
        Law(loops, law).fill(stream("arrivals"), numbers, requests)
        now = 0.0
        for at in range(requests):
            now += numbers[at]
            arrival[at] = now
    return (arrival, loops.wholes(lengths[0]), loops.wholes(lengths[1]), prefix, shared, pick)
