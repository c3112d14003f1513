"""What is suspicious about a plan, assumed in it, or stated by no page of AWS's."""

from __future__ import annotations

from collections.abc import Iterator

from ..facts.deployments import takes_guardrails
from ..facts.limits import MODEL_BODY_BYTES
from ..facts.token_values import is_token
from ..options.alarms import ErrorLimit
from ..options.throughput import HELD_SHARE, counted_instances, factor_for, instances_for, stated
from ..report.numbers import milliseconds, plain_number, readable
from .alarm_windows import (
    FEWEST_REQUESTS,
    SAMPLES_BEYOND,
    period_text,
    requests_in_period,
    samples_beyond,
    share_window,
)
from .contradictions import contradictions
from .decisions import PlanWarning
from .endpoint_request import EndpointRequest
from .plan import Plan
from .scaling_pace import SCALE_OUT_SECONDS, fewest_for_rises, jump_seconds, start_floor
from .token_explanations import token_warnings

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
    """All warnings of a plan, each with its id."""
    yield from contradictions(plan)
    yield from _target(plan)
    yield from token_warnings(plan)
    yield from _start(plan)
    yield from _fleet(plan)
    if not (plan.request.share and plan.request.share.shadow):  # whose answers nobody waits for
        yield from _samples(plan)
        yield from _few(plan)
        yield from _rises(plan)
        yield from _outage(plan)
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
            "no-latency-target", "no latency target is stated: no alarm watches latency"
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
            "somebody. AWS says that RANDOM routing may be faster for such short answers: low-latency "
            "compare-routing tells",
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


def _samples(plan: Plan) -> Iterator[PlanWarning]:
    """Warns about alarms that judge too few requests, whatever period they take."""
    request = plan.request
    if request.peak_tps is None:
        return
    for alarm in plan.alarms:
        beyond = samples_beyond(alarm.window, alarm.statistic, request.peak_tps)
        if beyond is None or beyond >= SAMPLES_BEYOND:
            continue
        longer = (
            "watch a lower percentile"
            if request.alarm_window.period_seconds is None
            else "leave alarms.period out for one that is long enough"
        )
        yield PlanWarning(
            f"few-samples-{alarm.statistic}",
            f"even at the peak only {plain_number(float(beyond), 2)} requests in "
            f"{period_text(alarm.window)} are slower than {alarm.statistic}, so single requests "
            f"raise the alarm: {longer}",
        )
    if request.error_limit is None:
        return
    window = share_window(request.alarm_window, request.peak_tps)
    requests = requests_in_period(window, request.peak_tps)
    if requests < FEWEST_REQUESTS:
        yield PlanWarning(
            "few-requests",
            f"even at the peak only {plain_number(float(requests), 2)} requests come in "
            f"{period_text(window)}, and the error alarm waits for {_failures(request)}: it may stay "
            "silent while all requests fail. "
            + (
                "A canary, or warm_up.keep_warm, sends more"
                if request.alarm_window.period_seconds is None
                else "Leave alarms.period out for one that is long enough"
            ),
        )


def _failures(request: EndpointRequest) -> str:
    limit = request.error_limit or ErrorLimit()
    return "the stated failures" if is_token(limit.failures) else f"{limit.failures} failures"


def _fleet(plan: Plan) -> Iterator[PlanWarning]:
    request, fleet = plan.request, plan.fleet
    share = request.share
    if share is not None and share.endpoint and request.throughput is None:
        yield PlanWarning(
            "no-share",
            f"{share.variant} gets only requests that name it as TargetVariant: its fleet of "
            f"{fleet.initial} is assumed to hold them",
        )
    elif request.throughput is None:
        yield PlanWarning(
            "no-throughput",
            f"no measured throughput: the fleet of {fleet.initial} is assumed to hold the peak"
            + (", and no scaling policy is set" if plan.scaling is None else "")
            + "; load-test one instance and state the result",
        )
    elif fleet.maximum < (needed := plan.needed_at_peak or 0):
        yield PlanWarning(
            "maximum-below-peak",
            f"the maximum of {counted_instances(fleet.maximum)} is below the {needed} that the peak "
            "needs with this safety factor",
        )
    elif request.is_rare:
        yield PlanWarning(
            "rare-calls",
            f"at most {plain_number(request.throughput.peak_tps * 60, 2)} calls a minute, and an instance holds "
            f"{readable(request.throughput.tps_per_instance * 60)}: a fixed fleet of {fleet.initial} serves "
            "them, and warm_up.keep_warm keeps it warm. No alarm watches latency, because a percentile "
            "of so few calls is the latency of a single one. Serverless inference, asynchronous "
            "inference, and inference components that scale to zero cost nothing between calls, but "
            "the first call waits",
        )
    elif request.throughput.safety_factor > HELD_SHARE:
        yield PlanWarning(
            "no-reserve",
            f"the safety factor lets the peak use up to {request.throughput.safety_factor:.0%} of the "
            f"measured limit; only {HELD_SHARE:.0%} is safe",
        )
    elif (
        1 < fleet.minimum == fleet.maximum
        and not request.serving.burstable_types
        and request.scaling.enabled
    ):
        yield PlanWarning(
            "fleet-never-scales",
            f"minimum and maximum are both {fleet.minimum}: the fleet never scales",
        )
    if share is not None and share.measured_on:
        yield PlanWarning(
            "throughput-of-another-type",
            f"an instance of {share.variant} on {request.serving.instance_type} is assumed to hold as "
            f"much as one on {share.measured_on}: load-test it and state its tps_per_instance",
        )
    if request.serving.burstable_types:
        yield PlanWarning(
            "burstable",
            f"{', '.join(request.serving.burstable_types)} is burstable: it does not scale, and its latency rises when "
            "the CPU credits are used up; choose another type for a latency target",
        )


