"""Containers of a model: image, model data, environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Protocol

from ..errors.findings import Finding, breaches, finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.rules import (
    ARCHIVE_NAME,
    ASSET_IS_ARCHIVE,
    CACHE_OF_MULTI_MODEL,
    DIRECT_NEEDS_HOSTNAMES,
    EULA_OF_PREFIX,
    HOSTNAME_TWICE,
    HOSTNAMES_ALL_OR_NONE,
    MODE_NEEDS_CONTAINERS,
    MULTI_MODEL_DATA,
    PACKAGE_IS_SINGLE_MODEL,
    PREFIX_ENDS_WITH_SLASH,
)
from ..facts.token_values import is_token
from .kind import MISSING_SETTING
from .option import EXACTLY_ONE, NEEDS_ANOTHER, Option, Options
from .rules import ECR_REPOSITORY, ENCRYPTION_KEY_ARN, FUNCTION_ARN, IMAGE_TAG, KMS_KEY_EXAMPLE

_DLC = {
    "repository": "huggingface-pytorch-inference",
    "tag": "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
}


@dataclass(frozen=True, kw_only=True)
class DeepLearningContainerSettings(Options):
    """An image that AWS maintains: an AWS Deep Learning Container."""

    repository: Annotated[str, Option(ECR_REPOSITORY, _DLC["repository"])]
    """Repository of the image."""
    tag: Annotated[str, Option(IMAGE_TAG, _DLC["tag"])]
    """Tag of the image. An image with -gpu- or cu in its tag runs only on GPU types."""
    account: Annotated[str | None, Option(limits.ACCOUNT, "763104351884")] = None
    """Account that owns the image in the stack's Region. Default: known for most regions."""


@dataclass(frozen=True, kw_only=True)
class EcrImageSettings(Options):
    """An image in an ECR repository of the stack's account and region."""

    repository: Annotated[str, Option(ECR_REPOSITORY, "team/my-model")]
    """Repository."""
    tag: Annotated[str, Option(IMAGE_TAG, "1.4.2")] = "latest"
    """Tag of the image. Default: latest."""


@dataclass(frozen=True, kw_only=True)
class ImageSettings(Options):
    """Where the container's image comes from: exactly one of dlc, uri, ecr and asset."""

    plain_value: ClassVar[str] = "uri"
    exactly_one_of: ClassVar[tuple[str, ...]] = ("dlc", "uri", "ecr", "asset")

    dlc: Annotated[DeepLearningContainerSettings | None, Option(example=_DLC)] = None
    """An AWS Deep Learning Container."""
    uri: Annotated[
        str | None,
        Option(limits.IMAGE_URI, "123456789012.dkr.ecr.us-east-1.amazonaws.com/my-model:1.4.2"),
    ] = None
    """An image by its full URI."""
    ecr: Annotated[
        EcrImageSettings | None, Option(example={"repository": "team/my-model", "tag": "1.4.2"})
    ] = None
    """An image in the account's own registry."""
    private_registry: Annotated[bool, Option()] = False
    """With uri: pull the image from a private registry in reach of the VPC, not from ECR. Default:
    false."""
    credentials_function_arn: Annotated[
        str | None,
        Option(FUNCTION_ARN, "arn:aws:lambda:us-east-1:123456789012:function:registry-login"),
    ] = None
    """With private_registry: Lambda function that returns user and password. Default: no login."""
    asset: Annotated[Path | None, Option(example="container/")] = None
    """A folder with a Dockerfile, relative to this file; built at deployment, which needs Docker.
    """
    file: Annotated[
        str | None, Option(example="Serve.Dockerfile", below=("asset", "Dockerfile"))
    ] = None
    """With asset: name of the Dockerfile in that folder. Default: Dockerfile."""
    build_args: Annotated[
        Mapping[str, str], Option(example={"MODEL": "distilbert"}, as_text=True)
    ] = field(default_factory=dict)
    """With asset: build arguments. Do not pass secrets: they stay in the image."""
    platform: Annotated[str | None, Option(limits.IMAGE_PLATFORM, "linux/arm64")] = None
    """With asset: platform to build for. Default: the instance type's architecture."""

    @property
    def reference(self) -> str:
        """The image as ``ContainerImage.reference`` has it; empty for one that is yet to be built."""
        if self.dlc:
            return f"{self.dlc.repository}:{self.dlc.tag}"
        if self.ecr:
            # Not AWS's own registry, so its name alone proves nothing about what it needs.
            return f"private/{self.ecr.repository}:{self.ecr.tag}"
        return f"private/{self.uri}" if self.private_registry else self.uri or ""

    def _rules(self) -> Iterator[Finding]:
        """How to build belongs to what is built, and a login to a registry."""
        for name in ("file", "build_args", "platform"):
            yield from self._needs(name, "asset", "only an asset is built")
        if self.private_registry:
            yield from self._needs("private_registry", "uri", "its images are named by their URI")
        elif self._states("credentials_function_arn"):
            yield finding(
                NEEDS_ANOTHER,
                "credentials_function_arn",
                got="credentials_function_arn without private_registry: true",
                allowed="both",
                what="ECR asks for no function's credentials",
                fix="Add private_registry: true, or remove credentials_function_arn.",
            )


