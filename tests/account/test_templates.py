"""Templates of stacks that are launched under their app's name, and under another."""

from __future__ import annotations

import json

import pytest

from low_latency_endpoint.account.calls import Account
from low_latency_endpoint.account.stacks import template
from tests.fake_aws import FakeAws

NAME = {"Fn::If": ["OwnStackName", "ranking", {"Fn::Join": ["", ["ranking-", "1a2b3c4d"]]}]}
TEMPLATE = {
    "Conditions": {"OwnStackName": {"Fn::Equals": [{"Ref": "AWS::StackName"}, "Serving"]}},
    "Resources": {"Endpoint": {"Properties": {"EndpointName": NAME}}},
}
ARN = "arn:aws:cloudformation:us-east-1:123456789012:stack/Serving/1a2b3c4d-0dff-08e3-8e2f"


@pytest.mark.parametrize("stack", ["Serving", ARN, "SC-123456789012-pp-1"])
def test_names_are_known_in_the_stack_of_the_apps_own_name(stack: str) -> None:
    answers = {"cloudformation.GetTemplate": {"TemplateBody": json.dumps(TEMPLATE)}}
    found = template(Account(FakeAws(answers), "us-east-1"), stack)
    name = found["Endpoint"]["Properties"]["EndpointName"]
    assert name == (NAME if stack.startswith("SC-") else "ranking")
