"""A container of a model: what serves, what is served (also a model of the Hugging Face Hub), its
environment, and how CloudFormation takes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..errors.findings import Finding, finding, located
from ..errors.frozen import dataclass
from ..facts.rules import IMAGE_OR_PACKAGE
from ..hugging_face import HUB
from ..hugging_face.hub_options import HubModelOptions
from ..hugging_face.lock_file import LOCK_NAME
from ..options.argument_kinds import checked_arguments
from ..options.container import ContainerOptions, rules_of_containers
from ..plan.hub_serving import HubServing, hub_serving
from ..plan.pinned_model import HUB_MODEL_ALONE, INSTANCE_TYPE_NEEDED
from ..plan.secrets import secret_warning
from ..plan.serving_containers import OFFLINE, ServingContainer
from ..synthesis.annotations import warn
from ..synthesis.construct_tree import path_of, region_of
from ..synthesis.homes import check_home
from ..synthesis.template_values import is_token
from .images import ContainerImage
from .instance_type import InstanceType
from .model_data import ModelData, container_property

if TYPE_CHECKING:
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_secretsmanager as secretsmanager


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class HuggingFaceModel(HubModelOptions):
    """A model of the Hub that ``low-latency pin`` has pinned, and how it is to be served.

    :meth:`Container.from_hugging_face` makes one of its arguments.

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
    """For the model's files; several stacks may share it. By default one that the stack makes."""
    token: secretsmanager.ISecret | None = None
    """With the Hub's token, for gated and private models. By default none."""
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


def _served_on(
    model: HuggingFaceModel, instance_types: Sequence[str], volume_gib: int | None, where: str
) -> HuggingFaceModel:
    """The same model, held against the types that it runs on."""
    served = replace(model)
    serving = hub_serving(model.hub_model, instance_types, volume_gib=volume_gib, where=where)
    object.__setattr__(served, "serving", serving)
    return served


