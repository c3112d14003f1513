"""A model of the Hugging Face Hub as a container serves it: pinned, staged and offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

from constructs import Construct

from ..errors.frozen import dataclass
from ..hugging_face.hub_options import HubModelOptions
from ..options.argument_kinds import checked_arguments
from ..plan.hub_serving import HubServing, hub_serving
from ..plan.serving_containers import ServingContainer
from ..synthesis.construct_tree import path_of, region_of
from ..synthesis.template_values import is_token
from .images import ContainerImage
from .model_data import ModelData

if TYPE_CHECKING:
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_secretsmanager as secretsmanager


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class HuggingFaceModel(HubModelOptions):
    """A model of the Hub that ``low-latency pin`` has pinned, and how it is to be served.

    :meth:`Container.from_hugging_face` makes one of its arguments.

    Args:
        model: Its name on the Hub: ``Qwen/Qwen3-8B``.
        lock: The lock file; by default ``models.lock.yaml`` in the working directory.
        accept_license: The model's licence by its name, which you have read. By default only permissive licences such as ``apache-2.0`` and ``mit`` are taken.
        server: By default the one for its task and the accelerator.
        context_length: Tokens of the longest request together with its answer; by default the model's own, or as many as one request has room for.
        trust_remote_code: Whether Python code that comes with the model runs; has to be said where there is some.
        bucket: For the model's files; several stacks may share it. By default one that the stack makes.
        token: With the Hub's token, for gated and private models. By default none.
        hub_endpoint: The Hub, or a mirror of it, which gets the token. By default ``https://huggingface.co``.

    Raises:
        ConfigurationError: LLE391 for the context and LLE807 for values of another
            kind; when it is used, LLE343 to LLE346 for lock file and licence, LLE359
            for the Hub's address.

    Examples:
        >>> from low_latency_endpoint import HuggingFaceModel
        >>> HuggingFaceModel(model="Qwen/Qwen3-8B").hub_model.pinned.commit  # doctest: +SKIP
        'b968826d9c46dd6066d109eabc6255188de91218'
    """

    bucket: s3.IBucket | None = None
    token: secretsmanager.ISecret | None = None
    serving: HubServing | None = field(default=None, init=False, repr=False)

    @property
    def data(self) -> ModelData:
        """Its files in S3, staged at deployment."""
        return ModelData.from_hugging_face(
            self.hub_model.pinned,
            bucket=self.bucket,
            token=self.token,
            hub_endpoint=self.hub_endpoint,
        )


def served_on(
    model: HuggingFaceModel, instance_types: Sequence[str], volume_gib: int | None, where: str
) -> HuggingFaceModel:
    """The same model, held against the types that it runs on."""
    made = replace(model)
    serving = hub_serving(model.hub_model, instance_types, volume_gib=volume_gib, where=where)
    object.__setattr__(made, "serving", serving)
    return made


def serving_image(container: ServingContainer) -> ContainerImage:
    """The image of a serving container."""
    if container.registry == "dlc":
        return ContainerImage.from_dlc(container.repository, container.tag)
    return _ImageOfSageMaker(container.repository, container.tag, container)


@dataclass(frozen=True)
class _ImageOfSageMaker(ContainerImage):
    """An image in SageMaker's own registries, whose accounts differ from Region to Region."""

    repository: str
    tag: str
    container: ServingContainer = field(hash=False)

    @property
    def reference(self) -> str:
        return f"{self.repository}:{self.tag}"

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        region = region_of(scope)
        account = self.container.account("" if is_token(region) else region, path_of(scope))
        return ContainerImage.from_dlc(self.repository, self.tag, account=account).bind(scope)
