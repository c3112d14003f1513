"""Why the fleet has so many instances, and why scaling changes their number as it does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..errors import AWS_DOCS
from ..options.scaling import ScalingSchedule
from ..options.throughput import (
    FEWEST_INSTANCES,
    HELD_SHARE,
    MeasuredThroughput,
    counted_instances,
    instances_for,
    stated,
)
from ..report.numbers import plain_number, readable
from .daily_peaks import DailyPeak, lead_minutes
from .decisions import Decision
from .endpoint_request import EndpointRequest
from .plan import CONCURRENCY_METRIC, HEADROOM, INVOCATIONS_METRIC, Plan, ScalingPolicy
from .scaling_pace import fewest_for_rises
from .token_explanations import cache_limit, cache_note, explain_in_flight

_GUIDE = AWS_DOCS + "/sagemaker/latest/dg/"
_PRIVATELINK = _GUIDE + "realtime-endpoints-privatelink.html"
_LOAD_TEST = _GUIDE + "endpoint-scaling-loadtest.html"
_POLICY = _GUIDE + "endpoint-auto-scaling-policy.html"
_CONCURRENCY = _GUIDE + "endpoint-auto-scaling-add-code-define.html"
_SCHEDULED = (
    AWS_DOCS + "/autoscaling/application/userguide/scheduled-scaling-using-cron-expressions.html"
)
_STEPS = AWS_DOCS + "/autoscaling/application/userguide/step-scaling-policy-overview.html"
_PRACTICES = _GUIDE + "deployment-best-practices.html"


_UNSCALED = "scaling is off: nothing changes the number of instances"


def explain_fleet(plan: Plan) -> Iterator[Decision]:
    """How many instances, and how many a zone outage leaves."""
    request, fleet = plan.request, plan.fleet
    unscaled = not request.scaling.enabled
    yield _instances_at_peak(plan)
    yield _min_instances(plan)
    yield Decision(
        name="initial_instances",
        value=fleet.initial,
        unit="instances",
        rule="the instances at peak, so that the first traffic meets a fleet that holds it"
        + ("" if unscaled else "; scaling takes away what is not needed"),
        inputs={
            "instances at peak": fleet.at_peak,
            **{f"instances at peak, {peak.name}": peak.at_peak for peak in plan.standing_peaks},
            "minimum": fleet.minimum,
            "maximum": fleet.maximum,
        },
        overridden=request.instances.initial is not None,
    )
    yield _max_instances(plan)
    zones = len(request.client_zones)
    usual = plan.usual
    serving = usual.serving_at_peak
    left = usual.left_by_zone_outage(serving)
    outage = usual.zone_outage(serving)
    held = ""
    if outage is not None:
        tps = readable(float(outage.held), 4)
        held = (
            f"at the measured limit they hold {tps} TPS; the peak has {readable(float(outage.tps))}"
        )
    yield Decision(
        name="instances_left_by_zone_outage",
        value=left,
        unit="instances",
        rule="the instances at peak, less those of the fullest zone when they are spread evenly",
        inputs={"instances at peak": serving, "client zones": zones, "lost": serving - left},
        source=_PRACTICES,
        note=held,
    )


def _instances_at_peak(plan: Plan) -> Decision:
    fleet, measured = plan.fleet, plan.request.throughput
    zones = len(plan.request.client_zones)
    held = plan.held_tps
    if measured and held:
        saturated = max(instances_for(measured.peak_tps, held.limit), zones, FEWEST_INSTANCES)
        counted_with = "(TPS per instance x safety factor)"
        if held.by_target:
            counted_with = "the TPS of an instance at your scaling target, or at most its limit"
        return Decision(
            name="instances_at_peak",
            value=fleet.at_peak,
            unit="instances",
            rule=f"peak TPS / {counted_with}, rounded up; at least one per "
            "client zone and at least two, unless fewer are stated",
            inputs={
                "peak TPS": measured.peak_tps,
                **_load_of_instance(plan, measured),
                "client zones": zones,
                **cache_limit(plan, measured),
            },
            source=_LOAD_TEST,
            note=f"at saturation, with nothing in reserve, {saturated:,} would do"
            + cache_note(plan),
        )
    return Decision(
        name="instances_at_peak",
        value=fleet.at_peak,
        unit="instances",
        rule="without a measured throughput: one per client zone and at least two",
        inputs={"client zones": zones},
        source=_PRIVATELINK,
        note="assumed, not derived: load-test one instance and state the throughput",
    )


def _load_of_instance(plan: Plan, measured: MeasuredThroughput) -> dict[str, Any]:
    """What one instance holds, and what scaling keeps it at, as inputs."""
    inputs: dict[str, Any] = {"TPS per instance": measured.tps_per_instance}
    held = plan.held_tps
    if held is None or not held.by_target:
        return inputs | {"safety factor": measured.safety_factor}
    scaling = plan.request.scaling
    target = scaling.invocations_target or scaling.concurrency_target
    return inputs | {"your scaling target": target, "TPS of an instance at it": float(held.kept)}


def _min_instances(plan: Plan) -> Decision:
    request, fleet, measured = plan.request, plan.fleet, plan.request.throughput
    zones = len(request.client_zones)
    unscaled = "" if request.scaling.enabled else _UNSCALED
    by_target = plan.held_tps is not None and plan.held_tps.by_target
    keeper = "your scaling target" if by_target else "the safety factor"
    return Decision(
        name="min_instances",
        value=fleet.minimum,
        unit="instances",
        rule="the initial instances"
        if unscaled
        else "one per client zone and at least two, so that no zone is without at quiet hours"
        + (
            "; and what bridges the time until scaling has followed: of a rise what comes in its lag (1.5 "
            "minutes and two starts; one of them with the cooldown of scaling out, a minute at least, to full minutes) / "
            f"what {keeper} leaves of an instance, and no more than "
            "of a jump, peak TPS / (TPS per instance x the share that counts as held), which is nothing "
            "where as many are kept before it"
            if measured and measured.states_rises
            else ""
        ),
        inputs={"initial instances": fleet.initial}
        if unscaled
        else {"client zones": zones} | _rises(plan),
        source=_PRACTICES,
        overridden=request.instances.min is not None,
        note=unscaled
        or (
            ""
            if request.serving.burstable_types
            else "at a known hour throughput.peaks raises it for that time alone"
            if measured and measured.from_tps is not None and plan.peaks_raise_minimum
            else ""
            if measured and measured.states_rises
            else "new instances take minutes: raise it, or schedule it, where traffic "
            "jumps faster than that"
        ),
    )


def _max_instances(plan: Plan) -> Decision:
    request, fleet = plan.request, plan.fleet
    zones = len(request.client_zones)
    unscaled = "" if request.scaling.enabled else _UNSCALED
    fixed = "burstable types do not scale" if request.serving.burstable_types else unscaled
    if request.is_rare and plan.scaling is None:
        fixed = fixed or "calls are rare: the fleet keeps its number"
    most = max(fleet.at_peak, fleet.minimum, fleet.initial)
    return Decision(
        name="max_instances",
        value=fleet.maximum,
        unit="instances",
        rule="the initial instances"
        if fixed
        else "1.5 times the most of the instances at peak, the minimum and the initial ones; or, if "
        "more, all of them beside those of a zone that has failed and still counts: that number x "
        "zones / (zones - 1)",
        inputs={"initial instances": fleet.initial}
        if fixed
        else {
            "instances at peak": fleet.at_peak,
            "minimum": fleet.minimum,
            "initial": fleet.initial,
            "client zones": zones,
            "worked out": f"{most} x {plain_number(float(HEADROOM))} = {plain_number(float(most * HEADROOM))}, "
            f"{most} x {zones} / ({zones} - 1) = {plain_number(most * zones / (zones - 1), 4)}",
        },
        overridden=request.instances.max is not None,
        note=(f"{fixed}; " if fixed else "") + _quota_note(plan),
    )


def _quota_note(plan: Plan) -> str:
    if plan.largest_fleet == plan.most:
        return "your account's quota for the type must allow twice this during a blue/green update"
    return (
        f"nothing scales, so {counted_instances(plan.largest_fleet)} run; the subnets have addresses "
        "for this number, which a policy may use later"
    )


def explain_scaling(plan: Plan) -> Iterator[Decision]:
    """Scaling metric, target and cooldowns; the metric is None, and no more, without a policy."""
    given, scaling = plan.request.scaling, plan.scaling
    yield _scaling_metric(plan)
    for number, peak in enumerate(plan.standing_peaks, 1):
        yield _peak_range(plan, number, peak)
    if scaling is None:
        return
    yield _scaling_target(plan, scaling)
    yield Decision(
        name="scale_out_cooldown",
        unit="seconds",
        value=scaling.scale_out_seconds,
        rule="one period of the metric: an instance too early costs little, one too late costs "
        "latency",
        inputs={"metric period in seconds": 60, "AWS's default": 300},
        overridden=given.scale_out_cooldown is not None,
    )
    yield Decision(
        name="scale_in_cooldown",
        unit="seconds",
        value=scaling.scale_in_seconds,
        rule="AWS's default, slower than scaling out, so that a lull does not cost instances",
        source=_POLICY,
        overridden=given.scale_in_cooldown is not None,
    )
    for number, action in enumerate(plan.schedule, 1):
        yield _scheduled_range(plan, number, action)
    if given.steps is not None:
        yield Decision(
            name="scaling_steps",
            value=given.steps.text,
            rule="instances to add on a jump, before target tracking acts; target tracking takes "
            "them away again",
            inputs={"watches": given.steps.metric, "periods": given.steps.periods},
            source=_STEPS,
            overridden=True,
        )


def _peak_range(plan: Plan, number: int, peak: DailyPeak) -> Decision:
    """Another peak: the range that it asks for."""
    held = plan.held_tps
    usual = plan.request.throughput
    assert held is not None
    assert usual is not None
    rises = {}
    if peak.peak.tps <= usual.peak_tps:
        fewest = fewest_for_rises(peak.measured, plan.request.rise_seconds, held)
        rises = {"for the rise": fewest}
    return Decision(
        name=f"peak_range_{number}",
        value=peak.range.text,
        unit="instances",
        rule="for a peak at set times what the rules of minimum and maximum give for its TPS. A "
        "higher peak is a jump at its start, known in advance, whatever you state of rises: its "
        "minimum is its instances at peak",
        inputs={
            "name": peak.name,
            "times": peak.peak.text,
            "peak TPS": peak.measured.peak_tps,
            **_load_of_instance(plan, peak.measured),
            "instances at peak": peak.at_peak,
            **rises,
            "client zones": len(plan.request.client_zones),
            **cache_limit(plan, peak.measured),
        },
        source=_LOAD_TEST,
        note="" if plan.schedule else "nothing scales, so the fixed fleet has to hold it",
    )


def _scheduled_range(plan: Plan, number: int, action: ScalingSchedule) -> Decision:
    """A scheduled action: the range that stands after it, and when it runs."""
    ranges = plan.standing_ranges.brought_by(action)
    lead: dict[str, Any] = {}
    rule = (
        "your range at set times; what it does not state stays, and so does the range, until "
        "another action changes it"
    )
    if plan.peaks:
        rule = (
            "the range of the highest load of this time and of the lead that follows: a range "
            "rises ahead of its load by the time until scaling decides and an instance starts, "
            "and falls when the load ends"
        )
        starts = plan.request.start_seconds
        lead = {"lead in minutes": lead_minutes(starts), "an instance's start in seconds": starts}
    return Decision(
        name=f"scheduled_range_{number}",
        value=f"{' or '.join(capacity.text for capacity in ranges)} instances",
        rule=rule,
        inputs={
            "name": action.name,
            "states": action.text,
            "when": action.expression,
            "in": action.time_zone or "UTC",
            **lead,
        },
        source=_SCHEDULED,
        overridden=not plan.peaks,
    )


def _scaling_metric(plan: Plan) -> Decision:
    request, given, scaling = plan.request, plan.request.scaling, plan.scaling
    stated_concurrency = given.concurrency_target is not None
    if not given.enabled:
        why = "none: scaling is off, your choice"
    elif given.invocations_target is not None:
        why = "target tracking on invocations per instance, because you state its target"
    elif stated_concurrency:
        why = (
            "target tracking on requests in flight per instance, every 10 s, because you state "
            "how many one instance holds"
        )
    elif scaling is not None and scaling.metric == CONCURRENCY_METRIC:
        why = (
            "target tracking on requests in flight per instance, every 10 s: an invocation counts "
            "once, however long its answer is"
        )
    else:
        why = (
            "target tracking on invocations per instance, once one instance's throughput is "
            "measured"
        )
    by_invocations = scaling is not None and scaling.metric == INVOCATIONS_METRIC
    estimate = _by_littles_law(request)
    return Decision(
        name="scaling_metric",
        value=scaling.metric if scaling else None,
        rule=why,
        inputs={
            "throughput": "measured" if request.throughput else "not measured",
            "minimum": plan.fleet.minimum,
            "maximum": plan.fleet.maximum,
        },
        source=_POLICY,
        overridden=not given.enabled or stated_concurrency or given.invocations_target is not None,
        note="answers differ in length, so requests in flight say more than requests per minute: "
        f"try {CONCURRENCY_METRIC} (every 10 s, counts what queues in the container) with a "
        f"target of about {estimate}"
        if by_invocations and request.is_generative and estimate
        else "",
    )


def _scaling_target(plan: Plan, scaling: ScalingPolicy) -> Decision:
    request, given = plan.request, plan.request.scaling
    by_invocations = scaling.metric == INVOCATIONS_METRIC
    estimate = _by_littles_law(request)
    measured = request.throughput
    if by_invocations and given.invocations_target is not None:
        planned = measured.target_invocations_per_instance if measured else None
        instead: dict[str, Any] = {}
        if measured is not None:
            instead["TPS per instance"] = measured.tps_per_instance
            instead["safety factor"] = measured.safety_factor
        return Decision(
            name="scaling_target",
            value=scaling.target,
            unit="invocations per instance per minute",
            rule="your number: the invocations per minute that scaling keeps one instance at, "
            "whatever the safety factor is",
            inputs=instead,
            source=_LOAD_TEST,
            overridden=True,
            note=f"from the measured throughput it would be {readable(planned)}" if planned else "",
        )
    held = plan.held_tps
    if by_invocations:
        assert measured is not None
        assert held is not None
        return Decision(
            name="scaling_target",
            value=scaling.target,
            unit="invocations per instance per minute",
            rule="TPS per instance x safety factor x 60",
            inputs={
                "TPS per instance": measured.tps_per_instance,
                "safety factor": measured.safety_factor,
                **cache_limit(plan, measured),
            },
            source=_LOAD_TEST,
            note="at saturation the target would be " + readable(float(held.limit * 60)),
        )
    if given.concurrency_target is None and plan.tokens and plan.tokens.in_flight:
        return explain_in_flight(plan.tokens.in_flight)
    return Decision(
        name="scaling_target",
        value=scaling.target,
        unit="requests in flight per instance",
        rule="your number: the requests in flight that scaling keeps one instance at",
        source=_CONCURRENCY,
        overridden=True,
        note=f"measured throughput x target would be about {estimate}" if estimate else "",
    )


def _by_littles_law(request: EndpointRequest) -> str:
    """Requests in flight at the measured throughput with its safety factor, and how they follow."""
    measured = request.throughput
    typical = request.latency.typical if request.latency else None
    if not (typical and measured):
        return ""
    statistic, milliseconds = typical
    concurrent = math.floor(
        stated(measured.tps_per_instance)
        * stated(measured.safety_factor)
        * stated(milliseconds)
        / 1000
    )
    return (
        f"{max(concurrent, 1)} (TPS per instance x safety factor x {statistic} of "
        f"{plain_number(milliseconds / 1000)} s)"
    )


def _rises(plan: Plan) -> dict[str, Any]:
    """The rises of traffic that are stated, and what they ask for."""
    request = plan.request
    measured, lag_seconds = request.throughput, request.rise_seconds
    held_tps = plan.held_tps
    if measured is None or held_tps is None or not measured.states_rises:
        return {}
    told: dict[str, Any] = {
        "peak TPS": measured.peak_tps,
        **_load_of_instance(plan, measured),
        "share that counts as held": HELD_SHARE,
        **cache_limit(plan, measured),
    }
    limit = float(held_tps.limit)
    reserve = f"{plain_number(limit)} x (1 - {plain_number(measured.safety_factor)})"
    if held_tps.by_target or held_tps.limit < stated(measured.tps_per_instance):
        reserve = f"{plain_number(limit, 4)} - {plain_number(float(held_tps.planned), 4)}"
    if measured.from_tps is not None:
        told["jumps from TPS"] = measured.from_tps
        held = limit * HELD_SHARE
        worked = f"{plain_number(measured.peak_tps)} / ({plain_number(limit)} x {plain_number(HELD_SHARE)}) = {plain_number(measured.peak_tps / held, 3)}"
    else:
        rise = measured.rise_tps_per_minute or 0
        lag = lag_seconds / 60
        told["rise in TPS per minute"] = rise
        told["an instance's start in seconds"] = request.start_seconds
        told["scale-out cooldown in seconds"] = request.scale_out_seconds
        told["scaling's lag in minutes"] = lag
        free = float(held_tps.limit - held_tps.planned)
        worked = f"{plain_number(rise)} x {plain_number(lag)} / ({reserve})"
        worked += f" = {plain_number(rise * lag / free, 3)}" if free else ""
    return told | {
        "worked out": worked,
        "for the rise": fewest_for_rises(measured, lag_seconds, held_tps),
    }
