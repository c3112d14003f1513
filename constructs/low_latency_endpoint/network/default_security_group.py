"""Closes a VPC's default security group, which CloudFormation cannot do by itself."""

from __future__ import annotations

from aws_cdk import CustomResource
from constructs import Construct

from ..plan.rights import Own, closing_group
from ..synthesis.asked_once import Part
from ..synthesis.custom_resource_function import custom_resource_function
from ..synthesis.findings import pseudo_parameters


class ClosedDefaultSecurityGroup(Part):
    """Removes the rules that every default security group is born with; nothing of ours uses it."""

    def __init__(self, scope: Construct, id: str, *, security_group_id: str) -> None:
        super().__init__(scope, id)
        function = custom_resource_function(
            self,
            "close_default_security_group",
            description="Removes the rules of a VPC's default security group",
            statements=closing_group(Own(*pseudo_parameters()), security_group_id),
            wildcards="ec2:DescribeSecurityGroups takes no resource.",
            timeout_seconds=120,  # it waits for a minute for rights that are new
        )
        CustomResource(
            self,
            "Rules",
            resource_type="Custom::ClosedDefaultSecurityGroup",
            service_token=function.arn,
            properties={"SecurityGroupId": security_group_id},
        )
