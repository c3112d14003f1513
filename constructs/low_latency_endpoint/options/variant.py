"""Production variants: what a variant has beside its model and its numbers of instances; instance pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from ..errors import rule
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.limits import GUIDE
from ..facts.rules import PREFIX_SETTINGS
from ..facts.token_values import is_token
from ..report.numbers import plain_number, readable
from .argument_kinds import checked_arguments
from .option import Option, Options
from .rules import CUSTOM_AMI
from .scaling import InstanceCounts, ScalingOptions
from .throughput import MeasuredThroughput
from .written_to_s3 import CoreDump

if TYPE_CHECKING:
    from aws_cdk import Duration

_SOURCE = GUIDE + "realtime-endpoints-heterogeneous.html"
POOL_NOT_MEASURED = rule(
    "LLE432",
    "the throughput of an instance pool is missing",
    fix="Set tps_per_instance for each pool, from a load test on its type.",
    source=_SOURCE,
)
SIZED_FOR_ANOTHER = rule(
    "LLE433",
    "the throughput is not that of the slowest instance pool",
    fix="State the slowest pool's throughput: the fleet may consist of that instance type alone.",
    source=_SOURCE,
)


@dataclass(frozen=True, kw_only=True)
class PlannedPool(Options):
    """One of up to five instance types, tried by priority."""

    instance_type: Annotated[str, Option(limits.INSTANCE_TYPE, "ml.g6.xlarge")]
    """Instance type."""
    priority: Annotated[int, Option(limits.INSTANCE_POOL_PRIORITY, 1)]
    """1 is tried first, 5 last."""
    tps_per_instance: Annotated[float | None, Option(limits.TPS_PER_INSTANCE, 300)] = None
    """Requests per second that one instance of the type served; required with throughput, which
    states the slowest type's. Default: not measured."""
    own_model: bool = False
    """Whether another model serves on it, so that the plan's images are not its own."""

    @property
    def text(self) -> str:
        """The pool in words."""
        if self.tps_per_instance is None:
            return self.instance_type
        return f"{self.instance_type} ({readable(self.tps_per_instance)} TPS)"


def planned_for(pools: Sequence[PlannedPool]) -> PlannedPool:
    """The slowest pool, for which a plan is made; the first by priority where none is measured."""
    measured = [pool for pool in pools if pool.tps_per_instance is not None]
    if len(measured) < len(pools):
        return min(pools, key=lambda pool: pool.priority)
    return min(pools, key=lambda pool: (pool.tps_per_instance or 0, pool.priority))


def check_pools(
    pools: Sequence[PlannedPool], instance_type: str, throughput: MeasuredThroughput | None
) -> None:
    """Raise unless type and throughput are those of the slowest pool."""
    if not pools:
        return
    missing = [pool.instance_type for pool in pools if pool.tps_per_instance is None]
    if throughput is not None and missing:
        raise POOL_NOT_MEASURED.error(
            got=f"no tps_per_instance of {', '.join(missing)}",
            allowed="one for each pool",
            where="instance_pools",
        )
    slowest = planned_for(pools)
    if instance_type != slowest.instance_type or (
        throughput is not None and throughput.tps_per_instance != slowest.tps_per_instance
    ):
        stated = f", {plain_number(throughput.tps_per_instance)} TPS" if throughput else ""
        raise SIZED_FOR_ANOTHER.error(
            got=f"{instance_type}{stated}", allowed=slowest.text, where="throughput"
        )


@dataclass(frozen=True, kw_only=True)
class PrefixAware(Options):
    """How requests that share a prefix reach the same instance."""

    prefix_length: Annotated[int, Option(limits.PREFIX_LENGTH, 1024)]
    """Bytes at the start of the request body to compare, 1024 to 65536; put constant parts first.
    """
    concurrency_threshold: Annotated[int, Option(limits.CONCURRENCY_THRESHOLD, 16)]
    """Requests in flight at which routing skips an instance."""


