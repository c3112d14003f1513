"""AWS::CloudFormation::Stack and AWS::CDK::Metadata."""

from __future__ import annotations

import json
from typing import Any

import pytest
from stacks_under_test import resource_of

NESTED = "AWS::CloudFormation::Stack"


@pytest.fixture
def url(aws):
    """Publish a nested template; gives a function that makes the URL of a variant."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="templates")

    def publish(value: Any, key: str) -> str:
        template = {
            "Parameters": {"Given": {"Type": "String"}},
            "Resources": {"P": resource_of("AWS::SSM::Parameter", Type="String", Value=value)},
            "Outputs": {"Value": {"Value": {"Fn::GetAtt": ["P", "Value"]}}},
        }
        s3.put_object(Bucket="templates", Key=key, Body=json.dumps(template).encode())
        return f"https://s3.us-east-1.amazonaws.com/templates/{key}"

    yield publish
    for entry in s3.list_objects_v2(Bucket="templates").get("Contents", []):
        s3.delete_object(Bucket="templates", Key=entry["Key"])
    s3.delete_bucket(Bucket="templates")


def test_nested_stack(aws, stack, url):
    first = url({"Fn::Sub": "one ${Given}"}, "one.json")
    wanted = ("Outputs.Value",)
    made = stack.deploy(NESTED, {"TemplateURL": first, "Parameters": {"Given": "a"}}, wanted)
    assert made.attributes == {"Outputs.Value": "one a"}
    changed = stack.deploy(NESTED, {"TemplateURL": first, "Parameters": {"Given": "b"}}, wanted)
    assert changed.ref == made.ref
    assert changed.attributes == {"Outputs.Value": "one b"}
    stack.delete()
    found = aws.client("cloudformation").describe_stacks(StackName=made.ref)["Stacks"][0]
    assert found["StackStatus"] == "DELETE_COMPLETE"


def test_a_failing_nested_stack_fails_its_parent_with_the_reason(stack, url):
    broken = url({"Fn::ImportValue": "nobody"}, "broken.json")
    reason = stack.refusal(NESTED, {"TemplateURL": broken, "Parameters": {"Given": "a"}})
    assert "No export named nobody found" in reason


def test_cdk_metadata_is_accepted(stack):
    made = stack.deploy("AWS::CDK::Metadata", {"Analytics": "v2:deflate64:x"})
    assert stack.deploy("AWS::CDK::Metadata", {"Analytics": "changed"}).ref == made.ref
