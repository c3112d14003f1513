"""What CloudWatch has of the same endpoint and time: model latency, overhead, use, errors.

The client sees the whole time of a request; CloudWatch splits it. Its values arrive a minute or
two after the requests, and cover whole minutes: a step shorter than that shares its minutes with
its neighbours, which is said wherever such values are shown.

Permissions: ``sagemaker:DescribeEndpoint``, ``sagemaker:DescribeEndpointConfig``,
``application-autoscaling:DescribeScalableTargets``, ``cloudwatch:GetMetricData``. What may not be
read is unknown, and the load test goes on without it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from ..errors import ConfigurationError
from ..operations.diagnosis.asking import Account
from ..operations.diagnosis.breaches import ENDPOINT_EXISTS, METRICS_READABLE
from ..operations.diagnosis.measurements import Series
from ..operations.diagnosis.read_metrics import read_queries, variant_queries

__all__ = ["Fleet", "JoinedMetrics", "Window", "read_fleet", "read_joined"]

PERIOD = timedelta(minutes=1)
_COUNTED = 0.98        # share of the answers that CloudWatch must have counted to be complete
_PAUSES = (1.0, 2.0, 5.0, 10.0)
_SUMMED = {"Invocations", "Invocation4XXErrors", "Invocation5XXErrors", "InvocationModelErrors",
           "MidStreamErrors"}
_LATENCIES = {"ModelLatency", "OverheadLatency"}


@dataclass(frozen=True)
class Fleet:
    """The variant behind the endpoint as it was when it was read.

    ``instances`` is ``None`` where that may not be read; ``maximum`` is the most that scaling may
    add, ``None`` without scaling.
    """

    variant: str = ""
    variants: tuple[str, ...] = ()
    instance_type: str = ""
    instances: int | None = None
    routing: str = ""
    minimum: int | None = None
    maximum: int | None = None
    unknown: tuple[str, ...] = ()

    @property
    def scales(self) -> bool:
        """Whether scaling may change the number of instances."""
        return self.maximum is not None and self.maximum != self.minimum

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {"variant": self.variant, "instance_type": self.instance_type,
                "instances": self.instances, "routing": self.routing, "minimum": self.minimum,
                "maximum": self.maximum, "unknown": list(self.unknown)}


def read_fleet(account: Account, endpoint: str, variant: str | None = None,
               region: str = "") -> Fleet:
    """Describe the variant.

    Parameters
    ----------
    account : Account
    endpoint : str
    variant : str, optional
        By default the endpoint's first.
    region : str
        For errors.

    Raises
    ------
    ConfigurationError
        ``LLE581`` when there is no such endpoint, or no such variant of it, ``LLE583`` without
        credentials.
    """
    described = account.ask("endpoint", "sagemaker", "describe_endpoint", EndpointName=endpoint)
    if described is None:
        why = account.unknown[-1].why
        if "ould not find" in why:
            raise ENDPOINT_EXISTS.error(got=f"{endpoint} in {region}" if region else endpoint,
                                        allowed="the name of an endpoint")
        return Fleet(variant or "", unknown=(f"instances: {why}",))
    running = {each["VariantName"]: each for each in described.get("ProductionVariants", [])}
    if variant is not None and variant not in running:
        raise ENDPOINT_EXISTS.error(got=f"variant {variant} of {endpoint}",
                                    allowed=", ".join(running) or "a variant of the endpoint",
                                    what="the variant must exist", mend="Check --variant.")
    name = variant or next(iter(running), "")
    one = running.get(name, {})
    config = account.ask("endpoint configuration", "sagemaker", "describe_endpoint_config",
                         EndpointConfigName=described["EndpointConfigName"]) or {}
    configured: dict[str, Any] = next((each for each in config.get("ProductionVariants", [])
                                       if each["VariantName"] == name), {})
    targets = account.ask(
        "scaling", "application-autoscaling", "describe_scalable_targets",
        ServiceNamespace="sagemaker", ResourceIds=[f"endpoint/{endpoint}/variant/{name}"]) or {}
    target: dict[str, Any] = next(iter(targets.get("ScalableTargets", [])), {})
    return Fleet(
        variant=name, variants=tuple(running),
        instance_type=configured.get("InstanceType", ""),
        instances=one.get("CurrentInstanceCount"),
        routing=(configured.get("RoutingConfig") or {}).get("RoutingStrategy", "RANDOM"),
        minimum=target.get("MinCapacity"), maximum=target.get("MaxCapacity"),
        unknown=tuple(f"{each.what}: {each.why}" for each in account.unknown))


@dataclass(frozen=True)
class Window:
    """Values of a stretch of time, by metric and statistic such as ``ModelLatency.p99``.

    Latencies in milliseconds, utilization in percent of the whole instance, sums of requests per
    second. ``shared`` when its minutes hold requests from before or after, too.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    shared: bool = False

    def get(self, name: str) -> float | None:
        """One value."""
        return self.values.get(name)

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {"values": dict(self.values), "shared_minutes": self.shared}


