"""The warm-up: custom resource, its functions, deployments and keep-warm, its surroundings, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import (
    KeepWarmOptions,
    LatencyTarget,
    RuntimePrivateLink,
    WarmUp,
    WarmUpOptions,
    WarmUpPayload,
)
from low_latency_endpoint.facts import warm_up_rules
from low_latency_endpoint.warm_up import warm_up as warm_up_module
from low_latency_endpoint.warm_up.warm_up_function import controller, sender
from tests.refusals import refused

from .conftest import warnings_after_synth

PAYLOAD = WarmUpPayload(data={"inputs": "I like you."})


def function_of(template, name):
    (found,) = [
        properties
        for logical_id, properties in template.of_type("AWS::Lambda::Function").items()
        if logical_id.startswith(f"WarmUp{name}Function")
    ]
    return found


def statements_of(template, name):
    """Effect, actions and resource of everything that a function may do."""
    role = function_of(template, name)["Role"]["Fn::GetAtt"][0]
    assert "ManagedPolicyArns" not in template["Resources"][role]["Properties"]
    return template.rights_of(role)


def may(template, name):
    """Action -> resource, of what is allowed."""
    return {
        action: statement["Resource"]
        for statement in statements_of(template, name)
        if statement["Effect"] == "Allow"
        for action in statement["Action"]
    }


def warm_up_in(stack, parts, **given):
    network = given.pop("network", None) or parts.network(stack)
    link = given.pop("private_link", None) or RuntimePrivateLink(stack, "Link", network=network)
    endpoint = given.pop("endpoint", None) or parts.endpoint(stack)
    latency = given.pop("latency", None)
    return WarmUp(
        stack,
        "WarmUp",
        endpoint=endpoint,
        private_link=link,
        network=network,
        options=WarmUpOptions(**{"payload": PAYLOAD, **given}),
        latency=latency,
    )


@pytest.fixture
def make(stack, parts):
    """Make a warm-up and what it needs; keyword arguments are the warm-up's."""
    return lambda **given: warm_up_in(stack, parts, **given)


@pytest.fixture(scope="session")
def template(new_stack, parts, template_of):
    """That of the smallest warm-up, for tests that only read it."""
    stack = new_stack()
    warm_up_in(stack, parts)
    return template_of(stack)


def test_runs_after_the_endpoint_and_again_for_each_configuration(template):
    resource = template.only("Custom::WarmUp")
    endpoint = template.only_id("AWS::SageMaker::Endpoint")
    assert resource["EndpointName"] == {"Fn::GetAtt": [endpoint, "EndpointName"]}
    assert resource["EndpointConfigName"] == {
        "Fn::GetAtt": [template.only_id("AWS::SageMaker::EndpointConfig"), "EndpointConfigName"]
    }


def test_says_how_much_is_sent(stack, make, template_of):
    make(
        requests=4938,
        concurrency_per_zone=8,
        last=100,
        timeout=Duration.minutes(5),
        latency=LatencyTarget(p50=Duration.millis(40), p99=Duration.millis(200)),
        on_miss="warn",
    )
    resource = template_of(stack).only("Custom::WarmUp")
    assert {
        name: resource[name]
        for name in (
            "RequestsPerZone",
            "ConcurrencyPerZone",
            "Last",
            "TimeoutSeconds",
            "Target",
            "OnMiss",
        )
    } == {
        "RequestsPerZone": 2469,
        "ConcurrencyPerZone": 8,
        "Last": 100,
        "TimeoutSeconds": 300,
        "Target": {"p50": 40, "p99": 200},
        "OnMiss": "WARN",
    }


def test_defaults_fail_the_deployment_after_ten_minutes(template):
    resource = template.only("Custom::WarmUp")
    assert (resource["OnMiss"], resource["TimeoutSeconds"], resource["Target"]) == ("FAIL", 600, {})
    assert resource["RequestsPerZone"] == 50
    timeout = function_of(template, "Controller")["Timeout"]
    # The function reports before it ends, and CloudFormation waits until after.
    assert 600 < timeout < int(resource["ServiceTimeout"]) < 3600


def test_the_longest_warm_up_fits_into_lambdas_fifteen_minutes(stack, make, template_of):
    make(timeout=Duration.seconds(810))
    assert function_of(template_of(stack), "Controller")["Timeout"] == 900


def test_waits_for_the_security_groups_rules(template):
    rules = [
        logical_id
        for kind in ("Ingress", "Egress")
        for logical_id in template.of_type(f"AWS::EC2::SecurityGroup{kind}")
        if "WarmUp" in logical_id
    ]
    assert len(rules) == 2
    waits_for = template.depends_on(template.only_id("Custom::WarmUp"))
    assert set(rules) <= set(waits_for)


