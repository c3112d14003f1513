"""What is suspicious about a plan, assumed in it, or stated by no page of AWS's."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import cast

from ..facts.deployments import takes_guardrails
from ..options.throughput import (
    HELD_SHARE,
    HeldTps,
    MeasuredThroughput,
    counted_instances,
    instances_for,
    limit_tps,
    stated,
)
from ..report.numbers import milliseconds, percent_above, plain_number, readable
from .alarm_warnings import sample_warnings
from .clock_changes import clock_warnings
from .contradictions import contradictions
from .daily_peaks import lead_minutes
from .decisions import PlanWarning
from .deployment_time import deployment_warnings
from .endpoint_request import EndpointRequest
from .fleet_under_load import FleetUnderLoad, also
from .floor_explanations import first_token_warnings
from .period_objectives import objective_warnings
from .plan import Plan
from .request_size import size_warnings
from .scaling_pace import SCALE_OUT_SECONDS, fewest_for_rises, jump_seconds, start_floor
from .token_warnings import token_warnings, unwatched_token_warnings
from .zone_outages import outage_warnings

NOBODY_NOTIFIED = (
    "the alarms notify nobody: name an SNS topic (alarm_topic_arn, or AlarmOptions(actions=[...]))"
)


def no_objectives_in(region: str) -> str:
    """That a Region gets no service level objective, in words."""
    return (
        f"no service level objective is made, because AWS lists no Application Signals in {region}"
    )


SHORT_TARGET_MS = 10.0  # our judgement: overhead and zone changes weigh in from here down
LARGE_WEIGHT_BYTES = 20_000_000_000  # our judgement: from here on the start has to be known
PREFIX_AWARE_INSTANCES = 2
"""Instances that can serve a request, without which the strategy does not apply.
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ProductionVariantRoutingConfig.html"""


def warnings_of(plan: Plan) -> Iterator[PlanWarning]:
    """All warnings of a plan, each with its id.

    In this order: numbers that contradict each other; the targets, and tokens; starts and the fleet;
    alarms and objectives of too few requests; rises, outages and deployments; set times; routing and
    sizes of requests; instance types and images. None hides another: where two of them exclude each
    other, so do their conditions.
    """
    yield from contradictions(plan)
    yield from _target(plan)
    yield from token_warnings(plan)
    yield from first_token_warnings(plan)
    yield from unwatched_token_warnings(plan)
    yield from _start(plan)
    yield from _fleet(plan)
    if not (plan.request.share and plan.request.share.shadow):  # whose answers nobody waits for
        yield from sample_warnings(plan)
        yield from objective_warnings(plan)
        yield from _few(plan)
        yield from _rises(plan)
        yield from outage_warnings(plan)
        yield from deployment_warnings(plan)
    yield from _schedule(plan)
    yield from clock_warnings(plan)
    yield from _requests(plan)
    excluded = [name for name in plan.request.serving.types if not takes_guardrails(name)]
    if excluded:
        yield PlanWarning(
            "guardrails-inf1",
            f"{', '.join(excluded)}: SageMaker ignores deployment guardrails on this type, and says "
            "nothing. It deploys blue/green, all at once, without a final baking period",
        )
    yield from plan.request.serving.doubts


def _target(plan: Plan) -> Iterator[PlanWarning]:
    """Warnings about the latency target itself."""
    request = plan.request
    if request.latency is None:
        yield PlanWarning(
            "no-latency-target", "no latency target is stated: no alarm on latency follows"
        )
        return
    tightest, slowest = request.latency.tightest, request.latency.slowest
    if tightest is not None and tightest[1] < SHORT_TARGET_MS:
        yield PlanWarning(
            "short-latency-target",
            f"the target {tightest[0]} {milliseconds(tightest[1], 6)} leaves little time beside "
            "the model's: it includes a change of zone and SageMaker's overhead, and AWS publishes "
            "no number for either. The alarm on OverheadLatency watches a budget: measure the "
            "overhead, set the overhead share to the result, and only then let the alarm page "
            "somebody",
        )
    if slowest is not None and slowest[1] > request.response_limit_seconds * 1000:
        yield PlanWarning(
            "latency-above-response-limit",
            f"the target {slowest[0]} {plain_number(slowest[1] / 1000)} s is longer than the "
            f"{request.response_limit_seconds} s after which SageMaker ends a request",
        )
    if request.streams and not request.latency.of_tokens:
        yield PlanWarning(
            "streamed-first-token",
            "the responses are streamed, and no CloudWatch metric of SageMaker has the time to the "
            "first token (FirstChunkLatency is documented for bidirectional streaming only): measure "
            "it at the callers, or read the container's own metrics",
        )


def _fleet(plan: Plan) -> Iterator[PlanWarning]:
    """Warnings about the number of instances, and what is known of one instance."""
    request, fleet, share = plan.request, plan.fleet, plan.request.share
    measured = request.throughput
    if share is not None and share.endpoint and measured is None:
        yield PlanWarning(
            "no-share",
            f"{share.variant} gets only requests that name it as TargetVariant: its fleet of "
            f"{fleet.initial} is assumed to hold them",
        )
    elif measured is None:
        yield PlanWarning(
            "no-throughput",
            f"no measured throughput: the fleet of {fleet.initial} is assumed to hold the peak"
            + (", and no scaling policy is set" if plan.scaling is None else "")
            + "; load-test one instance and state the result",
        )
    else:
        yield from _maximum(plan)
        if request.is_rare:
            yield _rare(plan, measured)
        else:
            yield from _no_reserve(plan, measured)
    if not request.is_rare:
        yield from _fixed_ranges(plan)
    yield from _throughput_of_another(request)
    if request.serving.burstable_types:
        yield PlanWarning(
            "burstable",
            f"{', '.join(request.serving.burstable_types)} is burstable: it does not scale, and its latency rises when "
            "the CPU credits are used up; choose another type for a latency target",
        )


def _throughput_of_another(request: EndpointRequest) -> Iterator[PlanWarning]:
    """A throughput that was measured on another type, or with another model, than the variant's."""
    share = request.share
    if share is None or request.throughput is None:
        return
    other = "the first variant's model" if share.measured_with_another_model else "one"
    assumed = "is assumed to hold as much as"
    advice = "load-test it and state its tps_per_instance"
    if share.measured_on:
        yield PlanWarning(
            "throughput-of-another-type",
            f"an instance of {share.variant} on {request.serving.instance_type} {assumed} {other} on "
            f"{share.measured_on}: {advice}",
        )
    elif share.measured_with_another_model:
        yield PlanWarning(
            "throughput-of-another-model",
            f"an instance of {share.variant}, which serves another model, {assumed} one of the first "
            f"variant: {advice}",
        )


