"""Reads everything about one endpoint in a window: read-only, and what is refused is unknown."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from ...account.alarms import AlarmReading, metric_alarms, read_alarms, read_transitions
from ...account.calls import Account, Unknown
from ...account.canary import read_canary
from ...account.deployed_endpoints import meant_endpoint
from ...account.endpoints import (
    DeployedEndpoint,
    DeployedVariant,
    containers_of,
    describe_model,
    existing_endpoint,
    read_coming,
)
from ...account.metrics import (
    CONFIGURATION,
    MetricSeries,
    Query,
    Series,
    by_dimension,
    period_for,
    read_queries,
    statistic_of,
    variant_queries,
)
from ...account.queries import (
    DEFAULT_SERVER,
    PREFIXES,
    TOKEN_TIMES,
    TokenWindow,
    read_hosts,
    read_tokens,
)
from ...account.scaling import read_scaling
from ...account.sessions import ClientFactory, Unreadable, credentials_error
from ...account.stacks import owner_of, stack_description, template
from ...account.updates import update_changes
from ...errors import rule
from ...facts.container_metrics import server_of
from ...facts.prices import Price
from ...plan.alarm_thresholds import DEFAULT_OVERHEAD_SHARE
from ...plan.decisions import PLAN_METADATA, values_in_template
from ...report.numbers import milliseconds
from .diagnosis import Diagnosis
from .endpoint_state import broken_paths, misread, read_drift, read_unstarted
from .first_requests import first_request
from .measurements import (
    FIRST_REQUEST,
    EndedUpdate,
    Measurements,
    ObservedDeployment,
    ObservedUpdate,
    PlanFacts,
    Threshold,
    VariantReading,
    rises,
    serving,
)
from .thresholds import DEPLOYMENT, EDGE, LOOK_BACK
from .tokens import MEASURES
from .tree import walk

_LATENCY_STATISTIC = re.compile(r"Average|Maximum|p\d{1,2}(\.\d+)?")

METRICS_READABLE = rule(
    "LLD901",
    "AWS did not answer a call that the diagnosis needs",
    fix="Check credentials (aws sts get-caller-identity), region, and the permissions "
    "sagemaker:DescribeEndpoint and cloudwatch:GetMetricData.",
    source="/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html",
)


#: Series by variant and kind, then by part.
Parts = Mapping[tuple[str, str], Mapping[str, MetricSeries]]


class Window(NamedTuple):
    """Whole periods, as CloudWatch counts them."""

    start: datetime
    end: datetime
    period: timedelta


def diagnose(
    client: ClientFactory | Account,  # an account: what it has read is not asked for again
    endpoint: str,
    *,
    start: datetime,
    end: datetime,
    now: datetime,
    region: str = "",
    # Milliseconds that callers may wait, by statistic; else of the alarms, else of the plan.
    targets: Mapping[str, float] | None = None,
    # Those of a settings file, for where there is none of these.
    settings_targets: Mapping[str, float] | None = None,
    # What those settings leave of a target to overhead, as a share; else the plan's default.
    overhead_share: float | None = None,
    client_latency: Mapping[str, float] | None = None,  # milliseconds that callers measured
    prices: Mapping[str, Price] | None = None,  # of an instance for an hour, by type
    progress: Callable[[str], None] = lambda text: None,
) -> Diagnosis:
    """Explain an endpoint's latency and errors in a window: ``LLA101``, ``LLD901``, ``LLA102``."""
    account = client.view() if isinstance(client, Account) else Account(client, region)
    progress("Endpoint")
    with _needed():
        endpoint = meant_endpoint(account, endpoint)
        deployed_endpoint = existing_endpoint(account, endpoint)
    period = period_for(start, end, now)
    window = Window(_aligned(start, period), _aligned(end, period), period)
    progress("Alarms")
    alarms = account.known(
        "alarms", lambda each: read_alarms(metric_alarms(each), deployed_endpoint)
    )
    transitions = tuple(read_transitions(account, alarms or (), window.start, window.end))
    progress("Plan")
    arn = deployed_endpoint.description["EndpointArn"]
    plan = account.known("the stack's plan", read_plan, arn)
    drifts, deployed = read_drift(account, deployed_endpoint)
    share = DEFAULT_OVERHEAD_SHARE if overhead_share is None else overhead_share
    of_targets = _of_targets(targets or {}, share)
    of_settings = _of_targets(settings_targets or {}, share, " from the settings file")
    limits = partial(_thresholds, of_targets, plan, of_settings)
    described = []
    for variant in deployed_endpoint.variants.values():
        progress(f"Variant {variant.name}")
        described.append(
            _described(account, endpoint, variant, window, limits(alarms, variant.name))
        )
    update = _update(account, deployed_endpoint)
    fleets = {deployed_endpoint.configuration_name, update.configuration if update else ""}
    series, listed = _series(account, endpoint, described, fleets, window, progress)
    parts = _by_part(series)
    seconds = deployed_endpoint.publish_seconds
    variants = [
        _with_series(account, endpoint, each, parts, window, seconds, progress)
        for each in described
    ]
    if alarms:
        alarms = tuple(replace(a, doubt=a.doubt or misread(a, variants, plan)) for a in alarms)
        variants = [replace(v, thresholds=limits(alarms, v.name)) for v in variants]
    silent = not any(v.get("Invocations", "Sum").sum for v in variants)
    broken = plan and silent and account.known("interface endpoint", broken_paths, plan.stack)
    progress("Canary")
    canary = account.known("what the canary saw", read_canary, endpoint, *window)
    unstarted = account.known("the containers' log group", read_unstarted, deployed_endpoint, now)
    deployment = _deployment(deployed_endpoint, variants, window)
    ask = partial(first_request, account, deployed_endpoint, deployment, now)
    variants = [replace(v, first_request=ask(v, window.start, period)) for v in variants]
    measurements = Measurements(
        endpoint=endpoint,
        region=region,
        start=window.start,
        end=window.end,
        period=period,
        status=deployed_endpoint.status,
        failure_reason=deployed_endpoint.failure_reason,
        data_capture_percent=_capture(deployed_endpoint.description),
        asynchronous="AsyncInferenceConfig" in deployed_endpoint.configuration,
        variants=tuple(variants),
        deployments=(deployment,) if deployment else (),
        update=update,
        taken_back=tuple(_taken_back(deployed_endpoint, variants, window)),
        alarms=alarms,
        transitions=transitions,
        plan=plan,
        broken_paths=tuple(broken or ()),
        drifts=drifts,
        deployed=deployed,
        unstarted=unstarted,
        client_latency=dict(client_latency or {}),
        canary=canary or (),
        prices=dict(prices or {}),
        unknown=(*account.unknown, *_unscaled(deployed_endpoint)),
        absent=tuple(_absent(listed, variants)),
    )
    return Diagnosis(measurements, tuple(walk(measurements)))


