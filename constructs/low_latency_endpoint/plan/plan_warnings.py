"""What is suspicious about a plan, assumed in it, or stated by no page of AWS's."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ..facts.deployments import takes_guardrails
from ..facts.limits import MODEL_BODY_BYTES
from ..options.throughput import HELD_SHARE, counted_instances, factor_for, instances_for, stated
from ..report.numbers import milliseconds, plain_number, readable
from .contradictions import contradictions
from .decisions import PlanWarning
from .plan import Plan
from .scaling_pace import fewest_for_rises, jump_seconds, start_floor
from .token_explanations import token_warnings

NOBODY_NOTIFIED = (
    "the alarms notify nobody: name an SNS topic (alarm_topic_arn, or AlarmOptions(actions=[...]))"
)

SHORT_TARGET_MS = 10.0  # our judgement: overhead and zone changes weigh in from here down
PERIOD_SECONDS = 60
SAMPLES_BEYOND = 10  # a percentile with fewer requests beyond it in a period jumps about

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
        yield from _few(plan)
        yield from _rises(plan)
        yield from _outage(plan)
    yield from _requests(plan)
    excluded = [name for name in plan.request.serving.types if not takes_guardrails(name)]
    if excluded:
        yield PlanWarning(
            "guardrails-inf1",
            f"{', '.join(excluded)}, deployment guardrails: SageMaker falls back to "
            "blue/green all at once without a final baking period, in silence",
        )
    yield from plan.request.serving.doubts


def _target(plan: Plan) -> Iterator[PlanWarning]:
    """Warnings about the latency target itself."""
    request = plan.request
    if request.latency is None:
        yield PlanWarning("no-latency-target", "no latency target: no alarms watch latency")
        return
    tightest, slowest = request.latency.tightest, request.latency.slowest
    if tightest is not None and tightest[1] < SHORT_TARGET_MS:
        yield PlanWarning(
            "short-latency-target",
            f"the target {tightest[0]} {milliseconds(tightest[1], 6)} leaves little beside the model: a change of "
            "zone and SageMaker's overhead come out of it, and AWS publishes no number for "
            "either. The alarm on OverheadLatency is a budget, not an observation: measure both, "
            "set the overhead share to what you find, and only then page somebody with it. Of routing "
            "AWS says that RANDOM may be quicker for such answers: low-latency compare-routing",
        )
    if slowest is not None and slowest[1] > request.response_limit_seconds * 1000:
        yield PlanWarning(
            "latency-above-response-limit",
            f"the target {slowest[0]} {plain_number(slowest[1] / 1000)} s is longer than the "
            f"{request.response_limit_seconds} s after which SageMaker ends the invocation",
        )
    if request.streams and not request.latency.of_tokens:
        yield PlanWarning(
            "streamed-first-token",
            "the responses are streamed: no CloudWatch metric of SageMaker's gives the time to the "
            "first token (FirstChunkLatency is documented for bidirectional streaming only); take "
            "it from the callers or the container's own metrics",
        )
    for name in request.latency.milliseconds if request.throughput and not request.is_rare else ():
        if name == "Average":
            continue
        assert request.throughput is not None
        beyond = (
            stated(request.throughput.peak_tps) * PERIOD_SECONDS * (100 - Fraction(name[1:])) / 100
        )
        if beyond < SAMPLES_BEYOND:
            yield PlanWarning(
                f"few-samples-{name}",
                f"even at peak only {plain_number(float(beyond), 2)} requests a minute lie beyond {name}: "
                "the alarm needs longer periods, or it follows single requests",
            )


def _fleet(plan: Plan) -> Iterator[PlanWarning]:
    request, fleet = plan.request, plan.fleet
    share = request.share
    if share is not None and share.endpoint and request.throughput is None:
        yield PlanWarning(
            "no-share",
            f"{share.variant} gets none of the requests but those that name it as TargetVariant: "
            f"its fleet of {fleet.initial} is assumed to hold them",
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
            "them, kept warm with warm_up.keep_warm, and no alarm watches latency, as a percentile "
            "would be that of a single call. Serverless inference, asynchronous inference and "
            "inference components that scale to zero cost nothing between calls; their first call waits",
        )
    elif request.throughput.safety_factor > HELD_SHARE:
        yield PlanWarning(
            "no-reserve",
            f"the safety factor lets the peak take up to {request.throughput.safety_factor:.0%} of the "
            f"measured limit, and {HELD_SHARE:.0%} count as held",
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
            f"{share.variant} on {request.serving.instance_type} is assumed to hold what an instance of "
            f"{share.measured_on} does: load-test one and state its tps_per_instance",
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
        f"late for about {round(jump_seconds(starts) / 60)} minutes ("
        f"{jump_seconds(starts) // 60 - starts // 60} until scaling decides, then the start)"
    )
    if measured.states_rises:
        fewest = fewest_for_rises(measured, starts)
        if fleet.minimum < fewest:
            yield PlanWarning(
                "minimum-below-rise",
                f"a minimum of {counted_instances(fleet.minimum)} holds {readable(held)} TPS until scaling has "
                f"followed; traffic that rises as stated asks for {fewest}, and "
                f"is {late} with fewer",
            )
    elif (kept := float(stated(HELD_SHARE) * stated(held))) < measured.peak_tps:
        enough = instances_for(measured.peak_tps, measured.tps_per_instance, HELD_SHARE)
        yield PlanWarning(
            "jumps-unknown",
            f"the minimum of {fleet.minimum} holds {readable(kept)} of {readable(measured.peak_tps)} TPS at "
            f"{HELD_SHARE:.0%} of its limit: a jump beyond that is {late}. State "
            "throughput.rise_tps_per_minute or from_tps, or raise the minimum, to "
            f"{enough} for a jump to the peak, with scaling.schedule where its hour is known",
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
            f"an instance loads {readable(request.serving.weight_bytes / 1e9, 3)} GB of weights: state "
            f"scaling.instance_start as you saw it; {plain_number(request.start_seconds / 60, 3)} minutes are assumed, "
            f"{plain_number(start_floor(request.serving.weight_bytes) / 60, 3)} are the least at 1 GB/s from S3 and into memory",
        )


def _few(plan: Plan) -> Iterator[PlanWarning]:
    """Fewer instances than client zones, at quiet hours or always: possible, and not resilient."""
    fewest, zones = plan.fewest, len(plan.request.client_zones)
    if fewest == 1:
        when = "one instance" if plan.largest_fleet == 1 else "down to one instance at quiet hours"
        yield PlanWarning(
            "one-instance",
            f"{when}: none stands in another zone, so an outage of the instance or of its zone is "
            "an outage of the endpoint until SageMaker has replaced it, which takes minutes. "
            "Enough for development; else a minimum of 2",
        )
    elif fewest < zones:
        yield PlanWarning(
            "zones-without-instance",
            f"{counted_instances(fewest)} for {zones} client zones at quiet hours: requests of a zone "
            "without one go to another zone; "
            f"a minimum of {zones}, or fewer client zones, avoids it",
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
            f"if a zone fails at peak, {plan.left_by_zone_outage} of "
            f"{counted_instances(plan.fleet.serving_at_peak)} remain ({readable(held)} of "
            f"{readable(measured.peak_tps)} TPS) until {replaced}: {float(load):.0%} of their limit, and "
            f"{HELD_SHARE:.0%} is safe; lower "
            f"the safety factor{lower} for {enough:,} instances, raise the minimum, or serve from "
            "more zones",
        )


def _requests(plan: Plan) -> Iterator[PlanWarning]:
    request = plan.request
    if plan.routing == "PREFIX_AWARE" and not request.is_generative:
        yield PlanWarning(
            "prefix-aware-unsure",
            "PREFIX_AWARE routing helps servers that keep a prompt's prefix in a cache; the "
            "images' names do not say that they are such",
        )
    if plan.routing == "PREFIX_AWARE" and plan.fewest < PREFIX_AWARE_INSTANCES:
        alone = "" if plan.largest_fleet == 1 else " at quiet hours"
        yield PlanWarning(
            "prefix-aware-one-instance",
            f"PREFIX_AWARE routing applies only when {PREFIX_AWARE_INSTANCES} or more instances can "
            f"serve a request, and there is one{alone}; a minimum of {PREFIX_AWARE_INSTANCES} avoids "
            "it",
        )
    if (request.payload_bytes or 0) > MODEL_BODY_BYTES:
        yield PlanWarning(
            "payload-above-api-model",
            f"a payload of {request.payload_bytes:,} bytes is above the {MODEL_BODY_BYTES:,} of "
            "the API's model, though below the 25 MB of the developer guide: try it before you "
            "rely on it",
        )
