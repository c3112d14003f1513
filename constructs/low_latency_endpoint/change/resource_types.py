"""The types of resources that a stack of this library has: one row of words each, and AWS's schema.

``resource_types.json`` holds what AWS's schemas fix of each type. ``make resource-types`` writes it
from the schemas that cfn-lint brings, and a test holds it to them.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import NamedTuple

from ..errors.frozen import dataclass

_SCHEMAS = Path(__file__).with_name("resource_types.json")
_PASSED_ON = "callers notice nothing of it"


class ResourceWords(NamedTuple):
    """What a type is called, and what its users notice when a resource of it goes."""

    noun: str
    replaced: str = ""  # empty: an update that nobody notices
    deleted: str = ""
    is_new_to_users: bool = False  # whether an added one is something new for them
    of_values: bool = True  # whether the values that change are worth showing


@dataclass(frozen=True)
class ResourceSchema:
    """What AWS's schema of a type says of its properties."""

    create_only: tuple[str, ...] = ()  # paths at which another value needs another resource
    conditional: tuple[str, ...] = ()  # paths at which some values do
    name: tuple[str, ...] = ()  # the property that is the physical name


_CUSTOM = ResourceSchema(create_only=("ServiceToken",))  # of another provider it is another one

WORDS = {
    "AWS::ApplicationAutoScaling::ScalableTarget": ResourceWords("scalable target"),
    "AWS::ApplicationAutoScaling::ScalingPolicy": ResourceWords("scaling policy"),
    "AWS::ApplicationSignals::ServiceLevelObjective": ResourceWords("service level objective"),
    "AWS::CloudWatch::Alarm": ResourceWords("alarm"),
    "AWS::CloudWatch::CompositeAlarm": ResourceWords("composite alarm", of_values=False),
    "AWS::CloudWatch::Dashboard": ResourceWords("dashboard", of_values=False),
    "AWS::EC2::FlowLog": ResourceWords("flow log", _PASSED_ON, _PASSED_ON, is_new_to_users=True),
    "AWS::EC2::RouteTable": ResourceWords("route table"),
    "AWS::EC2::SecurityGroup": ResourceWords("security group"),
    "AWS::EC2::SecurityGroupEgress": ResourceWords("rule of a security group"),
    "AWS::EC2::SecurityGroupIngress": ResourceWords("rule of a security group"),
    "AWS::EC2::Subnet": ResourceWords("subnet", "models that name it move to the new one"),
    "AWS::EC2::SubnetRouteTableAssociation": ResourceWords("route of a subnet"),
    "AWS::EC2::VPC": ResourceWords(
        "VPC",
        "callers in it lose the interface endpoint, and while anything else is left in it "
        "CloudFormation cannot delete it",
        "callers in it lose the interface endpoint, and while anything else is left in it "
        "CloudFormation cannot delete it",
        is_new_to_users=True,
    ),
    "AWS::EC2::VPCEndpoint": ResourceWords(
        "VPC endpoint",
        "connections through the old one end, and the zonal URLs change",
        "connections through it end, and whoever uses it loses it",
        is_new_to_users=True,
    ),
    "AWS::ECS::Cluster": ResourceWords("cluster"),
    "AWS::ECS::TaskDefinition": ResourceWords("task definition"),
    "AWS::Events::Rule": ResourceWords("rule of EventBridge"),
    "AWS::IAM::Policy": ResourceWords("policy of a role", of_values=False),
    "AWS::IAM::Role": ResourceWords("role"),
    "AWS::KMS::Key": ResourceWords("key"),
    "AWS::Lambda::EventInvokeConfig": ResourceWords("retry policy of a function"),
    "AWS::Lambda::Function": ResourceWords("function", of_values=False),
    "AWS::Lambda::Permission": ResourceWords("permission of a function"),
    "AWS::Logs::LogGroup": ResourceWords("log group"),
    "AWS::Route53::HostedZone": ResourceWords(
        "private hosted zone",
        "callers in its VPCs lose the name meanwhile",
        "callers in its VPCs lose the name",
        is_new_to_users=True,
    ),
    "AWS::Route53::RecordSet": ResourceWords("record of a hosted zone"),
    "AWS::S3::Bucket": ResourceWords("bucket"),
    "AWS::S3::BucketPolicy": ResourceWords("policy of a bucket", of_values=False),
    "AWS::SQS::Queue": ResourceWords("queue"),
    "AWS::SQS::QueuePolicy": ResourceWords("policy of a queue", of_values=False),
    "AWS::SSM::Parameter": ResourceWords(
        "SSM parameter",
        "callers that read the old name find none",
        "callers that read it find none",
        is_new_to_users=True,
    ),
    "AWS::SageMaker::Endpoint": ResourceWords("endpoint"),
    "AWS::SageMaker::EndpointConfig": ResourceWords("endpoint configuration"),
    "AWS::SageMaker::Model": ResourceWords("model"),
}
"""By type. Endpoints, their configurations and models have words of their own besides."""

_CUSTOM_WORDS = {
    "Custom::ClosedDefaultSecurityGroup": "closing of the default security group",
    "Custom::DrainedInterfaces": "wait for SageMaker's network interfaces",
    "Custom::EndpointServingCheck": "check for a rollback",
    "Custom::FormerNames": "list of former names",
    "Custom::HubModelCheck": "check of a model's copied files",
    "Custom::HubModelFiles": "copy of a model's files from the Hub",
    "Custom::HubModelUse": "use of a model's copied files",
    "Custom::WarmUp": "warm-up, which then sends its requests again",
}


def words_of(kind: str) -> ResourceWords:
    """The words of a type; of one without a row its name."""
    if is_custom(kind):
        return ResourceWords(_CUSTOM_WORDS.get(kind, kind), of_values=False)
    return WORDS.get(kind) or ResourceWords(kind)


def is_known(kind: str) -> bool:
    """Whether there is a row, and so a schema, of a type."""
    return kind in WORDS or kind in _CUSTOM_WORDS


def is_custom(kind: str) -> bool:
    """Whether a function or another provider stands behind a type, and AWS has no schema of it."""
    return kind.startswith("Custom::") or kind == "AWS::CloudFormation::CustomResource"


def schema_of(kind: str) -> ResourceSchema:
    """What AWS fixes of a type; nothing is known of one without a row."""
    return _CUSTOM if is_custom(kind) else _schemas().get(kind, ResourceSchema())


@functools.cache
def _schemas() -> dict[str, ResourceSchema]:
    rows = json.loads(_SCHEMAS.read_text(encoding="utf-8"))
    return {
        kind: ResourceSchema(**{key: tuple(paths) for key, paths in row.items()})
        for kind, row in rows.items()
    }
