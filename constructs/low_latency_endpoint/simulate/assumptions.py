"""From a plan to a scenario: what is known, and what must be assumed, each said in a sentence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NamedTuple, cast

from ..errors import rule
from ..facts.durations import seconds_of
from ..facts.scaling_rules import wanted_capacity
from ..options.deployment import DeploymentPolicy
from ..options.throughput import MeasuredThroughput, counted_instances
from ..plan.alarm_thresholds import kept_for_overhead, share_of_target
from ..plan.deployment_time import deployment_of
from ..plan.plan import Plan, ServedPeak
from ..plan.scaling_pace import INSTANCE_SECONDS, SCALE_IN_SECONDS, SCALE_OUT_SECONDS
from ..plan.scaling_policy import CONCURRENCY_METRIC, ScalingPolicy
from ..plan.set_times import SetTimes, TimesAlong
from ..plan.traffic_shapes import Shape
from ..report.numbers import milliseconds, readable
from .fleet_changes import (
    SIMULATED_INSTANCES,
    CapacityLimits,
    InstanceStart,
    Rollout,
    TargetTracking,
    ZoneOutage,
)
from .load_test_result import LoadTestResult
from .scenario import CONCURRENCY, SLOPE, Scenario, busy_rate
from .scenario_sentences import scenario_sentences
from .service_laws import MEAN_SECONDS, VARIATION, Lognormal, ServiceLaw, percentile_name
from .traffic import RATE, ArrivalTrace, OpenLoop, ShapedLoop, Traffic

THROUGHPUT_NEEDED = rule(
    "LLS125",
    "the simulation needs to know what one instance serves",
    fix="Set throughput in the settings, or pass --from-load-test or --service-time.",
)

LANGUAGE_MODEL = rule(
    "LLS147",
    "endpoints with token targets cannot be simulated",
    fix="low-latency plan calculates memory and requests in flight. low-latency load-test "
    "--find-limit measures how much an instance serves.",
)

BUSY_AT_MEASURED = 0.9  # how busy an instance is at the throughput that it held
SERVICE_SHARE = 0.6  # of the model's part of the target that the service time's own p99 takes
VARIATION_ASSUMED = 0.5


class ModelTarget(NamedTuple):
    """A target for whole calls in seconds, and the part that the plan leaves the model of it."""

    percentile: float | None  # None for the average
    callers: float
    model: float  # the simulation knows neither network nor SageMaker's overhead

    def __str__(self) -> str:
        if self.model == self.callers:
            return milliseconds(1000 * self.model, 6)
        return (
            f"{milliseconds(1000 * self.model, 6)} that the model may take of the callers' "
            + milliseconds(1000 * self.callers, 6)
        )

    @property
    def name(self) -> str:
        """What the target is for: ``p99``, ``average``."""
        return "average" if self.percentile is None else percentile_name(self.percentile)


@dataclass(frozen=True)
class SimulatedEndpoint:
    """An endpoint that can be simulated, and the sentences that say what was assumed."""

    service: ServiceLaw
    concurrency: int
    slope: float
    peak_tps: float
    instances: int  # at the peak
    minimum: int
    maximum: int
    zones: int
    routing: str
    tps_per_instance: float
    safety_factor: float
    cooldowns: tuple[float, float]  # out and in, seconds
    scales: bool
    concurrency_target: float | None  # requests in flight per instance; `None` for invocations
    invocations_target: float | None  # per instance and minute, where the settings state it
    deployment: Rollout  # how a new version takes over; when, a shape says
    targets: tuple[ModelTarget, ...]
    measured: bool  # else the service time is made from the target, and says nothing about it
    assumed: tuple[str, ...]
    assumed_service: tuple[str, ...]  # of these, what concerns the service time
    instance_seconds: float = float(INSTANCE_SECONDS)  # from the decision until it serves
    left_out: tuple[str, ...] = ()
    set_times: SetTimes | None = None  # ranges and other peaks of the plan by time
    other_peaks: tuple[ServedPeak, ...] = ()  # of the day; none where the rate is given

    @property
    def latency_target(self) -> float | None:
        """The model's part of the target at p99, in seconds."""
        return next((target.model for target in self.targets if target.percentile == 99.0), None)

    @property
    def condition(self) -> str:
        """What everything rests on where nobody measured the service time; else empty."""
        if self.measured:
            return ""
        return f"If a call takes {milliseconds(1000 * self.service.mean_seconds, 3)} on average: "

    @property
    def possible_service_seconds(self) -> tuple[float, ...]:
        """Mean service times to try where nobody measured one: shares of the model's part."""
        whole = self.latency_target or 4 * self.service.mean_seconds
        return tuple(float(f"{share * whole:.2g}") for share in (0.1, 0.2, 0.3, 0.5, 0.75))

    def taking(self, seconds: float, variation: float) -> SimulatedEndpoint:
        """The endpoint if calls took so long alone, with as many at once as its throughput says."""
        return replace(
            self,
            service=Lognormal(seconds, variation),
            concurrency=_at_once(self.tps_per_instance, seconds, self.slope),
        )

    def steady(self, **changes: Any) -> Scenario:
        """The fleet at the peak, without scaling."""
        parts: dict[str, Any] = {
            "service": self.service,
            "traffic": OpenLoop(self.peak_tps),
            "instances": self.instances,
            "concurrency": self.concurrency,
            "slope": self.slope,
            "routing": self.routing,
            "zones": self.zones,
            "latency_target": self.latency_target,
        }
        return Scenario(**(parts | changes))

    @property
    def scaling(self) -> TargetTracking | None:
        """The endpoint's own scaling, on the metric that it states; ``None`` without.

        On invocations it aims at the stated target, or at the one of throughput and safety factor.
        """
        if not self.scales:
            return None
        scale_out, scale_in = self.cooldowns
        limits: dict[str, Any] = {
            "minimum": self.minimum,
            "maximum": max(self.maximum, self.minimum),
            "scale_out_cooldown": scale_out,
            "scale_in_cooldown": scale_in,
            "instance_seconds": self.instance_seconds,
        }
        if self.concurrency_target is not None:
            return TargetTracking.on_concurrency(self.concurrency_target, **limits)
        planned = self.tps_per_instance * self.safety_factor * 60
        return TargetTracking(self.invocations_target or planned, **limits)

    def _settled(self, tps: float, scaling: TargetTracking) -> int:
        """The fleet that a policy would have left at a steady rate."""
        if scaling.metric == "invocations":
            wanted = wanted_capacity(tps * 60, scaling.target)
        else:  # an instance with so many in flight answers so many per second
            at_work = min(scaling.target, self.concurrency)
            slowed = 1 + self.slope * max(0.0, at_work - 1)
            wanted = math.ceil(tps * self.service.mean_seconds * slowed / at_work)
        return max(scaling.minimum, min(scaling.maximum, wanted))

    def times_along(self, shape: Shape) -> TimesAlong | None:
        """The plan's set times along a shape; None if there are none, or they are left out."""
        return None if self.set_times is None else self.set_times.along(shape, self.peak_tps)

    def without_set_times(self, shape: Shape) -> str:
        """Why an answer about a shape leaves the plan's set times out; else empty."""
        return "" if self.set_times is None else self.set_times.why_left_out(shape)

    def condition_along(self, shape: Shape) -> str:
        """What an answer about a shape rests on; empty where all that decides is known."""
        if not self.without_set_times(shape):
            return self.condition
        without = "Without the settings' set times"
        if self.measured:
            return f"{without}: "
        return f"{without}, and {self.condition[0].lower()}{self.condition[1:]}"

    def traffic_along(self, shape: Shape) -> Shape:
        """A shape with the plan's other peaks, where they are known to come in it."""
        times = self.times_along(shape)
        return shape if times is None else times.shape

    def _scaling_along(self, shape: Shape) -> TargetTracking | None:
        """The scaling with the ranges that set times bring along a shape."""
        scaling = self.scaling
        times = self.times_along(shape)
        if scaling is None or times is None or not times.ranges:
            return scaling
        (_, first), *later = times.ranges
        limits = tuple(CapacityLimits(second, *capacity) for second, capacity in later)
        return replace(scaling, minimum=first.minimum, maximum=first.maximum, limits=limits)

    def over_time(self, shape: Shape) -> Scenario:
        """The endpoint under a shape of traffic: with scaling, and with what befalls it.

        Recorded single requests come at their times, whatever the peak.
        """
        comes = self.traffic_along(shape)
        traffic: Traffic = (
            ArrivalTrace(comes.times) if comes.times else ShapedLoop(self.peak_tps, comes)
        )
        scaling = self._scaling_along(shape)
        instances = self.instances
        if scaling is not None:
            instances = self._settled(comes.share_at(0.0) * self.peak_tps, scaling)
        parts: dict[str, Any] = {"traffic": traffic, "scaling": scaling, "instances": instances}
        if shape.deploy_at is not None:
            parts["deployment"] = replace(self.deployment, at=shape.deploy_at)
        if shape.zone_lost_at is not None:
            starts = self.instance_seconds
            parts["faults"] = (ZoneOutage(shape.zone_lost_at, replacement_seconds=starts),)
        return self.steady(**parts)

    @property
    def peaks(self) -> list[tuple[str, SimulatedEndpoint]]:
        """The endpoint at each peak of the day with its label, the usual one first."""
        if not self.other_peaks:
            return [("", self)]
        return [
            ("usual peak", self),
            *(
                (peak.label, replace(self, peak_tps=peak.tps, instances=peak.instances))
                for peak in self.other_peaks
            ),
        ]

    @staticmethod
    def length_of(shape: Shape) -> dict[str, Any]:
        """How long to run :meth:`over_time`, as :func:`.simulating.simulate` takes it."""
        return {"seconds": shape.seconds, "window": 60.0}

    @property
    def percentiles(self) -> list[float]:
        """Those that the answer is about: p95 and p99, which are always shown, and the targets'."""
        stated = {target.percentile for target in self.targets if target.percentile is not None}
        return sorted({95.0, 99.0, *stated})

    def assumed_over_time(self, shape: Shape) -> list[str]:
        """What :meth:`over_time` takes from the settings and what it assumes, in sentences."""
        scenario = self.over_time(shape)
        said = scenario_sentences(scenario, self.percentiles)
        if scenario.scaling is None:
            counted = counted_instances(self.instances)
            said.append(f"nothing scales: {counted} all the time")
        times = self.times_along(shape)
        if times is not None:
            said.append(times.text)
        if self.set_times and (why := self.without_set_times(shape)):
            said.append(
                f"the settings' set times are left out ({self.set_times.text}), as {why}: minimum and "
                "maximum are the usual ones, and no other peak comes"
            )
        return [*said, "instances are paid for from their launch", *self.left_out]