def _no_reserve(plan: Plan, measured: MeasuredThroughput) -> Iterator[PlanWarning]:
    """A peak that uses more of an instance than counts as held."""
    held = plan.held_tps
    if held is None or held.used <= stated(HELD_SHARE):
        return
    if held.by_target:
        yield PlanWarning("no-reserve", _target_without_reserve(plan, measured, held))
        return
    if held.limit == stated(measured.tps_per_instance):
        text = (
            f"the safety factor lets the peak use up to {percent_above(measured.safety_factor, HELD_SHARE)} of the "
            f"measured limit; only {HELD_SHARE:.0%} is safe"
        )
        yield PlanWarning("no-reserve", text)
        return
    factor = math.floor(100 * stated(HELD_SHARE) * held.limit / stated(measured.tps_per_instance))
    advice = "Shorten the requests, or choose a type with more memory"
    if factor:
        advice = f"Lower the safety factor to {plain_number(factor / 100)}"
    yield PlanWarning(
        "no-reserve",
        f"the peak uses up to {percent_above(held.used, HELD_SHARE)} of the requests that the KV cache of an instance "
        f"has room for, {plan.room:,}; only {HELD_SHARE:.0%} is safe. {advice}",
    )


def _target_without_reserve(plan: Plan, measured: MeasuredThroughput, held: HeldTps) -> str:
    """That a scaling target of your own leaves too little of an instance, and which one does."""
    limit = "measured limit"
    if held.limit < stated(measured.tps_per_instance):
        limit = "limit that the KV cache of an instance sets"
    text = (
        f"the scaling target lets the peak use up to {percent_above(held.used, HELD_SHARE)} of the "
        f"{limit}; only {HELD_SHARE:.0%} is safe"
    )
    scaling = plan.request.scaling
    name = "invocations_target"
    target = scaling.invocations_target
    if target is None:
        name = "concurrency_target"
        target = scaling.concurrency_target
    safe = math.floor(100 * stated(cast(float, target)) * stated(HELD_SHARE) / held.used)
    return f"{text}. Lower scaling.{name} to {readable(safe / 100, 10)}" if safe else text


