"""Settings of one endpoint and its variants, and what its parts demand of each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Annotated

from ..errors.findings import Finding, Place, breaches, finding
from ..errors.frozen import dataclass
from ..facts import deployments, limits
from ..facts.deployments import check_guardrails, check_rollback_alarms, rolls_back
from ..facts.images import ARCHITECTURE_OF_PLATFORM, check_built_image_runs_on
from ..facts.instance_types import instance_facts
from ..facts.metrics import metric_facts, metrics
from ..facts.rules import (
    ALL_WEIGHTS_ZERO,
    KMS_WITH_LOCAL_STORAGE,
    MODE_NEEDS_CONTAINERS,
    POOL_TYPE_TWICE,
    ROLLING_NEEDS_ONE_VARIANT,
    SHADOW_OF_ONE_VARIANT,
    VARIANT_NAMED_TWICE,
)
from ..hugging_face.hub_options import HuggingFaceSettings
from ..options.alarms import AlarmOptions
from ..options.canary import CanaryOptions, silence_beside
from ..options.container import ContainerSettings, rules_of_model
from ..options.endpoint import ConfigurationOptions, EndpointOptions, ModelOptions
from ..options.load import LoadOptions
from ..options.option import Option
from ..options.rules import KMS_KEY_ARN, KMS_KEY_EXAMPLE, ROLE_ARN, SHADOW_SHARE
from ..options.variant import FurtherOptions, InstanceOptions, PlannedPool
from ..options.warm_up import WarmUpOptions, WarmUpPayload, rules_of_targets
from ..options.written_to_s3 import CoreDump
from ..plan.published_metrics import METRIC_OF_ALARM, check_published, endpoint_shape


@dataclass(frozen=True, kw_only=True)
class FurtherSettings(FurtherOptions):
    """What variants and a shadow have alike; what they leave out is the first variant's."""

    containers: Annotated[
        Sequence[ContainerSettings],
        Option(example=[{"image": {"ecr": {"repository": "scorer", "tag": "2"}}}]),
    ] = ()
    """The containers of its own model. Default: the first variant's model."""
    hugging_face: Annotated[
        HuggingFaceSettings | None, Option(example={"model": "Qwen/Qwen3-8B"})
    ] = None
    """Instead of containers: its own model from the Hugging Face Hub."""
    inference_mode: Annotated[str | None, Option(limits.INFERENCE_MODE, "Serial")] = None
    """How its own containers work together, as for the endpoint."""
    instance_type: Annotated[str | None, Option(limits.INSTANCE_TYPE, "ml.g6.xlarge")] = None
    """Instance type. Default: the first variant's."""

    def _rules_of_model(self) -> Iterator[Finding]:
        """Containers of its own fit together."""
        yield from rules_of_model(self, needed=False)
        if self.inference_mode is not None and not self.containers:
            yield finding(
                MODE_NEEDS_CONTAINERS,
                "inference_mode",
                got=self.inference_mode,
                allowed="no mode without containers of its own",
            )


@dataclass(frozen=True, kw_only=True)
class VariantSettings(FurtherSettings):
    """A further production variant."""

    weight: Annotated[float, Option(limits.VARIANT_WEIGHT, 1)] = 1.0
    """Share of the requests relative to the other variants; with 0 only calls with its name as
    TargetVariant reach it. Default: 1."""


@dataclass(frozen=True, kw_only=True)
class ShadowSettings(FurtherSettings):
    """A shadow variant."""

    name: Annotated[str, Option(limits.VARIANT_NAME, "candidate")]
    """Name of the variant."""
    share: Annotated[float, Option(SHADOW_SHARE, 0.5)] = 1.0
    """Share of the requests to copy. It becomes a weight; AWS describes only equal weights, which
    copy all. Default: 1."""


@dataclass(frozen=True)
class Further:
    """A variant beside the first, wherever the file states it."""

    name: str
    weight: float
    shadow: bool
    settings: FurtherSettings
    place: Place  # below the endpoint's


def further_variants(endpoint: EndpointSettings) -> list[Further]:
    """The variants beside an endpoint's first, in the order of the file."""
    further_variants = [
        Further(name, variant.weight, False, variant, ("variants", name))
        for name, variant in endpoint.variants.items()
    ]
    shadow = endpoint.shadow
    if shadow is not None:
        weight = shadow.share * endpoint.variant_weight
        further_variants.append(Further(shadow.name, weight, True, shadow, ("shadow",)))
    return further_variants


