"""The variants of the pattern: for each a plan, a model, instance types and their scaling."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling
from constructs import Construct

from ..errors.findings import Finding, finding
from ..errors.frozen import dataclass
from ..facts.limits import INSTANCE_POOL_COUNT, VARIANT_NAME, VARIANT_WEIGHT
from ..facts.rules import MODEL_WITHOUT_CONTAINERS
from ..hosting.container import Container, container_on
from ..hosting.endpoint import Endpoint
from ..hosting.instance_type import InstanceType
from ..hosting.model import Model
from ..hosting.scaling import InvocationScaling, ScalingStep
from ..hosting.variant import InstancePool, ProductionVariant
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..options.endpoint import ModelOptions
from ..options.option import Option
from ..options.scaling import whole_seconds
from ..options.variant import (
    FurtherOptions,
    PlannedPool,
    RoutingStrategy,
    VariantOptions,
    options_beside,
    planned_for,
)
from ..options.written_to_s3 import CoreDump
from ..plan.decisions import PlanWarning
from ..plan.endpoint_request import EndpointRequest, VariantShare
from ..plan.hub_serving import HubServing
from ..plan.latency_plan import make_plan
from ..plan.plan import Plan
from ..plan.token_floors import hides_pace
from ..plan.variant_shares import first_request, further_request, shares_of

_STEP_METRICS = {
    "concurrency": ("ConcurrentRequestsPerModel", "Maximum"),
    "invocations": ("InvocationsPerInstance", "Sum"),
}


def planned_pools(placed: InstanceType | Sequence[InstancePool]) -> tuple[PlannedPool, ...]:
    """The pools as the plan takes them; none for a single type."""
    if isinstance(placed, InstanceType):
        return ()
    INSTANCE_POOL_COUNT.check(len(placed), "instance_type")
    return tuple(
        PlannedPool(
            instance_type=pool.instance_type.name,
            priority=pool.priority,
            tps_per_instance=pool.tps_per_instance,
            own_model=pool.model is not None,
        )
        for pool in placed
    )


def planned_type(placed: InstanceType | Sequence[InstancePool]) -> InstanceType:
    """The type that the plan is made for: the slowest of several."""
    pools = planned_pools(placed)
    return (
        placed
        if isinstance(placed, InstanceType)
        else InstanceType(planned_for(pools).instance_type)
    )


def _types_of(placed: InstanceType | Sequence[InstancePool]) -> list[str]:
    """The types on which the variant's own model runs: not those of pools with another."""
    if isinstance(placed, InstanceType):
        return [placed.name]
    return [pool.instance_type.name for pool in placed if pool.model is None]


def _placement_arguments(placed: InstanceType | Sequence[InstancePool]) -> dict[str, Any]:
    """The argument of :class:`ProductionVariant`."""
    if isinstance(placed, InstanceType):
        return {"instance_type": placed}
    return {"instance_pools": placed}


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class FurtherVariant(FurtherOptions):
    """A variant of :class:`LowLatencyEndpoint` beside its first one.

    Under ``variants`` it gets a part of the requests, by weight; as ``shadow`` copies of them, and
    callers see nothing of it. What it leaves out is the first variant's.

    Raises:
        ConfigurationError: LLE402, LLE404, LLE603, LLE604 and LLE896 for name, weight
            and throughput, LLE436 for ``model`` without ``containers``, LLE801 and
            LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import FurtherVariant, RoutingStrategy
        >>> FurtherVariant(name="random", weight=0.5, routing=RoutingStrategy.RANDOM).containers
        ()
    """

    name: Annotated[str, Option(VARIANT_NAME)]
    """Such as ``"challenger"``."""
    weight: Annotated[float, Option(VARIANT_WEIGHT)] = 1.0
    """Its part of the requests is its weight over those of all variants. As a shadow: the part that
    is copied is its weight over the first variant's. By default 1, as the first one's."""
    containers: Sequence[Container] = ()
    """By default it serves the first variant's model itself, such as to compare routing strategies
    or instance types."""
    model: ModelOptions | None = None
    """With ``containers``: by default as the endpoint's ``model``, which shares its role, if one is
    stated."""
    instance_type: InstanceType | str | Sequence[InstancePool] | None = None
    """By default what the first variant runs on."""
    core_dump: CoreDump | None = None
    """By default as the first variant's."""

    def _rules(self) -> Iterator[Finding]:
        """A model is made of containers."""
        if self.model is not None and not self.containers:
            yield finding(
                MODEL_WITHOUT_CONTAINERS,
                "model",
                got="model alone",
                allowed="containers and model, or none",
            )


def _placed_on(variant: FurtherVariant) -> InstanceType | Sequence[InstancePool] | None:
    """Where a further variant runs, if it says so."""
    stated = variant.instance_type
    return InstanceType(stated) if isinstance(stated, str) else stated


def placed_containers(
    variant: FurtherVariant,
    first: InstanceType | Sequence[InstancePool],
    options: VariantOptions,
    where: str,
) -> FurtherVariant:
    """The variant with containers that know their instance types."""
    own = _placed_on(variant)
    volume = variant.volume_size_gib or (options.volume_size_gib if own is None else None)
    placed = first if own is None else own
    return replace(variant, containers=_containers_on(placed, variant.containers, volume, where))