def _maximum(plan: Plan) -> Iterator[PlanWarning]:
    """A maximum that the load's peak does not fit under, in any range that can stand."""
    below = [
        standing
        for standing in plan.under_load
        if standing.fleet.maximum < (plan.needed_for(standing.measured) or 0)
    ]
    if below:
        worst = min(below, key=lambda standing: standing.fleet.maximum)
        by_target = plan.held_tps is not None and plan.held_tps.by_target
        yield PlanWarning(
            "maximum-below-peak",
            f"{worst.prefix}the {'maximum' if plan.scaling else 'fixed fleet'} of "
            f"{counted_instances(worst.fleet.maximum)} is below the {plan.needed_for(worst.measured)} "
            f"that the peak needs with this {'scaling target' if by_target else 'safety factor'}"
            f"{also(below, worst)}",
        )


def _rare(plan: Plan, measured: MeasuredThroughput) -> PlanWarning:
    """The warning about calls so few that nothing scales with them."""
    return PlanWarning(
        "rare-calls",
        f"at most {plain_number(measured.highest_tps * 60, 2)} calls a minute, and an instance holds "
        f"{readable(float(limit_tps(measured, plan.room) * 60))}: a fixed fleet of {plan.fleet.initial} serves "
        "them, and warm_up.keep_warm keeps it warm. No alarm watches latency, because a percentile "
        "of so few calls is the latency of a single one. Serverless inference, asynchronous "
        "inference, and inference components that scale to zero cost nothing between calls, but "
        "the first call waits",
    )


def _fixed_ranges(plan: Plan) -> Iterator[PlanWarning]:
    """Ranges in which nothing can scale, although scaling is on."""
    request = plan.request
    if request.throughput is None or request.serving.burstable_types or not request.scaling.enabled:
        return
    fixed = [
        standing
        for standing in plan.under_load
        if 1 < standing.fleet.minimum == standing.fleet.maximum
    ]
    if fixed:
        yield PlanWarning(
            "fleet-never-scales",
            f"{fixed[0].prefix}minimum and maximum are both {fixed[0].fleet.minimum}: the "
            f"fleet never scales{also(fixed, fixed[0])}",
        )


def _rises(plan: Plan) -> Iterator[PlanWarning]:
    """Traffic that rises faster than scaling follows: as stated, or nobody said how fast it may."""
    if plan.scaling is not None:
        yield from _stated_rises(plan)
        yield from _unknown_jumps(plan)


