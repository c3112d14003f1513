"""What a setting does on a fleet as it is: no finding advises one that does nothing there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...account.scaling import ScalingReading
from .findings import Finding, Remedy
from .measurements import VariantReading

#: From these the target of invocations follows, and nothing else of a fleet with stated counts.
_OF_INVOCATIONS = ("throughput.safety_factor", "throughput.tps_per_instance")
_IN_FLIGHT = "scaling.concurrency_target"
_BY_CONCURRENCY = "{metric: concurrency, concurrency_target: ...}"


def with_effective_changes(variant: VariantReading, finding: Finding) -> Finding:
    """The finding with the changes that have an effect on the variant's fleet."""
    return replace(finding, changes=tuple(effective(variant, finding.changes)))


def effective(variant: VariantReading, changes: Iterable[Remedy]) -> Iterator[Remedy]:
    """The same of changes alone, in their order.

    Where scaling could not be read, all of them may have one.
    """
    advised = list(changes)
    scaling = variant.scaling
    raised = any(change.key == "instances.max" for change in advised)
    for change in advised:
        if change.key == "routing" and change.value.upper() == variant.routing:
            continue
        if scaling is None:
            yield change
        elif _acts(scaling, change.key, raised=raised):
            yield _by_metric(scaling, change)


def _acts(scaling: ScalingReading, key: str, *, raised: bool) -> bool:
    """Whether a change of the key changes what scaling does.

    A maximum that is the minimum leaves a policy nothing to do, unless it is ``raised`` too.
    """
    if key == "instances.max":
        return scaling.maximum is not None
    if key in _OF_INVOCATIONS and _is_by_concurrency(scaling):
        return False
    of_policy = key.startswith("scaling.") and key != "scaling.enabled"
    if not of_policy and key not in _OF_INVOCATIONS:
        return True
    if scaling.maximum is None:
        return False
    return scaling.maximum != scaling.minimum or raised


def _by_metric(scaling: ScalingReading, change: Remedy) -> Remedy:
    """The change; a number of requests in flight with its metric, where scaling has another one."""
    if change.key != _IN_FLIGHT or _is_by_concurrency(scaling):
        return change
    return Remedy("scaling", change.why, _BY_CONCURRENCY)


def _is_by_concurrency(scaling: ScalingReading) -> bool:
    return "Concurrent" in scaling.metric
