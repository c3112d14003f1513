"""AWS::Lambda::*, and running functions without Docker."""

from __future__ import annotations

import io
import json
import os
import signal
import zipfile
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError
from roles_under_test import allow, give_role
from signed_requests import refusal
from stacks_under_test import FUNCTION, TestStack, function, resource_of, zip_of
from waiting import alive

from local_sagemaker import LocalAws, archives, lambda_runner
from local_sagemaker.runtime.options import RuntimeOptions

ECHO = """
import json, os
def handler(event, context):
    print("hello from", context.function_name)
    return {"event": event, "stage": os.environ.get("STAGE"), "arn": context.invoked_function_arn}
"""


def invoke(aws: Any, name: str, event: Any) -> tuple[Any, str | None]:
    answer = aws.client("lambda").invoke(FunctionName=name, Payload=json.dumps(event))
    return json.loads(answer["Payload"].read()), answer.get("FunctionError")


def test_function_is_created_run_and_updated(aws, stack, role):
    settings = {"Timeout": 20, "MemorySize": 256, "Environment": {"Variables": {"STAGE": "one"}}}
    made = stack.deploy(FUNCTION, function(ECHO, **settings), ("Arn",), Role=role)
    found = aws.client("lambda").get_function_configuration(FunctionName=made.ref)
    assert found["FunctionArn"] == made.attributes["Arn"]
    assert (found["Timeout"], found["MemorySize"], found["Runtime"]) == (20, 256, "python3.12")
    answer, error = invoke(aws, made.ref, {"a": 1})
    assert error is None
    assert answer == {"event": {"a": 1}, "stage": "one", "arn": made.attributes["Arn"]}
    streams = aws.client("logs").filter_log_events(logGroupName=f"/aws/lambda/{made.ref}")
    assert any("hello from" in event["message"] for event in streams["events"])

    code = "def handler(event, context):\n    return 'new'\n"
    assert stack.deploy(FUNCTION, function(code, Timeout=5), Role=role).ref == made.ref
    assert invoke(aws, made.ref, {}) == ("new", None)
    found = aws.client("lambda").get_function_configuration(FunctionName=made.ref)
    assert (found["Timeout"], found["MemorySize"]) == (5, 128)
    assert not found.get("Environment", {}).get("Variables")

    renamed = stack.deploy(FUNCTION, function(code, FunctionName="renamed"), Role=role)
    assert renamed.ref == "renamed"
    names = [f["FunctionName"] for f in aws.client("lambda").list_functions()["Functions"]]
    assert made.ref not in names


def test_function_from_an_archive_in_s3(aws, stack, role):
    files = {
        "package/code": "from . import part\nhandler = part.handler\n",
        "package/__init__": "",
        "package/part": "def handler(event, context):\n    return event['x']\n",
    }
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="functions")
    s3.put_object(Bucket="functions", Key="code.zip", Body=zip_of(**files))
    code = {"S3Bucket": "functions", "S3Key": "code.zip"}
    properties = function(Code=code, Handler="package/code.handler")
    made = stack.deploy(FUNCTION, properties, Role=role)
    assert invoke(aws, made.ref, {"x": 42}) == (42, None)
    s3.delete_object(Bucket="functions", Key="code.zip")
    s3.delete_bucket(Bucket="functions")


