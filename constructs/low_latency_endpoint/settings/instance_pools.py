"""Settings of instance pools: several instance types that a variant may run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ..options.effects import CONFIGURATION, PLAN, Touched
from ..options.option import Option, Options
from ..plan import limits
from ..plan.instance_pools import PlannedPool


@dataclass(frozen=True, kw_only=True)
class InstancePoolSettings(Options):
    """One of up to five instance types, tried by priority.

    Args:
        instance_type: Instance type.
        priority: 1 is tried first, 5 last.
        tps_per_instance: Requests per second that one instance of the type held; needed with throughput, whose own is that of the slowest. Default: not measured.
    """

    instance_type: Annotated[str, Option(limits.INSTANCE_TYPE, "ml.g6.xlarge")]
    priority: Annotated[
        int, Option(limits.INSTANCE_POOL_PRIORITY, 1, touches=Touched((CONFIGURATION,)))
    ]
    tps_per_instance: Annotated[
        float | None, Option(limits.TPS_PER_INSTANCE, 300, touches=Touched((PLAN,)))
    ] = None

    @property
    def planned(self) -> PlannedPool:
        """The pool as the plan takes it."""
        return PlannedPool(
            instance_type=self.instance_type,
            priority=self.priority,
            tps_per_instance=self.tps_per_instance,
        )
