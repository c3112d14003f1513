"""Settings of one endpoint: what it runs on and what it must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ..errors.findings import Finding, breaches, finding
from ..options.alarms import AlarmOptions
from ..plan import limits
from ..plan.endpoint_request import PAYLOAD
from .container_checks import container_checks, one_way_to_serve
from .containers import ContainerSettings
from .deployment import DeploymentSettings
from .endpoint_checks import endpoint_checks
from .fields import Limited
from .hugging_face import HuggingFaceSettings
from .inference_ami import InferenceAmi
from .instance_pools import InstancePoolSettings, pool_checks
from .model_base import SettingsModel, items_of, optional
from .of_options import OfOptions
from .recommendation import RecommendationSettings
from .rules import KMS_KEY_ARN, ROLE_ARN, SAMPLES_NOTHING, TAG_KEY, TAG_VALUE
from .tokens import TokenSettings, stream_checks
from .traffic import (
    InstanceCountSettings,
    LatencySettings,
    PrefixAwareRouting,
    Routing,
    ScalingSettings,
    ThroughputSettings,
)
from .variant_checks import variant_checks
from .variants import ShadowSettings, VariantSettings
from .warm_up import WarmUpSettings

Tags = dict[Annotated[str, Limited(TAG_KEY)], Annotated[str, Limited(TAG_VALUE)]]
KmsKeyArn = Annotated[str, Limited(KMS_KEY_ARN)]
ContentTypes = tuple[Annotated[str, Limited(limits.CAPTURE_CONTENT_TYPE)], ...]
S3Uri = Annotated[str, Limited(limits.S3_URI)]
KMS_KEY_EXAMPLE = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


class CoreDumpSettings(SettingsModel):
    """Where core dumps of crashed containers go."""

    s3: S3Uri = Field(examples=["s3://my-bucket/core-dumps/"], description="S3 destination.")
    kms_key_arn: KmsKeyArn | None = optional(
        "KMS key that encrypts them. Default: the bucket's own encryption.", example=KMS_KEY_EXAMPLE
    )


class DataCaptureSettings(SettingsModel):
    """Record requests and responses in S3."""

    s3: S3Uri = Field(examples=["s3://my-bucket/captured/"], description="S3 destination.")
    kms_key_arn: KmsKeyArn | None = optional(
        "KMS key that encrypts them. Default: the bucket's own encryption.", example=KMS_KEY_EXAMPLE
    )
    capture: tuple[Literal["input", "output"], ...] = optional(
        "What is recorded: input (requests), output (responses). Default: both.",
        example=["input"],
        default=("input", "output"),
        strict=False,
    )
    csv_content_types: ContentTypes = optional(
        "Content types that are recorded as CSV. Default: all bodies in base64.",
        example=["text/csv"],
        default=(),
        strict=False,
    )
    json_content_types: ContentTypes = optional(
        "Content types that are recorded as JSON. Default: all bodies in base64.",
        example=["application/json"],
        default=(),
        strict=False,
    )
    sampling_percentage: Annotated[int, Limited(limits.SAMPLING_PERCENTAGE)] = optional(
        "Share of the requests; less for high traffic. Default: 10.", example=10, default=10
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """Zero percent captures nothing, neither does an empty list; lists keep their limits."""
        for name, limit in (
            ("capture", limits.CAPTURE_COUNT),
            ("csv_content_types", limits.CAPTURE_CONTENT_TYPE_COUNT),
            ("json_content_types", limits.CAPTURE_CONTENT_TYPE_COUNT),
        ):
            if isinstance(given.get(name), (list, tuple)):
                yield from breaches((name,), limit.check, len(items_of(given, name)))
        if given.get("sampling_percentage") == 0:
            yield finding(SAMPLES_NOTHING, "sampling_percentage", got="0", allowed="1 to 100")


class MetricSettings(SettingsModel):
    """What SageMaker publishes to CloudWatch."""

    enhanced: bool = optional(
        "Publish per instance and container, at the frequency below; "
        "more billed metrics. Default: false.",
        default=False,
    )
    detailed_observability: bool = optional(
        "Publish OpenTelemetry metrics for PromQL, which CloudWatch bills by the GB. Default: true.",
        default=True,
    )
    publish_frequency: Annotated[timedelta, Limited(limits.METRIC_FREQUENCY)] = optional(
        "How often utilization (with enhanced: invocations too) is published. Default: 60s.",
        example="10s",
        default=timedelta(seconds=60),
    )


class EndpointSettings(SettingsModel):
    """One endpoint: its production variant, and further ones beside it."""

    other_forms: ClassVar[Mapping[str, type[SettingsModel]]] = {"routing": PrefixAwareRouting}

    endpoint_name: Annotated[str, Limited(limits.ENDPOINT_NAME)] | None = optional(
        "Name that callers invoke. Default: derived from the stack and the key, so it changes "
        "with them: set it in production.",
        example="sentiment",
    )
    containers: tuple[ContainerSettings, ...] = optional(
        "The containers, one or several (up to 15). Needed unless hugging_face is given.",
        example=[
            {
                "image": {"dlc": {"repository": "huggingface-pytorch-inference", "tag": "..."}},
                "data": {"s3": "s3://my-bucket/model.tar.gz"},
            }
        ],
        default=(),
        strict=False,
    )
    hugging_face: HuggingFaceSettings | None = optional(
        "Instead of containers: a model of the Hugging Face Hub that low-latency pin has pinned. "
        "Image, environment and timeouts follow from it and the instance type.",
        example={"model": "Qwen/Qwen3-8B"},
    )
    inference_mode: Annotated[str, Limited(limits.INFERENCE_MODE)] | None = optional(
        "How several containers work: Serial pipes each answer into the next, Direct lets "
        "callers choose one by hostname. Needed with several containers.",
        example="Serial",
    )
    instance_type: Annotated[str, Limited(limits.INSTANCE_TYPE)] = Field(
        examples=["ml.m5.12xlarge"],
        description="Instance type of the variant; with instance_pools the slowest, for which the "
        "plan is made.",
    )
    instance_pools: tuple[InstancePoolSettings, ...] = optional(
        "Instance types of the first variant, tried by priority: where AWS has no capacity of "
        "one, the next serves. Default: instance_type alone.",
        example=[
            {"instance_type": "ml.g6.xlarge", "priority": 1, "tps_per_instance": 300},
            {"instance_type": "ml.g5.xlarge", "priority": 2, "tps_per_instance": 200},
        ],
        default=(),
        strict=False,
    )
    variant_name: Annotated[str, Limited(limits.VARIANT_NAME)] = optional(
        "Name of the production variant. Default: primary.", example="primary", default="primary"
    )
    variant_weight: Annotated[float, Limited(limits.VARIANT_WEIGHT)] = optional(
        "Share of the requests relative to those of variants. Default: 1.", example=9, default=1.0
    )
    variants: dict[Annotated[str, Limited(limits.VARIANT_NAME)], VariantSettings] = optional(
        "Further production variants by name, which share the requests by weight: an A/B test. "
        "Default: none.",
        example={"challenger": {"weight": 1, "routing": "random"}},
        default={},
    )
    shadow: ShadowSettings | None = optional(
        "A variant that gets copies of the requests and whose answers nobody sees; not with "
        "variants. Default: none.",
        example={"name": "candidate", "share": 0.5, "instance_type": "ml.g6.xlarge"},
    )
    latency: LatencySettings | None = optional(
        "The latency target. Default: none yet; no alarms on latency, and a warning.",
        example={"p99": "200ms"},
    )
    throughput: ThroughputSettings | None = optional(
        "Load to hold and measured throughput. Default: not measured, so one instance per client "
        "zone and no scaling.",
        example={"peak_tps": 1000, "tps_per_instance": 200},
    )
    tokens: TokenSettings | None = optional(
        "Tokens of prompts and answers, of a language model whose answers are streamed: capacity "
        "is counted in them, and the KV cache's room. Default: calls alone are counted.",
        example={"input": 512, "output": 128, "shared_prefix": 0.5},
    )
    streaming: bool | None = optional(
        "Whether callers stream answers: SageMaker ends a stream after 8 minutes, a whole answer "
        "after 60 s. Default: true with tokens, or with targets of ttft or itl, else false."
    )
    payload_bytes: Annotated[int, Limited(PAYLOAD)] | None = optional(
        "Size of the callers' largest request, to check it against SageMaker's limits. Default: "
        "not checked.",
        example=8_000_000,
    )
    routing: Routing | None = optional(
        "How requests find their instance. Default: least_outstanding_requests.",
        example="least_outstanding_requests",
    )
    instances: InstanceCountSettings = Field(
        default_factory=InstanceCountSettings,
        examples=[{"min": 2, "max": 12}],
        description="Numbers of instances. Default: derived from the throughput.",
    )
    scaling: ScalingSettings = Field(
        default_factory=ScalingSettings,
        examples=[{"scale_in_cooldown": "5m"}],
        description="How the number of instances follows the load. Default: target tracking on "
        "invocations per instance.",
    )
    confirm_updates: bool = optional(
        "Fail a deployment after which SageMaker does not serve this version. Default: true.",
        default=True,
    )
    deployment: DeploymentSettings | None = optional(
        "How a new version takes over. Default: a canary of 10 percent for 5m; all at once on "
        "Inf1, which takes no canary.",
        example={"canary": {"size_percent": 10, "wait": "5m"}},
    )
    alarms: Annotated[AlarmOptions, OfOptions()] = Field(
        default_factory=AlarmOptions,
        examples=[{"model_latency": {"p99": "200ms"}, "error_rate": 0.01}],
        description="Thresholds of the alarms. Default: the plan's, from the latency target.",
    )
    dashboard: bool = optional("Make a CloudWatch dashboard. Default: true.", default=True)
    warm_up: WarmUpSettings | None = optional(
        "Send test requests after each deployment. Default: off; it needs a payload.",
        example={"payload": {"data": {"inputs": "I like you."}}},
    )
    metrics: MetricSettings | None = optional(
        "What SageMaker publishes to CloudWatch. Default: AWS's defaults.",
        example={"enhanced": True, "publish_frequency": "10s"},
    )
    network_isolation: bool | None = optional(
        "Cut the containers off from the network; model data still arrives. Default: true with "
        "hugging_face, else false.",
        example=True,
    )
    role_arn: Annotated[str, Limited(ROLE_ARN)] | None = optional(
        "Execution role of the model. Default: a new role with the least privilege.",
        example="arn:aws:iam::123456789012:role/model-role",
    )
    startup_health_check_timeout: (
        Annotated[timedelta, Limited(limits.CONTAINER_STARTUP_SECONDS)] | None
    ) = optional(
        "How long a container may take to answer its first ping, 60s to 1h. Default: SageMaker's.",
        example="5m",
    )
    model_data_download_timeout: (
        Annotated[timedelta, Limited(limits.MODEL_DOWNLOAD_SECONDS)] | None
    ) = optional(
        "How long the model's download may take, 60s to 1h. Default: SageMaker's.", example="5m"
    )
    instance_provision_timeout: Annotated[timedelta, Limited(limits.PROVISION_SECONDS)] | None = (
        optional(
            "How long SageMaker looks for instances, 5m to 1h. Default: SageMaker's.", example="10m"
        )
    )
    volume_size_gib: Annotated[int, Limited(limits.VOLUME_SIZE)] | None = optional(
        "Size of each instance's EBS volume, for types "
        "without local storage. Default: SageMaker's.",
        example=64,
    )
    inference_ami: InferenceAmi | None = optional(
        "System image of the instances, which sets the driver; {custom: name} for one that is "
        "not listed here. Default: the one that CUDA 13 images need, else SageMaker's.",
        example="al2023-ami-sagemaker-inference-gpu-4-1",
    )
    ssm_access: bool = optional(
        "Let operators open shells on the instances through Systems Manager. Default: false.",
        default=False,
    )
    capacity_reservation_arn: Annotated[str, Limited(limits.CAPACITY_RESERVATION_ARN)] | None = (
        optional(
            "ML capacity reservation; without free capacity in it, launches fail. "
            "Default: on demand.",
            example="arn:aws:sagemaker:us-east-1:123456789012:training-plan/mine",
        )
    )
    core_dump: CoreDumpSettings | None = optional(
        "Where core dumps go. Default: nowhere.", example={"s3": "s3://my-bucket/core-dumps/"}
    )
    kms_key_arn: KmsKeyArn | None = optional(
        "KMS key for the instances' EBS volumes. Default: a key of AWS's.", example=KMS_KEY_EXAMPLE
    )
    kms_key_with_local_storage: bool = optional(
        "Give the key to a type with local storage too; AWS's pages disagree on the effect. "
        "Default: false, which refuses it.",
        default=False,
    )
    data_capture: DataCaptureSettings | None = optional(
        "Record requests and responses. Default: off.",
        example={"s3": "s3://my-bucket/captured/", "sampling_percentage": 10},
    )
    tags: Tags = Field(
        default_factory=dict,
        examples=[{"team": "nlp"}],
        description="Tags of all that belongs to this endpoint; they win over the stack's. Up to "
        "50 together.",
    )
    recommendation: RecommendationSettings | None = optional(
        "What low-latency recommend tries; nothing of the stack. Default: what its options say.",
        example={"instance_types": ["ml.c6i.4xlarge", "ml.g5.xlarge"]},
    )

    @classmethod
    def cross_checks(cls, given: Mapping[str, Any]) -> Iterator[Finding]:
        """Containers fit together, and the settings' size limits hold over all of them."""
        yield from one_way_to_serve(given, needed=True)
        yield from container_checks(given)
        yield from variant_checks(given)
        yield from pool_checks(given)
        yield from endpoint_checks(given)
        yield from stream_checks(given)
