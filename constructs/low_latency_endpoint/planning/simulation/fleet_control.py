"""What happens to the fleet while requests run: scaling, failures, deployments."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from itertools import count
from typing import Protocol

from .scenario import Deployment, InstanceFailure, Scenario, ZoneOutage
from .world import World

__all__ = ["FleetControl"]

MINUTE = 60.0
_IN_BELOW = 0.9  # target tracking scales in only below nine tenths of the target


class Arrivals(Protocol):
    """What the control needs of the workload."""

    @property
    def entered(self) -> int:
        """Requests that have arrived so far."""
        ...


class FleetControl:
    """Acts on the fleet at its times; between them the event loop runs alone."""

    def __init__(self, scenario: Scenario, world: World, workload: Arrivals) -> None:
        self.scenario, self.world, self.workload = scenario, world, workload
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self.instance_seconds = 0.0
        self._paid_until = self._now = 0.0
        self._kept: list[int] = []  # of the old fleet of a blue/green deployment, until its end
        self.updating = False      # a deployment or a scaling activity is under way
        self.desired = scenario.instances
        self._lost_zone: int | None = None
        for _ in range(scenario.instances):
            world.start(len(world.starting))
        world.join(list(world.starting))
        # CloudWatch's InvocationsPerInstance: each request counts 1 / instances in service.
        self._minute = 0.0
        self._counted = 0
        self._arrived_before = 0
        self._values: list[tuple[float, float]] = []  # per instance, and all requests
        self._no_out_before = self._no_in_before = 0.0
        if scenario.scaling:
            self.at(MINUTE, self._end_of_minute)
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
        self.instance_seconds += self.launched * (time - self._paid_until)
        self._paid_until = time

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
        return len(world.serving) + len(world.starting) + draining + kept

    def _launch(self, number: int) -> list[int]:
        """Start instances where there are fewest, away from a lost zone."""
        world, zones = self.world, self.scenario.zones.count
        started = []
        for _ in range(number):
            filled = [*world.serving, *world.starting]
            left = [zone for zone in range(zones) if zone != self._lost_zone] or [0]
            zone = min(left, key=lambda zone: (  # where there are fewest
                sum(1 for k in filled if world.zone[k] == zone), zone))
            k = world.free_place(zone if zones > 1 else None)
            world.start(k)
            started.append(k)
        return started

    def _serve(self, places: list[int]) -> None:
        self._count_minute()
        self.world.join(places)

    def _retire(self, places: list[int]) -> None:
        self._count_minute()
        self.world.leave([k for k in places if k in self.world.serving])

    # --- target tracking -----------------------------------------------------------------------

    def _count_minute(self) -> None:
        """Add the arrivals since the last change of the fleet, each as 1 / instances."""
        arrived = self.workload.entered
        if self.world.serving:
            self._minute += (arrived - self._counted) / len(self.world.serving)
        self._counted = arrived

    def _end_of_minute(self) -> None:
        policy = self.scenario.scaling
        assert policy
        self._count_minute()
        value, self._minute = self._minute, 0.0
        load, self._arrived_before = self._counted - self._arrived_before, self._counted
        self.at(self._now + policy.metric_delay, lambda: self._see(value, load))
        self.at(self._now + MINUTE, self._end_of_minute)

    def _see(self, value: float, load: float) -> None:
        """A minute's value has reached the alarms.

        AWS does not publish how it computes the new capacity. Here it is the minute's load over the
        target: that is current capacity x value / target, but no second step for a minute that
        the first step's instances had not seen yet.
        """
        policy = self.scenario.scaling
        assert policy
        self._values.append((value, load))
        out = self._values[-policy.out_datapoints:]
        if len(out) == policy.out_datapoints and min(out)[0] > policy.target:
            self._scale(max(self.desired, math.ceil(load / policy.target)))
            return
        back = self._values[-policy.in_datapoints:]
        if len(back) == policy.in_datapoints and max(back)[0] < _IN_BELOW * policy.target:
            most = max(load for _, load in back)
            self._scale(min(self.desired, math.ceil(most / policy.target)))

    def _scale(self, wanted: int) -> None:
        policy = self.scenario.scaling
        assert policy
        wanted = max(policy.minimum, min(policy.maximum, wanted))
        now = self._now
        if self.updating or wanted == self.desired:
            return
        if wanted > self.desired:
            if now < self._no_out_before:
                return
            self._no_in_before = 0.0  # scaling out ends a cooldown of scaling in
            started = self._launch(wanted - self.desired)
            self.desired = wanted
            self.updating = True
            self.at(now + policy.instance_seconds, lambda: self._scaled_out(started))
        else:
            if now < max(self._no_in_before, self._no_out_before):
                return
            self._no_in_before = now + policy.scale_in_cooldown
            self._retire(self._youngest(self.desired - wanted))
            self.desired = wanted

    def _scaled_out(self, started: list[int]) -> None:
        """The cooldown counts from the success of the activity."""
        policy = self.scenario.scaling
        assert policy
        self._serve(started)
        self.updating = False
        self._no_out_before = self._now + policy.scale_out_cooldown

    def _youngest(self, number: int) -> list[int]:
        """Instances to take away, from the zones that have most."""
        world, chosen = self.world, []
        left = list(world.serving)
        for _ in range(min(number, len(left) - 1)):
            full = max(range(self.scenario.zones.count), key=lambda zone: sum(
                1 for k in left if world.zone[k] == zone))
            k = next(k for k in reversed(left) if world.zone[k] == full)
            left.remove(k)
            chosen.append(k)
        return chosen

    # --- failures ------------------------------------------------------------------------------

    def _strike(self, fault: InstanceFailure | ZoneOutage) -> None:
        world = self.world
        self._count_minute()
        if isinstance(fault, ZoneOutage):
            struck = [k for k in world.serving if world.zone[k] == fault.zone]
            self._lost_zone = fault.zone
        else:
            struck = list(world.serving[:fault.instances])
        world.hang(struck)
        self.at(self._now + fault.detection_seconds, lambda: self._notice(struck, fault))

    def _notice(self, struck: list[int], fault: InstanceFailure | ZoneOutage) -> None:
        self._count_minute()
        self.world.fail(struck)
        if fault.replacement_seconds is None:
            self.desired = max(len(self.world.serving), 1)
            return
        started = self._launch(len(struck))
        self.at(self._now + fault.replacement_seconds, lambda: self._serve(started))

    # --- deployments ---------------------------------------------------------------------------

    def _deploy(self) -> None:
        if self.updating:  # a scaling activity comes first; the endpoint takes one update
            self.at(self._now + 1.0, self._deploy)
            return
        plan = self.scenario.deployment
        assert plan
        self.updating = True
        old = list(self.world.serving)
        if plan.kind == "rolling":
            self._roll(old, plan)
            return
        new = self._launch(len(old))
        step = {"all_at_once": len(old)}.get(plan.kind, self._step(len(old), plan))
        self.at(self._now + plan.instance_seconds, lambda: self._shift(old, new, step, plan))

    def _step(self, fleet: int, plan: Deployment) -> int:
        return max(1, min(fleet, round(fleet * plan.step_share)))

    def _shift(self, old: list[int], new: list[int], step: int, plan: Deployment) -> None:
        """Move traffic from old instances to new ones; the old stay up until all has moved."""
        self._serve(new[:step])
        self._retire(old[:step])
        self._kept += old[:step]
        old, new = old[step:], new[step:]
        if not new:
            self.at(self._now + plan.bake_seconds, self._deployed)
            return
        following = len(new) if plan.kind == "canary" else step
        self.at(self._now + plan.wait_seconds, lambda: self._shift(old, new, following, plan))

    def _roll(self, old: list[int], plan: Deployment) -> None:
        """Replace one batch after another."""
        step = min(self._step(max(self.desired, 1), plan), len(old))
        new = self._launch(step)

        def replace() -> None:
            self._serve(new)
            self._retire(old[:step])
            if old[step:]:
                self.at(self._now + plan.wait_seconds, lambda: self._roll(old[step:], plan))
            else:
                self._deployed()

        self.at(self._now + plan.instance_seconds, replace)

    def _deployed(self) -> None:
        self._kept = []
        self.updating = False
