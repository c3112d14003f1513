"""The event loop: one plain function over flat arrays (docs/explanation/simulation.md)."""

from __future__ import annotations

from collections.abc import MutableSequence

Wholes = MutableSequence[int]
Floats = MutableSequence[float]

# What `advance` returns
REACHED, NEEDS_REQUESTS, RESULTS_FULL, JOBS_FULL, COUNTS_FULL = range(5)

# Routing
RANDOM, POWER_OF_TWO, LEAST_OUTSTANDING, PREFIX = range(4)

# Places in `state` (whole numbers) and `clock` (floating point)
(
    ENTRY,
    FILLED,
    RESULTS,
    FREE_JOB,
    IN_SYSTEM,
    AT_WORK,
    BUSY,
    THINKING,
    PENDING,
    LOST,
    CACHE_HITS,
    ROUTING,
    CLOSED,
    INSTANCES,
    LEAVES,
    SLOTS,
    ZONES,
    COUNTS,
    PREFIXES,
    THRESHOLD,
    CACHE_SIZE,
    SOURCES,
    CAPACITY,
    STATE_SIZE,
) = range(24)
(NOW, NEXT_ARRIVAL, SYSTEM_AREA, WORK_AREA, BUSY_AREA, CACHE_FACTOR, RETRY_SECONDS, CLOCK_SIZE) = (
    range(8)
)

NEVER = float("inf")


