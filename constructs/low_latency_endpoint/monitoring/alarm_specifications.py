"""Each kind of alarm as data: metric, threshold, what it means, what to look at first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from typing import Any, Literal

from aws_cdk import Aws
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..errors.frozen import dataclass
from ..facts.durations import milliseconds_of
from ..facts.metrics import microseconds_from_milliseconds
from ..facts.rules import ZONES_NOT_KNOWN
from ..hosting.endpoint_metrics import EndpointVariant, checked_period
from ..hosting.instance_type import InstanceType
from ..options.alarms import (
    BURN_RATES,
    DEFAULT_PERIOD_SECONDS,
    AlarmOptions,
    SlowRequests,
    Thresholds,
    error_share,
    flattened,
)
from ..plan.alarm_windows import AlarmWindow, latency_window, share_window, silence_window
from ..plan.published_metrics import METRICS_IN_ALARM, highest_utilization
from ..synthesis.construct_tree import stack_of
from ..synthesis.homes import check_home
from ..synthesis.template_values import is_token

ABOVE = cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD
BELOW = cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD
MISSING_IS_FINE = cloudwatch.TreatMissingData.NOT_BREACHING
SILENCE_IS_THE_FAULT = cloudwatch.TreatMissingData.BREACHING

_UTILIZATIONS = {
    "cpu_utilization": ("CPUUtilization", "vCPUs are saturated"),
    "memory_utilization": ("MemoryUtilization", "the container is about to run out of memory"),
    "disk_utilization": ("DiskUtilization", "the volume is about to be full"),
    "gpu_utilization": ("GPUUtilization", "GPUs are saturated"),
    "gpu_memory_utilization": ("GPUMemoryUtilization", "GPU memory is about to run out"),
}

_OF_TYPE = "InstanceType"
_LATENCY_TEXTS = {
    "ModelLatency": (
        "requests take longer in the model's container than they may",
        "utilization and invocations per instance against the scaling target; then the container",
    ),
    "OverheadLatency": (
        "SageMaker adds more than it may: payload size, request frequency, authorization, or new "
        "instances",
        "payload sizes, and recent deployments and scaling activities",
    ),
}
ERROR_TEXTS = (
    (
        "error_rate",
        "Invocation5XXErrors",
        "the model or its instances fail",
        "the container's log, memory, and whether the fleet is saturated",
    ),
    (
        "client_error_rate",
        "Invocation4XXErrors",
        "callers send what the model refuses",
        "recent changes of callers; payload size and content type",
    ),
    (
        "model_error_rate",
        "InvocationModelErrors",
        "the container answers with errors or not at all",
        "the container's log",
    ),
)


@dataclass(frozen=True, kw_only=True)
class DescribedAlarm:
    """What an alarm says to people."""

    key: str  # ``<metric>/<statistic>`` and, with severities, ``/<severity>``
    when: str  # the condition in words, with the unit that people use
    means: str  # what it means
    look_first: str  # what to look at first
    severity: str = ""  # empty without severities

    def text(self, of: str) -> str:
        """Its description."""
        return f"{of}: {self.when}. Means: {self.means}. Look first at: {self.look_first}."


@dataclass(frozen=True, kw_only=True)
class AlarmSpecification(DescribedAlarm):
    """One alarm to make."""

    metric: cloudwatch.IMetric
    threshold: float  # in the metric's own unit
    group: str = ""  # alarms of one group alarm together, all of them: the windows of a burn rate
    operator: cloudwatch.ComparisonOperator = ABOVE
    missing: cloudwatch.TreatMissingData = MISSING_IS_FINE
    # evaluation periods and datapoints to alarm; by default those of the construct
    periods: tuple[int, int] | None = None
    unknown: tuple[str, ...] = field(default=())

    def made(
        self, scope: Construct, key: str, description: str, periods: tuple[int, int] = (1, 1)
    ) -> cloudwatch.Alarm:
        """The alarm, below a construct."""
        evaluation_periods, datapoints = self.periods or periods
        return cloudwatch.Alarm(
            scope,
            key.replace("/", "-"),
            metric=self.metric,
            threshold=self.threshold,
            evaluation_periods=evaluation_periods,
            datapoints_to_alarm=datapoints,
            comparison_operator=self.operator,
            treat_missing_data=self.missing,
            alarm_description=description,
        )


def specifications(
    variant: EndpointVariant,
    options: AlarmOptions,
    *,
    new_fleet: bool,
    max_instances: int | None,
    peak_tps: float | None,
    quiet_tps: float | None,
    where: str,
) -> Iterator[AlarmSpecification]:
    """All alarms of one variant that the options ask for; a rate is None if not known."""
    watch = _Watch(variant, options, new_fleet, peak_tps, where)
    yield from watch.latencies("ModelLatency", options.model_latency)
    yield from watch.latencies("OverheadLatency", options.overhead_latency)
    yield from watch.error_rates()
    slow = options.slow_requests
    if slow is not None:
        yield from watch.burn_rates(slow)
    yield from watch.utilizations()
    yield from watch.multi_model()
    if max_instances is not None:
        yield watch.capacity(max_instances)
    imbalance = options.zone_imbalance
    if imbalance is not None:
        yield watch.zones(imbalance)
    if options.expect_traffic:
        yield watch.silence(quiet_tps)


class _Watch:
    """One variant under the options' period and fleet."""

    def __init__(
        self,
        variant: EndpointVariant,
        options: AlarmOptions,
        new_fleet: bool,
        peak_tps: float | None,
        where: str,
    ) -> None:
        self._variant = variant
        self._options = options
        self._where = where
        self._fleet: Literal["new", "whole"] = "new" if new_fleet else "whole"
        self._window = options.window
        self._period = checked_period(options.period, DEFAULT_PERIOD_SECONDS, where)
        self._seconds = timedelta(seconds=self._window.period_seconds or DEFAULT_PERIOD_SECONDS)
        self._tps = peak_tps

    def _metric(
        self,
        name: str,
        statistic: str,
        period: timedelta | None = None,
        dimensions: Mapping[str, str] | None = None,
    ) -> cloudwatch.Metric:
        return self._variant.metric(
            name,
            statistic=statistic,
            period=period or self._seconds,
            fleet=self._fleet,
            dimensions=dimensions,
        )

    def latencies(
        self, name: str, thresholds: Thresholds | str | None
    ) -> Iterator[AlarmSpecification]:
        for severity, statistic, threshold in flattened(thresholds):
            milliseconds = milliseconds_of(threshold)
            means, look_first = _LATENCY_TEXTS[name]
            window = latency_window(self._window, statistic, self._tps)
            period = timedelta(seconds=window.seconds)
            yield AlarmSpecification(
                key=f"{name}/{statistic}" + (f"/{severity}" if severity else ""),
                metric=self._metric(name, statistic, period),
                threshold=microseconds_from_milliseconds(milliseconds),
                when=f"{name} {statistic} is above {milliseconds:g} ms",
                means=means,
                look_first=look_first,
                severity=severity,
                periods=window.counts,
            )
            for instance_type in self._pool_types() if name == "ModelLatency" else ():
                yield AlarmSpecification(
                    key=f"{name}/{statistic}/{instance_type}"
                    + (f"/{severity}" if severity else ""),
                    metric=self._metric(
                        name, statistic, period, dimensions={_OF_TYPE: instance_type.name}
                    ),
                    threshold=microseconds_from_milliseconds(milliseconds),
                    when=f"{name} {statistic} on {instance_type} is above {milliseconds:g} ms",
                    means="requests that this type of the pools takes are slower than they may be",
                    look_first="whether the pools fell back to this type, and its utilization; "
                    "what it was sized for",
                    severity=severity,
                    periods=window.counts,
                )

    def error_rates(self) -> Iterator[AlarmSpecification]:
        window = share_window(self._window, self._tps)
        for option, metric, means, look_first in ERROR_TEXTS:
            rate = error_share(self._options, option)
            if rate is None:
                continue
            yield AlarmSpecification(
                key=f"{metric}/Rate",
                metric=self._share(metric, f"share of invocations with {metric}", window),
                threshold=rate,
                when=f"more than {_stated(rate)} of the invocations are {metric}",
                means=means,
                look_first=look_first,
                periods=window.counts,
            )

    def _share(self, metric: str, label: str, window: AlarmWindow) -> cloudwatch.MathExpression:
        period = timedelta(seconds=window.seconds)
        return share_of_failures(
            self._metric(metric, "Sum", period),
            self._metric("Invocations", "Sum", period),
            failures=self._options.minimum_failures,
            period=period,
            label=label,
        )

    def burn_rates(self, slow: SlowRequests) -> Iterator[AlarmSpecification]:
        milliseconds = milliseconds_of(slow.threshold)
        statistic = f"PR({microseconds_from_milliseconds(milliseconds):.0f}:)"
        for name, (long, short, rate) in BURN_RATES.items():
            for window, minutes in (("Long", long), ("Short", short)):
                yield AlarmSpecification(
                    key=f"ModelLatency/BurnRate{name}/{window}",
                    metric=self._metric("ModelLatency", statistic, timedelta(minutes=minutes)),
                    threshold=100 * rate * slow.budget,
                    when=f"over {minutes} minutes the share of requests over "
                    f"{milliseconds:g} ms burns a month's budget {rate:g} times too fast",
                    means=f"the objective ({slow.objective * 100:g} % faster than "
                    f"{milliseconds:g} ms) will be missed",
                    look_first="the share of slow requests, and what changed when it rose",
                    group=f"BurnRate{name}",
                    periods=(1, 1),
                )

    def utilizations(self) -> Iterator[AlarmSpecification]:
        for option, (metric, means) in _UTILIZATIONS.items():
            percent: float | None = getattr(self._options, option)
            if percent is None:
                continue
            highest = self._highest(metric)
            instance = (
                "the smallest of the instance types" if self._pool_types() else "the instance"
            )
            yield AlarmSpecification(
                key=f"{metric}/Average",
                metric=self._metric(metric, "Average"),
                threshold=percent * (highest or 100) / 100,
                when=f"{metric} is above {percent:g} % of {instance}",
                means=means,
                look_first="invocations per instance against the scaling target",
                unknown=() if highest else (metric,),
            )
            yield from self._utilization_by_type(metric, percent, means)

    def _utilization_by_type(
        self, metric: str, percent: float, means: str
    ) -> Iterator[AlarmSpecification]:
        """One alarm more for each type of the pools, with its own number of vCPUs and GPUs."""
        # Beside the variant's alarm, not in its place: AWS's page names the dimension of the type,
        # but a catalog of a real account's series (cloud-custodian, September 2026) has none of
        # these metrics with it, and an alarm without data never goes off.
        for instance_type in _types_with(metric, self._pool_types()):
            highest = highest_utilization(metric, instance_type.name)
            yield AlarmSpecification(
                key=f"{metric}/Average/{instance_type}",
                metric=self._metric(metric, "Average", dimensions={_OF_TYPE: instance_type.name}),
                threshold=percent * (highest or 100) / 100,
                when=f"{metric} is above {percent:g} % of the instance on {instance_type}",
                means=means,
                look_first="invocations per instance against the scaling target, and whether this "
                "type holds it",
                unknown=() if highest else (metric,),
            )

    def _pool_types(self) -> Sequence[InstanceType]:
        """The types of several pools, for each of which SageMaker publishes metrics of its own."""
        # None for the new fleet: AWS lists no set of dimensions with type and configuration. None
        # where a type is a token: which of them differ is not known.
        types = self._variant.attributes.instance_types
        if (
            len(types) < 2
            or self._fleet == "new"
            or any(is_token(instance_type.name) for instance_type in types)
        ):
            return ()
        return types

    def _highest(self, metric: str) -> float | None:
        """The metric's value on a full instance, for the smallest type of the variant."""
        highest_by_type = [
            highest_utilization(metric, instance_type.name)
            for instance_type in _types_with(metric, self._variant.attributes.instance_types)
        ]
        known = [value for value in highest_by_type if value]
        return min(known) if known and len(known) == len(highest_by_type) else None

    def multi_model(self) -> Iterator[AlarmSpecification]:
        rate = self._options.cache_miss_rate
        if rate is not None:
            yield AlarmSpecification(
                key="ModelCacheHit/Average",
                metric=self._metric("ModelCacheHit", "Average"),
                threshold=1 - rate,
                operator=BELOW,
                when=f"more than {rate * 100:g} % of the requests find their model not loaded",
                means="more models are in use than fit into memory",
                look_first="LoadedModelCount and memory; a larger instance or fewer models",
            )
        wait = self._options.model_loading_wait
        if wait is not None:
            milliseconds = milliseconds_of(wait)
            yield AlarmSpecification(
                key="ModelLoadingWaitTime/Average",
                metric=self._metric("ModelLoadingWaitTime", "Average"),
                threshold=microseconds_from_milliseconds(milliseconds),
                when=f"requests wait {milliseconds:g} ms for their model on average",
                means="models are downloaded and loaded while callers wait",
                look_first="ModelDownloadingTime against ModelLoadingTime",
            )

    def capacity(self, max_instances: int) -> AlarmSpecification:
        known_later = is_token(max_instances)  # CloudFormation does not subtract
        return AlarmSpecification(
            key="Instances/Maximum",
            # SageMaker publishes no instance count; each request adds 1/n per instance.
            metric=cloudwatch.MathExpression(
                expression="IF(per_instance > 0, invocations / per_instance, 0)"
                + (" + 0.5" if known_later else ""),
                using_metrics={
                    "invocations": self._metric("Invocations", "Sum"),
                    "per_instance": self._metric("InvocationsPerInstance", "Sum"),
                },
                period=self._period,
                label="instances that serve",
            ),
            threshold=max_instances if known_later else max_instances - 0.5,
            when=f"all {max_instances} instances that scaling may start are serving",
            means="the next rise in traffic finds no more instances",
            look_first="invocations per instance against the scaling target; raise the maximum",
            periods=(5, 5),
        )

    def zones(self, imbalance: float) -> AlarmSpecification:
        variant = self._variant.attributes
        if variant.network is None or not variant.instance_types:
            raise ZONES_NOT_KNOWN.error(
                got=f"zone_imbalance of {variant.name}",
                allowed="a variant whose network and instance_types are known",
                where=self._where,
            )
        names = [name for name in variant.network.zone_names if name is not None]
        METRICS_IN_ALARM.check(len(names), self._where)
        instance_type = variant.instance_types[0].name
        metrics = {
            f"zone{index}": self._metric(
                "Invocations",
                "Sum",
                dimensions={
                    "Region": Aws.REGION,
                    "AvailabilityZone": name,
                    "InstanceType": instance_type,
                },
            )
            for index, name in enumerate(names)
        }
        series = f"[{', '.join(metrics)}]"
        return AlarmSpecification(
            key="Invocations/ZoneImbalance",
            metric=cloudwatch.MathExpression(
                expression=f"IF(SUM({series}) >= {self._options.minimum_invocations}, "
                f"MAX({series}) * {len(names)} / SUM({series}), 1)",
                using_metrics=metrics,
                period=self._period,
                label="busiest zone over an even share",
            ),
            threshold=imbalance,
            when=f"the busiest zone gets {_plain(imbalance)} times its even share",
            means="instances or callers are unevenly spread over the zones",
            look_first="instances per zone, and the zones of the callers",
        )

    def silence(self, quiet_tps: float | None) -> AlarmSpecification:
        window = silence_window(self._window, quiet_tps)
        return AlarmSpecification(
            key="Invocations/Silence",
            metric=self._metric("Invocations", "Sum", timedelta(seconds=window.seconds)),
            threshold=1,
            operator=BELOW,
            missing=SILENCE_IS_THE_FAULT,
            when="no requests arrive",
            means="callers cannot reach the endpoint, or have stopped calling",
            look_first="DNS and security group of the interface endpoint, from a caller",
            periods=window.counts,
        )


