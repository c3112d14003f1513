"""Why each number of a plan is what it is: decisions that point at the plan, for people."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from ..errors import AWS_DOCS
from ..facts import subnets
from ..facts.images import AMI_SOURCE, cuda_words
from ..facts.instance_types import SOURCE as INSTANCE_TYPE_SOURCE
from ..facts.limits import LARGEST_BODY_BYTES, MODEL_BODY_BYTES
from ..facts.metrics import metric_facts
from ..options.capacity import HELD_SHARE, instances_at_peak, stated
from ..report.numbers import milliseconds, plain_number, readable
from .decisions import Decision, Explanation, alarm_name
from .endpoint_request import EndpointRequest
from .hub_explanation import explain_hub_model
from .plan import (
    CONCURRENCY_METRIC,
    HEADROOM,
    INVOCATIONS_METRIC,
    WARM_UP_MISS,
    WARM_UP_MOST,
    Plan,
    ScalingPolicy,
)
from .plan_warnings import warnings_of
from .scaling_pace import fewest_for_rises, rise_seconds
from .summary import summary_of
from .token_explanations import (
    WHOLE_CALLS_OF_STREAMS,
    cache_note,
    explain_in_flight,
    explain_token_alarms,
    explain_tokens,
    prefix_note,
)
from .variant_shares import AB_TESTING, SHADOWS

IDLE_TIMEOUT_SECONDS = 350  # PrivateLink, fixed
DEFAULT_POOL = 10  # botocore's max_pool_connections

_GUIDE = AWS_DOCS + "/sagemaker/latest/dg/"
_HOST_VPC = _GUIDE + "host-vpc.html"
_PRIVATELINK = _GUIDE + "realtime-endpoints-privatelink.html"
_OPTIONS = _GUIDE + "deploy-model-options.html"
_LOAD_TEST = _GUIDE + "endpoint-scaling-loadtest.html"
_POLICY = _GUIDE + "endpoint-auto-scaling-policy.html"
_CONCURRENCY = _GUIDE + "endpoint-auto-scaling-add-code-define.html"
_SCHEDULED = (
    AWS_DOCS + "/autoscaling/application/userguide/scheduled-scaling-using-cron-expressions.html"
)
_STEPS = AWS_DOCS + "/autoscaling/application/userguide/step-scaling-policy-overview.html"
_PRACTICES = _GUIDE + "deployment-best-practices.html"
_MONITORING = _GUIDE + "monitoring-cloudwatch.html"
_INVOKE = AWS_DOCS + "/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"
_SIZING = AWS_DOCS + "/vpc/latest/userguide/subnet-sizing.html"
_COLD = "https://repost.aws/knowledge-center/sagemaker-endpoint-latency"
_IDLE = (
    "https://aws.amazon.com/blogs/networking-and-content-delivery/"
    "implementing-long-running-tcp-connections-within-vpc-networking/"
)


_UNSCALED = "scaling is off: nothing changes the number of instances"


def explanation_of(plan: Plan) -> Explanation:
    """The decisions of a plan, in the order in which a reader needs them, and its warnings."""
    return Explanation(
        (
            *_network(plan),
            _instance_type(plan.request),
            *explain_hub_model(plan.request.serving.hub),
            *_ami(plan),
            _routing(plan),
            *_share(plan.request),
            *_fleet(plan),
            *explain_tokens(plan),
            *_scaling(plan),
            *_alarms(plan),
            *explain_token_alarms(plan),
            _warm_up(plan),
            *_callers(plan),
        ),
        tuple(warnings_of(plan)),
        summary_of(plan),
    )


def _network(plan: Plan) -> Iterator[Decision]:
    """Subnets, their size, and the expected changes of zone."""
    zones = plan.request.client_zones
    yield Decision(
        name="subnets",
        value=list(zones),
        rule="one subnet in each client zone, the same for the interface endpoint and the model; "
        "at least two zones",
        inputs={"client zones": len(zones)},
        source=_HOST_VPC,
    )
    yield Decision(
        name="addresses_per_subnet",
        value=plan.addresses_per_subnet,
        unit="addresses",
        rule="addresses of an instance x the maximum x fleets (a blue/green update runs two), all "
        "possibly in one zone; those that AWS keeps, the interface endpoint's, and a spare",
        inputs={
            "addresses of an instance": subnets.ADDRESSES_PER_INSTANCE,
            "maximum instances": plan.most,
            "fleets": subnets.FLEETS,
            "that AWS keeps": subnets.RESERVED_ADDRESSES,
            "interface endpoint's": subnets.INTERFACE_ENDPOINT_ADDRESSES,
            "spare": subnets.SPARE_ADDRESSES,
        },
        source=_HOST_VPC,
    )
    yield Decision(
        name="subnet_size",
        value=f"/{plan.subnet_prefix_length}",
        rule="the smallest block with that many addresses, but no smaller than a /24: another "
        "size later would replace the subnets and all that is in them",
        inputs={"addresses": plan.addresses_per_subnet},
        source=_SIZING,
    )
    yield Decision(
        name="zone_hops_caller_to_interface_endpoint",
        value="0 to 1",
        unit="hops",
        rule="an interface endpoint in every client zone; by SageMaker's page private DNS answers "
        "with the caller's own zone, by PrivateLink's general page round robin",
        inputs={"client zones": len(zones)},
        source=_PRIVATELINK,
        note="not seen on AWS: check what the name resolves to in each zone; the zonal DNS names "
        "hold callers to a zone in any case",
    )
    yield Decision(
        name="zone_hops_interface_endpoint_to_instance",
        value="0 to 1",
        unit="hops",
        rule="an instance in every client zone; AWS says that private DNS keeps an invocation in "
        "its zone, but not whether the routing strategy prefers it",
        inputs={"minimum instances": plan.fleet.minimum, "client zones": len(zones)},
        source=_PRIVATELINK,
        note=f"if routing takes no account of zones, {1 - 1 / len(zones):.0%} of the requests "
        "change zone",
    )


def _instance_type(request: EndpointRequest) -> Decision:
    facts = request.serving.facts
    known: dict[str, Any] = {}
    if facts:
        known = {
            "vCPUs": facts.vcpus,
            "memory in GiB": facts.memory_gib,
            "architecture": facts.architecture,
        }
        if facts.accelerator:
            known |= {
                "accelerators": f"{facts.accelerator_count} x {facts.accelerator_name}",
                "accelerator memory in MiB": facts.accelerator_memory_mib,
            }
    return Decision(
        name="instance_type",
        value=request.serving.instance_type,
        rule=(_OF_POOLS if request.serving.instance_pools else "")
        + (
            "checked against the images' names"
            if request.serving.images
            else "no image is named, so none is checked"
        ),
        inputs=_pools(request)
        | {name: value for name, value in known.items() if value is not None},
        source=INSTANCE_TYPE_SOURCE,
        overridden=True,
        note=f"CPUUtilization of one instance runs to {facts.vcpus * 100:,} percent, 100 for "
        "each vCPU"
        if facts and facts.vcpus
        else "",
    )


_OF_POOLS = (
    "the slowest of the instance pools: every number is sized for it, since all instances may be "
    "of that type; all of them "
)


def _pools(request: EndpointRequest) -> dict[str, Any]:
    """The pools in the order in which they are tried."""
    pools = sorted(request.serving.instance_pools, key=lambda each: each.priority)
    return {"pools": [each.text for each in pools]} if pools else {}


def _ami(plan: Plan) -> Iterator[Decision]:
    """Only where one is chosen: SageMaker's own is nothing that a plan could name."""
    if plan.inference_ami is None:
        return
    given, needed = plan.request.serving.inference_ami, plan.request.serving.needed_ami
    note = ""
    if needed and given is None:
        note = (
            "taken over from SageMaker's SDK, not seen on AWS yet; AWS's own pages deploy such "
            "an image on ml.g6.2xlarge without it"
        )
    elif needed and needed != given:
        note = f"SageMaker's SDK would choose {needed}"
    facts = plan.request.serving.facts
    known = {
        "CUDA of the images": cuda_words(plan.request.serving.images),
        "instance family": facts.family if facts else None,
    }
    yield Decision(
        name="inference_ami",
        value=plan.inference_ami,
        rule="the driver that CUDA 13 images need, where SageMaker's own may be older: then the "
        "container ends before it can log",
        inputs={name: value for name, value in known.items() if value},
        source=AMI_SOURCE,
        overridden=given is not None,
        note=note,
    )


