"""The event loop: one plain function over flat arrays (docs/explanation/simulation.md)."""

from __future__ import annotations

from collections.abc import MutableSequence

Wholes = MutableSequence[int]
Floats = MutableSequence[float]

# What `advance` returns
REACHED, NEEDS_REQUESTS, RESULTS_FULL, JOBS_FULL, COUNTS_FULL = range(5)

# Places in `state` (whole numbers) and `clock` (floating point)
(
    ENTRY,
    FILLED,
    RESULTS,
    FREE_JOB,
    IN_SYSTEM,
    AT_WORK,
    THINKING,
    PENDING,
    LOST,
    LEAST_OUTSTANDING,
    CLOSED,
    MEMBERS,
    LEAVES,
    SLOTS,
    COUNTS,
    CAPACITY,
    STATE_SIZE,
) = range(17)
(NOW, NEXT_ARRIVAL, SYSTEM_AREA, WORK_AREA, CLOCK_SIZE) = range(5)

NEVER = float("inf")
RETRY_SECONDS = 1.0  # after which a user of a closed loop tries a failed call again


def advance(
    until: float,
    state: Wholes,
    clock: Floats,
    slow: Floats,
    rate: Floats,
    gap: Floats,
    demand: Floats,
    pick: Floats,
    order: Wholes,
    place: Wholes,
    count: Wholes,
    first: Wholes,
    job_arrival: Floats,
    job_demand: Floats,
    job_think: Floats,
    job_wait: Floats,
    job_next: Wholes,
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
) -> int:
    """Run events up to and including ``until``; return why it stopped. Arrays: :mod:`.world`."""
    entry, filled, results, free = state[ENTRY], state[FILLED], state[RESULTS], state[FREE_JOB]
    in_system, at_work = state[IN_SYSTEM], state[AT_WORK]
    thinkers, pending, lost = state[THINKING], state[PENDING], state[LOST]
    least, closed, members = state[LEAST_OUTSTANDING], state[CLOSED], state[MEMBERS]
    leaves, slots, counts, capacity = state[LEAVES], state[SLOTS], state[COUNTS], state[CAPACITY]
    now, coming = clock[NOW], clock[NEXT_ARRIVAL]
    system_area, work_area = clock[SYSTEM_AREA], clock[WORK_AREA]
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
        now = time

        if arrives:
            # --- route the request to instance k
            # Before anything changes: is there a boundary for one more outstanding request?
            if least == 1 and first[counts - 2] < members:
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
            if members == 0:
                # Nobody serves: the call fails, and a user of a closed loop tries again later.
                lost += 1
                if closed == 1:
                    again = now + gap[entry] + RETRY_SECONDS
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
            if least == 0:
                k = order[int(pick[entry] * members)]
            else:
                fewest = count[order[0]]
                k = order[int(pick[entry] * first[fewest + 1])]
                # --- one more outstanding there
                count[k] = fewest + 1
                to = first[fewest + 1] - 1
                first[fewest + 1] = to
                at = place[k]
                other = order[to]
                order[at] = other
                place[other] = at
                order[to] = k
                place[k] = to
            # --- its job
            j = free
            free = job_next[j]
            job_arrival[j] = now
            job_demand[j] = demand[entry]
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
            out_latency[results] = now - job_arrival[j]
            out_wait[results] = job_wait[j]
            results += 1
            in_system -= 1
            at_work -= 1
            if least == 1:
                had = count[k]
                count[k] = had - 1
                at = place[k]
                if at >= 0:
                    to = first[had]
                    first[had] = to + 1
                    other = order[to]
                    order[at] = other
                    place[other] = at
                    order[to] = k
                    place[k] = to
            if closed == 1:
                pause = job_think[j]
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

        # --- start a request at instance k, and note when its next one ends
        if starts >= 0:
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
    state[IN_SYSTEM], state[AT_WORK] = in_system, at_work
    state[THINKING], state[PENDING], state[LOST] = thinkers, pending, lost
    clock[NOW], clock[NEXT_ARRIVAL] = now, coming
    clock[SYSTEM_AREA], clock[WORK_AREA] = system_area, work_area
    return status