@dataclass(frozen=True, kw_only=True)
class ModelDataSettings(Options):
    """Where the model's files come from: exactly one of s3, s3_prefix and asset."""

    plain_value: ClassVar[str] = "s3"
    exactly_one_of: ClassVar[tuple[str, ...]] = ("s3", "s3_prefix", "asset")

    s3: Annotated[str | None, Option(limits.MODEL_DATA_URI, "s3://my-bucket/model.tar.gz")] = None
    """One .tar.gz in S3, or with multi_model the prefix of the archives."""
    s3_prefix: Annotated[str | None, Option(limits.MODEL_DATA_URI, "s3://my-bucket/model/")] = None
    """Uncompressed files under a prefix that ends with /; fastest for large models."""
    asset: Annotated[Path | None, Option(example="model.tar.gz")] = None
    """A .tar.gz relative to this file, uploaded at deployment."""
    accept_eula: Annotated[bool, Option(example=True)] = False
    """With s3 or s3_prefix: accept the end-user license agreement of a gated JumpStart model.
    Default: false."""
    kms_key_arn: Annotated[str | None, Option(ENCRYPTION_KEY_ARN, KMS_KEY_EXAMPLE)] = None
    """Your KMS key that encrypts the files (for an asset: the bootstrap bucket's). The model's role
    may decrypt with it. Default: none; S3 or the AWS managed key encrypts them."""

    @property
    def uri(self) -> str:
        """Where the files lie."""
        return str(self.s3 or self.s3_prefix or self.asset)

    @property
    def stated_key(self) -> str:
        """The key that says where they lie."""
        return next((name for name in self.exactly_one_of if self._states(name)), "")

    @property
    def is_prefix(self) -> bool:
        """Whether archives lie below a prefix."""
        return self.s3 is not None and self.s3.endswith("/")

    def _rules_of_agreement(self) -> Iterator[Finding]:
        """What is uploaded asks for no agreement."""
        if self.accept_eula and self._states("asset"):
            yield finding(EULA_OF_PREFIX, "accept_eula", got="with asset", allowed="s3, s3_prefix")

    def _rules(self) -> Iterator[Finding]:
        """An uncompressed model is a prefix, a file a .tar.gz."""
        prefix, asset = self.s3_prefix, self.asset
        if prefix is not None and not prefix.endswith("/"):
            yield finding(PREFIX_ENDS_WITH_SLASH, "s3_prefix", got=prefix, allowed=f"{prefix}/")
        if asset is not None and not str(asset).endswith(".tar.gz"):
            yield finding(
                ASSET_IS_ARCHIVE, "asset", got=str(asset), allowed="a file named *.tar.gz"
            )


