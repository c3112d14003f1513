"""What the models of an endpoint are made of: stated containers, or a model of the Hub."""

from __future__ import annotations

from ..errors.findings import Place
from ..hugging_face.hub_options import HuggingFaceSettings
from ..options.container import ContainerSettings, DeepLearningContainerSettings, ImageSettings
from ..plan.hub_serving import HubServing, hub_serving
from ..plan.pinned_model import staging_calls
from .endpoint import EndpointSettings
from .variants import FurtherSettings, further_variants, volume_of


def environment_place(endpoint: EndpointSettings) -> Place:
    """Where an endpoint of one container states environment variables, below the endpoint's."""
    if endpoint.hugging_face is not None:
        return ("hugging_face", "environment")
    return ("containers", 0, "environment")


def has_own_model(further: FurtherSettings | None) -> bool:
    """Whether a variant beside the first has a model of its own."""
    return further is not None and bool(further.containers or further.hugging_face)


def hub_models(endpoint: EndpointSettings) -> list[HuggingFaceSettings]:
    """The models of the Hub that an endpoint and its further variants state."""
    further = [each.settings.hugging_face for each in further_variants(endpoint)]
    return [each for each in (endpoint.hugging_face, *further) if each]


def hub_serving_of(
    endpoint: EndpointSettings, further: FurtherSettings | None = None
) -> HubServing | None:
    """How the model of the Hub is served that an endpoint, or a variant beside its first, states."""
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
        As :func:`hub_serving_of`.
    """
    of = endpoint if further is None else further
    serving = hub_serving_of(endpoint, further)
    if serving is None or of.hugging_face is None:
        return tuple(of.containers)
    container, account = serving.container, None
    if container.registry != "dlc" and region is not None:
        account = container.account(region, "hugging_face")
    image = DeepLearningContainerSettings(
        repository=container.repository, tag=container.tag, account=account
    )
    environment = {**container.environment, **of.hugging_face.environment}
    return (ContainerSettings(image=ImageSettings(dlc=image), environment=environment),)


def _types(endpoint: EndpointSettings, further: FurtherSettings | None) -> list[str]:
    if further is not None and further.instance_type is not None:
        return [further.instance_type]
    pools = [each.instance_type for each in endpoint.instance_pools]
    return list(dict.fromkeys([endpoint.instance_type, *pools]))