def test_another_payload_is_tried_at_once(new_stack, parts, template_of):
    digests = set()
    for payload in (
        PAYLOAD,
        WarmUpPayload(data={"inputs": "I hate you."}),
        WarmUpPayload(data={"inputs": "I like you."}, target_container="a"),
        [PAYLOAD, PAYLOAD],
    ):
        stack = new_stack()
        network = parts.network(stack)
        WarmUp(
            stack,
            "WarmUp",
            endpoint=parts.endpoint(stack),
            network=network,
            options=WarmUpOptions(payload=payload),
            private_link=RuntimePrivateLink(stack, "Link", network=network),
        )
        digests.add(template_of(stack).only("Custom::WarmUp")["Payload"])
    assert len(digests) == 4


def test_the_results_are_attributes(stack, make, template_of):
    made = make()
    for name in ("outcome", "requests_sent", "failed_requests", "zones_report"):
        cdk.CfnOutput(stack, name.replace("_", ""), value=getattr(made, name))
    template = template_of(stack)
    attributes = {output["Value"]["Fn::GetAtt"][1] for output in template["Outputs"].values()}
    data = controller._verdict(
        {"outcome": "met", "requests": 1, "failed": 0, "seconds": 1, "zones": {}}, {}, False
    )[2]
    assert attributes <= set(data)
    assert len(attributes) == 4


def rules_of(template):
    return [
        (logical_id, rule)
        for logical_id, rule in template.of_type("AWS::Events::Rule").items()
        if logical_id.startswith("WarmUp")
    ]


def test_hears_of_this_endpoints_deployments(template):
    ((rule_id, rule),) = rules_of(template)
    assert rule["EventPattern"] == {
        "source": ["aws.sagemaker"],
        "detail-type": [controller.DEPLOYMENT_EVENT],
        "resources": [{"Ref": template.only_id("AWS::SageMaker::Endpoint")}],
    }
    permission = template.only("AWS::Lambda::Permission")
    assert permission["SourceArn"] == {"Fn::GetAtt": [rule_id, "Arn"]}
    assert permission["Principal"] == "events.amazonaws.com"
    assert "Controller" in permission["FunctionName"]["Ref"]


def test_deployments_can_be_left_alone(stack, make, template_of):
    make(during_deployments=False)
    assert rules_of(template_of(stack)) == []


def test_keep_warm_by_default_sends_one_request_a_minute_below_one_per_second(
    stack, make, template_of
):
    make(during_deployments=False).keep_warm(KeepWarmOptions())
    template = template_of(stack)
    ((_, rule),) = rules_of(template)
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    assert json.loads(rule["Targets"][0]["Input"]) == {
        "keep_warm": {"requests_per_zone": 1, "below_tps": 1.0, "window_seconds": 300}
    }
    assert may(template, "Controller")["cloudwatch:GetMetricStatistics"] == "*"


def test_keep_warm_as_given(stack, make, template_of):
    made = make(during_deployments=False)
    made.keep_warm(
        KeepWarmOptions(
            every=Duration.minutes(5),
            requests_per_zone=4,
            below_tps=0.5,
            window=Duration.minutes(15),
        )
    )
    ((_, rule),) = rules_of(template_of(stack))
    assert rule["ScheduleExpression"] == "rate(5 minutes)"
    assert json.loads(rule["Targets"][0]["Input"])["keep_warm"] == {
        "requests_per_zone": 4,
        "below_tps": 0.5,
        "window_seconds": 900,
    }


def test_the_default_threshold_stays_above_what_keep_warm_sends(stack, make, template_of):
    made = make(during_deployments=False)
    made.keep_warm(KeepWarmOptions(requests_per_zone=60))  # two zones: 2 per second
    ((_, rule),) = rules_of(template_of(stack))
    assert json.loads(rule["Targets"][0]["Input"])["keep_warm"]["below_tps"] == 4


def test_keep_warm_refuses_requests_that_count_as_traffic(make):
    made = make()
    with refused("LLE553"):
        made.keep_warm(KeepWarmOptions(below_tps=2 / 60))  # exactly what two zones get
    made.keep_warm(KeepWarmOptions())  # a refused call leaves nothing behind


def test_keep_warm_is_called_once(make):
    made = make()
    made.keep_warm(KeepWarmOptions())
    with refused("LLE554"):
        made.keep_warm(KeepWarmOptions())


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
    # Lambda needs these for the interfaces; the code does not. It may look: the function that waits
    # for SageMaker's interfaces looks too, and Safeguards(function_role=...) gives both one role.
    looking = {"ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"}
    assert set(denied["Action"]) == interfaces - looking
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
        "warm_up_function/canary.py",
        "warm_up_function/controller.py",
        "warm_up_function/exchanges.py",
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


@pytest.mark.parametrize("number", [0, 101])
def test_so_many_payloads_are_refused(make, number):
    with refused("LLE544"):
        make(payload=[PAYLOAD] * number)