class Data(Protocol):
    """What rules ask of a model's data."""

    @property
    def uri(self) -> str: ...
    @property
    def stated_key(self) -> str: ...
    @property
    def is_prefix(self) -> bool: ...
    @property
    def accept_eula(self) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class ServingOptions(Options):
    """What containers have alike."""

    environment: Annotated[
        Mapping[str, str],
        Option(
            example={"HF_TASK": "text-classification"},
            keys=limits.ENVIRONMENT_KEY,
            known=True,
            as_text=True,
        ),
    ] = field(default_factory=dict)
    """Environment variables, up to 100.

    No secrets: they are readable in the template and by ``sagemaker:DescribeModel``, as are values
    that CloudFormation looks up (``{{resolve:...}}``). What looks like one leads to a warning.
    """

    def _rules_of_environment(self) -> Iterator[Finding]:
        """The environment keeps its limits."""
        count = len(self.environment)
        yield from breaches(("environment",), limits.ENVIRONMENT_ENTRIES.check, count)
        for key, value in self.environment.items():
            if not is_token(value):
                place, size = ("environment", key), len(value.encode("utf-8", "replace"))
                yield from breaches(place, limits.ENVIRONMENT_VALUE_BYTES.check, size)


@dataclass(frozen=True, kw_only=True)
class ContainerOptions(ServingOptions):
    """One container of the model."""

    hostname: Annotated[str | None, Option(limits.CONTAINER_HOSTNAME, "tokenizer")] = None
    """Name of the container, if there are several. With Direct, callers choose a container by it.
    """
    multi_model: Annotated[bool, Option()] = False
    """Serve many models from one container; each request names its model. Default: false.

    They are loaded on demand from the S3 prefix in ``data``.
    """
    model_cache: Annotated[bool | None, Option(example=False)] = None
    """With multi_model: keep models in memory. false suits many models with few calls each.
    Default: SageMaker's, which keeps them."""
    model_package: Annotated[
        str | None,
        Option(
            limits.MODEL_PACKAGE, "arn:aws:sagemaker:us-east-1:123456789012:model-package/fraud/7"
        ),
    ] = None
    """Version in the SageMaker model registry to create the model from. image and data then
    describe its contents, for permissions and checks. Default: none, image and data make the model.

    Where image and data are left out, a warning says what the role still needs. Which rights
    SageMaker asks of the role for a package was not seen on AWS.
    """

    @property
    def model_data(self) -> Data | None:
        """What is served."""
        raise NotImplementedError

    def _rules_of_multi_model_data(self) -> Iterator[Finding]:
        """Many models come as archives under a prefix, and an agreement goes with one."""
        data = self.model_data
        if data is not None and data.accept_eula:
            for name in ("multi_model", "model_package"):
                if getattr(self, name):
                    got = f"accept_eula with {name}"
                    yield finding(EULA_OF_PREFIX, "data", "accept_eula", got=got, allowed="neither")
        if self.multi_model and not self.model_package and (data is None or not data.is_prefix):
            yield self._no_prefix_of_archives(data)

    def _no_prefix_of_archives(self, data: Data | None) -> Finding:
        """That many models lie under no prefix: there is no data, its key, or its value is wrong."""
        if data is None:
            return finding(MULTI_MODEL_DATA, "multi_model", got="no data", allowed="data")
        key = data.stated_key
        if key not in ("", "s3"):
            return finding(
                MULTI_MODEL_DATA,
                "data",
                key,
                got=f"{key} with multi_model",
                allowed="s3, with the prefix of the archives",
                fix="Write s3: s3://my-bucket/models/ instead, and put a .tar.gz for each model there: "
                "a multi-model container unpacks archives.",
            )
        return finding(
            MULTI_MODEL_DATA,
            "multi_model",
            got=data.uri,
            allowed="an S3 prefix ending in /",
            fix="Name the prefix under which the archives lie, with / at its end.",
        )

    def _rules_of_mode(self) -> Iterator[Finding]:
        """A package is one model, and many models have a cache."""
        if self.multi_model and self._states("model_package"):
            yield finding(
                PACKAGE_IS_SINGLE_MODEL, "model_package", got="both", allowed="one of them"
            )
        if not self.multi_model and self._states("model_cache"):
            yield finding(
                CACHE_OF_MULTI_MODEL,
                "model_cache",
                got=f"model_cache {self.model_cache} without multi_model",
                allowed="multi_model",
            )


