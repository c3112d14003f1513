"""How long texts and policies of a template are when CloudFormation sends them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Any, NamedTuple

from aws_cdk import CfnResource, Stack

from ..facts.stack_limits import LONGEST_ANSWER
from ..plan.launched_names import as_named
from .construct_tree import region_of, stack_name_of
from .template_values import is_token

_FORMER_NAMES = "Custom::FormerNames"
_RANDOM = 15  # two hyphens, and 13 characters at random
_UUID = 36


class _Named(NamedTuple):
    """What CloudFormation names: its ARN, and how long the name can be."""

    arn: str
    longest: int


_NAMED = {
    "AWS::CloudWatch::Alarm": _Named(
        "arn:{partition}:cloudwatch:{region}:{account}:alarm:{name}", 255
    ),
    "AWS::IAM::Role": _Named("arn:{partition}:iam::{account}:role/{name}", 64),
    "AWS::KMS::Key": _Named("arn:{partition}:kms:{region}:{account}:key/{name}", 36),
    "AWS::Lambda::Function": _Named(
        "arn:{partition}:lambda:{region}:{account}:function:{name}", 64
    ),
    "AWS::Logs::LogGroup": _Named(
        "arn:{partition}:logs:{region}:{account}:log-group:{name}:*", 512
    ),
    "AWS::S3::Bucket": _Named("arn:{partition}:s3:::{name}", 63),
    "AWS::SQS::Queue": _Named("arn:{partition}:sqs:{region}:{account}:{name}", 80),
}
_SAGEMAKER_ENDPOINT = "AWS::SageMaker::Endpoint"  # whose Ref is the ARN
_ANY = _Named("arn:{partition}:sagemaker:{region}:{account}:endpoint/{name}", 63)
_STACK = "arn:{partition}:cloudformation:{region}:{account}:stack/{name}/" + "u" * _UUID

#: Characters of the IDs that AWS makes, by what a template reads them from.
_IDS = {
    ("AWS::EC2::VPC", "Ref"): 21,
    ("AWS::EC2::VPC", "DefaultSecurityGroup"): 20,
    ("AWS::EC2::Subnet", "Ref"): 24,
    ("AWS::EC2::SecurityGroup", "Ref"): 20,
    ("AWS::EC2::SecurityGroup", "GroupId"): 20,
    ("AWS::KMS::Key", "Ref"): _UUID,
}
_KNOWN = {_FORMER_NAMES, _SAGEMAKER_ENDPOINT, *_NAMED, *(kind for kind, _ in _IDS)}


class SentLengths:
    """Characters without white space, with names and IDs of the length that AWS gives them."""

    def __init__(self, stack: Stack, resources: Sequence[CfnResource]) -> None:
        self._stack, self._resources = stack, resources
        name, region = stack_name_of(stack), region_of(stack)
        self._stack_name = "s" if is_token(name) else name
        self._own = {
            "partition": "aws",
            "region": "us-east-1" if is_token(region) else region,
            "account": "1" * 12,
        }
        self._pseudo = {
            "AWS::Partition": self._own["partition"],
            "AWS::Region": self._own["region"],
            "AWS::AccountId": self._own["account"],
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": self._stack_name,
            "AWS::StackId": _STACK.format(**self._own, name=self._stack_name),
        }

    def of_document(self, document: Any) -> int:
        """Of a policy document as a template has it, and all that it takes from custom resources."""
        text = json.dumps(document)
        answers = [name for name in self._former_names if f'"{name}"' in text]
        sent = json.dumps(self._sent(as_named(document)), separators=(",", ":"))
        return len(sent) + len(answers) * LONGEST_ANSWER

    def of_text(self, text: Any) -> int:
        """Of a text as a template has it."""
        return len(self._sent(as_named(text)))

    @cached_property
    def _types(self) -> dict[str, str]:
        """The type of each resource that has a length of its own here, by its logical ID."""
        types = [(resource, _type_of(resource)) for resource in self._resources]
        known = [(resource, kind) for resource, kind in types if kind in _KNOWN]
        logical_ids = self._stack.resolve([resource.logical_id for resource, _ in known])
        return dict(zip(logical_ids, [kind for _, kind in known], strict=True))

    @cached_property
    def _former_names(self) -> list[str]:
        """The custom resources that answer with names, in several attributes of one answer."""
        return [name for name, kind in self._types.items() if kind == _FORMER_NAMES]

    def _sent(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._sent(item) for item in value]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((function, argument),) = value.items()
            if function == "Fn::Join":
                return argument[0].join(str(self._sent(part)) for part in argument[1])
            if function == "Fn::Split":
                return []
            if function == "Ref":
                return self._pseudo.get(argument) or self._attribute(argument, "Ref")
            if function == "Fn::GetAtt":
                return self._attribute(argument[0], str(argument[1]))
        return {key: self._sent(item) for key, item in value.items()}

    def _attribute(self, logical_id: str, attribute: str) -> str:
        """A text as long as what AWS answers."""
        kind = self._types.get(logical_id, "")
        if (kind, attribute) in _IDS:
            return "i" * _IDS[kind, attribute]
        named = _NAMED.get(kind, _ANY)
        made_id = "i" * _IDS.get((kind, "Ref"), 0)
        name = made_id or f"{self._stack_name}{'-' * _RANDOM}{logical_id}"[: named.longest]
        if attribute == "Arn" or kind == _SAGEMAKER_ENDPOINT:
            return named.arn.format(**self._own, name=name)
        return name


def _type_of(resource: CfnResource) -> str:
    """``resource.cfn_resource_type``, which all resources of a class but CfnResource have alike."""
    return _type_of_class(type(resource)) or resource.cfn_resource_type


@cache
def _type_of_class(resources: type[CfnResource]) -> str:
    return getattr(resources, "CFN_RESOURCE_TYPE_NAME", "")