def _routing(plan: Plan) -> Decision:
    request, advice = plan.request, plan.routing_advice
    notes = [advice.reason]
    if plan.routing != advice.value:
        notes = [f"the rule would give {advice.value}: {advice.reason}"]
    if request.is_generative and (text := prefix_note(plan)):
        notes.append(text)
    return Decision(
        name="routing_strategy",
        value=plan.routing,
        rule="LEAST_OUTSTANDING_REQUESTS, which sends no request to a busy instance while another "
        "is idle",
        inputs={"generative": request.is_generative},
        source=advice.source,
        overridden=request.routing is not None,
        note="; ".join(notes),
    )


def _share(request: EndpointRequest) -> Iterator[Decision]:
    """Only of several variants: which part of the endpoint's traffic this one gets."""
    share = request.share
    if share is None:
        return
    inputs: dict[str, Any] = {"variant": share.variant, "weight": share.weight}
    if share.endpoint is not None:
        inputs["the endpoint's peak TPS"] = share.endpoint.peak_tps
    if share.shadow:
        yield Decision(
            name="copied_requests",
            value=float(share.fraction * 100),
            unit="%",
            rule="the shadow's weight over the production variant's, at most all requests",
            inputs=inputs | {"the production variant's weight": share.of},
            source=SHADOWS,
            overridden=True,
            note="AWS shows equal weights, and does not write down what others do: not seen on AWS",
        )
        return
    yield Decision(
        name="share_of_requests",
        value=float(share.fraction * 100),
        unit="%",
        rule="the variant's weight over those of all production variants",
        inputs=inputs | {"all weights": share.of},
        source=AB_TESTING,
        overridden=True,
        note="calls that name a TargetVariant come on top: they follow no weight",
    )