@dataclass(frozen=True, kw_only=True)
class PrefixAwareRouting(Options):
    """Routing by the start of the request."""

    prefix_aware: Annotated[
        PrefixAware, Option(example={"prefix_length": 1024, "concurrency_threshold": 16})
    ]
    """Send requests that share a prefix to the same instance, which caches the prefix."""


@checked_arguments
@dataclass(frozen=True)
class RoutingStrategy:
    """How SageMaker chooses the instance for a request.

    The plan takes ``LEAST_OUTSTANDING_REQUESTS``. AWS: requests that take hundreds of milliseconds
    to minutes gain from it, shorter ones may benefit more from ``RANDOM``; ``low-latency
    compare-routing`` measures both.

    Parameters
    ----------
    name : str
        SageMaker's name of the strategy, such as ``RANDOM``.
    prefix_length : int, optional
        Bytes at the start of the request body that PREFIX_AWARE compares; by default none.
    concurrency_threshold : int, optional
        Requests in flight at which PREFIX_AWARE skips an instance; by default none.
    is_custom : bool
        Whether this library may not know the name; by default no.

    Raises
    ------
    ConfigurationError
        LLE410 for a strategy that CloudFormation cannot deploy (KV_AWARE exists in the API only),
        LLE411, LLE412, LLE423 for the settings of PREFIX_AWARE.

    Examples
    --------
    >>> from low_latency_endpoint import RoutingStrategy
    >>> RoutingStrategy.prefix_aware(prefix_length=1024, concurrency_threshold=16).name
    'PREFIX_AWARE'
    """

    name: str
    prefix_length: int | None = None
    concurrency_threshold: int | None = None
    is_custom: bool = False

    #: In a settings file.
    written: ClassVar[Any] = Literal["least_outstanding_requests", "random"] | PrefixAwareRouting

    RANDOM: ClassVar[RoutingStrategy]
    LEAST_OUTSTANDING_REQUESTS: ClassVar[RoutingStrategy]

    def __post_init__(self) -> None:
        if not self.is_custom and not is_token(self.name):
            limits.ROUTING_STRATEGY.check(self.name, "RoutingStrategy, name")
        settings = (self.prefix_length, self.concurrency_threshold)
        wanted = self.name == "PREFIX_AWARE"
        if any((value is not None) != wanted for value in settings):
            raise PREFIX_SETTINGS.error(
                got=f"{self.name}, prefix_length={self.prefix_length}, "
                f"concurrency_threshold={self.concurrency_threshold}",
                allowed="both settings with PREFIX_AWARE, none with another strategy",
                where="RoutingStrategy",
            )
        if self.prefix_length is not None and self.concurrency_threshold is not None:
            PrefixAware(
                prefix_length=self.prefix_length, concurrency_threshold=self.concurrency_threshold
            )

    @classmethod
    def prefix_aware(cls, *, prefix_length: int, concurrency_threshold: int) -> RoutingStrategy:
        """Send requests with the same beginning to the same instance, whose cache then helps.

        Args:
            prefix_length: Bytes at the start of the request body to compare, 1024 to 65536; put constant parts first.
            concurrency_threshold: Requests in flight at which routing skips an instance.
        """
        return cls("PREFIX_AWARE", prefix_length, concurrency_threshold)

    @classmethod
    def custom(cls, name: str) -> RoutingStrategy:
        """A strategy that AWS added since; CloudFormation decides whether it takes it."""
        return cls(name, is_custom=True)

    @classmethod
    def _of_file(cls, stated: str | PrefixAwareRouting) -> RoutingStrategy:
        """The strategy that a settings file states."""
        if isinstance(stated, str):
            return cls(stated.upper())
        aware = stated.prefix_aware
        return cls("PREFIX_AWARE", aware.prefix_length, aware.concurrency_threshold)

    @property
    def in_file(self) -> Any:
        """As a settings file has it."""
        if self.prefix_length is None:
            return self.name.lower()
        stated = {name: getattr(self, name) for name in ("prefix_length", "concurrency_threshold")}
        return {"prefix_aware": stated}