def test_a_warm_up_by_itself_sends_something(make):
    with refused("LLE541"):
        make(requests=0)


def test_refuses_a_network_of_another_vpc(stack, parts, make):
    other = parts.network(stack, "Other")
    link = RuntimePrivateLink(stack, "OtherLink", network=other)
    with refused("LLE216"):
        make(private_link=link)


@pytest.mark.parametrize(
    ("make_payload", "code"),
    [
        (lambda: WarmUpPayload(data={"inputs": object()}), "LLE557"),
        (lambda: WarmUpPayload(data={"inputs": float("nan")}), "LLE557"),
        (lambda: WarmUpPayload(data={"inputs": "\ud800"}), "LLE557"),
        (lambda: WarmUpPayload(text="\ud800"), "LLE557"),
        (lambda: WarmUpPayload(data={"inputs": cdk.Aws.REGION}).body, "LLE547"),
        (lambda: WarmUpPayload(text=cdk.Aws.REGION).body, "LLE547"),
        (lambda: WarmUpPayload(text="x", content_type="text/csv\r\nX-Evil: 1"), "LLE557"),
        (lambda: WarmUpPayload(text="x", target_model=cdk.Aws.REGION).headers, "LLE547"),
        (lambda: WarmUpPayload(file="no-such-file.json", content_type="a/b").body, "LLE546"),
        (lambda: WarmUpPayload(file=".", content_type="a/b").body, "LLE546"),
        (lambda: WarmUpPayload(file="request.json"), "LLE928"),
        (lambda: WarmUpPayload(data={}, text="{}"), "LLE927"),
        (lambda: WarmUpPayload(text="x" * (25 * 1024 * 1024 + 1)), "LLE545"),
    ],
)
def test_payloads_refused(make_payload, code):
    with refused(code):
        make_payload()


def test_a_payload_from_a_file_is_its_bytes(tmp_path):
    file = tmp_path / "image.npy"
    file.write_bytes(bytes(range(256)))
    payload = WarmUpPayload(file=file, content_type="application/x-npy")
    assert payload.body == bytes(range(256))


def test_json_keeps_its_letters():
    assert WarmUpPayload(data={"inputs": "Grüße"}).body == '{"inputs":"Grüße"}'.encode()


def test_a_payload_above_the_api_models_limit_is_a_warning(stack, make):
    made = make(payload=WarmUpPayload(text="x" * 6_291_457))
    assert warnings_after_synth(made, "larger than 6,291,456 bytes")


@pytest.mark.parametrize(("fips", "label"), [(False, "runtime"), (True, "runtime-fips")])
def test_an_adopted_endpoint_without_a_name_is_called_by_the_regional_one(
    stack, parts, make, template_of, fips, label
):
    network = parts.network(stack)
    adopted = ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        stack, "Adopted", vpc_endpoint_id="vpce-0123456789abcdef0", port=443
    )
    link = RuntimePrivateLink.from_interface_endpoint(
        stack, "Link", network=network, interface_endpoint=adopted, fips=fips
    )
    made = make(network=network, private_link=link)
    assert warnings_after_synth(made, "zonal names are not known")
    template = template_of(stack)
    variable = function_of(template, "Sender")["Environment"]["Variables"]["WARM_UP"]
    text = "".join(
        part if isinstance(part, str) else "amazonaws.com" for part in variable["Fn::Join"][1]
    )
    assert json.loads(text)["zones"] == {"region": f"{label}.sagemaker.us-east-1.amazonaws.com"}
    (group,) = [
        group
        for logical_id, group in template.of_type("AWS::EC2::SecurityGroup").items()
        if "WarmUp" in logical_id
    ]
    (rule,) = group["SecurityGroupEgress"]
    assert (rule["CidrIp"], rule["FromPort"], rule["ToPort"]) == ("0.0.0.0/0", 443, 443)


def test_works_in_a_vpc_that_exists(stack, parts, make, template_of):
    vpc = ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=["us-east-1a", "us-east-1b"],
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )
    network = parts.network_in(stack, vpc, "Theirs")
    endpoint = parts.endpoint(
        stack, variants=[parts.variant(stack, model=parts.model(stack, network=network))]
    )
    make(network=network, endpoint=endpoint)
    function = function_of(template_of(stack), "Sender")
    assert function["VpcConfig"]["SubnetIds"] == [
        "subnet-0123456789abcdef0",
        "subnet-0123456789abcdef1",
    ]


def test_what_construct_and_function_both_know_is_the_same():
    assert warm_up_module._SENDER_SECONDS == controller.SENDER_SECONDS
    assert warm_up_module._DEPLOYMENT_EVENT == controller.DEPLOYMENT_EVENT
    assert warm_up_rules.MARGIN_SECONDS > sender.READ_TIMEOUT
