"""Reads everything about one endpoint in a window: read-only, and what is refused is unknown.

Permissions, all read-only. Without the first two there is no diagnosis; without another, what it
would have told is unknown: ``sagemaker:DescribeEndpoint``, ``cloudwatch:GetMetricData``,
``sagemaker:DescribeEndpointConfig``, ``sagemaker:DescribeModel``, ``cloudwatch:ListMetrics``,
``cloudwatch:DescribeAlarms``, ``cloudwatch:DescribeAlarmHistory``,
``application-autoscaling:DescribeScalableTargets``,
``application-autoscaling:DescribeScalingPolicies``,
``application-autoscaling:DescribeScalingActivities``,
``cloudformation:DescribeStackResources``, ``cloudformation:GetTemplate``,
``logs:DescribeLogGroups``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from ...errors import ConfigurationError
from ...planning.latency_plan import DEFAULT_OVERHEAD_SHARE
from .asking import Account, ClientFactory
from .breaches import ENDPOINT_EXISTS
from .measurements import (
    Activity,
    Deployment,
    Measurements,
    MetricSeries,
    PlanFacts,
    ScalingReading,
    Series,
    Threshold,
    Unknown,
    VariantReading,
)
from .not_started import read_unstarted
from .read_fleet import alarm_thresholds, read_alarms, read_plan, read_scaling, read_transitions
from .read_metrics import Query, by_dimension, period_for, read_queries, variant_queries
from .serving import rises, serving

__all__ = ["read_measurements"]

#: Series by variant and kind, then by member.
Shares = dict[tuple[str, str], dict[str, MetricSeries]]

#: What began this long before the window may still be felt in it.
_LOOK_BACK = timedelta(minutes=15)
#: Longest time between a configuration's creation and the end of its deployment.
_DEPLOYMENT = timedelta(hours=8)


def read_measurements(
    client: ClientFactory, endpoint: str, *, start: datetime, end: datetime, now: datetime,
    region: str = "", targets: Mapping[str, float] | None = None,
    client_latency: Mapping[str, float] | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Measurements:
    """Read what the rules need; parameters and errors are those of ``diagnose``."""
    account = Account(client, progress)
    progress("Endpoint")
    described = _endpoint(account, endpoint, region)
    period = period_for(start, end, now)
    start, end = _aligned(start, period), _aligned(end, period)
    configuration = account.ask("endpoint configuration", "sagemaker", "describe_endpoint_config",
                                EndpointConfigName=described["EndpointConfigName"])
    configured = {v["VariantName"]: v for v in (configuration or {}).get("ProductionVariants", [])}
    progress("Alarms")
    alarms = read_alarms(account, endpoint)
    transitions = tuple(read_transitions(account, alarms or (), start, end))
    progress("Plan")
    plan = read_plan(account, described["EndpointArn"])
    variants = []
    # An endpoint that was never in service may be described without its variants.
    for running in described.get("ProductionVariants") or [{"VariantName": v} for v in configured]:
        name = running["VariantName"]
        progress(f"Variant {name}")
        variants.append(_Variant(
            running, configured.get(name, {}), _model(account, configured.get(name, {})),
            read_scaling(account, endpoint, name, start, end),
            _thresholds(targets or {}, alarm_thresholds(alarms, name), plan)))
    queries, listed = _queries(account, endpoint, variants)
    series = read_queries(account, queries, start, end, period)
    shares = _shares(series)
    absent = _absent(listed, variants, shares)
    unstarted = read_unstarted(account, described, configuration, now)
    return Measurements(
        endpoint=endpoint, region=region, start=start, end=end, period=period,
        status=described["EndpointStatus"], configuration=described["EndpointConfigName"],
        failure_reason=described.get("FailureReason", ""),
        data_capture_percent=_capture(described),
        enhanced_metrics=(described.get("MetricsConfig") or (configuration or {}).get(
            "MetricsConfig") or {}).get("EnableEnhancedMetrics"),
        variants=tuple(each.reading(shares) for each in variants),
        deployments=tuple(_deployments(described, configuration, series, shares, variants, start,
                                       end, period)),
        alarms=alarms, transitions=transitions, plan=plan,
        unstarted=unstarted,
        client_latency=dict(client_latency or {}),
        unknown=tuple(account.unknown) + tuple(_type_unknown(v) for v in variants
                                               if not v.instance_type_known),
        absent=tuple(absent),
    )


class _Variant:
    """A variant on its way from descriptions to a reading."""

    def __init__(self, running: dict[str, Any], configured: dict[str, Any],
                 model: dict[str, Any] | None, scaling: ScalingReading | None,
                 thresholds: dict[tuple[str, str], Threshold]) -> None:
        self.name: str = running["VariantName"]
        pools = configured.get("InstancePools") or running.get("InstancePools") or []
        self.instance_type: str = configured.get("InstanceType") or \
            (pools[0]["InstanceType"] if pools else "")
        self.thresholds = thresholds
        self._running, self._configured = running, configured
        self._model, self._scaling = model, scaling

    @property
    def instance_type_known(self) -> bool:
        return bool(self.instance_type) or "ServerlessConfig" in self._configured

    @property
    def scaling_activities(self) -> tuple[Activity, ...]:
        return (self._scaling.activities if self._scaling else None) or ()

    @property
    def inference_components(self) -> bool:
        return bool(self._configured) and not self._configured.get("ModelName")

    def reading(self, shares: Shares) -> VariantReading:
        routing = (self._running.get("RoutingConfig") or self._configured.get("RoutingConfig")
                   or {}).get("RoutingStrategy")
        containers = _containers(self._model)
        environment: dict[str, str] = {}
        for container in containers:
            environment |= container.get("Environment", {})
        return VariantReading(
            name=self.name, instance_type=self.instance_type,
            routing=routing or "RANDOM", routing_stated=routing is not None,
            current_instances=self._running.get("CurrentInstanceCount"),
            desired_instances=self._running.get("DesiredInstanceCount"),
            images=None if self._model is None else tuple(c.get("Image", "") for c in containers),
            environment=environment,
            multi_model=None if self._model is None else any(
                c.get("Mode") == "MultiModel" for c in containers),
            inference_components=self.inference_components,
            series=shares.get((self.name, ""), {}).get("", {}),
            instances=shares.get((self.name, "instance"), {}),
            zones=shares.get((self.name, "zone"), {}),
            scaling=self._scaling, thresholds=self.thresholds,
        )


def _endpoint(account: Account, endpoint: str, region: str) -> dict[str, Any]:
    try:
        return account.must("sagemaker", "describe_endpoint", EndpointName=endpoint)
    except ConfigurationError as error:
        cause = error.__cause__
        said = cause.response["Error"] if isinstance(cause, ClientError) else {}
        if said.get("Code") == "ValidationException" and "ould not find" in said["Message"]:
            raise ENDPOINT_EXISTS.error(
                got=f"{endpoint} in {region}" if region else endpoint,
                allowed="the name of an endpoint") from cause
        raise


def _aligned(time: datetime, period: timedelta) -> datetime:
    """The start of the period that contains the time, as CloudWatch counts them."""
    return time - timedelta(seconds=time.timestamp() % period.total_seconds())


def _model(account: Account, configured: dict[str, Any]) -> dict[str, Any] | None:
    name = configured.get("ModelName")
    return account.ask(f"model {name}", "sagemaker", "describe_model", ModelName=name) \
        if name else None


def _containers(model: dict[str, Any] | None) -> list[dict[str, Any]]:
    if not model:
        return []
    primary = model.get("PrimaryContainer")
    return [primary] if primary else list(model.get("Containers", []))


def _capture(described: dict[str, Any]) -> int:
    capture = described.get("DataCaptureConfig") or {}
    return int(capture.get("CurrentSamplingPercentage", 0)) if capture.get("EnableCapture") else 0


def _thresholds(targets: Mapping[str, float], alarms: dict[tuple[str, str], Threshold],
                plan: PlanFacts | None) -> dict[tuple[str, str], Threshold]:
    """What was asked for on the command line, else the alarms', else the plan's."""
    rates = {key: limit for key, limit in alarms.items() if key[1] == "Rate"}
    latencies = {key: limit for key, limit in alarms.items() if key[1] != "Rate"}
    if targets:
        # As the plan splits a target between model and overhead.
        share = DEFAULT_OVERHEAD_SHARE
        latencies = {
            ("ModelLatency", statistic): Threshold(value * (1 - share), f"{1 - share:.0%} of the "
                                                   f"target {value:g} ms")
            for statistic, value in targets.items()
        }
        tightest = min(targets.values())
        latencies["OverheadLatency", "Average"] = Threshold(
            tightest * share, f"{share:.0%} of the target {tightest:g} ms")
    elif plan:
        planned = {key: Threshold(value, "the plan's threshold")
                   for key, value in plan.thresholds.items()}
        latencies = {**planned, **latencies}
    return {**latencies, **rates}


def _queries(account: Account, endpoint: str, variants: list[_Variant]
             ) -> tuple[list[Query], bool]:
    queries: list[Query] = []
    for each in variants:
        statistics = [key for key in each.thresholds if key[1] != "Rate"]
        queries += variant_queries(endpoint, each.name, each.instance_type, statistics)
    account.progress("List of metrics")
    found = by_dimension(account, endpoint, {v.name: v.instance_type for v in variants})
    if found is None:
        return queries, False
    members, configurations = found
    queries += members
    queries += [Query((name, "configuration", name), "Invocations", "Sum", dimensions)
                for name, dimensions in configurations.items()]
    return queries, True


def _shares(series: dict[Query, Series]) -> Shares:
    """Series by variant and kind, then by member; members without data are left out."""
    found: dict[tuple[str, str], dict[str, dict[tuple[str, str], Series]]] = {}
    for query, values in series.items():
        if not values:
            continue
        variant, kind, member = query.target
        metrics = found.setdefault((variant, kind), {}).setdefault(member, {})
        known = metrics.get((query.metric, query.statistic))
        # One zone may have several series, one for each instance type: requests add up.
        if known and query.statistic == "Sum":
            values = Series({t: known.points.get(t, 0) + values.points.get(t, 0)
                             for t in {*known.points, *values.points}})
        metrics[query.metric, query.statistic] = values
    return {key: dict(members.items()) for key, members in found.items()}


def _absent(listed: bool, variants: list[_Variant],
            shares: Shares) -> Iterable[str]:
    for each in variants:
        own = shares.get((each.name, ""), {}).get("", {})
        if each.inference_components:
            yield (f"{each.name}: hosts inference components, whose own metrics are not read")
        if ("Invocations", "Sum") not in own:
            yield f"{each.name}: no request in the window, so nothing about latency"
        if not listed:
            continue
        if (each.name, "instance") not in shares:
            yield (f"{each.name}: no metrics per instance; CloudWatch has them with "
                   "metrics.enhanced: true")
        if (each.name, "zone") not in shares:
            yield f"{each.name}: no metrics per Availability Zone"


def _type_unknown(variant: _Variant) -> Unknown:
    return Unknown(f"CPU and GPU utilization of {variant.name}",
                   "its instance type, by which they are scaled, could not be read")


def _capacity_raised(counts: Series, changed: datetime, period: timedelta) -> bool:
    """Whether more instances served from about this time on, and not while a fleet replaced one."""
    since = counts.between(changed, changed + 5 * period).median
    return since is not None and any(
        changed - 3 * period <= rise.time <= changed + 3 * period and round(since) > rise.few
        for rise in rises(counts))


def _deployments(described: dict[str, Any], configuration: dict[str, Any] | None,
                 series: dict[Query, Series], shares: Shares, variants: list[_Variant],
                 start: datetime, end: datetime, period: timedelta) -> Iterable[Deployment]:
    name = described["EndpointConfigName"]
    made = (configuration or {}).get("CreationTime")
    changed = described.get("LastModifiedTime")
    created = described.get("CreationTime")
    first = bool(created and created >= start - timedelta(minutes=1))
    until = changed if changed and made and timedelta(0) <= changed - made <= _DEPLOYMENT else None
    if until and any(a.start <= until <= (a.end or a.start) + timedelta(minutes=3)
                     for v in variants for a in v.scaling_activities):
        until = None  # scaling changes the endpoint too
    if until and any(_capacity_raised(serving(shares.get((v.name, ""), {}).get("", {})), until,
                                      period) for v in variants):
        until = None  # and so does whoever sets its capacity
    own = next((v for q, v in series.items() if q.target == (name, "configuration", name)), None)
    # The series lasts, so it may also start anew after a silence. That it started with a deployment
    # shows by requests before it, which another fleet answered.
    before = any(
        own and time < own.times[0] and count
        for q, v in series.items() if q.target[1:] == ("", "") and q.metric == "Invocations"
        for time, count in v.points.items())
    resolved = [image["ResolutionTime"] for variant in described.get("ProductionVariants", [])
                for image in variant.get("DeployedImages", []) if "ResolutionTime" in image]
    if own and before and own.times[0] > start + timedelta(minutes=5):
        time, how = own.times[0], "first request to the new fleet"
    elif made and made >= start - _LOOK_BACK:
        time, how = made, "when its configuration was made"
    elif resolved and min(resolved) >= start - _LOOK_BACK:
        time, how = min(resolved), "when its image was resolved"
    elif until and until >= start and made and made < start:
        time, how = until, "when the update ended"
    else:
        return
    if time <= end:
        yield Deployment(time, name, how, first, until)
