"""A variant as metrics, alarms, dashboards and scaling see it, wherever it was made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from ..errors.frozen import dataclass
from ..facts.limits import INITIAL_INSTANCE_COUNT, MAX_INSTANCES, VARIANT_NAME
from ..network.zone_aligned_network import ZoneAlignedNetwork
from ..options.argument_kinds import checked_arguments
from ..synthesis.template_values import check
from .instance_type import InstanceType


@checked_arguments
@dataclass(frozen=True, kw_only=True)
class VariantAttributes:
    """What is known of a variant, for :meth:`Endpoint.from_endpoint_attributes`.

    Args:
        name: The SageMaker Python SDK calls it ``AllTraffic``, this library ``primary``.
        instance_types: By default not known: utilization is then alarmed on as if there were one vCPU and one GPU, with a warning.
        shape: What it serves, which decides which metrics there are; by default a single model.
        instance_count: Its initial number of instances, which a scaling range has to hold; by default not known.
        max_instances: The most instances that SageMaker scales it to by itself, of a variant that holds inference components; by default not known.
        network: Where its instances run: then scaling is held against the room there, and the zones of ``zone_imbalance`` are known. By default neither.

    Raises:
        ConfigurationError: LLE402 for the name, LLE403 and LLE106 for the counts,
            LLE807 for values of another kind.

    Examples:
        >>> from low_latency_endpoint import InstanceType, VariantAttributes
        >>> VariantAttributes(name="AllTraffic", instance_types=[InstanceType("ml.g5.xlarge")]).shape
        'single-model'
    """

    name: str
    instance_types: Sequence[InstanceType] = ()
    shape: Literal["single-model", "multi-model", "pipeline", "inference-component"] = (
        "single-model"
    )
    instance_count: int | None = None
    max_instances: int | None = None
    network: ZoneAlignedNetwork | None = None

    def __post_init__(self) -> None:
        check(VARIANT_NAME, self.name)
        check(INITIAL_INSTANCE_COUNT, self.instance_count, self.name)
        check(MAX_INSTANCES, self.max_instances, self.name)
