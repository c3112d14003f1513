"""What was read about an endpoint, as plain data: the rules see nothing else.

Latencies are in milliseconds and utilizations in percent of the whole instance, whatever unit
CloudWatch has them in: the conversion happens once, when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ...account.calls import Unknown
from ...account.drift import ChangedBy, Drift
from ...account.metrics import MetricSeries, Series
from ...facts.instance_types import InstanceFacts, instance_facts


@dataclass(frozen=True, slots=True)
class Threshold:
    """A latency in milliseconds, or a share of requests, to keep, and who says so."""

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class Activity:
    """One scaling activity; ``capacity`` is the count it set, ``None`` where it set none."""

    start: datetime
    end: datetime | None
    status: str
    description: str
    message: str = ""
    cause: str = ""
    capacity: int | None = None
    not_scaled: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the instances asked for did not come.

        An activity that was never begun, say at the maximum, has its reasons and did not fail.
        """
        return self.status in ("Failed", "Unfulfilled") and not (
            set(self.not_scaled) - {"TargetServicePutResourceAsUnscalable"}
        )


@dataclass(frozen=True, slots=True)
class ScalingReading:
    """Application Auto Scaling's word on a variant; not registered: ``maximum`` is ``None``.

    ``target`` is invocations per instance and minute, or requests in flight per instance,
    depending on ``metric``. ``activities`` is ``None`` when they may not be read.
    """

    minimum: int | None = None
    maximum: int | None = None
    metric: str = ""
    target: float | None = None
    scale_out_cooldown: float | None = None
    scale_out_suspended: bool = False
    doubt: str = ""  # why the tracked metric cannot be this variant's
    activities: tuple[Activity, ...] | None = ()


@dataclass(frozen=True, slots=True)
class VariantReading:
    """One production variant with its metrics, by metric and statistic.

    ``scaling`` is ``None`` when it may not be read; so are ``images`` and ``multi_model`` when the
    model may not be. ``instances`` and ``zones`` are empty where CloudWatch has no such dimension;
    ``hosts`` has a language model's token times by instance, as its servers tell them.
    """

    name: str
    instance_type: str
    routing: str = "RANDOM"
    routing_stated: bool = True
    current_instances: int | None = None
    weight: float | None = None  # 0 where it is to get no requests
    desired_instances: int | None = None
    images: tuple[str, ...] | None = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    multi_model: bool | None = False
    inference_components: bool = False
    series: MetricSeries = field(default_factory=dict)
    instances: Mapping[str, MetricSeries] = field(default_factory=dict)
    zones: Mapping[str, MetricSeries] = field(default_factory=dict)
    hosts: Mapping[str, MetricSeries] = field(default_factory=dict)
    scaling: ScalingReading | None = ScalingReading()
    thresholds: Mapping[tuple[str, str], Threshold] = field(default_factory=dict)

    def get(self, metric: str, statistic: str) -> Series:
        """One statistic of one metric of the whole variant; empty without data."""
        return self.series.get((metric, statistic), Series())

    @property
    def activities(self) -> tuple[Activity, ...]:
        """Scaling activities; none when they may not be read."""
        return (self.scaling.activities if self.scaling else None) or ()

    @property
    def facts(self) -> InstanceFacts | None:
        """Facts of the instance type; ``None`` when the table does not know it."""
        return instance_facts(self.instance_type)


@dataclass(frozen=True, slots=True)
class ObservedDeployment:
    """One change of the endpoint's configuration.

    New instances serve from ``time``, and from ``until`` only they do, where that is known;
    ``how`` says what the times rest on.
    """

    time: datetime
    configuration: str
    how: str
    first: bool = False
    until: datetime | None = None

    @property
    def done(self) -> datetime:
        """When it was over, as far as that is known."""
        return max(self.time, self.until or self.time)


ERROR_RATES = {
    "Invocation5XXErrors": "error_rate",
    "Invocation4XXErrors": "client_error_rate",
    "InvocationModelErrors": "model_error_rate",
}


@dataclass(frozen=True, slots=True)
class AlarmTransition:
    time: datetime
    alarm: str
    state: str
    before: str = ""
    no_data: bool = False  # whether missing data alone made it so


