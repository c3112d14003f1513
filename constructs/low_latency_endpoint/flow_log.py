"""Flow log of a VPC into CloudWatch Logs."""

from __future__ import annotations

from aws_cdk import RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from .findings import acknowledge_wildcard_resources
from .iam_documents import allow, document, for_flow_logs, trust

__all__ = ["FlowLog"]


class FlowLog(Construct):
    """Records a VPC's traffic, off the hot path, for a month.

    A security group that lacks port 443 makes calls time out in silence; the rejected packets
    recorded here name the group's interface.

    Parameters
    ----------
    scope, id
        As for every construct.
    vpc_id : str
        The VPC.
    traffic : aws_ec2.FlowLogTrafficType
        Which packets are recorded: ``REJECT``, ``ACCEPT`` or ``ALL``.
    """

    def __init__(self, scope: Construct, id: str, *, vpc_id: str,
                 traffic: ec2.FlowLogTrafficType) -> None:
        super().__init__(scope, id)
        log_group = logs.CfnLogGroup(self, "Logs", retention_in_days=30)
        log_group.apply_removal_policy(RemovalPolicy.DESTROY)
        role = iam.CfnRole(
            self,
            "Role",
            assume_role_policy_document=trust("vpc-flow-logs.amazonaws.com", for_flow_logs()),
            policies=[
                iam.CfnRole.PolicyProperty(
                    policy_name="deliver",
                    policy_document=document(
                        allow(
                            ["logs:CreateLogStream", "logs:PutLogEvents",
                             "logs:DescribeLogStreams"],
                            log_group.attr_arn,
                        ),
                        allow(["logs:DescribeLogGroups"], "*"),
                    ),
                )
            ],
        )
        acknowledge_wildcard_resources(
            role,
            ["*"],
            reason="logs:DescribeLogGroups takes no single log group.",
        )
        ec2.CfnFlowLog(
            self,
            "FlowLog",
            resource_id=vpc_id,
            resource_type="VPC",
            traffic_type=traffic.value,
            log_destination_type="cloud-watch-logs",
            log_group_name=log_group.ref,
            deliver_logs_permission_arn=role.attr_arn,
        )
