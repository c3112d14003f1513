"""Decisions about the path of a request: subnets, zone hops, routing, payload, callers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from ..errors import AWS_DOCS
from .capacity import stated
from .decisions import Decision, PlanWarning
from .plan_fleet import Fleet
from .plan_inputs import LARGEST_BODY_BYTES, MODEL_BODY_BYTES, PlanInputs
from .routing import recommend_routing
from .subnets import SPARE_ADDRESSES, addresses_per_subnet, roomy_prefix_length

__all__ = ["caller_decisions", "hop_decisions", "network_decisions", "routing_decision",
           "warm_up_decision"]

IDLE_TIMEOUT_SECONDS = 350  # PrivateLink, fixed
KEEPALIVE_SECONDS = 60
DEFAULT_POOL = 10  # botocore's max_pool_connections
WARM_UP_MOST = 10_000
WARM_UP_MISS = 1000  # one chance in this many that a worker stays cold

_HOST_VPC = AWS_DOCS + "/sagemaker/latest/dg/host-vpc.html"
_PRIVATELINK = AWS_DOCS + "/sagemaker/latest/dg/realtime-endpoints-privatelink.html"
_OPTIONS = AWS_DOCS + "/sagemaker/latest/dg/deploy-model-options.html"
_INVOKE = AWS_DOCS + "/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"
_IDLE = ("https://aws.amazon.com/blogs/networking-and-content-delivery/"
         "implementing-long-running-tcp-connections-within-vpc-networking/")
_COLD = "https://repost.aws/knowledge-center/sagemaker-endpoint-latency"


def network_decisions(inputs: PlanInputs, fleet: Fleet) -> Iterator[Decision]:
    """Subnets and their size."""
    yield Decision(
        name="subnets", value=list(inputs.zones),
        rule="one subnet in each client zone, the same for the interface endpoint and the model; "
             "at least two zones",
        inputs={"client zones": len(inputs.zones)}, source=_HOST_VPC,
    )
    addresses = addresses_per_subnet(fleet.maximum)
    yield Decision(
        name="addresses_per_subnet", value=addresses, unit="addresses",
        rule="two per instance, for twice the maximum (a blue/green update runs two fleets), all "
             "possibly in one zone; AWS's five, one for the interface endpoint, and a spare",
        inputs={"maximum instances": fleet.maximum, "spare": SPARE_ADDRESSES}, source=_HOST_VPC,
    )
    prefix_length = roomy_prefix_length(addresses)
    yield Decision(
        name="subnet_size", value=f"/{prefix_length}",
        rule="the smallest block with that many addresses, but no smaller than a /24: another "
             "size later would replace the subnets and all that is in them",
        inputs={"addresses": addresses},
        source=AWS_DOCS + "/vpc/latest/userguide/subnet-sizing.html",
    )


def routing_decision(inputs: PlanInputs) -> tuple[Decision, list[PlanWarning]]:
    """The routing strategy."""
    typical = inputs.latency.typical if inputs.latency else None
    advice = recommend_routing(typical[1] if typical else None, generative=inputs.generative)
    notes = [advice.reason]
    warnings = []
    if inputs.routing and inputs.routing != advice.value:
        notes = [f"the rule would give {advice.value}: {advice.reason}"]
    if inputs.generative and inputs.routing != "PREFIX_AWARE":
        notes.append("where prompts share a long beginning, measure PREFIX_AWARE as well")
    if inputs.routing == "PREFIX_AWARE" and not inputs.generative:
        warnings.append(PlanWarning(
            "prefix-aware-unsure",
            "PREFIX_AWARE routing helps servers that keep a prompt's prefix in a cache; the "
            "images' names do not say that they are such",
        ))
    return Decision(
        name="routing_strategy", value=inputs.routing or advice.value,
        rule="responses of hundreds of milliseconds or more, or of uneven length: "
             "LEAST_OUTSTANDING_REQUESTS; shorter: RANDOM",
        inputs={"response time": f"{typical[0]} {typical[1]:g} ms" if typical else "unknown",
                "generative": inputs.generative},
        source=advice.source, overridden=inputs.routing is not None, note="; ".join(notes),
    ), warnings


def hop_decisions(inputs: PlanInputs, fleet: Fleet) -> Iterator[Decision]:
    """Expected changes of zone on each path."""
    yield Decision(
        name="zone_hops_caller_to_interface_endpoint", value=0, unit="hops",
        rule="an interface endpoint in every client zone, with private DNS that answers with the "
             "caller's own zone",
        inputs={"client zones": len(inputs.zones)}, source=_PRIVATELINK,
        note="stated by SageMaker's page; PrivateLink's general page speaks of round robin. Check "
             "what the name resolves to in each zone; the zonal DNS names hold callers to a zone "
             "in any case",
    )
    yield Decision(
        name="zone_hops_interface_endpoint_to_instance", value="0 to 1", unit="hops",
        rule="an instance in every client zone; AWS says that private DNS keeps an invocation in "
             "its zone, but not whether the routing strategy prefers it",
        inputs={"minimum instances": fleet.minimum, "client zones": len(inputs.zones)},
        source=_PRIVATELINK,
        note="if routing takes no account of zones, "
             f"{1 - 1 / len(inputs.zones):.0%} of the requests change zone",
    )


def warm_up_decision(inputs: PlanInputs, fleet: Fleet) -> Decision:
    """Requests that touch every worker of the first fleet before callers do."""
    facts = inputs.facts
    kind, workers = next(
        (
            (kind, count)
            for kind, count in (
                ("Neuron core", facts.neuron_cores),
                ("accelerator", facts.accelerator_count),
                ("vCPU", facts.vcpus),
            )
            if count
        ),
        ("instance", 1),
    ) if facts else ("instance", 1)
    places = workers * fleet.initial
    derived = min(math.ceil(places * (math.log(places) + math.log(WARM_UP_MISS))), WARM_UP_MOST)
    chosen = derived if inputs.warm_up_requests is None else inputs.warm_up_requests
    return Decision(
        name="warm_up_requests", value=chosen, unit="requests",
        rule=f"one worker per {kind}: enough random draws to reach each of n workers but for one "
             f"chance in {WARM_UP_MISS:,}, n x ln({WARM_UP_MISS:,} n), and at most "
             f"{WARM_UP_MOST:,}",
        inputs={"workers per instance": workers, "initial instances": fleet.initial},
        source=_COLD, overridden=inputs.warm_up_requests is not None,
        note="sent after a deploy; instances that scaling adds later meet callers cold",
    )


def caller_decisions(inputs: PlanInputs) -> tuple[list[Decision], list[PlanWarning]]:
    """Keep-alive, connections, payload and response time: what callers must know."""
    decisions, warnings = [], []
    decisions.append(Decision(
        name="caller_keepalive", value=KEEPALIVE_SECONDS, unit="seconds",
        rule=f"TCP keep-alive well before PrivateLink drops an idle connection at "
             f"{IDLE_TIMEOUT_SECONDS} s; a few probes may be lost",
        inputs={"idle timeout in seconds": IDLE_TIMEOUT_SECONDS}, source=_IDLE,
        note="with boto3: Config(tcp_keepalive=True), and TCP_KEEPIDLE (or "
             "net.ipv4.tcp_keepalive_time) on the socket: Linux waits 7,200 s by default",
    ))
    if inputs.throughput and inputs.latency:
        statistic, slowest = inputs.latency.slowest
        seconds = min(stated(slowest) / 1000, Fraction(inputs.response_limit_seconds))
        connections = math.ceil(stated(inputs.throughput.peak_tps) * seconds)
        decisions.append(Decision(
            name="caller_connections", value=connections, unit="connections",
            rule="requests in flight at peak, over all callers: peak TPS x the slowest target "
                 "(Little's law); a connection carries one request at a time",
            inputs={"peak TPS": inputs.throughput.peak_tps, statistic: f"{slowest:g} ms"},
            note="split it over the processes that call and set max_pool_connections to each "
                 f"one's share; boto3's default is {DEFAULT_POOL}, and what does not fit opens "
                 "a new TLS connection per request",
        ))
    decisions.append(Decision(
        name="payload_limit", value=MODEL_BODY_BYTES, unit="bytes",
        rule="the API's maximum for a request body; the developer guide says 25 MB",
        inputs={} if inputs.payload_bytes is None else {"payload in bytes": inputs.payload_bytes},
        source=_INVOKE,
        note=f"AWS's pages disagree: above this a warning, above {LARGEST_BODY_BYTES:,} bytes an "
             "error. Overhead grows with request and response",
    ))
    if (inputs.payload_bytes or 0) > MODEL_BODY_BYTES:
        warnings.append(PlanWarning(
            "payload-above-api-model",
            f"a payload of {inputs.payload_bytes:,} bytes is above the {MODEL_BODY_BYTES:,} of the "
            "API's model, though below the 25 MB of the developer guide: try it before you rely "
            "on it",
        ))
    decisions.append(Decision(
        name="response_time_limit", value=inputs.response_limit_seconds, unit="seconds",
        rule="SageMaker ends an invocation after 60 s, a streamed response after 8 minutes",
        inputs={"streaming": inputs.streaming}, source=_OPTIONS,
    ))
    return decisions, warnings
