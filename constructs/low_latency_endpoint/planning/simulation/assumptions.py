"""From a plan to a scenario: what is known, and what must be assumed, each said in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..decisions import LatencyPlan
from ..latency_target import LatencyTarget
from ..plan_fleet import CONCURRENCY_METRIC
from ..throughput import MeasuredThroughput
from .load_test_result import LoadTestResult
from .rules import CONCURRENCY, MEAN_SECONDS, RATE, SIMULATED_INSTANCES, SLOPE, THROUGHPUT_NEEDED
from .scenario import Deployment, Scenario, TargetTracking, ZoneOutage, Zones
from .service_laws import Lognormal, ServiceLaw
from .traffic import OpenLoop, Shape, ShapedLoop, Traffic

__all__ = ["Model", "model_of_plan"]

BUSY_AT_MEASURED = 0.9     # how busy an instance is at the throughput that it held
SERVICE_SHARE = 0.6        # of the target's p99 that the service time's own p99 takes
VARIATION_ASSUMED = 0.5
_Z99 = 2.3263478740408408  # normal quantile


@dataclass(frozen=True)
class Model:
    """An endpoint that can be simulated, and the sentences that say what was assumed.

    Attributes
    ----------
    service, concurrency, slope
        See :class:`.scenario.Scenario`.
    peak_tps : float
    instances, minimum, maximum : int
    zones : int
    routing : str
    scaling_target : float or None
        Invocations per instance and minute.
    tps_per_instance : float
    safety_factor : float
    cooldowns : tuple of float
        Out and in, seconds.
    latency_target : float or None
        Seconds at p99.
    assumed : tuple of str
    """

    service: ServiceLaw
    concurrency: int
    slope: float
    peak_tps: float
    instances: int
    minimum: int
    maximum: int
    zones: int
    routing: str
    tps_per_instance: float
    safety_factor: float
    cooldowns: tuple[float, float]
    scales: bool
    latency_target: float | None
    assumed: tuple[str, ...]

    def steady(self, **changes: Any) -> Scenario:
        """The fleet at the peak, without scaling."""
        parts: dict[str, Any] = {
            "service": self.service, "traffic": OpenLoop(self.peak_tps),
            "instances": self.instances, "concurrency": self.concurrency, "slope": self.slope,
            "routing": self.routing, "zones": Zones(self.zones),
            "latency_target": self.latency_target,
        }
        return Scenario(**(parts | changes))

    def policy(self, **changes: Any) -> TargetTracking:
        """The plan's target tracking."""
        out, back = self.cooldowns
        parts: dict[str, Any] = {
            "target": self.tps_per_instance * self.safety_factor * 60, "minimum": self.minimum,
            "maximum": max(self.maximum, self.minimum), "scale_out_cooldown": out,
            "scale_in_cooldown": back,
        }
        return TargetTracking(**(parts | changes))

    def over_time(self, shape: Shape, policy: TargetTracking | None = None,
                  **changes: Any) -> Scenario:
        """The endpoint under a shape of traffic: with scaling, and with what befalls it."""
        traffic: Traffic = ShapedLoop(self.peak_tps, shape)
        scaling = policy or (self.policy() if self.scales else None)
        wanted = math.ceil(shape.share_at(0.0) * self.peak_tps
                           / (self.tps_per_instance * self.safety_factor))
        instances = self.instances
        if scaling:  # as the policy would have left it
            wanted = math.ceil(shape.share_at(0.0) * self.peak_tps * 60 / scaling.target)
            instances = max(scaling.minimum, min(scaling.maximum, wanted))
        parts: dict[str, Any] = {"traffic": traffic, "scaling": scaling, "instances": instances}
        if shape.deploy_at is not None:
            parts["deployment"] = Deployment(at=shape.deploy_at)
        if shape.zone_lost_at is not None:
            parts["faults"] = (ZoneOutage(at=shape.zone_lost_at),)
        return self.steady(**(parts | changes))


