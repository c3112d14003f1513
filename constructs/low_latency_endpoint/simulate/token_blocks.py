"""What :func:`.token_core.serve` calls, compiled into it: blocks of the KV cache, and counting gaps.

All free blocks stand in one line, the least recently used first, as vLLM's free queue: those nobody
would look for (never used, or of answers that ended: *waste*), and the cached blocks of prefixes
that nobody uses now. Between two prefixes of the line only the number of waste blocks matters, so
the line is a ring of prefixes, each with the waste behind it; every instance has one node more, the
head of its ring. New blocks come from the head, so a prefix loses its last blocks first. A prefix
that somebody uses is not in the line.
"""

from __future__ import annotations

from .core import Floats, Wholes
from .kernels import BINS, LOWEST, PER_OCTAVE

# Places in `sums`
(GAPS, GAP_SUM, LONGEST_GAP, TOKENS, ITERATIONS, BUSY, BATCHED, USED, SUMS_SIZE) = range(9)


def count_gaps(seconds: float, number: int, gaps: Wholes, sums: Floats) -> None:
    """Count gaps between tokens of one length into the histogram of :mod:`.kernels`."""
    power, top = 0, 1.0
    while seconds >= top:
        top *= 2.0
        power += 1
    while seconds < 0.5 * top and power > LOWEST:
        top *= 0.5
        power -= 1
    at = (power - LOWEST) * PER_OCTAVE + int((seconds / top - 0.5) * (2 * PER_OCTAVE))
    if at < 0:
        at = 0
    elif at >= BINS:
        at = BINS - 1
    gaps[at] += number
    sums[GAPS] += number
    sums[GAP_SUM] += seconds * number
    if seconds > sums[LONGEST_GAP]:
        sums[LONGEST_GAP] = seconds


def take_blocks(
    head: int, wanted: int, cached: Wholes, waste: Wholes, before: Wholes, after: Wholes
) -> None:
    """Take free blocks from the head of an instance's line; there must be as many."""
    while wanted > 0:
        some = min(waste[head], wanted)
        waste[head] -= some
        wanted -= some
        if wanted > 0:
            node = after[head]
            some = min(cached[node], wanted)
            cached[node] -= some
            wanted -= some
            if cached[node] == 0:
                waste[head] += waste[node]
                after[head] = after[node]
                before[after[node]] = head


def leave_line(node: int, waste: Wholes, before: Wholes, after: Wholes) -> None:
    """Take a prefix out of the line: the waste behind it joins what is before it."""
    waste[before[node]] += waste[node]
    after[before[node]] = after[node]
    before[after[node]] = before[node]


def release(
    head: int,
    node: int,
    own: int,
    shares: int,
    cached: Wholes,
    used_by: Wholes,
    waste: Wholes,
    before: Wholes,
    after: Wholes,
) -> int:
    """Give back a request's own blocks, and its part in a prefix; how many blocks are free more."""
    waste[before[head]] += own
    if shares == 0:
        return own
    used_by[node] -= 1
    if used_by[node] > 0:
        return own
    waste[node] = 0
    before[node] = before[head]
    after[node] = head
    after[before[head]] = node
    before[head] = node
    return own + cached[node]


def share_prefix(node: int, reach: int, shares: int, cached: Wholes, used_by: Wholes) -> int:
    """Let others use whole blocks of a prefix as a request computes them; how many it shares now.

    Blocks that another request has made meanwhile stay the request's own.
    """
    while shares == cached[node] and shares < reach:
        if shares == 0:
            used_by[node] += 1
        cached[node] += 1
        shares += 1
    return shares
