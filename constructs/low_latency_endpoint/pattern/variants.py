"""The variants of the pattern: a plan, a model and an instance type for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from constructs import Construct

from ..hosting.endpoint import Endpoint
from ..hosting.instance_type import InstanceType
from ..hosting.model import Model
from ..hosting.variant import InstancePool, ProductionVariant
from ..monitoring.shadow_alarms import ShadowAlarms
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.endpoint import ModelOptions
from ..options.variant import RoutingStrategy, VariantOptions, options_beside
from ..plan.decisions import PlanWarning
from ..plan.endpoint_request import EndpointRequest
from ..plan.latency_plan import make_plan
from ..plan.plan import Plan
from ..plan.variant_shares import first_request, shares_of
from .further_variant import FurtherVariant, further_request_of, model_options_of, placed_on
from .pools import of_variant, planned_type

SHADOW_LATENCY_RATIO = 1.2
"""How many times production's latency a shadow's may be: our choice, for want of AWS's."""
SHADOW_ERROR_RATE = 0.01
"""The share of copied requests that may fail, where the alarms of production state none."""


def requests_of(
    request: EndpointRequest,
    first: VariantOptions,
    further: Sequence[FurtherVariant],
    shadow: FurtherVariant | None,
    where: str,
) -> dict[str, EndpointRequest]:
    """What each variant asks of the plan, by its name, where the endpoint asks for ``request``."""
    beside = [*further, *([shadow] if shadow else [])]
    shares = shares_of(
        [(first.name, first.weight), *((each.name, each.weight) for each in beside)],
        request.throughput,
        shadow=shadow.name if shadow else None,
        where=where,
    )
    return {first.name: first_request(request, shares.get(first.name))} | {
        each.name: further_request_of(request, each, shares[each.name]) for each in beside
    }


def plans_of(
    requests: Mapping[str, EndpointRequest], first: Plan | None, where: str
) -> dict[str, Plan]:
    """The plan of each variant; the first one's may be there already."""
    (name, request), *others = requests.items()
    made = make_plan(request) if first is None else first.checked_for(request, where)
    return {name: made} | {name: make_plan(request) for name, request in others}


def first_variant(
    options: VariantOptions, model: Model, placed: InstanceType | Sequence[InstancePool], plan: Plan
) -> ProductionVariant:
    """The first variant as it is deployed."""
    routing = options.routing or RoutingStrategy(plan.routing)
    return ProductionVariant(
        model=model,
        **of_variant(placed),
        initial_instance_count=plan.fleet.initial,
        **vars(replace(options, routing=routing)),
    )


def further_variant(
    scope: Construct,
    stated: FurtherVariant,
    first: ProductionVariant,
    options: VariantOptions,
    plan: Plan,
    *,
    network: ZoneAlignedNetwork,
    model: ModelOptions,
    tags: Mapping[str, str],
) -> ProductionVariant:
    """A variant beside the first as it is deployed, with a model of its own where it has one."""
    placed = placed_on(stated)
    runs_on = (
        of_variant(placed)
        if placed is not None
        else {"instance_type": first.instance_type, "instance_pools": first.instance_pools}
    )
    serves = first.model
    if stated.containers:
        facts = planned_type(placed).facts if placed else first.instance_types[0].facts
        serves = Model(
            scope,
            f"Model-{stated.name}",
            network=network,
            containers=stated.containers,
            architecture=facts.architecture if facts else None,
            tags=tags,
            **vars(model_options_of(stated, model)),
        )
    made = options_beside(stated, options, same_type=stated.instance_type is None)
    made["routing"] = made["routing"] or RoutingStrategy(plan.routing)
    return ProductionVariant(
        name=stated.name,
        weight=stated.weight,
        model=serves,
        core_dump=stated.core_dump or options.core_dump,
        **runs_on,
        initial_instance_count=plan.fleet.initial,
        **made,
    )


def shadow_alarms(
    scope: Construct, endpoint: Endpoint, plan: Plan, error_rate: float | None
) -> ShadowAlarms | None:
    """Where there is a shadow: on the statistics of the target, by default p99, and on failures."""
    if endpoint.shadow is None:
        return None
    latency = plan.request.latency
    statistics = list(latency.milliseconds if latency else ()) or ["p99"]
    return ShadowAlarms(
        scope,
        "ShadowAlarms",
        endpoint=endpoint,
        latency_ratio=dict.fromkeys(statistics, SHADOW_LATENCY_RATIO),
        error_rate=SHADOW_ERROR_RATE if error_rate is None else error_rate,
    )


def warnings_of(plans: Mapping[str, Plan]) -> list[tuple[str, PlanWarning]]:
    """The warnings of all plans with their ids: of a further one, what the first does not say."""
    (_, first), *others = plans.items()
    found = [(f"plan:{each.id}", each) for each in first.explanation.warnings]
    said = {str(each) for each in first.explanation.warnings}
    for name, plan in others:
        found += [
            (f"plan:{name}:{each.id}", PlanWarning(each.id, f"{name}: {each}"))
            for each in plan.explanation.warnings
            if each not in said
        ]
    return found
