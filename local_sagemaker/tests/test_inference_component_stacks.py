"""AWS::SageMaker::InferenceComponent, on an endpoint that echoes."""

from __future__ import annotations

from typing import Any

from component_site import MANAGED, NEEDS, Components, refused
from hosting_site import Site
from stacks_under_test import endpoint, resource_of, variant

# CloudFormation gives no name of a component, only its ARN.
NAME = {"Fn::Select": [1, {"Fn::Split": ["/", {"Ref": "Component"}]}]}


def template(role: dict[str, Any], model: str, *, copies: int = 1, **more: Any) -> dict[str, Any]:
    component = {
        "EndpointName": {"Fn::GetAtt": ["Endpoint", "EndpointName"]},
        "VariantName": "primary",
        "Specification": {"ModelName": model, "ComputeResourceRequirements": NEEDS},
        "RuntimeConfig": {"CopyCount": copies},
        **more,
    }
    instances = variant(1, InstanceType="ml.g5.xlarge", ManagedInstanceScaling=MANAGED)
    del instances["ModelName"]
    config = {
        "ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
        "ProductionVariants": [instances],
    }
    target = {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        "ResourceId": {"Fn::Join": ["/", ["inference-component", NAME]]},
        "MinCapacity": 0,
        "MaxCapacity": 2,
    }
    return {
        "Resources": {
            "Role": role,
            "Config": resource_of("AWS::SageMaker::EndpointConfig", **config),
            "Endpoint": resource_of("AWS::SageMaker::Endpoint", **endpoint()),
            "Component": resource_of("AWS::SageMaker::InferenceComponent", **component),
            "Target": resource_of("AWS::ApplicationAutoScaling::ScalableTarget", **target),
        },
        "Outputs": {
            "Arn": {"Value": {"Ref": "Component"}},
            "SameArn": {"Value": {"Fn::GetAtt": ["Component", "InferenceComponentArn"]}},
            "Name": {"Value": NAME},
            "Endpoint": {"Value": {"Fn::GetAtt": ["Endpoint", "EndpointName"]}},
        },
    }


def test_a_component_is_changed_in_place(aws, stack, role):
    here = Site(aws)
    made = stack.template(template(role, here.model())).outputs
    it, name = Components(here, made["Endpoint"]), made["Name"]
    assert made["Arn"] == made["SameArn"]
    assert made["Arn"].endswith(f":inference-component/{name}")
    assert it.invoke(name)["InvokedProductionVariant"] == "primary"

    other, tags = here.model(), [{"Key": "a", "Value": "1"}]
    batch = {"Type": "COPY_COUNT", "Value": 1}
    deployment = {"RollingUpdatePolicy": {"MaximumBatchSize": batch, "WaitIntervalInSeconds": 0}}
    changed = template(role, other, copies=2, Tags=tags, DeploymentConfig=deployment)
    assert stack.template(changed).outputs == made
    assert it.copies(name) == 2
    assert it.sagemaker.list_tags(ResourceArn=made["Arn"])["Tags"] == tags
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