def model_of_plan(
    plan: LatencyPlan,
    *,
    throughput: MeasuredThroughput | None,
    latency: LatencyTarget | None,
    load_test: LoadTestResult | None = None,
    service_seconds: float | None = None,
    variation: float | None = None,
    concurrency: int | None = None,
    slope: float | None = None,
    peak_tps: float | None = None,
    instances: int | None = None,
    routing: str | None = None,
) -> Model:
    """A plan as a model; what is given here goes before what the plan says.

    Raises
    ------
    ConfigurationError
        ``LLE875`` when nothing says what an instance serves; the codes of values out of range.
    """
    assumed: list[str] = []
    measured = load_test.rate_per_instance if load_test else (
        throughput.tps_per_instance if throughput else None)
    service, concurrency, slope = _instance(
        measured, _p99(latency), load_test, service_seconds, variation, concurrency, slope,
        assumed)
    own = max(1.0, concurrency / (1 + slope * (concurrency - 1))) / service.mean_seconds
    if measured is None:
        measured = BUSY_AT_MEASURED * own
        assumed.append(f"an instance holds {measured:.4g} requests per second: "
                       f"{BUSY_AT_MEASURED:.0%} of what it serves when never idle")
    if peak_tps is None:
        if throughput is None:
            raise THROUGHPUT_NEEDED.error(got="no peak", where="throughput",
                                          allowed="throughput in the settings, or --tps")
        peak_tps = throughput.peak_tps
    decided = {each.name: each.value for each in plan}
    count = decided["instances_at_peak"] if instances is None else instances
    assumed += [
        "callers are many and independent (Poisson arrivals); network and SageMaker's overhead "
        "are left out",
        "one router sees all outstanding requests; AWS does not say how many there are",
    ]
    if own * count < peak_tps:
        assumed.append(f"{count} instances serve at most {own * count:,.0f} requests per second")
    routing = routing or str(decided["routing_strategy"])
    if routing == "PREFIX_AWARE":  # settings say nothing of prefixes and what a cache saves
        routing = "LEAST_OUTSTANDING_REQUESTS"
        assumed.append("PREFIX_AWARE is simulated as the LEAST_OUTSTANDING_REQUESTS that it falls "
                       "back to, without its cache; in Python, PrefixCache simulates that")
    if decided.get("scaling_metric") == CONCURRENCY_METRIC:
        assumed.append("scaling is simulated on invocations per instance, while the plan scales on "
                       "requests in flight")
    zones = decided.get("subnets")
    return Model(
        service=service, concurrency=concurrency, slope=slope,
        peak_tps=float(RATE.check(peak_tps, "tps")),
        instances=int(SIMULATED_INSTANCES.check(count, "instances")),
        minimum=int(decided["min_instances"]), maximum=int(decided["max_instances"]),
        zones=len(zones) if isinstance(zones, (list, tuple)) else 2,
        routing=routing,
        tps_per_instance=measured,
        safety_factor=throughput.safety_factor if throughput else 0.5,
        cooldowns=(float(decided.get("scale_out_cooldown") or 60),
                   float(decided.get("scale_in_cooldown") or 300)),
        scales=bool(decided.get("scaling_metric")),
        latency_target=_p99(latency), assumed=tuple(assumed),
    )


def _p99(latency: LatencyTarget | None) -> float | None:
    found = latency.milliseconds.get("p99") if latency else None
    return found / 1000 if found else None


def _instance(measured: float | None, target: float | None, load_test: LoadTestResult | None,
              seconds: float | None, variation: float | None, concurrency: int | None,
              slope: float | None, assumed: list[str]) -> tuple[ServiceLaw, int, float]:
    """Service law, concurrency and slope of one instance."""
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
        cv = VARIATION_ASSUMED if variation is None else variation
        if seconds is None:
            if measured is None or (target is None and concurrency is None):
                raise THROUGHPUT_NEEDED.error(
                    got="neither a throughput with a p99 target nor a service time",
                    allowed="throughput and latency in the settings, --from-load-test, or "
                            "--service-time", where="throughput")
            if concurrency is None:
                assert target
                spread = math.log1p(cv * cv)
                tail = math.exp(_Z99 * math.sqrt(spread) - spread / 2)
                concurrency = max(1, math.ceil(
                    measured * SERVICE_SHARE * target / tail / BUSY_AT_MEASURED))
            per_second = max(1.0, concurrency / (1 + slope * (concurrency - 1)))
            seconds = BUSY_AT_MEASURED * per_second / measured
            assumed.append(
                f"a request alone takes {1000 * seconds:.3g} ms on average and an instance works "
                f"on {concurrency} at once: so it is {BUSY_AT_MEASURED:.0%} busy at the measured "
                f"{measured:g} requests per second, and slow requests alone stay within the "
                "target. Measure it: --from-load-test")
        else:
            assumed.append(f"a request alone takes {1000 * seconds:.3g} ms on average, as given")
        law = Lognormal(MEAN_SECONDS.check(seconds, "service_time"), cv)
        if variation is None:
            assumed.append(f"service times vary like a lognormal law, coefficient of variation "
                           f"{cv:g}")
    if concurrency is None:
        if measured is None:
            concurrency = 1
        else:
            concurrency = max(1, math.ceil(measured * law.mean_seconds / BUSY_AT_MEASURED))
        assumed.append(f"an instance works on {concurrency} requests at once")
    return law, concurrency, slope
