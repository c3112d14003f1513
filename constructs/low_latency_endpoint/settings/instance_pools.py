"""Settings of instance pools: several instance types that a variant may run on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from ..errors.findings import Finding, breaches, finding
from ..plan import limits
from ..plan.instance_pools import PlannedPool
from ..plan.rules import POOL_TYPE_TWICE
from .fields import Limited
from .model_base import SettingsModel, items_of, mapping_of, optional


class InstancePoolSettings(SettingsModel):
    """One of up to five instance types, tried by priority."""

    instance_type: Annotated[str, Limited(limits.INSTANCE_TYPE)] = Field(
        examples=["ml.g6.xlarge"], description="Instance type."
    )
    priority: Annotated[int, Limited(limits.INSTANCE_POOL_PRIORITY)] = Field(
        examples=[1], description="1 is tried first, 5 last."
    )
    tps_per_instance: Annotated[float, Limited(limits.TPS_PER_INSTANCE)] | None = optional(
        "Requests per second that one instance of the type held; needed with throughput, whose "
        "own is that of the slowest. Default: not measured.",
        example=300,
    )

    @property
    def planned(self) -> PlannedPool:
        """The pool as the plan takes it."""
        return PlannedPool(
            instance_type=self.instance_type,
            priority=self.priority,
            tps_per_instance=self.tps_per_instance,
        )


def stated_pools(endpoint: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The pools as mappings; empty ones where they are something else."""
    return [mapping_of({"pool": each}, "pool") for each in items_of(endpoint, "instance_pools")]


def pool_checks(given: Mapping[str, Any]) -> Iterator[Finding]:
    """One to five pools, each with a type and a priority of its own."""
    pools = stated_pools(given)
    if "instance_pools" in given and isinstance(given["instance_pools"], (list, tuple)):
        yield from breaches(("instance_pools",), limits.INSTANCE_POOL_COUNT.check, len(pools))
    for part in ("instance_type", "priority"):
        seen: list[Any] = []
        for index, pool in enumerate(pools):
            if pool.get(part) in seen:
                yield finding(
                    POOL_TYPE_TWICE,
                    *("instance_pools", index, part),
                    got=pool[part],
                    allowed=f"another {part.replace('_', ' ')} than that of the pools before",
                )
            if part in pool:
                seen.append(pool[part])
