"""The fleet over time: what happens at which time, which instances there are, and what is paid for.

Three parts change the fleet: :mod:`.auto_scaling`, :mod:`.deployment` and :mod:`.outage`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from itertools import count

from .scenario import Scenario
from .workload import Workload
from .world import Instance, World


class FleetControl:
    """Acts on the fleet at set times; between them the event loop runs alone."""

    def __init__(self, scenario: Scenario, world: World, workload: Workload) -> None:
        self.scenario = scenario
        self.world = world
        self.invocations = InvocationsMetric(world, workload)
        self.now = 0.0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()  # of two actions at one time, the first on the agenda comes first
        self.instance_seconds = 0.0
        self._paid_until = 0.0
        self.lost_zones: set[int] = set()
        #: The number of instances once nothing is under way.
        self.desired = scenario.instances
        #: Whether a deployment or a scaling activity is under way: the endpoint takes no other one.
        self.updating = False
        self.after_update: Callable[[], None] = lambda: None
        # During a deployment: instances of the old fleet that shall still serve, and instances of
        # the new one that are not to be launched yet.
        self.old_wanted = self.new_withheld = 0
        zones = [number % scenario.zones for number in range(scenario.instances)]
        world.join(world.launch(zones))

    # --- the agenda ----------------------------------------------------------------------------

    @property
    def next_time(self) -> float:
        """When something is due next."""
        return self._agenda[0][0] if self._agenda else math.inf

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Put an action on the agenda."""
        heapq.heappush(self._agenda, (time, next(self._numbers), action))

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Put an action on the agenda that is due in so many seconds."""
        self.at(self.now + seconds, action)

    def act(self) -> None:
        """Do what is due next."""
        time, _, action = heapq.heappop(self._agenda)
        self.pay_until(time)
        self.now = time
        action()

    def end_update(self) -> None:
        """End the update: instances kept for it go, and the endpoint can be updated again."""
        for instance in self.world.fleet.values():
            instance.kept = False
        self.pay_until(self.now)
        self.updating = False
        self.after_update()

    # --- instance time -------------------------------------------------------------------------

    def is_paid(self, instance: Instance) -> bool:
        """Whether an instance is paid for: from its launch until its last request, or longer."""
        if instance.dead:
            return False
        if instance.phase != "draining" or instance.kept:
            return True
        return self.world.has_requests(instance)

    @property
    def paid_instances(self) -> int:
        """The number of instances that are paid for."""
        return sum(map(self.is_paid, self.world.fleet.values()))

    def pay_until(self, time: float) -> None:
        """Add up instance time, and remove the instances that have drained by then."""
        world = self.world
        before = self._paid_until
        drained = [
            instance
            for instance in world.in_phase("draining")
            if not (instance.dead or self.is_paid(instance))
        ]
        ends = [max(world.last_change(instance) - before, 0.0) for instance in drained]
        self.instance_seconds += self.paid_instances * (time - before) + sum(ends)
        self._paid_until = time
        world.remove(drained)

    def restart_payment(self, time: float) -> None:
        """Start counting instance time anew."""
        self.pay_until(time)
        self.instance_seconds = 0.0

    # --- instances -----------------------------------------------------------------------------

    @property
    def known(self) -> list[Instance]:
        """Instances that serve or start as the endpoint knows them: also dead ones not noticed."""
        return [*self.world.in_phase("serving"), *self.world.in_phase("starting")]

    def count_known(self, *, old: bool) -> int:
        """The number of known instances of the old fleet, or of the others."""
        return sum(1 for instance in self.known if instance.old == old)

    def launch(self, number: int, seconds: float, *, old: bool = False) -> None:
        """Start instances where there are fewest, away from lost zones; they join when ready."""
        if number <= 0:
            return
        world = self.world
        zones = range(self.scenario.zones)
        # With no zone left, instances start in the first one.
        left = [zone for zone in zones if zone not in self.lost_zones] or [0]
        filled = [0 for _ in zones]
        for instance in (*world.serving, *world.in_phase("starting")):
            filled[instance.zone] += 1
        chosen = []
        for _ in range(number):
            emptiest = min(left, key=filled.__getitem__)
            filled[emptiest] += 1
            chosen.append(emptiest)
        ready_at = self.now + seconds
        world.launch(chosen, ready_at, old=old)
        self.at(ready_at, self.join_ready)

    def join_ready(self) -> None:
        """Let instances serve that have started; of a new fleet as many as shall have traffic."""
        room = self._room_for_new()
        joining = []
        for instance in self.world.in_phase("starting"):
            if instance.dead or instance.ready_at > self.now:
                continue
            if instance.old:
                joining.append(instance)
            elif room > 0:
                joining.append(instance)
                room -= 1
        if joining:
            self.invocations.count()
            self.world.join(joining)

    def _room_for_new(self) -> float:
        """How many more instances may serve that are not of the old fleet."""
        if not self.old_wanted:
            return math.inf
        new = [instance for instance in self.world.in_phase("serving") if not instance.old]
        return self.desired - self.old_wanted - len(new)

    def retire(self, instances: Sequence[Instance], *, kept: bool) -> None:
        """Take instances away: those that serve finish their requests, the others never start."""
        self.invocations.count()
        starting = [instance for instance in instances if instance.phase == "starting"]
        serving = [instance for instance in instances if instance.phase == "serving"]
        self.world.remove(starting)
        self.world.leave(serving, kept=kept)


class InvocationsMetric:
    """CloudWatch's Invocations and InvocationsPerInstance of the present period.

    For the latter each request counts 1 / instances in service.
    """

    def __init__(self, world: World, workload: Workload) -> None:
        self.world = world
        self.workload = workload
        self.per_instance = 0.0
        self._counted = self._before = 0  # requests so far, and until the present period

    def count(self) -> None:
        """Count the requests since the last time: to be called before the fleet changes."""
        arrived = self.workload.entered
        serving = len(self.world.serving)
        if serving:
            self.per_instance += (arrived - self._counted) / serving
        self._counted = arrived

    def end_period(self) -> tuple[float, int]:
        """End the period; return its requests per instance and its requests."""
        self.count()
        per_instance = self.per_instance
        requests = self._counted - self._before
        self.per_instance = 0.0
        self._before = self._counted
        return per_instance, requests
