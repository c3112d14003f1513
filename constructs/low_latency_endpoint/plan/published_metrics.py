"""Which metrics an endpoint publishes, by what it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ..errors import rule
from ..facts.instance_types import instance_facts
from ..facts.limit_kinds import Range
from ..facts.metrics import MetricFacts, metric_facts
from ..facts.rules import METRIC_NOT_PUBLISHED

_PLAIN = ("EndpointName", "VariantName")
_ENHANCED = frozenset({"InstanceId", "ContainerId", "AcceleratorId"})
# Which of these an endpoint publishes is up to its callers, not to how it is made.
_CALLERS_DECIDE = "bidirectional-streaming"

METRICS_IN_ALARM = Range(
    rule(
        "LLE389",
        "an alarm would watch more metrics than CloudWatch allows",
        fix="Leave zone_imbalance out: it needs a metric for each client zone.",
        source="/AmazonCloudWatch/latest/monitoring/Create-alarm-on-metric-math-expression.html",
    ),
    "the number of metrics in an alarm",
    1,
    10,
    "metrics",
)

#: The metrics of alarms that not every endpoint can have, by the alarms' options.
METRIC_OF_ALARM: Mapping[str, str] = MappingProxyType(
    {
        "cpu_utilization": "CPUUtilization",
        "memory_utilization": "MemoryUtilization",
        "disk_utilization": "DiskUtilization",
        "gpu_utilization": "GPUUtilization",
        "gpu_memory_utilization": "GPUMemoryUtilization",
        "cache_miss_rate": "ModelCacheHit",
        "model_loading_wait": "ModelLoadingWaitTime",
    }
)


def endpoint_shape(containers: int, *, multi_model: bool) -> str:
    """``single-model``, ``multi-model`` or ``pipeline``, which decides what is published."""
    if multi_model:
        return "multi-model"
    return "pipeline" if containers > 1 else "single-model"


def check_published(
    facts: MetricFacts,
    *,
    shape: str,
    instance_types: Iterable[str],
    further: frozenset[str] = frozenset(),
    enhanced: bool = False,
    of: str = "",
    where: str = "",
) -> None:
    """Raise unless an endpoint publishes a metric with these dimensions."""
    reason = _why_not(facts, shape, instance_types, further, enhanced)
    if reason:
        raise METRIC_NOT_PUBLISHED.error(
            got=facts.name + (f" of {of}" if of else ""), allowed=reason, where=where
        )


def _why_not(
    facts: MetricFacts,
    shape: str,
    instance_types: Iterable[str],
    further: frozenset[str],
    enhanced: bool,
) -> str:
    """Why it is not published; empty if it is."""
    if shape not in facts.shapes and _CALLERS_DECIDE not in facts.shapes:
        return f"published by {', '.join(facts.shapes)} endpoints; this one is {shape}"
    if facts.name.startswith("GPU") and not _has_gpu(instance_types):
        return "published by instances with NVIDIA GPUs"
    known = {
        frozenset(names) - set(_PLAIN) for names in facts.dimensions if set(_PLAIN) <= set(names)
    }
    if further not in known:
        sets = sorted("+".join(sorted(names)) for names in known if names)
        return f"published without further dimensions, or with {', '.join(sets) or 'none'}"
    if further & _ENHANCED and not enhanced:
        return "published with enhanced metrics: MetricsPublishing(enhanced=True)"
    return ""


def _has_gpu(instance_types: Iterable[str]) -> bool:
    facts = [instance_facts(name) for name in instance_types]
    return not facts or any(known is None or known.accelerator == "nvidia" for known in facts)


def highest_utilization(metric: str, instance_type: str) -> float | None:
    """Highest value on one instance, 100 for each vCPU or GPU; None if unknown."""
    metric_known = metric_facts(metric)
    if not (metric_known.per_vcpu or metric_known.per_gpu):
        return 100.0
    facts = instance_facts(instance_type)
    if facts is None:
        return None
    units = facts.vcpus if metric_known.per_vcpu else facts.accelerator_count
    return None if units is None else units * 100.0