def _left_out(plan: Plan) -> Iterator[str]:
    """Scaling settings that a shape of traffic cannot follow."""
    if plan.request.scaling.steps is not None:
        yield (
            "the settings' steps are left out, beside target tracking, so jumps look later than "
            "they are"
        )


def _rollout(policy: DeploymentPolicy) -> Rollout:
    """How a new version takes over, from time zero.

    All at once has nothing between two steps: its wait, in which the alarms watch the new fleet,
    and ``termination_wait`` are the time for which the old fleet is kept.
    """
    wait, kept = seconds_of(policy.wait), seconds_of(policy.termination_wait or timedelta())
    if policy.kind == "ALL_AT_ONCE":
        return Rollout(at=0.0, bake_seconds=wait + kept)
    return Rollout(
        at=0.0,
        kind=policy.kind.lower(),
        step_share=policy.percent / 100,
        wait_seconds=wait,
        bake_seconds=kept,
    )


def model_of_plan(
    plan: Plan,
    *,
    throughput: MeasuredThroughput | None,
    load_test: LoadTestResult | None = None,
    service_seconds: float | None = None,
    variation: float | None = None,
    concurrency: int | None = None,
    slope: float | None = None,
    peak_tps: float | None = None,
    instances: int | None = None,
    routing: str | None = None,
    start: InstanceStart | None = None,
) -> SimulatedEndpoint:
    """A plan as a model; what is given here goes before what the plan says."""
    _check_whole_calls(plan)
    assumed: list[str] = []
    targets = _targets(plan)
    target = next((target.model for target in targets if target.percentile == 99.0), None)
    measured = _measured(throughput, load_test, assumed)
    before = len(assumed)
    service, concurrency, slope = _instance(
        measured, target, load_test, service_seconds, variation, concurrency, slope, assumed
    )
    of_service = tuple(each for each in assumed[before:] if not each.startswith(_NO_SLOPE))
    own = busy_rate(concurrency, slope, service.mean_seconds)
    if measured is None:
        measured = BUSY_AT_MEASURED * own
        assumed.append(
            f"an instance holds {readable(measured, 4)} requests per second: "
            f"{BUSY_AT_MEASURED:.0%} of what it serves when never idle"
        )
    other_peaks = plan.other_peaks if peak_tps is None else []
    peak_tps = _peak(throughput) if peak_tps is None else peak_tps
    fleet, policy = plan.fleet, plan.scaling
    planned = fleet.serving_at_peak if policy else fleet.initial
    count = planned if instances is None else instances
    assumed += [
        "network and SageMaker's overhead are left out",
        "one router sees all outstanding requests; AWS does not say how many there are",
    ]
    if instances is not None:
        other_peaks = [peak._replace(instances=instances) for peak in other_peaks]
    for served in (ServedPeak("", peak_tps, count), *other_peaks):
        if own * served.instances < served.tps:
            assumed.append(
                f"{readable(own * served.instances, 4)} requests per second are the most that "
                f"{counted_instances(served.instances)} can serve"
            )
    routing = _simulated_routing(routing or plan.routing, assumed)
    starts = float(start.seconds if start else plan.request.start_seconds)
    return SimulatedEndpoint(
        service=service,
        concurrency=concurrency,
        slope=slope,
        peak_tps=float(RATE.check(peak_tps, "tps")),
        instances=int(SIMULATED_INSTANCES.check(count, "instances")),
        minimum=fleet.minimum,
        maximum=fleet.maximum,
        zones=len(plan.request.client_zones),
        routing=routing,
        tps_per_instance=measured,
        safety_factor=throughput.safety_factor if throughput else 0.5,
        cooldowns=_cooldowns(policy),
        scales=policy is not None,
        invocations_target=plan.request.scaling.invocations_target,
        concurrency_target=_concurrency_target(policy),
        deployment=replace(_rollout(deployment_of(plan)), instance_seconds=starts),
        instance_seconds=starts,
        left_out=tuple(_left_out(plan)),
        set_times=SetTimes.of(plan),
        other_peaks=tuple(other_peaks),
        targets=targets,
        measured=load_test is not None or service_seconds is not None,
        assumed=tuple(assumed),
        assumed_service=of_service,
    )


