"""EC2: subnets in zones that there are, interfaces that hold what they use."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from typing import Any

from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models import EC2Backend
from moto.iam.models import IAMBackend

from ..hosting_interfaces import remove_expired

# A subnet is in a zone of its own region.
#
# moto takes a zone of any region, and prefers the name where the API refuses name and id together.


class _Refused(EC2ClientError):
    """A refusal in EC2's words."""


def _check_zones() -> None:
    """Settle the zone before moto looks for it."""
    create = EC2Backend.create_subnet

    @functools.wraps(create)
    def create_subnet(
        self: Any,
        vpc_id: str,
        cidr_block: str,
        ipv6_cidr_block: str | None = None,
        availability_zone: str | None = None,
        availability_zone_id: str | None = None,
        **more: Any,
    ) -> Any:
        zone = _zone(self, availability_zone, availability_zone_id)
        return create(self, vpc_id, cidr_block, ipv6_cidr_block, zone, None, **more)

    EC2Backend.create_subnet = create_subnet


def _zone(backend: Any, name: str | None, zone_id: str | None) -> str:
    """Give the name of the zone that is meant."""
    zones = backend.describe_availability_zones()
    if name and zone_id:
        raise _Refused(
            "InvalidParameterCombination",
            "Only one of availabilityZone and availabilityZoneId can be given",
        )
    if not name and not zone_id:
        return str(random.choice(zones).name)
    parameter, names = "availabilityZone", {str(zone.name): str(zone.name) for zone in zones}
    if zone_id:
        parameter, names = "availabilityZoneId", {zone.zone_id: str(zone.name) for zone in zones}
    wanted = zone_id or name
    if wanted in names:
        return names[wanted]
    raise _Refused(
        "InvalidParameterValue",
        f"Value ({wanted}) for parameter {parameter} is invalid. Subnets can currently "
        f"only be created in the following availability zones: {', '.join(names)}.",
    )


# Network interfaces hold their security groups and their subnet; SageMaker's go in their time.
#
# moto deletes a group or subnet whatever is in it. AWS refuses with DependencyViolation:
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html


def _hold_what_is_used() -> None:
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


APPLY = (_check_zones, _hold_what_is_used)
