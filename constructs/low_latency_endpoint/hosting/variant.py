"""Production variants: one model on one instance type behind the endpoint; and what metrics, alarms
and scaling know of a variant, wherever it was made."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal

from aws_cdk import aws_sagemaker as sagemaker

from ..errors.frozen import dataclass
from ..facts.images import needed_inference_ami
from ..facts.limit_kinds import Range
from ..facts.limits import (
    CONTAINER_STARTUP_SECONDS,
    INITIAL_INSTANCE_COUNT,
    INSTANCE_POOL_COUNT,
    INSTANCE_POOL_PRIORITY,
    INSTANCE_TYPE,
    MAX_INSTANCES,
    MODEL_DOWNLOAD_SECONDS,
    PROVISION_SECONDS,
    TPS_PER_INSTANCE,
    VARIANT_NAME,
)
from ..facts.rules import POOL_TYPE_TWICE, TYPE_XOR_POOLS
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..options.variant import VariantOptions
from ..synthesis.template_values import check, check_seconds
from .instance_type import InstanceType, instance_type_of
from .model_interface import IModel

if TYPE_CHECKING:
    from aws_cdk import Duration


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class VariantAttributes:
    """What is known of a variant, for :meth:`Endpoint.from_endpoint_attributes`.

    Raises:
        ConfigurationError: LLE402 for the name, LLE403 and LLE106 for the counts,
            LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import InstanceType, VariantAttributes
        >>> VariantAttributes(name="AllTraffic", instance_types=[InstanceType("ml.g5.xlarge")]).shape
        'single-model'
    """

    name: str
    """The SageMaker Python SDK calls it ``AllTraffic``, this library ``primary``."""
    instance_types: Sequence[InstanceType] = ()
    """By default not known: utilization is then alarmed on as if there were one vCPU and one GPU,
    with a warning."""
    shape: Literal["single-model", "multi-model", "pipeline", "inference-component"] = (
        "single-model"
    )
    """What it serves, which decides which metrics there are; by default a single model."""
    instance_count: int | None = None
    """Its initial number of instances, which a scaling range has to hold; by default not known."""
    max_instances: int | None = None
    """The most instances that SageMaker scales it to by itself, of a variant that holds inference
    components; by default not known."""
    network: ZoneAlignedNetwork | None = None
    """Where its instances run: then scaling is held against the room there, and the zones of
    ``zone_imbalance`` are known. By default neither."""

    def __post_init__(self) -> None:
        check(VARIANT_NAME, self.name)
        check(INITIAL_INSTANCE_COUNT, self.instance_count, self.name)
        check(MAX_INSTANCES, self.max_instances, self.name)


@checked_arguments
@dataclass(frozen=True)
class InstancePool:
    """One of up to five instance types that a variant may run on, tried by priority.

    Raises:
        ConfigurationError: LLE414 for another priority, LLE603 for the throughput,
            LLE807 for a bare name.
    """

    instance_type: InstanceType
    """What the instances are, such as ``InstanceType("ml.m5.xlarge")``."""
    priority: int
    """1 is tried first, 5 last."""
    model: IModel | None = None
    """Serves on this type in place of the variant's model, such as one compiled for its
    accelerator. By default the variant's model does."""
    tps_per_instance: float | None = None
    """What an instance of the type held within the latency target in a load test;
    :class:`LowLatencyEndpoint` plans for the slowest. Nothing of it is deployed."""

    def __post_init__(self) -> None:
        check(INSTANCE_POOL_PRIORITY, self.priority)
        check(TPS_PER_INSTANCE, self.tps_per_instance)


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class ProductionVariant(VariantOptions):
    """One model on one instance type behind the endpoint.

    Such as ``ProductionVariant(model=model, instance_type="ml.m5.xlarge")``.

    Raises:
        ConfigurationError: LLE402 to LLE425, see ``docs/reference/errors.md``.
    """

    model: IModel
    """A :class:`Model`, or one imported; or a :class:`ComponentHost`, for a variant that holds
    inference components."""
    instance_type: InstanceType | str | None = None
    """What the instances are, such as ``InstanceType("ml.m5.xlarge")``."""
    instance_pools: Sequence[InstancePool] = ()
    """Instead of ``instance_type``: up to five types, tried by priority."""
    initial_instance_count: int = 2
    """Instances at the first deployment, by default 2 so that two zones serve; scaling owns the
    number afterwards."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check(INITIAL_INSTANCE_COUNT, self.initial_instance_count, self.name)
        if self.instance_type is not None:
            stated = self.instance_type
            check(INSTANCE_TYPE, str(stated), f"{type(self).__name__} {self.name}, instance_type")
        if (self.instance_type is None) == (not self.instance_pools):
            raise TYPE_XOR_POOLS.error(
                got="both" if self.instance_type else "neither",
                allowed="instance_type or instance_pools",
                where=self.name,
            )
        if self.instance_pools:
            check(INSTANCE_POOL_COUNT, len(self.instance_pools), self.name)
            for part in ("instance_type", "priority"):
                values = [str(getattr(pool, part)) for pool in self.instance_pools]
                if len(set(values)) < len(values):
                    raise POOL_TYPE_TWICE.error(
                        got=", ".join(values),
                        allowed=f"pools that differ in {part}",
                        where=self.name,
                    )

    @property
    def instance_types(self) -> tuple[InstanceType, ...]:
        """The instance types this variant may run on."""
        if self.instance_type is not None:
            return (instance_type_of(self.instance_type),)
        return tuple(pool.instance_type for pool in self.instance_pools)

    @property
    def placements(self) -> tuple[tuple[InstanceType, IModel], ...]:
        """The instance types this variant may run on, each with the model that it serves there."""
        if self.instance_type is not None:
            return ((instance_type_of(self.instance_type), self.model),)
        return tuple((pool.instance_type, pool.model or self.model) for pool in self.instance_pools)

    @property
    def models(self) -> tuple[IModel, ...]:
        """The models that this variant may serve."""
        return (self.model, *(pool.model for pool in self.instance_pools if pool.model))

    @property
    def attributes(self) -> VariantAttributes:
        """The variant as metrics, alarms and scaling see it."""
        return VariantAttributes(
            name=self.name,
            instance_types=self.instance_types,
            shape=self.model.shape,  # type: ignore[arg-type]
            instance_count=self.initial_instance_count,
            max_instances=self.model.max_instances,
            network=self.model.network,
        )

    @property
    def inference_ami_version(self) -> str | None:
        """The inference AMI of the template: yours, or the one that the images need."""
        if self.inference_ami is not None:
            return self.inference_ami.version
        asked = needed_inference_ami(
            [
                ([image.reference for image in model.images], instance_type.name)
                for instance_type, model in self.placements
            ]
        )
        amis_of_hub = (serving.container.inference_ami for serving in self.model.hub_servings)
        return asked or next((ami for ami in amis_of_hub if ami), None)

    def to_cfn(self) -> sagemaker.CfnEndpointConfig.ProductionVariantProperty:
        """The variant as CloudFormation takes it; timeouts are checked here, in seconds.

        Without :attr:`newer_properties`.
        """
        config = sagemaker.CfnEndpointConfig
        optional: dict[str, Any] = {
            "instance_type": str(self.instance_type) if self.instance_type else None,
            "container_startup_health_check_timeout_in_seconds": self._seconds(
                self.startup_health_check_timeout, "start_timeout", CONTAINER_STARTUP_SECONDS
            ),
            "model_data_download_timeout_in_seconds": self._seconds(
                self.model_data_download_timeout, "download_timeout", MODEL_DOWNLOAD_SECONDS
            ),
            "volume_size_in_gb": self.volume_size_gib,
            "enable_ssm_access": True if self.ssm_access else None,
            "routing_config": config.RoutingConfigProperty(routing_strategy=self.routing.name)
            if self.routing
            else None,
        }
        return config.ProductionVariantProperty(
            variant_name=self.name,
            model_name=self.model.model_name,
            initial_instance_count=self.initial_instance_count,
            initial_variant_weight=self.weight,
            **{name: value for name, value in optional.items() if value is not None},
        )

    def _seconds(
        self, stated: Duration | timedelta | str | None, name: str, limit: Range
    ) -> int | None:
        """A time-out as stated; else what a model of the Hub asks for by its size."""
        if stated is not None:
            return check_seconds(limit, stated, self.name)
        asked = [
            getattr(container, name).total_seconds()
            for model in self.models
            for serving in model.hub_servings
            for container in serving.containers
        ]
        return int(max(asked)) if asked else None

    @property
    def newer_properties(self) -> dict[str, Any]:
        """Properties by their CloudFormation names that older releases of aws-cdk-lib do not know.

        They go into the template by override, so that a release is as good as CloudFormation.
        """
        routing, dump = self.routing, self.core_dump
        properties: dict[str, Any] = {
            "InferenceAmiVersion": self.inference_ami_version,
            "InstancePools": [_pool(pool) for pool in self.instance_pools] or None,
            "VariantInstanceProvisionTimeoutInSeconds": check_seconds(
                PROVISION_SECONDS, self.instance_provision_timeout, self.name
            ),
            **self.model.variant_properties,
        }
        if routing is not None and routing.prefix_length is not None:
            properties["RoutingConfig.PrefixAwareRoutingConfig"] = {
                "PrefixLength": routing.prefix_length,
                "ConcurrencyThreshold": routing.concurrency_threshold,
            }
        if self.capacity_reservation_arn is not None:
            properties["CapacityReservationConfig"] = {
                "CapacityReservationPreference": "capacity-reservations-only",
                "MlReservationArn": self.capacity_reservation_arn,
            }
        if dump is not None:
            key = {"KmsKeyId": dump.key.key_arn} if dump.key else {}
            properties["CoreDumpConfig"] = {"DestinationS3Uri": dump.s3, **key}
        return {name: value for name, value in properties.items() if value is not None}


def _pool(pool: InstancePool) -> dict[str, Any]:
    properties = {"InstanceType": pool.instance_type.name, "Priority": pool.priority}
    return (
        properties
        if pool.model is None
        else {**properties, "ModelNameOverride": pool.model.model_name}
    )
