"""Container images: by URI, ECR repository, Dockerfile, or AWS Deep Learning Container."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from aws_cdk import Aws, CfnMapping, Fn
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..errors.frozen import dataclass
from ..facts.images import (
    ARCHITECTURE_OF_PLATFORM,
    check_image_folder,
    dlc_accounts,
    known_dlc_account,
)
from ..facts.limits import ACCOUNT, IMAGE_URI
from ..options.argument_kinds import checked_arguments
from ..synthesis.annotations import warn
from ..synthesis.construct_tree import path_of, stack_of
from ..synthesis.rights import allow, literal, pulling
from ..synthesis.template_values import check, is_token, masked, pseudo_parameters

if TYPE_CHECKING:
    from aws_cdk import aws_ecr as ecr
    from aws_cdk import aws_ecr_assets as ecr_assets
    from aws_cdk import aws_lambda as lambda_

_PLATFORMS = {each: platform for platform, each in ARCHITECTURE_OF_PLATFORM.items()}
_MAPPING = "DeepLearningContainerAccounts"


@checked_arguments
class ContainerImage(ABC):
    """An image to serve a model with.

    Examples
    --------
    >>> from low_latency_endpoint import ContainerImage
    >>> image = ContainerImage.from_dlc(
    ...     "huggingface-pytorch-inference",
    ...     "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04")
    >>> image.reference
    'huggingface-pytorch-inference:2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04'
    """

    @property
    @abstractmethod
    def reference(self) -> str:
        """What is known of the image at synth, for checks against the instance type."""

    @property
    def architecture(self) -> str | None:
        """What it is built for: ``x86_64``, ``arm64``, or text that is empty where the machine
        that builds it decides. None where it is built already: then its name may say it."""
        return None

    def built_for(self, architecture: str | None) -> ContainerImage:
        """The image, built for instances of this architecture if that is not settled yet."""
        return self

    @abstractmethod
    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        """The image's URI, and what the model's role must be allowed to pull it."""

    @property
    def registry_access(self) -> dict[str, Any]:
        """Properties of the container that say how the registry is reached; none for ECR."""
        return {}

    @staticmethod
    def from_uri(uri: str) -> ContainerImage:
        """An image by its full URI, in the model's region.

        The role must be allowed to pull it; an ECR URI of the usual form is granted, in which
        account, region and repository may be tokens. A URI that is a token as a whole leads to a
        warning that says what to allow.

        Args:
            uri: The image's full URI.

        Raises:
            ConfigurationError: LLE302 for white space or more than 255 characters.
        """
        return _UriImage(check(IMAGE_URI, uri))

    @staticmethod
    def from_ecr_repository(repository: ecr.IRepository, tag: str = "latest") -> ContainerImage:
        """An image in an ECR repository, by tag or (``sha256:...``) digest.

        Args:
            repository: A repository of this app, or one imported.
            tag: Tag, or digest (``sha256:...``), of the image. By default latest.

        Raises:
            ConfigurationError: LLE302 for a tag that is empty or has white space.
        """
        return _RepositoryImage(repository, check(IMAGE_URI, tag))

    @staticmethod
    def from_private_registry(
        uri: str, *, credentials: lambda_.IFunction | None = None
    ) -> ContainerImage:
        """An image in a registry that the model's VPC reaches (``RepositoryAccessMode: Vpc``).

        The registry speaks Docker's HTTP API V2 with a certificate of a public authority, and lets
        in the model's security group, whose egress allows HTTPS (to S3 alone where the network has
        a prefix list: add the registry then). Source: SageMaker developer guide, "Use a Private
        Docker Registry for Real-Time Inference Containers". Not seen on AWS yet.

        Args:
            uri: ``registry.example.com/team/model:7``.
            credentials: Returns user and password; the model's role may invoke it. By default the registry asks for none.

        Raises:
            ConfigurationError: LLE302 for white space or more than 255 characters.
        """
        return _PrivateRegistryImage(check(IMAGE_URI, uri), credentials)

    @staticmethod
    def from_asset(
        directory: str,
        *,
        file: str | None = None,
        build_args: dict[str, str] | None = None,
        platform: ecr_assets.Platform | None = None,
    ) -> ContainerImage:
        """An image that the CDK CLI builds from a folder with a Dockerfile, for which it needs Docker.

        ``platform`` is by default that of the instances, as far as the model knows them
        (:class:`LowLatencyEndpoint` tells it; else pass ``architecture=`` to :class:`Model`), and
        otherwise that of the machine that builds.

        Args:
            directory: The folder with the Dockerfile.
            file: Name of the Dockerfile in that folder. Default: Dockerfile.
            build_args: Build arguments. Do not pass secrets: they stay in the image.
            platform: Platform to build for. Default: the instance type's architecture.

        Raises:
            ConfigurationError: When the image is used: LLE380 without a Dockerfile.
        """
        return _AssetImage(directory, file, build_args, platform)

    @staticmethod
    def from_dlc(repository: str, tag: str, *, account: str | None = None) -> ContainerImage:
        """An AWS Deep Learning Container, in any region AWS publishes them in.

        The registry's account follows the region: from CDK's table, and from the SageMaker SDK's
        for the regions that CDK's lacks. ``account`` overrides it.

        Args:
            repository: Repository of the image.
            tag: Tag of the image. An image with -gpu- or cu in its tag runs only on GPU types.
            account: Account that owns the image in the stack's Region. Default: known for most regions.

        Raises:
            ConfigurationError: LLE302 for a repository or a tag that is empty or has white space, LLE328 when the stack's region has no known account.
        """
        return _DeepLearningContainer(
            check(IMAGE_URI, repository), check(IMAGE_URI, tag), check(ACCOUNT, account)
        )


def _split_ecr_uri(uri: str) -> tuple[str, str, str] | None:
    """Account, region and repository of an ECR URI, any of them a token; None for another."""
    text, restored = masked(uri)
    registry, _, path = text.partition("/")
    parts = registry.split(".")
    if not path or parts[1:3] not in (["dkr", "ecr"], ["dkr", "ecr-fips"]) or len(parts) < 5:
        return None
    return restored(parts[0]), restored(parts[3]), restored(path.split("@")[0].split(":")[0])


@dataclass(frozen=True)
class _UriImage(ContainerImage):
    uri: str

    @property
    def reference(self) -> str:
        return self.uri

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        registry = _split_ecr_uri(self.uri)
        if registry is None:
            if is_token(self.uri.partition("/")[0]):
                warn(
                    scope,
                    "imageRights",
                    "The image's registry is known only at deployment. If it is in ECR, allow "
                    "the role that pulls the image ecr:BatchCheckLayerAvailability, "
                    "ecr:BatchGetImage and ecr:GetDownloadUrlForLayer on the repository, or use "
                    "ContainerImage.from_ecr_repository(repository, tag).",
                )
            return self.uri, []
        account, region, repository = registry
        name = literal(repository)
        arn = f"arn:{pseudo_parameters()[0]}:ecr:{region}:{account}:repository/{name}"
        return self.uri, pulling(arn)


@dataclass(frozen=True)
class _RepositoryImage(ContainerImage):
    repository: ecr.IRepository
    tag: str

    @property
    def reference(self) -> str:
        # Not AWS's own registry, so its name alone proves nothing about what it needs.
        return f"private/{self.repository.repository_name}:{self.tag}"

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        uri = self.repository.repository_uri_for_tag_or_digest(self.tag)
        return uri, pulling(self.repository.repository_arn)


@dataclass(frozen=True)
class _PrivateRegistryImage(ContainerImage):
    uri: str
    credentials: lambda_.IFunction | None

    @property
    def reference(self) -> str:
        # Not AWS's own registry, so its name alone proves nothing about what it needs.
        return f"private/{self.uri}"

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        if self.credentials is None:
            return self.uri, []
        return self.uri, [allow(["lambda:InvokeFunction"], self.credentials.function_arn)]

    @property
    def registry_access(self) -> dict[str, Any]:
        model = sagemaker.CfnModel
        return {
            "image_config": model.ImageConfigProperty(
                repository_access_mode="Vpc",
                repository_auth_config=model.RepositoryAuthConfigProperty(
                    repository_credentials_provider_arn=self.credentials.function_arn
                )
                if self.credentials
                else None,
            )
        }


@dataclass(frozen=True)
class _AssetImage(ContainerImage):
    directory: str
    file: str | None
    build_args: dict[str, str] | None
    platform: ecr_assets.Platform | None

    @property
    def reference(self) -> str:
        return ""

    @property
    def architecture(self) -> str | None:
        name = self.platform.platform if self.platform else ""
        return ARCHITECTURE_OF_PLATFORM.get(name, name)

    def built_for(self, architecture: str | None) -> ContainerImage:
        if self.platform is not None or architecture not in _PLATFORMS:
            return self
        from aws_cdk import aws_ecr_assets as ecr_assets  # loads ECR, which few apps need here

        return replace(self, platform=ecr_assets.Platform.custom(_PLATFORMS[architecture]))

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        from aws_cdk import aws_ecr_assets as ecr_assets  # loads ECR, which few apps need here

        check_image_folder(self.directory, self.file, path_of(scope))
        asset = ecr_assets.DockerImageAsset(
            scope,
            "Image",
            directory=self.directory,
            file=self.file,
            build_args=self.build_args,
            platform=self.platform,
        )
        return asset.image_uri, pulling(asset.repository.repository_arn)


@dataclass(frozen=True)
class _DeepLearningContainer(ContainerImage):
    repository: str
    tag: str
    account: str | None

    @property
    def reference(self) -> str:
        return f"{self.repository}:{self.tag}"

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        account = self.account or _dlc_account(scope)
        arn = f"arn:{Aws.PARTITION}:ecr:{Aws.REGION}:{account}:repository/{self.repository}"
        uri = f"{account}.dkr.ecr.{Aws.REGION}.{Aws.URL_SUFFIX}/{self.repository}:{self.tag}"
        return uri, pulling(arn)


def _dlc_account(scope: Construct) -> str:
    """The account for the stack's region; a lookup in the template where the region is a token."""
    stack = stack_of(scope)
    if not is_token(stack.region):
        return known_dlc_account(stack.region, path_of(scope))
    mapping = cast(CfnMapping | None, stack.node.try_find_child(_MAPPING)) or CfnMapping(
        stack,
        _MAPPING,
        mapping={region: {"account": number} for region, number in dlc_accounts().items()},
    )
    return Fn.find_in_map(mapping.logical_id, Aws.REGION, "account")
