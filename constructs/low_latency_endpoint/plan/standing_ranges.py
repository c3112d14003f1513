"""Which minimum and maximum stand when: the usual range, and what a schedule makes of it.

A scheduled action sets minimum, maximum or both, and they stay until another action changes them.
At once capacity below the minimum is added, and capacity above the maximum is taken away:
https://docs.aws.amazon.com/autoscaling/application/userguide/scheduled-scaling-policy-overview.html
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

from ..facts.rules import MIN_ABOVE_MAX, POLICY_NAMED_TWICE
from ..options.scaling import POLICY_NAMES, ScalingSchedule
from .schedule_times import MINUTES_PER_WEEK, Group, minute_of_week, order_of

_MOST_ORDERED = 4  # actions of one moment whose orders are tried one by one


class CapacityRange(NamedTuple):
    """A minimum and a maximum that stand together."""

    minimum: int
    maximum: int

    def after(self, action: ScalingSchedule) -> CapacityRange:
        """What stands once an action has run."""
        return CapacityRange(
            self.minimum if action.min is None else action.min,
            self.maximum if action.max is None else action.max,
        )

    @property
    def text(self) -> str:
        """In words."""
        return f"{self.minimum:,} to {self.maximum:,}"


class StandingRange(NamedTuple):
    """A range and the scheduled action that brings it; the usual range has none."""

    action: ScalingSchedule | None
    range: CapacityRange

    @property
    def name(self) -> str:
        """The action's name; empty for the usual range."""
        return "" if self.action is None else self.action.name

    @property
    def times(self) -> str:
        """When the action runs, in words; empty for the usual range."""
        return "" if self.action is None else self.action.when


class StandingRanges(NamedTuple):
    """The ranges that a schedule lets stand, beside the usual one.

    CloudFormation sends minimum and maximum of the target when they change in the template. So the
    usual range stands from such a deployment, at whatever hour, until the next action.
    """

    usual: CapacityRange
    schedule: tuple[ScalingSchedule, ...] = ()

    @property
    def all(self) -> list[StandingRange]:
        """Each range that can stand, the usual one first."""
        return [
            StandingRange(None, self.usual),
            *self._walked(_walk(self.usual, self.schedule).brought),
        ]

    def brought_by(self, action: ScalingSchedule) -> list[CapacityRange]:
        """The ranges that an action brings while no deployment comes between the actions."""
        lasting = self._walked(_lasting(self.usual, self.schedule))
        return [standing.range for standing in lasting if standing.action == action]

    def brought_to(
        self, before: CapacityRange, groups: Iterable[Group], any_time: frozenset[int] = frozenset()
    ) -> set[CapacityRange]:
        """The ranges that can stand after groups of actions that run in this order, from one range on."""
        walk = _Walk(self.schedule, set())
        walk.ranges = {before}
        walk.run((), any_time)
        for group in groups:
            walk.run(group, any_time)
        return walk.ranges

    def of_week(self) -> dict[int, CapacityRange] | None:
        """The ranges of a week by the minute from which they stand, Monday's first is 0.

        None where weeks differ, or the order of actions is not known.
        """
        order = order_of(self.schedule)
        if order.differs_by_week or order.any_time or not order.lap:
            return None
        walk = _Walk(self.schedule, set())
        walk.ranges = _first_lap(self.usual, self.schedule).ranges
        ranges: dict[int, CapacityRange] = {}
        for minutes, group in zip(order.lap_minutes, order.lap, strict=True):
            if minutes - order.lap_minutes[0] >= MINUTES_PER_WEEK:
                break
            walk.run(group, frozenset())
            if len(walk.ranges) > 1:
                return None
            [ranges[minute_of_week(minutes)]] = walk.ranges
        return dict(sorted(ranges.items()))

    def later_values(self, option: str) -> list[int]:
        """The values of ``min`` or ``max`` that stand once all actions have run; else none.

        Those of recurring actions; without any, that of the one-time action that comes last.
        """
        changing = [action for action in self.schedule if getattr(action, option) is not None]
        order = order_of(self.schedule)
        ends = {index: number for number, group in enumerate(order.once) for index in group}
        again = set(order.any_time).union(*order.lap)
        recurring = [action for action in changing if self.schedule.index(action) in again]
        last = sorted(changing, key=lambda action: ends.get(self.schedule.index(action), -1))[-1:]
        return sorted({getattr(action, option) for action in recurring or last})

    def _walked(self, steps: Iterable[tuple[int, CapacityRange]]) -> list[StandingRange]:
        return [StandingRange(self.schedule[index], brought) for index, brought in steps]


