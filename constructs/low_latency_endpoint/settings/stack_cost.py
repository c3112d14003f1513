"""What the stack of a settings file costs: what AWS bills, hour by hour and along a day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import cast

from ..errors.frozen import dataclass
from ..facts.canary_metrics import CANARY_MIB, PUBLISHED, RUNS_PER_HOUR, alarm_metrics
from ..facts.deployments import rolls_back
from ..facts.durations import seconds_of
from ..facts.prices import HOURS_PER_MONTH, INTERFACE_ENDPOINT, Price, price_of
from ..facts.warm_up_rules import CONTROLLER_MIB, SENDER_MIB
from ..options.alarms import AlarmOptions
from ..options.canary import canary_bytes
from ..options.option import options_of
from ..options.throughput import MeasuredThroughput
from ..plan.billed_items import BilledItem
from ..plan.hourly_cost import EndpointCost, PricedType, StackCost, sent_request
from ..plan.plan import Plan
from ..plan.recorded_rise import contradicted_rises
from ..plan.scaling_pace import FleetAlong, fleet_along
from ..plan.scaling_policy import CONCURRENCY_METRIC, INVOCATIONS_METRIC
from ..plan.schedule_times import DAYS_PER_WEEK, MINUTES_PER_DAY
from ..plan.set_times import SetTimes, TimesAlong
from ..plan.traffic_shapes import Shape, shapes
from ..report.numbers import readable
from .endpoint import EndpointSettings, instances_in_update
from .stack import Settings, region_of
from .variant_plans import PlannedVariant, planned_variants, token_alarm_count

#: What CloudWatch bills for alarms that follow from a threshold alone: the number of metrics of each.
_BILLED = {
    option.name: option.option.billed
    for option in options_of(AlarmOptions)
    if option.option is not None and option.option.billed
}
_OF_CAPACITY = (2,)
_OF_BOTH_FLEETS = (2, 2)
_OF_TARGET_TRACKING = (1, 1)  # one to scale out, one to scale in


_FUNCTION_SECONDS = 1.0
_LOG_BYTES = 1000
_CANARY_LOG_BYTES = 1500  # its line of 1,100 bytes, and Lambda's own
_ASSUMED_SECONDS = f"each invocation takes {readable(_FUNCTION_SECONDS)} s"


def stack_cost(settings: Settings) -> StackCost:
    """What the stack of a settings file costs, as far as the prices are known."""
    link, zones = settings.private_link, len(settings.client_zones.zones)
    made = [] if link.interface_endpoint_id else ["runtime", *["API"] * link.sagemaker_api]
    what = f"interface endpoint{'s' * (len(made) > 1)} in {zones} zones"
    shared = _billed(settings, INTERFACE_ENDPOINT, len(made) * zones, what)
    return StackCost(
        endpoints={
            variant.label: variant_cost(settings, variant) for variant in planned_variants(settings)
        },
        shared=(shared,) if made else (),
    )


def stack_cost_of_a_day(settings: Settings) -> StackCost:
    """The same with the instances of each fleet along a day of usual traffic, where these are known.

    They are not where steps are stated, or times are set that no day counts.
    """
    cost, day = stack_cost(settings), shapes()["daily-wave"]
    fleets = fleets_along(settings, day)
    for variant in planned_variants(settings):
        has_steps = variant.plan.request.scaling.steps is not None
        if has_steps or SetTimes.of(variant.plan).why_left_out(day):
            fleets[variant.label] = None
    endpoints = {
        key: replace(endpoint, on_average=fleet.mean if fleet else None)
        for (key, endpoint), fleet in zip(cost.endpoints.items(), fleets.values(), strict=True)
    }
    return replace(cost, endpoints=endpoints)


def variant_cost(settings: Settings, variant: PlannedVariant) -> EndpointCost:
    """What one variant costs; beside the instances all stands with an endpoint's first one."""
    key, plan, copies = variant.key, variant.plan, variant.shadow
    endpoint, fleet, measured = settings.endpoints[key], plan.fleet, plan.request.throughput
    most = plan.largest_fleet
    size = plan.request.request_size
    data = _price(settings, "interface_endpoint_data")
    beside = (
        *_alarms(settings, key, plan),
        *_functions(settings, endpoint),
        *_canary(settings, endpoint),
    )
    return EndpointCost(
        instance_type=plan.request.serving.instance_type,
        at_least=plan.fewest,
        at_first=fleet.initial,
        at_most=most,
        in_an_update=instances_in_update(most, endpoint),
        price=_price(settings, plan.request.serving.instance_type),
        others=beside if variant.further is None else (),
        # copies pass no interface endpoint, and serve no caller
        peak_tps=measured.peak_tps if measured and not copies else None,
        at_peak=fleet.serving_at_peak if plan.scaling else fleet.initial,
        other_peaks=tuple(plan.other_peaks),
        request_gb=None if size is None or copies else sent_request(size, data),
        data_price=data,
        copies_of=key if copies else "",
        pools=_priced_pools(settings, plan),
    )


