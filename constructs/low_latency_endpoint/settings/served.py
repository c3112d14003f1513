"""What the models of an endpoint are made of: stated containers, or a model of Hub or JumpStart."""

from __future__ import annotations

from ..plan.hub_serving import HubServing, hub_serving
from ..plan.pinned_jumpstart import check_jumpstart_region, jumpstart_bucket
from ..plan.staging_calls import staging_calls
from .breach import Place
from .containers import (
    ContainerSettings,
    DeepLearningContainerSettings,
    ImageSettings,
    ModelDataSettings,
)
from .endpoint import EndpointSettings
from .hugging_face import HuggingFaceSettings
from .jumpstart import JumpStartSettings
from .variants import FurtherSettings, further_variants, volume_of


def environment_place(endpoint: EndpointSettings) -> Place:
    """Where an endpoint of one container states environment variables, below the endpoint's."""
    for name in ("hugging_face", "jumpstart"):
        if getattr(endpoint, name) is not None:
            return (name, "environment")
    return ("containers", 0, "environment")


def has_own_model(further: FurtherSettings | None) -> bool:
    """Whether a variant beside the first has a model of its own."""
    return further is not None and bool(
        further.containers or further.hugging_face or further.jumpstart
    )


def hub_models(endpoint: EndpointSettings) -> list[HuggingFaceSettings]:
    """The models of the Hub that an endpoint and its further variants state."""
    further = [each.settings.hugging_face for each in further_variants(endpoint)]
    return [each for each in (endpoint.hugging_face, *further) if each]


def hub_serving_of(
    endpoint: EndpointSettings, further: FurtherSettings | None = None
) -> HubServing | None:
    """How the model of the Hub is served that an endpoint, or a variant beside its first, states.

    Raises
    ------
    ConfigurationError
        LLE343 to LLE346 for lock file and licence, LLE352 and LLE399 for what no deployment stages,
        and what :func:`~low_latency_endpoint.plan.hub_serving.hub_serving` refuses.
    """
    stated = endpoint.hugging_face if further is None else further.hugging_face
    if stated is None:
        return None
    types, volume = _types(endpoint, further), volume_of(endpoint, further)
    staging_calls(stated.hub_model.pinned, staged_before=stated.bucket is not None)
    return hub_serving(stated.hub_model, types, volume_gib=volume, where="hugging_face")


def served_containers(
    endpoint: EndpointSettings, further: FurtherSettings | None = None, region: str | None = None
) -> tuple[ContainerSettings, ...]:
    """The containers of the first variant's model, or of a further variant's own.

    Of a model of the Hub they are what follows from it and the instance type, without data: that
    is staged at deployment. ``region`` tells the account of images that AWS keeps elsewhere than
    the Deep Learning Containers.

    Raises
    ------
    ConfigurationError
        As :func:`hub_serving_of`; LLE396 for an agreement of JumpStart's that is not accepted,
        LLE315 and LLE314 for types that it does not serve its model on, or not alike, LLE397 for
        a Region without JumpStart.
    """
    of = endpoint if further is None else further
    if of.jumpstart is not None:
        return (_jumpstart_container(of.jumpstart, _types(endpoint, further), region),)
    serving = hub_serving_of(endpoint, further)
    if serving is None or of.hugging_face is None:
        return of.containers
    container, account = serving.container, None
    if container.registry != "dlc" and region is not None:
        account = container.account(region, "hugging_face")
    image = DeepLearningContainerSettings(
        repository=container.repository, tag=container.tag, account=account
    )
    environment = {**container.environment, **of.hugging_face.environment}
    return (ContainerSettings(image=ImageSettings(dlc=image), environment=environment),)


def _jumpstart_container(
    stated: JumpStartSettings, types: list[str], region: str | None
) -> ContainerSettings:
    pinned = stated.pinned
    serving = pinned.served_on(types, accept_eula=stated.accept_eula, where="jumpstart")
    known = serving.deep_learning_container
    image = ImageSettings(uri=serving.image)
    if known is not None:
        image = ImageSettings(
            dlc=DeepLearningContainerSettings(repository=known[0], tag=known[1], account=None)
        )
    if region is not None:
        check_jumpstart_region(region, "jumpstart")
    bucket = jumpstart_bucket(region or pinned.region, gated=pinned.gated)
    uri = f"s3://{bucket}/{serving.artifact}"
    data = ModelDataSettings(
        s3_prefix=uri if uri.endswith("/") else None,
        s3=None if uri.endswith("/") else uri,
        accept_eula=stated.accept_eula and pinned.requires_eula,
    )
    return ContainerSettings(
        image=image, data=data, environment={**serving.environment, **stated.environment}
    )


def _types(endpoint: EndpointSettings, further: FurtherSettings | None) -> list[str]:
    if further is not None and further.instance_type is not None:
        return [further.instance_type]
    pools = [each.instance_type for each in endpoint.instance_pools]
    return list(dict.fromkeys([endpoint.instance_type, *pools]))
