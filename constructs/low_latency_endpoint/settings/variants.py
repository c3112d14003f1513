"""Settings of the variants beside an endpoint's first: a part of the requests, or copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from ..errors.findings import Finding, Place, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.rules import MODE_NEEDS_CONTAINERS
from ..hugging_face.hub_options import HuggingFaceSettings
from ..options.container import ContainerSettings, rules_of_model
from ..options.effects import CONFIGURATION, MODEL, VARIANT, Touched
from ..options.option import Option
from ..options.rules import SHADOW_SHARE
from ..options.variant import FLEET, FurtherOptions

if TYPE_CHECKING:
    from .endpoint import EndpointSettings

#: What the plan decides where a variant beside the first comes or goes, or runs elsewhere.
OF_FURTHER = ("token_alarms", "rollback_alarms", "scaling", "deployment", "volume_key", *FLEET)
_WEIGHT = Touched((CONFIGURATION,), ("scaling", *FLEET))


@dataclass(frozen=True, kw_only=True)
class FurtherSettings(FurtherOptions):
    """What variants and a shadow have alike; what they leave out is the first variant's.

    Args:
        containers: The containers of a model of its own. Default: the first variant's model itself.
        hugging_face: A model of its own from the Hugging Face Hub, instead of containers.
        inference_mode: How several containers of its own work, as for the endpoint.
        instance_type: Instance type. Default: the first variant's.
    """

    containers: Annotated[
        Sequence[ContainerSettings],
        Option(
            example=[{"image": {"ecr": {"repository": "scorer", "tag": "2"}}}],
            touches=Touched((MODEL,), ("further",)),
        ),
    ] = ()
    hugging_face: Annotated[
        HuggingFaceSettings | None,
        Option(example={"model": "Qwen/Qwen3-8B"}, touches=Touched((MODEL,), ("further",))),
    ] = None
    inference_mode: Annotated[
        str | None, Option(limits.INFERENCE_MODE, "Serial", touches=Touched((MODEL,)))
    ] = None
    instance_type: Annotated[
        str | None,
        Option(limits.INSTANCE_TYPE, "ml.g6.xlarge", touches=Touched((VARIANT,), OF_FURTHER)),
    ] = None

    def _rules_of_model(self) -> Iterator[Finding]:
        """Containers of its own fit together."""
        yield from rules_of_model(self, needed=False)
        if self.inference_mode is not None and not self.containers:
            yield finding(
                MODE_NEEDS_CONTAINERS,
                "inference_mode",
                got=self.inference_mode,
                allowed="no mode without containers of its own",
            )


@dataclass(frozen=True, kw_only=True)
class VariantSettings(FurtherSettings):
    """A further production variant.

    Args:
        weight: Share of the requests relative to the other variants; 0 gets only calls that name it as TargetVariant. Default: 1.
    """

    weight: Annotated[float, Option(limits.VARIANT_WEIGHT, 1, touches=_WEIGHT)] = 1.0


@dataclass(frozen=True, kw_only=True)
class ShadowSettings(FurtherSettings):
    """A shadow variant.

    Args:
        name: Name of the variant.
        share: Share of the requests that are copied. It becomes a weight; AWS describes equal weights only, which copy all. Default: 1.
    """

    name: Annotated[
        str, Option(limits.VARIANT_NAME, "candidate", touches=Touched((VARIANT,), OF_FURTHER))
    ]
    share: Annotated[float, Option(SHADOW_SHARE, 0.5, touches=Touched((CONFIGURATION,), FLEET))] = (
        1.0
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