def test_a_function_reaches_the_local_aws_and_nothing_of_the_users(aws, stack, role, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the user's own")
    monkeypatch.setenv("SECRET_OF_THE_USER", "secret")
    code = """
import boto3, os
def handler(event, context):
    identity = boto3.client("sts").get_caller_identity()
    return {"account": identity["Account"], "env": dict(os.environ)}
"""
    own = {"Variables": {"AWS_ENDPOINT_URL_STS": "https://sts.amazonaws.com", "MINE": "1"}}
    made = stack.deploy(FUNCTION, function(code, Environment=own, Timeout=30), Role=role)
    answer, error = invoke(aws, made.ref, {})
    assert error is None
    assert answer["account"] == aws.account
    environment = answer["env"]
    assert environment["AWS_ENDPOINT_URL"].endswith(str(aws.port))
    assert environment["MINE"] == "1"
    assert not {"AWS_ENDPOINT_URL_STS", "SECRET_OF_THE_USER"} & set(environment)
    assert "the user's own" not in environment.values()


def test_a_functions_error_is_told(aws, stack, role):
    code = "def handler(event, context):\n    raise ValueError('too bad')\n"
    made = stack.deploy(FUNCTION, function(code), Role=role)
    answer, error = invoke(aws, made.ref, {})
    assert error == "Unhandled"  # Developer guide, "Invoke a Lambda function synchronously"
    assert (answer["errorType"], answer["errorMessage"]) == ("ValueError", "too bad")


@pytest.mark.parametrize(
    "payload", ['"abc"', '""', "[]", "0", "false", "null", '{"a": [1, "\u00e9"]}', "", "{"]
)
def test_a_function_gets_any_json_and_nothing_else(aws, stack, role, payload):
    """API reference, Invoke, Payload, and InvalidRequestContentException."""
    name = stack.deploy(FUNCTION, function("def handler(e, c):\n    return [e]\n"), Role=role).ref
    call = partial(aws.client("lambda").invoke, FunctionName=name, Payload=payload)
    if payload == "{":
        assert refusal(call)[0] == "InvalidRequestContentException"
        return
    assert json.loads(call()["Payload"].read()) == [json.loads(payload or "{}")]
    assert call(InvocationType="DryRun")["StatusCode"] == 204


@pytest.mark.parametrize(("kind", "most"), [("RequestResponse", 6 * 2**20), ("Event", 2**20)])
def test_a_payload_has_a_largest_size(aws, stack, role, kind, most):
    """Developer guide, Lambda quotas; API reference, Invoke, RequestTooLargeException."""
    name = stack.deploy(FUNCTION, function("def handler(e, c):\n    return 1\n"), Role=role).ref
    call = partial(aws.client("lambda").invoke, FunctionName=name, InvocationType=kind)
    call(Payload=b'"' + b"x" * (most - 2) + b'"')
    with pytest.raises(ClientError) as refused:
        call(Payload=b'"' + b"x" * (most - 1) + b'"')
    answer = refused.value.response
    assert answer["Error"]["Code"] == "RequestTooLargeException"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 413


def test_an_unknown_version_is_not_run(aws, stack, role):
    """API reference, Invoke, Qualifier."""
    name = stack.deploy(FUNCTION, function(ECHO), Role=role).ref
    call = partial(aws.client("lambda").invoke, FunctionName=name, Payload="{}")
    assert refusal(partial(call, Qualifier="7"))[0] == "ResourceNotFoundException"
    assert call(Qualifier="$LATEST")["StatusCode"] == 200


def test_a_function_is_put_into_one_vpc(aws, stack, role):
    """Developer guide, "Giving Lambda functions access to resources in an Amazon VPC"."""
    ec2 = aws.client("ec2")
    subnets, groups = [], []
    for number in range(2):
        vpc = ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"]
        subnet = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.{number}.1.0/24")["Subnet"]
        subnets.append(subnet["SubnetId"])
        group = ec2.create_security_group(GroupName="g", Description="g", VpcId=vpc)
        groups.append(group["GroupId"])
    absent = f"{groups[0][:-4]}0000"
    network = {"SubnetIds": subnets[:1], "SecurityGroupIds": groups[:1]}
    name = stack.deploy(FUNCTION, function(ECHO, VpcConfig=network), Role=role).ref
    update = partial(aws.client("lambda").update_function_configuration, FunctionName=name)
    refused = [
        ({"SecurityGroupIds": []}, "must coexist or be both empty list"),
        ({"SubnetIds": []}, "must coexist or be both empty list"),
        ({"SecurityGroupIds": groups[1:]}, "Security Groups are required to be in the same VPC"),
        ({"SecurityGroupIds": groups}, "Security Groups are required to be in the same VPC"),
        ({"SubnetIds": subnets}, "Subnets are required to be in the same VPC"),
        ({"SecurityGroupIds": [absent]}, f"The security group '{absent}' does not exist"),
        ({"SubnetIds": ["subnet-0123456789abcdef0"]}, "EC2 Error Code: InvalidSubnetID.NotFound"),
    ]
    for change, words in refused:
        code, told = refusal(update, VpcConfig={**network, **change})
        assert code == "InvalidParameterValueException"
        assert words in told
    two_vpcs = function(ECHO, VpcConfig={**network, "SecurityGroupIds": groups[1:]})
    assert "in the same VPC" in stack.refusal(FUNCTION, two_vpcs, Role=role)


NOTHING = lambda_runner.PythonFunction(
    *("f", "arn", "python3.12", "index.handler", b""), 1, 128, {}, "us-east-1", "http://localhost:1"
)


def test_a_function_that_hangs_is_stopped():
    code = zip_of("import time\ndef handler(event, context):\n    time.sleep(60)\n")
    outcome = lambda_runner.run(replace(NOTHING, code=code), {})
    assert outcome.failed
    assert outcome.error == "Task timed out after 1.00 seconds"


DETACHED = """
import os, pathlib, subprocess, sys, time
def handler(event, context):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], **event["how"])
    pathlib.Path(event["told"]).write_text(str(child.pid))
    print("said before the end", flush=True)
    time.sleep(event["seconds"])
    return "done"
"""


@pytest.mark.parametrize("how", [{}, {"start_new_session": True}], ids=["child", "own session"])
@pytest.mark.parametrize("seconds", [0, 60], ids=["returns", "hangs"])
def test_a_child_that_a_function_leaves_ends_with_the_invocation(how, seconds, tmp_path):
    """It kept the pipe open: the function had returned, and was said to have timed out."""
    told = tmp_path / "child"
    # The time to start is not counted; starting a child is. And one that is over for certain.
    leaves = replace(NOTHING, code=zip_of(DETACHED), timeout=2 if seconds else 60)
    outcome = lambda_runner.run(leaves, {"told": str(told), "how": how, "seconds": seconds})
    assert "said before the end" in outcome.log
    if seconds:
        assert outcome.error == "Task timed out after 2.00 seconds"
    else:
        assert (outcome.payload, outcome.failed) == ('"done"', False)
    assert not alive(int(told.read_text()))


def test_a_library_that_a_function_brings_goes_before_the_one_that_is_there():
    """boto3 is in the process already that functions are forked from."""
    code = "import boto3\ndef handler(event, context):\n    return boto3.mine\n"
    brought = zip_of(code, boto3="mine = 'yes'\n")
    assert lambda_runner.run(replace(NOTHING, code=brought, timeout=60), {}).payload == '"yes"'


HOST = """
from pathlib import Path
import os
def handler(event, context):
    return int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
"""


def test_functions_run_after_the_process_that_they_are_forked_from_was_killed():
    tells = replace(NOTHING, code=zip_of(HOST), timeout=60)
    first = int(lambda_runner.run(tells, {}).payload)
    assert int(lambda_runner.run(tells, {}).payload) == first
    os.kill(first, signal.SIGKILL)
    outcome = lambda_runner.run(tells, {})
    assert not outcome.failed
    assert int(outcome.payload) != first
    lambda_runner.forget()
    assert not alive(int(outcome.payload))


def bomb(size: int, entries: int = 1) -> bytes:
    """An archive of zeros, a thousandth of what it unpacks to."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("index.py", "def handler(event, context):\n    return 1\n")
        for number in range(entries):
            with archive.open(f"{number}.bin", "w") as entry:
                for _ in range(0, size, 2**20):
                    entry.write(bytes(min(size, 2**20)))
    return buffer.getvalue()


REFUSED = [
    (lambda: bomb(250 * 2**20), "Unzipped size must be smaller than 262144000 bytes", {}),
    (lambda: bomb(2 * 2**20, 2), "must be smaller than 3145728", {"LARGEST_CODE": 3 * 2**20}),
    (lambda: bomb(0, 1001), "more than 1000 entries", {"MOST_ENTRIES": 1000}),
    (lambda: b"no archive", "Could not unzip uploaded file", {}),
]


@pytest.mark.parametrize(
    ("code", "words", "limits"), REFUSED, ids=["too large", "together", "too many", "no archive"]
)
def test_code_that_lambda_would_not_unpack_is_refused(aws, monkeypatch, code, words, limits):
    for name, limit in limits.items():  # lower ones, so that making an archive takes no seconds
        monkeypatch.setattr(archives, name, limit)
    made = code()
    outcome = lambda_runner.run(replace(NOTHING, code=made), {})
    assert outcome.failed
    assert words in outcome.error
    if len(made) > 2**20:  # sending it adds nothing
        return
    client = aws.client("lambda")
    role = give_role(aws, "any", allow("s3:GetObject"), services=("lambda",))
    settings = {"Runtime": "python3.12", "Handler": "index.handler", "Role": role}
    create = partial(client.create_function, FunctionName="large", **settings)
    assert words in refusal(create, Code={"ZipFile": made})[1]
    assert client.list_functions()["Functions"] == []
    create(Code={"ZipFile": zip_of(ECHO)})
    try:
        before = client.get_function_configuration(FunctionName="large")["CodeSha256"]
        update = partial(client.update_function_code, FunctionName="large")
        assert refusal(update, ZipFile=made)[0] == "InvalidParameterValueException"
        after = client.get_function_configuration(FunctionName="large")["CodeSha256"]
        assert before == after
    finally:
        client.delete_function(FunctionName="large")


def test_permission_and_event_invoke_config(aws, stack, role):
    lambda_ = aws.client("lambda")

    def deploy(service: str, attempts: int) -> tuple[str, str]:
        """Give the permission's identifier, and the function's name."""
        function_name = {"FunctionName": {"Ref": "Fn"}}
        config = resource_of(
            "AWS::Lambda::EventInvokeConfig",
            **function_name,
            Qualifier="$LATEST",
            MaximumRetryAttempts=attempts,
        )
        made = stack.deploy(
            "AWS::Lambda::Permission",
            {**function_name, "Action": "lambda:InvokeFunction", "Principal": service},
            Role=role,
            Fn=resource_of(FUNCTION, **function(ECHO)),
            Config=config,
        )
        return made.ref, made.stack.resources["Fn"]

    found = []
    for service, attempts in (("events.amazonaws.com", 0), ("sns.amazonaws.com", 2)):
        permission, name = deploy(service, attempts)
        found.append(permission)
        (statement,) = json.loads(lambda_.get_policy(FunctionName=name)["Policy"])["Statement"]
        assert statement["Principal"] == {"Service": service}
        config = lambda_.get_function_event_invoke_config(FunctionName=name)
        assert config["MaximumRetryAttempts"] == attempts
    assert found[0] != found[1]


def test_code_that_cannot_be_run_is_refused(stack, role):
    image = {**function(ECHO), "Code": {"ImageUri": "x"}}
    assert "Code.ImageUri" in stack.refusal(FUNCTION, image, Role=role)


@pytest.mark.parametrize(
    ("quota", "most", "minimum"), [(1000, 900, 100), (150, 50, 100), (50, 0, 50), (10, 0, 10)]
)
def test_what_an_account_lets_be_reserved(role, quota, most, minimum):
    """PutFunctionConcurrency keeps 100 executions unreserved, or all that the account has."""
    options = RuntimeOptions(concurrent_executions=quota)
    with LocalAws.in_process(runtime=options) as aws:
        stack, lambda_ = TestStack(aws, f"Reserving{quota}"), aws.client("lambda")

        def unreserved() -> int:
            limit = lambda_.get_account_settings()["AccountLimit"]
            assert limit["ConcurrentExecutions"] == quota
            return limit["UnreservedConcurrentExecutions"]

        def reserving(count: int) -> dict[str, Any]:
            return function(ECHO, ReservedConcurrentExecutions=count)

        assert unreserved() == quota
        reason = stack.refusal(FUNCTION, reserving(most + 1), Role=role)
        assert f"below its minimum value of [{minimum}]" in reason
        assert lambda_.list_functions()["Functions"] == []
        stack.delete()
        if most:
            made = stack.deploy(FUNCTION, reserving(most - 1), Role=role)
            assert unreserved() == quota - most + 1
            # Its own reservation does not count against a new one.
            assert stack.deploy(FUNCTION, reserving(most), Role=role).ref == made.ref
            assert unreserved() == quota - most
            stack.deploy(FUNCTION, reserving(0), Role=role)  # no call at all, which is a limit too
            limit = lambda_.get_function_concurrency(FunctionName=made.ref)
            assert limit["ReservedConcurrentExecutions"] == 0
        stack.delete()
        assert unreserved() == quota


def code_signing(aws, policy: str) -> str:
    made = aws.client("lambda").create_code_signing_config(
        AllowedPublishers={"SigningProfileVersionArns": [PROFILE]},
        CodeSigningPolicies={"UntrustedArtifactOnDeployment": policy},
    )
    return str(made["CodeSigningConfig"]["CodeSigningConfigArn"])


def signing_of(aws, name: str) -> str | None:
    found = aws.client("lambda").get_function_code_signing_config(FunctionName=name)
    return found.get("CodeSigningConfigArn")


PROFILE = "arn:aws:signer:us-east-1:123456789012:/signing-profiles/platform/0123456789"


def test_a_code_signing_configuration_is_put_and_taken_away(aws, stack, role):
    first, second = (code_signing(aws, "Warn") for _ in range(2))
    name = stack.deploy(FUNCTION, function(ECHO, CodeSigningConfigArn=first), Role=role).ref
    assert signing_of(aws, name) == first
    stack.deploy(FUNCTION, function(ECHO, CodeSigningConfigArn=second), Role=role)
    assert signing_of(aws, name) == second
    stack.deploy(FUNCTION, function(ECHO), Role=role)
    assert signing_of(aws, name) is None


def test_code_that_is_not_signed_is_refused_where_the_policy_is_enforce(aws, stack, role):
    """Lambda developer guide, "Configuration validation"; one that exists is not looked at."""
    enforced = code_signing(aws, "Enforce")
    reason = stack.refusal(FUNCTION, function(ECHO, CodeSigningConfigArn=enforced), Role=role)
    assert "the code signing policy is set to ENFORCE" in reason
    name = stack.deploy(FUNCTION, function(ECHO), Role=role).ref
    stack.deploy(FUNCTION, function(ECHO, CodeSigningConfigArn=enforced), Role=role)
    update, newer = aws.client("lambda").update_function_code, zip_of("def handler(*_): return 2")
    assert refusal(update, FunctionName=name, ZipFile=newer)[0] == "CodeVerificationFailedException"


def test_a_code_signing_configuration_exists(aws, stack, role):
    unknown = "arn:aws:lambda:us-east-1:123456789012:code-signing-config:csc-0123456789abcdef0"
    name = stack.deploy(FUNCTION, function(ECHO), Role=role).ref
    put = aws.client("lambda").put_function_code_signing_config
    code, _ = refusal(put, FunctionName=name, CodeSigningConfigArn=unknown)
    assert code == "CodeSigningConfigNotFoundException"
