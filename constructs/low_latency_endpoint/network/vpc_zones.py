"""What CDK knows of a VPC's zones at synthesis: names, tokens, or stand-ins of a pending lookup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts.zones import is_stand_in, zone_name_of
from ..synthesis.asked_once import stack_of

if TYPE_CHECKING:
    from aws_cdk import Stack
    from aws_cdk import aws_ec2 as ec2

    from .zone_aligned_network import ZoneAlignedNetwork

LOOKUP_PENDING = "vpc-12345"
"""CDK's stand-in for every VPC whose lookup is pending."""


def is_pending(vpc: ec2.IVpc) -> bool:
    """Whether the CLI is still to look the VPC up, and will run the app again with it."""
    return vpc.vpc_id == LOOKUP_PENDING


def vpc_stack_of(network: ZoneAlignedNetwork) -> Stack:
    """The stack that the network's VPC is of."""
    return stack_of(network if network.own_vpc else network.vpc)


def is_subnet_of_pending_lookup(subnet: ec2.ISubnet) -> bool:
    """Whether the subnet's zone is a stand-in."""
    return is_stand_in(zone_name_of(subnet) or "")