def advance(
    until: float,
    state: Wholes,
    clock: Floats,
    slow: Floats,
    rate: Floats,
    gap: Floats,
    demand: Floats,
    pick: Floats,
    source: Wholes,
    prefix: Wholes,
    redirect: Wholes,
    hop: Floats,
    zone: Wholes,
    members: Wholes,
    order: Wholes,
    place: Wholes,
    count: Wholes,
    first: Wholes,
    home: Wholes,
    seen: Wholes,
    served: Wholes,
    job_arrival: Floats,
    job_demand: Floats,
    job_extra: Floats,
    job_think: Floats,
    job_wait: Floats,
    job_next: Wholes,
    job_group: Wholes,
    mark: Floats,
    mark_job: Wholes,
    running: Wholes,
    room: Wholes,
    line_head: Wholes,
    line_tail: Wholes,
    progress: Floats,
    updated: Floats,
    ends: Floats,
    ends_at: Wholes,
    thinking: Floats,
    out_latency: Floats,
    out_wait: Floats,
    out_hop: Floats,
) -> int:
    """Run events up to and including ``until``; return why it stopped. Arrays: :mod:`.world`."""
    entry, filled, results, free = state[ENTRY], state[FILLED], state[RESULTS], state[FREE_JOB]
    in_system, at_work, busy = state[IN_SYSTEM], state[AT_WORK], state[BUSY]
    thinkers, pending, lost, hits = state[THINKING], state[PENDING], state[LOST], state[CACHE_HITS]
    routing, closed, instances = state[ROUTING], state[CLOSED], state[INSTANCES]
    leaves, slots, zones = state[LEAVES], state[SLOTS], state[ZONES]
    counts, prefixes, sources = state[COUNTS], state[PREFIXES], state[SOURCES]
    capacity = state[CAPACITY]
    now, coming = clock[NOW], clock[NEXT_ARRIVAL]
    system_area, work_area, busy_area = clock[SYSTEM_AREA], clock[WORK_AREA], clock[BUSY_AREA]
    status = REACHED

    while True:
        # --- which event is next: a request that waits to be routed, an arrival, or an end
        time = ends[1]
        arrives = pending == 1 or coming < time
        if arrives:
            time = now if pending == 1 else coming
        if time > until:
            break
        if arrives:
            if entry == filled:
                status = NEEDS_REQUESTS
                break
            if free < 0:
                status = JOBS_FULL
                break
        elif results == capacity:
            status = RESULTS_FULL
            break
        passed = time - now
        system_area += in_system * passed
        work_area += at_work * passed
        busy_area += busy * passed
        now = time

        if arrives:
            # --- route the request to instance k
            from_ = source[entry] if sources > 1 else 0
            group = redirect[from_]
            # Before anything changes: is there a boundary for one more outstanding request?
            if (
                group >= 0
                and routing >= POWER_OF_TWO
                and first[(group + 1) * counts - 2] < members[group]
            ):
                status = COUNTS_FULL
                break
            if pending == 1:
                pending = 0
            elif closed == 1:
                # The user whose pause ends leaves the heap of pauses.
                thinkers -= 1
                last_pause = thinking[thinkers]
                at = 0
                while True:
                    child = 2 * at + 1
                    if child >= thinkers:
                        break
                    if child + 1 < thinkers and thinking[child + 1] < thinking[child]:
                        child += 1
                    if last_pause <= thinking[child]:
                        break
                    thinking[at] = thinking[child]
                    at = child
                thinking[at] = last_pause
                coming = thinking[0] if thinkers > 0 else NEVER
            else:
                coming = now + gap[entry]
            if group < 0 or members[group] == 0:
                # Nobody serves: the call fails, and a user of a closed loop tries again later.
                lost += 1
                if closed == 1:
                    again = now + gap[entry] + clock[RETRY_SECONDS]
                    at = thinkers
                    thinkers += 1
                    while at > 0:
                        parent = (at - 1) >> 1
                        if thinking[parent] <= again:
                            break
                        thinking[at] = thinking[parent]
                        at = parent
                    thinking[at] = again
                    coming = thinking[0]
                entry += 1
                continue
            size = members[group]
            begin = group * instances
            chance = pick[entry]
            if routing == RANDOM:
                k = order[begin + int(chance * size)]
            elif routing == POWER_OF_TWO:
                scaled = chance * size
                one = int(scaled)
                k = order[begin + one]
                other = order[begin + int((scaled - one) * size)]
                if count[begin + other] < count[begin + k]:
                    k = other
            else:
                k = -1
                if routing == PREFIX:
                    k = home[group * prefixes + prefix[entry]]
                    if count[begin + k] >= state[THRESHOLD]:
                        k = -1
                if k < 0:
                    fewest = count[begin + order[begin]]
                    width = first[group * counts + fewest + 1]
                    k = order[begin + int(chance * width)]
            # --- one more outstanding, as this router sees it
            if routing != RANDOM:
                seat = begin + k
                had = count[seat]
                count[seat] = had + 1
                boundary = group * counts + had + 1
                to = first[boundary] - 1
                first[boundary] = to
                at = place[seat]
                other = order[begin + to]
                order[begin + at] = other
                place[begin + other] = at
                order[begin + to] = k
                place[seat] = to
            # --- its job
            j = free
            free = job_next[j]
            work = demand[entry]
            if prefixes > 0:
                cell = k * prefixes + prefix[entry]
                served[k] += 1
                if seen[cell] > 0 and served[k] - seen[cell] <= state[CACHE_SIZE]:
                    work *= clock[CACHE_FACTOR]
                    hits += 1
                seen[cell] = served[k]
            job_arrival[j] = now
            job_demand[j] = work
            job_group[j] = group
            job_extra[j] = hop[from_ * zones + zone[k]]
            job_think[j] = gap[entry]
            entry += 1
            in_system += 1
            n = running[k]
            if n >= room[k]:
                job_next[j] = -1
                if line_head[k] < 0:
                    line_head[k] = j
                else:
                    job_next[line_tail[k]] = j
                line_tail[k] = j
                continue
            done = progress[k] + (now - updated[k]) * rate[n]
            job_wait[j] = 0.0
            starts = j
            base = k * slots
        else:
            # --- a request ends at instance k
            k = ends_at[1]
            n = running[k] - 1
            base = k * slots
            done = mark[base]
            j = mark_job[base]
            if n > 0:
                moved = mark[base + n]
                moved_job = mark_job[base + n]
                at = 0
                while True:
                    child = 2 * at + 1
                    if child >= n:
                        break
                    if child + 1 < n and mark[base + child + 1] < mark[base + child]:
                        child += 1
                    if moved <= mark[base + child]:
                        break
                    mark[base + at] = mark[base + child]
                    mark_job[base + at] = mark_job[base + child]
                    at = child
                mark[base + at] = moved
                mark_job[base + at] = moved_job
            extra = job_extra[j]
            out_latency[results] = now - job_arrival[j] + extra
            out_wait[results] = job_wait[j]
            out_hop[results] = extra
            results += 1
            in_system -= 1
            at_work -= 1
            if routing != RANDOM:
                group = job_group[j]
                begin = group * instances
                seat = begin + k
                had = count[seat]
                count[seat] = had - 1
                at = place[seat]
                if at >= 0:
                    boundary = group * counts + had
                    to = first[boundary]
                    first[boundary] = to + 1
                    other = order[begin + to]
                    order[begin + at] = other
                    place[begin + other] = at
                    order[begin + to] = k
                    place[seat] = to
            if closed == 1:
                pause = job_think[j] + extra
                if pause == 0.0:
                    pending = 1
                else:
                    pause += now
                    at = thinkers
                    thinkers += 1
                    while at > 0:
                        parent = (at - 1) >> 1
                        if thinking[parent] <= pause:
                            break
                        thinking[at] = thinking[parent]
                        at = parent
                    thinking[at] = pause
                    coming = thinking[0]
            job_next[j] = free
            free = j
            starts = -1
            if n < room[k]:
                starts = line_head[k]
                if starts >= 0:
                    line_head[k] = job_next[starts]
                    job_wait[starts] = now - job_arrival[starts]
            if n == 0 and starts < 0:
                busy -= 1

        # --- start a request at instance k, and note when its next one ends
        if starts >= 0:
            if n == 0 and arrives:
                busy += 1
            at_work += 1
            ending = done + job_demand[starts]
            at = n
            n += 1
            while at > 0:
                parent = (at - 1) >> 1
                if mark[base + parent] <= ending:
                    break
                mark[base + at] = mark[base + parent]
                mark_job[base + at] = mark_job[base + parent]
                at = parent
            mark[base + at] = ending
            mark_job[base + at] = starts
        running[k] = n
        progress[k] = done
        updated[k] = now
        end = now + (mark[base] - done) * slow[n] if n > 0 else NEVER
        at = leaves + k
        ends[at] = end
        while at > 1:
            at -= at & 1
            if ends[at + 1] < ends[at]:
                at += 1
            parent = at >> 1
            ends[parent], ends_at[parent] = ends[at], ends_at[at]
            at = parent

    state[ENTRY], state[RESULTS], state[FREE_JOB] = entry, results, free
    state[IN_SYSTEM], state[AT_WORK], state[BUSY] = in_system, at_work, busy
    state[THINKING], state[PENDING] = thinkers, pending
    state[LOST], state[CACHE_HITS] = lost, hits
    clock[NOW], clock[NEXT_ARRIVAL] = now, coming
    clock[SYSTEM_AREA], clock[WORK_AREA], clock[BUSY_AREA] = system_area, work_area, busy_area
    return status
