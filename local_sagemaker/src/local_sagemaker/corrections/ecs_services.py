"""ECS services: moto drops several settings of a service; here they are kept and described."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from moto.ecs.responses import EC2ContainerServiceResponse

_KEPT = {
    "capacityProviderStrategy": "capacity_provider_strategy",
    "deploymentConfiguration": "deployment_configuration",
    "enableECSManagedTags": "enable_ecs_managed_tags",
    "enableExecuteCommand": "enable_execute_command",
    "healthCheckGracePeriodSeconds": "health_check_grace_period_seconds",
    "networkConfiguration": "network_configuration",
    "platformVersion": "platform_version",
    "propagateTags": "propagate_tags",
}


def apply() -> None:
    """Keep the settings when a service is created or updated."""
    for name in ("create_service", "update_service"):
        _wrap(name, getattr(EC2ContainerServiceResponse, name))


def _wrap(name: str, original: Callable[[Any], Any]) -> None:
    @functools.wraps(original)
    def operation(self: Any) -> Any:
        answer = original(self)
        service = answer.result["service"]
        for parameter, attribute in _KEPT.items():
            value = self._get_param(parameter)
            if value is not None:
                setattr(service, attribute, value)
        return answer

    setattr(EC2ContainerServiceResponse, name, operation)