def check_schedule(schedule: Sequence[ScalingSchedule], minimum: int, maximum: int) -> None:
    """Raise unless names differ, and each action leaves a range, whatever stood before it."""
    names = set(POLICY_NAMES)
    for index, action in enumerate(schedule):
        if action.name in names:
            raise POLICY_NAMED_TWICE.error(
                got=action.name,
                allowed=f"none of {', '.join(sorted(names))}",
                where=f"schedule[{index}]",
            )
        names.add(action.name)
    check_ranges(schedule, CapacityRange(minimum, maximum))


def check_ranges(schedule: Sequence[ScalingSchedule], usual: CapacityRange) -> None:
    """Raise where an action would leave a minimum above the maximum, in any order that can be."""
    for index, before in _walk(usual, tuple(schedule)).steps:
        action = schedule[index]
        after = before.after(action)
        if after.minimum > after.maximum:
            when = "otherwise" if before == usual else "before it"
            raise MIN_ABOVE_MAX.error(
                got=f"{action.text}, and {before.text} {when}",
                allowed="both numbers, or one that the other range holds",
                where=f"schedule[{index}]",
            )


_Step = tuple[int, CapacityRange]  # an action by its index, and a range


@lru_cache(maxsize=256)
def _walk(usual: CapacityRange, schedule: tuple[ScalingSchedule, ...]) -> _Walk:
    """The whole calendar, with deployments at any time."""
    walk = _Walk(schedule, {usual})
    order = order_of(schedule)
    for group in (*order.once, *order.lap, *order.lap):
        walk.run(group, order.any_time)
    walk.run((), order.any_time)
    return walk


@lru_cache(maxsize=256)
def _lasting(usual: CapacityRange, schedule: tuple[ScalingSchedule, ...]) -> tuple[_Step, ...]:
    """Each action with each range that stands after it, without a deployment between actions."""
    order = order_of(schedule)
    first = _first_lap(usual, schedule)
    later = _Walk(schedule, set())
    later.ranges = first.ranges
    for group in order.lap:
        later.run(group, order.any_time)
    later.run((), order.any_time)
    seen = {index for index, _ in later.brought}
    once = [step for step in first.brought if step[0] not in seen]
    return (*once, *later.brought)


def _first_lap(usual: CapacityRange, schedule: tuple[ScalingSchedule, ...]) -> _Walk:
    """From a first deployment through all actions."""
    order = order_of(schedule)
    walk = _Walk(schedule, set())
    walk.ranges = {usual}
    for group in (*order.once, *order.lap):
        walk.run(group, order.any_time)
    walk.run((), order.any_time)
    return walk


class _Walk:
    """Ranges along a calendar."""

    def __init__(self, schedule: Sequence[ScalingSchedule], deployed: set[CapacityRange]) -> None:
        self.schedule = schedule
        self.deployed = deployed  # ranges that a deployment may set at any time
        self.ranges = deployed  # that can stand now
        self.steps: dict[_Step, None] = {}  # actions, with the ranges that they change
        self.brought: dict[_Step, None] = {}  # actions, with the ranges that stand after them
        self._seen: dict[tuple[Group, frozenset[CapacityRange]], set[CapacityRange]] = {}

    def run(self, group: Group, any_time: frozenset[int]) -> None:
        """Let the actions of one moment run, in any order, and others of any time after them."""
        before = (group, frozenset(self.ranges))
        if before not in self._seen:
            ranges = self._after(group) if group else self.ranges
            self._seen[before] = self._closed(ranges | self.deployed, any_time)
        self.ranges = self._seen[before]

    def _after(self, group: Group) -> set[CapacityRange]:
        """The ranges that stand after the actions of one moment."""
        if len(group) > _MOST_ORDERED:
            return self._closed(self.ranges, group)
        after = set[CapacityRange]()
        for actions in permutations(group):
            for range_before in self.ranges:
                reached = range_before
                for index in actions:
                    self.steps[index, reached] = None
                    reached = reached.after(self.schedule[index])
                self.brought[actions[-1], reached] = None
                after.add(reached)
        return after

    def _closed(self, ranges: set[CapacityRange], actions: Iterable[int]) -> set[CapacityRange]:
        """The ranges, and those that actions bring of them, in any order and as often as can be."""
        reached = set(ranges)
        waiting = [*ranges]
        while waiting:
            before = waiting.pop()
            for index in actions:
                after = before.after(self.schedule[index])
                self.steps[index, before] = None
                self.brought[index, after] = None
                if after not in reached:
                    reached.add(after)
                    waiting.append(after)
        return reached
