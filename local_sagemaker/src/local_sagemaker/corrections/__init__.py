"""What moto gets wrong or does not know, put right.

Each module changes one thing in moto 5.2; tests/deploy holds every one of them.
"""

from __future__ import annotations

from collections.abc import Callable

from . import (
    cloudwatch_alarms,
    ecr_registries,
    ecs_services,
    ecs_tasks,
    hosted_zones,
    iam_policies,
    lambda_concurrency,
    lambda_invocations,
    network_interfaces,
    s3_policies,
    subnet_zones,
    unknown_operations,
    vpc_endpoints,
)

_ALL: tuple[Callable[[], None], ...] = (
    cloudwatch_alarms.apply,
    ecr_registries.apply,
    ecs_services.apply,
    ecs_tasks.apply,
    hosted_zones.apply,
    iam_policies.apply,
    lambda_concurrency.apply,
    lambda_invocations.apply,
    network_interfaces.apply,
    s3_policies.apply,
    subnet_zones.apply,
    unknown_operations.apply,
    vpc_endpoints.apply,
)
_applied = False


def apply() -> None:
    """Apply every correction, once per process."""
    global _applied
    if not _applied:
        for correct in _ALL:
            correct()
        _applied = True
