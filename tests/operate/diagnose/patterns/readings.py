# ruff: noqa: RUF009  # the functions that are defaults hold no state
"""What CloudWatch holds of an endpoint, written down directly: weeks of minutes cost nothing."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from low_latency_endpoint.account.metrics import Series, median
from low_latency_endpoint.account.scaling import Activity, ScalingReading
from low_latency_endpoint.operate.diagnose.findings import Finding
from low_latency_endpoint.operate.diagnose.measurements import (
    Measurements,
    ObservedDeployment,
    Threshold,
    VariantReading,
)
from low_latency_endpoint.operate.diagnose.tree import walk

START = datetime(2026, 11, 16, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

PerMinute = Callable[[int], float]


def constant(value: float) -> PerMinute:
    """The same in every minute."""
    return lambda minute: value


def scaled(minute: int, to: int, *, to_fewer: bool = False) -> Activity:
    """A scaling activity that ended in this minute."""
    return Activity(
        START + (minute - 4) * MINUTE,
        START + minute * MINUTE,
        "Successful",
        f"Setting desired instance count to {to}.",
        cause=f"monitor alarm TargetTracking-Alarm{'Low' if to_fewer else 'High'}",
        capacity=to,
    )


@dataclass
class Readings:
    """An endpoint by functions of the minute; each value is noisy by ``noise`` (log-normal).

    A minute's p99 is ``tail`` times its p50, or as ``tail_latency`` says. Periods of several
    minutes have the median of the medians, the highest p99, and the mean of the averages. ``lost``
    is the share of datapoints that CloudWatch does not have, ``gaps`` stretches without any.
    """

    minutes: int = 60
    step: int = 1
    tps: PerMinute = constant(600)
    latency: PerMinute = constant(40)
    tail_latency: PerMinute | None = None
    tail: float = 2.0
    instances: PerMinute = constant(8)
    cpu: PerMinute = constant(45)
    memory: PerMinute = constant(40)
    in_flight: PerMinute | None = None
    errors: PerMinute = constant(0)
    noise: float = 0.03
    seed: int = 0
    lost: float = 0.0
    gaps: Sequence[tuple[int, int]] = ()
    statistics: tuple[str, ...] = ("p50", "p90", "p99", "Average")
    limits: dict[str, float] = field(default_factory=lambda: {"p99": 160.0})
    scaling: tuple[int, int, float] | None = (2, 16, 7800.0)
    activities: list[Activity] = field(default_factory=list)
    deployed: int | None = None
    zones: dict[str, PerMinute] = field(default_factory=dict)

    def at(self, minute: float) -> datetime:
        """The time of a minute."""
        return START + minute * MINUTE

    def measurements(self) -> Measurements:
        """As the reader would give them."""
        chosen = random.Random(self.seed)

        def noisy(value: float) -> float:
            return value * math.exp(chosen.gauss(0, self.noise)) if self.noise else value

        found: dict[tuple[str, str], dict[datetime, float]] = {}
        zones: dict[str, dict[datetime, float]] = {name: {} for name in self.zones}
        for begin in range(0, self.minutes, self.step):
            inside = [
                m
                for m in range(begin, min(begin + self.step, self.minutes))
                if not any(first <= m < last for first, last in self.gaps)
            ]
            if not inside:
                continue
            time = self.at(begin)

            def put(metric: str, statistic: str, value: float, time: datetime = time) -> None:
                if chosen.random() >= self.lost:
                    found.setdefault((metric, statistic), {})[time] = value

            counts = {m: self.tps(m) * 60 for m in inside}
            came = sum(counts.values())
            asked = [m for m in inside if counts[m] > 0]
            if asked:
                p50 = {m: noisy(self.latency(m)) for m in asked}
                p99 = {
                    m: noisy(self.tail_latency(m)) if self.tail_latency else self.tail * noisy(v)
                    for m, v in p50.items()
                }
                values = {
                    "p50": median(p50.values()),
                    "p90": median((p50[m] + p99[m]) / 2 for m in asked),
                    "p99": max(p99.values()),
                    "Average": sum((0.98 * p50[m] + 0.02 * p99[m]) * counts[m] for m in asked)
                    / came,
                    "Maximum": 1.2 * max(p99.values()),
                }
                for statistic in (*self.statistics, "Maximum"):
                    put("ModelLatency", statistic, values[statistic] or 0.0)
                put("ModelLatency", "SampleCount", came)
                put("OverheadLatency", "Average", noisy(6))
                found.setdefault(("Invocations", "Sum"), {})[time] = came
                put(
                    "InvocationsPerInstance",
                    "Sum",
                    sum(counts[m] / self.instances(m) for m in asked),
                )
                flight = self.in_flight or (
                    lambda m: max(1.0, self.tps(m) * self.latency(m) / 1000)
                )
                put("ConcurrentRequestsPerModel", "Maximum", max(flight(m) for m in asked))
                failed = round(sum(self.errors(m) * counts[m] for m in asked))
                put("Invocation5XXErrors", "Sum", failed)
                for name, part in self.zones.items():
                    zones[name][time] = sum(part(m) * counts[m] for m in asked)
            for metric, value in (("CPUUtilization", self.cpu), ("MemoryUtilization", self.memory)):
                mean = sum(noisy(value(m)) for m in inside) / len(inside)
                put(metric, "Average", min(mean, 100))
        last = self.minutes - 1
        variant = VariantReading(
            name="primary",
            instance_type="ml.m5.12xlarge",
            routing="LEAST_OUTSTANDING_REQUESTS",
            current_instances=round(self.instances(last)),
            desired_instances=round(self.instances(last)),
            series={key: Series(points) for key, points in found.items()},
            zones={
                name: {("Invocations", "Sum"): Series(points)} for name, points in zones.items()
            },
            scaling=ScalingReading()
            if self.scaling is None
            else ScalingReading(
                self.scaling[0],
                self.scaling[1],
                "SageMakerVariantInvocationsPerInstance",
                self.scaling[2],
                60,
                activities=tuple(self.activities),
            ),
            thresholds={
                ("ModelLatency", statistic): Threshold(value, "an alarm's threshold")
                for statistic, value in self.limits.items()
            }
            | (
                {("OverheadLatency", "Average"): Threshold(40, "an alarm's threshold")}
                if self.limits
                else {}
            ),
        )
        deployments = ()
        if self.deployed is not None:
            deployments = (
                ObservedDeployment(
                    self.at(self.deployed),
                    "sentiment-2",
                    "when its image was resolved",
                    until=self.at(self.deployed + 4),
                ),
            )
        return Measurements(
            endpoint="sentiment",
            region="us-east-1",
            start=START,
            end=self.at(self.minutes),
            period=self.step * MINUTE,
            status="InService",
            variants=(variant,),
            deployments=deployments,
        )

    def findings(self) -> list[Finding]:
        """What is found in it."""
        return walk(self.measurements())

    def ids(self) -> list[str]:
        """The ids of what is found."""
        return [finding.id for finding in self.findings()]
