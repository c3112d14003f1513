"""The event loop: plain functions over named arrays (docs/explanation/simulation.md).

numba compiles them where it is installed (:mod:`.compilation`). It needs numbers of one kind in each
array, hence two arrays for what the loop keeps (``state`` and ``clock``). A named tuple of arrays
costs it nothing.
"""

from __future__ import annotations

from collections.abc import MutableSequence
from typing import NamedTuple

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


class Heap(NamedTuple):
    """A binary heap, or several of the same size one after the other: the least key is the first."""

    key: Floats
    item: Wholes


class Requests(NamedTuple):
    """The requests to come, one block."""

    gap: Floats  # seconds to the next arrival, or the pause afterwards
    demand: Floats  # seconds of work
    pick: Floats  # what the router draws


class Router(NamedTuple):
    """The instances as the router sees them: in the order of their outstanding requests."""

    order: Wholes
    place: Wholes  # of each instance in that order; -1 without one
    outstanding: Wholes  # requests of each instance
    first: Wholes  # by number of outstanding requests, the first place that has as many


class Jobs(NamedTuple):
    """Requests in flight; the free ones are chained through ``next``."""

    arrival: Floats
    demand: Floats
    think: Floats
    wait: Floats
    next: Wholes


class Instances(NamedTuple):
    """Who works on how many requests, and who waits in line."""

    running: Wholes
    room: Wholes
    line_head: Wholes
    line_tail: Wholes
    progress: Floats  # work done for each request, at the time of ``updated``
    updated: Floats
    # by requests at work: how many times as long each takes, and the progress in a second
    slow: Floats
    rate: Floats


class Results(NamedTuple):
    """Of the requests that were answered."""

    latency: Floats
    wait: Floats


class Arrays(NamedTuple):
    """Everything that the loop reads and changes."""

    state: Wholes
    clock: Floats
    requests: Requests
    router: Router
    jobs: Jobs
    instances: Instances
    marks: Heap  # of each instance: the progress at which its requests end, and their jobs
    ends: Heap  # a tournament: its winner, in place 1, is the instance whose request ends next
    pauses: Heap  # the times at which users of a closed loop send again
    results: Results


def advance(until: float, arrays: Arrays) -> int:
    """Run events up to and including ``until``; return why it stopped."""
    state, clock, ends, router = arrays.state, arrays.clock, arrays.ends, arrays.router
    while True:
        # The next event: a request that waits to be routed, an arrival, or an end.
        now, time = clock[NOW], ends.key[1]
        arrives = state[PENDING] == 1 or clock[NEXT_ARRIVAL] < time
        if arrives:
            time = now if state[PENDING] == 1 else clock[NEXT_ARRIVAL]
        if time > until:
            return REACHED
        if arrives:
            if state[ENTRY] == state[FILLED]:
                return NEEDS_REQUESTS
            if state[FREE_JOB] < 0:
                return JOBS_FULL
            # Is there a boundary for one more outstanding request?
            if state[LEAST_OUTSTANDING] == 1 and router.first[state[COUNTS] - 2] < state[MEMBERS]:
                return COUNTS_FULL
        elif state[RESULTS] == state[CAPACITY]:
            return RESULTS_FULL
        passed = time - now
        clock[SYSTEM_AREA] += state[IN_SYSTEM] * passed
        clock[WORK_AREA] += state[AT_WORK] * passed
        clock[NOW] = time
        if arrives:
            arrive(arrays)
        else:
            end(arrays)


def arrive(arrays: Arrays) -> None:
    """A request comes: an instance begins it, or lets it wait in line."""
    state, clock, jobs, instances = arrays.state, arrays.clock, arrays.jobs, arrays.instances
    now, entry = clock[NOW], state[ENTRY]
    gap = arrays.requests.gap[entry]
    state[ENTRY] = entry + 1
    if state[PENDING] == 1:
        state[PENDING] = 0
    elif state[CLOSED] == 1:
        end_pause(state, clock, arrays.pauses)
    else:
        clock[NEXT_ARRIVAL] = now + gap
    if state[MEMBERS] == 0:
        # Nobody serves: the call fails, and a user of a closed loop tries again later.
        state[LOST] += 1
        if state[CLOSED] == 1:
            begin_pause(state, clock, arrays.pauses, now + gap + RETRY_SECONDS)
        return
    k = route(state, arrays.router, arrays.requests.pick[entry])
    j = state[FREE_JOB]
    state[FREE_JOB] = jobs.next[j]
    jobs.arrival[j] = now
    jobs.demand[j] = arrays.requests.demand[entry]
    jobs.think[j] = gap
    state[IN_SYSTEM] += 1
    n = instances.running[k]
    if n >= instances.room[k]:
        jobs.next[j] = -1
        if instances.line_head[k] < 0:
            instances.line_head[k] = j
        else:
            jobs.next[instances.line_tail[k]] = j
        instances.line_tail[k] = j
        return
    jobs.wait[j] = 0.0
    done = instances.progress[k] + (now - instances.updated[k]) * instances.rate[n]
    go_on(arrays, k, n, done, j)


