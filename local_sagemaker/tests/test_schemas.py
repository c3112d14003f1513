"""What CloudFormation refuses fails here too, and the table of types says what the services take."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

import boto3
import extract_schemas as extract
import pytest
from stacks_under_test import IMAGE, resource_of, variant

from local_sagemaker.resources.calls import OperationCall
from local_sagemaker.resources.resource_type import Members, ResourceType, Setting
from local_sagemaker.resources.table import TYPES
from local_sagemaker.schemas import violations

SUBNET = {"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/24"}


def model(**container: Any) -> dict[str, Any]:
    return {
        "ExecutionRoleArn": "arn:aws:iam::123456789012:role/r",
        "PrimaryContainer": {"Image": IMAGE, **container},
    }


def variants(**more: Any) -> dict[str, Any]:
    return {"ProductionVariants": [variant(1, ModelName="m", **more)]}


def test_the_schemas_are_those_of_the_pinned_cfn_lint():
    """When this fails after a new version of cfn-lint: `make docs`, and read the difference."""
    assert extract.written(extract.extracted()) == extract.FILE.read_text()


def test_every_honoured_property_is_one_of_cloudformations():
    for name, schema in json.loads(extract.FILE.read_text()).items():
        assert set(schema["properties"]) == set(TYPES[name].properties), name


@pytest.mark.parametrize(
    ("type_name", "properties", "message"),
    [
        (
            "AWS::SageMaker::Model",
            model(AdditionalModelDataSources=[{"ChannelName": "a"}]),
            "#/PrimaryContainer: extraneous key [AdditionalModelDataSources] is not permitted",
        ),
        (
            "AWS::SageMaker::Model",
            {**model(), "PrimaryContainer": {"image": IMAGE}},
            "#/PrimaryContainer: extraneous key [image] is not permitted; the name is Image",
        ),
        (
            "AWS::SageMaker::EndpointConfig",
            variants(RoutingConfig={"RoutingStrategy": "KV_AWARE"}),
            "#/ProductionVariants/0/RoutingConfig/RoutingStrategy: KV_AWARE is not a valid enum "
            "value; it is one of LEAST_OUTSTANDING_REQUESTS, PREFIX_AWARE, RANDOM",
        ),
        (
            "AWS::SageMaker::EndpointConfig",
            variants(AcceleratorType="ml.eia2.medium"),
            "#/ProductionVariants/0: extraneous key [AcceleratorType] is not permitted",
        ),
        (
            "AWS::SageMaker::EndpointConfig",
            variants(ContainerStartupHealthCheckTimeoutInSeconds=5),
            "#/ProductionVariants/0/ContainerStartupHealthCheckTimeoutInSeconds: 5 is not greater "
            "or equal to 60",
        ),
        ("AWS::SageMaker::Endpoint", {}, "#: required key [EndpointConfigName] not found"),
        (
            "AWS::S3::Bucket",
            {"LifecycleConfiguration": {"Rules": [], "NoSuch": 1}},
            "#/LifecycleConfiguration: extraneous key [NoSuch] is not permitted",
        ),
        (
            "AWS::S3::Bucket",
            {"Tags": [{"Key": "a", "Value": "b", "NoSuch": 1}]},
            "#/Tags/0: extraneous key [NoSuch] is not permitted",
        ),
        (
            "AWS::SQS::Queue",
            {"VisibilityTimeout": "abc"},
            "#/VisibilityTimeout: expected type: Integer, found: String (abc)",
        ),
        (
            "AWS::EC2::Subnet",
            {**SUBNET, "AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az6"},
            "#: only one of [AvailabilityZone, AvailabilityZoneId] can be given",
        ),
    ],
)
def test_is_refused_before_anything_is_created(aws, stack, type_name, properties, message):
    topic = resource_of("AWS::SNS::Topic", TopicName="never-made-either")
    reason = stack.refusal(type_name, properties, Before=topic)
    assert reason == f"It: Properties validation failed for resource It with message:\n{message}"
    assert "never-made-either" not in str(aws.client("sns").list_topics()["Topics"])


def test_what_a_parameter_brings_is_checked_as_well(stack):
    template: dict[str, Any] = {
        "Parameters": {"Timeout": {"Type": "String", "Default": "30"}},
        "Resources": {"It": resource_of("AWS::SQS::Queue", VisibilityTimeout={"Ref": "Timeout"})},
    }
    stack.template(template)
    template["Parameters"]["Timeout"]["Default"] = "soon"
    failed = stack.template(template, expect_failure=True)
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    words = "#/VisibilityTimeout: expected type: Integer, found: String (soon)"
    assert words in str(failed.failure_reason)


@pytest.mark.parametrize(
    ("type_name", "properties"),
    [
        ("AWS::SQS::Queue", {"VisibilityTimeout": "30", "FifoQueue": "true"}),  # text for a number
        ("AWS::SQS::Queue", {"VisibilityTimeout": {"Ref": "Timeout"}}),  # known later
        ("AWS::SNS::Topic", {"TopicName": 5}),  # a number for text
        ("Custom::Anything", {"ServiceToken": "arn", "Any": {"thing": 1}}),
    ],
)
def test_what_cloudformation_takes_is_taken(type_name, properties):
    assert violations(type_name, properties) == []


def test_both_branches_of_an_if_are_checked():
    def named(*branches: str) -> Any:
        return {"Fn::If": ["C", *({"ScaleInPolicy": {"Strategy": each}} for each in branches)]}

    right = variants(ManagedInstanceScaling=named("IDLE_RELEASE", "CONSOLIDATION"))
    wrong = variants(ManagedInstanceScaling=named("IDLE_RELEASE", "NONE"))
    assert violations("AWS::SageMaker::EndpointConfig", right) == []
    (problem,) = violations("AWS::SageMaker::EndpointConfig", wrong)
    assert "NONE is not a valid enum value" in problem


def test_one_of_several_has_to_be_given():
    policy = {"PolicyName": "p", "PolicyDocument": {}}
    assert violations("AWS::IAM::Policy", {**policy, "Roles": ["r"]}) == []
    assert violations("AWS::IAM::Policy", policy) == [
        "#: required key [Users] not found, or #: required key [Groups] not found, or "
        "#: required key [Roles] not found"
    ]


SESSION = boto3.Session("x", "x", region_name="us-east-1")
ROWS = [kind for kind in TYPES.values() if kind.creates or kind.parts]


def operations(kind: ResourceType) -> Iterator[OperationCall]:
    yield from (each for each in (kind.creates, kind.updates, kind.deletes, *kind.reads) if each)
    for part in kind.parts:
        names = ("put", "reset") if isinstance(part, Setting) else ("add", "remove", "listed")
        yield from (operation for name in names if (operation := getattr(part, name)))
    if kind.tags:
        yield from (kind.tags.tag, kind.tags.untag)


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.type_name)
def test_each_operation_is_one_of_its_service_s_with_such_parameters(kind):
    client = SESSION.client(kind.service)
    for operation in operations(kind):
        name = client.meta.method_to_api_mapping[operation.operation]
        parameters = client.meta.service_model.operation_model(name).input_shape
        assert set(operation.arguments) <= set(parameters.members if parameters else ())


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.type_name)
def test_each_property_is_set_and_can_be_changed_or_replaces(kind):
    client = SESSION.client(kind.service)
    elsewhere = {name for part in kind.parts for name in part.of.split()} | {kind.name}
    for part in kind.parts:
        elsewhere |= part.add.fields if isinstance(part, Members) else set()
    elsewhere |= {kind.tags.of} if kind.tags else set()
    elsewhere |= kind.deletes.fields if kind.deletes else set()
    code = inspect.getsource(type(kind)) if type(kind) is not ResourceType else ""
    for name in kind.properties:
        known = name in elsewhere or f'"{name}"' in code
        creates, updates = (
            each is not None and each.takes(client, name) for each in (kind.creates, kind.updates)
        )
        assert known or creates or updates, name
        assert known or kind.anew or updates or name in kind.replaces, name
