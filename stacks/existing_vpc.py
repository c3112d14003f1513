"""VPCs and subnets that exist, found by ID when the app is synthesised."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import Stack, Token
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint.plan.rules import LOOKUP_NEEDS_ENVIRONMENT, SUBNET_NOT_IN_VPC


def looked_up_vpc(stack: Stack, vpc_id: str) -> ec2.IVpc:
    """The VPC, with its subnets and their zones' names; the CLI looks it up once."""
    if Token.is_unresolved(stack.account) or Token.is_unresolved(stack.region):
        raise LOOKUP_NEEDS_ENVIRONMENT.error(
            got="no account or no region", allowed="both", where=vpc_id
        )
    return ec2.Vpc.from_lookup(stack, f"Vpc-{vpc_id}", vpc_id=vpc_id)


def subnets_by_zone(
    stack: Stack, vpc: ec2.IVpc, subnet_ids: Mapping[str, str]
) -> dict[str, ec2.ISubnet]:
    """The VPC's subnet for each zone, with its zone's name as the lookup found it."""
    known = {
        subnet.subnet_id: subnet
        for subnet in [*vpc.isolated_subnets, *vpc.private_subnets, *vpc.public_subnets]
    }
    pending = all(subnet.availability_zone.startswith("dummy") for subnet in known.values())
    found: dict[str, ec2.ISubnet] = {}
    for zone, subnet_id in subnet_ids.items():
        if subnet_id in known:
            found[zone] = known[subnet_id]
        elif pending:  # the CLI runs the app again with the VPC's real subnets
            found[zone] = ec2.Subnet.from_subnet_attributes(
                stack, f"Subnet-{zone}", subnet_id=subnet_id, availability_zone="dummy1a"
            )
        else:
            raise SUBNET_NOT_IN_VPC.error(
                got=subnet_id, allowed=", ".join(sorted(known)), where=f"network.subnets.{zone}"
            )
    return found
