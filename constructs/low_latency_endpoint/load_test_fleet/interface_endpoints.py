"""The interface endpoints that load-test tasks in isolated subnets need, and their policies."""

from __future__ import annotations

from typing import Any, cast

from aws_cdk import Aws
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from ..network.zone_aligned_network import (
    ZoneAlignedNetwork,
    interface_endpoint_in,
    security_group_in,
)
from ..plan.iam_statements import allow, document
from ..synthesis.arns import arn

_PULL = (
    "ecr:BatchCheckLayerAvailability",
    "ecr:BatchGetImage",
    "ecr:GetAuthorizationToken",
    "ecr:GetDownloadUrlForLayer",
)
_LOG = ("logs:CreateLogStream", "logs:PutLogEvents")


def _services() -> dict[str, tuple[tuple[str, ...], str]]:
    """Service -> what may be done through its endpoint, and with what.

    ECR needs both of its endpoints (and S3), the awslogs driver needs Logs. Nothing that carries
    data out is among it: no push, no other log. See
    https://docs.aws.amazon.com/AmazonECR/latest/userguide/vpc-endpoints.html
    """
    return {
        "ecr.api": (_PULL, "*"),
        "ecr.dkr": (_PULL, "*"),
        "logs": (_LOG, arn("logs", "log-group:*")),
    }


def make_interface_endpoints(scope: Construct, network: ZoneAlignedNetwork) -> ec2.SecurityGroup:
    """Make what tasks in isolated subnets need; the group that lets them in."""
    group = security_group_in(
        network,
        scope,
        "EndpointsSecurityGroup",
        "Interface endpoints of the load-test tasks: only these tasks",
    )
    for service, (actions, resources) in _services().items():
        endpoint = interface_endpoint_in(
            network,
            scope,
            f"Endpoint-{service}",
            ec2.InterfaceVpcEndpointAwsService(service),
            group,
        )
        made = cast(ec2.CfnVPCEndpoint, endpoint.node.default_child)
        made.policy_document = _of_account(actions, resources)
    return group


def _of_account(actions: tuple[str, ...], resources: str) -> dict[str, Any]:
    """These actions for this account's principals; other fleets of the VPC come through too."""
    return document(
        allow(
            actions,
            resources,
            principal={"AWS": "*"},
            condition={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
        )
    )
