"""What the planning tests share."""

from __future__ import annotations

from typing import Any

from low_latency_endpoint.plan.latency_plan import EndpointRequest, Plan, ScalingOptions, make_plan

_SCALING = {
    "enabled",
    "min_instances",
    "initial_instances",
    "max_instances",
    "max_concurrency_per_instance",
    "scale_in_cooldown",
    "scale_out_cooldown",
}


def planned(**given: Any) -> Plan:
    """The plan of a request whose scaling options stand among the rest."""
    scaling = {name: given.pop(name) for name in _SCALING & given.keys()}
    return make_plan(EndpointRequest(scaling=ScalingOptions(**scaling), **given))