def share_of_failures(
    errors: cloudwatch.IMetric,
    invocations: cloudwatch.IMetric,
    *,
    failures: int,
    period: timedelta,
    label: str,
) -> cloudwatch.MathExpression:
    """The share of the requests that fail, zero below so many failures.

    The floor is on failures: a floor on requests would let one failure of them alarm, and would
    keep an endpoint with fewer requests silent while all of them fail.
    """
    return cloudwatch.MathExpression(
        expression=f"IF(errors >= {failures}, errors / invocations, 0)",
        using_metrics={"errors": errors, "invocations": invocations},
        period=checked_period(period, DEFAULT_PERIOD_SECONDS, label),
        label=label,
    )


def _plain(number: float) -> str:
    """A number that may be a token, which CDK finds in text by all of its digits."""
    return str(number) if is_token(number) else f"{number:g}"


def _stated(rate: float) -> str:
    """A rate that may be a token, in percent."""
    return "the stated share" if is_token(rate) else f"{rate * 100:g} %"


def _types_with(metric: str, types: Sequence[InstanceType]) -> list[InstanceType]:
    """The instance types that may publish the metric: a GPU's needs a GPU."""
    if not metric.startswith("GPU"):
        return list(types)
    return [instance_type for instance_type in types if _may_have_gpus(instance_type)]


def _may_have_gpus(instance_type: InstanceType) -> bool:
    """Whether a type publishes GPU metrics; one that is not known may."""
    facts = instance_type.facts
    return facts is None or facts.accelerator == "nvidia"


def notify(alarm: cloudwatch.AlarmBase, actions: Sequence[cloudwatch.IAlarmAction]) -> None:
    """Let an alarm act: on topics and functions of its own Region, or LLE951."""
    for action in actions:
        alarm.add_alarm_action(action)
    if actions:
        resource: Any = alarm.node.default_child
        notified = stack_of(alarm).resolve(resource.alarm_actions)
        check_home(alarm, *(arn for arn in notified if isinstance(arn, str)))
