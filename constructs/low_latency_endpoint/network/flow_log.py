"""Flow log of a VPC into CloudWatch Logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from ..synthesis.asked_once import Part
from ..synthesis.findings import acknowledge_wildcard_resources
from ..synthesis.iam_documents import allow, for_flow_logs, trust
from ..synthesis.rights_before import RightsBefore
from ..synthesis.role_rights import RoleRights
from ..synthesis.safeguards import log_group, safeguards_of, writing_logs


class FlowLog(Part):
    """Records a VPC's traffic for a month: rejected packets show the group that lacks port 443."""

    def __init__(
        self, scope: Construct, id: str, *, vpc_id: str, traffic: ec2.FlowLogTrafficType
    ) -> None:
        super().__init__(scope, id)
        guards = safeguards_of(self)
        group = log_group(self, guards, days=30)
        rights = [
            *writing_logs(guards, group, "logs:DescribeLogStreams"),
            allow(["logs:DescribeLogGroups"], "*"),
        ]
        role_arn, carrier, before = _role(self, guards.flow_log_role, rights)
        acknowledge_wildcard_resources(
            carrier, ["*"], reason="logs:DescribeLogGroups takes no single log group."
        )
        flow_log = ec2.CfnFlowLog(
            self,
            "FlowLog",
            resource_id=vpc_id,
            resource_type="VPC",
            traffic_type=traffic.value,
            log_destination_type="cloud-watch-logs",
            log_group_name=group.ref,
            deliver_logs_permission_arn=role_arn,
        )
        if before:
            flow_log.node.add_dependency(*before)


def _role(
    scope: Construct, given: iam.IRole | None, rights: Sequence[Mapping[str, Any]]
) -> tuple[str, Construct, list[IDependable]]:
    """The role's ARN, what carries its rights, and what has to be there before the role is used."""
    if given is not None:
        policy = RoleRights.given(scope, given).allow("FlowLog", *rights, owner=scope)
        return given.role_arn, policy, [policy, RightsBefore.of(scope, given)]
    role, _, before = RoleRights.made(
        scope,
        "Role",
        trusted=trust("vpc-flow-logs.amazonaws.com", for_flow_logs()),
        policy_name="deliver",
        statements=rights,
    )
    return role.attr_arn, role, before
