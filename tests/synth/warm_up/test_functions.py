"""The two functions: where they sit, what they may do, what they leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from low_latency_endpoint import WarmUpPayload
from low_latency_endpoint.warm_up.warm_up_function import controller
from tests.synth.warm_up.in_template import PAYLOAD, function_of, may, statements_of


def test_the_sender_sits_in_the_callers_subnets_on_arm(template):
    function = function_of(template, "Sender")
    assert function["VpcConfig"]["SubnetIds"] == [
        {"Ref": subnet} for subnet in template.of_type("AWS::EC2::Subnet")
    ]
    assert (function["Architectures"], function["Runtime"]) == (["arm64"], "python3.14")
    assert function["Timeout"] == controller.SENDER_SECONDS
    assert "VpcConfig" not in function_of(template, "Controller")


def test_the_sender_knows_each_zone_by_its_zonal_name(stack, make, template_of):
    make()
    variable = function_of(template_of(stack), "Sender")["Environment"]["Variables"]["WARM_UP"]
    parts = variable["Fn::Join"][1]
    text = "".join(part if isinstance(part, str) else "<token>" for part in parts)
    known = json.loads(text)
    assert known["endpoint"] == "serving-endpoint-c149cba2"
    name = "<token>-<token>.runtime.<token>"
    assert known["zones"] == {"use1-az1": name, "use1-az2": name}
    zones = [
        part["Fn::GetAtt"]
        for part in parts
        if isinstance(part, dict) and "AvailabilityZone" in part.get("Fn::GetAtt", [])
    ]
    assert len(zones) == 2


def test_the_sender_may_invoke_this_endpoint_and_nothing_else(template):
    allowed = may(template, "Sender")
    interfaces = {action for action in allowed if action.startswith("ec2:")}
    assert set(allowed) - interfaces == {
        "sagemaker:InvokeEndpoint",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sqs:SendMessage",
    }
    arn = "".join(
        part for part in allowed["sagemaker:InvokeEndpoint"]["Fn::Join"][1] if isinstance(part, str)
    )
    assert arn.endswith(":endpoint/serving-endpoint-c149cba2")
    (denied,) = [s for s in statements_of(template, "Sender") if s["Effect"] == "Deny"]
    # Lambda needs these for the interfaces; the code does not.
    assert set(denied["Action"]) == interfaces
    assert list(denied["Condition"]) == ["ArnLike"]
    assert list(denied["Condition"]["ArnLike"]) == ["lambda:SourceFunctionArn"]


def test_the_controller_may_start_the_sender_and_read_the_stacks_status(template):
    allowed = may(template, "Controller")
    assert set(allowed) == {
        "lambda:InvokeFunction",
        "cloudformation:DescribeStacks",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
        "sqs:SendMessage",
    }
    assert "Sender" in allowed["lambda:InvokeFunction"]["Fn::GetAtt"][0]
    assert allowed["cloudformation:DescribeStacks"] == {"Ref": "AWS::StackId"}


def test_only_the_interface_endpoint_is_reached(template):
    (group_id,) = [i for i in template.of_type("AWS::EC2::SecurityGroup") if "WarmUp" in i]
    group = template["Resources"][group_id]["Properties"]
    assert "SecurityGroupIngress" not in group
    # The CDK's way to say "nothing out"; an empty list would mean everything.
    assert [rule["CidrIp"] for rule in group["SecurityGroupEgress"]] == ["255.255.255.255/32"]
    (egress,) = [
        rule
        for rule in template.of_type("AWS::EC2::SecurityGroupEgress").values()
        if rule["GroupId"] == {"Fn::GetAtt": [group_id, "GroupId"]}
    ]
    assert (egress["FromPort"], egress["ToPort"]) == (443, 443)
    assert "LinkSecurityGroup" in egress["DestinationSecurityGroupId"]["Fn::GetAtt"][0]


@pytest.mark.parametrize("name", ["Sender", "Controller"])
def test_functions_are_bounded_logged_and_leave_no_event_behind(template, name):
    function = function_of(template, name)
    queue = template.only_id("AWS::SQS::Queue")
    assert function["DeadLetterConfig"]["TargetArn"] == {"Fn::GetAtt": [queue, "Arn"]}
    logs = template["Resources"][function["LoggingConfig"]["LogGroup"]["Ref"]]
    assert logs["Properties"]["RetentionInDays"] == 30
    (retries,) = [
        found
        for found in template.of_type("AWS::Lambda::EventInvokeConfig").values()
        if name in found["FunctionName"]["Ref"]
    ]
    assert retries["MaximumRetryAttempts"] <= 1
    assert retries["MaximumEventAgeInSeconds"] <= 3600


def test_dead_letters_are_encrypted_and_take_tls_only(template):
    assert template.only("AWS::SQS::Queue")["SqsManagedSseEnabled"] is True
    (statement,) = template.only("AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
    assert statement["Effect"] == "Deny"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize(
    ("given", "reserved"),
    [
        ({}, None),  # a new account has 10 executions and lets none be reserved
        ({"reserved_concurrency": None}, None),
        ({"reserved_concurrency": 3}, 3),
    ],
)
def test_executions_are_reserved_on_request_only(stack, make, template_of, given, reserved):
    make(**given)
    template = template_of(stack)
    for name in ("Sender", "Controller"):
        assert function_of(template, name).get("ReservedConcurrentExecutions") == reserved


def test_the_archive_holds_the_package_and_the_payloads(stack, make):
    make(
        payload=[
            PAYLOAD,
            WarmUpPayload(text="1,2", content_type="text/csv", target_container="second"),
        ]
    )
    assembly = stack.node.root.synth()
    manifest = json.loads(Path(assembly.directory, "Serving.assets.json").read_text())
    (folder,) = [
        Path(assembly.directory, file["source"]["path"])
        for file in manifest["files"].values()
        if file["source"]["packaging"] == "zip"
    ]
    files = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    assert set(files) == {
        "warm_up_function/__init__.py",
        "warm_up_function/controller.py",
        "warm_up_function/measurements.py",
        "warm_up_function/sender.py",
        "payloads/payloads.json",
        "payloads/0",
        "payloads/1",
    }
    assert files["payloads/0"].read_bytes() == b'{"inputs":"I like you."}'
    assert json.loads(files["payloads/payloads.json"].read_text()) == [
        {"File": "0", "ContentType": "application/json"},
        {"File": "1", "ContentType": "text/csv", "TargetContainerHostname": "second"},
    ]
    for path in files.values():
        assert path.stat().st_mode & 0o444 == 0o444, "Lambda's user must be able to read it"
