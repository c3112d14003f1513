"""AWS::SageMaker::* and the hosting API behind it."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from roles_under_test import give_hosting_role
from stacks_under_test import (
    CONFIG,
    ENDPOINT,
    IMAGE,
    MODEL,
    endpoint,
    hosting,
    model,
    resource_of,
    variant,
)

TARGET = resource_of(
    "AWS::ApplicationAutoScaling::ScalableTarget",
    ServiceNamespace="sagemaker",
    ScalableDimension="sagemaker:variant:DesiredInstanceCount",
    ResourceId={"Fn::Sub": "endpoint/${It.EndpointName}/variant/primary"},
    MinCapacity=2,
    MaxCapacity=8,
)


def described(aws: Any, name: str) -> dict[str, Any]:
    return aws.client("sagemaker").describe_endpoint(EndpointName=name)


def test_a_gated_model_asks_for_its_agreement(aws):
    sagemaker, role = aws.client("sagemaker"), give_hosting_role(aws)
    source = {
        "S3Uri": "s3://jumpstart-private-cache-prod-us-east-1/llama/",
        "S3DataType": "S3Prefix",
        "CompressionType": "None",
    }

    def make(**agreement: Any) -> None:
        data = {"S3DataSource": {**source, **agreement}}
        container = {"Image": IMAGE, "ModelDataSource": data}
        sagemaker.create_model(ModelName="guard", ExecutionRoleArn=role, PrimaryContainer=container)

    for agreement in ({}, {"ModelAccessConfig": {"AcceptEula": False}}):
        with pytest.raises(ClientError, match="AcceptEula value must be explicitly defined as"):
            make(**agreement)
    assert sagemaker.list_models(NameContains="guard")["Models"] == []
    make(ModelAccessConfig={"AcceptEula": True})
    sagemaker.delete_model(ModelName="guard")


def test_model_keeps_every_setting(aws, stack, role):
    properties = {
        "ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
        "Containers": [
            {"Image": IMAGE, "ContainerHostname": "a", "Environment": {"A": "1"}},
            {"Image": IMAGE, "ContainerHostname": "b", "ModelDataUrl": "s3://bucket/model.tar.gz"},
        ],
        "InferenceExecutionConfig": {"Mode": "Direct"},
        "EnableNetworkIsolation": "true",
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1", "subnet-2"]},
        "Tags": [{"Key": "a", "Value": "1"}],
    }
    made = stack.deploy(MODEL, properties, ("ModelName",), Role=role)
    name = made.attributes["ModelName"]
    found = aws.client("sagemaker").describe_model(ModelName=name)
    assert made.ref == found["ModelArn"]
    assert found["EnableNetworkIsolation"] is True
    assert found["InferenceExecutionConfig"] == {"Mode": "Direct"}
    assert found["VpcConfig"]["Subnets"] == ["subnet-1", "subnet-2"]
    assert [c["ContainerHostname"] for c in found["Containers"]] == ["a", "b"]
    assert found["Containers"][0]["Environment"] == {"A": "1"}

    tagged = stack.deploy(
        MODEL, {**properties, "Tags": [{"Key": "a", "Value": "2"}]}, ("ModelName",), Role=role
    )
    assert tagged.ref == made.ref
    tags = aws.client("sagemaker").list_tags(ResourceArn=made.ref)["Tags"]
    assert tags == [{"Key": "a", "Value": "2"}]

    replaced = stack.deploy(
        MODEL, {**properties, "EnableNetworkIsolation": False}, ("ModelName",), Role=role
    )
    assert replaced.ref != made.ref
    with pytest.raises(ClientError, match="Could not find model"):
        aws.client("sagemaker").describe_model(ModelName=name)


def test_endpoint_config_keeps_every_setting(aws, stack, role):
    properties = {
        "ProductionVariants": [
            variant(
                InitialVariantWeight=0.5,
                ContainerStartupHealthCheckTimeoutInSeconds=300,
                ModelDataDownloadTimeoutInSeconds=600,
                EnableSSMAccess=False,
                InferenceAmiVersion="al2-ami-sagemaker-inference-gpu-2",
                VolumeSizeInGB=30,
                RoutingConfig={
                    "RoutingStrategy": "PREFIX_AWARE",
                    "PrefixAwareRoutingConfig": {"PrefixLength": 2048},
                },
            )
        ],
        "DataCaptureConfig": {
            "EnableCapture": True,
            "InitialSamplingPercentage": 20,
            "DestinationS3Uri": "s3://bucket/captured",
            "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
        },
        "MetricsConfig": {"EnableEnhancedMetrics": True, "MetricPublishFrequencyInSeconds": 10},
        "VpcConfig": {"SecurityGroupIds": ["sg-1"], "Subnets": ["subnet-1"]},
        "KmsKeyId": "alias/x",
    }
    made = stack.deploy(CONFIG, properties, ("EndpointConfigName",), **model(role))
    name = made.attributes["EndpointConfigName"]
    found = aws.client("sagemaker").describe_endpoint_config(EndpointConfigName=name)
    (wanted,) = properties.pop("ProductionVariants")
    del wanted["ModelName"]
    for asked, got in ((wanted, found["ProductionVariants"][0]), (properties, found)):
        for key, value in asked.items():
            assert got[key] == value, key
    stack.delete()
    with pytest.raises(ClientError, match="Could not find endpoint configuration"):
        aws.client("sagemaker").describe_endpoint_config(EndpointConfigName=name)


def test_endpoint_config_refuses_what_the_api_refuses(aws, stack, role):
    reason = stack.refusal(
        CONFIG, {"ProductionVariants": [variant(InstanceType="ml.nope.large")]}, **model(role)
    )
    assert "ml.nope.large" in reason
    assert "Member must satisfy enum value set" in reason
    reason = stack.refusal(CONFIG, {"ProductionVariants": [variant(), variant()]}, **model(role))
    assert "must be unique" in reason


def test_endpoint_is_updated_in_place_and_follows_its_configuration(aws, stack, role):
    deployment = {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {
                "Type": "CANARY",
                "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 10},
                "WaitIntervalInSeconds": 300,
            },
            "TerminationWaitInSeconds": 120,
        },
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "too-slow"}]},
    }
    properties = endpoint(EndpointName="followed", DeploymentConfig=deployment)
    made = stack.deploy(ENDPOINT, properties, ("EndpointName",), **hosting(role, [variant(2)]))
    assert made.attributes == {"EndpointName": "followed"}
    before = described(aws, "followed")
    assert made.ref == before["EndpointArn"]
    assert before["EndpointStatus"] == "InService"
    assert before["LastDeploymentConfig"] == deployment
    assert before["ProductionVariants"][0]["CurrentInstanceCount"] == 2
    assert before["ProductionVariants"][0]["DeployedImages"][0]["SpecifiedImage"] == IMAGE

    routing = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    changed = stack.deploy(
        ENDPOINT, properties, **hosting(role, [variant(4, RoutingConfig=routing)])
    )
    assert changed.ref == made.ref
    after = described(aws, "followed")
    assert after["ProductionVariants"][0]["CurrentInstanceCount"] == 4
    assert after["ProductionVariants"][0]["RoutingConfig"] == routing
    assert after["EndpointConfigName"] != before["EndpointConfigName"]
    with pytest.raises(ClientError, match="Could not find endpoint configuration"):
        aws.client("sagemaker").describe_endpoint_config(
            EndpointConfigName=before["EndpointConfigName"]
        )

    renamed = stack.deploy(
        ENDPOINT, {**properties, "EndpointName": "other"}, **hosting(role, [variant(4)])
    )
    assert renamed.ref != made.ref
    with pytest.raises(ClientError, match="Could not find endpoint"):
        described(aws, "followed")


def test_retained_properties_survive_an_update(aws, stack, role):
    properties = endpoint(EndpointName="scaled", RetainAllVariantProperties=True)
    stack.deploy(ENDPOINT, properties, **hosting(role, [variant(2)]))
    aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName="scaled",
        DesiredWeightsAndCapacities=[
            {"VariantName": "primary", "DesiredInstanceCount": 7, "DesiredWeight": 0.25}
        ],
    )
    stack.deploy(ENDPOINT, properties, **hosting(role, [variant(3)]))
    got = described(aws, "scaled")["ProductionVariants"][0]
    assert (got["CurrentInstanceCount"], got["CurrentWeight"]) == (7, 0.25)

    excluded = [{"VariantPropertyType": "DesiredWeight"}]
    properties = {**properties, "ExcludeRetainedVariantProperties": excluded}
    stack.deploy(ENDPOINT, properties, **hosting(role, [variant(4)]))
    got = described(aws, "scaled")["ProductionVariants"][0]
    assert (got["CurrentInstanceCount"], got["CurrentWeight"]) == (7, 1.0)

    stack.deploy(ENDPOINT, endpoint(EndpointName="scaled"), **hosting(role, [variant(5)]))
    assert described(aws, "scaled")["ProductionVariants"][0]["CurrentInstanceCount"] == 5


def test_a_scalable_variant_keeps_its_instance_type_and_its_place(aws, stack, role):
    properties = endpoint(EndpointName="watched")
    resources = hosting(role, [variant(2)])
    stack.deploy(ENDPOINT, properties, **resources, Target=TARGET)
    before = described(aws, "watched")
    for variants in (
        [variant(2, InstanceType="ml.c7i.2xlarge")],
        [variant(2, VariantName="secondary")],
    ):
        resources = {
            "It": resource_of(ENDPOINT, **properties),
            **hosting(role, variants),
            "Target": TARGET,
        }
        failed = stack.template({"Resources": resources}, expect_failure=True)
        reason = failed.failure_reason
        # Going back is an update with the configuration that serves, and refused by default.
        assert failed.status == "UPDATE_ROLLBACK_FAILED"
        aws.client("cloudformation").continue_update_rollback(
            StackName=stack.name, ResourcesToSkip=["It"]
        )
        aws.client("cloudformation").get_waiter("stack_rollback_complete").wait(
            StackName=stack.name, WaiterConfig={"Delay": 0.05}
        )
        assert (
            'The variant(s) "[primary]" must be deregistered as scalable targets with AutoScaling '
            "before they can be removed or have their instance type updated."
        ) in reason
        after = described(aws, "watched")
        for got, had in zip(after["ProductionVariants"], before["ProductionVariants"], strict=True):
            assert {**got, "DeployedImages": []} == {**had, "DeployedImages": []}
    # Only the model may change.
    other = hosting(role, [variant(2)])
    other["Model"]["Properties"]["PrimaryContainer"] = {"Image": IMAGE.replace(":1", ":2")}
    stack.deploy(ENDPOINT, properties, **other, Target=TARGET)
    images = described(aws, "watched")["ProductionVariants"][0]["DeployedImages"]
    assert images[0]["SpecifiedImage"].endswith(":2")


def test_two_update_policies_are_refused(stack, role):
    deployment = {
        "BlueGreenUpdatePolicy": {
            "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
        },
        "RollingUpdatePolicy": {
            "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 20},
            "WaitIntervalInSeconds": 60,
        },
    }
    reason = stack.refusal(
        ENDPOINT, endpoint(DeploymentConfig=deployment), **hosting(role, [variant()])
    )
    assert "Only one update policy" in reason


def test_the_api_refuses_a_second_of_the_same_name(aws, stack, role):
    made = stack.deploy(ENDPOINT, endpoint(), ("EndpointName",), **hosting(role, [variant()]))
    sagemaker = aws.client("sagemaker")
    found = described(aws, made.attributes["EndpointName"])
    config = sagemaker.describe_endpoint_config(EndpointConfigName=found["EndpointConfigName"])
    with pytest.raises(ClientError, match="Cannot create already existing endpoint configuration"):
        sagemaker.create_endpoint_config(
            EndpointConfigName=config["EndpointConfigName"],
            ProductionVariants=config["ProductionVariants"],
        )
    with pytest.raises(ClientError, match="Could not find endpoint configuration"):
        sagemaker.create_endpoint(EndpointName="x", EndpointConfigName="nowhere")


def test_what_is_not_hosting_is_left_to_moto(aws):
    sagemaker = aws.client("sagemaker")
    arn = sagemaker.create_model_package_group(ModelPackageGroupName="group")
    sagemaker.add_tags(ResourceArn=arn["ModelPackageGroupArn"], Tags=[{"Key": "a", "Value": "b"}])
    tags = sagemaker.list_tags(ResourceArn=arn["ModelPackageGroupArn"])["Tags"]
    assert tags == [{"Key": "a", "Value": "b"}]
