"""Utilization: 100 percent is one vCPU or one GPU, not the instance."""

from __future__ import annotations

from .instance_types import instance_facts
from .metrics import metric_facts


def highest_utilization(metric: str, instance_type: str) -> float | None:
    """Highest value of a utilization metric on one instance; ``None`` when the type is unknown."""
    metric_known = metric_facts(metric)
    if not (metric_known.per_vcpu or metric_known.per_gpu):
        return 100.0
    facts = instance_facts(instance_type)
    if facts is None:
        return None
    units = facts.vcpus if metric_known.per_vcpu else facts.accelerator_count
    return None if units is None else units * 100.0