@contextmanager
def _needed() -> Iterator[None]:
    """Fail with the reason if AWS refuses a read that the diagnosis requires."""
    try:
        yield
    except Unreadable as refusal:
        error = refusal.error or refusal
        raise credentials_error(error) or METRICS_READABLE.error(
            got=refusal.why, allowed="an answer"
        ) from error


def _described(
    account: Account,
    endpoint: str,
    deployed: DeployedVariant,
    window: Window,
    thresholds: dict[tuple[str, str], Threshold],
) -> VariantReading:
    """A variant without its metrics."""
    name, model = deployed.name, None
    containers: list[Mapping[str, Any]] = []
    if deployed.model_name:
        what = f"model {deployed.model_name}"
        model = account.known(what, describe_model, deployed.model_name)
    if model:
        containers = containers_of(model)
    return VariantReading(
        name=name,
        instance_type=next(iter(deployed.instance_types), ""),
        routing=deployed.routing or "RANDOM",
        routing_stated=deployed.stated_routing is not None,
        current_instances=deployed.current_instances,
        desired_instances=deployed.desired_instances,
        weight=deployed.running.get("CurrentWeight"),
        images=None if model is None else tuple(c.get("Image", "") for c in containers),
        environment={
            k: v for container in containers for k, v in container.get("Environment", {}).items()
        },
        inference_components=bool(deployed.configured) and not deployed.model_name,
        scaling=read_scaling(account, endpoint, name, window.start - LOOK_BACK, window.end),
        thresholds=thresholds,
    )


def _series(
    account: Account,
    endpoint: str,
    variants: Iterable[VariantReading],
    fleets: Collection[str],
    window: Window,
    progress: Callable[[str], None],
) -> tuple[dict[Query, Series], bool]:
    """The metrics of variants and of their parts, and whether the parts could be listed."""
    types = {variant.name: variant.instance_type for variant in variants}
    queries: list[Query] = []
    limited: dict[tuple[str, str], None] = {}
    for variant in variants:
        wanted = [k for k in variant.thresholds if k[1] != "Rate" and k[0] not in TOKEN_TIMES]
        limited |= dict.fromkeys(wanted)
        queries += variant_queries(endpoint, variant.name, types[variant.name], wanted)
    progress("List of metrics")
    what = "metrics per instance and zone"
    listed = account.known(what, by_dimension, endpoint, types, fleets, limited)
    queries += listed or ()
    with _needed():
        return read_queries(account, queries, *window, progress), listed is not None


