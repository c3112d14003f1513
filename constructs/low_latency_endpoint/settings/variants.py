"""Settings of the variants beside an endpoint's first: a part of the requests, or copies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from ..errors.findings import Finding, Place, finding
from ..plan import limits
from ..plan.rules import MODE_NEEDS_CONTAINERS
from .container_checks import container_checks, one_way_to_serve
from .containers import ContainerSettings
from .fields import Limited
from .hugging_face import HuggingFaceSettings
from .inference_ami import InferenceAmi
from .model_base import SettingsModel, optional
from .rules import SHADOW_SHARE
from .traffic import InstanceCountSettings, PrefixAwareRouting, Routing, ScalingSettings

if TYPE_CHECKING:
    from .endpoint import EndpointSettings


class FurtherSettings(SettingsModel):
    """What variants and a shadow have alike; what they leave out is the first variant's."""

    other_forms: ClassVar[Mapping[str, type[SettingsModel]]] = {"routing": PrefixAwareRouting}

    containers: tuple[ContainerSettings, ...] = optional(
        "The containers of a model of its own. Default: the first variant's model itself.",
        example=[{"image": {"ecr": {"repository": "scorer", "tag": "2"}}}],
        default=(),
        strict=False,
    )
    hugging_face: HuggingFaceSettings | None = optional(
        "A model of its own from the Hugging Face Hub, instead of containers.",
        example={"model": "Qwen/Qwen3-8B"},
    )
    inference_mode: Annotated[str, Limited(limits.INFERENCE_MODE)] | None = optional(
        "How several containers of its own work, as for the endpoint.", example="Serial"
    )
    instance_type: Annotated[str, Limited(limits.INSTANCE_TYPE)] | None = optional(
        "Instance type. Default: the first variant's.", example="ml.g6.xlarge"
    )
    tps_per_instance: Annotated[float, Limited(limits.TPS_PER_INSTANCE)] | None = optional(
        "Requests per second that one of its instances held. Default: the first variant's, with "
        "a warning on another instance type.",
        example=240,
    )
    safety_factor: Annotated[float, Limited(limits.SAFETY_FACTOR)] | None = optional(
        "Share of that throughput which scaling aims at. Default: the first variant's.",
        example=0.65,
    )
    concurrency_per_instance: Annotated[float, Limited(limits.CONCURRENCY_PER_INSTANCE)] | None = (
        optional(
            "Requests in flight on one of its instances at that limit, of a language model. "
            "Default: the first variant's; not known on another instance type or beside "
            "tps_per_instance.",
            example=24,
        )
    )
    instances: InstanceCountSettings | None = optional(
        "Numbers of instances. Default: derived from its part of the throughput.",
        example={"min": 2, "max": 4},
    )
    scaling: ScalingSettings | None = optional(
        "How its number of instances follows its load. Default: as the first variant's, without "
        "set times and steps.",
        example={"scale_in_cooldown": "5m"},
    )
    routing: Routing | None = optional(
        "How requests find their instance in it. Default: as in the first variant.",
        example="random",
    )
    startup_health_check_timeout: (
        Annotated[timedelta, Limited(limits.CONTAINER_STARTUP_SECONDS)] | None
    ) = optional(
        "How long a container may take to answer its first ping. Default: the first variant's.",
        example="5m",
    )
    model_data_download_timeout: (
        Annotated[timedelta, Limited(limits.MODEL_DOWNLOAD_SECONDS)] | None
    ) = optional(
        "How long the model's download may take. Default: the first variant's.", example="5m"
    )
    instance_provision_timeout: Annotated[timedelta, Limited(limits.PROVISION_SECONDS)] | None = (
        optional(
            "How long SageMaker looks for instances. Default: the first variant's.", example="10m"
        )
    )
    volume_size_gib: Annotated[int, Limited(limits.VOLUME_SIZE)] | None = optional(
        "Size of each instance's EBS volume. Default: the first variant's, on its instance type.",
        example=64,
    )
    inference_ami: InferenceAmi | None = optional(
        "System image of the instances. Default: the first variant's, on its instance type; else "
        "as for the endpoint.",
        example="al2023-ami-sagemaker-inference-gpu-4-1",
    )
    capacity_reservation_arn: Annotated[str, Limited(limits.CAPACITY_RESERVATION_ARN)] | None = (
        optional(
            "ML capacity reservation. Default: on demand.",
            example="arn:aws:sagemaker:us-east-1:123456789012:training-plan/mine",
        )
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """Containers of its own fit together."""
        yield from one_way_to_serve(given, needed=False)
        yield from container_checks(given)
        if "inference_mode" in given and not given.get("containers"):
            yield finding(
                MODE_NEEDS_CONTAINERS,
                "inference_mode",
                got=given["inference_mode"],
                allowed="no mode without containers of its own",
            )


class VariantSettings(FurtherSettings):
    """A further production variant."""

    weight: Annotated[float, Limited(limits.VARIANT_WEIGHT)] = optional(
        "Share of the requests relative to the other variants; 0 gets only calls that name it as "
        "TargetVariant. Default: 1.",
        example=1,
        default=1.0,
    )


class ShadowSettings(FurtherSettings):
    """A shadow variant."""

    name: Annotated[str, Limited(limits.VARIANT_NAME)] = Field(
        examples=["candidate"], description="Name of the variant."
    )
    share: Annotated[float, Limited(SHADOW_SHARE)] = optional(
        "Share of the requests that are copied. It becomes a weight; AWS describes equal weights "
        "only, which copy all. Default: 1.",
        example=0.5,
        default=1.0,
    )


@dataclass(frozen=True)
class Further:
    """A variant beside the first, wherever the file states it."""

    name: str
    weight: float
    shadow: bool
    settings: FurtherSettings
    place: Place  # below the endpoint's


def further_variants(endpoint: EndpointSettings) -> list[Further]:
    """The variants beside an endpoint's first, in the order of the file."""
    found = [
        Further(name, each.weight, False, each, ("variants", name))
        for name, each in endpoint.variants.items()
    ]
    shadow = endpoint.shadow
    if shadow is not None:
        weight = shadow.share * endpoint.variant_weight
        found.append(Further(shadow.name, weight, True, shadow, ("shadow",)))
    return found


def all_containers(endpoint: EndpointSettings) -> Iterator[tuple[Place, ContainerSettings]]:
    """The containers of all models of an endpoint, each with its place below the endpoint's."""
    for index, container in enumerate(endpoint.containers):
        yield ("containers", index), container
    for each in further_variants(endpoint):
        for index, container in enumerate(each.settings.containers):
            yield (*each.place, "containers", index), container


def volume_of(endpoint: EndpointSettings, further: FurtherSettings | None) -> int | None:
    """The volume of the first variant's instances, or of one beside it; in GiB, where stated."""
    if further is None:
        return endpoint.volume_size_gib
    of_first = endpoint.volume_size_gib if further.instance_type is None else None
    return further.volume_size_gib or of_first


def container_id(key: str, place: Place) -> str:
    """What the stack calls the parts of a container, by its place below the endpoint's."""
    *above, _, index = place
    return f"{'.'.join([key, *map(str, above[-1:])])}-{index}"