def _fleet(plan: Plan) -> Iterator[Decision]:
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
            "minimum": fleet.minimum,
            "maximum": fleet.maximum,
        },
        overridden=request.instances.initial is not None,
    )
    yield _max_instances(plan)
    zones, measured = len(request.client_zones), request.throughput
    held = plan.tps_after_zone_outage
    yield Decision(
        name="instances_left_by_zone_outage",
        value=plan.left_by_zone_outage,
        unit="instances",
        rule="the instances at peak, less those of the fullest zone when they are spread evenly",
        inputs={
            "instances at peak": fleet.serving_at_peak,
            "client zones": zones,
            "lost": plan.lost_with_a_zone,
        },
        source=_PRACTICES,
        note=f"they hold {readable(held)} of {readable(measured.peak_tps)} TPS at the measured limit"
        if measured and held is not None
        else "",
    )


def _instances_at_peak(plan: Plan) -> Decision:
    fleet, measured = plan.fleet, plan.request.throughput
    zones = len(plan.request.client_zones)
    if measured:
        saturated = instances_at_peak(measured.peak_tps, measured.tps_per_instance, 1, zones)
        return Decision(
            name="instances_at_peak",
            value=fleet.at_peak,
            unit="instances",
            rule="peak TPS / (TPS per instance x safety factor), rounded up; at least one per "
            "client zone and at least two, unless fewer are stated",
            inputs={
                "peak TPS": measured.peak_tps,
                "TPS per instance": measured.tps_per_instance,
                "safety factor": measured.safety_factor,
                "client zones": zones,
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


def _min_instances(plan: Plan) -> Decision:
    request, fleet, measured = plan.request, plan.fleet, plan.request.throughput
    zones = len(request.client_zones)
    unscaled = "" if request.scaling.enabled else _UNSCALED
    return Decision(
        name="min_instances",
        value=fleet.minimum,
        unit="instances",
        rule="the initial instances"
        if unscaled
        else "one per client zone and at least two, so that no zone is without at quiet hours"
        + (
            "; and what bridges the time until scaling has followed: of a rise what comes in its lag (2.5 "
            "minutes and two starts) / what the safety factor leaves of an instance, and no more than "
            "of a jump, peak TPS / (TPS per instance x the share that counts as held), which is nothing "
            "where as many are kept before it"
            if measured and measured.states_rises
            else ""
        ),
        inputs={"initial instances": fleet.initial}
        if unscaled
        else {"client zones": zones} | _rises(request),
        source=_PRACTICES,
        overridden=request.instances.min is not None,
        note=unscaled
        or (
            ""
            if request.serving.burstable_types
            else "at a known hour scaling.schedule raises it for that time alone"
            if measured and measured.from_tps is not None
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
        note=(f"{fixed}; " if fixed else "")
        + "your account's quota for the type must allow twice this during a blue/green update",
    )


def _scaling(plan: Plan) -> Iterator[Decision]:
    """Scaling metric, target and cooldowns; the metric is None, and no more, without a policy."""
    given, scaling = plan.request.scaling, plan.scaling
    yield _scaling_metric(plan)
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
    for number, each in enumerate(given.schedule, 1):
        yield Decision(
            name=f"scheduled_range_{number}",
            value=each.text,
            rule="your range at set times; it stays until another one changes it",
            inputs={"name": each.name, "when": each.expression, "in": each.time_zone or "UTC"},
            source=_SCHEDULED,
            overridden=True,
        )
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
        return Decision(
            name="scaling_target",
            value=scaling.target,
            unit="invocations per instance per minute",
            rule="your number: the invocations per minute that scaling keeps one instance at",
            source=_LOAD_TEST,
            overridden=True,
            note=f"from the measured throughput it would be {readable(planned)}" if planned else "",
        )
    if by_invocations:
        assert measured is not None
        return Decision(
            name="scaling_target",
            value=scaling.target,
            unit="invocations per instance per minute",
            rule="TPS per instance x safety factor x 60",
            inputs={
                "TPS per instance": measured.tps_per_instance,
                "safety factor": measured.safety_factor,
            },
            source=_LOAD_TEST,
            note="at saturation the target would be "
            + readable(float(stated(measured.tps_per_instance) * 60)),
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


def _alarms(plan: Plan) -> Iterator[Decision]:
    """One threshold per metric and statistic, in milliseconds, never above the target."""
    tightest = plan.request.latency.tightest if plan.request.latency else None
    for each in plan.alarms:
        if each.metric == "ModelLatency":
            rule = (
                "the target less the share kept for network and SageMaker's overhead, on the "
                "statistic of the target"
            )
            note = "AWS publishes no usual overhead: once measured, set the share to it"
            if plan.request.of_tokens:
                note = f"{WHOLE_CALLS_OF_STREAMS}, and answers differ in length; {note}"
        else:
            assert tightest is not None
            rule = (
                "the share of the tightest target kept for network and overhead; on the "
                "average, because no percentiles are listed as valid for this metric"
            )
            note = f"from {tightest[0]}; the callers' network is in no metric of SageMaker's"
        yield Decision(
            name=alarm_name(each.metric, each.statistic),
            value=each.milliseconds,
            unit="ms",
            rule=rule,
            inputs={
                "metric": each.metric,
                "statistic": each.statistic,
                "target in ms": each.target,
                "share": each.share,
                f"threshold in {metric_facts(each.metric).unit.lower()}": each.microseconds,
            },
            source=_MONITORING,
            overridden=plan.request.overhead_share is not None,
            note=note,
        )


def _warm_up(plan: Plan) -> Decision:
    kind, workers = plan.request.serving.workers
    share = plan.request.share
    of_share = {} if share is None else {"share": share.text}
    return Decision(
        name="warm_up_requests",
        value=plan.warm_up_requests,
        unit="requests",
        rule=f"one worker per {kind}, and SageMaker picks at random: so many that all workers get "
        f"one with {1 - 1 / WARM_UP_MISS:.1%} probability, and at most "
        f"{WARM_UP_MOST:,}" + (_OF_SHARE if share else ""),
        inputs={"workers per instance": workers, "initial instances": plan.fleet.initial}
        | of_share,
        source=_COLD,
        overridden=plan.request.warm_up_requests is not None,
        note="sent after a deploy; instances that scaling adds later meet callers cold",
    )


_OF_SHARE = (
    "; as many more as a share is smaller than all requests, and the endpoint gets the most that a "
    "variant asks for; none for a shadow, which gets copies, nor for a weight of 0"
)


def _callers(plan: Plan) -> Iterator[Decision]:
    """Keep-alive, connections, payload and response time: what callers must know."""
    request = plan.request
    yield Decision(
        name="caller_keepalive",
        value=plan.caller_keepalive_seconds,
        unit="seconds",
        rule=f"TCP keep-alive well before PrivateLink drops an idle connection at "
        f"{IDLE_TIMEOUT_SECONDS} s; a few probes may be lost",
        inputs={"idle timeout in seconds": IDLE_TIMEOUT_SECONDS},
        source=_IDLE,
        note="with boto3: Config(tcp_keepalive=True), and TCP_KEEPIDLE (or "
        "net.ipv4.tcp_keepalive_time) on the socket: Linux waits 7,200 s by default",
    )
    measured = request.endpoint_throughput
    slowest = request.latency.slowest if request.latency else None
    if measured and plan.caller_connections is not None:
        taken = (
            {slowest[0]: milliseconds(slowest[1], 6)}
            if slowest
            else {
                "call at the targets": f"{readable(plan.tokens.call_seconds if plan.tokens else None)} s"
            }
        )
        yield Decision(
            name="caller_connections",
            value=plan.caller_connections,
            unit="connections",
            rule=f"peak TPS x {'the slowest target' if slowest else 'how long a call takes'}: the "
            "requests in flight at the peak, of all callers; a connection carries one at a time",
            inputs={"peak TPS": measured.peak_tps, **taken},
            note="split it over the processes that call and set max_pool_connections to each "
            f"one's share; boto3's default is {DEFAULT_POOL}, and what does not fit opens "
            "a new TLS connection per request",
        )
    yield Decision(
        name="payload_limit",
        value=MODEL_BODY_BYTES,
        unit="bytes",
        rule="the API's maximum for a request body; the developer guide says 25 MB",
        inputs={} if request.payload_bytes is None else {"payload in bytes": request.payload_bytes},
        source=_INVOKE,
        note=f"AWS's pages disagree: above this a warning, above {LARGEST_BODY_BYTES:,} bytes an "
        "error. Overhead grows with request and response",
    )
    yield Decision(
        name="response_time_limit",
        value=request.response_limit_seconds,
        unit="seconds",
        rule="SageMaker ends an invocation after 60 s, a streamed response after 8 minutes",
        inputs={"streaming": request.streams},
        source=_OPTIONS,
    )


def _rises(request: EndpointRequest) -> dict[str, Any]:
    """The rises of traffic that are stated, and what they ask for."""
    measured, starts = request.throughput, request.start_seconds
    if measured is None or not measured.states_rises:
        return {}
    told: dict[str, Any] = {
        "peak TPS": measured.peak_tps,
        "TPS per instance": measured.tps_per_instance,
        "safety factor": measured.safety_factor,
        "share that counts as held": HELD_SHARE,
    }
    limit, share = measured.tps_per_instance, measured.safety_factor
    if measured.from_tps is not None:
        told["jumps from TPS"] = measured.from_tps
        held = limit * HELD_SHARE
        worked = f"{plain_number(measured.peak_tps)} / ({plain_number(limit)} x {plain_number(HELD_SHARE)}) = {plain_number(measured.peak_tps / held, 3)}"
    else:
        rise, lag = measured.rise_tps_per_minute or 0, rise_seconds(starts) / 60
        told |= {"rise in TPS per minute": rise, "an instance's start in seconds": starts}
        told["scaling's lag in minutes"] = lag
        free = limit * (1 - share)
        worked = f"{plain_number(rise)} x {plain_number(lag)} / ({plain_number(limit)} x (1 - {plain_number(share)}))"
        worked += f" = {plain_number(rise * lag / free, 3)}" if free else ""
    return told | {"worked out": worked, "for the rise": fewest_for_rises(measured, starts)}