def all_containers(endpoint: EndpointSettings) -> Iterator[tuple[Place, ContainerSettings]]:
    """The containers of all models of an endpoint, each with its place below the endpoint's."""
    for index, container in enumerate(endpoint.containers):
        yield ("containers", index), container
    for variant in further_variants(endpoint):
        for index, container in enumerate(variant.settings.containers):
            yield (*variant.place, "containers", index), container


def volume_of(endpoint: EndpointSettings, further: FurtherSettings | None) -> int | None:
    """The volume of the first variant's instances, or of one beside it; in GiB, where stated."""
    if further is None:
        return endpoint.volume_size_gib
    of_first = endpoint.volume_size_gib if further.instance_type is None else None
    return further.volume_size_gib or of_first


def container_id(key: str, place: Place) -> str:
    """What the stack calls the parts of a container, by its place below the endpoint's."""
    *above, _, index = place
    return f"{'.'.join([key, *map(str, above[-1:])])}-{index}"


Running = tuple[Place, Sequence[ContainerSettings], str]


def variants_and_first(endpoint: EndpointSettings) -> Iterator[Running]:
    """Containers and type of each variant, the first one's first, on each of its types: what a
    further one leaves out is the first one's."""
    first, name = endpoint.containers, endpoint.instance_type
    yield (), first, name
    for index, pool in enumerate(endpoint.instance_pools):
        if pool.instance_type != name:
            yield ("instance_pools", index), first, pool.instance_type
    for variant in further_variants(endpoint):
        own = variant.settings
        if own.containers or own.instance_type:
            yield variant.place, own.containers or first, own.instance_type or name


