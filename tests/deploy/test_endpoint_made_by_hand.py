"""What docs/how-to/import-and-move.md says of an endpoint that no stack made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from roles_under_test import give_role

from local_sagemaker import DeploymentFailed, LocalAws, delete_stack, deploy_template
from low_latency_endpoint import (
    AlarmOptions,
    Endpoint,
    InstanceType,
    LatencyAlarms,
    VariantAttributes,
)
from low_latency_endpoint.operate.preflight.deploying_role import (
    DeploymentPlace,
    deploying_statements,
)
from tests.deploy.small_stacks import (
    ACCOUNT,
    REGION,
    REGISTRY,
    endpoint_in,
    model_in,
    network_in,
    stack_in,
    synthesised,
    variant_of,
)

NAME = "ranking"


@pytest.fixture
def by_hand(clean_aws: LocalAws) -> LocalAws:
    """A local AWS with an endpoint in service that a notebook made."""
    sagemaker = clean_aws.client("sagemaker")
    trust = statement("sts:AssumeRole", Principal={"Service": "sagemaker.amazonaws.com"})
    rights = statement("ecr:*", Resource="*")
    iam = clean_aws.client("iam")
    role = iam.create_role(RoleName="notebook", AssumeRolePolicyDocument=trust)["Role"]["Arn"]
    iam.put_role_policy(RoleName="notebook", PolicyName="pull", PolicyDocument=rights)
    image = {"Image": f"{REGISTRY}/server:1"}
    sagemaker.create_model(ModelName="m", ExecutionRoleArn=role, PrimaryContainer=image)
    variant = {"VariantName": "AllTraffic", "ModelName": "m", "InstanceType": "ml.m5.xlarge"}
    variant["InitialInstanceCount"] = 2
    sagemaker.create_endpoint_config(EndpointConfigName="c", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName=NAME, EndpointConfigName="c")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName=NAME, WaiterConfig={"Delay": 1})
    return clean_aws


def statement(action: str, **more: Any) -> str:
    allowed = {"Effect": "Allow", "Action": action, **more}
    return json.dumps({"Version": "2012-10-17", "Statement": [allowed]})


def around(folder: Path, most: int) -> Path:
    """An assembly with an alarm on the endpoint's latency, and its scaling."""
    stack = stack_in(folder, "OnCall")
    existing = Endpoint.from_endpoint_attributes(
        stack,
        "Ranking",
        endpoint_name=NAME,
        variants=[
            VariantAttributes(name="AllTraffic", instance_types=[InstanceType("ml.m5.xlarge")])
        ],
    )
    options = AlarmOptions(model_latency={"p99": cdk.Duration.millis(80)})
    LatencyAlarms(stack, "Alarms", endpoint=existing, options=options)
    scaling = existing.scale("AllTraffic", min_instances=2, max_instances=most)
    scaling.track_invocations(target_invocations_per_instance=500)
    return synthesised(stack)


def described(aws: LocalAws) -> dict[str, Any]:
    endpoint: dict[str, Any] = aws.client("sagemaker").describe_endpoint(EndpointName=NAME)
    del endpoint["ResponseMetadata"]
    return endpoint


def most_instances(aws: LocalAws) -> list[int]:
    scaling = aws.client("application-autoscaling")
    targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    return [target["MaxCapacity"] for target in targets]


def test_a_stack_around_the_endpoint_is_deployed_updated_and_deleted(by_hand, tmp_path):
    before = described(by_hand)
    place = DeploymentPlace("OnCall", ACCOUNT, REGION)
    needed = [one.in_policy(place) for one in deploying_statements() if not one.when]
    role = give_role(by_hand, "deploys", *needed, services=("cloudformation",))
    deploy_template(by_hand, around(tmp_path / "first", 6), "OnCall", role_arn=role)
    assert most_instances(by_hand) == [6]
    deploy_template(by_hand, around(tmp_path / "second", 8), "OnCall", role_arn=role)
    assert most_instances(by_hand) == [8]
    delete_stack(by_hand, "OnCall")
    assert most_instances(by_hand) == []
    assert described(by_hand) == before


def test_a_stack_with_the_name_of_the_endpoint_fails_and_leaves_it(by_hand, tmp_path):
    before = described(by_hand)
    stack = stack_in(tmp_path, "Own")
    variant = variant_of(model_in(stack, network_in(stack), "server:1"))
    endpoint_in(stack, variant, endpoint_name=NAME)
    with pytest.raises(DeploymentFailed, match="already existing endpoint"):
        deploy_template(by_hand, synthesised(stack), "Own")
    assert described(by_hand) == before
