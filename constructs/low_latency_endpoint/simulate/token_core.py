"""Instances that serve language models, iteration by iteration: plain functions over flat arrays.

Like :func:`.core.advance`, :func:`serve` runs as it stands on lists of Python, or compiled by numba
on arrays of machine numbers, with the same results to the last bit. It allocates nothing and takes
all that is random from arrays filled beforehand. It runs one replication, from its first arrival to
its last token.

An instance
-----------
It works in *iterations* (continuous batching): one forward pass over a batch, from which every
request whose prompt is read gets one token. Before each iteration the scheduler makes the batch, as
vLLM's does (``vllm/v1/core/sched/scheduler.py``): every running request in the order of admission,
one token for each that decodes, a chunk of the prompt for each that does not yet; then those that
wait, first come first served, while the budget of tokens, the places and the KV cache's blocks
last. A running request that needs a block when none is free takes those of the last admitted one,
which waits again at the head of the line and computes its tokens anew (preemption by recompute).
Without chunked prefill, prompts are read whole, before any decoding, in iterations of their own.

Many iterations at once
-----------------------
As long as nobody arrives, ends, or lacks a block, the next iterations hold the same requests. They
are taken as one *segment*; an arrival that could join cuts it at the end of the running iteration.
Iteration *i* of a segment takes ``first_step + i x slope`` seconds, as each request that decodes
reads one more token of the cache than before.
"""

from __future__ import annotations

from .core import Floats, Wholes, set_end
from .token_blocks import (
    BATCHED,
    BUSY,
    ITERATIONS,
    TOKENS,
    USED,
    count_gaps,
    leave_line,
    release,
    share_prefix,
    take_blocks,
)

# Places in `plan`: whole numbers that do not change
(
    REQUESTS,
    INSTANCES,
    LEAVES,
    SEQUENCES,
    BUDGET,
    BLOCKS,
    BLOCK_TOKENS,
    ROUTING,
    THRESHOLD,
    USERS,
    PREFIXES,
    CHUNKED,
    POINTS,
    PLAN_SIZE,
) = range(14)
# Places in `law`: seconds
OVERHEAD, PER_CACHED, PER_PAIR, WINDOW_BEGIN, WINDOW_END, LAW_SIZE = range(6)
RANDOM, LEAST_OUTSTANDING, PREFIX = range(3)
NEVER = float("inf")