def end(arrays: Arrays) -> None:
    """A request ends, and its instance takes the next one in its line."""
    state, clock, jobs, instances = arrays.state, arrays.clock, arrays.jobs, arrays.instances
    marks, results = arrays.marks, arrays.results
    now, k = clock[NOW], arrays.ends.item[1]
    n = instances.running[k] - 1
    base = k * state[SLOTS]
    done, j = marks.key[base], marks.item[base]
    if n > 0:
        sink(marks, base, n, marks.key[base + n], marks.item[base + n])
    results.latency[state[RESULTS]] = now - jobs.arrival[j]
    results.wait[state[RESULTS]] = jobs.wait[j]
    state[RESULTS] += 1
    state[IN_SYSTEM] -= 1
    state[AT_WORK] -= 1
    if state[LEAST_OUTSTANDING] == 1:
        count_one_fewer(arrays.router, k)
    if state[CLOSED] == 1:
        if jobs.think[j] == 0.0:
            state[PENDING] = 1
        else:
            begin_pause(state, clock, arrays.pauses, jobs.think[j] + now)
    jobs.next[j] = state[FREE_JOB]
    state[FREE_JOB] = j
    starts = -1
    if n < instances.room[k]:
        starts = instances.line_head[k]
        if starts >= 0:
            instances.line_head[k] = jobs.next[starts]
            jobs.wait[starts] = now - jobs.arrival[starts]
    go_on(arrays, k, n, done, starts)


def go_on(arrays: Arrays, k: int, n: int, done: float, starts: int) -> None:
    """Instance k works on n requests, and on job ``starts`` if there is one: when does one end?"""
    state, marks, instances = arrays.state, arrays.marks, arrays.instances
    now, base = arrays.clock[NOW], k * state[SLOTS]
    if starts >= 0:
        state[AT_WORK] += 1
        rise(marks, base, n, done + arrays.jobs.demand[starts], starts)
        n += 1
    instances.running[k] = n
    instances.progress[k] = done
    instances.updated[k] = now
    next_end = now + (marks.key[base] - done) * instances.slow[n] if n > 0 else NEVER
    set_end(arrays.ends, state[LEAVES] + k, next_end)


# --- routing -------------------------------------------------------------------------------------


def route(state: Wholes, router: Router, pick: float) -> int:
    """The instance that gets a request: any, or one of those with the fewest outstanding."""
    if state[LEAST_OUTSTANDING] == 0:
        return router.order[int(pick * state[MEMBERS])]
    fewest = router.outstanding[router.order[0]]
    k = router.order[int(pick * router.first[fewest + 1])]
    router.outstanding[k] = fewest + 1
    to = router.first[fewest + 1] - 1
    router.first[fewest + 1] = to
    change_places(router, k, to)
    return k


def count_one_fewer(router: Router, k: int) -> None:
    """Instance k has answered; the router may no longer know it."""
    had = router.outstanding[k]
    router.outstanding[k] = had - 1
    if router.place[k] >= 0:
        to = router.first[had]
        router.first[had] = to + 1
        change_places(router, k, to)


def change_places(router: Router, k: int, to: int) -> None:
    """Instance k and the one at that place of the order."""
    at, other = router.place[k], router.order[to]
    router.order[at], router.place[other] = other, at
    router.order[to], router.place[k] = k, to


# --- heaps ---------------------------------------------------------------------------------------


def rise(heap: Heap, base: int, size: int, key: float, item: int) -> None:
    """Put an item into a heap of that size which begins at ``base``."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if heap.key[base + parent] <= key:
            break
        heap.key[base + at] = heap.key[base + parent]
        heap.item[base + at] = heap.item[base + parent]
        at = parent
    heap.key[base + at] = key
    heap.item[base + at] = item


def sink(heap: Heap, base: int, size: int, key: float, item: int) -> None:
    """Put an item in the place of the first one."""
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and heap.key[base + child + 1] < heap.key[base + child]:
            child += 1
        if key <= heap.key[base + child]:
            break
        heap.key[base + at] = heap.key[base + child]
        heap.item[base + at] = heap.item[base + child]
        at = child
    heap.key[base + at] = key
    heap.item[base + at] = item


def begin_pause(state: Wholes, clock: Floats, pauses: Heap, until: float) -> None:
    """One more user who will send again."""
    rise(pauses, 0, state[THINKING], until, 0)
    state[THINKING] += 1
    clock[NEXT_ARRIVAL] = pauses.key[0]


def end_pause(state: Wholes, clock: Floats, pauses: Heap) -> None:
    """The user whose pause is over sends."""
    left = state[THINKING] - 1
    state[THINKING] = left
    sink(pauses, 0, left, pauses.key[left], 0)
    clock[NEXT_ARRIVAL] = pauses.key[0] if left > 0 else NEVER


def set_end(ends: Heap, at: int, time: float) -> None:
    """Note the next end of the instance at that leaf of the tournament."""
    ends.key[at] = time
    while at > 1:
        at -= at & 1
        if ends.key[at + 1] < ends.key[at]:
            at += 1
        parent = at >> 1
        ends.key[parent], ends.item[parent] = ends.key[at], ends.item[at]
        at = parent


#: The functions that others here call, callees first.
PARTS = (
    *(rise, sink, begin_pause, end_pause, set_end),
    *(change_places, count_one_fewer, route),
    *(go_on, end, arrive),
)
