"""Utilization thresholds: 100 percent is one vCPU or one GPU, not the instance."""

from __future__ import annotations

from ..errors import rule
from .instance_types import instance_facts
from .metrics import metric_facts

__all__ = ["check_utilization", "highest_utilization"]

UTILIZATION = rule(
    "LLE734", "a utilization threshold lies outside what the metric reaches",
    mend="Give a share of the metric's highest value: 70 percent of four vCPUs is 280.",
    source="/sagemaker/latest/dg/monitoring-cloudwatch.html",
)


def highest_utilization(metric: str, instance_type: str) -> float | None:
    """Highest value of a utilization metric on one instance; ``None`` when the type is unknown.

    Examples
    --------
    >>> highest_utilization("CPUUtilization", "ml.m5.12xlarge")
    4800.0
    >>> highest_utilization("MemoryUtilization", "ml.m5.12xlarge")
    100.0
    """
    metric_known = metric_facts(metric)
    if not (metric_known.per_vcpu or metric_known.per_gpu):
        return 100.0
    facts = instance_facts(instance_type)
    if facts is None:
        return None
    units = facts.vcpus if metric_known.per_vcpu else facts.accelerator_count
    return None if units is None else units * 100.0


def check_utilization(metric: str, percent: float, instance_type: str,
                      where: str = "") -> list[str]:
    """Raise when a threshold can never be reached; return what looks like a mistake.

    Parameters
    ----------
    metric : str
        A utilization metric, such as ``CPUUtilization``.
    percent : float
        The threshold or the scaling target.
    instance_type : str
        The variant's instance type; an unknown one gives no findings.

    Raises
    ------
    ConfigurationError
        ``LLE734``; ``LLE730`` for an unknown metric.

    Examples
    --------
    >>> check_utilization("CPUUtilization", 3360, "ml.m5.12xlarge")
    []
    >>> check_utilization("CPUUtilization", 70, "ml.m5.12xlarge")
    ['CPUUtilization of 70 percent is 1.5 percent of ml.m5.12xlarge, whose metric runs to 4800: 70 \
percent of the instance is 3360']
    """
    highest = highest_utilization(metric, instance_type)
    if highest is None:
        return []
    if not 0 < percent <= highest:
        raise UTILIZATION.error(
            got=f"{metric} of {percent:g} percent on {instance_type}",
            allowed=f"above 0 and at most {highest:g}", where=where,
        )
    if highest > 100 and percent <= 100:
        return [
            f"{metric} of {percent:g} percent is {100 * percent / highest:.2g} percent of "
            f"{instance_type}, whose metric runs to {highest:g}: {percent:g} percent of the "
            f"instance is {percent * highest / 100:g}"
        ]
    return []