def serve(
    plan: Wholes,
    law: Floats,
    point_tokens: Floats,
    point_seconds: Floats,
    arrival: Floats,
    prompt: Wholes,
    output: Wholes,
    prefix: Wholes,
    shared: Wholes,
    pick: Floats,
    home: Wholes,
    computed: Wholes,
    made: Wholes,
    held: Wholes,
    held_shared: Wholes,
    chunk: Wholes,
    behind: Wholes,
    last: Floats,
    running: Wholes,
    members: Wholes,
    decoding: Wholes,
    moving: Wholes,
    line_head: Wholes,
    line_tail: Wholes,
    outstanding: Wholes,
    free: Wholes,
    cached: Wholes,
    used_by: Wholes,
    waste: Wholes,
    before: Wholes,
    after: Wholes,
    steps: Wholes,
    begin: Floats,
    first_step: Floats,
    slope: Floats,
    ends: Floats,
    ends_at: Wholes,
    out_first: Floats,
    out_end: Floats,
    out_hit: Wholes,
    out_preempted: Wholes,
    out_instance: Wholes,
    gaps: Wholes,
    sums: Floats,
) -> int:
    """Serve all requests; return how many ended. The arrays are described in :mod:`.token_world`."""
    requests, instances, leaves = plan[REQUESTS], plan[INSTANCES], plan[LEAVES]
    sequences, all_tokens, all_blocks = plan[SEQUENCES], plan[BUDGET], plan[BLOCKS]
    block, routing, threshold = plan[BLOCK_TOKENS], plan[ROUTING], plan[THRESHOLD]
    nodes, chunked, points = plan[PREFIXES] + 1, plan[CHUNKED], plan[POINTS]
    window_begin, window_end = law[WINDOW_BEGIN], law[WINDOW_END]
    entered, ended = 0, 0
    queued = requests  # requests whose arrival is known
    if plan[USERS] > 0 and plan[USERS] < requests:
        queued = plan[USERS]

    while True:
        time = ends[1]
        if entered < queued and arrival[entered] <= time:
            # --- a request arrives: choose instance k
            j = entered
            entered += 1
            now = arrival[j]
            k = -1
            if routing == RANDOM:
                k = int(pick[j] * instances)
            elif routing == PREFIX and prefix[j] >= 0:
                k = home[prefix[j]]
                if outstanding[k] >= threshold:
                    k = -1
            if k < 0:
                fewest, alike = outstanding[0], 0
                for i in range(instances):
                    if outstanding[i] < fewest:
                        fewest, alike = outstanding[i], 1
                    elif outstanding[i] == fewest:
                        alike += 1
                nth = int(pick[j] * alike)
                for i in range(instances):
                    if outstanding[i] == fewest:
                        if nth == 0:
                            k = i
                            break
                        nth -= 1
            out_instance[j] = k
            if (prompt[j] + output[j] - 2) // block + 1 > all_blocks:
                # It can never fit, and is refused.
                out_first[j], out_end[j] = NEVER, now
                ended += 1
                if queued < requests:
                    arrival[queued] = now
                    queued += 1
                continue
            outstanding[k] += 1
            waited = line_head[k] >= 0
            behind[j] = -1
            if waited:
                behind[line_tail[k]] = j
            else:
                line_head[k] = j
            line_tail[k] = j
            m = steps[k]
            if m == 0:  # idle: an iteration begins now, with all that arrive now
                begin[k] = now
                end = now
            elif m == 1 or waited or members[k] == sequences:
                continue  # it joins at the end of the segment at the earliest
            else:
                # Cut the segment at the first end of an iteration that is not before now.
                low, high = 1, m
                while low < high:
                    i = (low + high) >> 1
                    if begin[k] + i * first_step[k] + slope[k] * (0.5 * i * (i - 1)) >= now:
                        high = i
                    else:
                        low = i + 1
                steps[k] = low
                end = begin[k] + low * first_step[k] + slope[k] * (0.5 * low * (low - 1))
            set_end(leaves + k, end, ends, ends_at)
            continue
        if time == NEVER:
            break

        # --- instance k is between two segments
        k = ends_at[1]
        now = time
        base, head = k * sequences, k * nodes + nodes - 1
        n, decoders, moves, m = members[k], decoding[k], moving[k], steps[k]
        if m > 0:
            # Gaps between tokens: the iteration's time, but for the first after a pause.
            started, used = begin[k], all_blocks - free[k]
            inside = window_begin <= now <= window_end
            for i in range(m if moves > 0 else 0):
                done = started + (i + 1) * first_step[k] + slope[k] * (0.5 * (i + 1) * i)
                if window_begin <= done <= window_end:
                    together = moves
                    if i == 0:
                        for place in range(moves):
                            since = last[running[base + place]]
                            if since != started:
                                together -= 1
                                count_gaps(done - since, 1, gaps, sums)
                    if together > 0:
                        count_gaps(first_step[k] + slope[k] * i, together, gaps, sums)
                    sums[TOKENS] += moves
            wanted, batched = 0, m * moves
            for i in range(moves):
                j = running[base + i]
                computed[j] += m
                made[j] += m
                last[j] = now
                more = (computed[j] - 1) // block + 1 - held[j]
                held[j] += more
                wanted += more
            free[k] -= wanted
            take_blocks(head, wanted, cached, waste, before, after)
            # Prompts that are read give their first token, or after a preemption their next.
            for i in range(decoders, n):
                j = running[base + i]
                computed[j] += chunk[j]
                batched += chunk[j]
                chunk[j] = 0
                if computed[j] == prompt[j] + made[j]:
                    decoders += 1
                    if made[j] == 0:
                        out_first[j] = now
                    elif inside:
                        count_gaps(now - last[j], 1, gaps, sums)
                    if inside:
                        sums[TOKENS] += 1.0
                    made[j] += 1
                    last[j] = now
            overlap = min(now, window_end) - max(started, window_begin)
            if overlap > 0.0:
                share = overlap / (now - started)
                sums[ITERATIONS] += share * m
                sums[BUSY] += overlap
                sums[BATCHED] += share * batched
                sums[USED] += overlap * 0.5 * (used + all_blocks - free[k])
            # Those that have all their tokens leave.
            kept = 0
            for i in range(n):
                j = running[base + i]
                if i >= decoders or made[j] < output[j]:
                    running[base + kept] = j
                    kept += 1
                    continue
                out_end[j] = now
                ended += 1
                outstanding[k] -= 1
                free[k] += release(
                    head, head + 1 - nodes + prefix[j], held[j] - held_shared[j], held_shared[j],
                    cached, used_by, waste, before, after,
                )  # fmt: skip
                held[j], held_shared[j] = 0, 0
                if queued < requests:
                    arrival[queued] = now
                    queued += 1
            decoders -= n - kept
            n = kept

        # --- the next batch
        budget, tokens, prompts, preempted, joined = all_tokens, 0, 0, 0, 0
        read, pairs = 0.0, 0.0
        moves = 0
        for stage in range(2):
            if stage == 1 - chunked:
                # Those that run, in the order of admission; none beside whole prompts.
                i = 0
                while i < n and joined == 0:
                    j = running[base + i]
                    size = 1
                    if i >= decoders:
                        size = min(prompt[j] + made[j] - computed[j], budget)
                    more = 0
                    if size > 0:
                        more = (computed[j] + size - 1) // block + 1 - held[j]
                    while more > free[k] and n > i:
                        # Preempt the last admitted, which may be this one.
                        n -= 1
                        v = running[base + n]
                        free[k] += release(
                            head, head + 1 - nodes + prefix[v], held[v] - held_shared[v],
                            held_shared[v], cached, used_by, waste, before, after,
                        )  # fmt: skip
                        held[v], held_shared[v], computed[v], chunk[v] = 0, 0, 0, 0
                        behind[v] = line_head[k]
                        if line_head[k] < 0:
                            line_tail[k] = v
                        line_head[k] = v
                        out_preempted[v] += 1
                        preempted += 1
                    if n == i:
                        break
                    free[k] -= more
                    take_blocks(head, more, cached, waste, before, after)
                    held[j] += more
                    budget -= size
                    tokens += size
                    if i < decoders:
                        read += computed[j]
                    elif size > 0:
                        prompts += 1
                        chunk[j] = size
                        read += computed[j]
                        pairs += size * (computed[j] + 0.5 * (size + 1))
                        if prefix[j] >= 0:
                            held_shared[j] = share_prefix(
                                head + 1 - nodes + prefix[j],
                                min(computed[j] + size, shared[j]) // block,
                                held_shared[j], cached, used_by,
                            )  # fmt: skip
                    i += 1
                decoders = min(decoders, n)
                if joined == 0:
                    moves = decoders
                continue
            # Those that wait, first come first served.
            while preempted == 0 and budget > 0 and n < sequences and line_head[k] >= 0:
                j = line_head[k]
                node = head + 1 - nodes + prefix[j]
                size = prompt[j] + made[j]
                hit, pinned = 0, 0
                if prefix[j] >= 0:
                    hit = min(cached[node], min(shared[j], size - 1) // block)
                    if hit > 0 and used_by[node] == 0:
                        pinned = cached[node]
                size -= hit * block
                if size > budget:
                    if chunked == 1:
                        size = budget
                    elif joined > 0:
                        break
                more = (size - 1) // block + 1
                if more > free[k] - pinned:
                    break
                line_head[k] = behind[j]
                if pinned > 0:
                    leave_line(node, waste, before, after)
                if hit > 0:
                    used_by[node] += 1
                free[k] -= pinned + more
                take_blocks(head, more, cached, waste, before, after)
                computed[j] = hit * block
                held[j] = hit + more
                held_shared[j] = hit
                out_hit[j] += hit * block
                if prefix[j] >= 0:
                    held_shared[j] = share_prefix(
                        node, min(computed[j] + size, shared[j]) // block, hit, cached, used_by
                    )
                running[base + n] = j
                n += 1
                joined += 1
                prompts += 1
                chunk[j] = size
                budget -= size
                tokens += size
                read += computed[j]
                pairs += size * (computed[j] + 0.5 * (size + 1))
        members[k], decoding[k], moving[k] = n, decoders, moves

        # --- how long it takes, and how many alike follow
        begin[k] = now
        m = 0
        end = NEVER
        if n > 0:
            m = 1
            if prompts == 0 and preempted == 0:
                m = output[running[base]] - made[running[base]]
                for i in range(1, n):
                    j = running[base + i]
                    m = min(m, output[j] - made[j])
                low, high = 1, m
                while low < high:  # the last of the iterations for which blocks are free
                    i = (low + high + 1) >> 1 if low > 1 or high < m else high
                    wanted = 0
                    for place in range(n):
                        j = running[base + place]
                        wanted += (computed[j] + i - 1) // block + 1 - held[j]
                    if wanted <= free[k]:
                        low = i
                    else:
                        high = i - 1
                m = low
            x = float(tokens)
            seconds = point_seconds[0]
            if points > 1 and x > point_tokens[0]:
                i = 1
                while i < points - 1 and x > point_tokens[i]:
                    i += 1
                rise = (point_seconds[i] - point_seconds[i - 1]) / (
                    point_tokens[i] - point_tokens[i - 1]
                )
                seconds = point_seconds[i] + rise * (x - point_tokens[i])
            first_step[k] = law[OVERHEAD] + seconds + law[PER_CACHED] * read + law[PER_PAIR] * pairs
            slope[k] = law[PER_CACHED] * moves
            end = now + m * first_step[k] + slope[k] * (0.5 * m * (m - 1))
        steps[k] = m
        set_end(leaves + k, end, ends, ends_at)
    return ended