@dataclass(frozen=True, kw_only=True)
class ContainerSettings(ContainerOptions):
    """One container of the model."""

    image: Annotated[ImageSettings, Option(example={"dlc": _DLC})]
    """The container's image."""
    data: Annotated[
        ModelDataSettings | None, Option(example={"s3": "s3://my-bucket/model.tar.gz"})
    ] = None
    """The model's files, unpacked to /opt/ml/model. Default: none, the image holds the model."""

    @property
    def model_data(self) -> ModelDataSettings | None:
        """What is served."""
        return self.data

    def _rules_of_archive(self) -> Iterator[Finding]:
        """One model is one archive."""
        if self.data is not None and self.data.is_prefix and not self.multi_model:
            yield finding(
                ARCHIVE_NAME,
                "data",
                "s3",
                got=self.data.uri,
                allowed="an object such as s3://my-bucket/model.tar.gz",
                fix="Name the object, write s3_prefix for uncompressed files, or set "
                "multi_model: true.",
            )


def rules_of_containers(
    containers: Sequence[ContainerOptions], inference_mode: str | None
) -> Iterator[Finding]:
    """The containers of one model fit together, and their environments keep the limit of all."""
    yield from breaches(("containers",), limits.CONTAINER_COUNT.check, len(containers))
    if len(containers) == 1 and inference_mode is not None:
        yield finding(
            MODE_NEEDS_CONTAINERS,
            "inference_mode",
            got=f"{inference_mode} with one container",
            allowed="no inference mode",
        )
    if len(containers) > 1:
        yield from _hostnames([container.hostname for container in containers], inference_mode)
    total = sum(
        len(text.encode("utf-8", "replace"))
        for container in containers
        for pair in container.environment.items()
        for text in pair
        if not is_token(text)
    )
    yield from breaches(("containers",), limits.ENVIRONMENT_TOTAL_BYTES.check, total)


def _hostnames(names: list[str | None], mode: str | None) -> Iterator[Finding]:
    nameless = [index for index, name in enumerate(names) if name is None]
    for index in nameless if mode == "Direct" else ():
        yield finding(
            DIRECT_NEEDS_HOSTNAMES,
            "containers",
            index,
            got="no hostname",
            allowed="a hostname for each container",
        )
    if mode != "Direct" and 0 < len(nameless) < len(names):
        yield finding(
            HOSTNAMES_ALL_OR_NONE,
            "containers",
            nameless[0],
            got=f"{len(names) - len(nameless)} hostnames for {len(names)} containers",
            allowed="a hostname for each container, or for none",
        )
    for index, name in enumerate(names):
        if name is not None and name in names[:index]:
            yield finding(
                HOSTNAME_TWICE,
                *("containers", index, "hostname"),
                got=name,
                allowed="each hostname once",
            )


def rules_of_model(stated: Any, *, needed: bool) -> Iterator[Finding]:
    """Containers, or a model of the Hub: not both, and one of them where it is needed."""
    containers = stated._states("containers")
    if containers and stated.hugging_face is not None:
        yield finding(
            EXACTLY_ONE,
            "hugging_face",
            got="containers and hugging_face",
            allowed="containers or hugging_face",
        )
    elif needed and not containers and stated.hugging_face is None:
        yield finding(
            MISSING_SETTING,
            got="neither containers nor hugging_face",
            allowed="one of them",
            what="what is served is missing",
            fix="Add containers, such as containers: [{image: {ecr: {repository: my-model}}}], or "
            "hugging_face: {model: Qwen/Qwen3-8B}.",
        )
    if len(stated.containers) > 1 and stated.inference_mode is None:
        yield finding(
            NEEDS_ANOTHER,
            "containers",
            got=f"{len(stated.containers)} containers",
            allowed="inference_mode: Serial or Direct",
            what="several containers need an inference mode",
            fix="Add inference_mode: Serial (a pipeline) or Direct (callers choose one by hostname).",
        )
    if containers:
        yield from rules_of_containers(stated.containers, stated.inference_mode)
