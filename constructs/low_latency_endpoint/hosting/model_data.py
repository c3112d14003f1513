"""Where a model's weights come from: S3, or an archive on this machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from ..errors.frozen import dataclass
from ..facts.limits import MODEL_DATA_URI
from ..facts.rules import ARCHIVE_NAME, ASSET_IS_ARCHIVE
from ..hugging_face import HUB
from ..options.argument_kinds import checked_arguments
from ..plan.pinned_model import PinnedModel
from ..synthesis.annotations import warn
from ..synthesis.arns import bucket_arn, split_s3_uri
from ..synthesis.rights import decrypting, reading
from ..synthesis.template_values import check, is_token

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms
    from aws_cdk import aws_s3 as s3
    from aws_cdk import aws_secretsmanager as secretsmanager


@checked_arguments
class ModelData(ABC):
    """A model's data: one compressed archive, or an uncompressed S3 prefix.

    An uncompressed prefix starts faster for large models: SageMaker streams the files instead of
    unpacking an archive.

    Examples
    --------
    >>> from low_latency_endpoint import ModelData
    >>> ModelData.from_uri("s3://models/distilbert/model.tar.gz").uri
    's3://models/distilbert/model.tar.gz'
    """

    @property
    @abstractmethod
    def uri(self) -> str:
        """The S3 URI, once bound or always known."""

    @abstractmethod
    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        """The data's S3 URI, and what the model's role must be allowed to read it."""

    @property
    def stated_key(self) -> str:
        """The settings file's key for it; none here, where the slash tells them apart."""
        return ""

    @property
    def is_prefix(self) -> bool:
        """Whether the data is everything under a prefix (it ends with a slash)."""
        return self.uri.endswith("/")

    @property
    def named_as_archive(self) -> bool:
        """Whether the object's name ends as the user gave it, which ``ModelDataUrl`` demands."""
        return True

    @property
    def accept_eula(self) -> bool:
        """Whether the end-user license agreement that the data asks for is accepted."""
        return False

    @staticmethod
    def from_s3(bucket: s3.IBucket, key: str, *, accept_eula: bool = False) -> ModelData:
        """An object (``model.tar.gz``), or an uncompressed model under a prefix (ends with /).

        The role may read exactly that, and decrypt with the bucket's key. A key's own policy must
        leave the decision to IAM policies of the account, as it does for keys that CDK makes.

        Args:
            bucket: The bucket of the model's data.
            key: The object's key there.
            accept_eula: Whether you accept the end-user license agreement that the data asks for, as gated models of JumpStart do. By default not, and SageMaker refuses to make the model of such data (`API_ModelAccessConfig <https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ModelAccessConfig.html>`_).

        Raises:
            ConfigurationError: LLE329 for an empty key; LLE318, in a container, for an
                agreement beside ``multi_model`` or ``model_package``.
        """
        if not key.strip("/"):
            raise ARCHIVE_NAME.error(got=f"the key {key!r}", allowed="model.tar.gz, or model/")
        return _BucketData(bucket, key.lstrip("/"), accept_eula)

    @staticmethod
    def from_uri(uri: str, *, accept_eula: bool = False, key: kms.IKey | None = None) -> ModelData:
        """The same, by URI.

        Args:
            uri: Bucket and key may be tokens, as in ``f"s3://{bucket.bucket_name}/model.tar.gz"``. A URI that is one token as a whole tells nothing, so a warning says what to allow.
            accept_eula: Whether you accept the end-user license agreement that the data asks for, as gated models of JumpStart do. By default not.
            key: The key of yours that encrypts the objects: the role may then decrypt with it, and its own policy must leave that to IAM policies of the account, or name the role. By default none, which suits objects that S3 encrypts, or the account's own AWS managed key (`UsingKMSEncryption <https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html>`_).

        Raises:
            ConfigurationError: LLE304 for another scheme or more than 1024 characters.

        Examples:
            >>> from low_latency_endpoint import ModelData
            >>> ModelData.from_uri("s3://jumpstart-private-cache-prod-us-east-1/meta-textgeneration/"
            ...                    "meta-textgeneration-llama-guard-3-8b/artifacts/inference-prepack/"
            ...                    "v1.0.0/", accept_eula=True).accept_eula
            True

            Of a bucket that a key of yours encrypts:

            >>> from aws_cdk import App, Stack, aws_kms as kms
            >>> key = kms.Key(Stack(App(), "Serving"), "ModelsKey", enable_key_rotation=True)
            >>> ModelData.from_uri("s3://models/distilbert/model.tar.gz", key=key).uri
            's3://models/distilbert/model.tar.gz'
        """
        return _UriData(check(MODEL_DATA_URI, uri), accept_eula, key)

    @staticmethod
    def from_asset(path: str, *, key: kms.IKey | None = None) -> ModelData:
        """A ``.tar.gz`` on this machine, uploaded by ``cdk deploy``.

        ``key`` is needed where the bootstrap bucket is encrypted with a key whose policy leaves
        the decision to IAM: a key of your own (``cdk bootstrap --bootstrap-kms-key-id``). The one
        that ``cdk bootstrap --bootstrap-customer-key`` makes lets everybody of the account decrypt
        through S3, and a bucket of plain bootstrapping has none: then give none.

        Args:
            path: The file; relative to the app's working folder.
            key: The key of yours that encrypts the bootstrap bucket. By default none.

        Raises:
            ConfigurationError: LLE327 for anything but one .tar.gz file.
        """
        if not path.endswith(".tar.gz") or not Path(path).is_file():
            raise ASSET_IS_ARCHIVE.error(got=path, allowed="the path of one .tar.gz file")
        return _AssetData(path, key)

    @staticmethod
    def from_hugging_face(
        pinned: PinnedModel,
        *,
        bucket: s3.IBucket | None = None,
        token: secretsmanager.ISecret | None = None,
        hub_endpoint: str = HUB,
    ) -> ModelData:
        """A pinned model of the Hub, copied into S3 at the deployment; the model waits for it.

        Containers of one stack that serve the same commit share its files. The arguments are those
        of :class:`StagedModel`, which is made in the stack when a model uses the data.

        Raises
        ------
        ConfigurationError
            From the model that uses it: LLE352, LLE359, LLE399.
        """
        return _HubData(pinned, bucket, token, hub_endpoint)


