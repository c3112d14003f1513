"""Several instance types behind one variant: a plan is made for the slowest of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..errors import rule
from ..errors.frozen import dataclass
from ..facts import limits
from ..facts.limits import GUIDE
from ..report.numbers import plain_number, readable
from .effects import CONFIGURATION, PLAN, Touched
from .option import Option, Options
from .throughput import MeasuredThroughput

_SOURCE = GUIDE + "realtime-endpoints-heterogeneous.html"
POOL_NOT_MEASURED = rule(
    "LLE432",
    "the throughput of an instance pool is missing",
    fix="State tps_per_instance for each pool, from a load test on its type.",
    source=_SOURCE,
)
SIZED_FOR_ANOTHER = rule(
    "LLE433",
    "the throughput is not that of the slowest instance pool",
    fix="State that of the slowest pool: the fleet may consist of its type alone.",
    source=_SOURCE,
)


@dataclass(frozen=True, kw_only=True)
class PlannedPool(Options):
    """One of up to five instance types, tried by priority.

    Args:
        instance_type: Instance type.
        priority: 1 is tried first, 5 last.
        tps_per_instance: Requests per second that one instance of the type held; needed with throughput, whose own is that of the slowest. Default: not measured.
        own_model: Whether another model serves on it, so that the plan's images are not its own.
    """

    instance_type: Annotated[str, Option(limits.INSTANCE_TYPE, "ml.g6.xlarge")]
    priority: Annotated[
        int, Option(limits.INSTANCE_POOL_PRIORITY, 1, touches=Touched((CONFIGURATION,)))
    ]
    tps_per_instance: Annotated[
        float | None, Option(limits.TPS_PER_INSTANCE, 300, touches=Touched((PLAN,)))
    ] = None
    own_model: bool = False

    @property
    def text(self) -> str:
        """The pool in words."""
        if self.tps_per_instance is None:
            return self.instance_type
        return f"{self.instance_type} ({readable(self.tps_per_instance)} TPS)"


def planned_for(pools: Sequence[PlannedPool]) -> PlannedPool:
    """The slowest pool, for which a plan is made; the first by priority where none is measured."""
    measured = [each for each in pools if each.tps_per_instance is not None]
    if len(measured) < len(pools):
        return min(pools, key=lambda each: each.priority)
    return min(pools, key=lambda each: (each.tps_per_instance or 0, each.priority))


def check_pools(
    pools: Sequence[PlannedPool], instance_type: str, throughput: MeasuredThroughput | None
) -> None:
    """Raise unless type and throughput are those of the slowest pool."""
    if not pools:
        return
    missing = [each.instance_type for each in pools if each.tps_per_instance is None]
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