def first_containers(
    containers: Sequence[Container],
    placed: InstanceType | Sequence[InstancePool],
    options: VariantOptions,
    where: str,
) -> list[Container]:
    """The first variant's containers, which then know their instance types."""
    return _containers_on(placed, containers, options.volume_size_gib, where)


def _containers_on(
    placed: InstanceType | Sequence[InstancePool],
    containers: Sequence[Container],
    volume: int | None,
    where: str,
) -> list[Container]:
    types = _types_of(placed)
    return [container_on(container, types, volume, where) for container in containers]


def _further_request_of(
    request: EndpointRequest, variant: FurtherVariant, share: VariantShare
) -> EndpointRequest:
    """What a further variant asks of the plan."""
    placed = _placed_on(variant)
    return further_request(
        request,
        variant,
        share,
        instance_type=None if placed is None else planned_type(placed).name,
        instance_pools=() if placed is None else planned_pools(placed),
        images=images_of(variant.containers) if variant.containers else None,
        hub=hub_serving_in(variant.containers),
    )


def _model_options_of(variant: FurtherVariant, first: ModelOptions) -> ModelOptions:
    """How its own model is made."""
    if variant.model is not None:
        return variant.model
    return replace(first, inference_mode=None) if len(variant.containers) == 1 else first


def images_of(containers: Sequence[Container]) -> tuple[str, ...]:
    """The images as the plan takes them, without those that are not known."""
    known = (container.image.reference for container in containers if container.image)
    return tuple(image for image in known if image)


def hub_serving_in(containers: Sequence[Container]) -> HubServing | None:
    """How the first model of the Hub among them is served."""
    for container in containers:
        if container.hugging_face and (serving := container.hugging_face.serving):
            changed = hides_pace(container.environment)
            return replace(serving, model=replace(serving.model, pace_unknown=changed))
    return None


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
        each.name: _further_request_of(request, each, shares[each.name]) for each in beside
    }


def plans_of(
    requests: Mapping[str, EndpointRequest], first: Plan | None, where: str
) -> dict[str, Plan]:
    """The plan of each variant; the first one's may be there already."""
    (name, request), *others = requests.items()
    first_plan = make_plan(request) if first is None else first.checked_for(request, where)
    return {name: first_plan} | {name: make_plan(request) for name, request in others}


def first_variant(
    options: VariantOptions, model: Model, placed: InstanceType | Sequence[InstancePool], plan: Plan
) -> ProductionVariant:
    """The first variant as it is deployed."""
    routing = options.routing or RoutingStrategy(plan.routing)
    return ProductionVariant(
        model=model,
        **_placement_arguments(placed),
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
    endpoint_names: Sequence[str],
    tags: Mapping[str, str],
) -> ProductionVariant:
    """A variant beside the first as it is deployed, with a model of its own where it has one."""
    placed = _placed_on(stated)
    runs_on = (
        _placement_arguments(placed)
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
            endpoint_names=endpoint_names,
            tags=tags,
            **vars(_model_options_of(stated, model)),
        )
    beside_first = options_beside(stated, options, same_type=stated.instance_type is None)
    beside_first["routing"] = beside_first["routing"] or RoutingStrategy(plan.routing)
    return ProductionVariant(
        name=stated.name,
        weight=stated.weight,
        model=serves,
        core_dump=stated.core_dump or options.core_dump,
        **runs_on,
        initial_instance_count=plan.fleet.initial,
        **beside_first,
    )


def warnings_of(plans: Mapping[str, Plan]) -> list[tuple[str, PlanWarning]]:
    """The warnings of all plans with their ids: of a further one, what the first does not say."""
    (_, first), *others = plans.items()
    warnings = [(f"plan:{warning.id}", warning) for warning in first.explanation.warnings]
    said = {str(warning) for warning in first.explanation.warnings}
    for name, plan in others:
        warnings += [
            (f"plan:{name}:{warning.id}", PlanWarning(warning.id, f"{name}: {warning}"))
            for warning in plan.explanation.warnings
            if warning not in said
        ]
    return warnings


def scaled_as_planned(
    endpoint: Endpoint, variant_name: str, plan: Plan
) -> InvocationScaling | None:
    """Let a variant scale as its plan says; None where the number of instances stays."""
    if plan.scaling is None:
        return None
    options = plan.request.scaling
    scaling = endpoint.scale(
        variant_name, min_instances=plan.fleet.minimum, max_instances=plan.fleet.maximum
    ).track(plan.scaling)
    for change in plan.schedule:
        scaling.on_schedule(
            change.name,
            schedule=appscaling.Schedule.expression(change.expression),
            min_instances=change.min,
            max_instances=change.max,
            time_zone=change.time_zone,
        )
    if options.steps is not None:
        metric, statistic = _STEP_METRICS[options.steps.metric]
        seconds = whole_seconds(options.steps.cooldown)
        scaling.step_on_metric(
            "Steps",
            metric=endpoint.variant(variant_name).metric(metric, statistic=statistic),
            threshold=options.steps.threshold,
            steps=[
                ScalingStep(lower=step.lower, upper=step.upper, change=step.change)
                for step in options.steps.steps
            ],
            evaluation_periods=options.steps.periods,
            cooldown=None if seconds is None else Duration.seconds(seconds),
        )
    return scaling