def _serving_image(container: ServingContainer) -> ContainerImage:
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


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class Container(ContainerOptions):
    """One container of a model; for the usual ones see :meth:`from_dlc` and :meth:`from_uri`.

    Raises:
        ConfigurationError: LLE303, LLE305 to LLE307 for hostname and environment,
            LLE326 for a multi-model container without an S3 prefix, LLE318 for data
            whose agreement cannot be accepted here, LLE368 for what a model of the Hub
            excludes, LLE370 to LLE372, LLE374 for the model package.

    Examples:
        >>> from low_latency_endpoint import Container
        >>> Container(model_package="arn:aws:sagemaker:us-east-1:123456789012:model-package/fraud/7",
        ...           data="s3://models/fraud/7/model.tar.gz").image is None
        True
    """

    plain_value: ClassVar[str] = "image"

    image: ContainerImage | None = None
    """What serves; needed unless ``model_package`` is given."""
    data: ModelData | str | None = None
    """What is served; a text is an S3 URI, as for :meth:`ModelData.from_uri`. By default the image
    brings it, or the environment says where it is. An isolated network has no way to a public model
    hub."""
    hugging_face: HuggingFaceModel | None = None
    """Instead of ``data``: a pinned model of the Hub, staged into S3 at deployment. Image and
    environment follow from it and the instance type, unless ``image`` is given; what
    ``environment`` states wins. See :meth:`from_hugging_face`."""

    def _rules_of_image(self) -> Iterator[Finding]:
        """There is an image, or what brings one; a model of the Hub comes with its files."""
        hub = self.hugging_face
        if hub is None and self.image is None and self.model_package is None:
            yield finding(
                IMAGE_OR_PACKAGE, "image", got="neither", allowed="image or model_package"
            )
        for name, given in (
            ("model_package", self.model_package is not None),
            ("multi_model", self.multi_model),
            ("data", self.data is not None and hub is not None and self.data != hub.data),
        ):
            if hub is not None and given:
                yield finding(
                    HUB_MODEL_ALONE,
                    name,
                    what="a model of the Hub comes with its files, and is one model",
                    got=f"{name} beside hugging_face",
                    allowed="one of them",
                    fix=f"Leave out {name} beside hugging_face.",
                )

    @classmethod
    def from_dlc(
        cls,
        repository: str,
        tag: str,
        *,
        data: ModelData | str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Container:
        """A container with one of AWS's Deep Learning Containers.

        Args:
            repository: Repository of the image.
            tag: Tag of the image. An image with -gpu- or cu in its tag runs only on GPU types.
            data: What is served; a text is an S3 URI, as for :meth:`ModelData.from_uri`. By default the image brings it, or the environment says where it is. An isolated network has no way to a public model hub.
            environment: Environment variables, up to 100.

        Examples:
            >>> from low_latency_endpoint import Container
            >>> Container.from_dlc(
            ...     "huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
            ...     data="s3://models/distilbert/model.tar.gz",
            ...     environment={"HF_TASK": "text-classification"}).model_data.uri
            's3://models/distilbert/model.tar.gz'
        """
        image = ContainerImage.from_dlc(repository, tag)
        return cls(image=image, data=data, environment=environment or {})

    @classmethod
    def from_uri(
        cls,
        image_uri: str,
        *,
        data: ModelData | str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Container:
        """A container with an image by its URI, as for :meth:`ContainerImage.from_uri`.

        Args:
            image_uri: The image's full URI, in the model's Region.
            data: What is served; a text is an S3 URI, as for :meth:`ModelData.from_uri`. By default the image brings it, or the environment says where it is. An isolated network has no way to a public model hub.
            environment: Environment variables, up to 100.
        """
        image = ContainerImage.from_uri(image_uri)
        return cls(image=image, data=data, environment=environment or {})

    @classmethod
    def from_hugging_face(
        cls,
        model: str,
        *,
        lock: str = LOCK_NAME,
        accept_license: str | None = None,
        instance_type: InstanceType | str | None = None,
        environment: Mapping[str, str] | None = None,
        server: Literal["vllm", "sglang", "tei", "huggingface", "llama-cpp"] | None = None,
        context_length: int | None = None,
        trust_remote_code: bool | None = None,
        bucket: s3.IBucket | None = None,
        token: secretsmanager.ISecret | None = None,
        hub_endpoint: str = HUB,
    ) -> Container:
        """A model of the Hugging Face Hub: pinned, staged into S3, and served without network.

        ``low-latency pin MODEL`` writes the lock file, and synthesis reads that alone. The
        deployment copies the files into S3 and checks every hash; the container gets them from
        there, so that no start of an instance depends on the Hub.

        Args:
            model: Its name on the Hub.
            lock: The lock file that low-latency pin wrote, relative to the app's working folder. Default: models.lock.yaml.
            accept_license: Name of the model's licence, to confirm that you have read it. Default: only permissive licences such as apache-2.0 and mit are accepted.
            server: Model server. Default: by task and accelerator, such as vllm for text generation on GPUs.
            context_length: Maximum tokens of a request with its answer. Default: the model's own, or as many as fit for one request.
            trust_remote_code: Run Python code that comes with the model; required if it has any.
            bucket: For the model's files; several stacks may share it. By default one that the stack makes.
            token: With the Hub's token, for gated and private models. By default none.
            hub_endpoint: URL of the Hub or of a mirror, which gets the token. Default: https://huggingface.co.
            instance_type: What it runs on, which decides image and environment. :class:`LowLatencyEndpoint` knows it; say it where a :class:`Model` is made.
            environment: Environment variables beside those that the model needs; they win over them.

        Raises:
            ConfigurationError: LLE343 to LLE346 for lock file and licence; with an instance
                type LLE353 to LLE356 and LLE390 to LLE392 for a model that it does not
                serve or hold.

        Examples:
            >>> from low_latency_endpoint import Container
            >>> Container.from_hugging_face("Qwen/Qwen3-8B")  # doctest: +SKIP
        """
        container = cls(
            hugging_face=HuggingFaceModel(
                model=model,
                lock=lock,
                accept_license=accept_license,
                server=server,
                context_length=context_length,
                trust_remote_code=trust_remote_code,
                bucket=bucket,
                token=token,
                hub_endpoint=hub_endpoint,
            ),
            environment=environment or {},
        )
        return container if instance_type is None else container_on(container, [str(instance_type)])

    @property
    def model_data(self) -> ModelData | None:
        """What is served, in one form."""
        return ModelData.from_uri(self.data) if isinstance(self.data, str) else self.data


def container_on(
    container: Container,
    instance_types: Sequence[str],
    volume_gib: int | None = None,
    where: str = "",
) -> Container:
    """The container with what follows from the types that it runs on; others are as they were."""
    hub = container.hugging_face
    if hub is None or container.data is not None:
        return container
    if container.image is not None:  # which knows best what it needs
        return replace(container, data=hub.data, environment={**OFFLINE, **container.environment})
    if not instance_types:
        raise INSTANCE_TYPE_NEEDED.error(
            got=f"{hub.model} without an instance type", allowed="instance_type", where=where
        )
    served = _served_on(hub, instance_types, volume_gib, where)
    serving = cast(HubServing, served.serving).container
    return replace(
        container,
        hugging_face=served,
        image=_serving_image(serving),
        data=served.data,
        environment={**serving.environment, **container.environment},
    )


def check_containers(
    containers: Sequence[Container], inference_mode: str | None, where: str
) -> None:
    """The same as of a settings file's."""
    for _, error in rules_of_containers(containers, inference_mode):
        raise located(error, where)


def container_definition(
    scope: Construct, container: Container
) -> tuple[sagemaker.CfnModel.ContainerDefinitionProperty, list[dict[str, Any]]]:
    """The container as CloudFormation takes it, and what the model's role must be allowed."""
    package, image, data = container.model_package, container.image, container.model_data
    properties: dict[str, Any] = {}
    statements: list[dict[str, Any]] = []
    if image is not None:
        uri, statements = image.bind(scope)
        check_home(scope, uri)
        if package is None:
            properties = {"image": uri, **image.registry_access}
    if data is not None:
        uri, needed = data.bind(scope)
        statements = [*statements, *needed]
        if package is None:
            properties |= container_property(data, uri, multi_model=container.multi_model)
    if package is not None:
        check_home(scope, package)
        properties["model_package_name"] = package
        if image is None or data is None:
            warn(
                scope,
                "modelPackageRights",
                "The contents of the model package are not known at synth. Allow the model's "
                "role to pull its image (ecr:BatchCheckLayerAvailability, ecr:BatchGetImage, "
                "ecr:GetDownloadUrlForLayer) and to read its data (s3:GetObject), or pass "
                "image= and data= with model_package.",
            )
    if container.environment:
        properties["environment"] = dict(container.environment)
    if container.hostname:
        properties["container_hostname"] = container.hostname
    if container.multi_model:
        properties["mode"] = "MultiModel"
    if container.model_cache is not None:
        properties["multi_model_config"] = sagemaker.CfnModel.MultiModelConfigProperty(
            model_cache_setting="Enabled" if container.model_cache else "Disabled"
        )
    return sagemaker.CfnModel.ContainerDefinitionProperty(**properties), statements


def warn_of_secrets(model: Construct, environment: Mapping[str, str]) -> None:
    """Say which values of an environment look like secrets, and not what they are."""
    for name, value in environment.items():
        text = None if is_token(value) else secret_warning(name, value)
        if text is not None:
            warn(model, f"secretInEnvironment:{name}", text)
