"""How many instances a fleet has: each number with the reason of the branch that decides it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

from ..errors import AWS_DOCS
from ..facts.limits import GUIDE
from ..facts.rules import BURSTABLE, INITIAL_OUTSIDE_RANGE, MIN_ABOVE_MAX
from ..options.throughput import (
    FEWEST_INSTANCES,
    HELD_SHARE,
    HeldTps,
    MeasuredThroughput,
    instances_for,
)
from ..report.numbers import plain_number
from .decisions import Decision
from .endpoint_request import EndpointRequest
from .fleet_under_load import Fleet
from .instance_load import InFlight, cache_limit, cache_note, load_of_instance
from .scaling_pace import RisesHeld, minimum_for_rises

HEADROOM = Fraction(3, 2)

_LOAD_TEST = AWS_DOCS + GUIDE + "endpoint-scaling-loadtest.html"
_PRACTICES = AWS_DOCS + GUIDE + "deployment-best-practices.html"
_PRIVATELINK = AWS_DOCS + GUIDE + "realtime-endpoints-privatelink.html"
_AS_INITIAL = "the initial instances"
_UNSCALED = "scaling is off: nothing changes the number of instances"


class SizedFleet(NamedTuple):
    """The numbers of instances of a fleet, each with its reason."""

    at_peak: Decision[int]
    minimum: Decision[int]
    initial: Decision[int]
    maximum: Decision[int]

    @property
    def numbers(self) -> Fleet:
        """The numbers alone."""
        return Fleet(*(decision.value for decision in self))


def sized_fleet(
    request: EndpointRequest, held: HeldTps | None, in_flight: InFlight | None, *, is_rare: bool
) -> SizedFleet:
    """Decide minimum, initial and maximum instances, and check them against each other.

    The range is for the usual peak. Initial instances, and those of a fleet that does not scale,
    are for the highest one. Whether calls are rare is decided by the highest one of the whole day,
    not by the peak that a range is for. ``in_flight`` is what a language model's instance holds.
    """
    counts = request.instances
    at_peak = _at_peak(request, held, in_flight)
    at_other_peaks = _at_other_peaks(request, held)
    at_highest_peak = max([at_peak.value, *at_other_peaks.values()])
    why_fixed = _why_fixed(request, is_rare=is_rare)
    one_size = None
    if request.serving.burstable_types:
        one_size = counts.max or counts.initial or counts.min or at_highest_peak
    minimum = _minimum(request, held, one_size).overridden_by(counts.min)
    needed = max(
        at_peak.value if request.scaling.enabled else at_highest_peak,
        minimum.value,
        counts.initial or 0,
    )
    most, worked_out = _with_headroom(needed, len(request.client_zones))
    if why_fixed:
        most = one_size or needed
        worked_out = ""
    most = counts.max or most
    _check_range(request, minimum.value, most)
    first = counts.initial or min(max(at_highest_peak, minimum.value), most)
    if not minimum.value <= first <= most:
        raise INITIAL_OUTSIDE_RANGE.error(
            got=str(first), allowed=f"{minimum.value} to {most}", where="instances.initial"
        )
    if not request.scaling.enabled:  # what is not stated stays at the number that it starts with
        minimum = replace(
            minimum,
            value=counts.min or first,
            rule=_AS_INITIAL,
            inputs={"initial instances": first},
            note=_UNSCALED,
        )
        most = counts.max or first
    fleet = Fleet(at_peak.value, minimum.value, first, most)
    return SizedFleet(
        at_peak,
        minimum,
        _initial(request, fleet, at_other_peaks),
        _maximum(request, fleet, why_fixed, worked_out),
    )


def _at_peak(
    request: EndpointRequest, held: HeldTps | None, in_flight: InFlight | None
) -> Decision[int]:
    """Decide the instances that hold the usual peak, scaled or not."""
    zones = len(request.client_zones)
    measured = request.throughput
    counts = request.instances
    fewest = _fewest(request, counts.min, counts.initial, counts.max)
    if measured is None or held is None:
        return Decision(
            name="instances_at_peak",
            value=fewest,
            unit="instances",
            rule="without a measured throughput: one per client zone and at least two",
            inputs={"client zones": zones},
            source=_PRIVATELINK,
            note="assumed, not derived: load-test one instance and state the throughput",
        )
    saturated = max(instances_for(measured.peak_tps, held.limit), zones, FEWEST_INSTANCES)
    counted_with = "(TPS per instance x safety factor)"
    if held.by_target:
        counted_with = "the TPS of an instance at your scaling target, or at most its limit"
    return Decision(
        name="instances_at_peak",
        value=max(fewest, instances_for(measured.peak_tps, held.planned)),
        unit="instances",
        rule=f"peak TPS / {counted_with}, rounded up; at least one per "
        "client zone and at least two, unless fewer are stated",
        inputs={
            "peak TPS": measured.peak_tps,
            **load_of_instance(request.scaling, measured, held),
            "client zones": zones,
            **cache_limit(measured, held.limit),
        },
        source=_LOAD_TEST,
        note=f"at saturation, with nothing in reserve, {saturated:,} would do"
        + cache_note(in_flight, held),
    )


def _fewest(request: EndpointRequest, *counts: int | None) -> int:
    """One instance per client zone and at least two; who states fewer gets them, and a warning."""
    chosen = [count for count in counts if count is not None]
    return min([max(len(request.client_zones), FEWEST_INSTANCES), *chosen])


def _at_other_peaks(request: EndpointRequest, held: HeldTps | None) -> dict[str, int]:
    """Return the instances that hold each of the other peaks of the day."""
    if request.throughput is None or held is None:
        return {}
    fewest = _fewest(request, request.instances.min, request.instances.max)
    return {
        name: max(fewest, instances_for(peak.tps, held.planned))
        for name, peak in request.throughput.peaks.items()
    }


def _minimum(request: EndpointRequest, held: HeldTps | None, one_size: int | None) -> Decision[int]:
    """Decide the minimum: one instance per client zone, and what bridges the stated rises."""
    measured = request.throughput
    counts = request.instances
    value = _fewest(request, counts.min, counts.initial, counts.max)
    rule = "one per client zone and at least two, so that no zone is without at quiet hours"
    inputs: dict[str, Any] = {"client zones": len(request.client_zones)}
    note = (
        "new instances take minutes: raise it, or schedule it, where traffic jumps faster than that"
    )
    if measured is not None and held is not None and measured.states_rises:
        rises = minimum_for_rises(measured, request.rise_seconds, held)
        value = max(value, min(rises.fewest, counts.max or rises.fewest))
        rule += _BRIDGES.format("your scaling target" if held.by_target else "the safety factor")
        inputs |= _rise_inputs(request, measured, held, rises)
        note = ""
        if measured.from_tps is not None and request.peaks_raise_minimum:
            note = "at a known hour throughput.peaks raises it for that time alone"
    return Decision(
        name="min_instances",
        value=one_size or value,
        unit="instances",
        rule=rule,
        inputs=inputs,
        source=_PRACTICES,
        note="" if one_size else note,
    )


_BRIDGES = (
    "; or, if more, what bridges the scaling delay. For a steady rise: the growth during it (1.5 "
    "minutes, an instance start with the scale-out cooldown, rounded up to minutes, and another "
    "start) / what {} leaves of an instance, at most the number for a jump. For a jump: peak TPS / "
    "(TPS per instance x the share that counts as held), unless scaling keeps as many before it"
)


def _rise_inputs(
    request: EndpointRequest, measured: MeasuredThroughput, held: HeldTps, rises: RisesHeld
) -> dict[str, Any]:
    """Return the stated rises of traffic, and what they ask for."""
    inputs = {
        "peak TPS": measured.peak_tps,
        **load_of_instance(request.scaling, measured, held),
        "share that counts as held": HELD_SHARE,
        **cache_limit(measured, held.limit),
    }
    if measured.from_tps is not None:
        inputs["jumps from TPS"] = measured.from_tps
    else:
        inputs["rise in TPS per minute"] = measured.rise_tps_per_minute
        inputs["an instance's start in seconds"] = request.start_seconds
        inputs["scale-out cooldown in seconds"] = request.scale_out_seconds
        inputs["scaling's lag in minutes"] = request.rise_seconds / 60
    return inputs | {"worked out": rises.worked_out, "for the rise": rises.fewest}


def _why_fixed(request: EndpointRequest, *, is_rare: bool) -> str:
    """Why the maximum gets no headroom; empty where it does."""
    if request.serving.burstable_types:
        return "burstable types do not scale"
    if not request.scaling.enabled:
        return _UNSCALED
    if is_rare and not request.scaling.is_asked_for:
        return "calls are rare: the fleet keeps its number"
    return ""


def _initial(
    request: EndpointRequest, fleet: Fleet, at_other_peaks: Mapping[str, int]
) -> Decision[int]:
    """Say why the fleet begins with so many instances."""
    return Decision(
        name="initial_instances",
        value=fleet.initial,
        unit="instances",
        rule="the instances at peak, so that the first traffic meets a fleet that holds it"
        + ("; scaling takes away what is not needed" if request.scaling.enabled else ""),
        inputs={
            "instances at peak": fleet.at_peak,
            **{f"instances at peak, {name}": count for name, count in at_other_peaks.items()},
            "minimum": fleet.minimum,
            "maximum": fleet.maximum,
        },
        overridden=request.instances.initial is not None,
    )


def _with_headroom(needed: int, zones: int) -> tuple[int, str]:
    """Half as much again, and enough to hold the peak while a lost zone still counts; and the sum."""
    half_more = needed * HEADROOM
    with_lost = Fraction(needed * zones, zones - 1)
    worked_out = (
        f"{needed} x {plain_number(float(HEADROOM))} = {plain_number(float(half_more))}, "
        f"{needed} x {zones} / ({zones} - 1) = {plain_number(float(with_lost), 4)}"
    )
    return max(math.ceil(half_more), math.ceil(with_lost)), worked_out


def _maximum(
    request: EndpointRequest, fleet: Fleet, why_fixed: str, worked_out: str
) -> Decision[int]:
    """Say why the maximum is the number of instances at first, or has headroom."""
    rule = _AS_INITIAL
    inputs: dict[str, Any] = {"initial instances": fleet.initial}
    if not why_fixed:
        rule = (
            "1.5 times the most of the instances at peak, the minimum and the initial ones; or, if "
            "more, all of them beside those of a zone that has failed and still counts: that number x "
            "zones / (zones - 1)"
        )
        inputs = {
            "instances at peak": fleet.at_peak,
            "minimum": fleet.minimum,
            "initial": fleet.initial,
            "client zones": len(request.client_zones),
            "worked out": worked_out,
        }
    return Decision(
        name="max_instances",
        value=fleet.maximum,
        unit="instances",
        rule=rule,
        inputs=inputs,
        overridden=request.instances.max is not None,
        note=why_fixed,
    )


def _check_range(request: EndpointRequest, minimum: int, maximum: int) -> None:
    """Raise where the maximum is below the minimum, or a burstable type would have to scale."""
    burstable = request.serving.burstable_types
    if burstable and maximum > minimum:
        raise BURSTABLE.error(
            got=f"{', '.join(burstable)} from {minimum} to {maximum} instances",
            allowed="the same minimum and maximum",
            where="instance_type",
        )
    if minimum > maximum:
        raise MIN_ABOVE_MAX.error(
            got=f"{minimum} above {maximum}", allowed=f"at most {maximum}", where="instances.min"
        )
