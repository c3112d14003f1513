"""A VPC resolves a name by one private zone only, be it a hosted zone or private DNS.

moto associates whatever is asked for. AWS answers as in
https://github.com/hashicorp/terraform-provider-aws/issues/37783
"""

from __future__ import annotations

import functools
from typing import Any

from moto.ec2.models import ec2_backends
from moto.route53.exceptions import Route53ClientError
from moto.route53.models import Route53Backend, route53_backends

__all__ = ["apply", "private_zone_named"]


def apply() -> None:
    """Look before a VPC is associated, at creation and later."""
    create = Route53Backend.create_hosted_zone
    associate = Route53Backend.associate_vpc_with_hosted_zone

    @functools.wraps(create)
    def create_hosted_zone(self: Any, name: str, private_zone: bool, *rest: Any,
                           vpcid: str | None = None, vpcregion: str | None = None,
                           **more: Any) -> Any:
        if vpcid:
            _refuse_second(self, name, vpcid, str(vpcregion))
        return create(self, name, private_zone, *rest, vpcid=vpcid, vpcregion=vpcregion, **more)

    @functools.wraps(associate)
    def associate_vpc(self: Any, zone_id: str, vpcid: str, vpcregion: str) -> Any:
        _refuse_second(self, self.get_hosted_zone(zone_id).name, vpcid, vpcregion)
        return associate(self, zone_id, vpcid, vpcregion)

    Route53Backend.create_hosted_zone = create_hosted_zone
    Route53Backend.associate_vpc_with_hosted_zone = associate_vpc


def private_zone_named(account_id: str, partition: str, name: str, vpc_id: str) -> str | None:
    """The ID of the hosted zone by which the VPC resolves the name."""
    for zone in route53_backends[account_id][partition].zones.values():
        if zone.private_zone and zone.name.rstrip(".") == name.rstrip(".") and any(
                each["vpc_id"] == vpc_id for each in zone.vpcs):
            return str(zone.id).rpartition("/")[2]
    return None


def _refuse_second(backend: Any, name: str, vpc_id: str, region: str) -> None:
    zone = private_zone_named(backend.account_id, backend.partition, name, vpc_id)
    endpoints = ec2_backends[backend.account_id][region].vpc_end_points.values()
    for each in endpoints:
        # The zone that PrivateLink makes for private DNS is the last of an endpoint's names.
        entry = (each.dns_entries or [{}])[-1]
        if (each.vpc_id == vpc_id and each.private_dns_enabled
                and entry.get("dns_name", "") == name.rstrip(".")):
            zone = entry["hosted_zone_id"]
    if zone is not None:
        raise Route53ClientError(
            "ConflictingDomainExists",
            f"The VPC {vpc_id} in region {region} has already been associated with the hosted "
            f"zone {zone} with the same domain name.",
        )
