"""What was read about an endpoint, as plain data: the rules see nothing else.

Latencies are in milliseconds and utilizations in percent of the whole instance, whatever unit
CloudWatch has them in: the conversion happens once, when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ...account.alarms import AlarmReading, AlarmTransition
from ...account.calls import Unknown
from ...account.canary import ZoneReading
from ...account.drift import ChangedBy, Drift
from ...account.endpoints import EndpointUpdate
from ...account.metrics import MetricSeries, Series, statistic_of
from ...account.queries import TOKEN_TIMES
from ...account.scaling import Activity, ScalingReading
from ...facts.instance_types import InstanceFacts, instance_facts
from ...facts.prices import Price


@dataclass(frozen=True, slots=True)
class Threshold:
    """A latency in milliseconds, or a share of requests, to keep, and who says so."""

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """The first request that a new endpoint ever got, or a new fleet, though it served ``since``.

    ``configuration`` is the fleet's; empty where the endpoint itself is new.
    """

    time: datetime
    since: datetime
    configuration: str = ""

    @property
    def words(self) -> str:
        """It and those that followed."""
        if self.configuration:
            return f"the first requests after the deployment of {self.configuration}"
        return "the first requests to the new endpoint"


@dataclass(frozen=True, slots=True)
class VariantReading:
    """One production variant with its metrics, by metric and statistic.

    ``scaling`` is ``None`` when it may not be read; so are ``images`` when the model may not be.
    ``instances``, ``zones`` and ``fleets``, by configuration, are empty where CloudWatch has no such
    dimension; ``hosts`` has a language model's token times by instance, as its servers tell them.
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
    inference_components: bool = False
    series: MetricSeries = field(default_factory=dict)
    instances: Mapping[str, MetricSeries] = field(default_factory=dict)
    zones: Mapping[str, MetricSeries] = field(default_factory=dict)
    fleets: Mapping[str, MetricSeries] = field(default_factory=dict)
    hosts: Mapping[str, MetricSeries] = field(default_factory=dict)
    scaling: ScalingReading | None = field(default_factory=ScalingReading)
    thresholds: Mapping[tuple[str, str], Threshold] = field(default_factory=dict)
    first_request: FirstRequest | None = None  # where it came in the window

    def get(self, metric: str, statistic: str) -> Series:
        """One statistic of one metric of the whole variant; empty without data."""
        return statistic_of(self.series, metric, statistic)

    @property
    def has_tokens(self) -> bool:
        return any(metric in TOKEN_TIMES for metric, _ in self.series)

    @property
    def activities(self) -> tuple[Activity, ...]:
        """Scaling activities; none when they may not be read."""
        return (self.scaling.activities if self.scaling else None) or ()

    @property
    def facts(self) -> InstanceFacts | None:
        return instance_facts(self.instance_type)


#: What the time of a deployment rests on where CloudWatch has its fleet's own requests.
FIRST_REQUEST = "first request to the new fleet"


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

    @property
    def is_seen(self) -> bool:
        """Whether it is known when the new fleet began to serve, or served alone."""
        return self.until is not None or self.how == FIRST_REQUEST


@dataclass(frozen=True, slots=True)
class ObservedUpdate:
    """An update or a roll-back under way: what serves, and what is to."""

    update: EndpointUpdate
    serving: str  # the configuration before the update
    changes: tuple[str, ...] | None  # in words; ``None`` where they could not be read
    alarms: tuple[str, ...] = ()  # that end it
    stack: str = ""  # the stack whose update it is, as far as is known

    @property
    def begun(self) -> datetime | None:
        return self.update.begun

    @property
    def configuration(self) -> str:
        """Of the new fleet; empty where SageMaker does not tell."""
        return self.update.configuration_name

    @property
    def name(self) -> str:
        """The update as a noun."""
        if self.update.by_aws:
            return "SageMaker's maintenance"
        return f"the update to {self.configuration or 'another configuration'}"

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe data."""
        return {
            "configuration": self.configuration or None,
            "serving": self.serving,
            "since": self.begun.isoformat() if self.begun else None,
            "stage": self.update.stage or None,
            "rolling_back": self.update.rolling_back,
            "by_aws": self.update.by_aws,
            "changes": None if self.changes is None else list(self.changes),
            "rollback_alarms": list(self.alarms),
            "stack": self.stack or None,
        }


@dataclass(frozen=True, slots=True)
class EndedUpdate:
    """A configuration that served for a while and then no more: the one before it serves again."""

    configuration: str
    serving: str
    start: datetime  # the first request to its fleet ...
    end: datetime  # ... and when the last ones had come


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
    failure_reason: str = ""
    data_capture_percent: int = 0
    asynchronous: bool = False
    deployments: tuple[ObservedDeployment, ...] = ()
    update: ObservedUpdate | None = None
    taken_back: tuple[EndedUpdate, ...] = ()
    alarms: tuple[AlarmReading, ...] | None = ()
    transitions: tuple[AlarmTransition, ...] = ()
    plan: PlanFacts | None = None
    broken_paths: tuple[str, ...] = ()  # read where no request came
    drifts: tuple[ObservedDrift, ...] = ()
    deployed: Mapping[str, DeployedSettings] = field(default_factory=dict)
    unstarted: Unstarted | None = None
    client_latency: Mapping[str, float] = field(default_factory=dict)
    canary: tuple[ZoneReading, ...] = ()  # by client zone
    prices: Mapping[str, Price] = field(default_factory=dict)  # of an instance for an hour, by type
    unknown: tuple[Unknown, ...] = ()
    absent: tuple[str, ...] = ()

    def clock(self, time: datetime) -> str:
        """A time for people: with its day where there are several."""
        near = self.end - min(self.start, time) <= timedelta(days=1)
        return f"{time:%H:%M}" if near else f"{time:%m-%d %H:%M}"

    def alarms_on(self, variant: str, metric: str, statistic: str = "") -> list[AlarmReading]:
        """The variant's alarms on a metric that CloudWatch has, the tightest first."""
        named = [alarm for alarm in self.alarms or () if alarm.variant == variant]
        of_metric = [alarm for alarm in named if alarm.metric == metric and not alarm.new_fleet]
        wanted = [alarm for alarm in of_metric if statistic in ("", alarm.statistic)]
        certain = [alarm for alarm in wanted if not alarm.doubt]
        return sorted(certain, key=lambda alarm: alarm.threshold)


@dataclass(frozen=True, slots=True)
class Rise:
    """From ``time`` on more instances served than before, and went on to."""

    time: datetime
    few: int
    more: int


def serving(metrics: MetricSeries) -> Series:
    """Instances that served, by period: SageMaker publishes no count, but each request adds 1/n."""
    each = statistic_of(metrics, "InvocationsPerInstance", "Sum").points
    served = Series({time: value for time, value in each.items() if value > 0})
    return statistic_of(metrics, "Invocations", "Sum").per(served)


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
