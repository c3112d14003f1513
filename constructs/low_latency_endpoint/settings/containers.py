"""Settings of containers: image, model data, environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ..errors.findings import Finding, finding
from ..options.rules import (
    ECR_REPOSITORY,
    ENCRYPTION_KEY_ARN,
    FUNCTION_ARN,
    IMAGE_TAG,
    NEEDS_ANOTHER,
)
from ..plan import limits
from ..plan.rules import (
    ARCHIVE_NAME,
    ASSET_IS_ARCHIVE,
    CACHE_OF_MULTI_MODEL,
    EULA_OF_PREFIX,
    MULTI_MODEL_DATA,
    PACKAGE_IS_SINGLE_MODEL,
    PREFIX_ENDS_WITH_SLASH,
)
from .container_checks import environment_checks
from .fields import Asset, Limited, TextOrNumber
from .model_base import SettingsModel, mapping_of, needs, optional

Tag = Annotated[str, Limited(IMAGE_TAG)]
Repository = Annotated[str, Limited(ECR_REPOSITORY)]


class DeepLearningContainerSettings(SettingsModel):
    """An image that AWS maintains: an AWS Deep Learning Container."""

    repository: Repository = Field(
        examples=["huggingface-pytorch-inference"], description="Repository of the image."
    )
    tag: Tag = Field(
        examples=["2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04"],
        description="Tag of the image; with -gpu- or cu in it, it runs on GPU types only.",
    )
    account: Annotated[str, Limited(limits.ACCOUNT)] | None = optional(
        "Account that owns the image in the stack's region. Default: known for most regions.",
        example="763104351884",
    )


class EcrImageSettings(SettingsModel):
    """An image in an ECR repository of the stack's account and region."""

    repository: Repository = Field(examples=["team/my-model"], description="Repository.")
    tag: Tag = optional("Tag of the image. Default: latest.", example="1.4.2", default="latest")


