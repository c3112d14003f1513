"""What happens to the fleet while requests run: scaling, failures, deployments."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import count

from ..facts.scaling_rules import Cooldowns, calls_policy, wanted_capacity, within
from ..plan.scaling_pace import METRIC_PERIOD_SECONDS
from .fleet_changes import CapacityLimits, Rollout, ZoneOutage
from .scenario import Scenario
from .world import Workload, World


class FleetControl:
    """Acts on the fleet at its times; between them the event loop runs alone."""

    def __init__(self, scenario: Scenario, world: World, workload: Workload) -> None:
        self.scenario, self.world, self.workload = scenario, world, workload
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.instance_seconds = 0.0
        self._paid_until = self._now = 0.0
        self._kept: list[int] = []  # of the old fleet of a blue/green deployment, until its end
        self._old: set[int] = set()  # the fleet that a deployment replaces
        self._staying = 0  # of those, how many shall still serve
        self._pending = 0  # of the desired, what a rolling deployment has yet to launch
        self._ready: dict[int, float] = {}  # by place that is starting: when it can serve
        self._dead: set[int] = set()  # places that died while starting; not noticed yet
        self.updating = False  # a deployment or a scaling activity is under way
        self.desired = scenario.instances  # when nothing is under way any more
        self._lost_zones: set[int] = set()
        for _ in range(scenario.instances):
            world.start(len(world.starting))
        world.join(list(world.starting))
        # CloudWatch's InvocationsPerInstance: each request counts 1 / instances in service.
        self._per_instance = 0.0
        self._counted = 0
        self._arrived_before = 0
        self._values: list[tuple[float, float]] = []  # per instance, and all requests
        self._high = Alarm()
        self._low = Alarm()
        self._cooldowns = Cooldowns()
        if scenario.scaling:
            self._limits = (scenario.scaling.minimum, scenario.scaling.maximum)
            self.at(scenario.scaling.period, self._end_of_period)
            for limits in scenario.scaling.limits:
                self.at(limits.at, lambda limits=limits: self._limit(limits))  # type: ignore[misc]
        if scenario.deployment:
            self.at(scenario.deployment.at, self._deploy)
        for fault in scenario.faults:
            self.at(fault.at, lambda fault=fault: self._strike(fault))  # type: ignore[misc]

    # --- the agenda ----------------------------------------------------------------------------

    @property
    def next_time(self) -> float:
        """When something is due next."""
        return self._agenda[0][0] if self._agenda else math.inf

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Put an action on the agenda."""
        heapq.heappush(self._agenda, (time, next(self._numbers), action))

    def act(self) -> None:
        """Do what is due next."""
        time, _, action = heapq.heappop(self._agenda)
        self.pay_until(time)
        self._now = time
        action()

    def pay_until(self, time: float) -> None:
        """Add up instance time: instances are paid for from their launch to their end."""
        self.instance_seconds += self.launched * (time - self._paid_until) + self._drained()
        self._paid_until = time

    def _drained(self) -> float:
        """Seconds of instances whose last request has ended since they were last paid for."""
        world = self.world
        ends = (
            float(world.instances.updated[k])
            for k in world.draining
            if not world.in_flight(k) and k not in self._kept
        )
        return sum(max(end - self._paid_until, 0.0) for end in ends)

    def forget(self, time: float) -> None:
        """Start counting instance time anew."""
        self.pay_until(time)
        self.instance_seconds = 0.0

    @property
    def launched(self) -> int:
        """Instances that are paid for."""
        world = self.world
        draining = sum(1 for k in world.draining if world.in_flight(k))
        kept = sum(1 for k in self._kept if not world.in_flight(k))
        starting = len(world.starting) - len(self._dead)
        return len(world.serving) + starting + draining + kept

    def _launch(self, number: int, seconds: float, *, old: bool = False) -> list[int]:
        """Start instances where there are fewest, away from lost zones; they join when ready."""
        world, zones = self.world, range(self.scenario.zones)
        # With no zone left, the first to come back is the one that was lost first.
        left = [zone for zone in zones if zone not in self._lost_zones] or [0]
        filled = [0 for _ in zones]
        for k in (*world.serving, *world.starting):
            filled[world.zone[k]] += 1
        chosen = []
        for _ in range(number):
            chosen.append(min(left, key=lambda zone: (filled[zone], zone)))
            filled[chosen[-1]] += 1
        started = world.free_places(chosen, self._kept)
        ready = self._now + seconds
        for k in started:
            world.start(k)
            self._ready[k] = ready
        if old:
            self._old.update(started)
        if started:
            self.at(ready, self._join_ready)
        return started

    def _join_ready(self) -> None:
        """Let those serve that can; of a deployment's new fleet as many as have traffic."""
        world = self.world
        room = (
            math.inf
            if not self._staying
            else self.desired
            - self._staying
            - sum(1 for k in (*world.serving, *world.hanging) if k not in self._old)
        )
        joining = []
        for k in world.starting:
            if self._ready.get(k, math.inf) <= self._now and (k in self._old or room > 0):
                joining.append(k)
                room -= k not in self._old
        if joining:
            self._count_arrivals()
            world.join(joining)
            for k in joining:
                del self._ready[k]

    def _retire(self, places: list[int]) -> None:
        """Take instances away: those that serve finish what they have, the others never start."""
        world = self.world
        self._count_arrivals()
        starting = set(world.starting).intersection(places)
        world.cancel(sorted(starting))
        for k in starting:
            self._ready.pop(k, None)
        self._dead.difference_update(starting)
        world.leave([k for k in places if k not in starting])
        self._old.difference_update(places)

    def _there(self, *, old: bool) -> int:
        """Instances of a fleet as its control plane sees them: no loss is known before notice."""
        world = self.world
        return sum(
            1 for k in (*world.serving, *world.starting, *world.hanging) if (k in self._old) == old
        )

    # --- target tracking -----------------------------------------------------------------------

    def _count_arrivals(self) -> None:
        """Add the arrivals since the last change of the fleet, each as 1 / instances."""
        arrived = self.workload.entered
        if self.world.serving:
            self._per_instance += (arrived - self._counted) / len(self.world.serving)
        self._counted = arrived

    def _end_of_period(self) -> None:
        policy, world = self.scenario.scaling, self.world
        assert policy
        self._count_arrivals()
        if policy.metric == "invocations":
            value, load = self._per_instance, float(self._counted - self._arrived_before)
        else:
            most = math.ceil(policy.target * policy.most)  # more asks for no more instances
            value = float(max((world.outstanding(k, most) for k in world.serving), default=0))
            load = value * len(world.serving)
        self._per_instance, self._arrived_before = 0.0, self._counted
        ended = self._now
        self.at(ended + policy.metric_delay, lambda: self._see(ended, value, load))
        self.at(ended + policy.period, self._end_of_period)

    def _see(self, ended: float, value: float, load: float) -> None:
        """The value of the period that ended then has reached the alarms."""
        policy = self.scenario.scaling
        assert policy
        self._values.append((value, load))
        out = self._values[-policy.out_datapoints :]
        above = len(out) == policy.out_datapoints and min(out)[0] > policy.target
        if self._high.calls(self._now, above, policy.period):
            self._scale(max(self.desired, wanted_capacity(load, policy.target)))
        if ended % METRIC_PERIOD_SECONDS >= policy.period:
            return  # the alarm for scale-in is judged once a minute
        back = self._values[-policy.in_datapoints :]
        below = len(back) == policy.in_datapoints and max(back)[0] < policy.in_below
        if self._low.calls(self._now, below, METRIC_PERIOD_SECONDS):
            most = max(load for _, load in back)
            self._scale(min(self.desired, wanted_capacity(most, policy.target)))

    def _scale(self, wanted: int) -> None:
        """Change the number for the policy, unless an update or a cooldown holds it back."""
        policy = self.scenario.scaling
        assert policy
        change = within(wanted, *self._limits) - self.desired
        if not change or self.updating or self._cooldowns.hold(self._now, change):
            return
        self._cooldowns.begin(change)
        cooldown = policy.scale_out_cooldown if change > 0 else policy.scale_in_cooldown
        self._move(change, lambda: self._cooldowns.end(self._now, change, cooldown))

    def _limit(self, limits: CapacityLimits) -> None:
        """Other limits stand from now on."""
        self._limits = (limits.minimum, limits.maximum)
        self._move_within_limits()

    def _move_within_limits(self) -> None:
        """Change the number for the limits; no cooldown holds it back, and none begins."""
        change = within(self.desired, *self._limits) - self.desired
        if change and not self.updating:
            self._move(change, lambda: None)

    def _move(self, change: int, ended: Callable[[], None]) -> None:
        """Change the number, as one update of the endpoint."""
        policy = self.scenario.scaling
        assert policy
        self.desired += change
        self.updating = True
        leaving: list[int] = []
        if change > 0:
            seconds = policy.instance_seconds
            self._launch(change, seconds)
        else:
            seconds = policy.scale_in_seconds
            chosen = self._youngest(-change)
            serving = set(chosen).intersection(self.world.serving)
            self._retire(chosen)
            leaving = [k for k in chosen if k in serving]
            self._kept += leaving  # paid for until the update has ended

        def end() -> None:
            self._kept = [k for k in self._kept if k not in leaving]
            ended()
            self._end_update()

        self.at(self._now + seconds, end)

    def _end_update(self) -> None:
        """The endpoint can be updated again; limits that changed meanwhile come first."""
        self.updating = False
        if self.scenario.scaling:
            self._move_within_limits()

    def _youngest(self, number: int) -> list[int]:
        """Instances to take away: those that start, then from the zones that have most."""
        world = self.world
        chosen: list[int] = list(reversed(world.starting))[:number]
        left = list(world.serving)
        while len(chosen) < number and len(left) > 1:
            full = max(
                range(self.scenario.zones),
                key=lambda zone: sum(1 for k in left if world.zone[k] == zone),
            )
            k = next(k for k in reversed(left) if world.zone[k] == full)
            left.remove(k)
            chosen.append(k)
        return chosen

    # --- failures ------------------------------------------------------------------------------

    def _strike(self, fault: ZoneOutage) -> None:
        """Instances die. Those that start die unseen too; those that drain take requests along."""
        world = self.world
        self._count_arrivals()
        serving, starting, draining = (
            [k for k in places if world.zone[k] == fault.zone]
            for places in (world.serving, world.starting, world.draining)
        )
        starting = [k for k in starting if k not in self._dead]
        struck = serving + [k for k in draining if world.in_flight(k)]
        self._kept = [k for k in self._kept if world.zone[k] != fault.zone]
        self._lost_zones.add(fault.zone)
        self._dead.update(starting)
        for k in starting:
            self._ready.pop(k, None)
        world.hang(struck)
        self.at(self._now + fault.detection_seconds, lambda: self._notice(struck, starting, fault))

    def _notice(self, struck: list[int], starting: list[int], fault: ZoneOutage) -> None:
        """Replace what is missing of the struck."""
        world = self.world
        self._count_arrivals()
        gone = [k for k in starting if k in self._dead]  # the others were cancelled meanwhile
        counted = [k for k in struck if k in world.hanging] + gone
        old = sum(1 for k in counted if k in self._old)
        world.fail(struck)
        world.cancel(gone)
        self._dead.difference_update(gone)
        self._old.difference_update(counted)
        new = min(len(counted) - old, self.desired - self._pending - self._there(old=False))
        old = min(old, self._staying - self._there(old=True))
        self._launch(max(new, 0), fault.replacement_seconds)
        self._launch(max(old, 0), fault.replacement_seconds, old=True)
        self._join_ready()  # new ones that waited for traffic may take that of the dead

    # --- deployments ---------------------------------------------------------------------------

    def _deploy(self) -> None:
        if self.updating:  # a scaling activity comes first; the endpoint takes one update
            self.at(self._now + 1.0, self._deploy)
            return
        plan, world = self.scenario.deployment, self.world
        assert plan
        self.updating = True
        self._old = {*world.serving, *world.starting, *world.hanging}
        self._staying = self._pending = self.desired
        step = plan.step(self.desired)
        if plan.kind == "rolling":
            self._roll(step, plan)
            return
        self._pending = 0
        self._launch(self.desired, plan.instance_seconds)
        first = self._staying if plan.kind == "all_at_once" else step
        self.at(self._now + plan.instance_seconds, lambda: self._shift(first, plan))

    def _shift(self, step: int, plan: Rollout) -> None:
        """Move traffic from old instances to new ones; the old stay up until all has moved."""
        self._kept += self._replace(step)
        if not self._staying:
            self.at(self._now + plan.bake_seconds, self._deployed)
            return
        following = self._staying if plan.kind == "canary" else step
        self.at(self._now + plan.wait_seconds, lambda: self._shift(following, plan))

    def _roll(self, step: int, plan: Rollout) -> None:
        """Replace one batch after another."""
        batch = min(step, self._pending)
        self._pending -= batch
        self._launch(batch, plan.instance_seconds)

        def replace() -> None:
            self._replace(batch)
            if self._pending:
                self.at(self._now + plan.wait_seconds, lambda: self._roll(step, plan))
            else:
                self._deployed()

        self.at(self._now + plan.instance_seconds, replace)

    def _replace(self, number: int) -> list[int]:
        """Shift the traffic of so many; return the old ones that served until now."""
        world = self.world
        self._staying = max(0, self._staying - number)
        self._join_ready()
        serving = [k for k in world.serving if k in self._old]
        starting = [k for k in world.starting if k in self._old]
        leaving = (starting + serving)[: max(0, self._there(old=True) - self._staying)]
        self._retire(leaving)
        return leaving[len(starting) :]

    def _deployed(self) -> None:
        self._kept = []
        self._end_update()


class Alarm:
    """An alarm of the scaling policy: since when it is in ALARM."""

    def __init__(self) -> None:
        self.since: float | None = None

    def calls(self, now: float, breached: bool, period: float) -> bool:
        """Judge it; whether it calls its policy now."""
        if not breached:
            self.since = None
            return False
        if self.since is None:
            self.since = now
        return calls_policy(now - self.since, period)
