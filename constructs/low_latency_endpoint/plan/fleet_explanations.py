"""Why the fleet has so many instances, and why scaling changes their number as it does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

from ..errors import AWS_DOCS
from ..options.scaling import ScalingSchedule
from ..options.throughput import HeldTps, MeasuredThroughput, counted_instances
from .daily_peaks import DailyPeak, lead_minutes
from .decisions import Decision
from .instance_load import cache_limit, load_of_instance
from .plan import Plan
from .scaling_pace import fewest_for_rises
from .zone_outages import left_by_zone_outage

_GUIDE = AWS_DOCS + "/sagemaker/latest/dg/"
_LOAD_TEST = _GUIDE + "endpoint-scaling-loadtest.html"
_SCHEDULED = (
    AWS_DOCS + "/autoscaling/application/userguide/scheduled-scaling-using-cron-expressions.html"
)
_STEPS = AWS_DOCS + "/autoscaling/application/userguide/step-scaling-policy-overview.html"


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
    metric, *others = plan.scaling_decisions
    yield metric
    for number, peak in enumerate(plan.standing_peaks, 1):
        yield _peak_range(plan, number, peak)
    yield from others
    if plan.scaling is None:
        return
    for number, action in enumerate(plan.schedule, 1):
        yield _scheduled_range(plan, number, action)
    steps = plan.request.scaling.steps
    if steps is not None:
        yield Decision(
            name="scaling_steps",
            value=steps.text,
            rule="instances to add on a jump, before target tracking acts; target tracking takes "
            "them away again",
            inputs={"watches": steps.metric, "periods": steps.periods},
            source=_STEPS,
            overridden=True,
        )


def _peak_range(plan: Plan, number: int, peak: DailyPeak) -> Decision[Any]:
    """Another peak: the range that it asks for."""
    held = cast(HeldTps, plan.held_tps)
    usual = cast(MeasuredThroughput, plan.request.throughput)
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
            **cache_limit(peak.measured, held.limit),
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