class ImageSettings(SettingsModel):
    """Where the container's image comes from: exactly one of dlc, uri, ecr and asset."""

    plain_value = "uri"

    exactly_one_of: ClassVar[tuple[str, ...]] = ("dlc", "uri", "ecr", "asset")

    dlc: DeepLearningContainerSettings | None = optional(
        "An AWS Deep Learning Container.",
        example={
            "repository": "huggingface-pytorch-inference",
            "tag": "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
        },
    )
    uri: Annotated[str, Limited(limits.IMAGE_URI)] | None = optional(
        "An image by its whole URI.",
        example="123456789012.dkr.ecr.us-east-1.amazonaws.com/my-model:1.4.2",
    )
    ecr: EcrImageSettings | None = optional(
        "An image in the account's own registry.",
        example={"repository": "team/my-model", "tag": "1.4.2"},
    )
    private_registry: bool = optional(
        "With uri: pull the image from a registry that the VPC reaches, not from ECR. Default: "
        "false.",
        default=False,
    )
    credentials_function_arn: Annotated[str, Limited(FUNCTION_ARN)] | None = optional(
        "With private_registry: the Lambda function that returns its user and password. "
        "Default: it asks for none.",
        example="arn:aws:lambda:us-east-1:123456789012:function:registry-login",
    )
    asset: Asset | None = optional(
        "A folder with a Dockerfile, relative to this file; built at deployment, "
        "which needs Docker.",
        example="container/",
    )
    file: str | None = optional(
        "With asset: the Dockerfile in that folder. Default: Dockerfile.",
        example="Serve.Dockerfile",
    )
    build_args: dict[str, TextOrNumber] = Field(
        default_factory=dict,
        examples=[{"MODEL": "distilbert"}],
        description="With asset: arguments of the build. No secrets: they stay in the image.",
    )
    platform: Annotated[str, Limited(limits.IMAGE_PLATFORM)] | None = optional(
        "With asset: what it is built for. Default: the instance type's architecture.",
        example="linux/arm64",
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """How to build belongs to what is built."""
        for name in ("file", "build_args", "platform"):
            yield from needs(given, name, "asset", "only an asset is built")
        if given.get("private_registry") is True:
            yield from needs(given, "private_registry", "uri", "its images are named by their URI")
        if "credentials_function_arn" in given and given.get("private_registry") is not True:
            yield finding(
                NEEDS_ANOTHER,
                "credentials_function_arn",
                got="credentials_function_arn without private_registry: true",
                allowed="both",
                what="ECR asks for no function's credentials",
                fix="Add private_registry: true, or remove credentials_function_arn.",
            )


class ModelDataSettings(SettingsModel):
    """Where the model's files come from: exactly one of the three."""

    plain_value = "s3"

    exactly_one_of: ClassVar[tuple[str, ...]] = ("s3", "s3_prefix", "asset")

    s3: Annotated[str, Limited(limits.MODEL_DATA_URI)] | None = optional(
        "One .tar.gz in S3, or with multi_model the prefix under which they lie.",
        example="s3://my-bucket/model.tar.gz",
    )
    s3_prefix: Annotated[str, Limited(limits.MODEL_DATA_URI)] | None = optional(
        "Uncompressed files under a prefix that ends with /; fastest for large models.",
        example="s3://my-bucket/model/",
    )
    asset: Asset | None = optional(
        "A .tar.gz relative to this file, uploaded at deployment.", example="model.tar.gz"
    )

    accept_eula: bool = optional(
        "With s3 or s3_prefix: accept the end-user license agreement that gated models of "
        "JumpStart ask for. Default: false.",
        example=True,
        default=False,
    )
    kms_key_arn: Annotated[str, Limited(ENCRYPTION_KEY_ARN)] | None = optional(
        "KMS key of yours that encrypts the files, which the model's role may then decrypt with; "
        "of an asset the bootstrap bucket's. Default: none; S3, or the account's AWS managed key, encrypts "
        "them.",
        example="arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab",
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """An uncompressed model is a prefix, a file a .tar.gz."""
        if given.get("accept_eula") is True and "asset" in given:
            yield finding(EULA_OF_PREFIX, "accept_eula", got="with asset", allowed="s3, s3_prefix")
        prefix = given.get("s3_prefix")
        if isinstance(prefix, str) and limits.MODEL_DATA_URI.holds(prefix) and prefix[-1] != "/":
            yield finding(PREFIX_ENDS_WITH_SLASH, "s3_prefix", got=prefix, allowed=f"{prefix}/")
        asset = given.get("asset")
        if isinstance(asset, str) and not asset.endswith(".tar.gz"):
            yield finding(ASSET_IS_ARCHIVE, "asset", got=asset, allowed="a file named *.tar.gz")


class ContainerSettings(SettingsModel):
    """One container of the model."""

    image: ImageSettings = Field(
        examples=[
            {
                "dlc": {
                    "repository": "huggingface-pytorch-inference",
                    "tag": "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04",
                }
            }
        ],
        description="The container's image.",
    )
    data: ModelDataSettings | None = optional(
        "The model's files, unpacked to /opt/ml/model. Default: none, the image holds the model.",
        example={"s3": "s3://my-bucket/model.tar.gz"},
    )
    environment: dict[Annotated[str, Limited(limits.ENVIRONMENT_KEY)], TextOrNumber] = Field(
        default_factory=dict,
        examples=[{"HF_TASK": "text-classification"}],
        description="Environment variables, up to 100.",
    )
    hostname: Annotated[str, Limited(limits.CONTAINER_HOSTNAME)] | None = optional(
        "Name of the container among several; callers name it with Direct.", example="tokenizer"
    )
    multi_model: bool = optional(
        "Serve many models from one container, each request naming its own. Default: false.",
        default=False,
    )
    model_cache: bool | None = optional(
        "With multi_model: keep models in memory; false suits many models with few calls each. "
        "Default: SageMaker's, which keeps them.",
        example=False,
    )
    model_package: Annotated[str, Limited(limits.MODEL_PACKAGE)] | None = optional(
        "A version in SageMaker's model registry that the model is made of; image and data then "
        "say what it holds, for rights and checks. Default: none, the model is made of image and "
        "data.",
        example="arn:aws:sagemaker:us-east-1:123456789012:model-package/fraud/7",
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """The environment keeps its limits; many models come as archives under a prefix."""
        yield from environment_checks(mapping_of(given, "environment"))
        multi_model = given.get("multi_model") is True
        yield from _data_of_mode(mapping_of(given, "data"), multi_model)
        if mapping_of(given, "data").get("accept_eula") is True:
            for name, stated in (
                ("multi_model", multi_model),
                ("model_package", "model_package" in given),
            ):
                if stated:
                    yield finding(
                        EULA_OF_PREFIX, "data", "accept_eula", got=f"with {name}", allowed="neither"
                    )
        if multi_model and "model_package" in given:
            yield finding(
                PACKAGE_IS_SINGLE_MODEL,
                "model_package",
                got="model_package with multi_model: true",
                allowed="one of them",
            )
        if "model_cache" in given and not multi_model:
            yield finding(
                CACHE_OF_MULTI_MODEL,
                "model_cache",
                got="model_cache without multi_model: true",
                allowed="multi_model: true",
            )


def _data_of_mode(data: Mapping[str, Any], multi_model: bool) -> Iterator[Finding]:
    archives = data.get("s3")
    if multi_model:
        if not isinstance(archives, str) or not archives.endswith("/"):
            yield finding(
                MULTI_MODEL_DATA,
                "multi_model",
                got=", ".join(f"{key}: {value}" for key, value in data.items()) or "no data",
                allowed="data: {s3: s3://bucket/models/}",
                fix="Name the prefix under which the archives lie, with / at its end.",
            )
    elif isinstance(archives, str) and archives.endswith("/"):
        yield finding(
            ARCHIVE_NAME,
            "data",
            "s3",
            got=archives,
            allowed="an object such as s3://my-bucket/model.tar.gz",
            fix="Name the object, write s3_prefix for uncompressed files, or set "
            "multi_model: true.",
        )