def _stated_rises(plan: Plan) -> Iterator[PlanWarning]:
    """Rises as they are stated, which a minimum is too low for."""
    starts = plan.request.start_seconds
    held = plan.held_tps
    if held is None:
        return
    needed = {
        standing: fewest_for_rises(standing.measured, plan.request.rise_seconds, held)
        for standing in plan.under_load
        if standing.measured is not None and standing.measured.states_rises
    }
    below = [standing for standing, fewest in needed.items() if standing.fleet.minimum < fewest]
    if below:
        worst = min(below, key=lambda standing: standing.fleet.minimum - needed[standing])
        yield PlanWarning(
            "minimum-below-rise",
            f"{worst.prefix}{_rise_of(plan, worst)} needs a minimum of {needed[worst]}; "
            f"the minimum of {counted_instances(worst.fleet.minimum)} holds "
            f"{readable(float(_held(worst)))} TPS, and the requests beyond "
            f"that are late {_lateness(starts)}{_cooldown_of_rises(plan)}{also(below, worst)}",
        )


def _cooldown_of_rises(plan: Plan) -> str:
    """How far a longer cooldown than usual lets scaling fall behind a rise that goes on."""
    if plan.request.scale_out_seconds <= SCALE_OUT_SECONDS:
        return ""
    minutes = readable(plan.request.rise_seconds / 60, 4)
    return f", and up to {minutes} minutes behind while it rises, with scaling.scale_out_cooldown"


def _rise_of(plan: Plan, standing: FleetUnderLoad) -> str:
    """The rise that a range has to hold: as stated, or the jump with which a higher peak begins."""
    usual, measured = plan.request.throughput, standing.measured
    if usual is None or measured is None or measured.peak_tps <= usual.peak_tps:
        return "traffic that rises as stated"
    return f"the jump to {readable(measured.peak_tps)} TPS at its start"


def _unknown_jumps(plan: Plan) -> Iterator[PlanWarning]:
    """Jumps of unknown size, where a minimum does not hold one to the peak."""
    kept = {
        standing: stated(HELD_SHARE) * _held(standing)
        for standing in plan.under_load
        if standing.measured is not None and not standing.measured.states_rises
    }
    below = [
        standing
        for standing, tps in kept.items()
        if standing.measured is not None and float(tps) < standing.measured.peak_tps
    ]
    if not below:
        return
    worst = min(below, key=lambda standing: standing.fleet.minimum)
    measured = cast(MeasuredThroughput, worst.measured)
    enough = instances_for(measured.peak_tps, worst.limit_tps, HELD_SHARE)
    yield PlanWarning(
        "jumps-unknown",
        f"{worst.prefix}the minimum of {worst.fleet.minimum} holds "
        f"{readable(float(kept[worst]))} of {readable(measured.peak_tps)} TPS at "
        f"{HELD_SHARE:.0%} of its limit: after a jump beyond that, requests are late "
        f"{_lateness(plan.request.start_seconds)}. State "
        "throughput.rise_tps_per_minute or from_tps, or raise the minimum: "
        f"{enough} hold a jump to the peak"
        + (
            ". throughput.peaks raises it at known hours only"
            if plan.request.peaks_raise_minimum
            else ""
        )
        + _second_jump(plan.request.scale_out_seconds)
        + also(below, worst),
    )


def _held(standing: FleetUnderLoad) -> Fraction:
    """What the minimum holds at the measured limit, in requests per second."""
    return standing.fleet.minimum * standing.limit_tps


def _lateness(start_seconds: int) -> str:
    """How long requests are late after a jump, and why."""
    late = jump_seconds(start_seconds)
    return (
        f"for about {round(late / 60)} minutes ("
        f"{late // 60 - start_seconds // 60} until scaling decides, then the start of an "
        "instance)"
    )


def _peaks(plan: Plan) -> Iterator[PlanWarning]:
    """Other peaks of the day that get no range, so that stating them scales nothing."""
    served = plan.names_of_peaks(lead=0)
    for peak in plan.peaks:
        if peak in plan.standing_peaks:
            continue
        reason = "other peaks that are as high or higher cover it"
        if peak.name in served:
            lead = lead_minutes(plan.request.start_seconds)
            reason = f"it is no longer than the {lead} minutes by which the next range is set ahead"
        yield PlanWarning("peak-without-range", f"{peak.label} has no range of its own: {reason}")


