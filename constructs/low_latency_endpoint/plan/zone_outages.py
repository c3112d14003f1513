"""Warnings of zone outages that leave too few instances, at the peak of a range and at its minimum.

One instance in a range is a warning of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from heapq import merge
from itertools import islice
from typing import NamedTuple, cast

from ..errors import AWS_DOCS
from ..facts.limits import GUIDE
from ..options.throughput import (
    FEWEST_INSTANCES,
    HELD_SHARE,
    HeldTps,
    MeasuredThroughput,
    counted_instances,
    instances_with_a_zone_lost,
    stated,
    tps_held,
)
from ..report.numbers import percent_above, plain_number, readable
from .decisions import Decision, PlanWarning
from .fleet_under_load import Fleet, FleetUnderLoad, FleetWithoutZone, also
from .plan import Plan, needed_at_peak
from .scaling_pace import fewest_for_rises

_MOST_LISTED = 4  # numbers of instances that are named one by one


def outage_warnings(plan: Plan) -> Iterator[PlanWarning]:
    """Those of the peak and of the minimum: the worst range with its numbers, the others by name."""
    for case in (_AT_PEAK, _AT_MINIMUM):
        unsafe = _unsafe_outages(plan, case.outage_of)
        if unsafe:
            worst = _worst_of(unsafe)
            text = f"{worst.prefix}if a zone fails {case.when}, {_left(plan, worst, unsafe[worst])}"
            advice = "; or ".join([*_remedies(plan, worst, case), "serve from more zones"])
            yield PlanWarning(
                case.warning_id,
                f"{text}; only {HELD_SHARE:.0%} is safe. {advice[0].upper()}{advice[1:]}"
                f"{also([*unsafe], worst)}",
            )


def assumed_outage(plan: Plan) -> str:
    """That no zone fails while the worst fleet between minimum and peak serves; empty if it may.

    It is no warning: in two zones an odd number of instances leaves too few with nearly each factor.
    """
    unsafe = _unsafe_outages(plan, lambda standing: standing.worst_outage_below_peak)
    if not unsafe:
        return ""
    worst = _worst_of(unsafe)
    outage = unsafe[worst]
    warned = _unsafe_outages(plan, _AT_MINIMUM.outage_of)
    if any(outage.load <= told.load for told in warned.values()):
        return ""
    during = f" in {worst.name}" if worst.name else ""
    load = percent_above(outage.load, HELD_SHARE).replace("%", " %")
    overloaded = _overloaded(worst)
    if len(overloaded) < 2:
        return (
            f"no zone fails while {counted_instances(outage.instances)} serve{during}: "
            f"{outage.left:,} would remain, at up to {load} of the limit"
        )
    return (
        f"no zone fails while {_listed(overloaded)} instances serve{during}: of {outage.instances:,}, "
        f"{outage.left:,} would remain, at up to {load} of the limit"
    )


def _overloaded(standing: FleetUnderLoad) -> list[int]:
    """Fleets below that of the peak that a zone outage overloads: few, or of many the ends too."""
    rounds = [fleets for fleets in standing.overloaded_below_peak if fleets]
    fewest = islice(merge(*rounds), _MOST_LISTED + 1)
    return sorted({*fewest, *(fleets[-1] for fleets in rounds)})


def _listed(numbers: Sequence[int]) -> str:
    """A few numbers, or the first and the last of many."""
    if len(numbers) > _MOST_LISTED:
        return f"{numbers[0]:,} to {numbers[-1]:,}"
    *most, last = (f"{number:,}" for number in numbers)
    return f"{', '.join(most)} or {last}"


def assumed_jump(plan: Plan) -> str:
    """What a stated jump to a peak makes of the fleet until scaling follows; empty without one."""
    jumps = {standing: jump for standing in plan.under_load if (jump := standing.after_jump)}
    if not jumps:
        return ""
    worst = max(jumps, key=lambda standing: jumps[standing].load)
    jump = jumps[worst]
    alone = f"{readable(100 * float(jump.tps / (jump.instances * worst.limit_tps)), 2)} %"
    with_outage = percent_above(jump.load, HELD_SHARE).replace("%", " %")
    when = f"the jump of {worst.name}" if worst.name else "a jump"
    return (
        f"{alone} of the limit is enough for {counted_instances(jump.instances)} after {when} to "
        f"{readable(float(jump.tps))} TPS until scaling follows, and no zone fails then ({with_outage})"
    )


OutageOf = Callable[[FleetUnderLoad], FleetWithoutZone | None]


def _unsafe_outages(plan: Plan, outage_of: OutageOf) -> dict[FleetUnderLoad, FleetWithoutZone]:
    """The ranges whose zone outage leaves too few."""
    outages = {standing: outage_of(standing) for standing in plan.under_load}
    return {
        standing: outage
        for standing, outage in outages.items()
        if outage is not None and not outage.is_safe
    }


def _worst_of(outages: Mapping[FleetUnderLoad, FleetWithoutZone]) -> FleetUnderLoad:
    return max(outages, key=lambda standing: outages[standing].load)


class _Case(NamedTuple):
    """A load at which a zone fails."""

    warning_id: str
    when: str
    outage_of: OutageOf
    enough_of: Callable[[FleetUnderLoad], int]  # the smallest minimum that ends the warning


def _left(plan: Plan, standing: FleetUnderLoad, outage: FleetWithoutZone) -> str:
    """What a zone outage leaves, and how much that works."""
    load = f"{readable(float(outage.tps))} TPS"
    up_to = ""
    if outage.instances < standing.serving_at_peak:
        up_to = "up to "
        load = f"up to {load}, for which scaling leaves {outage.instances:,}"
    replaced = "they are replaced" if plan.scaling is None else "scaling replaces the others"
    return (
        f"{outage.left:,} of {counted_instances(outage.instances)} remain "
        f"({readable(float(outage.held))} of {load}) until {replaced}. They work at "
        f"{up_to}{percent_above(outage.load, HELD_SHARE)} of their limit"
    )


def _remedies(plan: Plan, standing: FleetUnderLoad, case: _Case) -> Iterator[str]:
    """What ends a warning about a range, each by itself."""
    fleet = standing.fleet
    minimum = case.enough_of(standing)
    if plan.request.serving.burstable_types or not plan.request.scaling.enabled:
        yield f"raise the number of instances to {minimum:,}"
        return
    if fleet.maximum < fleet.at_peak and _is_safe(case.outage_of(_with_room(standing))):
        yield f"raise the maximum{_of_action(plan, standing)} to {fleet.at_peak:,} or more"
        return
    if standing.name and not plan.request.scaling.schedule:
        # The minimum of another peak is that of the whole day, which may need more.
        minimum = max(minimum, plan.fleet.minimum)
    whose = _of_action(plan, standing)
    raised = " and its maximum" if whose else " and the maximum"
    yield (
        f"raise the minimum{whose} to {minimum:,}"
        f"{_higher_maximum(plan, standing, minimum + 1, raised)}"
    )
    lower = _safe_load(plan, standing)
    if lower is not None:
        instances = max(standing.fleet.at_peak, _needed_with(standing, lower.held_tps))
        yield (
            f"lower {lower.words}, for "
            f"{counted_instances(instances)} at the peak{_maxima_to_raise(plan, lower.held_tps)}"
        )


def _of_action(plan: Plan, standing: FleetUnderLoad) -> str:
    """Whose minimum and maximum a range has, if a scheduled action of your own brings it."""
    return f" of {standing.name}" if plan.request.scaling.schedule and standing.name else ""


def _higher_maximum(plan: Plan, standing: FleetUnderLoad, instances: int, words: str) -> str:
    """The maximum that so many instances need; empty where there is room, or it follows by itself."""
    # An action that sets the minimum alone has the maxima of several actions before it.
    same = [load for load in plan.under_load if load.name == standing.name]
    if _follows(plan, standing) or min(load.fleet.maximum for load in same) >= instances:
        return ""
    return f"{words} to {instances:,} or more"


def _follows(plan: Plan, standing: FleetUnderLoad) -> bool:
    """Whether the maximum of a range follows from the load, because nobody states it."""
    return plan.request.instances.max is None and not _of_action(plan, standing)


def _maxima_to_raise(plan: Plan, held_tps: HeldTps) -> str:
    """The maxima that are stated, and too low for the peak with a lower load of an instance."""
    needed: dict[str, int] = {}
    for standing in plan.under_load:
        instances = _needed_with(standing, held_tps)
        if standing.fleet.maximum < instances and not _follows(plan, standing):
            whose = _of_action(plan, standing)
            needed[whose] = max(instances, needed.get(whose, 0))
    if not needed:
        return ""
    maxima = [f"the maximum{whose} to {instances:,}" for whose, instances in needed.items()]
    return f", and raise {', '.join(maxima)} or more"


def _needed_with(standing: FleetUnderLoad, held_tps: HeldTps) -> int:
    """Instances that the peak of a range needs with another load of an instance."""
    return cast(int, needed_at_peak(standing.measured, held_tps))


def left_by_zone_outage(plan: Plan) -> Decision[int]:
    """How many of the instances at peak an outage of the fullest zone leaves."""
    usual = plan.usual
    serving = usual.serving_at_peak
    left = usual.left_by_zone_outage(serving)
    outage = usual.outage_at_peak
    held = ""
    if outage is not None:
        tps = readable(float(outage.held), 4)
        held = (
            f"at the measured limit they hold {tps} TPS; the peak has {readable(float(outage.tps))}"
        )
    return Decision(
        name="instances_left_by_zone_outage",
        value=left,
        unit="instances",
        rule="the instances at peak, less those of the fullest zone when they are spread evenly",
        inputs={"instances at peak": serving, "client zones": usual.zones, "lost": serving - left},
        source=AWS_DOCS + GUIDE + "deployment-best-practices.html",
        note=held,
    )


class _LowerLoad(NamedTuple):
    """A lower load at which scaling would keep an instance, and the setting that brings it."""

    held_tps: HeldTps
    words: str


def _safe_load(plan: Plan, standing: FleetUnderLoad) -> _LowerLoad | None:
    """The highest load of an instance with which a range survives a zone outage; ``None`` if none.

    At its peak and at its minimum.
    """
    for lower in _lower_loads(plan):
        changed = _with_load(plan, standing, lower.held_tps)
        if _is_safe(changed.outage_at_peak) and _is_safe(changed.outage_at_minimum):
            return lower
    return None


def _lower_loads(plan: Plan) -> Iterator[_LowerLoad]:
    """Lower loads by hundredths of the limit: of the safety factor, or of your own scaling target.

    None for a target in requests in flight.
    """
    measured = plan.request.throughput
    held = plan.held_tps
    scaling = plan.request.scaling
    if measured is None or held is None or scaling.concurrency_target is not None:
        return
    if scaling.invocations_target is None:
        for hundredths in range(math.ceil(100 * stated(measured.safety_factor)) - 1, 0, -1):
            factor = hundredths / 100
            lower = tps_held(replace(measured, safety_factor=factor), plan.room, scaling)
            yield _LowerLoad(lower, f"the safety factor to {plain_number(factor)}")
    elif held.by_target:
        for hundredths in range(min(math.ceil(100 * held.used), 100) - 1, 0, -1):
            target = math.floor(held.limit * 60 * hundredths / 100)
            if target:
                lower = held._replace(kept=Fraction(target, 60))
                yield _LowerLoad(lower, f"scaling.invocations_target to {target:,}")


def _with_load(plan: Plan, standing: FleetUnderLoad, held_tps: HeldTps) -> FleetUnderLoad:
    """A range with another load of an instance, and a maximum with room for what the peak needs."""
    fleet = standing.fleet
    at_peak = max(fleet.at_peak, _needed_with(standing, held_tps))
    minimum = min(fleet.minimum, _derived_minimum(plan, standing, held_tps))
    initial = max(at_peak, minimum)
    changed = Fleet(at_peak, minimum, initial, max(fleet.maximum, initial))
    return standing._replace(fleet=changed, held_tps=held_tps)


def _derived_minimum(plan: Plan, standing: FleetUnderLoad, held_tps: HeldTps) -> int:
    """The minimum of a range with another load of an instance, where nobody states it."""
    stated_minimum = plan.request.instances.min
    if plan.request.scaling.schedule or (stated_minimum is not None and not standing.name):
        return standing.fleet.minimum
    measured = cast(MeasuredThroughput, standing.measured)
    lowest = stated_minimum or max(standing.zones, FEWEST_INSTANCES)
    rises = fewest_for_rises(measured, plan.request.rise_seconds, held_tps)
    usual = plan.request.throughput
    if usual is not None and measured.peak_tps > usual.peak_tps:  # there before its jump
        rises = max(rises, _needed_with(standing, held_tps))
    return max(lowest, rises)


def _is_safe(outage: FleetWithoutZone | None) -> bool:
    return outage is None or outage.is_safe


def _enough_at_peak(standing: FleetUnderLoad) -> int:
    """The fewest instances of which a zone outage leaves enough for the peak."""
    measured = cast(MeasuredThroughput, standing.measured)
    return instances_with_a_zone_lost(measured.peak_tps, standing.limit_tps, standing.zones)


def _enough_at_minimum(standing: FleetUnderLoad) -> int:
    """The smallest minimum of which a zone outage leaves enough; else what is enough at the peak.

    The maximum has room for the peak here, because a higher minimum may need a higher one.
    """
    with_room = _with_room(standing)
    minimum = standing.fleet.minimum
    smallest = range(minimum, minimum + standing.zones)
    enough = [with_room.enough_below_peak(instances, HELD_SHARE) for instances in smallest]
    at_peak = max(with_room.serving_at_peak, _enough_at_peak(standing))
    return min((instances for instances in enough if instances is not None), default=at_peak)


def _with_room(standing: FleetUnderLoad) -> FleetUnderLoad:
    """A range whose maximum lets it have what the peak needs."""
    fleet = standing.fleet
    raised = replace(fleet, maximum=max(fleet.maximum, fleet.at_peak))
    return standing._replace(fleet=raised)


_AT_PEAK = _Case(
    "zone-outage", "at the peak", lambda standing: standing.outage_at_peak, _enough_at_peak
)
_AT_MINIMUM = _Case(
    "zone-outage-at-minimum",
    "at the minimum",
    lambda standing: standing.outage_at_minimum,
    _enough_at_minimum,
)