def _with_series(
    account: Account,
    endpoint: str,
    variant: VariantReading,
    parts: Parts,
    window: Window,
    publish_seconds: int,
    progress: Callable[[str], None],
) -> VariantReading:
    """The variant with its metrics and, if its server publishes them, its token metrics."""
    every, instances, zones, fleets = (
        parts.get((variant.name, kind), {}) for kind in ("", "instance", "zone", CONFIGURATION)
    )
    variant = replace(
        variant, series=every.get("", {}), instances=instances, zones=zones, fleets=fleets
    )
    stated = [statistic for metric, statistic in variant.thresholds if metric in TOKEN_TIMES]
    if not stated:  # nobody could say which is late
        return variant
    server = server_of(variant.images or ()) or DEFAULT_SERVER
    progress(f"Tokens of {variant.name}")
    token_window = TokenWindow(endpoint, variant.name, server, *window, publish_seconds)
    what = f"token metrics of {variant.name}"
    found = account.known(what, partial(read_tokens, statistics=stated), token_window)
    if not found:
        return variant
    hosts = account.known(what, read_hosts, token_window)
    return replace(variant, series={**variant.series, **found}, hosts=hosts or {})


def _aligned(time: datetime, period: timedelta) -> datetime:
    """The start of the period that contains the time, as CloudWatch counts them."""
    return time - timedelta(seconds=time.timestamp() % period.total_seconds())


def _capture(described: Mapping[str, Any]) -> int:
    capture = described.get("DataCaptureConfig") or {}
    return int(capture.get("CurrentSamplingPercentage", 0)) if capture.get("EnableCapture") else 0


_Thresholds = dict[tuple[str, str], Threshold]


def _thresholds(
    of_targets: _Thresholds,
    plan: PlanFacts | None,
    of_settings: _Thresholds,
    alarms: tuple[AlarmReading, ...] | None,
    variant: str,
) -> _Thresholds:
    """Thresholds of the command line, else of the alarms, the plan, or the settings file."""
    thresholds = alarm_thresholds(alarms, variant)
    rates = {key: limit for key, limit in thresholds.items() if key[1] == "Rate"}
    latencies = {key: limit for key, limit in thresholds.items() if key[1] != "Rate"}
    if of_targets:
        latencies = of_targets
    elif plan:
        planned = {k: Threshold(v, "the plan's threshold") for k, v in plan.thresholds.items()}
        latencies = planned | latencies
    if not any(metric in ("ModelLatency", *TOKEN_TIMES) for metric, _ in latencies):
        latencies = of_settings | latencies
    return {**latencies, **rates}


def _of_targets(targets: Mapping[str, float], share: float, source: str = "") -> _Thresholds:
    """The thresholds of targets, split between model and overhead as the plan splits them."""
    of_tokens = {
        key: Threshold(limit.value, f"{limit.source}{source}")
        for key, limit in token_targets(targets).items()
    }
    whole = {name: value for name, value in targets.items() if "-" not in name}
    if not whole:
        return of_tokens

    def part(value: float, of: float) -> Threshold:
        return Threshold(value * of, f"{of:.0%} of the target {milliseconds(value, 6)}{source}")

    latencies = {("ModelLatency", s): part(value, 1 - share) for s, value in whole.items()}
    latencies["OverheadLatency", "Average"] = part(min(whole.values()), share)
    return latencies | of_tokens


def _by_part(series: dict[Query, Series]) -> Parts:
    """Series with data, by variant and kind, then by part."""
    found: dict[tuple[str, str], dict[str, dict[tuple[str, str], Series]]] = {}
    for query, values in series.items():
        if not values:
            continue
        variant, kind, member = query.owner
        metrics = found.setdefault((variant, kind), {}).setdefault(member, {})
        metric = metrics.get((query.metric, query.statistic))
        # One zone may have several series, one for each instance type: requests add up.
        if metric and query.statistic == "Sum":
            times = {*metric.points, *values.points}
            both = metric.points, values.points
            values = Series({t: sum(points.get(t, 0) for points in both) for t in times})
        metrics[query.metric, query.statistic] = values
    return found


