"""Reads everything about one endpoint in a window: read-only, and what is refused is unknown.

Permissions, all read-only. Without the first two there is no diagnosis; without another, what it
would have told is unknown: ``sagemaker:DescribeEndpoint``, ``cloudwatch:GetMetricData``,
``sagemaker:DescribeEndpointConfig``, ``sagemaker:DescribeModel``, ``cloudwatch:ListMetrics``,
``cloudwatch:DescribeAlarms``, ``cloudwatch:DescribeAlarmHistory``,
``application-autoscaling:DescribeScalableTargets``,
``application-autoscaling:DescribeScalingPolicies``,
``application-autoscaling:DescribeScalingActivities``,
``cloudformation:DescribeStackResources``, ``cloudformation:DescribeStacks``,
``cloudformation:GetTemplate``, ``cloudformation:ListStackResources``,
``cloudtrail:LookupEvents``, ``logs:DescribeLogGroups``; and where no request came
``ec2:DescribeVpcEndpoints`` and ``ec2:DescribeSecurityGroups``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from ...account.alarms import metric_alarms
from ...account.calls import Account, Unknown
from ...account.endpoints import (
    DeployedEndpoint,
    DeployedVariant,
    describe_model,
    existing_endpoint,
)
from ...account.metrics import (
    MetricSeries,
    Query,
    Series,
    by_dimension,
    period_for,
    read_queries,
    variant_queries,
)
from ...account.names import meant_endpoint
from ...account.sessions import ClientFactory, Unreadable, credentials_error
from ...errors import rule
from ...facts.container_metrics import server_of
from ...plan.plan import DEFAULT_OVERHEAD_SHARE
from ...report.numbers import milliseconds
from .diagnosis import Diagnosis
from .drifted import read_drift
from .measurements import (
    Measurements,
    ObservedDeployment,
    PlanFacts,
    ScalingReading,
    Threshold,
    VariantReading,
    rises,
    serving,
)
from .not_started import read_unstarted
from .read_fleet import alarm_thresholds, read_alarms, read_plan, read_scaling, read_transitions
from .read_tokens import DEFAULT_SERVER, TokenWindow, read_hosts, read_tokens, token_targets
from .silent_path import broken_paths
from .stated_alarms import misread
from .tokens import TOKEN_TIMES
from .tree import walk

METRICS_READABLE = rule(
    "LLD901",
    "AWS did not answer a call that the diagnosis needs",
    fix="Check credentials (aws sts get-caller-identity), region, and the permissions "
    "sagemaker:DescribeEndpoint and cloudwatch:GetMetricData.",
    source="/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html",
)

#: Series by variant and kind, then by part.
Shares = dict[tuple[str, str], dict[str, MetricSeries]]

#: What began this long before the window may still be felt in it.
_LOOK_BACK = timedelta(minutes=15)
#: Longest time between a configuration's creation and the end of its deployment.
_DEPLOYMENT = timedelta(hours=8)


def diagnose(
    client: ClientFactory,
    endpoint: str,
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    region: str = "",
    # Milliseconds that callers may wait, by statistic; else of the alarms, else of the plan.
    targets: Mapping[str, float] | None = None,
    client_latency: Mapping[str, float] | None = None,  # milliseconds that callers measured
    progress: Callable[[str], None] = lambda text: None,
) -> Diagnosis:
    """Explain an endpoint's latency and errors in a window: ``LLA101``, ``LLD901``, ``LLA102``."""
    account = Account(client, region)
    progress("Endpoint")
    with _needed():
        endpoint = meant_endpoint(account, endpoint)
        found = existing_endpoint(account, endpoint)
    period = period_for(start, end, now)
    start, end = _aligned(start, period), _aligned(end, period)
    progress("Alarms")
    listed_alarms = account.known("alarms", metric_alarms)
    alarms = None if listed_alarms is None else read_alarms(listed_alarms, found)
    transitions = tuple(read_transitions(account, alarms or (), start, end))
    progress("Plan")
    arn = found.description["EndpointArn"]
    plan = account.known("the stack's plan", read_plan, arn)
    drifted, deployed = account.known("what was changed by hand", read_drift, arn) or ((), {})
    described = []
    for name, each in found.variants.items():
        progress(f"Variant {name}")
        model = (
            account.known(f"model {each.model_name}", describe_model, each.model_name)
            if each.model_name
            else None
        )
        scaling = read_scaling(account, endpoint, name, start, end)
        thresholds = _thresholds(targets or {}, alarm_thresholds(alarms, name), plan)
        described.append(_described(each, model, scaling, thresholds))
    queries = [
        query
        for each in described
        for query in variant_queries(
            endpoint,
            each.name,
            each.instance_type,
            [key for key in each.thresholds if key[1] != "Rate" and key[0] not in TOKEN_TIMES],
        )
    ]
    progress("List of metrics")
    listed = account.known(
        "metrics per instance and zone",
        by_dimension,
        endpoint,
        {each.name: each.instance_type for each in described},
    )
    parts, configurations = listed or ([], {})
    queries += [
        *parts,
        *(
            Query((name, "configuration", name), "Invocations", "Sum", dimensions)
            for name, dimensions in configurations.items()
        ),
    ]
    with _needed():
        series = read_queries(account, queries, start, end, period, progress)
    shares = _shares(series)
    variants = tuple(
        _with_tokens(
            account,
            endpoint,
            replace(
                each,
                series=shares.get((each.name, ""), {}).get("", {}),
                instances=shares.get((each.name, "instance"), {}),
                zones=shares.get((each.name, "zone"), {}),
            ),
            (start, end, period),
            found.publish_seconds,
            progress,
        )
        for each in described
    )
    if alarms:
        alarms = tuple(replace(a, doubt=a.doubt or misread(a, variants, plan)) for a in alarms)
        limits = {v.name: alarm_thresholds(alarms, v.name) for v in variants}
        variants = tuple(
            replace(v, thresholds=_thresholds(targets or {}, limits[v.name], plan))
            for v in variants
        )
    silent = not any(v.get("Invocations", "Sum").sum for v in variants)
    broken = (
        account.known("interface endpoint", broken_paths, plan.stack) if plan and silent else ()
    )
    measurements = Measurements(
        endpoint=endpoint,
        region=region,
        start=start,
        end=end,
        period=period,
        status=found.status,
        configuration=found.configuration_name,
        failure_reason=found.failure_reason,
        data_capture_percent=_capture(found.description),
        asynchronous="AsyncInferenceConfig" in found.configuration,
        variants=variants,
        deployments=tuple(_deployments(found, series, variants, start, end, period)),
        alarms=alarms,
        transitions=transitions,
        plan=plan,
        broken_paths=tuple(broken or ()),
        drifts=drifted,
        deployed=deployed,
        unstarted=account.known("the containers' log group", read_unstarted, found, now),
        client_latency=dict(client_latency or {}),
        unknown=(
            *account.unknown,
            *(
                Unknown(
                    f"CPU and GPU utilization of {name}",
                    "its instance type, by which they are scaled, could not be read",
                )
                for name, each in found.variants.items()
                if not each.instance_types and "ServerlessConfig" not in each.configured
            ),
        ),
        absent=tuple(_absent(listed is not None, variants)),
    )
    return Diagnosis(measurements, tuple(walk(measurements)))


