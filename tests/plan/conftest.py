"""What the planning tests share."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from low_latency_endpoint.plan.latency_plan import EndpointRequest, Plan, ScalingOptions, make_plan

_SCALING = {each.name for each in fields(ScalingOptions)}


def planned(**given: Any) -> Plan:
    """The plan of a request whose scaling options stand among the rest."""
    scaling = {name: given.pop(name) for name in _SCALING & given.keys()}
    return make_plan(EndpointRequest(scaling=ScalingOptions(**scaling), **given))
