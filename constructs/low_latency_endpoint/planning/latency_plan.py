"""From callers, target and throughput to every number of the endpoint, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .decisions import Decision, LatencyPlan, PlanWarning
from .deployments import guardrail_exclusions
from .images import AMI_SOURCE, cuda_words
from .instance_types import SOURCE as INSTANCE_TYPE_SOURCE
from .latency_target import LatencyTarget
from .plan_alarms import alarm_decisions, latency_warnings
from .plan_fleet import decide_fleet, outage_decision, scaling_decisions
from .plan_inputs import PlanInputs, checked_inputs
from .plan_paths import (
    caller_decisions,
    hop_decisions,
    network_decisions,
    routing_decision,
    warm_up_decision,
)
from .throughput import MeasuredThroughput

__all__ = [
    "Decision",
    "LatencyPlan",
    "LatencyTarget",
    "MeasuredThroughput",
    "PlanWarning",
    "make_plan",
]


def make_plan(
    *,
    client_zones: Sequence[str],
    instance_type: str,
    latency: LatencyTarget | None = None,
    throughput: MeasuredThroughput | None = None,
    images: Sequence[str] = (),
    inference_ami: str | None = None,
    routing: str | None = None,
    prefix_length: int | None = None,
    concurrency_threshold: int | None = None,
    min_instances: int | None = None,
    initial_instances: int | None = None,
    max_instances: int | None = None,
    scaling: bool = True,
    max_concurrency_per_instance: float | None = None,
    scale_out_cooldown: Any = None,
    scale_in_cooldown: Any = None,
    overhead_share: float | None = None,
    warm_up_requests: int | None = None,
    payload_bytes: int | None = None,
    streaming: bool = False,
    generative: bool | None = None,
) -> LatencyPlan:
    """Derive every number of a low-latency endpoint.

    Parameters
    ----------
    client_zones : sequence of str
        Zone IDs or zone names in which callers run; 2 to 16.
    instance_type : str
        The variant's instance type. One that the table does not know gives a warning.
    latency : LatencyTarget, optional
        What callers must see. Without it no alarms are planned.
    throughput : MeasuredThroughput, optional
        What a load test found. Without it the fleet is assumed, not derived, and does not scale.
    images : sequence of str
        Images of the containers, as URI or ``repository:tag``; checked against the type.
    inference_ami : str, optional
        The inference AMI version, when one is chosen. By default the one that CUDA 13 images
        need, else SageMaker's own.
    routing : str, optional
        Your routing strategy; by default the rule's. ``PREFIX_AWARE`` needs ``prefix_length`` and
        ``concurrency_threshold``.
    min_instances, initial_instances, max_instances : int, optional
        Your numbers; by default the rules'.
    scaling : bool
        Whether the number of instances follows the load, by default yes. Without, the fleet keeps
        its initial number, and neither metric nor target is planned.
    max_concurrency_per_instance : float, optional
        Scale on requests in flight per instance, at this target, instead of on invocations.
    scale_out_cooldown, scale_in_cooldown : Duration or timedelta, optional
        By default 60 s and 300 s.
    overhead_share : float, optional
        Share of the target kept for network and SageMaker's overhead, 0.01 to 0.9. By default 0.2.
    warm_up_requests : int, optional
        By default enough to reach every worker; 0 for none.
    payload_bytes : int, optional
        Size of the largest request, checked against AWS's limits.
    streaming : bool
        Whether responses are streamed.
    generative : bool, optional
        Whether answers differ much in length. By default read from the images' names.

    Raises
    ------
    ConfigurationError
        ``LLE1xx`` zones and subnets, ``LLE33x`` images, ``LLE4xx`` variant, ``LLE6xx`` scaling,
        ``LLE8xx`` the plan's own rules.

    Examples
    --------
    >>> from datetime import timedelta
    >>> plan = make_plan(
    ...     client_zones=["use1-az1", "use1-az2"], instance_type="ml.m5.12xlarge",
    ...     latency=LatencyTarget(p99=timedelta(milliseconds=200)),
    ...     throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65))
    >>> plan["instances_at_peak"].value, plan["scaling_target"].value
    (8, 7800.0)
    """
    inputs, warnings = checked_inputs(
        client_zones=client_zones, instance_type=instance_type, latency=latency,
        throughput=throughput, images=images, inference_ami=inference_ami, routing=routing,
        prefix_length=prefix_length, concurrency_threshold=concurrency_threshold,
        min_instances=min_instances, initial_instances=initial_instances,
        max_instances=max_instances, scaling=scaling,
        max_concurrency_per_instance=max_concurrency_per_instance,
        scale_out_cooldown=scale_out_cooldown, scale_in_cooldown=scale_in_cooldown,
        overhead_share=overhead_share, warm_up_requests=warm_up_requests,
        payload_bytes=payload_bytes, streaming=streaming, generative=generative,
    )
    fleet = decide_fleet(inputs)
    routed, routing_warnings = routing_decision(inputs)
    outage, outage_warnings = outage_decision(inputs, fleet)
    callers, caller_warnings = caller_decisions(inputs)
    decisions = (
        *network_decisions(inputs, fleet),
        *hop_decisions(inputs, fleet),
        _instance_decision(inputs),
        *_ami_decision(inputs),
        routed,
        *fleet.decisions,
        outage,
        *scaling_decisions(inputs, fleet),
        *alarm_decisions(inputs),
        warm_up_decision(inputs, fleet),
        *callers,
    )
    return LatencyPlan(decisions, (
        *latency_warnings(inputs), *fleet.warnings, *outage_warnings, *routing_warnings,
        *caller_warnings, *_deployment_warnings(inputs), *warnings,
    ))


def _instance_decision(inputs: PlanInputs) -> Decision:
    facts = inputs.facts
    known: dict[str, Any] = {}
    if facts:
        known = {"vCPUs": facts.vcpus, "memory in GiB": facts.memory_gib,
                 "architecture": facts.architecture}
        if facts.accelerator:
            known |= {"accelerators": f"{facts.accelerator_count} x {facts.accelerator_name}",
                      "accelerator memory in MiB": facts.accelerator_memory_mib}
    return Decision(
        name="instance_type", value=inputs.instance_type,
        rule="checked against the images' names" if inputs.images else
             "no image is named, so none is checked",
        inputs={name: value for name, value in known.items() if value is not None},
        source=INSTANCE_TYPE_SOURCE, overridden=True,
        note=f"CPUUtilization of one instance runs to {facts.vcpus * 100:,} percent, 100 for "
             "each vCPU" if facts and facts.vcpus else "",
    )


def _ami_decision(inputs: PlanInputs) -> Iterator[Decision]:
    """Only where one is chosen: SageMaker's own is nothing that a plan could name."""
    given, needed = inputs.inference_ami, inputs.needed_ami
    if given is None and needed is None:
        return
    note = ""
    if needed and given is None:
        note = ("taken over from SageMaker's SDK, not seen on AWS yet; AWS's own pages deploy such "
                "an image on ml.g6.2xlarge without it")
    elif needed and needed != given:
        note = f"SageMaker's SDK would choose {needed}"
    family = inputs.facts.family if inputs.facts else None
    known = {"CUDA of the images": cuda_words(inputs.images), "instance family": family}
    yield Decision(
        name="inference_ami", value=given or needed,
        rule="the driver that CUDA 13 images need, where SageMaker's own may be older: then the "
             "container ends before it can log",
        inputs={name: value for name, value in known.items() if value},
        source=AMI_SOURCE, overridden=given is not None, note=note,
    )


def _deployment_warnings(inputs: PlanInputs) -> list[PlanWarning]:
    family = inputs.facts.family if inputs.facts else ""
    return [
        PlanWarning(f"guardrails-{exclusion.condition}",
                    f"{inputs.instance_type}, deployment guardrails: {exclusion.effect}")
        for exclusion in guardrail_exclusions(family=family)
    ]
