"""The server as a process: loopback only, no real credential, gone afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from commands import command, python
from signed_requests import client_with, is_open

from local_sagemaker import LocalAws, deploy_template

pytestmark = pytest.mark.realtime

TOPIC = {"Resources": {"T": {"Type": "AWS::SNS::Topic"}}}


def listening(port: int) -> list[str]:
    """Give the local addresses of the listening sockets on a port, as Linux knows them."""
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            address, hex_port = line.split()[1].split(":")
            if line.split()[3] == "0A" and int(hex_port, 16) == port:
                found.append(address)
    return found


def test_a_process_of_its_own(monkeypatch):
    for name, value in {
        "AWS_PROFILE": "production",
        "AWS_ACCESS_KEY_ID": "AKIAREAL",
        "AWS_SECRET_ACCESS_KEY": "real",
        "AWS_SESSION_TOKEN": "real",
        "AWS_ENDPOINT_URL_SAGEMAKER": "https://api.sagemaker.us-east-1.amazonaws.com",
        "CDK_DEFAULT_ACCOUNT": "999999999999",
    }.items():
        monkeypatch.setenv(name, value)
    with LocalAws.start(region="eu-central-1") as aws:
        assert aws.url == f"http://localhost:{aws.port}"
        assert (aws.account, aws.region) == ("123456789012", "eu-central-1")
        # 127.0.0.1, in the byte order of /proc/net/tcp, and nothing on IPv6.
        assert listening(aws.port) == ["0100007F"]
        environment = aws.environment()
        allowed = set(aws.exports())
        assert {name for name in environment if name.startswith("AWS_")} <= allowed
        assert environment["AWS_ENDPOINT_URL"] == aws.url
        for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
            assert environment[name] == os.devnull
        assert environment["AWS_EC2_METADATA_DISABLED"] == "true"
        assert environment["CDK_DEFAULT_ACCOUNT"] == aws.account
        assert environment["PATH"] == os.environ["PATH"]
        assert not {"AKIAREAL", "real", "production"} & set(environment.values())
        stack = deploy_template(aws, TOPIC, "X")
        assert stack.resources["T"].startswith("arn:aws:sns:eu-central-1:123456789012:X-T-")
        assert aws.leftovers() == ["cloudformation: X", f"sns: {stack.resources['T']}"]
        aws.reset()
        assert aws.leftovers() == []
        assert aws.client("cloudformation").describe_stacks()["Stacks"] == []
        assert "POST / -> 200" in aws.log_path.read_text()
        assert "not emulated" not in aws.log_path.read_text()
        port = aws.port
    assert not is_open(port)
    aws.stop()  # stopping twice is no error


def test_what_is_left_is_listed_whatever_service_it_is_of():
    with LocalAws.in_process() as aws:
        aws.reset()
        iam, ec2 = aws.client("iam"), aws.client("ec2")
        zone = ec2.describe_availability_zones()["AvailabilityZones"][0]["ZoneName"]
        secret = aws.client("secretsmanager").create_secret(Name="s", SecretString="s")["ARN"]
        volume = ec2.create_volume(AvailabilityZone=zone, Size=1)["VolumeId"]
        vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
        acl = ec2.create_network_acl(VpcId=vpc)["NetworkAcl"]["NetworkAclId"]
        iam.create_user(UserName="somebody")
        iam.create_instance_profile(InstanceProfileName="profile")
        aws.client("dynamodb").create_table(
            TableName="table",
            KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        assert aws.leftovers() == sorted(
            [
                *("dynamodb: table", f"ec2: {acl}", f"ec2: {volume}", f"ec2: {vpc}"),
                *("iam: profile", "iam: somebody", f"secretsmanager: {secret}"),
            ]
        )


def test_the_command_prints_the_exports_and_serves_until_interrupted(aws):
    options = "--region eu-west-3 --model-server *=simulated --clock-speed 60 --behave "
    words = f"{options} concurrent_executions=10".split()
    with command(*words, stderr=subprocess.PIPE) as (process, exports):
        assert set(exports) == set(aws.exports())
        assert exports["AWS_REGION"] == "eu-west-3"
        port = int(exports["AWS_ENDPOINT_URL"].rpartition(":")[2])
        assert is_open(port)
        keys = (exports["AWS_ACCESS_KEY_ID"], exports["AWS_SECRET_ACCESS_KEY"])
        functions = client_with("lambda", exports["AWS_ENDPOINT_URL"], *keys)
        assert functions.get_account_settings()["AccountLimit"]["ConcurrentExecutions"] == 10
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        assert process.stdout.read() == ""
        zones = [line for line in process.stderr.read().splitlines() if "Callers in euw3-" in line]
        assert len({line.rpartition("http://127.0.0.1:")[2] for line in zones}) == 3
    assert not is_open(port)


def test_in_process_listens_on_loopback_only():
    with LocalAws.in_process(region="eu-north-1") as aws:
        assert listening(aws.port) == ["0100007F"]
        assert aws.client("sts").get_caller_identity()["Account"] == aws.account
    assert not is_open(aws.port)


def test_the_last_server_of_a_process_takes_the_state_with_it():
    # In a process of its own: this one has a server for all tests.
    code = f"""
from local_sagemaker import LocalAws, deploy_template

MODEL = {{"ModelName": "m", "PrimaryContainer": {{"Image": "i"}}}}


def kept(aws):
    metrics = aws.client("cloudwatch").list_metrics(Namespace="Test")["Metrics"]
    return [*aws.leftovers(), *(metric["MetricName"] for metric in metrics)]


first, second = LocalAws.in_process(), LocalAws.in_process()
deploy_template(first, {TOPIC}, "X")
first.client("sagemaker").create_model(**MODEL, ExecutionRoleArn="arn:aws:iam::123456789012:role/r")
first.client("s3").create_bucket(Bucket="bucket")
first.client("cloudwatch").put_metric_data(
    Namespace="Test", MetricData=[{{"MetricName": "calls", "Value": 1}}]
)
first.evaluate_alarms_in_background()
made = kept(first)
first.stop()
assert kept(second) == made, (kept(second), made)
second.stop()
with LocalAws.in_process() as third:
    print(len(made), kept(third), third.client("cloudformation").describe_stacks()["Stacks"])
"""
    done = python("-c", code)
    assert done.stdout == "5 [] []\n", done.stderr


def test_a_server_that_nobody_stops_does_not_keep_its_process():
    code = "from local_sagemaker import LocalAws; aws = LocalAws.in_process(); aws.runtime_url()"
    began = time.monotonic()
    done = python("-c", f"{code}; print(LocalAws.in_process().client('sts') != None)")
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert time.monotonic() - began < 50  # a thread that is gone was waited for for a minute
