"""What the stack of a settings file costs, as far as its prices are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..facts import deployments
from ..facts.durations import seconds_of
from ..facts.prices import HOURS_PER_MONTH, INTERFACE_ENDPOINT, Price, price_of
from ..facts.warm_up_rules import CONTROLLER_MIB, SENDER_MIB
from ..plan.fleet_explanations import FleetAlong, fleet_along
from ..plan.hourly_cost import BilledItem, EndpointCost, StackCost, sent_request
from ..plan.plan import INVOCATIONS_METRIC, Plan
from ..plan.traffic_shapes import Shape
from ..report.numbers import readable
from .endpoint import EndpointSettings
from .planned import PlannedVariant
from .stack import Settings, region_of
from .stack_parts import billed_alarms

_FUNCTION_SECONDS = 1.0
_LOG_BYTES = 1000
_ASSUMED_SECONDS = f"each invocation takes {readable(_FUNCTION_SECONDS)} s"
_ASSUMED_LOG = f"each invocation logs {_LOG_BYTES:,} bytes"


def cost_of_plans(settings: Settings, variants: Sequence[PlannedVariant]) -> StackCost:
    """What the stack of a settings file costs."""
    link, zones = settings.private_link, len(settings.client_zones.zones)
    made = [] if link.interface_endpoint_id else ["runtime", *["API"] * link.sagemaker_api]
    shared = BilledItem(
        what=f"interface endpoint{'s' * (len(made) > 1)} in {zones} zones",
        item=INTERFACE_ENDPOINT,
        per_hour=len(made) * zones,
        price=_price(settings, INTERFACE_ENDPOINT),
    )
    return StackCost(
        endpoints={each.label: variant_cost(settings, each) for each in variants},
        shared=(shared,) if made else (),
    )


def variant_cost(settings: Settings, variant: PlannedVariant) -> EndpointCost:
    """What one variant costs; beside the instances all stands with an endpoint's first one."""
    key, plan, copies = variant.key, variant.plan, variant.shadow
    endpoint, fleet, measured = settings.endpoints[key], plan.fleet, plan.request.throughput
    # Without a policy nothing changes the number, whatever the limits are.
    most = plan.most if plan.scaling else fleet.initial
    size, data = _request_bytes(endpoint), _price(settings, "interface_endpoint_data")
    beside = (*_alarms(settings, key, plan), *_functions(settings, endpoint))
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
        request_gb=None if size is None or copies else sent_request(size, data),
        data_price=data,
        copies_of=key if copies else "",
    )


def fleets_of_plans(
    variants: Sequence[PlannedVariant], shape: Shape
) -> dict[str, FleetAlong | None]:
    """The fleet of each variant along a day; ``None`` if it follows requests in flight."""
    found = {each.label: _fleet_along(each.plan, shape) for each in variants}
    for each in variants:
        fleet = found[each.label]
        if each.shadow and fleet is not None:
            found[each.label] = replace(fleet, tps=0.0)
    return found


def _fleet_along(plan: Plan, shape: Shape) -> FleetAlong | None:
    fleet, policy, measured = plan.fleet, plan.scaling, plan.request.throughput
    if policy is None:
        tps = measured.peak_tps * shape.mean_share if measured else None
        return FleetAlong(fleet.initial, fleet.initial, fleet.initial, tps)
    if policy.metric != INVOCATIONS_METRIC or measured is None:
        return None
    begins = (0.0, *(end for end, _ in shape.levels))
    return fleet_along(
        [
            (end - begin, share * measured.peak_tps)
            for begin, (end, share) in zip(begins, shape.levels, strict=False)
        ],
        target_tps=policy.target / 60,
        minimum=fleet.minimum,
        maximum=fleet.maximum,
        scale_in_seconds=policy.scale_in_seconds,
    )


def instances_in_update(largest: int, endpoint: EndpointSettings) -> int:
    """The most instances while a new version takes over a fleet of that size."""
    stated = endpoint.deployment
    return deployments.instances_in_update(largest, stated.rolling_percent if stated else None)


def _price(settings: Settings, item: str) -> Price | None:
    return price_of(item, region_of(settings), settings.prices)


def _alarms(settings: Settings, key: str, plan: Plan) -> Iterator[BilledItem]:
    alarms = billed_alarms(settings, key, plan)
    for count, item, what in (
        (alarms.metrics, "alarm", "metrics in alarms"),
        (alarms.high_resolution, "high_resolution_alarm", "metrics in high-resolution alarms"),
        (alarms.composites, "composite_alarm", "composite alarm" + "s" * (alarms.composites > 1)),
    ):
        if count:
            yield BilledItem(
                what=f"{count} {what}",
                item=item,
                per_hour=count / HOURS_PER_MONTH,
                price=_price(settings, item),
            )


def _functions(settings: Settings, endpoint: EndpointSettings) -> Iterator[BilledItem]:
    """What keeps the endpoint warm: one function decides, another sends while traffic is low."""
    keep = endpoint.warm_up.keep_warm if endpoint.warm_up else None
    if keep is None:
        return
    item = partial(_function_item, settings)
    runs = 2 * 3600 / seconds_of(keep.every)
    memory = runs / 2 * _FUNCTION_SECONDS * (CONTROLLER_MIB + SENDER_MIB) / 1024
    yield item("function_request", runs, f"{readable(runs)} invocations to keep warm", "")
    yield item(
        "function_memory", memory, f"{readable(memory, 4)} GB-seconds of them", _ASSUMED_SECONDS
    )
    yield item("logs", runs * _LOG_BYTES / 1e9, "their logs", _ASSUMED_LOG)


def _function_item(
    settings: Settings, item: str, per_hour: float, what: str, assumed: str
) -> BilledItem:
    return BilledItem(
        what=what, item=item, per_hour=per_hour, price=_price(settings, item), assumed=assumed
    )


def _request_bytes(endpoint: EndpointSettings) -> int | None:
    """The size of the warm-up's request, which is like those of the callers."""
    payload = endpoint.warm_up.payloads[0] if endpoint.warm_up else None
    if payload is None or (payload.file and not Path(payload.file).is_file()):
        return None
    return Path(payload.file).stat().st_size if payload.file else len(payload.body)
