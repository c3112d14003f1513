"""AWS::CloudFormation::CustomResource and Custom::*."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from roles_under_test import allow, document
from stacks_under_test import FUNCTION, resource_of
from stacks_under_test import function as properties_of

from local_sagemaker import DeploymentFailed, lambda_runner

CUSTOM = "Custom::Thing"


@pytest.fixture
def role(role: dict[str, Any]) -> dict[str, Any]:
    """A role for functions that keep numbers as parameters and call functions."""
    actions = ["lambda:InvokeFunction", "ssm:GetParameter", "ssm:PutParameter"]
    policy = {"PolicyName": "more", "PolicyDocument": document(allow(actions))}
    role["Properties"]["Policies"].append(policy)
    return role


PLAIN = """
import cfnresponse
def handler(event, context):
    properties = event["ResourceProperties"]
    if properties.get("Fail") == event["RequestType"]:
        cfnresponse.send(event, context, cfnresponse.FAILED, {}, "id", reason="asked to fail")
        return
    if properties.get("Silent") == event["RequestType"]:
        return
    data = {
        "Kind": event["RequestType"],
        "Type": event["ResourceType"],
        "Flag": properties.get("Flag"),
        "Old": event.get("OldResourceProperties", {}).get("Size", "none"),
    }
    cfnresponse.send(event, context, cfnresponse.SUCCESS, data, "id-" + properties["Name"])
"""


def function(code: str, **more: Any) -> dict[str, Any]:
    return resource_of(FUNCTION, **properties_of(code, Timeout=30, **more))


def thing(**properties: Any) -> dict[str, Any]:
    return {"ServiceToken": {"Fn::GetAtt": ["Fn", "Arn"]}, **properties}


WANTED = ("Kind", "Type", "Flag", "Old")


@pytest.fixture
def plain(stack, role) -> Callable[..., Any]:
    """Deploy the custom resource with these properties."""

    def deploy(**properties: Any) -> Any:
        others = {"Role": role, "Fn": function(PLAIN)}
        return stack.deploy(CUSTOM, thing(**properties), WANTED, **others)

    return deploy


def test_plain_custom_resource(plain):
    made = plain(Name="a", Size=1, Flag=True)
    assert made.ref == "id-a"
    # Scalars reach a function as text.
    assert made.attributes == {"Kind": "Create", "Type": CUSTOM, "Flag": "true", "Old": "none"}
    changed = plain(Name="a", Size=2, Flag=False)
    assert changed.ref == "id-a"
    assert changed.attributes == {"Kind": "Update", "Type": CUSTOM, "Flag": "false", "Old": "1"}
    replaced = plain(Name="b", Size=2, Flag=False)
    assert replaced.ref == "id-b"
    its = [event for event in replaced.stack.events if event["LogicalResourceId"] == "It"]
    assert its[-1]["ResourceStatus"] == "DELETE_COMPLETE"
    assert its[-1]["PhysicalResourceId"] == "id-a"


def test_a_failing_custom_resource_fails_the_stack_with_its_reason(stack, role):
    others = {"Role": role, "Fn": function(PLAIN)}
    reason = stack.refusal(CUSTOM, thing(Name="a", Fail="Create"), **others)
    assert "asked to fail" in reason
    stack.delete()
    reason = stack.refusal(CUSTOM, thing(Name="a", Silent="Create"), **others)
    assert "did not receive a response from your Custom Resource" in reason


def test_a_function_that_is_not_python_fails_the_stack(stack, role):
    """As that of CDK's Provider framework."""
    node = function(PLAIN, Runtime="nodejs22.x")
    kind = "AWS::CloudFormation::CustomResource"
    reason = stack.refusal(kind, thing(Name="a"), Role=role, Fn=node)
    assert "runs Python functions only" in reason


def test_a_failed_update_of_a_custom_resource_is_undone(plain):
    plain(Name="a", Size=1, Flag=1)
    with pytest.raises(DeploymentFailed, match="asked to fail"):
        plain(Name="a", Fail="Update")
    assert plain(Name="a", Size=3, Flag=1).attributes["Old"] == "1"


def test_an_attribute_that_was_not_answered_is_an_error(stack, role):
    parameter = resource_of(
        "AWS::SSM::Parameter", Type="String", Value={"Fn::GetAtt": ["It", "Nothing"]}
    )
    others = {"Role": role, "Fn": function(PLAIN), "Reads": parameter}
    reason = stack.refusal(CUSTOM, thing(Name="a"), **others)
    assert "Vendor response doesn't contain Nothing attribute" in reason