@contextmanager
def _needed() -> Iterator[None]:
    """What the diagnosis cannot do without."""
    try:
        yield
    except Unreadable as refusal:
        error = refusal.error or refusal
        raise credentials_error(error) or METRICS_READABLE.error(
            got=refusal.why, allowed="an answer"
        ) from error


def _described(
    deployed: DeployedVariant,
    model: Mapping[str, Any] | None,
    scaling: ScalingReading | None,
    thresholds: dict[tuple[str, str], Threshold],
) -> VariantReading:
    """A variant without its metrics."""
    known = model or {}
    containers = (
        [known["PrimaryContainer"]]
        if known.get("PrimaryContainer")
        else known.get("Containers", [])
    )
    return VariantReading(
        name=deployed.name,
        instance_type=next(iter(deployed.instance_types), ""),
        routing=deployed.routing or "RANDOM",
        routing_stated=deployed.stated_routing is not None,
        current_instances=deployed.current_instances,
        desired_instances=deployed.desired_instances,
        weight=deployed.running.get("CurrentWeight"),
        images=None if model is None else tuple(c.get("Image", "") for c in containers),
        environment={
            name: value
            for each in containers
            for name, value in each.get("Environment", {}).items()
        },
        multi_model=None
        if model is None
        else any(c.get("Mode") == "MultiModel" for c in containers),
        inference_components=bool(deployed.configured) and not deployed.model_name,
        scaling=scaling,
        thresholds=thresholds,
    )


def _with_tokens(
    account: Account,
    endpoint: str,
    variant: VariantReading,
    window: tuple[datetime, datetime, timedelta],
    publish_seconds: int,
    progress: Callable[[str], None],
) -> VariantReading:
    """The variant with what its server tells of tokens, where there is one that does."""
    stated = [statistic for metric, statistic in variant.thresholds if metric in TOKEN_TIMES]
    if not stated:  # nobody could say which is late
        return variant
    server = server_of(variant.images or ()) or DEFAULT_SERVER
    progress(f"Tokens of {variant.name}")
    asked = TokenWindow(endpoint, variant.name, server, *window, publish_seconds)
    what = f"token metrics of {variant.name}"
    found = account.known(what, partial(read_tokens, statistics=stated), asked)
    if not found:
        return variant
    hosts = account.known(what, read_hosts, asked)
    return replace(variant, series={**variant.series, **found}, hosts=hosts or {})


def _aligned(time: datetime, period: timedelta) -> datetime:
    """The start of the period that contains the time, as CloudWatch counts them."""
    return time - timedelta(seconds=time.timestamp() % period.total_seconds())


def _capture(described: Mapping[str, Any]) -> int:
    capture = described.get("DataCaptureConfig") or {}
    return int(capture.get("CurrentSamplingPercentage", 0)) if capture.get("EnableCapture") else 0