def _rises(plan: Plan) -> Iterator[PlanWarning]:
    """Traffic that rises faster than scaling follows: as stated, or nobody said how fast it may."""
    measured, fleet = plan.request.throughput, plan.fleet
    if measured is None or plan.scaling is None:
        return
    held = float(fleet.minimum * stated(measured.tps_per_instance))
    starts = plan.request.start_seconds
    late = (
        f"for about {round(jump_seconds(starts) / 60)} minutes ("
        f"{jump_seconds(starts) // 60 - starts // 60} until scaling decides, then the start of an "
        "instance)"
    )
    if measured.states_rises:
        fewest = fewest_for_rises(measured, plan.request.rise_seconds)
        if fleet.minimum < fewest:
            yield PlanWarning(
                "minimum-below-rise",
                f"traffic that rises as stated needs a minimum of {fewest}; the minimum of "
                f"{counted_instances(fleet.minimum)} holds {readable(held)} TPS, and the requests beyond "
                f"that are late {late}",
            )
    elif (kept := float(stated(HELD_SHARE) * stated(held))) < measured.peak_tps:
        enough = instances_for(measured.peak_tps, measured.tps_per_instance, HELD_SHARE)
        yield PlanWarning(
            "jumps-unknown",
            f"the minimum of {fleet.minimum} holds {readable(kept)} of {readable(measured.peak_tps)} TPS at "
            f"{HELD_SHARE:.0%} of its limit: after a jump beyond that, requests are late {late}. State "
            "throughput.rise_tps_per_minute or from_tps, or raise the minimum: "
            f"{enough} hold a jump to the peak. scaling.schedule raises it at known hours only"
            + _second_jump(plan.request.scale_out_seconds),
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


def _outage(plan: Plan) -> Iterator[PlanWarning]:
    """What a zone outage at the peak leaves; of one instance another warning says it."""
    measured, held = plan.request.throughput, plan.tps_after_zone_outage
    if plan.fleet.serving_at_peak == 1 or measured is None or held is None:
        return
    load = stated(measured.peak_tps) / stated(held)
    if load > stated(HELD_SHARE):
        replaced = (
            "scaling replaces the others" if plan.request.scaling.enabled else "they are replaced"
        )
        zones = len(plan.request.client_zones)
        left = instances_for(measured.peak_tps, measured.tps_per_instance, HELD_SHARE)
        enough = -(-left * zones // (zones - 1))
        factor = factor_for(enough, measured.peak_tps, measured.tps_per_instance)
        lower = f" to {plain_number(factor)}" if 0 < factor < measured.safety_factor else ""
        yield PlanWarning(
            "zone-outage",
            f"if a zone fails at the peak, {plan.left_by_zone_outage} of "
            f"{counted_instances(plan.fleet.serving_at_peak)} remain ({readable(held)} of "
            f"{readable(measured.peak_tps)} TPS) until {replaced}. They work at {float(load):.0%} of their "
            f"limit; only {HELD_SHARE:.0%} is safe. Lower "
            f"the safety factor{lower} for {enough:,} instances, raise the minimum, or serve from "
            "more zones",
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
    if (request.payload_bytes or 0) > MODEL_BODY_BYTES:
        yield PlanWarning(
            "payload-above-api-model",
            f"a payload of {request.payload_bytes:,} bytes is larger than the {MODEL_BODY_BYTES:,} that "
            "the API's model allows; the developer guide says 25 MB: try it before you rely on it",
        )
