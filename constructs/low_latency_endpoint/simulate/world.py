"""The arrays that the event loop works on, and what changes them between two of its runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import core
from .compilation import Loops
from .scenario import Scenario
from .traffic import ClosedLoop

_ARRAYS = tuple(core.advance.__annotations__)[1:-1]  # but for the time, and what it returns


class World:
    """One endpoint while it is simulated: numbered places of instances, numbered jobs in flight."""

    def __init__(self, scenario: Scenario, loops: Loops, places: int, block: int) -> None:
        self.scenario, self.loops = scenario, loops
        self.places = places
        slots = scenario.concurrency
        users = getattr(scenario.traffic, "users", 0)
        leaves = 1
        while leaves < places:
            leaves *= 2
        wholes, same_whole, same_float = loops.wholes, loops.same_whole, loops.same_float

        self.state = same_whole(0, core.STATE_SIZE)
        self.clock = same_float(0.0, core.CLOCK_SIZE)
        self.counts = 64
        for at, value in (
            (core.LEAST_OUTSTANDING, int(scenario.routing == "LEAST_OUTSTANDING_REQUESTS")),
            (core.CLOSED, int(isinstance(scenario.traffic, ClosedLoop))),
            (core.LEAVES, leaves),
            (core.SLOTS, slots),
            (core.COUNTS, self.counts),
            (core.THINKING, users),
            (core.CAPACITY, block),
        ):
            self.state[at] = value

        # With n at work each request takes slow[n] times as long, so progresses at rate[n].
        slowness = [1.0] + [1 + scenario.slope * (n - 1) for n in range(1, slots + 1)]
        self.slow = loops.floats(slowness)
        self.rate = loops.floats([1 / each for each in slowness])
        # The requests to come, one block: filled by `Workload`.
        self.gap = same_float(0.0, block)  # to the next arrival, or the pause afterwards
        self.demand = same_float(0.0, block)  # seconds of work
        self.pick = same_float(0.0, block)  # what the router draws
        self.zone = [k % scenario.zones for k in range(places)]
        # How the router sees the instances: by outstanding requests, of which it has the counts.
        self.order = same_whole(0, places)
        self.place = same_whole(-1, places)
        self.count = same_whole(0, places)
        self.first = same_whole(0, self.counts)
        # Jobs: requests in flight, the free ones chained through job_next.
        jobs = max(users, min(2 * places * slots, 1 << 16), 1024) + 1
        self.job_arrival = same_float(0.0, jobs)
        self.job_demand = same_float(0.0, jobs)
        self.job_think = same_float(0.0, jobs)
        self.job_wait = same_float(0.0, jobs)
        self.job_next = wholes([*range(1, jobs), -1])
        # Instances: a heap of the marks at which their requests end, and a line of those waiting.
        self.mark = same_float(0.0, places * slots)
        self.mark_job = same_whole(0, places * slots)
        self.running = same_whole(0, places)
        self.room = same_whole(slots, places)
        self.line_head = same_whole(-1, places)
        self.line_tail = same_whole(-1, places)
        self.progress = same_float(0.0, places)
        self.updated = same_float(0.0, places)
        self.ends = same_float(core.NEVER, 2 * leaves)
        self.ends_at = wholes([0] * leaves + [min(at, places - 1) for at in range(leaves)])
        self.thinking = same_float(0.0, users + 1)
        self.out_latency = same_float(0.0, block)
        self.out_wait = same_float(0.0, block)
        self.serving: list[int] = []
        self.starting: list[int] = []
        self.hanging: list[int] = []  # dead, and the router does not know
        self.draining: list[int] = []
        self.lost: list[int] = []  # dead while they drained
        self.failed = 0
        self.failed_time = 0.0
        self._arguments = self._listed()

    def _listed(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in _ARRAYS)

    def advance(self, until: float) -> int:
        """Run events up to a time; see :func:`.core.advance`."""
        return int(self.loops.advance(until, *self._arguments))

    @property
    def now(self) -> float:
        """The time of the last event, in seconds."""
        return float(self.clock[core.NOW])

    # --- tables that were too small ------------------------------------------------------------

    def more_jobs(self) -> None:
        """Double the number of requests that can be in flight."""
        old = len(self.job_next)
        for name in ("job_arrival", "job_demand", "job_think", "job_wait"):
            setattr(self, name, getattr(self, name) + self.loops.same_float(0.0, old))
        self.job_next += self.loops.wholes([*range(old + 1, 2 * old), self.state[core.FREE_JOB]])
        self.state[core.FREE_JOB] = old
        self._arguments = self._listed()

    def more_counts(self) -> None:
        """Double the number of outstanding requests that an instance can have."""
        self.counts *= 2
        self.state[core.COUNTS] = self.counts
        self._bound()

    # --- instances come and go -----------------------------------------------------------------

    def free_places(self, zones: Iterable[int], besides: Iterable[int] = ()) -> list[int]:
        """A free place for an instance in each of the zones; none of ``besides``."""
        self.draining = [k for k in self.draining if self.in_flight(k)]
        taken = {*self.serving, *self.starting, *self.hanging, *self.draining, *self.lost, *besides}
        free: dict[int, list[int]] = {zone: [] for zone in range(self.scenario.zones)}
        for k in reversed(range(self.places)):
            if k not in taken:
                free[self.zone[k]].append(k)
        found = []
        for zone in zones:
            k = (free[zone] or max(free.values(), key=len)).pop()
            self.zone[k] = zone  # a place has the zone of what stands in it
            found.append(k)
        return found

    def in_flight(self, k: int) -> int:
        """Whether an instance has requests at work or in line."""
        return int(self.running[k]) + int(self.line_head[k] >= 0)

    def outstanding(self, k: int, most: int) -> int:
        """Requests at an instance, at work or in line; counted up to ``most``."""
        found, job = int(self.running[k]), int(self.line_head[k])
        while job >= 0 and found < most:
            found, job = found + 1, int(self.job_next[job])
        return found

    def start(self, k: int) -> None:
        """Launch an instance; it serves from :meth:`join` on."""
        self.starting.append(k)
        self.room[k] = self.scenario.concurrency
        self.progress[k] = 0.0
        self.updated[k] = self.now

    def join(self, places: list[int]) -> None:
        """Instances begin to serve."""
        for k in places:
            self.starting.remove(k)
            self.serving.append(k)
        self.regroup()

    def cancel(self, places: list[int]) -> None:
        """Instances that were starting will not serve."""
        for k in places:
            self.starting.remove(k)

    def leave(self, places: list[int]) -> None:
        """Instances get no more requests, and finish those they have."""
        for k in places:
            self.serving.remove(k)
            self.draining.append(k)
        self.regroup()

    def hang(self, places: list[int]) -> None:
        """Instances die, and the router does not know yet: requests there wait for nothing."""
        for k in places:
            if k in self.serving:
                self.serving.remove(k)
                self.hanging.append(k)
            else:
                self.draining.remove(k)
                self.lost.append(k)
            self.room[k] = 0
            self._set_end(k, core.NEVER)

    def fail(self, places: list[int]) -> None:
        """The router learns of dead instances: the requests there fail."""
        slots = self.scenario.concurrency
        for k in places:
            (self.hanging if k in self.hanging else self.lost).remove(k)
            jobs = [int(self.mark_job[k * slots + at]) for at in range(self.running[k])]
            self.state[core.AT_WORK] -= len(jobs)
            j = int(self.line_head[k])
            while j >= 0:
                jobs.append(j)
                j = int(self.job_next[j])
            for j in jobs:
                self._fail_job(j, k)
            self.running[k] = 0
            self.line_head[k] = -1
        self.regroup()

    def _fail_job(self, j: int, k: int) -> None:
        self.failed += 1
        self.failed_time += self.now - float(self.job_arrival[j])
        self.state[core.IN_SYSTEM] -= 1
        if self.state[core.LEAST_OUTSTANDING]:
            self.count[k] -= 1
        if self.state[core.CLOSED]:
            self._pause_until(self.now + float(self.job_think[j]) + core.RETRY_SECONDS)
        self.job_next[j] = self.state[core.FREE_JOB]
        self.state[core.FREE_JOB] = j

    def _pause_until(self, time: float) -> None:
        """One more user in the heap of pauses."""
        at = int(self.state[core.THINKING])
        self.state[core.THINKING] = at + 1
        while at > 0 and self.thinking[(at - 1) // 2] > time:
            self.thinking[at] = self.thinking[(at - 1) // 2]
            at = (at - 1) // 2
        self.thinking[at] = time
        self.clock[core.NEXT_ARRIVAL] = self.thinking[0]

    def _set_end(self, k: int, end: float) -> None:
        at = int(self.state[core.LEAVES]) + k
        self.ends[at] = end
        while at > 1:
            at -= at & 1
            at += int(self.ends[at + 1] < self.ends[at])
            self.ends[at // 2], self.ends_at[at // 2] = self.ends[at], self.ends_at[at]
            at //= 2

    # --- how the router sees them --------------------------------------------------------------

    def regroup(self) -> None:
        """Tell the router which instances serve."""
        known = sorted([*self.serving, *self.hanging])
        if self.state[core.LEAST_OUTSTANDING]:
            known.sort(key=self.count.__getitem__)  # stable: the first of equals stays first
        self.state[core.MEMBERS] = len(known)
        self.place = self.loops.same_whole(-1, self.places)
        self.order[: len(known)] = self.loops.wholes(known)
        for at, k in enumerate(known):
            self.place[k] = at
        self._bound()

    def _bound(self) -> None:
        """Note for each number of outstanding requests the first place in the order that has it."""
        size = int(self.state[core.MEMBERS])
        bounds: list[int] = []
        for at in range(size):
            more = int(self.count[self.order[at]]) + 1 - len(bounds)
            bounds.extend([at] * more)
        bounds.extend([size] * (self.counts - len(bounds)))
        self.first = self.loops.wholes(bounds)
        self._arguments = self._listed()

    # --- what there is to read -----------------------------------------------------------------

    def ages(self) -> float:
        """Sum of the times that the requests in flight have been there, in seconds."""
        slots, now, total = self.scenario.concurrency, self.now, 0.0
        for k in range(self.places):
            for at in range(self.running[k]):
                total += now - float(self.job_arrival[self.mark_job[k * slots + at]])
            j = int(self.line_head[k])
            while j >= 0:
                total += now - float(self.job_arrival[j])
                j = int(self.job_next[j])
        return total

    @property
    def entered(self) -> int:
        """Requests taken from the present block."""
        return int(self.state[core.ENTRY])

    def take_results(self) -> int:
        """The number of results that stand in the ``out`` arrays, which are free again then."""
        results = int(self.state[core.RESULTS])
        self.state[core.RESULTS] = 0
        return results