@dataclass(frozen=True)
class JoinedMetrics:
    """CloudWatch's series over the run.

    Attributes
    ----------
    series : mapping of (str, str) to Series
        By metric and statistic; milliseconds and percent of the whole instance.
    complete : bool
        Whether it had counted the answers when it was read.
    unknown : tuple of str
        What could not be read, and why.
    """

    series: Mapping[tuple[str, str], Series] = field(default_factory=dict)
    complete: bool = False
    unknown: tuple[str, ...] = ()

    def during(self, start: float, end: float) -> Window:
        """The values between two moments (epoch seconds), from their minutes.

        Minutes that lie inside as a whole are preferred; without any, those of which the stretch
        fills most.
        """
        seconds = PERIOD.total_seconds()
        overlap = {minute: min(end, minute + seconds) - max(start, minute)
                   for minute in _minutes(start, end)}
        whole = {minute for minute, part in overlap.items() if part >= seconds - 1e-6}
        most = max(overlap.values(), default=0.0)
        chosen = whole or {minute for minute, part in overlap.items() if part >= 0.5 * most}
        counts = self._only(("ModelLatency", "SampleCount"), chosen)
        values: dict[str, float] = {}
        for (metric, statistic), _ in self.series.items():
            if statistic == "SampleCount":
                continue
            found = self._only((metric, statistic), chosen)
            if not found:
                continue
            if metric in _SUMMED:
                value: float | None = found.sum / (seconds * len(chosen))
            elif statistic == "Maximum":
                value = found.max
            elif metric in _LATENCIES:
                value = found.weighted_mean(counts)
            else:
                value = found.mean
            if value is not None:
                values[f"{metric}.{statistic}"] = value
        return Window(values, bool(values) and not whole)

    def _only(self, key: tuple[str, str], minutes: set[float]) -> Series:
        points = self.series.get(key, Series()).points
        return Series({at: value for at, value in points.items() if at.timestamp() in minutes})

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "period_seconds": PERIOD.total_seconds(), "complete": self.complete,
            "unknown": list(self.unknown),
            "series": {f"{metric}.{statistic}": {at.astimezone(UTC).isoformat(): value
                                                 for at, value in sorted(each.points.items())}
                       for (metric, statistic), each in self.series.items() if each},
        }


def read_joined(account: Account, endpoint: str, fleet: Fleet, *, start: float, end: float,
                answers: int, wait: float = 180.0,
                progress: Callable[[str], None] = lambda text: None,
                sleep: Callable[[float], None] = time.sleep) -> JoinedMetrics:
    """Read CloudWatch over a run, once it has counted the run's answers.

    Parameters
    ----------
    account : Account
    endpoint : str
    fleet : Fleet
        Whose variant is read.
    start, end : float
        Epoch seconds.
    answers : int
        Good answers that the client had: until CloudWatch has counted (nearly) as many, its
        values are not complete.
    wait : float
        Seconds to wait for that at most.
    progress : callable
        Is told what is waited for.
    """
    first = datetime.fromtimestamp(start - start % PERIOD.total_seconds(), UTC)
    last = datetime.fromtimestamp(end, UTC) + PERIOD
    queries = list(variant_queries(endpoint, fleet.variant, fleet.instance_type))
    waited, pause, pauses = 0.0, 0.0, iter(_PAUSES)
    while True:
        try:
            found = read_queries(account, queries, first, last, PERIOD)
        except ConfigurationError as error:
            if error.code != METRICS_READABLE.code:
                raise
            return JoinedMetrics(unknown=(f"CloudWatch: {error.got}",))
        series = {(query.metric, query.statistic): values for query, values in found.items()}
        counted = series.get(("Invocations", "Sum"), Series()).sum
        if counted >= _COUNTED * answers or waited >= wait:
            return JoinedMetrics(series, counted >= _COUNTED * answers,
                                 _unscaled(fleet))
        progress(f"CloudWatch has counted {counted:,.0f} of {answers:,} requests")
        pause = min(next(pauses, pause), wait - waited)
        sleep(pause)
        waited += pause


def _unscaled(fleet: Fleet) -> tuple[str, ...]:
    """Utilization is left out where nobody can say of how many processors it is."""
    if fleet.instance_type:
        return ()
    return ("CPU and GPU utilization: the instance type, by which they are scaled, is not known",)


def _minutes(start: float, end: float) -> list[float]:
    seconds = PERIOD.total_seconds()
    first = start - start % seconds
    return [first + number * seconds for number in range(int((end - first) // seconds) + 1)]
