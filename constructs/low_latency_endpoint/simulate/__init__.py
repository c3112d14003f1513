"""What would happen: instances behind a router, simulated request by request; loaded lazily."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..plan.recorded_traffic import read_recorded_traffic, shape_of_counts
    from ..plan.traffic_shapes import Shape, shape, shapes
    from .estimates import Estimate
    from .fleet_changes import CapacityLimits, InstanceStart, Rollout, TargetTracking, ZoneOutage
    from .replication import Replication
    from .scenario import Scenario
    from .service_laws import Constant, Empirical, Exponential, Lognormal
    from .simulating import Comparison, SimulationResult, compare, simulate
    from .traffic import ArrivalTrace, ClosedLoop, OpenLoop, ShapedLoop

__all__ = [
    "ArrivalTrace",
    "CapacityLimits",
    "ClosedLoop",
    "Comparison",
    "Constant",
    "Empirical",
    "Estimate",
    "Exponential",
    "InstanceStart",
    "Lognormal",
    "OpenLoop",
    "Replication",
    "Rollout",
    "Scenario",
    "Shape",
    "ShapedLoop",
    "SimulationResult",
    "TargetTracking",
    "ZoneOutage",
    "compare",
    "read_recorded_traffic",
    "shape",
    "shape_of_counts",
    "shapes",
    "simulate",
]

_MODULES = (
    ".plan.recorded_traffic",
    ".plan.traffic_shapes",
    "estimates",
    "service_laws",
    "traffic",
    "fleet_changes",
    "scenario",
    "replication",
    "simulating",
)


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            found = vars(importlib.import_module(f".{module}", __name__)).get(name)
            if found is not None:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
