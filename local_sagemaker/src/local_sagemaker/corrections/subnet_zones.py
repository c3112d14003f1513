"""A subnet is in a zone of its own region.

moto takes a zone of any region, and prefers the name where the API refuses name and id together.
"""

from __future__ import annotations

import functools
import random
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend


class _Refused(EC2ClientError):
    """A refusal in EC2's words."""


def apply() -> None:
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
