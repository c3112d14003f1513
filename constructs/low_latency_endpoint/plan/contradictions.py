"""Stated numbers that others contradict: by an order of magnitude, or so that an alarm stays on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ..options.alarms import SLOW_BURN_RATE
from ..options.scaling import whole_seconds
from ..options.throughput import counted_instances, stated
from ..report.numbers import milliseconds, readable
from .alarm_thresholds import kept_for_overhead
from .alarm_windows import share_beyond
from .decisions import PlanWarning, contradicts
from .endpoint_request import EndpointRequest
from .plan import Plan
from .scaling_pace import start_floor
from .token_floors import decode_paces

_CALLS_OF_VCPU = 1000  # per second: assumed, of HTTP alone


def contradictions(plan: Plan) -> Iterator[PlanWarning]:
    """Each with the right number; said before all else, as what follows rests on it."""
    yield from _below_floors(plan)
    for name, what, number, why, right in _pairs(plan):
        if contradicts(number, right):
            text = (
                f"{what} {readable(number)}, and {why} {readable(right)}: is one in another unit?"
            )
            yield PlanWarning(f"contradiction-{name}", text)
    yield from _slow_requests(plan.request)


def _slow_requests(request: EndpointRequest) -> Iterator[PlanWarning]:
    """A target that leaves more requests slow than the alarm on slow requests lets pass."""
    limit, target = request.slow_limit, request.latency
    if limit is None or target is None or (request.share and request.share.shadow):
        return
    for_model = 1 - kept_for_overhead(request)
    # Calls beyond a percentile whose threshold is at least the objective's are surely slow.
    slow = [
        (share, statistic)
        for statistic, callers in target.milliseconds.items()
        if (share := share_beyond(statistic))
        and stated(callers) * for_model >= stated(limit.milliseconds)
    ]
    if not slow:
        return
    share, statistic = max(slow)
    burn_rate = float(share / limit.budget)
    if burn_rate > SLOW_BURN_RATE:
        yield PlanWarning(
            "contradiction-slow-requests",
            f"the target {statistic} lets {_percent(share)} of the calls take longer in the model than "
            f"{milliseconds(limit.milliseconds, 6)}, and the objective of alarms.slow_requests lets "
            f"{_percent(limit.budget)}: a model that just meets the target spends the budget "
            f"{readable(burn_rate, 3)} times too fast, and the alarm stays on. State the target that "
            "the objective needs, a lower objective, or a higher threshold",
        )


def _percent(share: Fraction) -> str:
    return f"{readable(float(share * 100), 3)} %"


def _below_floors(plan: Plan) -> Iterator[PlanWarning]:
    """Measured calls that write faster than the memory of a type allows."""
    request, measured, made = plan.request, plan.request.throughput, plan.tokens
    traffic, hub = request.tokens, request.serving.hub
    if measured is None or measured.call_seconds is None:
        return
    if made is None or made.in_flight is None or traffic is None or hub is None:
        return
    gaps = traffic.mean_output - 1
    call_seconds = float(measured.call_seconds)
    below = [pace for pace in decode_paces(hub) if gaps * pace.milliseconds > 1000 * call_seconds]
    if not below:
        return
    slowest = max(below, key=lambda pace: pace.milliseconds)
    least_seconds = gaps * slowest.milliseconds / 1000
    at_once = made.in_flight.target or made.in_flight.safe
    needed = math.ceil(measured.highest_tps * least_seconds / at_once)
    floors = ", ".join(
        f"{milliseconds(pace.milliseconds, 3)} on {pace.instance_type}" for pace in below
    )
    yield PlanWarning(
        "contradiction-floor",
        f"{readable(made.in_flight.measured)} in flight at {readable(measured.tps_per_instance)} "
        f"per second are {readable(call_seconds, 3)} s a call (Little's law), at most "
        f"{milliseconds(1000 * call_seconds / gaps, 3)} a token for answers of "
        f"{readable(gaps + 1, 3)}, and reading the weights takes at least {floors}: the numbers are "
        f"of another type or model. With {readable(at_once)} in flight on each, a peak of "
        f"{readable(measured.highest_tps)} TPS needs at least {counted_instances(needed)}",
    )


def _pairs(plan: Plan) -> Iterator[tuple[str, str, Any, str, float]]:
    """What is stated, and what others say it is; only in the direction that is a slip."""
    request, given, measured = plan.request, plan.request.scaling, plan.request.throughput
    start, loading = (
        whole_seconds(given.instance_start) or 0,
        start_floor(request.serving.weight_bytes),
    )
    if start < loading:
        why = f"loading {readable(request.serving.weight_bytes / 1e9, 3)} GB of weights at 1 GB/s alone makes it"
        yield "start", "instance_start in seconds is", start, why, loading
    if measured is None:
        return
    tps, factor = measured.tps_per_instance, measured.safety_factor
    busy = measured.concurrency_per_instance or 0
    why = f"one instance holds {readable(tps)} per second: with the safety factor a minute's are"
    target = given.invocations_target
    yield "invocations", "the target in invocations a minute is", target, why, tps * factor * 60
    why = f"one instance was measured to hold {readable(busy)}: with the safety factor they are"
    target = given.concurrency_target
    yield "concurrency", "the target in requests in flight is", target, why, busy * factor
    what = "one instance is said to hold a second's calls of"
    slowest = request.latency.slowest if request.latency else None
    if slowest and slowest[0] not in ("p50", "p90") and tps < (alone := 1000 / slowest[1]):
        why = f"within {slowest[0]} of {milliseconds(slowest[1], 6)} it answers, one after another,"
        yield "throughput", what, tps, why, alone
    vcpus = (request.serving.facts.vcpus if request.serving.facts else None) or 0
    if tps > (most := vcpus * _CALLS_OF_VCPU):
        yield "vcpus", what, tps, f"{vcpus} vCPUs serve of HTTP", most
    peaks = [plan.needed_for(standing.measured) or 0 for standing in plan.under_load]
    needed = max(*peaks, len(request.client_zones))
    if (least := request.instances.min or 0) > needed:
        yield (
            "minimum",
            "the minimum is",
            least,
            "the highest peak with this throughput needs",
            needed,
        )
