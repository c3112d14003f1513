"""Network interfaces hold their security groups and their subnet; SageMaker's go in their time.

moto deletes a group or subnet whatever is in it. AWS refuses with DependencyViolation:
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.models import EC2Backend
from moto.iam.models import IAMBackend

from ..hosting_interfaces import remove_expired


def apply() -> None:
    """Look for expired interfaces whenever somebody could see them, or change their role."""
    for kind, names in (
        (EC2Backend, ("get_all_network_interfaces",)),
        (IAMBackend, ("delete_role", "delete_role_policy", "detach_role_policy")),
    ):
        for name in names:
            setattr(kind, name, _up_to_date(getattr(kind, name)))
    EC2Backend.delete_security_group = _held_group(EC2Backend.delete_security_group)
    EC2Backend.delete_subnet = _held_subnet(EC2Backend.delete_subnet)


def _up_to_date(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def up_to_date(self: Any, *arguments: Any, **named: Any) -> Any:
        remove_expired()
        return method(self, *arguments, **named)

    return up_to_date


def _held_group(delete: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(delete)
    def delete_security_group(
        self: Any, name: str | None = None, group_id: str | None = None
    ) -> Any:
        remove_expired()
        if any(group.id == group_id for eni in [*self.enis.values()] for group in eni.group_set):
            raise DependencyViolationError(f"resource {group_id} has a dependent object")
        return delete(self, name, group_id)

    return delete_security_group


def _held_subnet(delete: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(delete)
    def delete_subnet(self: Any, subnet_id: str) -> Any:
        remove_expired()
        if any(eni.subnet.id == subnet_id for eni in [*self.enis.values()]):
            raise DependencyViolationError(
                f"The subnet '{subnet_id}' has dependencies and cannot be deleted."
            )
        return delete(self, subnet_id)

    return delete_subnet
