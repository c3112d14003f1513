"""What the parts of the pattern are told beside what the plan says, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from ..options.deployment import DeploymentPolicy
from ..options.metrics_publishing import MetricsPublishing
from ..options.written_to_s3 import DataCapture
from ..plan.argument_kinds import checked_arguments

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """How :class:`LowLatencyEndpoint` makes its model; :class:`Model` says what each means.

    Args:
        role: By default a new one.
        inference_mode: By default Serial.
        network_isolation: By default as for :class:`Model`: on for models that are known to serve without a network.

    Raises:
        ConfigurationError: LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import ModelOptions
        >>> ModelOptions(network_isolation=True).inference_mode is None
        True
    """

    role: iam.IRole | None = None
    inference_mode: Literal["Serial", "Direct"] | None = None
    network_isolation: bool | None = None


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ConfigurationOptions:
    """The endpoint configuration beside its variant, as :class:`EndpointConfiguration` takes it.

    Args:
        encryption_key: By default that of :class:`Safeguards`, else SageMaker's own.
        kms_key_with_local_storage: By default a key is refused on a type with local storage.
        data_capture: By default nothing is captured.
        metrics: By default SageMaker's own settings.

    Raises:
        ConfigurationError: LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import ConfigurationOptions, DataCapture
        >>> ConfigurationOptions(data_capture=DataCapture(s3="s3://captured")).metrics
    """

    encryption_key: kms.IKey | None = None
    kms_key_with_local_storage: bool = False
    data_capture: DataCapture | None = None
    metrics: MetricsPublishing | None = None


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class EndpointOptions:
    """The endpoint's name, tags and deployments; :class:`Endpoint` says what each means.

    Args:
        endpoint_name: By default derived from the construct's path, so another one when a scope around it moves or gets another id: set it in production.
        deployment: By default a canary of 10 percent for 5 minutes.
        confirm_updates: By default a deployment fails after which SageMaker does not serve this version.
        tags: Of the endpoint, its configuration and its models: service control policies may ask for tags in each call that makes one of them (``aws:RequestTag``, `IAM's list of SageMaker's actions <https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html>`_). A change of them replaces nothing. For all that the pattern makes, ``Tags.of(...)`` is the way. By default none.

    Raises:
        ConfigurationError: LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import DeploymentPolicy, EndpointOptions
        >>> EndpointOptions(deployment=DeploymentPolicy.linear(step_percent=20)).confirm_updates
        True
    """

    endpoint_name: str | None = None
    deployment: DeploymentPolicy | None = None
    confirm_updates: bool = True
    tags: Mapping[str, str] = field(default_factory=dict)
