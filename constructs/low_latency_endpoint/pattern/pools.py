"""One instance type or several pools, as the plan and the variant take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..facts.limits import INSTANCE_POOL_COUNT
from ..hosting.instance_type import InstanceType
from ..hosting.variant import InstancePool
from ..options.variant import PlannedPool, planned_for


def planned_pools(placed: InstanceType | Sequence[InstancePool]) -> tuple[PlannedPool, ...]:
    """The pools as the plan takes them; none for a single type."""
    if isinstance(placed, InstanceType):
        return ()
    INSTANCE_POOL_COUNT.check(len(placed), "instance_type")
    return tuple(
        PlannedPool(
            instance_type=each.instance_type.name,
            priority=each.priority,
            tps_per_instance=each.tps_per_instance,
            own_model=each.model is not None,
        )
        for each in placed
    )


def planned_type(placed: InstanceType | Sequence[InstancePool]) -> InstanceType:
    """The type that the plan is made for: the slowest of several."""
    pools = planned_pools(placed)
    return (
        placed
        if isinstance(placed, InstanceType)
        else InstanceType(planned_for(pools).instance_type)
    )


def types_of(placed: InstanceType | Sequence[InstancePool]) -> list[str]:
    """The types on which the variant's own model runs: not those of pools with another."""
    if isinstance(placed, InstanceType):
        return [placed.name]
    return [each.instance_type.name for each in placed if each.model is None]


def of_variant(placed: InstanceType | Sequence[InstancePool]) -> dict[str, Any]:
    """The argument of :class:`ProductionVariant`."""
    if isinstance(placed, InstanceType):
        return {"instance_type": placed}
    return {"instance_pools": placed}
