"""What `verify` and `diagnose` say of changes by hand puts them back: with the CDK CLI as users run it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore import xform_name

from local_sagemaker import LocalAws
from low_latency_endpoint.account.clock import account_now
from low_latency_endpoint.operate.diagnose import diagnose
from low_latency_endpoint.operate.verify import run_verification
from tests.operate.conftest import NAME, ROOT, STACK

WHERE = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{NAME}/variant/primary",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
pytestmark = pytest.mark.realtime  # the CDK CLI five times
AFTER_ALARMS = ("LLV503", "LLV301", "LLV302")  # no traffic here, and no VPC


def cdk(aws: LocalAws, *arguments: str) -> str:
    done = subprocess.run(
        [str(ROOT / "node_modules/.bin/cdk"), *arguments, "--no-notices", "--no-color"],
        env=aws.environment(),
        cwd=aws.log_path.parent,  # outside the project, bootstrapping needs no synthesis
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def shipped(assembly: Path) -> Iterator[LocalAws]:
    """The stack of endpoint.yaml as the CDK CLI deploys it."""
    with LocalAws.in_process(region="us-east-1") as aws:
        aws.reset()
        cdk(aws, "bootstrap", f"aws://{aws.account}/us-east-1")
        deploy(aws, assembly)
        yield aws
        aws.reset()


def deploy(aws: LocalAws, assembly: Path, *options: str) -> str:
    approved = ("--require-approval", "never")
    return cdk(aws, "deploy", "--app", str(assembly), STACK, *approved, *options)


def problems(aws: LocalAws) -> dict[str, tuple[str, str]]:
    found = run_verification(STACK, aws.client, "us-east-1").results
    wrong = [each for each in found if each.status != "pass" and each.id not in AFTER_ALARMS]
    return {each.evidence: (each.id, each.fix) for each in wrong}


def run_as_printed(aws: LocalAws, fix: str) -> None:
    """Do with boto3 what the command in a fix does with the AWS CLI."""
    (command,) = re.findall(r"`aws (.*?)`", fix)
    service, operation, *words = shlex.split(command)
    client = aws.client(service)
    method = operation.replace("-", "_")
    members = client.meta.service_model.operation_model(
        client.meta.method_to_api_mapping[method]
    ).input_shape.members
    named = {xform_name(name, "-"): name for name in members}
    arguments: dict[str, Any] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        shape = members[named[option.removeprefix("--")]]
        given: Any = value
        if shape.type_name == "list":
            given = [value]
        elif value.startswith("{"):
            given = json.loads(value)
        elif shape.type_name == "structure":
            pairs = (each.split("=") for each in value.split(","))
            given = {key: flag == "true" for key, flag in pairs}
        arguments[named[option.removeprefix("--")]] = given
    getattr(client, method)(**arguments)


def lower(aws: LocalAws) -> None:
    scaling = aws.client("application-autoscaling")
    scaling.register_scalable_target(**WHERE, MinCapacity=2, MaxCapacity=2)


def other_policy(aws: LocalAws) -> None:
    scaling = aws.client("application-autoscaling")
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    kind = "TargetTrackingScalingPolicyConfiguration"
    scaling.put_scaling_policy(
        **WHERE,
        PolicyName=policy["PolicyName"],
        PolicyType="TargetTrackingScaling",
        **{kind: {**policy[kind], "TargetValue": 90000.0, "ScaleOutCooldown": 900}},
    )


def delete_policy(aws: LocalAws) -> None:
    scaling = aws.client("application-autoscaling")
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    scaling.delete_scaling_policy(**WHERE, PolicyName=policy["PolicyName"])


def suspend(aws: LocalAws) -> None:
    aws.client("application-autoscaling").register_scalable_target(
        **WHERE, SuspendedState={"DynamicScalingOutSuspended": True}
    )


def alarms(aws: LocalAws, words: str) -> list[str]:
    found = aws.client("cloudwatch").describe_alarms(AlarmTypes=["MetricAlarm", "CompositeAlarm"])
    names = [
        each["AlarmName"] for kind in ("MetricAlarms", "CompositeAlarms") for each in found[kind]
    ]
    return [each for each in names if words in each]


def delete_alarms(aws: LocalAws) -> None:
    cloudwatch = aws.client("cloudwatch")
    for words in ("Composite", "CPUUtilization"):  # one that is composed of alarms goes first
        cloudwatch.delete_alarms(AlarmNames=alarms(aws, words))


def silence(aws: LocalAws) -> None:
    aws.client("cloudwatch").disable_alarm_actions(AlarmNames=alarms(aws, "CPUUtilization"))


def point_elsewhere(aws: LocalAws) -> None:
    sagemaker = aws.client("sagemaker")
    serving = sagemaker.describe_endpoint(EndpointName=NAME)["EndpointConfigName"]
    stated = sagemaker.describe_endpoint_config(EndpointConfigName=serving)
    variants = [
        {**each, "RoutingConfig": {"RoutingStrategy": "RANDOM"}}
        for each in stated["ProductionVariants"]
    ]
    sagemaker.create_endpoint_config(EndpointConfigName="by-hand", ProductionVariants=variants)
    sagemaker.update_endpoint(
        EndpointName=NAME, EndpointConfigName="by-hand", RetainAllVariantProperties=True
    )
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=NAME, WaiterConfig={"Delay": 1})


def test_the_repair_of_verify_repairs(shipped: LocalAws, assembly: Path) -> None:
    assert problems(shipped) == {}
    for change in (lower, delete_alarms, point_elsewhere):
        change(shipped)
    wrong = problems(shipped)
    assert {each for each, _ in wrong.values()} == {
        "LLV403",
        "LLV405",
        "LLV406",
        "LLV407",
        "LLV501",
    }
    now = account_now()
    made = diagnose(shipped.client, NAME, start=now - timedelta(hours=1), end=now, now=now)
    found = made.findings[0]
    assert found.id == "LLD704"
    told = [each.text for each in found.evidence]
    assert any("MaxCapacity is 2" in each and "user/moto" in each for each in told), told
    assert [each.text for each in found.changes] == ["npx cdk deploy --revert-drift"]
    assert "(no changes)" in deploy(shipped, assembly)
    assert problems(shipped) == wrong
    assert "AWS::ApplicationAutoScaling::ScalableTarget" in deploy(
        shipped, assembly, "--revert-drift"
    )
    assert problems(shipped) == {}
    assert "(no changes)" in deploy(shipped, assembly, "--revert-drift")
    shipped.client("sagemaker").delete_endpoint_config(EndpointConfigName="by-hand")


@pytest.mark.parametrize("change", [other_policy, delete_policy, suspend, silence])
def test_the_command_of_a_fix_repairs(
    shipped: LocalAws, change: Callable[[LocalAws], None]
) -> None:
    change(shipped)
    ((_, fix),) = problems(shipped).values()
    run_as_printed(shipped, fix)
    assert problems(shipped) == {}