def _check_whole_calls(plan: Plan) -> None:
    """Refuse tokens and targets for them: the simulation knows whole calls alone."""
    tokens = plan.request.tokens
    if tokens is not None:
        raise LANGUAGE_MODEL.error(
            got=tokens.text, allowed="an endpoint without tokens", where="tokens"
        )
    if plan.request.of_tokens:
        raise LANGUAGE_MODEL.error(
            got="targets of ttft or itl", allowed="targets for whole calls", where="latency"
        )


def _targets(plan: Plan) -> tuple[ModelTarget, ...]:
    """What the model may take of every target for whole calls, as the plan's alarms have it."""
    latency = plan.request.latency
    if latency is None:
        return ()
    kept = kept_for_overhead(plan.request)
    return tuple(
        ModelTarget(
            _percentile_of(statistic), target / 1000, share_of_target(target, 1 - kept) / 1000
        )
        for statistic, target in latency.milliseconds.items()
    )


def _percentile_of(statistic: str) -> float | None:
    """The number in ``p99.9``; ``None`` for ``Average``."""
    return None if statistic == "Average" else float(statistic[1:])


def _peak(throughput: MeasuredThroughput | None) -> float:
    if throughput is None:
        raise THROUGHPUT_NEEDED.error(
            what="the simulation needs to know how many requests come",
            got="no peak",
            where="throughput",
            allowed="throughput in the settings, or --tps",
            fix="Set throughput in the settings, or pass --tps.",
        )
    return throughput.peak_tps


