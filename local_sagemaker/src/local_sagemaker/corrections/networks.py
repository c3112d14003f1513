"""EC2: subnets in zones that there are, interfaces that hold what they use."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from moto.ec2.exceptions import DependencyViolationError, EC2ClientError
from moto.ec2.models import EC2Backend
from moto.iam.models import IAMBackend

from ..hosting_interfaces import remove_expired
from .replacing import around

# A subnet is in a zone of its own region.
#
# moto takes a zone of any region, and prefers the name where the API refuses name and id together.


@around(EC2Backend)
def create_subnet(
    original: Callable[..., Any],
    self: Any,
    vpc_id: str,
    cidr_block: str,
    ipv6_cidr_block: str | None = None,
    availability_zone: str | None = None,
    availability_zone_id: str | None = None,
    **more: Any,
) -> Any:
    """Settle the zone before moto looks for it."""
    zone = _zone(self, availability_zone, availability_zone_id)
    return original(self, vpc_id, cidr_block, ipv6_cidr_block, zone, None, **more)


def _zone(backend: Any, name: str | None, zone_id: str | None) -> str:
    """Give the name of the zone that is meant."""
    zones = backend.describe_availability_zones()
    if name and zone_id:
        raise EC2ClientError(
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
    raise EC2ClientError(
        "InvalidParameterValue",
        f"Value ({wanted}) for parameter {parameter} is invalid. Subnets can currently "
        f"only be created in the following availability zones: {', '.join(names)}.",
    )


# Network interfaces hold their security groups and their subnet; SageMaker's go in their time.
#
# moto deletes a group or subnet whatever is in it. AWS refuses with DependencyViolation:
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html


@around(EC2Backend, "get_all_network_interfaces")
@around(IAMBackend, "delete_role", "delete_role_policy", "detach_role_policy")
def up_to_date(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Look for expired interfaces whenever somebody could see them, or change their role."""
    remove_expired()
    return original(self, *given, **named)


@around(EC2Backend)
def delete_security_group(
    original: Callable[..., Any], self: Any, name: str | None = None, group_id: str | None = None
) -> Any:
    """Refuse while an interface has it."""
    remove_expired()
    if any(group.id == group_id for eni in [*self.enis.values()] for group in eni.group_set):
        raise DependencyViolationError(f"resource {group_id} has a dependent object")
    return original(self, name, group_id)


@around(EC2Backend)
def delete_subnet(original: Callable[..., Any], self: Any, subnet_id: str) -> Any:
    """Refuse while an interface is in it."""
    remove_expired()
    if any(eni.subnet.id == subnet_id for eni in [*self.enis.values()]):
        raise DependencyViolationError(
            f"The subnet '{subnet_id}' has dependencies and cannot be deleted."
        )
    return original(self, subnet_id)
