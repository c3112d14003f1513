"""AWS::SageMaker::InferenceComponent, on an endpoint that echoes."""

from __future__ import annotations

from typing import Any

from component_site import MANAGED, NEEDS, Components, refused
from hosting_site import Site
from stacks_under_test import resource_of


def template(role: dict[str, Any], model: str, *, copies: int = 1, **more: Any) -> dict[str, Any]:
    component = {
        "EndpointName": {"Fn::GetAtt": ["Endpoint", "EndpointName"]},
        "VariantName": "primary",
        "Specification": {"ModelName": model, "ComputeResourceRequirements": NEEDS},
        "RuntimeConfig": {"CopyCount": copies},
        **more,
    }
    config = {
        "ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
        "ProductionVariants": [
            {
                "VariantName": "primary",
                "InstanceType": "ml.g5.xlarge",
                "InitialInstanceCount": 1,
                "ManagedInstanceScaling": MANAGED,
            }
        ],
    }
    target = {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        "ResourceId": {"Fn::Sub": "inference-component/${Component.InferenceComponentName}"},
        "MinCapacity": 0,
        "MaxCapacity": 2,
    }
    return {
        "Resources": {
            "Role": role,
            "Config": resource_of("AWS::SageMaker::EndpointConfig", **config),
            "Endpoint": resource_of(
                "AWS::SageMaker::Endpoint",
                EndpointConfigName={"Fn::GetAtt": ["Config", "EndpointConfigName"]},
            ),
            "Component": resource_of("AWS::SageMaker::InferenceComponent", **component),
            "Target": resource_of("AWS::ApplicationAutoScaling::ScalableTarget", **target),
        },
        "Outputs": {
            "Arn": {"Value": {"Ref": "Component"}},
            "SameArn": {"Value": {"Fn::GetAtt": ["Component", "InferenceComponentArn"]}},
            "Name": {"Value": {"Fn::GetAtt": ["Component", "InferenceComponentName"]}},
            "Endpoint": {"Value": {"Fn::GetAtt": ["Endpoint", "EndpointName"]}},
        },
    }


def test_from_one_copy_to_two_to_none_and_back(aws, stack, role):
    here = Site(aws)
    model = here.model()
    made = stack.template(template(role, model)).outputs
    it, name = Components(here, made["Endpoint"]), made["Name"]
    assert made["Arn"] == made["SameArn"]
    assert made["Arn"].endswith(f":inference-component/{name}")
    assert it.invoke(name)["InvokedProductionVariant"] == "primary"

    again = stack.template(
        template(role, model, copies=2, Tags=[{"Key": "a", "Value": "1"}])
    ).outputs
    assert again == made
    assert it.copies(name) == 2
    assert it.sagemaker.list_tags(ResourceArn=made["Arn"])["Tags"] == [{"Key": "a", "Value": "1"}]

    assert it.copies(name, 0) == 0
    assert refused("no capacity", it.invoke, name=name) == "ValidationError"
    assert it.sum(name, "NoCapacityInvocationFailures") == 1
    assert it.sum(name, "Invocations") == 1  # the one that was answered
    assert it.copies(name, 1) == 1
    assert it.invoke(name)["ResponseMetadata"]["HTTPStatusCode"] == 200

    other = here.model()
    deployment = {
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "COPY_COUNT", "Value": 1},
            "WaitIntervalInSeconds": 0,
        }
    }
    assert stack.template(template(role, other, DeploymentConfig=deployment)).outputs == made
    assert it.described(name)["Specification"]["ModelName"] == other
    assert it.described(name)["LastDeploymentConfig"] == deployment
    assert any(made["Arn"] in left for left in aws.leftovers())
    stack.delete()
    assert it.listed(NameContains=name) == []
    refused("Could not find", it.sagemaker.describe_endpoint, EndpointName=made["Endpoint"])


def test_one_without_room_fails_its_stack(aws, stack, role):
    here = Site(aws)
    found = stack.template(template(role, here.model(), copies=3), expect_failure=True)
    assert "not enough hardware resources" in found.failure_reason
    stack.delete()
    assert Components(here, "").listed() == []


def test_it_keeps_its_name_and_place(aws, stack, role):
    model = Site(aws).model()
    stack.template(template(role, model))
    renamed = template(role, model, InferenceComponentName="another")
    found = stack.template(renamed, expect_failure=True)
    assert "InferenceComponentName cannot be updated" in found.failure_reason
    stack.delete()
