"""Whether what reads from S3 can reach it from subnets that the app made, judged at synthesis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jsii
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IValidation

from ..synthesis.asked_once import stack_of
from ..synthesis.findings import warn
from ..synthesis.validation import is_token
from .made_endpoints import service_name_of, stands_in


def reads_from_s3(statements: Iterable[Mapping[str, Any]]) -> bool:
    """Whether these statements of a role let it read objects."""
    return any("s3:GetObject" in statement["Action"] for statement in statements)


def expect_way_to_s3(network: Construct, vpc: ec2.IVpc, subnets: Sequence[ec2.ISubnet]) -> None:
    """Warn at synthesis where subnets of a VPC of this app lead neither to NAT nor to S3."""
    if isinstance(vpc, ec2.Vpc):
        network.node.add_validation(_WayToS3(network, vpc, subnets))


@jsii.implements(IValidation)
class _WayToS3:
    def __init__(self, network: Construct, vpc: ec2.Vpc, subnets: Sequence[ec2.ISubnet]) -> None:
        self._network, self._vpc, self._subnets = network, vpc, subnets

    def validate(self) -> list[str]:
        """Warn where there is no way; there is never a complaint."""
        without = _tables(self._vpc, self._subnets)
        for scope in (self._vpc, self._network.node.root):  # most ways stand below the VPC
            for found in scope.node.find_all():
                led = _led(found, self._vpc, without)
                without = {table: path for table, path in without.items() if table not in led}
                if not without:
                    return []
        warn(
            self._network,
            "noWayToS3",
            f"{', '.join(without.values())} have no default route (NAT gateway) and no S3 gateway "
            "endpoint in this app, and what the model reads lies in S3. AWS documents that with "
            "network_isolation SageMaker downloads the model's data through the VPC: then the "
            "endpoint cannot come into service. Without it SageMaker downloads model data beside "
            "the VPC, but what a container reads from S3 by itself (s3:// URIs in its environment) "
            "is out of its reach. Images that SageMaker pulls need nothing. Add "
            'vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3), which '
            "costs nothing, or take other subnets with subnet_selection. Neither was seen on AWS.",
        )
        return []


def _tables(vpc: ec2.Vpc, subnets: Sequence[ec2.ISubnet]) -> dict[str, str]:
    """Route table -> a subnet's path, for the subnets that the app made."""
    made = {subnet.node.path for subnet in [*vpc.isolated_subnets, *vpc.private_subnets]}
    return {
        subnet.route_table.route_table_id: subnet.node.path
        for subnet in subnets
        if subnet.node.path in made
    }


def _led(found: Any, vpc: ec2.Vpc, tables: Mapping[str, str]) -> set[str]:
    """The route tables that a construct gives a way to S3; those that cannot be told, too."""
    if isinstance(found, ec2.CfnRoute):
        everywhere = found.destination_cidr_block == "0.0.0.0/0" or is_token(
            found.destination_cidr_block
        )
        leads = everywhere or found.destination_prefix_list_id is not None
        return _same(found, [found.route_table_id], tables) if leads else set()
    if not (
        isinstance(found, ec2.CfnVPCEndpoint)
        and service_name_of(found).endswith(".s3")
        and stands_in(found, vpc.vpc_id, stack_of(vpc))
    ):
        return set()
    if found.vpc_endpoint_type != "Gateway":  # an interface endpoint, with DNS of its own
        return set(tables)
    return _same(found, found.route_table_ids or [], tables)


def _same(found: Construct, table_ids: Sequence[str], tables: Mapping[str, str]) -> set[str]:
    stack = stack_of(found)
    named = stack.resolve(list(table_ids))
    if not isinstance(named, list):  # a list that is a token
        return set(tables)
    return {table for table in tables if stack.resolve(table) in named}
