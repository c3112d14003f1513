"""Holds a deployment against what SageMaker serves afterwards, which CloudFormation may not do."""

from __future__ import annotations

from aws_cdk import Aws, CustomResource, Duration, Stack
from constructs import Construct

from ..options.safeguards import Safeguards
from ..plan.function_rights import looking_at_endpoint, looking_at_stack
from ..synthesis.arns import endpoint_arn
from ..synthesis.construct_tree import Part, only_child, stack_of
from ..synthesis.lambda_functions import custom_resource_function
from ..synthesis.safeguards import safeguards_of

_FUNCTION = "EndpointServingCheck"
_TIMEOUT_SECONDS = 300  # for a scaling action that is under way


class ServingCheck(Part):
    """Fails a deployment after which the endpoint does not serve its configuration.

    After an update that SageMaker gives up (a rollback alarm, a container that fails, no
    capacity) the endpoint is in service as before, with the former configuration. Whether
    CloudFormation takes that for a success is not known; Terraform's provider did
    (hashicorp/terraform-provider-aws#46663, #48997), and deleted the configuration that served.
    This resource comes before CloudFormation's clean-up: it fails, and the stack goes back while
    the former configuration exists.

    All endpoints of a stack share one Lambda function.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint_name: str,
        name_at_synth: str,
        configuration_name: str,
    ) -> None:
        super().__init__(scope, id)
        stack = stack_of(self)
        function: _Function = only_child(
            stack, _FUNCTION, lambda: _Function(stack, safeguards_of(self))
        )
        rights = function.role.also(
            "Policy", looking_at_endpoint(endpoint_arn(self, name_at_synth)), scope=self
        )
        resource = CustomResource(
            self,
            "Resource",
            resource_type="Custom::EndpointServingCheck",
            service_token=function.arn,
            # A function that dies must not hold the stack for CloudFormation's hour.
            service_timeout=Duration.seconds(_TIMEOUT_SECONDS + 60),
            properties={"EndpointName": endpoint_name, "EndpointConfigName": configuration_name},
        )
        resource.node.add_dependency(rights)


class _Function(Part):
    def __init__(self, stack: Stack, safeguards: Safeguards) -> None:
        super().__init__(stack, _FUNCTION)
        made = custom_resource_function(
            self,
            "check_endpoint",
            description="Confirms that endpoints serve the configuration they were given",
            statements=[looking_at_stack(Aws.STACK_ID)],
            timeout_seconds=_TIMEOUT_SECONDS,
            safeguards=safeguards,
        )
        self.arn, self.role = made.arn, made.role