def _priced_pools(settings: Settings, plan: Plan) -> tuple[PricedType, ...]:
    """The instance types of a variant's pools by priority; none where one type alone serves."""
    pools = sorted(plan.request.serving.instance_pools, key=lambda pool: pool.priority)
    names = dict.fromkeys(pool.instance_type for pool in pools)
    if len(names) < 2:
        return ()
    return tuple(PricedType(name, _price(settings, name)) for name in names)


def fleets_along(settings: Settings, shape: Shape) -> dict[str, FleetAlong | None]:
    """The fleet of each variant along a day; ``None`` if it follows requests in flight."""
    variants = list(planned_variants(settings))
    found = {variant.label: _fleet_along(variant.plan, shape) for variant in variants}
    for variant in variants:
        fleet = found[variant.label]
        if variant.shadow and fleet is not None:
            found[variant.label] = replace(fleet, tps=0.0)
    return found


def _fleet_along(plan: Plan, shape: Shape) -> FleetAlong | None:
    fleet, policy, measured = plan.fleet, plan.scaling, plan.request.throughput
    usual_tps = measured.peak_tps if measured else 1.0
    along = SetTimes.of(plan).along(_of_a_week(plan, shape), usual_tps)
    if along is not None:
        shape = along.shape
    if policy is None:
        tps = usual_tps * shape.mean_share if measured else None
        return FleetAlong(fleet.initial, fleet.initial, fleet.initial, tps)
    if policy.metric != INVOCATIONS_METRIC or measured is None:
        return None
    usual = plan.standing_ranges.usual
    return fleet_along(
        _levels(measured, shape),
        target_tps=policy.target / 60,
        minimum=usual.minimum,
        maximum=usual.maximum,
        scale_in_seconds=policy.scale_in_seconds,
        ranges={int(second // 60): capacity for second, capacity in along.ranges}
        if along
        else None,
    )


def rises_along(settings: Settings, shape: Shape) -> Iterator[str]:
    """Rises of a recording that the settings contradict, of each variant that has some."""
    for variant in planned_variants(settings):
        measured = variant.plan.request.throughput
        if measured is not None and not variant.shadow:
            said = contradicted_rises(variant.plan, shape, measured.peak_tps)
            if said:
                yield f"{variant.label}: {said}"


def _of_a_week(plan: Plan, shape: Shape) -> Shape:
    """The rates of a shape: of a day seven times over where set times can differ between days."""
    days = shape.seconds / 60 / MINUTES_PER_DAY
    times = DAYS_PER_WEEK if days == 1 and SetTimes.of(plan) else 1
    levels = tuple(
        (number * shape.seconds + end, share)
        for number in range(times)
        for end, share in shape.levels
    )
    return replace(shape, levels=levels, times=())


def set_times_along(settings: Settings, shape: Shape) -> Iterator[str]:
    """How set times count along a shape's days, of each variant that has some."""
    for variant in planned_variants(settings):
        plan = variant.plan
        times = SetTimes.of(plan)
        if not times or _fleet_along(plan, shape) is None:
            continue
        if why := times.why_left_out(shape):
            yield f"{variant.label}: set times are left out, as {why} ({times.text})"
            continue
        along = cast(TimesAlong, times.along(_of_a_week(plan, shape), 1.0))
        yield f"{variant.label}: {along.text}"


def _levels(measured: MeasuredThroughput, shape: Shape) -> list[tuple[float, float]]:
    """Seconds and rate of each level."""
    begins = (0.0, *(end for end, _ in shape.levels))
    return [
        (end - begin, share * measured.peak_tps)
        for begin, (end, share) in zip(begins, shape.levels, strict=False)
    ]


def _price(settings: Settings, item: str) -> Price | None:
    return price_of(item, region_of(settings), settings.prices)


def _alarms(settings: Settings, key: str, plan: Plan) -> Iterator[BilledItem]:
    alarms = billed_alarms(settings, key, plan)
    for count, item, what in (
        (alarms.metrics, "alarm", "metrics in alarms"),
        (alarms.high_resolution, "high_resolution_alarm", "metrics in high-resolution alarms"),
        (alarms.composites, "composite_alarm", "composite alarms"),
    ):
        if count:
            yield _billed(settings, item, count / HOURS_PER_MONTH, what, count=count)


def _functions(settings: Settings, endpoint: EndpointSettings) -> Iterator[BilledItem]:
    """The keep-warm functions: one decides, the other sends while traffic is low."""
    keep = endpoint.warm_up.keep_warm if endpoint.warm_up else None
    if keep is None:
        return
    runs = 2 * 3600 / seconds_of(keep.every)
    memory = runs / 2 * _FUNCTION_SECONDS * (CONTROLLER_MIB + SENDER_MIB) / 1024
    yield from _invocations(settings, runs, memory, "to keep warm", _LOG_BYTES)


def _canary(settings: Settings, endpoint: EndpointSettings) -> Iterator[BilledItem]:
    """The canary's metrics and its function in each zone, once a minute."""
    if endpoint.canary is None:
        return
    item, zones = partial(_billed, settings), len(settings.client_zones.zones)
    metrics = zones * (len(PUBLISHED) - (not _compares_names(settings)))
    runs = zones * RUNS_PER_HOUR
    memory = runs * _FUNCTION_SECONDS * CANARY_MIB / 1024
    yield item("custom_metric", metrics / HOURS_PER_MONTH, "metrics of the canary", count=metrics)
    yield from _invocations(settings, runs, memory, "of the canary", _CANARY_LOG_BYTES)
    size = canary_bytes(endpoint.canary, endpoint.warm_up) or 0
    sent = runs * (1 + _compares_names(settings)) * size / 1e9
    yield item("interface_endpoint_data", sent, "GB that the canary sends", count=sent)


def _invocations(
    settings: Settings, runs: float, memory: float, which: str, log_bytes: int
) -> Iterator[BilledItem]:
    """So many runs of functions an hour: each, its GB-seconds, and what it logs."""
    item = partial(_billed, settings)
    yield item("function_request", runs, f"invocations {which}", count=runs)
    yield item("function_memory", memory, f"GB-seconds {which}", _ASSUMED_SECONDS, count=memory)
    logged = f"each invocation logs {log_bytes:,} bytes"
    yield item("logs", runs * log_bytes / 1e9, f"logs of invocations {which}", logged)


def _billed(
    settings: Settings,
    item: str,
    per_hour: float,
    what: str,
    assumed: str = "",
    *,
    count: float | None = None,
) -> BilledItem:
    return BilledItem(
        what=what,
        item=item,
        per_hour=per_hour,
        price=_price(settings, item),
        assumed=assumed,
        count=count,
    )


def watching_alarms(settings: Settings, key: str, plan: Plan) -> int:
    """How many alarms page for one variant."""
    return len(_watching(settings, settings.endpoints[key], plan))


def _of_tokens(endpoint: EndpointSettings, plans: Sequence[Plan]) -> tuple[int, int]:
    """Alarms on tokens, and composite ones: one for each server whose metrics they ask for."""
    counts = [(plan, token_alarm_count(endpoint, plan)) for plan in plans]
    servers = {each.request.server_of_metrics for each, count in counts if count}
    return sum(count for _, count in counts), len(servers)


def _of_shadow(plan: Plan) -> list[int]:
    """The alarms that compare a shadow with production, each by its number of metrics."""
    latency = plan.request.latency
    statistics = latency.milliseconds if latency else {}
    return [*([4] * (len(statistics) or 1)), 2]


def _of_canary(settings: Settings, endpoint: EndpointSettings, plan: Plan) -> list[int]:
    """The alarms of the canary, each by its number of metrics."""
    if endpoint.canary is None:
        return []
    stated = endpoint.canary.zone_difference is not None
    return list(
        alarm_metrics(
            len(settings.client_zones.zones),
            compares_names=_compares_names(settings),
            difference=stated or bool(plan.thresholds("OverheadLatency")),
        )
    )


def _compares_names(settings: Settings) -> bool:
    """Whether a canary knows the zonal names, and callers use the runtime's own."""
    link = settings.private_link
    return link.interface_endpoint_id is None and link.takes_the_name


def _thresholds(endpoint: EndpointSettings, plan: Plan, name: str, metric: str) -> list[str]:
    """The statistics that are watched: those stated, or the plan's."""
    stated = getattr(endpoint.alarms, name)
    return list(plan.thresholds(metric) if stated == "planned" else stated)


def _watching(settings: Settings, endpoint: EndpointSettings, plan: Plan) -> list[int]:
    """The alarms that page, each by its number of metrics."""
    found = [1 for _ in _thresholds(endpoint, plan, "model_latency", "ModelLatency")]
    found += [1 for _ in _thresholds(endpoint, plan, "overhead_latency", "OverheadLatency")]
    alarms, capacity = endpoint.alarms, endpoint.alarms.capacity_at_maximum
    if plan.scaling is not None if capacity == "scaled" else capacity:
        found += _OF_CAPACITY
    if alarms.zone_imbalance:
        found.append(len(settings.client_zones.zones))
    found += [3] * len(alarms.anomalies)  # billed with both edges of the band
    return found + [
        count for name, each in _BILLED.items() if getattr(alarms, name) for count in each
    ]


def _rolling_back(settings: Settings, key: str, plan: Plan) -> list[int]:
    """The alarms of a variant that roll a deployment back, each by its number of metrics."""
    endpoint = settings.endpoints[key]
    stated = endpoint.deployment
    types = [
        name
        for variant in planned_variants(settings, key)
        for name in variant.plan.request.serving.types
    ]
    back = rolls_back(stated.rollback_on_alarms if stated else None, types)
    latencies = _thresholds(endpoint, plan, "model_latency", "ModelLatency")
    return [*(1 for _ in latencies), *_BILLED["error_rate"]] if back else []


@dataclass(frozen=True)
class BilledAlarms:
    """What CloudWatch bills for: metrics in alarms, and composite alarms."""

    metrics: int  # of one alarm on several metrics each counts
    high_resolution: int
    composites: int


def billed_alarms(settings: Settings, key: str, plan: Plan) -> BilledAlarms:
    """The alarms of an endpoint, with those that target tracking makes itself."""
    endpoint = settings.endpoints[key]
    variants = list(planned_variants(settings, key))
    quiet = endpoint.alarms.quiet_during_deployments
    metrics = list(_of_shadow(plan)) if endpoint.shadow else []
    for variant in variants:
        if not variant.shadow:
            metrics += [
                *_watching(settings, endpoint, variant.plan),
                *_rolling_back(settings, key, variant.plan),
                *(_OF_BOTH_FLEETS if quiet else ()),
            ]
    of_tokens, more = _of_tokens(
        endpoint, [variant.plan for variant in variants if not variant.shadow]
    )
    of_canary = _of_canary(settings, endpoint, plan)
    normal, finely = sum(metrics) + of_tokens + sum(of_canary), 0
    for variant in variants:
        policy, steps = variant.plan.scaling, variant.plan.request.scaling.steps
        if policy is not None and policy.metric == CONCURRENCY_METRIC:
            finely += sum(_OF_TARGET_TRACKING)
        elif policy is not None:
            normal += sum(_OF_TARGET_TRACKING)
        if steps is not None and steps.metric == "concurrency":
            finely += 1
        elif steps is not None:
            normal += 1
    return BilledAlarms(normal, finely, 1 + quiet + more + bool(of_canary))