@dataclass(frozen=True, slots=True)
class AlarmReading:
    """An alarm on the endpoint; the threshold is in milliseconds where ``unit`` says so."""

    name: str
    metric: str
    statistic: str
    threshold: float
    unit: str
    state: str
    since: datetime | None = None
    variant: str = ""
    doubt: str = ""  # why CloudWatch has nothing that it watches
    new_fleet: bool = False  # whether it watches the fleet of one deployment only

    @property
    def title(self) -> str:
        """What it watches, in words: the names that CloudFormation makes say too much."""
        rated = next((name for name, rate in ERROR_RATES.items() if rate == self.metric), "")
        of = f"new fleet of {self.variant}" if self.new_fleet else self.variant
        said = f"{rated} rate" if rated else f"{self.metric} {self.statistic}"
        return f"{of} {said}".replace(" formula", "").strip()

    @property
    def of_scaling(self) -> bool:
        """Whether it is Application Auto Scaling's own, which is on whenever it may scale in."""
        return self.name.startswith("TargetTracking-")


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What the stack's template says the endpoint was planned for."""

    stack: str
    thresholds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    peak_tps: float | None = None
    tps_per_instance: float | None = None
    safety_factor: float | None = None


#: Settings of one variant by their keys, as the deployed template has them.
DeployedSettings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObservedDrift:
    drift: Drift
    by: ChangedBy | None  # who changed it, where CloudTrail names somebody ...
    asked: bool  # ... and whether it was asked


@dataclass(frozen=True, slots=True)
class Unstarted:
    """An endpoint that was never in service and has no log group, though it is ``since`` old.

    ``amis`` has the inference AMI of each variant, ``None`` where SageMaker chooses it.
    """

    log_group: str
    since: timedelta
    amis: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measurements:
    """Everything the rules may look at."""

    endpoint: str
    region: str
    start: datetime
    end: datetime
    period: timedelta
    status: str
    variants: tuple[VariantReading, ...]
    configuration: str = ""
    failure_reason: str = ""
    data_capture_percent: int = 0
    asynchronous: bool = False
    deployments: tuple[ObservedDeployment, ...] = ()
    alarms: tuple[AlarmReading, ...] | None = ()
    transitions: tuple[AlarmTransition, ...] = ()
    plan: PlanFacts | None = None
    broken_paths: tuple[str, ...] = ()  # read where no request came
    drifts: tuple[ObservedDrift, ...] = ()
    deployed: Mapping[str, DeployedSettings] = field(default_factory=dict)
    unstarted: Unstarted | None = None
    client_latency: Mapping[str, float] = field(default_factory=dict)
    unknown: tuple[Unknown, ...] = ()
    absent: tuple[str, ...] = ()

    def clock(self, time: datetime) -> str:
        """A time for people: with its day where there are several."""
        near = self.end - min(self.start, time) <= timedelta(days=1)
        return f"{time:%H:%M}" if near else f"{time:%m-%d %H:%M}"


@dataclass(frozen=True, slots=True)
class Rise:
    """From ``time`` on more instances served than before, and went on to."""

    time: datetime
    few: int
    more: int


def serving(metrics: MetricSeries) -> Series:
    """Instances that served, by period: SageMaker publishes no count, but each request adds 1/n."""
    each = metrics.get(("InvocationsPerInstance", "Sum"), Series()).points
    served = Series({time: value for time, value in each.items() if value > 0})
    return metrics.get(("Invocations", "Sum"), Series()).per(served)


def rises(counts: Series) -> Iterator[Rise]:
    """All rises that last for more than a period.

    >>> from datetime import timedelta
    >>> times = [datetime(2026, 11, 20) + timedelta(minutes=n) for n in range(6)]
    >>> counts = Series(dict(zip(times, [2.0, 2.0, 3.2, 4.0, 4.0, 4.0])))
    >>> [(rise.time.minute, rise.few, rise.more) for rise in rises(counts)]
    [(2, 2, 4), (3, 3, 4)]
    """
    times = counts.times
    for index in range(1, len(times)):
        after = times[min(index + 1, len(times) - 1)]
        few, some, more = (round(counts.points[t]) for t in (times[index - 1], times[index], after))
        if few < some <= more:
            yield Rise(times[index], few, more)
