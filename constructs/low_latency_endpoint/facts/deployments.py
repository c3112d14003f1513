"""What deployment guardrails (blue/green traffic shifting, rolling updates) need and exclude."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .limits import ROLLBACK_ALARM_COUNT
from .rules import INF1_HAS_NO_GUARDRAILS


def takes_guardrails(instance_type: str) -> bool:
    """Whether SageMaker watches deployments on an instance type: on all but Inf1."""
    # There it falls back to blue/green all at once without a final baking period, in silence
    # (SageMaker guide, "Deployment guardrails: exclusions").
    return not instance_type.startswith("ml.inf1.")


def rolls_back(stated: bool | None, instance_types: Iterable[str]) -> bool:
    """Whether alarms roll a deployment back; by default wherever SageMaker lets them."""
    return all(map(takes_guardrails, instance_types)) if stated is None else stated


def check_rollback_alarms(counts: Mapping[str, int], where: str = "") -> None:
    """Raise LLE508 for more than SageMaker takes; ``counts`` says whose they are."""
    total = sum(counts.values())
    if not ROLLBACK_ALARM_COUNT.holds(total):
        owners = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise ROLLBACK_ALARM_COUNT.rule.error(
            got=f"{total}: {owners}", allowed=ROLLBACK_ALARM_COUNT.allowed, where=where
        )


def check_guardrails(
    kind: str, instance_types: Iterable[str], *, rolls_back: bool, where: str = ""
) -> None:
    """Raise for guardrails on instance types that SageMaker excludes from them, in silence."""
    excluded = [name for name in instance_types if not takes_guardrails(name)]
    if excluded and (kind != "ALL_AT_ONCE" or rolls_back):
        raise INF1_HAS_NO_GUARDRAILS.error(
            got=f"{kind}{' with rollback alarms' if rolls_back else ''} on {excluded[0]}",
            allowed="ALL_AT_ONCE without alarms",
            where=where,
        )


def instances_in_update(instances: int, rolling_batch_percent: int | None = None) -> int:
    """The most instances while a new version takes over a fleet, or is rolled back.

    Blue/green runs a second fleet. A rolling update runs one batch more, and so does its rollback,
    but only where the policy says so: without ``RollbackMaximumBatchSize`` "the default value will
    be set to 100% of total capacity which means to bring up the whole capacity of the old fleet at
    once during rollback" (API reference, RollingUpdatePolicy). So ours always says it, or the
    rollback would need room that nobody kept.
    """
    if rolling_batch_percent is None:
        return 2 * instances
    return instances + -(-instances * rolling_batch_percent // 100)
