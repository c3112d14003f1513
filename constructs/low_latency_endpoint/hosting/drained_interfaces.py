"""Waits, when a stack goes, until SageMaker has taken its network interfaces out of it."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws, CustomResource, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct, IDependable

from ..options.safeguards import Safeguards
from ..plan.function_rights import calling_function, looking_at_interfaces, looking_at_stack
from ..synthesis.construct_tree import Part, only_child, path_of, stack_of
from ..synthesis.lambda_functions import custom_resource_function
from ..synthesis.safeguards import safeguards_of

_FUNCTION = "LowLatencyEndpointDrain"
_LONGEST_RUN = 900
"""Seconds, the most by Lambda's guide
(https://docs.aws.amazon.com/lambda/latest/dg/configuration-timeout.html); its API model in botocore
1.44.8 says 1,800. For its hour the function invokes itself four times; Lambda stops a chain after
about sixteen invocations
(https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html)."""
_LONGEST_WAIT = 3600
"""Seconds; the most that CloudFormation takes for a custom resource."""


class DrainedInterfaces(Part):
    """Holds what SageMaker's network interfaces need until they have gone.

    They outlive endpoint and model by minutes
    (https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1327). Meanwhile
    EC2 refuses to delete their security groups and subnets, and SageMaker may need the rights of
    the model's role to delete them. The model depends on this resource, and it on all of these:
    so it is deleted between them, and that takes until the groups are empty.

    Whose an interface is cannot be told. Where the groups go along with the whole stack, so do all
    of the stack's models: then the interfaces are waited for to the end, which is 57 minutes, and
    then the deletion fails. Otherwise, which is an update, or a group of another stack, others may
    stay in the groups: then 20 minutes at most.
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
        stack = stack_of(self)
        function: _DrainFunction = only_child(
            stack, _FUNCTION, lambda: _DrainFunction(stack, safeguards_of(self))
        )
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::DrainedInterfaces",
            service_token=function.arn,
            service_timeout=Duration.seconds(_LONGEST_WAIT),
            properties={
                "GroupIds": [group.security_group_id for group in security_groups],
                "OwnGroupIds": [
                    group.security_group_id
                    for group in security_groups
                    if isinstance(group.node.default_child, ec2.CfnSecurityGroup)
                    and path_of(stack_of(group)) == path_of(stack)
                ],
            },
        )
        # Of subnets only the subnet: what else is below them is none of the interfaces' matter.
        places = [subnet.node.default_child for subnet in subnets]
        resource.node.add_dependency(function.rights, *needed, *filter(None, places))


class _DrainFunction(Part):
    """The function behind all of a stack's."""

    def __init__(self, stack: Stack, safeguards: Safeguards) -> None:
        super().__init__(stack, _FUNCTION)
        function = custom_resource_function(
            self,
            "wait_for_interfaces",
            description="Waits on delete until SageMaker's network interfaces have gone",
            statements=[looking_at_interfaces(), looking_at_stack(Aws.STACK_ID)],
            wildcards="ec2:DescribeNetworkInterfaces takes no resource.",
            timeout_seconds=_LONGEST_RUN,
            safeguards=safeguards,
        )
        self.arn = function.arn
        # Of its own: a role that names the function which has the role would be a circle.
        self.rights = function.role.also(
            "GoesOn", calling_function(self.arn), scope=self, fixed=True
        )
