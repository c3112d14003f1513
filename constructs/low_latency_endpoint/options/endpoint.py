"""The model, the endpoint configuration and the endpoint beside what the plan says; published metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Literal

from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.limits import METRIC_FREQUENCY
from .argument_kinds import checked_arguments
from .deployment import DeploymentPolicy
from .option import Option, Options
from .written_to_s3 import DataCapture

if TYPE_CHECKING:
    from aws_cdk import Duration
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class MetricsPublishing(Options):
    """What SageMaker publishes to CloudWatch.

    Raises:
        ConfigurationError: LLE417 for another frequency, LLE801 and LLE807 for values of another kind.
    """

    enhanced: Annotated[bool, Option()] = False
    """Publish per instance and container, at the frequency below; more billed metrics. Default:
    false."""
    detailed_observability: Annotated[bool, Option()] = True
    """Publish OpenTelemetry metrics for PromQL, which CloudWatch bills by the GB. Default: true."""
    publish_frequency: Annotated[Duration | timedelta | str, Option(METRIC_FREQUENCY, "10s")] = (
        timedelta(seconds=60)
    )
    """How often utilization (with enhanced: invocations too) is published. Default: 60s."""


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ModelOptions(Options):
    """How :class:`LowLatencyEndpoint` makes its model; :class:`Model` says what each means.

    Raises:
        ConfigurationError: LLE309 for another mode, LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import ModelOptions
        >>> ModelOptions(network_isolation=True).inference_mode is None
        True
    """

    role: iam.IRole | None = None
    """Execution role of the model. Default: a new role with the least privilege."""
    inference_mode: Annotated[
        Literal["Serial", "Direct"] | None, Option(limits.INFERENCE_MODE, "Serial")
    ] = None
    """How several containers work together: Serial passes each answer to the next, Direct lets
    callers choose a container by hostname. Required with several containers.

    In Python, the default is Serial.
    """
    network_isolation: Annotated[bool | None, Option(example=True)] = None
    """Isolate the containers from the network; they still get model data. Default: true with
    hugging_face, else false."""


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ConfigurationOptions(Options):
    """The endpoint configuration beside its variant, as :class:`EndpointConfiguration` takes it.

    Raises:
        ConfigurationError: LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import ConfigurationOptions, DataCapture
        >>> ConfigurationOptions(data_capture=DataCapture(s3="s3://captured")).metrics
    """

    encryption_key: kms.IKey | None = None
    """KMS key for the instances' EBS volumes. Default: that of :class:`Safeguards`, else a key of
    AWS's."""
    kms_key_with_local_storage: Annotated[bool, Option()] = False
    """Also use the key on a type with local storage; AWS's pages disagree on the effect. Default:
    false, which reports an error."""
    data_capture: Annotated[
        DataCapture | None,
        Option(example={"s3": "s3://my-bucket/captured/", "sampling_percentage": 10}),
    ] = None
    """Record requests and responses. Default: off."""
    metrics: Annotated[
        MetricsPublishing | None, Option(example={"enhanced": True, "publish_frequency": "10s"})
    ] = None
    """What SageMaker publishes to CloudWatch. Default: AWS's defaults."""


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class EndpointOptions(Options):
    """The endpoint's name, tags and deployments; :class:`Endpoint` says what each means.

    Raises:
        ConfigurationError: LLE501 for the name, LLE510 and LLE511 for tags, LLE807 for values of
            another kind.

    Examples:
        >>> from low_latency_endpoint import DeploymentPolicy, EndpointOptions
        >>> EndpointOptions(deployment=DeploymentPolicy.linear(step_percent=20)).confirm_updates
        True
    """

    endpoint_name: Annotated[str | None, Option(limits.ENDPOINT_NAME, "sentiment")] = None
    """Name that callers invoke. Default: derived from stack and key, and changes with them. Set it
    in production.

    In Python, the default is derived from the construct's path: it changes when a scope around the
    construct moves or gets another id.
    """
    deployment: Annotated[
        DeploymentPolicy | None, Option(example={"canary": {"size_percent": 10, "wait": "5m"}})
    ] = None
    """How a new version takes over. Default: a canary of 10 percent for 5m; all at once on Inf1,
    which takes no canary."""
    confirm_updates: Annotated[bool, Option()] = True
    """Fail the deployment if SageMaker does not serve this version afterwards. Default: true."""
    tags: Annotated[
        Mapping[str, str], Option(limits.TAG_VALUE, {"team": "nlp"}, keys=limits.TAG_KEY)
    ] = field(default_factory=dict)
    """Tags for all resources of this endpoint; they override the stack's. Up to 50 together.

    In Python, they are the tags of the endpoint, its configuration and its models, which service
    control policies may ask for in each call that makes one of them (``aws:RequestTag``, `IAM's
    list of SageMaker's actions
    <https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonsagemaker.html>`_).
    A change of them replaces nothing. Use ``Tags.of(...)`` for all that the pattern makes.
    """