def container_property(data: ModelData, data_uri: str, *, multi_model: bool) -> dict[str, Any]:
    """The container's ``ModelDataUrl`` or ``ModelDataSource``, as CloudFormation takes them."""
    as_url = data.named_as_archive and not data_uri.endswith("/") and not data.accept_eula
    if multi_model or as_url:  # an URL has no place for an agreement
        return {"model_data_url": data_uri}
    kind, compression = ("S3Prefix", "None") if data.is_prefix else ("S3Object", "Gzip")
    return {
        "model_data_source": sagemaker.CfnModel.ModelDataSourceProperty(
            s3_data_source=sagemaker.CfnModel.S3DataSourceProperty(
                s3_uri=data_uri,
                s3_data_type=kind,
                compression_type=compression,
                model_access_config=sagemaker.CfnModel.ModelAccessConfigProperty(accept_eula=True)
                if data.accept_eula
                else None,
            )
        )
    }


def _decrypting(key: kms.IKey | None) -> list[dict[str, Any]]:
    return [] if key is None else [decrypting(key.key_arn)]


@dataclass(frozen=True)
class _BucketData(ModelData):
    bucket: s3.IBucket
    key: str
    agreed: bool

    @property
    def accept_eula(self) -> bool:
        return self.agreed

    @property
    def uri(self) -> str:
        return self.bucket.s3_url_for_object(self.key)

    @property
    def is_prefix(self) -> bool:
        return self.key.endswith("/")

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        statements = reading(self.bucket.bucket_arn, self.key)
        return self.uri, [*statements, *_decrypting(self.bucket.encryption_key)]


@dataclass(frozen=True)
class _UriData(ModelData):
    location: str
    agreed: bool = False
    key: kms.IKey | None = None

    @property
    def accept_eula(self) -> bool:
        return self.agreed

    @property
    def uri(self) -> str:
        return self.location

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        return self.location, [*self._reading(scope), *_decrypting(self.key)]

    def _reading(self, scope: Construct) -> list[dict[str, Any]]:
        bucket, key = split_s3_uri(self.location) or ("", "")
        if bucket and (key or not is_token(bucket)):
            return reading(bucket_arn(bucket), key)
        if is_token(self.location):
            warn(
                scope,
                "modelDataRights",
                "The location of the model data is known only at deployment. Allow the "
                "model's role s3:GetObject on it (and s3:ListBucket for a prefix), or name "
                "bucket and key with ModelData.from_s3(bucket, key).",
            )
        return []


@dataclass(frozen=True)
class _AssetData(ModelData):
    path: str
    key: kms.IKey | None = None

    @property
    def uri(self) -> str:
        return self.path

    @property
    def named_as_archive(self) -> bool:
        # The CDK uploads model.tar.gz as <hash>.gz (aws-cdk issue 30257); ModelDataUrl wants the
        # suffix .tar.gz, ModelDataSource is told the compression.
        return False

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        from aws_cdk import aws_s3_assets as s3_assets  # loads S3, which few apps need here

        asset = s3_assets.Asset(scope, "ModelData", path=self.path)
        statements = reading(asset.bucket.bucket_arn, asset.s3_object_key)
        return asset.s3_object_url, [*statements, *_decrypting(self.key)]


@dataclass(frozen=True)
class _HubData(ModelData):
    pinned: PinnedModel
    bucket: s3.IBucket | None
    token: secretsmanager.ISecret | None
    hub_endpoint: str

    @property
    def uri(self) -> str:
        # The bucket is known once a model uses it.
        return f"s3://<bucket of {self.pinned.model}>/{self.pinned.prefix}"

    def bind(self, scope: Construct) -> tuple[str, list[dict[str, Any]]]:
        from .staged_model import staged_for  # loads S3 and Lambda, which few apps need here

        staged = staged_for(
            scope, self.pinned, bucket=self.bucket, token=self.token, hub_endpoint=self.hub_endpoint
        )
        return staged.uri, staged.reading()