GOES_ON = """
import json, time
import boto3, cfnresponse
def handler(event, context):
    turns = event["Turns"] = event.get("Turns", 0) + 1
    if turns > int(event["ResourceProperties"]["Turns"]) or event["RequestType"] == "Delete":
        cfnresponse.send(event, context, cfnresponse.SUCCESS, {"Turns": str(turns)}, "it")
        return
    time.sleep(0.2)
    boto3.client("lambda").invoke(
        FunctionName=context.invoked_function_arn, InvocationType="Event",
        Payload=json.dumps(event))
"""


def test_an_answer_may_come_from_a_later_invocation(stack, role):
    others = {"Role": role, "Fn": function(GOES_ON)}
    made = stack.deploy(CUSTOM, thing(Turns=2), ("Turns",), **others)
    assert made.attributes == {"Turns": "3"}
    stack.deploy(CUSTOM, thing(Turns=0), ("Turns",), **others)


def test_an_asynchronous_invocation_is_answered_before_it_ends(aws, stack, role, tmp_path):
    waits = function(
        "import os, time\ndef handler(event, context):\n"
        "    while not os.path.exists(event):\n        time.sleep(0.01)\n"
    )["Properties"] | {"Timeout": 60}
    made = stack.deploy("AWS::Lambda::Function", waits, ("Arn",), Role=role)
    event = {"InvocationType": "Event", "Payload": json.dumps(str(tmp_path / "go on"))}
    answer = aws.client("lambda").invoke(FunctionName=made.ref, **event)
    assert lambda_runner.is_running(made.attributes["Arn"])
    (tmp_path / "go on").touch()
    assert answer["StatusCode"] == 202


def test_nobody_waits_longer_than_the_resource_says(stack, role):
    others = {"Role": role, "Fn": function(GOES_ON)}
    others["Fn"]["Properties"]["Timeout"] = 2
    started = time.monotonic()
    reason = stack.refusal(CUSTOM, thing(Turns=20, ServiceTimeout=2), **others)
    assert "did not receive a response" in reason
    assert time.monotonic() - started > 2


FAILS = """
import os, time
import boto3, cfnresponse
def handler(event, context):
    ssm = boto3.client("ssm")
    name = "/runs/" + event["RequestType"]
    try:
        runs = int(ssm.get_parameter(Name=name)["Parameter"]["Value"]) + 1
    except ssm.exceptions.ParameterNotFound:
        runs = 1
    ssm.put_parameter(Name=name, Value=str(runs), Type="String", Overwrite=True)
    if event["RequestType"] == "Create" and runs <= int(event["ResourceProperties"]["Failures"]):
        if runs == 1:
            raise RuntimeError("not today")
        os._exit(9)  # as when Lambda kills it for its memory
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {"Runs": str(runs)}, "it")
"""


def runs(aws: Any) -> int:
    ssm = aws.client("ssm")
    found = ssm.get_parameter(Name="/runs/Create")["Parameter"]["Value"]
    ssm.delete_parameters(Names=["/runs/Create", "/runs/Delete"])
    return int(found)


def test_lambda_runs_a_function_that_failed_without_an_answer_twice_more(aws, stack, role):
    others = {"Role": role, "Fn": function(FAILS)}
    made = stack.deploy(CUSTOM, thing(Failures=2), ("Runs",), **others)
    assert made.attributes == {"Runs": "3"}
    stack.delete()
    assert runs(aws) == 3
    assert "did not receive a response" in stack.refusal(CUSTOM, thing(Failures=3), **others)
    assert runs(aws) == 3


# ---------------------------------------------------------------------------- answers and requests

ANSWERS = """
import json, urllib.request
import boto3
def handler(event, context):
    kind, its = event["RequestType"], event["ResourceProperties"]
    ssm, name = boto3.client("ssm"), "/asked/" + event["LogicalResourceId"]
    asked = ssm.get_parameter(Name=name)["Parameter"]["Value"]
    asked += "\\n" + kind + " " + event.get("PhysicalResourceId", "")
    ssm.put_parameter(Name=name, Value=asked, Type="String", Overwrite=True)
    more = json.loads(its["Answers"]).get(kind, {})
    if more == "raises":
        raise RuntimeError("not today")
    same = {name: event[name] for name in ("RequestId", "StackId", "LogicalResourceId")}
    given = {**same, "Status": "SUCCESS", "PhysicalResourceId": "it", **more}
    size = given.pop("size", 0)
    body = json.dumps({name: value for name, value in given.items() if value is not None})
    request = urllib.request.Request(event["ResponseURL"], body.ljust(size).encode(), method="PUT")
    urllib.request.urlopen(request)
"""
CASES = yaml.safe_load(Path(__file__).with_name("custom_resource_answers.yaml").read_text())