def _thresholds(
    targets: Mapping[str, float], alarms: dict[tuple[str, str], Threshold], plan: PlanFacts | None
) -> dict[tuple[str, str], Threshold]:
    """What was asked for on the command line, else the alarms', else the plan's."""
    rates = {key: limit for key, limit in alarms.items() if key[1] == "Rate"}
    latencies = {key: limit for key, limit in alarms.items() if key[1] != "Rate"}
    of_tokens = token_targets(targets)
    targets = {name: value for name, value in targets.items() if "-" not in name}
    if of_tokens and not targets:
        latencies = of_tokens
    elif targets:
        # As the plan splits a target between model and overhead.
        share = DEFAULT_OVERHEAD_SHARE
        latencies = {
            ("ModelLatency", statistic): Threshold(
                value * (1 - share), f"{1 - share:.0%} of the target {milliseconds(value, 6)}"
            )
            for statistic, value in targets.items()
        }
        tightest = min(targets.values())
        latencies["OverheadLatency", "Average"] = Threshold(
            tightest * share, f"{share:.0%} of the target {milliseconds(tightest, 6)}"
        )
        latencies |= of_tokens
    elif plan:
        planned = {
            key: Threshold(value, "the plan's threshold") for key, value in plan.thresholds.items()
        }
        latencies = {**planned, **latencies}
    return {**latencies, **rates}


def _shares(series: dict[Query, Series]) -> Shares:
    """Series by variant and kind, then by part; those without data are left out."""
    found: dict[tuple[str, str], dict[str, dict[tuple[str, str], Series]]] = {}
    for query, values in series.items():
        if not values:
            continue
        variant, kind, member = query.owner
        metrics = found.setdefault((variant, kind), {}).setdefault(member, {})
        known = metrics.get((query.metric, query.statistic))
        # One zone may have several series, one for each instance type: requests add up.
        if known and query.statistic == "Sum":
            values = Series(
                {
                    t: known.points.get(t, 0) + values.points.get(t, 0)
                    for t in {*known.points, *values.points}
                }
            )
        metrics[query.metric, query.statistic] = values
    return {key: dict(each) for key, each in found.items()}


def _absent(listed: bool, variants: Iterable[VariantReading]) -> Iterator[str]:
    for each in variants:
        if each.inference_components:
            yield f"{each.name}: hosts inference components, whose own metrics are not read"
        if not each.get("Invocations", "Sum").sum:
            yield f"{each.name}: no request in the window, so nothing about latency"
        elif any(metric in TOKEN_TIMES for metric, _ in each.thresholds) and not any(
            metric in TOKEN_TIMES for metric, _ in each.series
        ):
            yield (
                f"{each.name}: CloudWatch has no token metrics of its containers, so nothing about "
                "first tokens; low-latency verify says what may be missing"
            )
        if listed and not each.instances:
            yield (
                f"{each.name}: no metrics per instance; CloudWatch has them with "
                "metrics.enhanced: true"
            )
        if listed and not each.zones:
            yield f"{each.name}: no metrics per Availability Zone"


def _capacity_raised(counts: Series, changed: datetime, period: timedelta) -> bool:
    """Whether more instances served from about this time on, and not while a fleet replaced one."""
    since = counts.between(changed, changed + 5 * period).median
    return since is not None and any(
        changed - 3 * period <= rise.time <= changed + 3 * period and round(since) > rise.few
        for rise in rises(counts)
    )


def _deployments(
    found: DeployedEndpoint,
    series: dict[Query, Series],
    variants: Iterable[VariantReading],
    start: datetime,
    end: datetime,
    period: timedelta,
) -> Iterable[ObservedDeployment]:
    name = found.configuration_name
    made = found.configuration.get("CreationTime")
    changed = found.description.get("LastModifiedTime")
    created = found.description.get("CreationTime")
    first = bool(created and created >= start - timedelta(minutes=1))
    until = changed if changed and made and timedelta(0) <= changed - made <= _DEPLOYMENT else None
    if until and any(
        a.start <= until <= (a.end or a.start) + timedelta(minutes=3)
        for v in variants
        for a in (v.scaling.activities if v.scaling else None) or ()
    ):
        until = None  # scaling changes the endpoint too
    if until and any(_capacity_raised(serving(v.series), until, period) for v in variants):
        until = None  # and so does whoever sets its capacity
    own = next((v for q, v in series.items() if q.owner == (name, "configuration", name)), None)
    # The series lasts, so it may also start anew after a silence. That it started with a deployment
    # shows by requests before it, which another fleet answered.
    before = any(
        own and time < own.times[0] and count
        for q, v in series.items()
        if q.owner[1:] == ("", "") and q.metric == "Invocations"
        for time, count in v.points.items()
    )
    resolved = [
        image["ResolutionTime"]
        for variant in found.variants.values()
        for image in variant.running.get("DeployedImages", [])
        if "ResolutionTime" in image
    ]
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
        yield ObservedDeployment(time, name, how, first, until)