RoutingStrategy.RANDOM = RoutingStrategy("RANDOM")
RoutingStrategy.LEAST_OUTSTANDING_REQUESTS = RoutingStrategy("LEAST_OUTSTANDING_REQUESTS")


@dataclass(frozen=True, kw_only=True)
class CustomAmi(Options):
    """A version of the machine image that AWS added since."""

    custom: Annotated[str, Option(CUSTOM_AMI, "al2023-ami-sagemaker-inference-gpu-4-1")]
    """Its name; CloudFormation decides whether it takes it."""


@checked_arguments
@dataclass(frozen=True)
class InferenceAmi:
    """The machine image (driver, CUDA) of the instances.

    Parameters
    ----------
    version : str
        Such as ``al2-ami-sagemaker-inference-gpu-2``.
    is_custom : bool
        Whether this library may not know the version; by default no.

    Raises
    ------
    ConfigurationError
        LLE409 for an unknown version, unless it comes through :meth:`custom`.
    """

    version: str
    is_custom: bool = False

    #: In a settings file.
    written: ClassVar[Any] = Annotated[str, Option(limits.INFERENCE_AMI)] | CustomAmi

    def __post_init__(self) -> None:
        if not self.is_custom and not is_token(self.version):
            limits.INFERENCE_AMI.check(self.version, "InferenceAmi, version")

    @classmethod
    def custom(cls, version: str) -> InferenceAmi:
        """A version that AWS added since; CloudFormation decides whether it takes it."""
        return cls(version, is_custom=True)

    @classmethod
    def _of_file(cls, stated: str | CustomAmi) -> InferenceAmi:
        """The version that a settings file states."""
        return cls(stated) if isinstance(stated, str) else cls.custom(stated.custom)

    @property
    def in_file(self) -> Any:
        """As a settings file has it."""
        return {"custom": self.version} if self.is_custom else self.version


@dataclass(frozen=True, kw_only=True)
class InstanceOptions(Options):
    """The instances of a variant, and how requests find them."""

    routing: Annotated[RoutingStrategy | None, Option(example="least_outstanding_requests")] = None
    """How SageMaker chooses an instance for a request. Default: least_outstanding_requests.

    A :class:`ProductionVariant` by itself has SageMaker's own default, RANDOM: the template has no
    RoutingConfig. A :class:`FurtherVariant` has the first variant's.
    """
    startup_health_check_timeout: Annotated[
        Duration | timedelta | str | None, Option(limits.CONTAINER_STARTUP_SECONDS, "5m")
    ] = None
    """How long a container may take to answer its first ping, 60s to 1h. Default: SageMaker's; for
    a model of the Hugging Face Hub by its size.

    A :class:`FurtherVariant` has the first variant's by default.
    """
    model_data_download_timeout: Annotated[
        Duration | timedelta | str | None, Option(limits.MODEL_DOWNLOAD_SECONDS, "5m")
    ] = None
    """How long the model's download may take, 60s to 1h; raise it for models over 40 GB. Default:
    SageMaker's.

    A :class:`FurtherVariant` has the first variant's by default.
    """
    instance_provision_timeout: Annotated[
        Duration | timedelta | str | None, Option(limits.PROVISION_SECONDS, "10m")
    ] = None
    """How long SageMaker looks for instances, 5m to 1h. Default: SageMaker's.

    A :class:`FurtherVariant` has the first variant's by default.
    """
    volume_size_gib: Annotated[int | None, Option(limits.VOLUME_SIZE, 64)] = None
    """Size of each instance's EBS volume, 1 to 512 GiB, for types without local storage. Default:
    SageMaker's.

    A :class:`FurtherVariant` has the first variant's by default, on its instance type.
    """
    inference_ami: Annotated[
        InferenceAmi | None, Option(example="al2023-ami-sagemaker-inference-gpu-4-1")
    ] = None
    """Machine image of the instances, which sets the driver; {custom: name} for one that is not
    listed here. Default: for CUDA 13 images the one they need, else SageMaker's.

    A :class:`FurtherVariant` has the first variant's by default, on its instance type.
    """
    ssm_access: Annotated[bool, Option()] = False
    """Let operators open shells on the instances through Systems Manager. Default: false."""
    capacity_reservation_arn: Annotated[
        str | None,
        Option(
            limits.CAPACITY_RESERVATION_ARN,
            "arn:aws:sagemaker:us-east-1:123456789012:training-plan/mine",
        ),
    ] = None
    """ML capacity reservation; without free capacity in it, launches fail. Default: on demand."""


