"""What a resource's policy named before its last change, which goes on being allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import CfnResource, Stack, Token
from constructs import Construct

from ..options.safeguards import Safeguards
from .asked_once import Part, only_child, stack_of
from .custom_resource_function import custom_resource_function
from .safeguards import safeguards_of

_FUNCTION = "FormerNames"
LONGEST_ANSWER = 3_500
"""Characters of former names; CloudFormation takes 4,096 bytes of a custom resource's answer.

See https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html
"""


class FormerNames(Part):
    """Remembers which ARNs a policy named until its last change.

    CloudFormation changes a policy that is part of another resource (a VPC endpoint's) in place,
    before it makes what the new one names, and long before it deletes what the former one named.
    So such a policy names both: this custom resource answers with what CloudFormation says that
    its properties were. What is named no more is let go by the next change. All of a stack share
    one Lambda function, which has no rights but to write its log.

    Attributes
    ----------
    names : mapping of str to list of str
        For each kind, what was named before and is no more, as a token; one of those that are, if
        nothing.
    """

    def __init__(self, scope: Construct, id: str, *, kinds: Sequence[str]) -> None:
        super().__init__(scope, id)
        stack = stack_of(self)
        function: _Function = only_child(
            stack, _FUNCTION, lambda: _Function(stack, safeguards_of(self))
        )
        self._resource = CfnResource(
            self,
            "Resource",
            type="Custom::FormerNames",
            properties={"ServiceToken": function.arn, "ServiceTimeout": "120"},
        )
        own = self._resource.logical_id  # get_att and Fn.split are three calls for each kind
        self.names: Mapping[str, list[str]] = {
            kind: Token.as_list({"Fn::Split": [",", {"Fn::GetAtt": [own, kind]}]}) for kind in kinds
        }

    def now(self, named: Mapping[str, Sequence[str]]) -> None:
        """Say what is named now, for each kind at least one ARN."""
        self._resource.add_override("Properties", {kind: list(named[kind]) for kind in self.names})


class _Function(Part):
    def __init__(self, stack: Stack, safeguards: Safeguards) -> None:
        super().__init__(stack, _FUNCTION)
        self.arn = custom_resource_function(
            self,
            "former_names",
            description="Tells CloudFormation which names a policy had before its last change",
            statements=[],
            safeguards=safeguards,
        ).arn
