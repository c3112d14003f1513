"""Settings of one endpoint: what it runs on and what it must hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from ..errors.findings import Finding
from ..errors.frozen import dataclass
from ..facts import limits
from ..hugging_face.hub_options import HuggingFaceSettings
from ..options.alarms import AlarmOptions
from ..options.container import ContainerSettings, rules_of_model
from ..options.effects import ADVICE, CONFIGURATION, DASHBOARD, MODEL, VARIANT, WARM_UP, Touched
from ..options.endpoint import ConfigurationOptions, EndpointOptions, ModelOptions
from ..options.instance_pools import PlannedPool
from ..options.load import LoadOptions
from ..options.option import Option
from ..options.recommendation import RecommendationOptions
from ..options.rules import KMS_KEY_ARN, KMS_KEY_EXAMPLE, ROLE_ARN
from ..options.variant import FLEET, InstanceOptions
from ..options.warm_up import WarmUpOptions
from ..options.written_to_s3 import CoreDump
from . import endpoint_checks
from .variants import ShadowSettings, VariantSettings


@dataclass(frozen=True, kw_only=True)
class EndpointSettings(
    InstanceOptions, ModelOptions, ConfigurationOptions, EndpointOptions, LoadOptions
):
    """One endpoint: its production variant, and further ones beside it.

    Args:
        containers: The containers, one or several (up to 15). Needed unless hugging_face is given.
        hugging_face: Instead of containers: a model of the Hugging Face Hub that low-latency pin has pinned. Image, environment and timeouts follow from it and the instance type.
        instance_type: Instance type of the variant; with instance_pools the slowest, for which the plan is made.
        instance_pools: Instance types of the first variant, tried by priority: where AWS has no capacity of one, the next serves. Default: instance_type alone.
        variant_name: Name of the production variant. Default: primary.
        variant_weight: Share of the requests relative to those of variants. Default: 1.
        variants: Further production variants by name, which share the requests by weight: an A/B test. Default: none.
        shadow: A variant that gets copies of the requests and whose answers nobody sees; not with variants. Default: none.
        alarms: Thresholds of the alarms. Default: the plan's, from the latency target.
        dashboard: Make a CloudWatch dashboard. Default: true.
        warm_up: Send test requests after each deployment. Default: off; it needs a payload.
        role_arn: Execution role of the model. Default: a new role with the least privilege.
        core_dump: Where core dumps go. Default: nowhere.
        kms_key_arn: KMS key for the instances' EBS volumes. Default: a key of AWS's.
        recommendation: What low-latency recommend tries; nothing of the stack. Default: what its options say.
    """

    containers: Annotated[
        Sequence[ContainerSettings],
        Option(
            example=[
                {
                    "image": {"dlc": {"repository": "huggingface-pytorch-inference", "tag": "..."}},
                    "data": {"s3": "s3://my-bucket/model.tar.gz"},
                }
            ],
            touches=Touched((MODEL,), ("inference_ami", "token_alarms", "further")),
        ),
    ] = ()
    hugging_face: Annotated[
        HuggingFaceSettings | None,
        Option(
            example={"model": "Qwen/Qwen3-8B"},
            touches=Touched((MODEL,), ("inference_ami", "token_alarms", "further")),
        ),
    ] = None
    instance_type: Annotated[
        str,
        Option(
            limits.INSTANCE_TYPE,
            "ml.m5.12xlarge",
            touches=Touched((VARIANT,), ("inference_ami", *FLEET)),
        ),
    ]
    instance_pools: Annotated[
        Sequence[PlannedPool],
        Option(
            example=[
                {"instance_type": "ml.g6.xlarge", "priority": 1, "tps_per_instance": 300},
                {"instance_type": "ml.g5.xlarge", "priority": 2, "tps_per_instance": 200},
            ],
            touches=Touched((VARIANT,), ("alarms", "volume_key", "inference_ami", *FLEET)),
        ),
    ] = ()
    variant_name: Annotated[
        str, Option(limits.VARIANT_NAME, "primary", touches=Touched((VARIANT,)))
    ] = "primary"
    variant_weight: Annotated[
        float,
        Option(limits.VARIANT_WEIGHT, 9, touches=Touched((CONFIGURATION,), ("scaling", *FLEET))),
    ] = 1.0
    variants: Annotated[
        Mapping[Annotated[str, Option(limits.VARIANT_NAME)], VariantSettings],
        Option(example={"challenger": {"weight": 1, "routing": "random"}}),
    ] = field(default_factory=dict)
    shadow: Annotated[
        ShadowSettings | None,
        Option(example={"name": "candidate", "share": 0.5, "instance_type": "ml.g6.xlarge"}),
    ] = None
    alarms: Annotated[
        AlarmOptions,
        Option(
            example={"model_latency": {"p99": "200ms"}, "error_rate": 0.01},
            touches=Touched(planned=("thresholds", "alarms", "token_alarms", "rollback_alarms")),
        ),
    ] = field(default_factory=AlarmOptions)
    dashboard: Annotated[bool, Option(touches=Touched((DASHBOARD,)))] = True
    warm_up: Annotated[
        WarmUpOptions | None,
        Option(
            example={"payload": {"data": {"inputs": "I like you."}}}, touches=Touched((WARM_UP,))
        ),
    ] = None
    role_arn: Annotated[
        str | None,
        Option(ROLE_ARN, "arn:aws:iam::123456789012:role/model-role", touches=Touched((MODEL,))),
    ] = None
    core_dump: Annotated[
        CoreDump | None,
        Option(example={"s3": "s3://my-bucket/core-dumps/"}, touches=Touched((CONFIGURATION,))),
    ] = None
    kms_key_arn: Annotated[
        str | None, Option(KMS_KEY_ARN, KMS_KEY_EXAMPLE, touches=Touched(planned=("volume_key",)))
    ] = None
    recommendation: Annotated[
        RecommendationOptions | None,
        Option(
            example={"instance_types": ["ml.c6i.4xlarge", "ml.g5.xlarge"]},
            touches=Touched((ADVICE,)),
        ),
    ] = None

    def _rules_of_model(self) -> Iterator[Finding]:
        """The containers fit together."""
        yield from rules_of_model(self, needed=True)

    _rules_of_pools = endpoint_checks.rules_of_pools
    _rules_of_metrics = endpoint_checks.rules_of_metrics
    _rules_of_guardrails = endpoint_checks.rules_of_guardrails
    _rules_of_platforms = endpoint_checks.rules_of_platforms
    _rules_of_rollback_alarms = endpoint_checks.rules_of_rollback_alarms
    _rules_of_volume_keys = endpoint_checks.rules_of_volume_keys
    _rules_of_names = endpoint_checks.rules_of_names
    _rules_of_shadow = endpoint_checks.rules_of_shadow
    _rules_of_weights = endpoint_checks.rules_of_weights
    _rules_of_rolling = endpoint_checks.rules_of_rolling