def _schedule(plan: Plan) -> Iterator[PlanWarning]:
    """A usual minimum or maximum that no scheduled action of your own restores."""
    if plan.peaks:
        yield from _peaks(plan)
        return
    ranges = plan.standing_ranges
    for option, name, usual in (
        ("min", "minimum", ranges.usual.minimum),
        ("max", "maximum", ranges.usual.maximum),
    ):
        later = ranges.later_values(option)
        if not later or usual in later:
            continue
        yield PlanWarning(
            f"{name}-not-restored",
            f"no scheduled action sets the {name} back to {usual}, which it is until the first one "
            f"runs: from then on it is {' or '.join(map(str, later))} for good. Add an action with "
            f"{option}: {usual} for the end",
        )


def _second_jump(cooldown: int) -> str:
    """What a stated cooldown of scaling out adds to the time after a jump."""
    if cooldown <= SCALE_OUT_SECONDS:
        return ""
    return (
        f". A second jump that is not larger than the first waits up to {readable(cooldown / 60)} minutes "
        "more: scaling.scale_out_cooldown"
    )


def _start(plan: Plan) -> Iterator[PlanWarning]:
    """Weights that take minutes to load, and nobody said how many."""
    request, stated = plan.request, plan.request.scaling.instance_start
    if (
        request.serving.weight_bytes > LARGE_WEIGHT_BYTES
        and plan.scaling is not None
        and stated is None
    ):
        yield PlanWarning(
            "start-not-stated",
            f"an instance loads {readable(request.serving.weight_bytes / 1e9, 3)} GB of weights, and is "
            f"assumed to start in {plain_number(request.start_seconds / 60, 3)} minutes (at 1 GB/s from S3 "
            f"and into memory, {plain_number(start_floor(request.serving.weight_bytes) / 60, 3)} at least): "
            "state the time that you saw as scaling.instance_start",
        )


def _few(plan: Plan) -> Iterator[PlanWarning]:
    """Fewer instances than client zones, at quiet hours or always: possible, and not resilient."""
    fewest, zones = plan.fewest, len(plan.request.client_zones)
    if fewest == 1:
        when = "one instance" if plan.largest_fleet == 1 else "down to one instance at quiet hours"
        yield PlanWarning(
            "one-instance",
            f"{when}: no other zone has one, so an outage of the instance or of its zone is an outage "
            "of the endpoint until SageMaker has replaced the instance, which takes minutes. This is "
            "enough for development; otherwise set a minimum of 2",
        )
    elif fewest < zones:
        yield PlanWarning(
            "zones-without-instance",
            f"{counted_instances(fewest)} for {zones} client zones at quiet hours: requests from a zone "
            "without an instance go to another zone; "
            f"a minimum of {zones}, or fewer client zones, avoids this",
        )


def _requests(plan: Plan) -> Iterator[PlanWarning]:
    request = plan.request
    if plan.routing == "PREFIX_AWARE" and not request.is_generative:
        yield PlanWarning(
            "prefix-aware-unsure",
            "PREFIX_AWARE routing helps servers that cache the prefixes of prompts; the images' "
            "names do not say that these do",
        )
    if plan.routing == "PREFIX_AWARE" and plan.fewest < PREFIX_AWARE_INSTANCES:
        alone = "" if plan.largest_fleet == 1 else " at quiet hours"
        yield PlanWarning(
            "prefix-aware-one-instance",
            f"PREFIX_AWARE routing applies only when {PREFIX_AWARE_INSTANCES} or more instances can "
            f"serve a request, and there is one{alone}; a minimum of {PREFIX_AWARE_INSTANCES} avoids "
            "this",
        )
    overhead = plan.thresholds("OverheadLatency")
    yield from size_warnings(
        request.request_size,
        {"warm-up": request.warm_up_bytes, "canary": request.canary_bytes},
        min(overhead.values(), default=None),
    )
