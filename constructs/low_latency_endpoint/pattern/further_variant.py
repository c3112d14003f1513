"""A variant beside the pattern's first: a part of the traffic, or copies of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from ..errors.findings import Finding, finding
from ..errors.frozen import dataclass
from ..facts.limits import VARIANT_NAME, VARIANT_WEIGHT
from ..facts.rules import MODEL_WITHOUT_CONTAINERS
from ..hosting.container import Container, container_on
from ..hosting.instance_type import InstanceType
from ..hosting.variant import InstancePool
from ..options.argument_kinds import checked_arguments
from ..options.endpoint import ModelOptions
from ..options.option import Option
from ..options.variant import FurtherOptions, VariantOptions
from ..options.written_to_s3 import CoreDump
from ..plan.endpoint_request import EndpointRequest
from ..plan.hub_serving import HubServing
from ..plan.model_memory import hides_pace
from ..plan.variant_shares import VariantShare, further_request
from .pools import planned_pools, planned_type, types_of


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class FurtherVariant(FurtherOptions):
    """A variant of :class:`LowLatencyEndpoint` beside its first one.

    Under ``variants`` it gets a part of the requests, by weight; as ``shadow`` copies of them, and
    callers see nothing of it. What it leaves out is the first variant's.

    Args:
        name: Such as ``"challenger"``.
        weight: Its part of the requests is its weight over those of all variants. As a shadow: the part that is copied is its weight over the first variant's. By default 1, as the first one's.
        containers: By default it serves the first variant's model itself, such as to compare routing strategies or instance types.
        model: With ``containers``: by default as the endpoint's ``model``, which shares its role, if one is stated.
        instance_type: By default what the first variant runs on.
        core_dump: By default as the first variant's.
        tps_per_instance: As for :class:`FurtherOptions`.
        safety_factor: As for :class:`FurtherOptions`.
        concurrency_per_instance: As for :class:`FurtherOptions`.
        instances: As for :class:`FurtherOptions`.
        scaling: As for :class:`FurtherOptions`.
        routing: As for :class:`InstanceOptions`; by default the first variant's.
        startup_health_check_timeout: As for :class:`InstanceOptions`; by default the first variant's.
        model_data_download_timeout: As for :class:`InstanceOptions`; by default the first variant's.
        instance_provision_timeout: As for :class:`InstanceOptions`; by default the first variant's.
        volume_size_gib: As for :class:`InstanceOptions`; by default the first variant's, on its instance type.
        inference_ami: As for :class:`InstanceOptions`; by default the first variant's, on its instance type.
        ssm_access: As for :class:`InstanceOptions`; by default as the first variant.
        capacity_reservation_arn: As for :class:`InstanceOptions`.

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
    weight: Annotated[float, Option(VARIANT_WEIGHT)] = 1.0
    containers: Sequence[Container] = ()
    model: ModelOptions | None = None
    instance_type: InstanceType | str | Sequence[InstancePool] | None = None
    core_dump: CoreDump | None = None

    def _rules(self) -> Iterator[Finding]:
        """A model is made of containers."""
        if self.model is not None and not self.containers:
            yield finding(
                MODEL_WITHOUT_CONTAINERS,
                "model",
                got="model alone",
                allowed="containers and model, or none",
            )


def placed_on(variant: FurtherVariant) -> InstanceType | Sequence[InstancePool] | None:
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
    own = placed_on(variant)
    volume = variant.volume_size_gib or (options.volume_size_gib if own is None else None)
    placed = first if own is None else own
    return replace(variant, containers=_on(placed, variant.containers, volume, where))


def first_containers(
    containers: Sequence[Container],
    placed: InstanceType | Sequence[InstancePool],
    options: VariantOptions,
    where: str,
) -> list[Container]:
    """The first variant's containers, which then know their instance types."""
    return _on(placed, containers, options.volume_size_gib, where)


def _on(
    placed: InstanceType | Sequence[InstancePool],
    containers: Sequence[Container],
    volume: int | None,
    where: str,
) -> list[Container]:
    types = types_of(placed)
    return [container_on(each, types, volume, where) for each in containers]


def further_request_of(
    request: EndpointRequest, variant: FurtherVariant, share: VariantShare
) -> EndpointRequest:
    """What a further variant asks of the plan."""
    placed = placed_on(variant)
    return further_request(
        request,
        variant,
        share,
        instance_type=None if placed is None else planned_type(placed).name,
        instance_pools=() if placed is None else planned_pools(placed),
        images=images_of(variant.containers) if variant.containers else None,
        hub=hub_serving_in(variant.containers),
    )


def model_options_of(variant: FurtherVariant, first: ModelOptions) -> ModelOptions:
    """How its own model is made."""
    if variant.model is not None:
        return variant.model
    return replace(first, inference_mode=None) if len(variant.containers) == 1 else first


def images_of(containers: Sequence[Container]) -> tuple[str, ...]:
    """The images as the plan takes them, without those that are not known."""
    known = (each.image.reference for each in containers if each.image)
    return tuple(image for image in known if image)


def hub_serving_in(containers: Sequence[Container]) -> HubServing | None:
    """How the first model of the Hub among them is served."""
    for each in containers:
        if each.hugging_face and (serving := each.hugging_face.serving):
            changed = hides_pace(each.environment)
            return replace(serving, model=replace(serving.model, pace_unknown=changed))
    return None