def _absent(listed: bool, variants: Iterable[VariantReading]) -> Iterator[str]:
    for variant in variants:
        if variant.inference_components:
            yield f"{variant.name}: hosts inference components, whose own metrics are not read"
        if not variant.get("Invocations", "Sum").sum:
            yield f"{variant.name}: no request in the window, so nothing about latency"
        elif not variant.has_tokens and any(
            metric in TOKEN_TIMES for metric, _ in variant.thresholds
        ):
            yield (
                f"{variant.name}: CloudWatch has no token metrics of its containers, so nothing about "
                "first tokens; low-latency verify says what may be missing"
            )
        if listed and not variant.instances:
            yield (
                f"{variant.name}: no metrics per instance; CloudWatch has them with "
                "metrics.enhanced: true"
            )
        if listed and not variant.zones:
            yield f"{variant.name}: no metrics per Availability Zone"


def _capacity_raised(counts: Series, changed: datetime, period: timedelta) -> bool:
    """Whether more instances served from about this time on, and not while a fleet replaced one."""
    since = counts.between(changed, changed + 5 * period).median
    return since is not None and any(
        changed - 3 * period <= rise.time <= changed + 3 * period and round(since) > rise.few
        for rise in rises(counts)
    )


def _unscaled(found: DeployedEndpoint) -> Iterator[Unknown]:
    for name, variant in found.variants.items():
        if not variant.instance_types and "ServerlessConfig" not in variant.configured:
            why = "its instance type, by which they are scaled, could not be read"
            yield Unknown(f"CPU and GPU utilization of {name}", why)


def _update_ended(
    found: DeployedEndpoint, variants: Iterable[VariantReading], window: Window
) -> datetime | None:
    """When the last update of the endpoint ended, where it may have ended in the window.

    ``None`` where scaling may have changed it since, and where the fleet that serves did so from the
    window's start on: another update was given up then, or counts or weights were changed.
    """
    creation_time = found.configuration.get("CreationTime")
    changed: datetime | None = found.description.get("LastModifiedTime")
    if (
        found.update  # which changed it last
        or not changed
        or not creation_time
        or not timedelta(0) <= changed - creation_time <= DEPLOYMENT
    ):
        return None
    late = timedelta(minutes=3)
    scaled = any(
        a.start <= changed <= (a.end or a.start) + late for v in variants for a in v.activities
    )
    raised = any(_capacity_raised(serving(v.series), changed, window.period) for v in variants)
    own = [time for v in variants for time in _asked(v, found.configuration_name)]
    served = bool(own) and min(own) <= window.start + EDGE
    return None if scaled or raised or served else changed


def _update(account: Account, endpoint: DeployedEndpoint) -> ObservedUpdate | None:
    """The update under way, with what it changes and what ends it."""
    under_way = endpoint.update
    if under_way is None:
        return None
    what = "what the update changes"
    coming = account.known(what, read_coming, endpoint)
    changes = account.known(what, update_changes, endpoint, coming) if coming else None
    arn = endpoint.description["EndpointArn"]
    return ObservedUpdate(
        under_way,
        endpoint.configuration_name,
        changes,
        endpoint.rollback_alarms,
        account.known("the stack that updates the endpoint", _updating_stack, arn) or "",
    )


def _updating_stack(account: Account, endpoint_arn: str) -> str:
    """The stack that has the endpoint, if an update of it is under way; else empty."""
    owner = owner_of(account, endpoint_arn)
    stack = stack_description(account, owner[0]) if owner else None
    return owner[0] if owner and stack and stack["StackStatus"] == "UPDATE_IN_PROGRESS" else ""


def _asked(variant: VariantReading, configuration: str) -> list[datetime]:
    """When a configuration's fleet got requests, in order."""
    series = statistic_of(variant.fleets.get(configuration, {}), "Invocations", "Sum")
    return [time for time in series.times if series.points[time] > 0]


def _taken_back(
    endpoint: DeployedEndpoint, variants: Iterable[VariantReading], window: Window
) -> Iterator[EndedUpdate]:
    """Fleets that served after the one that serves and are gone: rolled back, by whom ever."""
    serving, update = endpoint.configuration_name, endpoint.update
    coming = update.configuration_name if update else ""
    spans: dict[str, tuple[datetime, datetime]] = {}
    for variant in variants:
        for name in variant.fleets.keys() - {serving, coming}:
            if times := _asked(variant, name):
                spans[name] = (times[0], times[-1] + window.period)
    created = endpoint.configuration.get("CreationTime")
    for name, (start, end) in sorted(spans.items(), key=lambda item: item[1]):
        own = [time for variant in variants for time in _asked(variant, serving)]
        before = any(time < start - window.period for time in own)
        if not own:  # an endpoint's first fleet may have no series of its own
            before = bool(created and created < start) and start >= window.start + EDGE
        if before and end < window.end - window.period:
            yield EndedUpdate(name, serving, start, end)