def _simulated_routing(routing: str, assumed: list[str]) -> str:
    if routing != "PREFIX_AWARE":  # settings say nothing of prefixes and what a cache saves
        return routing
    assumed.append(
        "PREFIX_AWARE is simulated as the LEAST_OUTSTANDING_REQUESTS that it falls back to, "
        "without its cache"
    )
    return "LEAST_OUTSTANDING_REQUESTS"


def _cooldowns(policy: ScalingPolicy | None) -> tuple[float, float]:
    """Seconds after scaling out and in."""
    if policy is None:
        return float(SCALE_OUT_SECONDS), float(SCALE_IN_SECONDS)
    return float(policy.scale_out_seconds), float(policy.scale_in_seconds)


def _concurrency_target(policy: ScalingPolicy | None) -> float | None:
    """Requests in flight on an instance that scaling aims at, where it follows them."""
    return float(policy.target) if policy and policy.metric == CONCURRENCY_METRIC else None


def _measured(
    throughput: MeasuredThroughput | None, load_test: LoadTestResult | None, assumed: list[str]
) -> float | None:
    """One instance's throughput: from the load test, else from the settings."""
    stated = throughput.tps_per_instance if throughput else None
    if load_test is None:
        return stated
    found = load_test.rate_per_instance
    if found is not None and not load_test.lower_bound:
        return found
    if found is not None and (stated is None or stated < found):
        assumed.append(
            f"an instance holds {readable(found)} requests per second: it held them in the load "
            "test, which did not reach its limit; it may hold more"
        )
        return found
    if stated is not None:
        assumed.append(
            f"an instance holds {readable(stated)} requests per second, as the settings state: "
            "the load test did not find its limit"
        )
    return stated