@pytest.fixture
def asked(aws, stack) -> Iterator[Callable[[str], list[str]]]:
    """Give what a resource's function was asked, with the ID of each request."""
    ssm = aws.client("ssm")
    names = [f"/asked/{name}" for name in ("It", "Fails", "Later")]
    for name in names:
        ssm.put_parameter(Name=name, Value="-", Type="String")

    def requests(logical_id: str = "It") -> list[str]:
        text = ssm.get_parameter(Name=f"/asked/{logical_id}")["Parameter"]["Value"]
        made_up = re.sub(rf"{stack.name}-{logical_id}-[A-Z0-9]{{12}}", "made-up", text)
        return [line.strip() for line in made_up.splitlines()[1:]]

    yield requests
    with suppress(DeploymentFailed):
        stack.delete()
    # Where the resource would not go.
    cloudformation, gone = aws.client("cloudformation"), "stack_delete_complete"
    cloudformation.delete_stack(StackName=stack.name, RetainResources=["It"])
    cloudformation.get_waiter(gone).wait(StackName=stack.name, WaiterConfig={"Delay": 0.1})
    ssm.delete_parameters(Names=names)


def answering(answers: dict[str, Any], kind: str = CUSTOM, **more: Any) -> dict[str, Any]:
    return {**resource_of(kind, **thing(Answers=json.dumps(answers))), **more}


@pytest.mark.parametrize("case", CASES["answers"], ids=lambda case: case["what"])
def test_what_an_answer_brings_about(stack, role, asked, case):
    """Each row names its source: AWS's pages, or what AWS's users report."""
    others = {"Role": role, "Fn": function(ANSWERS)}
    if case.get("update"):
        stack.of(It=answering({}), **others)
    if case.get("later"):
        failing = answering({"Create": {"Status": "FAILED", "Reason": "no"}}, DependsOn="It")
        others["Later"] = failing
    result = stack.of(It=answering(case["answers"]), **others, expect_failure=True)
    assert result.status == case["status"]
    assert case.get("reason", "") in (result.failure_reason or "")
    assert asked() == case["requests"]
    left = result.resources.get("It", "")
    assert left == case.get("left", "") or (left and case["left"] == "MADE-UP")


@pytest.mark.parametrize("case", CASES["properties"], ids=lambda case: case["what"])
def test_a_malformed_custom_resource_is_never_asked(stack, role, asked, case):
    """https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html"""
    it = answering({}, case.get("type", CUSTOM))
    it["Properties"] |= case.get("properties", {})
    for name in case.get("without", []):
        del it["Properties"][name]
    result = stack.of(It=it, Role=role, Fn=function(ANSWERS), expect_failure=True)
    assert case["reason"] in (result.failure_reason or "")
    assert bool(asked()) == (result.status == "CREATE_COMPLETE") == (not case["reason"])


@pytest.mark.parametrize("update", [False, True], ids=["create", "update"])
def test_what_is_cancelled_is_deleted_by_an_id_that_is_made_up(stack, role, asked, update):
    """https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1814"""
    others = {"Role": role, "Fn": function(ANSWERS)}
    if update:
        stack.of(**others)
    fails = answering({"Create": {"Status": "FAILED", "Reason": "no"}})
    result = stack.of(Fails=fails, It=answering({}), **others, expect_failure=True)
    assert "ROLLBACK_COMPLETE" in result.status
    assert asked("Fails") == ["Create", "Delete it"]
    assert asked("It") == ["Create", "Delete made-up"]
    its = [e.get("ResourceStatusReason") for e in result.events if e["LogicalResourceId"] == "It"]
    assert "Resource creation cancelled" in its


def test_a_resource_keeps_its_function(stack, role, asked):
    """https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/802"""
    others = {"Role": role, "Fn": function(ANSWERS), "Other": function(ANSWERS)}
    first, second = answering({}), answering({})
    second["Properties"]["ServiceToken"] = {"Fn::GetAtt": ["Other", "Arn"]}
    stack.of(It=first, **others)
    failed = stack.of(It=second, **others, expect_failure=True)
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert failed.failure_reason == "It: Modifying service token is not allowed."
    assert asked() == ["Create"]
