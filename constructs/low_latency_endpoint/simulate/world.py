"""The arrays that the event loop works on, and what changes them between two of its runs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from . import core
from .compilation import Loops
from .scenario import Scenario
from .traffic import ClosedLoop

ROUTING_NUMBERS = {
    "RANDOM": core.RANDOM,
    "POWER_OF_TWO": core.POWER_OF_TWO,
    "LEAST_OUTSTANDING_REQUESTS": core.LEAST_OUTSTANDING,
    "PREFIX_AWARE": core.PREFIX,
}
_ARRAYS = tuple(core.advance.__annotations__)[1:-1]  # but for the time, and what it returns
_MIX = 0x9E3779B97F4A7C15  # spreads neighbouring numbers; odd, near 2**64 / golden ratio
_WORD = (1 << 64) - 1


class World:
    """One endpoint while it is simulated: numbered places of instances, numbered jobs in flight."""

    def __init__(self, scenario: Scenario, loops: Loops, places: int, block: int) -> None:
        self.scenario, self.loops = scenario, loops
        self.places = places
        routers, zones = scenario.routers, scenario.zones.count
        self.sources = routers * zones
        # Routers see instances through groups: one for each router, by zone where routing is local.
        self.groups = self.sources if scenario.zones.local_routing else routers
        slots = scenario.concurrency
        cache = scenario.prefix_cache
        prefixes = cache.prefixes if cache else 0
        users = getattr(scenario.traffic, "users", 0)
        leaves = 1
        while leaves < places:
            leaves *= 2
        wholes, same_whole, same_float = loops.wholes, loops.same_whole, loops.same_float

        self.state = same_whole(0, core.STATE_SIZE)
        self.clock = same_float(0.0, core.CLOCK_SIZE)
        self.counts = 64
        for at, value in (
            (core.ROUTING, ROUTING_NUMBERS[scenario.routing]),
            (core.CLOSED, int(isinstance(scenario.traffic, ClosedLoop))),
            (core.INSTANCES, places),
            (core.LEAVES, leaves),
            (core.SLOTS, slots),
            (core.ZONES, zones),
            (core.COUNTS, self.counts),
            (core.PREFIXES, prefixes),
            (core.SOURCES, self.sources),
            (core.THRESHOLD, scenario.concurrency_threshold or 0),
            (core.CACHE_SIZE, cache.remembered if cache else 0),
            (core.THINKING, users),
            (core.CAPACITY, block),
        ):
            self.state[at] = value
        self.clock[core.CACHE_FACTOR] = 1 - cache.saved_share if cache else 1.0
        self.clock[core.RETRY_SECONDS] = scenario.retry_seconds

        # With n at work each request takes slow[n] times as long, so progresses at rate[n].
        slowness = [1.0] + [1 + scenario.slope * (n - 1) for n in range(1, slots + 1)]
        self.slow = loops.floats(slowness)
        self.rate = loops.floats([1 / each for each in slowness])
        # The requests to come, one block: filled by `Workload`.
        self.gap = same_float(0.0, block)  # to the next arrival, or the pause afterwards
        self.demand = same_float(0.0, block)  # seconds of work
        self.pick = same_float(0.0, block)  # what the router draws
        self.source = same_whole(0, block if self.sources > 1 else 1)  # caller zone and router
        self.prefix = same_whole(0, block if prefixes else 1)
        # Routers: which group takes a source's requests, and how each group sees the instances.
        self.redirect = same_whole(0, self.sources)
        self.hop = same_float(0.0, self.sources * zones)
        self.zone = same_whole(0, places)
        self.members = same_whole(0, self.groups)
        self.order = same_whole(0, self.groups * places)
        self.place = same_whole(-1, self.groups * places)
        self.count = same_whole(0, self.groups * places)
        self.first = same_whole(0, self.groups * self.counts)
        self.home = same_whole(0, max(1, self.groups * prefixes))
        self.seen = same_whole(0, max(1, places * prefixes))
        self.served = same_whole(0, places if prefixes else 1)
        # Jobs: requests in flight, the free ones chained through job_next.
        jobs = max(users, min(2 * places * slots, 1 << 16), 1024) + 1
        self.jobs = jobs
        self.job_arrival = same_float(0.0, jobs)
        self.job_demand = same_float(0.0, jobs)
        self.job_extra = same_float(0.0, jobs)
        self.job_think = same_float(0.0, jobs)
        self.job_wait = same_float(0.0, jobs)
        self.job_next = wholes([*range(1, jobs), -1])
        self.job_group = same_whole(0, jobs)
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
        self.out_hop = same_float(0.0, block)

        for source in range(self.sources):
            for other in range(zones):
                own = source // routers == other
                self.hop[source * zones + other] = scenario.zones.hop_seconds + (
                    0.0 if own else scenario.zones.cross_zone_seconds
                )
        for k in range(places):
            self.zone[k] = k % zones
        self.serving: list[int] = []
        self.starting: list[int] = []
        self.hanging: list[int] = []  # dead, but no router knows
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
        old = self.jobs
        self.jobs = 2 * old
        for name in ("job_arrival", "job_demand", "job_extra", "job_think", "job_wait"):
            longer = self.loops.same_float(0.0, self.jobs)
            longer[:old] = getattr(self, name)
            setattr(self, name, longer)
        for name in ("job_next", "job_group"):
            longer = self.loops.same_whole(0, self.jobs)
            longer[:old] = getattr(self, name)
            setattr(self, name, longer)
        self.job_next[old:] = self.loops.wholes(
            [*range(old + 1, self.jobs), self.state[core.FREE_JOB]]
        )
        self.state[core.FREE_JOB] = old
        self._arguments = self._listed()

    def more_counts(self) -> None:
        """Double the number of outstanding requests that an instance can have."""
        self.counts *= 2
        self.state[core.COUNTS] = self.counts
        self.first = self.loops.same_whole(0, self.groups * self.counts)
        for group in range(self.groups):
            self._bounds(group)
        self._arguments = self._listed()

    # --- instances come and go -----------------------------------------------------------------

    def free_places(self, zones: Iterable[int], besides: Iterable[int] = ()) -> list[int]:
        """A free place for an instance in each of the zones; none of ``besides``."""
        self.draining = [k for k in self.draining if self.in_flight(k)]
        taken = {*self.serving, *self.starting, *self.hanging, *self.draining, *self.lost, *besides}
        free: dict[int, list[int]] = {zone: [] for zone in range(self.scenario.zones.count)}
        for k in reversed(range(self.places)):
            if k not in taken:
                free[int(self.zone[k])].append(k)
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
        if self.state[core.PREFIXES]:
            prefixes = int(self.state[core.PREFIXES])
            self.seen[k * prefixes : (k + 1) * prefixes] = self.loops.same_whole(0, prefixes)
            self.served[k] = 0
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
        """Instances die, and no router knows yet: requests there wait for nothing."""
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
        """The routers learn of dead instances: the requests there fail."""
        slots = self.scenario.concurrency
        for k in places:
            (self.hanging if k in self.hanging else self.lost).remove(k)
            jobs = [int(self.mark_job[k * slots + at]) for at in range(self.running[k])]
            self.state[core.AT_WORK] -= len(jobs)
            self.state[core.BUSY] -= bool(jobs)
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
        if self.state[core.ROUTING] != core.RANDOM:
            self.count[self.job_group[j] * self.places + k] -= 1
        if self.state[core.CLOSED]:
            self._pause_until(self.now + float(self.job_think[j]) + self.scenario.retry_seconds)
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

    # --- how routers see them ------------------------------------------------------------------

    def regroup(self) -> None:
        """Tell every router which instances serve."""
        zones, routers = self.scenario.zones, self.scenario.routers
        known = sorted([*self.serving, *self.hanging])
        begin = 0
        for group in range(self.groups):
            own = known
            if zones.local_routing:
                own = [k for k in known if self.zone[k] == group // routers]
            begin = group * self.places
            if self.state[core.ROUTING] != core.RANDOM:
                own = sorted(
                    own,
                    key=lambda k, begin=begin: (  # type: ignore[misc]
                        self.count[begin + k],
                        k,
                    ),
                )
            self.members[group] = len(own)
            self.place[begin : begin + self.places] = self.loops.same_whole(-1, self.places)
            self.order[begin : begin + len(own)] = self.loops.wholes(own)
            for at, k in enumerate(own):
                self.place[begin + k] = at
            self._bounds(group)
            if self.state[core.PREFIXES]:
                self._find_homes(group, own)
        for source in range(self.sources):
            self.redirect[source] = self._group_of(source)

    def _group_of(self, source: int) -> int:
        """The group for a source's requests: its own zone's, else the next with instances."""
        routers, zones = self.scenario.routers, self.scenario.zones.count
        zone, router = divmod(source, routers)
        if not self.scenario.zones.local_routing:
            return router if self.members[router] else -1
        for step in range(zones):
            group = (zone + step) % zones * routers + router
            if self.members[group]:
                return int(group)
        return -1

    def _bounds(self, group: int) -> None:
        """For each number of outstanding requests the first place in the order that has it."""
        begin, size = group * self.places, int(self.members[group])
        bounds: list[int] = []
        for at in range(size):
            more = int(self.count[begin + self.order[begin + at]]) + 1 - len(bounds)
            bounds.extend([at] * more)
        bounds.extend([size] * (self.counts - len(bounds)))
        self.first[group * self.counts : (group + 1) * self.counts] = self.loops.wholes(bounds)

    def _find_homes(self, group: int, instances: list[int]) -> None:
        """Each prefix lives where a hash of both is highest: a change moves few prefixes."""
        prefixes = int(self.state[core.PREFIXES])
        if not instances:
            return
        homes = [max(instances, key=partial(_hash, prefix)) for prefix in range(prefixes)]
        self.home[group * prefixes : (group + 1) * prefixes] = self.loops.wholes(homes)

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


def _hash(prefix: int, k: int) -> int:
    """A number that depends on both without a pattern (splitmix64's last step)."""
    x = ((prefix + 1) * _MIX + (k + 1) * 0xD1B54A32D192ED03) & _WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)
