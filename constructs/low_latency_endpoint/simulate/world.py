"""The endpoint while it is simulated: the event loop's arrays, and what changes them between two runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from . import core
from .compilation import Loops
from .scenario import Scenario
from .traffic import ClosedLoop

Phase = Literal["starting", "serving", "draining"]


@dataclass(eq=False, slots=True)
class Instance:
    """One instance of the endpoint, from its launch until it is gone.

    A dead instance keeps its phase until the failure is noticed: the router goes on sending requests
    to one that serves, and the requests of one that drains hang.
    """

    place: int  # its index in the arrays of the event loop
    zone: int
    ready_at: float  # seconds; when it can serve
    old: bool  # of the fleet that a deployment replaces
    phase: Phase = "starting"
    dead: bool = False
    kept: bool = False  # paid for without traffic until the endpoint's update ends


class World:
    """One endpoint while it is simulated: its instances and the requests in flight.

    The event loop works on arrays. Each instance has a place in them, and each request in flight has
    a number, its *job*.
    """

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

        self.requests = core.Requests(*(same_float(0.0, block) for _ in range(3)))
        self.router = core.Router(
            order=same_whole(0, places),
            place=same_whole(-1, places),
            outstanding=same_whole(0, places),
            first=same_whole(0, self.counts),
        )
        jobs = max(users, min(2 * places * slots, 1 << 16), 1024) + 1
        self.jobs = core.Jobs(
            arrival=same_float(0.0, jobs),
            demand=same_float(0.0, jobs),
            think=same_float(0.0, jobs),
            wait=same_float(0.0, jobs),
            next=wholes([*range(1, jobs), -1]),
        )
        slowness = [1.0] + [1 + scenario.slope * (n - 1) for n in range(1, slots + 1)]
        self.instances = core.Instances(
            running=same_whole(0, places),
            room=same_whole(slots, places),
            line_head=same_whole(-1, places),
            line_tail=same_whole(-1, places),
            progress=same_float(0.0, places),
            updated=same_float(0.0, places),
            slow=loops.floats(slowness),
            rate=loops.floats([1 / each for each in slowness]),
        )
        self.marks = core.Heap(same_float(0.0, places * slots), same_whole(0, places * slots))
        instances = [0] * leaves + [min(at, places - 1) for at in range(leaves)]
        self.ends = core.Heap(same_float(core.NEVER, 2 * leaves), wholes(instances))
        self.pauses = core.Heap(same_float(0.0, users + 1), same_whole(0, users + 1))
        self.results = core.Results(same_float(0.0, block), same_float(0.0, block))
        #: By place. Of the instances in one phase, those that entered it first come first.
        self.fleet: dict[int, Instance] = {}
        self._zones = [
            place % scenario.zones for place in range(places)
        ]  # of the last instance there
        self.failed = 0
        self.failed_time = 0.0

    def advance(self, until: float) -> int:
        """Run events up to a time; see :func:`.core.advance`."""
        arrays = core.Arrays(*(getattr(self, name) for name in core.Arrays._fields))
        return int(self.loops.advance(until, arrays))

    @property
    def now(self) -> float:
        """The time of the last event, in seconds."""
        return float(self.clock[core.NOW])

    # --- tables that were too small ------------------------------------------------------------

    def more_jobs(self) -> None:
        """Double the number of requests that can be in flight."""
        old = len(self.jobs.next)
        more = self.loops.wholes([*range(old + 1, 2 * old), self.state[core.FREE_JOB]])
        *times, following = self.jobs
        times = [time + self.loops.same_float(0.0, old) for time in times]
        self.jobs = core.Jobs._make([*times, following + more])
        self.state[core.FREE_JOB] = old

    def more_counts(self) -> None:
        """Double the number of outstanding requests that an instance can have."""
        self.counts *= 2
        self.state[core.COUNTS] = self.counts
        self._bound()

    # --- instances come and go -----------------------------------------------------------------

    def in_phase(self, phase: Phase) -> list[Instance]:
        """Instances in a phase, dead ones included, in the order in which they entered it."""
        return [instance for instance in self.fleet.values() if instance.phase == phase]

    @property
    def serving(self) -> list[Instance]:
        """Instances that answer requests."""
        return [instance for instance in self.in_phase("serving") if not instance.dead]

    def launch(
        self, zones: Sequence[int], ready_at: float = 0.0, *, old: bool = False
    ) -> list[Instance]:
        """Start an instance in each of the zones; it serves from :meth:`join` on."""
        free: list[list[int]] = [[] for _ in range(self.scenario.zones)]
        for place in reversed(range(self.places)):
            if place not in self.fleet:
                free[self._zones[place]].append(place)
        launched = []
        for zone in zones:
            place = (free[zone] or max(free, key=len)).pop()
            self._zones[place] = zone
            self.instances.room[place] = self.scenario.concurrency
            self.instances.progress[place] = 0.0
            self.instances.updated[place] = self.now
            self.fleet[place] = Instance(place, zone, ready_at, old)
            launched.append(self.fleet[place])
        return launched

    def join(self, instances: Sequence[Instance]) -> None:
        """Let instances serve."""
        for instance in instances:
            self._enter(instance, "serving")
        self.regroup()

    def leave(self, instances: Sequence[Instance], *, kept: bool) -> None:
        """Take the traffic from instances. They finish the requests that they have."""
        for instance in instances:
            self._enter(instance, "draining")
            instance.kept = kept
        self.regroup()

    def _enter(self, instance: Instance, phase: Phase) -> None:
        instance.phase = phase
        self.fleet[instance.place] = self.fleet.pop(instance.place)  # the last of its phase

    def remove(self, instances: Sequence[Instance]) -> None:
        """Forget instances that have no requests."""
        for instance in instances:
            del self.fleet[instance.place]

    def kill(self, instances: Sequence[Instance]) -> None:
        """Let instances die. Their requests hang, and the router does not know yet."""
        for instance in instances:
            instance.dead = True
            k = instance.place
            self.instances.room[k] = 0
            self.state[core.AT_WORK] -= int(self.instances.running[k])
            core.set_end(self.ends, self.state[core.LEAVES] + k, core.NEVER)

    def notice(self, instances: Sequence[Instance]) -> None:
        """Tell the router of dead instances: their requests fail, and they are gone."""
        for instance in instances:
            k = instance.place
            for j in list(self._jobs_at(k)):
                self._fail_job(j, k)
            self.instances.running[k] = 0
            self.instances.line_head[k] = -1
        self.remove(instances)
        self.regroup()

    def _fail_job(self, j: int, k: int) -> None:
        self.failed += 1
        self.failed_time += self.now - float(self.jobs.arrival[j])
        self.state[core.IN_SYSTEM] -= 1
        if self.state[core.LEAST_OUTSTANDING]:
            self.router.outstanding[k] -= 1
        if self.state[core.CLOSED]:
            again = self.now + float(self.jobs.think[j]) + core.RETRY_SECONDS
            core.begin_pause(self.state, self.clock, self.pauses, again)
        self.jobs.next[j] = self.state[core.FREE_JOB]
        self.state[core.FREE_JOB] = j

    # --- requests of an instance ---------------------------------------------------------------

    def _jobs_at(self, k: int) -> Iterator[int]:
        """The requests at an instance: those at work, then those in line."""
        first = k * self.scenario.concurrency
        yield from self.marks.item[first : first + self.instances.running[k]]
        j = self.instances.line_head[k]
        while j >= 0:
            yield j
            j = self.jobs.next[j]

    def has_requests(self, instance: Instance) -> bool:
        """Whether an instance has requests at work or in line."""
        k = instance.place
        return self.instances.running[k] > 0 or self.instances.line_head[k] >= 0

    def outstanding(self, instance: Instance, most: int) -> int:
        """Requests at an instance, at work or in line; counted up to ``most``."""
        requests = int(self.instances.running[instance.place])
        job = int(self.instances.line_head[instance.place])
        while job >= 0 and requests < most:
            requests += 1
            job = int(self.jobs.next[job])
        return requests

    def last_change(self, instance: Instance) -> float:
        """The time at which a request of an instance last began or ended, in seconds."""
        return float(self.instances.updated[instance.place])

    # --- how the router sees them --------------------------------------------------------------

    def regroup(self) -> None:
        """Tell the router which instances serve. It does not know which of them are dead."""
        known = sorted(k for k, instance in self.fleet.items() if instance.phase == "serving")
        if self.state[core.LEAST_OUTSTANDING]:
            known.sort(
                key=self.router.outstanding.__getitem__
            )  # stable: the first of equals stays first
        self.state[core.MEMBERS] = len(known)
        self.router.order[: len(known)] = self.loops.wholes(known)
        self.router.place[:] = self.loops.same_whole(-1, self.places)
        for at, k in enumerate(known):
            self.router.place[k] = at
        self._bound()

    def _bound(self) -> None:
        """Note for each number of outstanding requests the first place in the order that has it."""
        size = int(self.state[core.MEMBERS])
        bounds: list[int] = []
        for at in range(size):
            more = int(self.router.outstanding[self.router.order[at]]) + 1 - len(bounds)
            bounds.extend([at] * more)
        bounds.extend([size] * (self.counts - len(bounds)))
        self.router = self.router._replace(first=self.loops.wholes(bounds))

    # --- what there is to read -----------------------------------------------------------------

    def ages(self) -> float:
        """Sum of the times that the requests in flight have been there, in seconds."""
        now, total = self.now, 0.0
        for k in sorted(self.fleet):
            for j in self._jobs_at(k):
                total += now - self.jobs.arrival[j]
        return total

    @property
    def entered(self) -> int:
        """Requests taken from the present block."""
        return int(self.state[core.ENTRY])

    def take_results(self) -> int:
        """The number of results since the last call; their places in the arrays are free again."""
        results = int(self.state[core.RESULTS])
        self.state[core.RESULTS] = 0
        return results