@dataclass(frozen=True, kw_only=True)
class EndpointSettings(
    InstanceOptions, ModelOptions, ConfigurationOptions, EndpointOptions, LoadOptions
):
    """One endpoint: its production variant, and further ones beside it."""

    containers: Annotated[
        Sequence[ContainerSettings],
        Option(
            example=[
                {
                    "image": {"dlc": {"repository": "huggingface-pytorch-inference", "tag": "..."}},
                    "data": {"s3": "s3://my-bucket/model.tar.gz"},
                }
            ]
        ),
    ] = ()
    """The containers, one or several (up to 15). Needed unless hugging_face is given."""
    hugging_face: Annotated[
        HuggingFaceSettings | None, Option(example={"model": "Qwen/Qwen3-8B"})
    ] = None
    """Instead of containers: a model of the Hugging Face Hub, pinned with low-latency pin. It and
    the instance type determine image, environment and timeouts."""
    instance_type: Annotated[str, Option(limits.INSTANCE_TYPE, "ml.m5.12xlarge")]
    """Instance type of the variant. With instance_pools: the slowest, which the plan sizes for."""
    instance_pools: Annotated[
        Sequence[PlannedPool],
        Option(
            example=[
                {"instance_type": "ml.g6.xlarge", "priority": 1, "tps_per_instance": 300},
                {"instance_type": "ml.g5.xlarge", "priority": 2, "tps_per_instance": 200},
            ]
        ),
    ] = ()
    """Instance types of the first variant, tried by priority: if AWS has no capacity for one, the
    next serves. Default: instance_type alone."""
    variant_name: Annotated[str, Option(limits.VARIANT_NAME, "primary")] = "primary"
    """Name of the production variant. Default: primary."""
    variant_weight: Annotated[float, Option(limits.VARIANT_WEIGHT, 9)] = 1.0
    """Share of the requests relative to the variants. Default: 1."""
    variants: Annotated[
        Mapping[Annotated[str, Option(limits.VARIANT_NAME)], VariantSettings],
        Option(example={"challenger": {"weight": 1, "routing": "random"}}),
    ] = field(default_factory=dict)
    """Additional production variants by name, which share the requests by weight: an A/B test.
    Default: none."""
    shadow: Annotated[
        ShadowSettings | None,
        Option(example={"name": "candidate", "share": 0.5, "instance_type": "ml.g6.xlarge"}),
    ] = None
    """A variant that gets copies of the requests; callers never see its answers. Not with variants.
    Default: none."""
    alarms: Annotated[
        AlarmOptions, Option(example={"model_latency": {"p99": "200ms"}, "error_rate": 0.01})
    ] = field(default_factory=AlarmOptions)
    """Thresholds of the alarms. Default: the plan's, from the latency target."""
    dashboard: Annotated[bool, Option()] = True
    """Make a CloudWatch dashboard. Default: true."""
    warm_up: Annotated[
        WarmUpOptions | None, Option(example={"payload": {"data": {"inputs": "I like you."}}})
    ] = None
    """Send test requests after each deployment. Default: off; it needs a payload."""
    canary: Annotated[CanaryOptions | None, Option(example={"longest_connect": "10ms"})] = None
    """Send a request a minute from each client zone to measure the path of its callers, with
    alarms. Default: off; it needs a payload, which warm_up may have."""
    role_arn: Annotated[
        str | None, Option(ROLE_ARN, "arn:aws:iam::123456789012:role/model-role")
    ] = None
    """Execution role of the model. Default: a new role with the least privilege."""
    core_dump: Annotated[CoreDump | None, Option(example={"s3": "s3://my-bucket/core-dumps/"})] = (
        None
    )
    """Where core dumps go. Default: nowhere."""
    kms_key_arn: Annotated[str | None, Option(KMS_KEY_ARN, KMS_KEY_EXAMPLE)] = None
    """KMS key for the instances' EBS volumes. Default: AWS's key."""

    def _rules_of_model(self) -> Iterator[Finding]:
        """The containers fit together."""
        yield from rules_of_model(self, needed=True)

    def _rules_of_canary(self) -> Iterator[Finding]:
        """A canary has something to send, and no alarm waits for silence beside it."""
        if self.canary is None:
            return
        if self.canary.payload is None:
            yield from self._needs(
                "canary", "warm_up", "a canary sends a payload: its own or the warm-up's"
            )
        if self.alarms.expect_traffic:
            yield (
                ("alarms", "expect_traffic"),
                silence_beside("canary", "expect_traffic beside a canary"),
            )

    def _rules_of_payloads(self) -> Iterator[Finding]:
        """What is sent names a model if the endpoint has many, and is not alone where silence pages."""
        payloads: dict[Place, WarmUpPayload] = {}
        if self.warm_up is not None:
            for index, payload in enumerate(self.warm_up.payloads):
                payloads["warm_up", "payload", index] = payload
        if self.canary is not None and self.canary.payload is not None:
            payloads["canary", "payload"] = self.canary.payload
        yield from rules_of_targets(
            payloads,
            multi_model=any(container.multi_model for container in self.containers),
            direct=self.inference_mode == "Direct",
        )
        keeps_warm = self.warm_up is not None and self.warm_up.keep_warm is not None
        if keeps_warm and self.alarms.expect_traffic:
            yield (
                ("alarms", "expect_traffic"),
                silence_beside("warm_up.keep_warm", "expect_traffic beside keep_warm"),
            )

    def _rules_of_pools(self) -> Iterator[Finding]:
        """One to five pools, each with a type and a priority of its own."""
        pools = self.instance_pools
        if self._states("instance_pools"):
            yield from breaches(("instance_pools",), limits.INSTANCE_POOL_COUNT.check, len(pools))
        for part in ("instance_type", "priority"):
            values = [getattr(pool, part) for pool in pools]
            for index, value in enumerate(values):
                if value in values[:index]:
                    yield finding(
                        POOL_TYPE_TWICE,
                        *("instance_pools", index, part),
                        got=value,
                        allowed=f"another {part.replace('_', ' ')} than that of the pools before",
                    )

    def _rules_of_metrics(self) -> Iterator[Finding]:
        """Alarms watch what such an endpoint publishes."""
        stated, known = self.alarms, {metric.name for metric in metrics()}
        watched: dict[Place, str] = {
            (option,): metric
            for option, metric in METRIC_OF_ALARM.items()
            if stated._states(option)
        }
        watched |= {("anomalies", metric): metric for metric in stated.anomalies if metric in known}
        for _, containers, name in variants_and_first(self):
            multi_model = any(container.multi_model for container in containers)
            shape = endpoint_shape(len(containers), multi_model=multi_model)
            for place, metric in watched.items():
                yield from breaches(
                    ("alarms", *place),
                    lambda metric=metric, shape=shape, name=name: check_published(
                        metric_facts(metric), shape=shape, instance_types=[name]
                    ),
                )

    def _rules_of_guardrails(self) -> Iterator[Finding]:
        """A deployment with guardrails suits each type."""
        stated = self.deployment
        if stated is None:
            return
        back = stated.rollback_on_alarms is True
        for _, _, name in variants_and_first(self) if any(stated.ways) else ():
            yield from breaches(
                ("deployment",),
                lambda name=name: check_guardrails(stated.kind, [name], rolls_back=back),
            )

    def _rules_of_platforms(self) -> Iterator[Finding]:
        """Images are built for the instances' processors."""
        own = {variant.place for variant in further_variants(self) if variant.settings.containers}
        for place, containers, name in variants_and_first(self):
            for index, container in enumerate(containers):
                image = container.image
                if image.asset is not None and image.platform is not None:
                    stands = not place or place in own
                    yield from breaches(
                        (*place, "containers", index, "image", "platform")
                        if stands
                        else (*place, "instance_type"),
                        check_built_image_runs_on,
                        ARCHITECTURE_OF_PLATFORM[image.platform],
                        name,
                    )

    def _rules_of_rollback_alarms(self) -> Iterator[Finding]:
        """Every threshold on ModelLatency, and the one on errors, is a rollback alarm too."""
        stated = self.alarms.model_latency
        deployment = self.deployment
        back = deployment.rollback_on_alarms if deployment else None
        types = [name for _, _, name in variants_and_first(self)]
        if isinstance(stated, dict) and rolls_back(back, types):
            counts = {"each variant": len(stated) + 1}
            yield from breaches(("alarms", "model_latency"), check_rollback_alarms, counts)

    def _rules_of_volume_keys(self) -> Iterator[Finding]:
        """A key for volumes on types that have storage of their own."""
        if self.kms_key_arn is None or self.kms_key_with_local_storage:
            return
        for place, _, name in variants_and_first(self):
            facts = instance_facts(name)
            if facts and facts.local_storage_gb:
                yield finding(
                    KMS_WITH_LOCAL_STORAGE,
                    *(place or ("kms_key_arn",)),
                    got=f"{facts.name} with {facts.local_storage_gb} GB of local storage",
                    allowed="no key, or a type without local storage",
                    fix="Remove kms_key_arn, choose another type, or set "
                    "kms_key_with_local_storage: true if your account accepts it.",
                )

    def _rules_of_names(self) -> Iterator[Finding]:
        """Names of variants differ."""
        for variant in further_variants(self):
            if variant.name == self.variant_name:
                yield finding(
                    VARIANT_NAMED_TWICE,
                    *(("shadow", "name") if variant.shadow else variant.place),
                    got=variant.name,
                    allowed=f"another name than {self.variant_name}",
                )

    def _rules_of_shadow(self) -> Iterator[Finding]:
        """A shadow stands beside one variant."""
        if self.variants and self.shadow is not None:
            names = ", ".join([self.variant_name, *self.variants])
            yield finding(
                SHADOW_OF_ONE_VARIANT,
                "shadow",
                got=f"{self.shadow.name} beside {names}",
                allowed="variants, or a shadow",
            )

    def _rules_of_weights(self) -> Iterator[Finding]:
        """Somebody gets the requests."""
        if not any([self.variant_weight, *(variant.weight for variant in self.variants.values())]):
            yield finding(
                ALL_WEIGHTS_ZERO, "variant_weight", got="0 of all", allowed="one weight above 0"
            )

    def _rules_of_rolling(self) -> Iterator[Finding]:
        """A rolling update is of one variant."""
        if self.variants and self.deployment and self.deployment.rolling_percent is not None:
            yield finding(
                ROLLING_NEEDS_ONE_VARIANT,
                *("deployment", "rolling"),
                got=f"{1 + len(self.variants)} variants",
                allowed="1",
            )


def instances_in_update(largest: int, endpoint: EndpointSettings) -> int:
    """The most instances while a new version takes over a fleet of that size."""
    stated = endpoint.deployment
    return deployments.instances_in_update(largest, stated.rolling_percent if stated else None)