def _first_request(
    found: DeployedEndpoint, variants: Iterable[VariantReading], window: Window
) -> datetime | None:
    """To the fleet of the configuration that serves, where another fleet was asked before."""
    read = list(variants)
    own = min(
        (times[0] for v in read if (times := _asked(v, found.configuration_name))), default=None
    )
    if own is None or own <= window.start + EDGE:
        return None
    # The series lasts, so it may also start anew after a silence: then nothing came before.
    whole = [variant.get("Invocations", "Sum") for variant in read]
    return own if any(c and t < own for of in whole for t, c in of.points.items()) else None


def _deployment(
    found: DeployedEndpoint, variants: Iterable[VariantReading], window: Window
) -> ObservedDeployment | None:
    """The last one, where it may be felt in the window."""
    name, since = found.configuration_name, window.start - LOOK_BACK
    creation_time = found.configuration.get("CreationTime")
    created = found.description.get("CreationTime")
    # A configuration that is younger than its endpoint replaced another one.
    first = bool(
        created and created >= since and (creation_time is None or creation_time <= created)
    )
    until = _update_ended(found, variants, window)
    resolved = (
        image["ResolutionTime"]
        for variant in found.variants.values()
        for image in variant.running.get("DeployedImages", [])
        if "ResolutionTime" in image
    )
    image = min(resolved, default=None)
    signs = (
        (created if first else None, "when the endpoint was created"),
        (_first_request(found, variants, window), FIRST_REQUEST),
        (
            creation_time if creation_time and creation_time >= since else None,
            "when its configuration was made",
        ),
        (image if image and image >= since else None, "when its image was resolved"),
        (until if until and until >= window.start else None, "when the update ended"),
    )
    time, how = next((sign for sign in signs if sign[0]), (None, ""))
    if time is None or time > window.end:
        return None
    return ObservedDeployment(time, name, how, first, until)


def alarm_thresholds(
    alarms: tuple[AlarmReading, ...] | None, variant: str
) -> dict[tuple[str, str], Threshold]:
    """The tightest threshold by metric and statistic."""
    thresholds: dict[tuple[str, str], Threshold] = {}
    for alarm in alarms or ():
        key = alarm.metric, alarm.statistic
        latency = alarm.metric in ("ModelLatency", "OverheadLatency", *TOKEN_TIMES)
        latency = latency and alarm.unit == "ms" and bool(_LATENCY_STATISTIC.fullmatch(key[1]))
        if alarm.doubt or alarm.variant != variant or not (latency or key[1] == "Rate"):
            continue
        if key not in thresholds or alarm.threshold < thresholds[key].value:
            thresholds[key] = Threshold(alarm.threshold, "an alarm's threshold")
    return thresholds


def token_targets(targets: Mapping[str, float]) -> dict[tuple[str, str], Threshold]:
    """Targets on tokens as ``ttft-p95`` and ``itl-p95`` state them, in milliseconds.

    >>> token_targets({"p99": 200.0, "itl-p95": 50.0})
    {('InterTokenLatency', 'p95'): Threshold(value=50.0, source='the target')}
    """
    return {
        (metric, name.removeprefix(prefix)): Threshold(value, "the target")
        for name, value in targets.items()
        for prefix, metric in PREFIXES.items()
        if name.startswith(prefix)
    }


def read_plan(account: Account, endpoint_arn: str) -> PlanFacts | None:
    """The plan in the template of the stack that owns the endpoint; ``None`` without one."""
    owner = owner_of(account, endpoint_arn)
    if owner is None:
        return None
    stack, logical_id = owner
    try:
        resources = template(account, stack)
    except Unreadable as refusal:
        if refusal.error is None:
            return None  # not JSON, so not the CDK's, which alone writes plans
        raise
    plan = resources.get(logical_id, {}).get("Metadata", {}).get(PLAN_METADATA)
    return plan_facts(stack, plan) if isinstance(plan, Mapping) else None


def plan_facts(stack: str, plan: Mapping[str, Any]) -> PlanFacts:
    values = values_in_template(plan)
    thresholds = {}
    for about, limit in values.get("alarms", {}).items():
        watched, _, statistic = about.rpartition(" ")
        thresholds[MEASURES.get(watched, watched), statistic] = float(limit)
    told = {name: values.get(name) for name in ("peak_tps", "tps_per_instance", "safety_factor")}
    return PlanFacts(stack, thresholds, **told)
