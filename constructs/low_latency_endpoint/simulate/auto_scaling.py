"""Application Auto Scaling with target tracking (rules: :mod:`..facts.scaling_rules`)."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import NamedTuple

from ..facts.scaling_rules import Cooldowns, calls_policy, wanted_capacity, within
from ..plan.scaling_pace import METRIC_PERIOD_SECONDS
from .fleet_changes import CapacityLimits, TargetTracking
from .fleet_control import FleetControl
from .world import Instance


class MetricValue(NamedTuple):
    """The scaling metric of one period, and the load that it stands for."""

    metric: float  # per instance
    load: float  # of the whole fleet, in the metric's unit


class AutoScaling:
    """Changes the number of instances as metric and limits ask.

    At the end of each period the metric is taken. After CloudWatch's delay two alarms judge it, and
    an alarm that calls the policy changes the number.
    """

    def __init__(self, policy: TargetTracking, control: FleetControl) -> None:
        self.policy = policy
        self.control = control
        self._limits = (policy.minimum, policy.maximum)
        self._values: list[MetricValue] = []
        self._high = Alarm()
        self._low = Alarm()
        self._cooldowns = Cooldowns()

    def begin(self) -> None:
        """Put the first period and the changes of the limits on the agenda."""
        self.control.after_update = self._move_within_limits
        self.control.at(self.policy.period, self._end_of_period)
        for limits in self.policy.limits:
            self.control.at(limits.at, partial(self._set_limits, limits))

    # --- metric and alarms ---------------------------------------------------------------------

    def _end_of_period(self) -> None:
        value = self._value_of_period()
        self.control.after(
            self.policy.metric_delay, partial(self._judge, value, ended=self.control.now)
        )
        self.control.after(self.policy.period, self._end_of_period)

    def _value_of_period(self) -> MetricValue:
        policy = self.policy
        world = self.control.world
        per_instance, requests = self.control.invocations.end_period()
        if policy.metric == "invocations":
            return MetricValue(per_instance, float(requests))
        most = math.ceil(policy.target * policy.most)  # more asks for no more instances
        serving = world.serving
        outstanding = [world.outstanding(instance, most) for instance in serving]
        busiest = float(max(outstanding, default=0))
        return MetricValue(busiest, busiest * len(serving))

    def _judge(self, value: MetricValue, *, ended: float) -> None:
        """Let the alarms judge the value of the period that ended then."""
        self._values.append(value)
        self._judge_high(value.load)
        # Once a minute, where the period divides it.
        if ended % METRIC_PERIOD_SECONDS < self.policy.period:
            self._judge_low()

    def _judge_high(self, load: float) -> None:
        """Scale out if the alarm for values above the target calls the policy."""
        policy = self.policy
        now = self.control.now
        last = self._values[-policy.out_datapoints :]
        above = [value for value in last if value.metric > policy.target]
        if self._high.calls(now, len(above) == policy.out_datapoints, policy.period):
            wanted = wanted_capacity(load, policy.target)
            self._scale(max(self.control.desired, wanted))

    def _judge_low(self) -> None:
        """Scale in if the alarm for values far below the target calls the policy."""
        policy = self.policy
        now = self.control.now
        last = self._values[-policy.in_datapoints :]
        below = [value for value in last if value.metric < policy.in_below]
        if self._low.calls(now, len(below) == policy.in_datapoints, METRIC_PERIOD_SECONDS):
            wanted = wanted_capacity(max(value.load for value in last), policy.target)
            self._scale(min(self.control.desired, wanted))

    # --- changes -------------------------------------------------------------------------------

    def _scale(self, wanted: int) -> None:
        """Change the number for the policy, unless an update or a cooldown holds it back."""
        change = within(wanted, *self._limits) - self.control.desired
        if not change or self.control.updating:
            return
        if self._cooldowns.hold(self.control.now, change):
            return
        self._cooldowns.begin(change)
        self._move(change, of_policy=True)

    def _set_limits(self, limits: CapacityLimits) -> None:
        self._limits = (limits.minimum, limits.maximum)
        self._move_within_limits()

    def _move_within_limits(self) -> None:
        """Change the number for the limits; no cooldown holds it back, and none begins."""
        change = within(self.control.desired, *self._limits) - self.control.desired
        if change and not self.control.updating:
            self._move(change, of_policy=False)

    def _move(self, change: int, *, of_policy: bool) -> None:
        """Change the number, as one update of the endpoint."""
        control = self.control
        policy = self.policy
        control.desired += change
        control.updating = True
        if change > 0:
            seconds = policy.instance_seconds
            cooldown = policy.scale_out_cooldown
            control.launch(change, seconds)
        else:
            seconds = policy.scale_in_seconds
            cooldown = policy.scale_in_cooldown
            control.retire(self._to_retire(-change), kept=True)

        def end() -> None:
            if of_policy:
                self._cooldowns.end(control.now, change, cooldown)
            control.end_update()

        control.after(seconds, end)

    def _to_retire(self, number: int) -> list[Instance]:
        """Instances to take away: those that start, then from the zones that have most."""
        world = self.control.world
        chosen = world.in_phase("starting")[::-1][:number]
        left = world.serving[::-1]  # the last to join first
        while len(chosen) < number and len(left) > 1:
            in_zone = Counter(instance.zone for instance in left)
            fullest = max(sorted(in_zone), key=in_zone.__getitem__)
            instance = next(instance for instance in left if instance.zone == fullest)
            left.remove(instance)
            chosen.append(instance)
        return chosen


class Alarm:
    """An alarm of the scaling policy."""

    def __init__(self) -> None:
        self.since: float | None = None  # when it went into ALARM; None while it is OK

    def calls(self, now: float, breached: bool, period: float) -> bool:
        """Judge the alarm, once in each period; return whether it calls its policy now."""
        if not breached:
            self.since = None
            return False
        if self.since is None:
            self.since = now
        return calls_policy(now - self.since, period)
