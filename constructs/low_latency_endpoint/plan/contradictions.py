"""Stated numbers that others contradict by an order of magnitude: one of them is a slip of a unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .decisions import PlanWarning
from .scaling_pace import start_floor
from .token_values import is_token

if TYPE_CHECKING:  # imported by what reads this
    from .latency_plan import Plan

MAGNITUDE = 10
_CALLS_OF_VCPU = 10_000  # per second: assumed, an HTTP request alone takes a tenth of a millisecond


def contradicts(stated: float | None, right: float | None) -> bool:
    """Whether two numbers for one thing are an order of magnitude apart."""
    if not stated or not right or is_token(stated):
        return False
    return not right / MAGNITUDE < stated < right * MAGNITUDE


def contradictions(plan: Plan) -> Iterator[PlanWarning]:
    """Each with the right number; said before all else, as what follows rests on it."""
    request, given, measured = plan.request, plan.request.scaling, plan.request.throughput
    loading = start_floor(request.weight_bytes)
    if request.weight_bytes and (given.instance_seconds or loading) * MAGNITUDE <= loading:
        yield PlanWarning(
            "contradiction-instance-start",
            f"instance_start is {given.instance_seconds} s, and {request.weight_bytes / 1e9:,.3g} GB of "
            f"weights alone take {loading:,} s at 1 GB/s: state what you saw",
        )
    if measured is None:
        return
    tps, factor = measured.tps_per_instance, measured.safety_factor
    target = given.target_invocations_per_instance
    if (
        target
        and not is_token(target)
        and (contradicts(target, tps * factor * 60) or target > tps * 60)
    ):
        yield PlanWarning(
            "contradiction-invocations-target",
            f"the scaling target of {target:,.6g} invocations is for a minute, {target / 60:,.3g} per "
            f"second, and one instance holds {tps:,.6g} per second: with the safety factor it would be "
            f"{tps * factor * 60:,.6g}",
        )
    busy, own = measured.concurrency_per_instance, given.max_concurrency_per_instance
    if own and busy and contradicts(own, busy * factor):
        yield PlanWarning(
            "contradiction-concurrency-target",
            f"the scaling target is {own:,.6g} requests in flight, and one instance was measured to hold "
            f"{busy:,.6g}: with the safety factor it would be {busy * factor:,.6g}",
        )
    slowest = request.latency.slowest if request.latency else None
    if slowest and slowest[0] not in ("p50", "p90") and tps * slowest[1] / 1000 * MAGNITUDE < 1:
        yield PlanWarning(
            "contradiction-throughput",
            f"one instance is said to hold {tps:,.6g} calls per second, and one that answers a call after "
            f"another within {slowest[0]} of {slowest[1]:,.6g} ms holds {1000 / slowest[1]:,.3g}: is one "
            "of the two in another unit?",
        )
    vcpus = request.facts.vcpus if request.facts else None
    if vcpus and tps > vcpus * _CALLS_OF_VCPU:
        yield PlanWarning(
            "contradiction-throughput-of-vcpus",
            f"one instance is said to hold {tps:,.6g} calls per second on {vcpus} vCPUs, and an HTTP "
            f"request alone takes a tenth of a millisecond of one: per minute it would be {tps / 60:,.6g}",
        )
    needed = max(plan.needed_at_peak or 0, len(request.client_zones))
    if (given.min_instances or 0) >= needed * MAGNITUDE:
        yield PlanWarning(
            "contradiction-minimum",
            f"the minimum is {given.min_instances:,}, and the peak with this throughput needs {needed:,}",
        )
