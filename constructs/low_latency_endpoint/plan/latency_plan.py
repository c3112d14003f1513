"""From a request to every number of the endpoint; :mod:`.explanations` says why each is so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..facts.rules import SCHEDULE_BESIDE_PEAKS
from ..options.scaling import CHANGES_NEED_SCALING, ScalingSchedule, most_scheduled
from ..options.throughput import HeldTps
from .alarm_thresholds import alarm_thresholds, kept_for_overhead
from .daily_peaks import DailyPeak, daily_schedule, lead_minutes
from .decisions import Explanation
from .endpoint_decisions import (
    addresses_of_subnets,
    connections,
    inference_ami,
    size_of_subnets,
    warm_up,
)
from .endpoint_request import EndpointRequest
from .fleet_size import sized_fleet
from .fleet_under_load import Fleet
from .instance_load import InFlight
from .plan import Plan, held_by_instance
from .routing import recommend_routing
from .scaling_pace import fewest_for_rises
from .scaling_policy import ScalingPolicy, decided_scaling
from .standing_ranges import CapacityRange, check_schedule
from .token_plan import token_plan


def make_plan(request: EndpointRequest) -> Plan:
    """Derive every number of a low-latency endpoint.

    Parameters
    ----------
    request : EndpointRequest
        Where callers are, what they must see, what one instance holds, and what you chose.

    Raises
    ------
    ConfigurationError
        ``LLE113`` for a fleet that no subnet holds; ``LLE602`` for a scaling target out of range;
        ``LLE621`` for a minimum above the maximum; ``LLE625`` for an initial count outside the two;
        ``LLE624`` for scaling a burstable type; ``LLE626`` and ``LLE634`` for set times and steps;
        ``LLE646`` for a schedule beside other peaks.

    Examples
    --------
    >>> from datetime import timedelta
    >>> from low_latency_endpoint import LatencyTarget, MeasuredThroughput
    >>> from low_latency_endpoint.plan.serving import Serving
    >>> plan = make_plan(EndpointRequest(
    ...     client_zones=["use1-az1", "use1-az2"],
    ...     serving=Serving(instance_type="ml.m5.12xlarge"),
    ...     latency=LatencyTarget(p99=timedelta(milliseconds=200)),
    ...     throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.45)))
    >>> plan.fleet.at_peak, plan.scaling.target
    (12, 5400.0)
    >>> plan.explanation["scaling_target"].rule
    'TPS per instance x safety factor x 60'
    """
    tokens = token_plan(request, kept_for_overhead(request))
    in_flight = tokens.in_flight if tokens else None
    held = held_by_instance(request, tokens.room if tokens else None)
    instances = sized_fleet(request, held, in_flight, is_rare=request.is_rare)
    fleet = instances.numbers
    tightest = request.latency.tightest if request.latency else None
    advice = recommend_routing(
        generative=request.is_generative,
        instances=fleet.maximum,
        target_ms=tightest[1] if tightest else None,
    )
    decided = decided_scaling(request, fleet, held, in_flight)
    scaling = decided.policy
    peaks = tuple(_daily_peaks(request, held, in_flight))
    schedule = _schedule(request, fleet, scaling, peaks)
    _check_changes(request, fleet, scaling, schedule)
    addresses = addresses_of_subnets(most_scheduled(schedule, fleet.maximum))
    return Plan(
        request=request,
        explained_by=_explained,
        instances=instances,
        addresses=addresses,
        subnet_size=size_of_subnets(addresses.value),
        routing=request.routing.name if request.routing else advice.value,
        routing_advice=advice,
        inference_ami=inference_ami(request),
        scaling=scaling,
        scaling_decisions=decided.decisions,
        schedule=schedule,
        peaks=peaks,
        alarms=tuple(alarm_thresholds(request)),
        warm_up=warm_up(request, fleet.initial),
        connections=connections(request, tokens),
        tokens=tokens,
    )


def _explained(plan: Plan) -> Explanation:
    from .explanations import explanation_of  # loaded when somebody asks

    return explanation_of(plan)


def _daily_peaks(
    request: EndpointRequest, held: HeldTps | None, in_flight: InFlight | None
) -> Iterator[DailyPeak]:
    """The other peaks of the day, with the ranges that the same rules give for each.

    A stated minimum is the least for each. A higher peak than the usual one is a jump at a known time:
    the instances that it needs are there before it.
    """
    usual = request.throughput
    if usual is None or held is None:
        return
    instances = replace(request.instances, initial=None)
    for name, peak in usual.peaks.items():
        measured = usual.at_peak(peak)
        at_peak = replace(request, throughput=measured, instances=instances)
        fleet = sized_fleet(at_peak, held, in_flight, is_rare=request.is_rare).numbers
        ahead = fewest_for_rises(measured, request.rise_seconds, held)
        if peak.tps > usual.peak_tps:
            ahead = max(ahead, fleet.at_peak)
        minimum = max(fleet.minimum, min(ahead, fleet.maximum))
        capacity = CapacityRange(minimum, fleet.maximum)
        yield DailyPeak(name, peak, measured, fleet.at_peak, capacity)


def _schedule(
    request: EndpointRequest,
    fleet: Fleet,
    scaling: ScalingPolicy | None,
    peaks: Sequence[DailyPeak],
) -> tuple[ScalingSchedule, ...]:
    """The scheduled actions: stated, or derived from other peaks of a fleet that scales."""
    given, measured = request.scaling.schedule, request.throughput
    if given and peaks:
        raise SCHEDULE_BESIDE_PEAKS.error(
            got=f"a schedule beside {', '.join(peak.name for peak in peaks)}",
            allowed="scaling.schedule or throughput.peaks",
            where="schedule",
        )
    if given or measured is None or scaling is None:
        return tuple(given)
    usual = CapacityRange(fleet.minimum, fleet.maximum)
    lead = lead_minutes(request.start_seconds)
    return daily_schedule(peaks, measured.peak_tps, usual, lead)


def _check_changes(
    request: EndpointRequest,
    fleet: Fleet,
    scaling: ScalingPolicy | None,
    schedule: Sequence[ScalingSchedule],
) -> None:
    """Set times and steps change a range that there is."""
    target_tracking = request.scaling
    for name in ("schedule", "steps"):
        if scaling is None and getattr(target_tracking, name):
            raise CHANGES_NEED_SCALING.error(
                got=f"{name} on a fleet of {fleet.initial}",
                allowed="scaling, or none of them",
                where=name,
            )
    check_schedule(schedule, fleet.minimum, fleet.maximum)
