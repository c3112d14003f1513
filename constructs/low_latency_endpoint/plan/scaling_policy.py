"""The scaling policy: metric, target and cooldowns, each with the reason of its branch."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ..errors import AWS_DOCS
from ..facts.limits import GUIDE
from ..options.scaling import whole_seconds
from ..options.throughput import HeldTps, stated
from ..report.numbers import plain_number, readable
from .decisions import Decision
from .endpoint_request import EndpointRequest
from .fleet_under_load import Fleet
from .instance_load import InFlight, cache_limit
from .scaling_pace import SCALE_IN_SECONDS

INVOCATIONS_METRIC = "SageMakerVariantInvocationsPerInstance"
CONCURRENCY_METRIC = "SageMakerVariantConcurrentRequestsPerModelHighResolution"

_LOAD_TEST = AWS_DOCS + GUIDE + "endpoint-scaling-loadtest.html"
_POLICY = AWS_DOCS + GUIDE + "endpoint-auto-scaling-policy.html"
_CONCURRENCY = AWS_DOCS + GUIDE + "endpoint-auto-scaling-add-code-define.html"
_PER_MINUTE = "invocations per instance per minute"
_IN_FLIGHT = "requests in flight per instance"
_COUNTS_IN_FLIGHT = "target tracking on requests in flight per instance, every 10 s"


class ScalingPolicy(NamedTuple):
    """A scaling policy: the metric, what one instance is held at, and the rests after a change."""

    metric: str
    target: float
    scale_out_seconds: int
    scale_in_seconds: int


class DecidedScaling(NamedTuple):
    """A scaling policy, and the decisions that it is made of."""

    policy: ScalingPolicy | None  # None where the number of instances stays
    decisions: tuple[Decision[Any], ...]  # the metric's; of a policy its target and cooldowns too


class _Followed(NamedTuple):
    """The metric that scaling follows, why, and its target."""

    metric: str
    why: str
    target: Decision[float] | None  # None where nothing is known of one instance


def decided_scaling(
    request: EndpointRequest, fleet: Fleet, held: HeldTps | None, in_flight: InFlight | None
) -> DecidedScaling:
    """Decide the policy, where there is a target and room; language models count in flight."""
    given = request.scaling
    followed = _followed(request, held, in_flight)
    fixed = not given.enabled or fleet.minimum == fleet.maximum
    target = None if fixed else followed.target
    note = ""
    if target is not None and followed.metric == INVOCATIONS_METRIC and request.is_generative:
        note = _better_in_flight(request)
    own_targets = (given.concurrency_target, given.invocations_target)
    metric = Decision(
        name="scaling_metric",
        value=None if target is None else followed.metric,
        rule=followed.why if given.enabled else "none: scaling is off, your choice",
        inputs={
            "throughput": "measured" if request.throughput else "not measured",
            "minimum": fleet.minimum,
            "maximum": fleet.maximum,
        },
        source=_POLICY,
        overridden=not given.enabled or own_targets != (None, None),
        note=note,
    )
    if target is None:
        return DecidedScaling(None, (metric,))
    out, back = _cooldowns(request)
    policy = ScalingPolicy(followed.metric, target.value, out.value, back.value)
    return DecidedScaling(policy, (metric, target, out, back))


def _better_in_flight(request: EndpointRequest) -> str:
    """That a language model is better scaled in flight; empty where no target can be estimated."""
    estimate = _by_littles_law(request)
    if not estimate:
        return ""
    return (
        "answers differ in length, so requests in flight say more than requests per minute: "
        f"try {CONCURRENCY_METRIC} (every 10 s, counts what queues in the container) with a "
        f"target of about {estimate}"
    )


def _followed(
    request: EndpointRequest, held: HeldTps | None, in_flight: InFlight | None
) -> _Followed:
    """Choose the metric: of your own target, else in flight where that is measured."""
    given = request.scaling
    measured = request.throughput
    if given.concurrency_target is not None:
        why = f"{_COUNTS_IN_FLIGHT}, because you state how many one instance holds"
        return _Followed(CONCURRENCY_METRIC, why, _own_concurrency(request))
    if given.invocations_target is not None:
        why = "target tracking on invocations per instance, because you state its target"
        return _Followed(INVOCATIONS_METRIC, why, _own_invocations(request))
    if given.metric != "invocations" and in_flight is not None and in_flight.target:
        why = f"{_COUNTS_IN_FLIGHT}: an invocation counts once, however long its answer is"
        return _Followed(CONCURRENCY_METRIC, why, _measured_in_flight(in_flight))
    why = "target tracking on invocations per instance, once one instance's throughput is measured"
    if measured is None or held is None:
        return _Followed(INVOCATIONS_METRIC, why, None)
    target = Decision(
        name="scaling_target",
        value=min(measured.target_invocations_per_instance, float(60 * held.planned)),
        unit=_PER_MINUTE,
        rule="TPS per instance x safety factor x 60",
        inputs={
            "TPS per instance": measured.tps_per_instance,
            "safety factor": measured.safety_factor,
            **cache_limit(measured, held.limit),
        },
        source=_LOAD_TEST,
        note="at saturation the target would be " + readable(float(held.limit * 60)),
    )
    return _Followed(INVOCATIONS_METRIC, why, target)


def _own_invocations(request: EndpointRequest) -> Decision[Any]:
    inputs: dict[str, Any] = {}
    note = ""
    measured = request.throughput
    if measured is not None:
        inputs["TPS per instance"] = measured.tps_per_instance
        inputs["safety factor"] = measured.safety_factor
        planned = readable(measured.target_invocations_per_instance)
        note = f"from the measured throughput it would be {planned}"
    return Decision(
        name="scaling_target",
        value=request.scaling.invocations_target,
        unit=_PER_MINUTE,
        rule="your number: the invocations per minute that scaling keeps one instance at, "
        "whatever the safety factor is",
        inputs=inputs,
        source=_LOAD_TEST,
        overridden=True,
        note=note,
    )


def _own_concurrency(request: EndpointRequest) -> Decision[Any]:
    estimate = _by_littles_law(request)
    return Decision(
        name="scaling_target",
        value=request.scaling.concurrency_target,
        unit=_IN_FLIGHT,
        rule="your number: the requests in flight that scaling keeps one instance at",
        source=_CONCURRENCY,
        overridden=True,
        note=f"measured throughput x target would be about {estimate}" if estimate else "",
    )


def _measured_in_flight(found: InFlight) -> Decision[float]:
    """The target that follows from the load test or from the KV cache."""
    inputs: dict[str, Any] = {
        "concurrency per instance": found.measured,
        "safety factor": found.safety_factor,
        "room in the KV cache": "not known" if found.room is None else found.room,
    }
    if found.bound_by_cache:
        note = f"the KV cache binds: the load test would allow {readable(found.safe)}"
    elif found.room is None:
        note = "how many the KV cache holds is not known, so the load test alone says it"
    else:
        note = f"the load test binds: the KV cache has room for {found.room:,}"
    return Decision(
        name="scaling_target",
        value=found.target,
        unit=_IN_FLIGHT,
        rule="concurrency per instance x safety factor, and no more than the KV cache has room for",
        inputs=inputs,
        source=_CONCURRENCY,
        note=note + ". Streams count until their last token",
    )


def _cooldowns(request: EndpointRequest) -> tuple[Decision[int], Decision[int]]:
    """The rests after scaling out and in."""
    out = Decision(
        name="scale_out_cooldown",
        unit="seconds",
        value=request.scale_out_seconds,
        rule="one period of the metric: an instance too early costs little, one too late costs "
        "latency",
        inputs={"metric period in seconds": 60, "AWS's default": 300},
        overridden=request.scaling.scale_out_cooldown is not None,
    )
    back = Decision(
        name="scale_in_cooldown",
        unit="seconds",
        value=SCALE_IN_SECONDS,
        rule="AWS's default, slower than scaling out, so that a lull does not cost instances",
        source=_POLICY,
    )
    return out, back.overridden_by(whole_seconds(request.scaling.scale_in_cooldown))


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