@dataclass(frozen=True, kw_only=True)
class FurtherOptions(InstanceOptions):
    """A variant beside the first; an option that it leaves out is the first variant's."""

    inherited: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            (
                "routing",
                "startup_health_check_timeout",
                "model_data_download_timeout",
                "instance_provision_timeout",
                "ssm_access",
            ),
            "the first variant's",
        ),
        "volume_size_gib": "the first variant's, on its instance type",
        "inference_ami": "the first variant's, on its instance type; else as for the endpoint",
    }

    ssm_access: Annotated[bool | None, Option()] = None  # type: ignore[assignment]
    """Let operators open shells on its instances through Systems Manager. Default: the first
    variant's."""
    tps_per_instance: Annotated[float | None, Option(limits.TPS_PER_INSTANCE, 240)] = None
    """Requests per second that one of its instances served. Default: the first variant's, with a
    warning for another model or instance type."""
    safety_factor: Annotated[float | None, Option(limits.SAFETY_FACTOR, 0.45)] = None
    """Share of that throughput that scaling targets. Default: the first variant's."""
    concurrency_per_instance: Annotated[
        float | None, Option(limits.CONCURRENCY_PER_INSTANCE, 24)
    ] = None
    """Language models: requests in flight on one of its instances at that limit. Default: the first
    variant's; not known with another instance type or its own tps_per_instance."""
    instances: Annotated[InstanceCounts | None, Option(example={"min": 2, "max": 4})] = None
    """Instance counts. Default: derived from its share of the throughput."""
    scaling: Annotated[ScalingOptions | None, Option(example={"scale_in_cooldown": "5m"})] = None
    """How its number of instances follows its load. Default: as the first variant, without schedule
    and steps."""


def options_beside(
    further: FurtherOptions, first: InstanceOptions, *, same_type: bool
) -> dict[str, Any]:
    """Those of a variant beside the first, with the first one's where they are left out."""
    found = {}
    for name in (field.name for field in fields(InstanceOptions)):
        own, of_type = getattr(further, name), name in ("volume_size_gib", "inference_ami")
        inherits = own is None and name in further.inherited and (same_type or not of_type)
        found[name] = getattr(first, name) if inherits else own
    return found


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class VariantOptions(InstanceOptions):
    """A production variant beside its model, its type and its numbers of instances.

    :class:`ProductionVariant` has them all, and :class:`LowLatencyEndpoint` hands them to its own.

    Raises:
        ConfigurationError: LLE402, LLE404, LLE406 to LLE408, LLE419 for values out of range,
            LLE801 and LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import RoutingStrategy, VariantOptions
        >>> VariantOptions(routing=RoutingStrategy.RANDOM, volume_size_gib=64).name
        'primary'
    """

    name: Annotated[str, Option(limits.VARIANT_NAME, "primary")] = "primary"
    """Keep it over updates: guarded deployments need the same variant name. Default: primary."""
    weight: Annotated[float, Option(limits.VARIANT_WEIGHT, 9)] = 1.0
    """Share of the requests relative to those of the other variants; 0 gets none but TargetVariant
    calls. Default: 1."""
    core_dump: CoreDump | None = None
    """Where a container that crashes leaves its core dump. Default: nowhere."""
