"""Waits, when a stack goes, until SageMaker has taken its network interfaces out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import cast

from aws_cdk import Aws, CfnResource, CustomResource, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct, IDependable

from .custom_resource_function import custom_resource_function
from .iam_documents import allow, document

__all__ = ["DrainedInterfaces"]

_FUNCTION = "LowLatencyEndpointDrain"
_LONGEST_RUN = 900
"""Seconds (https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html). For its hour
the function invokes itself four times; Lambda stops a chain after about sixteen invocations
(https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html)."""
_LONGEST_WAIT = Duration.seconds(3600)
"""The most that CloudFormation takes for a custom resource."""


class DrainedInterfaces(Construct):
    """Holds what SageMaker's network interfaces need until they have gone.

    They outlive endpoint and model by minutes
    (https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1327). Meanwhile
    EC2 refuses to delete their security groups and subnets, and SageMaker may need the rights of
    the model's role to delete them. The model depends on this resource, and it on all of these:
    so it is deleted between them, and that takes until the groups are empty.

    Interfaces of others, and those of one model or another, cannot be told apart. Only in a group
    that a model has for itself, and that goes along with the stack, they are waited for to the
    end, which is 57 minutes, and then the deletion fails; elsewhere for 20 minutes at most.

    Parameters
    ----------
    scope, id
        As for every construct.
    security_groups : sequence of aws_ec2.ISecurityGroup
        The model's.
    subnets : sequence of aws_ec2.ISubnet
        The model's.
    needed : sequence of IDependable
        Role, policies, and what leads to the subnets.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        security_groups: Sequence[ec2.ISecurityGroup],
        subnets: Sequence[ec2.ISubnet],
        needed: Sequence[IDependable],
    ) -> None:
        super().__init__(scope, id)
        stack = Stack.of(self)
        function = stack.node.try_find_child(_FUNCTION) or _DrainFunction(stack)
        assert isinstance(function, _DrainFunction)
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::DrainedInterfaces",
            service_token=function.arn,
            service_timeout=_LONGEST_WAIT,
            properties={"GroupIds": [group.security_group_id for group in security_groups]},
        )
        # Of subnets only the subnet: what else is below them is none of the interfaces' matter.
        places = [subnet.node.default_child for subnet in subnets]
        resource.node.add_dependency(function.rights, *needed, *filter(None, places))
        self._resource = cast(CfnResource, resource.node.default_child)
        self._made_here = [
            group.security_group_id for group in security_groups
            if isinstance(group.node.default_child, ec2.CfnSecurityGroup)
            and Stack.of(group).node.addr == stack.node.addr
        ]
        function.add(self)

    @property
    def groups(self) -> list[str]:
        """IDs of the groups that are made in the same stack."""
        return self._made_here

    def waits_to_the_end_for(self, groups: Sequence[str]) -> None:
        """Say which groups no other model has."""
        self._resource.add_property_override("OwnGroupIds", list(groups))


class _DrainFunction(Construct):
    """The function behind all of a stack's; it knows which groups several models share."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(stack, _FUNCTION)
        self._drains: list[DrainedInterfaces] = []
        function = custom_resource_function(
            self,
            "wait_for_interfaces",
            description="Waits on delete until SageMaker's network interfaces have gone",
            statements=[
                allow(["ec2:DescribeNetworkInterfaces"], "*"),
                # Nothing in CloudFormation's request says what becomes of the stack.
                allow(["cloudformation:DescribeStacks"], Aws.STACK_ID),
            ],
            wildcards="ec2:DescribeNetworkInterfaces takes no resource.",
            timeout_seconds=_LONGEST_RUN,
        )
        self.arn = function.attr_arn
        # Of its own: a role that names the function which has the role would be a circle.
        self.rights = iam.CfnPolicy(
            self,
            "GoesOn",
            policy_name="go-on",
            roles=[cast(iam.CfnRole, self.node.find_child("Role")).ref],
            policy_document=document(allow(["lambda:InvokeFunction"], self.arn)),
        )

    def add(self, drain: DrainedInterfaces) -> None:
        """Take a further one, which may share groups with those before."""
        self._drains.append(drain)
        models = Counter(group for each in self._drains for group in each.groups)
        for each in self._drains:
            each.waits_to_the_end_for([group for group in each.groups if models[group] == 1])
