"""Why each number of a plan is what it is: decisions that point at the plan, for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import AWS_DOCS
from ..facts.instance_types import SOURCE as INSTANCE_TYPE_SOURCE
from ..facts.limits import LARGEST_BODY_BYTES, MODEL_BODY_BYTES
from .alarm_thresholds import explain_errors_and_slow_requests
from .decisions import Decision, Explanation
from .endpoint_decisions import HOST_VPC
from .endpoint_request import EndpointRequest
from .fleet_explanations import explain_fleet, explain_scaling
from .floor_explanations import explain_floors
from .hub_serving import explain_hub_model
from .plan import KEEPALIVE_SECONDS, Plan
from .plan_warnings import warnings_of
from .private_dns import zone_hops
from .summary import summary_of
from .variant_shares import AB_TESTING, SHADOWS

IDLE_TIMEOUT_SECONDS = 350  # PrivateLink, fixed

_GUIDE = AWS_DOCS + "/sagemaker/latest/dg/"
_OPTIONS = _GUIDE + "deploy-model-options.html"
_INVOKE = AWS_DOCS + "/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"
_IDLE = (
    "https://aws.amazon.com/blogs/networking-and-content-delivery/"
    "implementing-long-running-tcp-connections-within-vpc-networking/"
)


def explanation_of(plan: Plan) -> Explanation:
    """The decisions of a plan, in the order in which a reader needs them, and its warnings."""
    return Explanation(
        (
            *_network(plan),
            _instance_type(plan.request),
            *explain_hub_model(plan.request.serving.hub),
            *explain_floors(plan),
            *filter(None, [plan.inference_ami]),
            _routing(plan),
            *_share(plan.request),
            *explain_fleet(plan),
            *(plan.tokens.decisions if plan.tokens else ()),
            *explain_scaling(plan),
            *(alarm.decision for alarm in plan.alarms),
            *explain_errors_and_slow_requests(plan.request),
            *(threshold.decision for threshold in plan.watched_thresholds),
            plan.warm_up,
            *_callers(plan),
        ),
        tuple(warnings_of(plan)),
        summary_of(plan),
    )


def _network(plan: Plan) -> Iterator[Decision[Any]]:
    """Subnets, their size, and the expected changes of zone."""
    zones = plan.request.client_zones
    yield Decision(
        name="subnets",
        value=list(zones),
        rule="one subnet in each client zone, the same for the interface endpoint and the model; "
        "at least two zones",
        inputs={"client zones": len(zones)},
        source=HOST_VPC,
    )
    yield plan.addresses
    yield plan.subnet_size
    yield from zone_hops(plan)


def _instance_type(request: EndpointRequest) -> Decision[Any]:
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
    "the slowest of the instance pools: every number but the cost is sized for it, since all "
    "instances may be of that type; all of them "
)


def _pools(request: EndpointRequest) -> dict[str, Any]:
    """The pools in the order in which they are tried."""
    pools = sorted(request.serving.instance_pools, key=lambda pool: pool.priority)
    return {"pools": [pool.text for pool in pools]} if pools else {}


def _routing(plan: Plan) -> Decision[Any]:
    request, advice = plan.request, plan.routing_advice
    notes = [advice.reason]
    if plan.routing != advice.value:
        notes = [f"the rule would give {advice.value}: {advice.reason}"]
    if request.is_generative and (text := _prefix_note(plan)):
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


def _prefix_note(plan: Plan) -> str:
    """What is known of PREFIX_AWARE for these prompts; empty where it is chosen."""
    if plan.routing == "PREFIX_AWARE":
        return ""
    traffic = plan.request.tokens
    if traffic is None or not traffic.shared_prefix:
        return "where prompts share a long beginning, measure PREFIX_AWARE as well"
    shared = round(traffic.shared_prefix * traffic.mean_input)
    return (
        f"about {shared:,} tokens of a prompt are shared: a beginning that all requests have is in "
        "every instance's cache under any routing; with many of them (tenants, documents, "
        "conversations) PREFIX_AWARE keeps each on few instances. AWS publishes no figure for it: "
        "low-latency compare-routing measures both"
    )


def _share(request: EndpointRequest) -> Iterator[Decision[Any]]:
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


def _payload(request: EndpointRequest) -> dict[str, Any]:
    """The size of the callers' requests, and whether it is assumed."""
    size = request.request_size
    if size is None:
        return {}
    name = "payload in bytes, as the warm-up's" if size.assumed else "payload in bytes"
    return {name: size.size}


def _callers(plan: Plan) -> Iterator[Decision[Any]]:
    """Keep-alive, connections, payload and response time: what callers must know."""
    request = plan.request
    yield Decision(
        name="caller_keepalive",
        value=KEEPALIVE_SECONDS,
        unit="seconds",
        rule=f"TCP keep-alive well before PrivateLink drops an idle connection at "
        f"{IDLE_TIMEOUT_SECONDS} s; a few probes may be lost",
        inputs={"idle timeout in seconds": IDLE_TIMEOUT_SECONDS},
        source=_IDLE,
        note="with boto3: Config(tcp_keepalive=True), and TCP_KEEPIDLE (or "
        "net.ipv4.tcp_keepalive_time) on the socket: Linux waits 7,200 s by default",
    )
    if plan.connections is not None:
        yield plan.connections
    yield Decision(
        name="payload_limit",
        value=MODEL_BODY_BYTES,
        unit="bytes",
        rule="the API's maximum for a request body; the developer guide says 25 MB",
        inputs=_payload(request),
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