def _at_once(per_second: float, seconds: float, slope: float) -> int:
    """Requests in work at once on an instance that holds so many a second.

    The fewest for which :func:`busy_rate` is enough. Where requests slow each other so much that no
    number is, as many as without a slope.
    """
    needed = per_second * seconds / BUSY_AT_MEASURED
    if slope * needed < 1 and needed > 1:
        needed = needed * (1 - slope) / (1 - slope * needed)
    return max(1, math.ceil(round(needed, 9)))


_NO_SLOPE = "slope 0 is assumed: "


def _instance(
    measured: float | None,
    target: float | None,
    load_test: LoadTestResult | None,
    seconds: float | None,
    variation: float | None,
    concurrency: int | None,
    slope: float | None,
    assumed: list[str],
) -> tuple[ServiceLaw, int, float]:
    """Return service law, concurrency and slope of one instance; add sentences to ``assumed``.

    ``seconds`` to ``slope`` are what the user stated. The rest comes from the load test, from the
    throughput that was ``measured``, or from the ``target`` at p99.
    """
    slope_is_stated = slope is not None
    if slope is None:
        slope = load_test.slope if load_test else 0.0
    SLOPE.check(slope, "slope")
    if concurrency is None and load_test:
        concurrency = load_test.concurrency
    if concurrency is not None:
        CONCURRENCY.check(concurrency, "concurrency")
    law: ServiceLaw
    if load_test and seconds is None:
        law = load_test.service
        assumed.append(f"service times from {load_test.source}")
    else:
        cv = VARIATION_ASSUMED if variation is None else VARIATION.check(variation, "variation")
        if seconds is None:
            seconds, concurrency = _made_from_target(
                measured, target, cv, concurrency, slope, assumed
            )
        else:
            assumed.append("the mean service time is as given")
        law = Lognormal(MEAN_SECONDS.check(seconds, "service_time"), cv)
        if variation is None:
            assumed.append(f"the coefficient of variation {readable(cv)} is assumed: --variation")
    if concurrency is None:
        concurrency = _made_from_throughput(measured, law, slope, load_test)
        assumed.append(
            f"that an instance works on {concurrency} at once follows from its throughput"
        )
    if not (slope_is_stated or slope) and concurrency > 1:
        cause = "the load test does not tell; " if load_test else ""
        assumed.append(f"{_NO_SLOPE}{cause}for a batching server pass --slope")
    return law, concurrency, slope


def _made_from_target(
    measured: float | None,
    target: float | None,
    variation: float,
    concurrency: int | None,
    slope: float,
    assumed: list[str],
) -> tuple[float, int]:
    """Return a mean service time and a concurrency with which throughput and target fit."""
    if measured is None or (target is None and concurrency is None):
        raise THROUGHPUT_NEEDED.error(
            got="neither a throughput with a p99 target nor a service time",
            allowed="throughput and latency.p99 in the settings, --from-load-test, or "
            "--service-time",
            where="throughput",
        )
    tail = Lognormal(1.0, variation).percentile(99.0)  # p99 as a multiple of the mean
    if concurrency is None:
        at_work = measured * SERVICE_SHARE * cast(float, target) / tail / BUSY_AT_MEASURED
        concurrency = max(1, math.ceil(at_work))
    per_second = busy_rate(concurrency, slope, 1.0)
    seconds = BUSY_AT_MEASURED * per_second / measured
    if target and tail * seconds > target:  # so slow that it could not have been measured
        seconds = SERVICE_SHARE * target / tail
    busy = measured * seconds / per_second
    within = ", and slow requests alone stay within the target" if target else ""
    origin = "It is made from the target, and says nothing about it. " if target else ""
    assumed.append(
        f"a request alone takes {milliseconds(1000 * seconds, 3)} on average and an instance works "
        f"on {concurrency} at once: so it is {busy:.0%} busy at the measured "
        f"{readable(measured)} requests per second{within}. {origin}"
        "Measure it: --from-load-test"
    )
    return seconds, concurrency


def _made_from_throughput(
    measured: float | None, law: ServiceLaw, slope: float, load_test: LoadTestResult | None
) -> int:
    """Return the concurrency with which an instance holds its throughput; 1 if none is known."""
    if measured is not None:
        return _at_once(measured, law.mean_seconds, slope)
    if load_test:
        raise THROUGHPUT_NEEDED.error(
            got="a load test without a limit, and no throughput in the settings",
            allowed="the result of --find-limit, throughput in the settings, or --concurrency",
            where="throughput",
            fix="Set throughput in the settings, or pass --concurrency.",
        )
    return 1
