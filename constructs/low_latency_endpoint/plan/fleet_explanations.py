"""Why the fleet has so many instances, and why scaling changes their number as it does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ..errors import AWS_DOCS
from ..options.scaling import ScalingSchedule
from ..options.throughput import counted_instances, stated
from ..report.numbers import plain_number, readable
from .daily_peaks import DailyPeak, lead_minutes
from .decisions import Decision
from .endpoint_request import EndpointRequest
from .instance_load import cache_limit, load_of_instance
from .plan import CONCURRENCY_METRIC, INVOCATIONS_METRIC, Plan, ScalingPolicy
from .scaling_pace import fewest_for_rises
from .token_explanations import explain_in_flight
from .zone_outages import left_by_zone_outage

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


def explain_fleet(plan: Plan) -> Iterator[Decision[Any]]:
    """How many instances, and how many a zone outage leaves."""
    at_peak, minimum, initial, maximum = plan.instances
    yield from (at_peak, minimum, initial)
    notes = [maximum.note, _quota_note(plan)]
    yield replace(maximum, note="; ".join(filter(None, notes)))
    yield left_by_zone_outage(plan)


def _quota_note(plan: Plan) -> str:
    if plan.largest_fleet == plan.most:
        return "your account's quota for the type must allow twice this during a blue/green update"
    return (
        f"nothing scales, so {counted_instances(plan.largest_fleet)} run; the subnets have addresses "
        "for this number, which a policy may use later"
    )


def explain_scaling(plan: Plan) -> Iterator[Decision[Any]]:
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


def _peak_range(plan: Plan, number: int, peak: DailyPeak) -> Decision[Any]:
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
            **load_of_instance(plan.request.scaling, peak.measured, held),
            "instances at peak": peak.at_peak,
            **rises,
            "client zones": len(plan.request.client_zones),
            **cache_limit(peak.measured, held),
        },
        source=_LOAD_TEST,
        note="" if plan.schedule else "nothing scales, so the fixed fleet has to hold it",
    )


def _scheduled_range(plan: Plan, number: int, action: ScalingSchedule) -> Decision[Any]:
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


def _scaling_metric(plan: Plan) -> Decision[Any]:
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


def _scaling_target(plan: Plan, scaling: ScalingPolicy) -> Decision[Any]:
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
                **cache_limit(measured, held),
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
