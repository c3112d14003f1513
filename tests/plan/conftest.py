"""What the planning tests share."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from low_latency_endpoint.options.scaling import InstanceCounts, ScalingOptions
from low_latency_endpoint.plan.endpoint_request import EndpointRequest
from low_latency_endpoint.plan.latency_plan import make_plan
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.serving import Serving

_SCALING = {each.name for each in fields(ScalingOptions)}
_SERVING = {each.name for each in fields(Serving)}


def planned(**given: Any) -> Plan:
    """The plan of a request whose counts and scaling options stand among the rest."""
    scaling = {name: given.pop(name) for name in _SCALING & given.keys()}
    counts = {
        name: given.pop(f"{name}_instances")
        for name in ("min", "initial", "max")
        if f"{name}_instances" in given
    }
    if scaling.get("concurrency_target") is not None:
        scaling.setdefault("metric", "concurrency")
    return make_plan(
        requested(instances=InstanceCounts(**counts), scaling=ScalingOptions(**scaling), **given)
    )


def requested(**given: Any) -> EndpointRequest:
    """A request whose instance types and images stand among the rest."""
    serving = {name: given.pop(name) for name in _SERVING & given.keys()}
    return EndpointRequest(serving=Serving(**serving), **given)
