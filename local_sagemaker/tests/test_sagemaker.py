"""AWS::SageMaker::* and the hosting API behind it."""

from __future__ import annotations

from typing import Any

from roles_under_test import give_hosting_role
from signed_requests import refusal
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
from waiting import until

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
    place = {"S3Uri": "s3://jumpstart-private-cache-prod-us-east-1/llama/"}
    source = {**place, "S3DataType": "S3Prefix", "CompressionType": "None"}

    def make(**agreement: Any) -> None:
        data = {"S3DataSource": {**source, **agreement}}
        container = {"Image": IMAGE, "ModelDataSource": data}
        sagemaker.create_model(ModelName="guard", ExecutionRoleArn=role, PrimaryContainer=container)

    for agreement in ({}, {"ModelAccessConfig": {"AcceptEula": False}}):
        _, message = refusal(make, **agreement)
        assert "AcceptEula value must be explicitly defined as" in message
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

    def deploy(**more: Any) -> Any:
        return stack.deploy(MODEL, {**properties, **more}, ("ModelName",), Role=role)

    made = deploy()
    name = made.attributes["ModelName"]
    found = aws.client("sagemaker").describe_model(ModelName=name)
    assert made.ref == found["ModelArn"]
    assert found["EnableNetworkIsolation"] is True
    for key in ("InferenceExecutionConfig", "VpcConfig"):
        assert found[key] == properties[key]
    assert [c["ContainerHostname"] for c in found["Containers"]] == ["a", "b"]
    assert found["Containers"][0]["Environment"] == {"A": "1"}

    tags = [{"Key": "a", "Value": "2"}]
    assert deploy(Tags=tags).ref == made.ref
    assert aws.client("sagemaker").list_tags(ResourceArn=made.ref)["Tags"] == tags

    assert deploy(EnableNetworkIsolation=False).ref != made.ref
    _, message = refusal(aws.client("sagemaker").describe_model, ModelName=name)
    assert "Could not find model" in message


def test_endpoint_config_keeps_every_setting(aws, stack, role):
    prefix = {"PrefixLength": 2048, "ConcurrencyThreshold": 8}
    routing = {"RoutingStrategy": "PREFIX_AWARE", "PrefixAwareRoutingConfig": prefix}
    properties = {
        "ProductionVariants": [
            variant(
                InitialVariantWeight=0.5,
                ContainerStartupHealthCheckTimeoutInSeconds=300,
                ModelDataDownloadTimeoutInSeconds=600,
                EnableSSMAccess=False,
                InferenceAmiVersion="al2-ami-sagemaker-inference-gpu-2",
                VolumeSizeInGB=30,
                RoutingConfig=routing,
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
    describe = aws.client("sagemaker").describe_endpoint_config
    found = describe(EndpointConfigName=name)
    (wanted,) = properties.pop("ProductionVariants")
    del wanted["ModelName"]
    for asked, got in ((wanted, found["ProductionVariants"][0]), (properties, found)):
        for key, value in asked.items():
            assert got[key] == value, key
    stack.delete()
    assert "Could not find endpoint configuration" in refusal(describe, EndpointConfigName=name)[1]


def test_endpoint_config_refuses_what_the_api_refuses(aws, stack, role):
    for wrong, words in (
        ([variant(InstanceType="ml.nope.large")], "'ml.nope.large'"),
        ([variant(InstanceType="ml.nope.large")], "Member must satisfy enum value set"),
        ([variant(), variant()], "must be unique"),
    ):
        assert words in stack.refusal(CONFIG, {"ProductionVariants": wrong}, **model(role))


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
    slower = hosting(role, [variant(4, RoutingConfig=routing)])
    assert stack.deploy(ENDPOINT, properties, **slower).ref == made.ref
    after = described(aws, "followed")
    assert after["ProductionVariants"][0]["CurrentInstanceCount"] == 4
    assert after["ProductionVariants"][0]["RoutingConfig"] == routing
    assert after["EndpointConfigName"] != before["EndpointConfigName"]
    describe = aws.client("sagemaker").describe_endpoint_config
    _, message = refusal(describe, EndpointConfigName=before["EndpointConfigName"])
    assert "Could not find endpoint configuration" in message

    properties["EndpointName"] = "other"
    assert stack.deploy(ENDPOINT, properties, **slower).ref != made.ref
    assert "Could not find endpoint" in refusal(described, aws=aws, name="followed")[1]


def test_retained_properties_survive_an_update(aws, stack, role):
    properties = endpoint(EndpointName="scaled", RetainAllVariantProperties=True)
    stack.deploy(ENDPOINT, properties, **hosting(role, [variant(2)]))
    change = {"VariantName": "primary", "DesiredInstanceCount": 7, "DesiredWeight": 0.25}
    aws.client("sagemaker").update_endpoint_weights_and_capacities(
        EndpointName="scaled", DesiredWeightsAndCapacities=[change]
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
    stack.deploy(ENDPOINT, properties, **hosting(role, [variant(2)]), Target=TARGET)
    before = described(aws, "watched")
    cloudformation = aws.client("cloudformation")
    it = resource_of(ENDPOINT, **properties)
    for changed in (variant(2, InstanceType="ml.c7i.2xlarge"), variant(2, VariantName="secondary")):
        failed = stack.of(It=it, **hosting(role, [changed]), Target=TARGET, expect_failure=True)
        # Going back is an update with the configuration that serves, and refused by default.
        assert failed.status == "UPDATE_ROLLBACK_FAILED"
        cloudformation.continue_update_rollback(StackName=stack.name, ResourcesToSkip=["It"])
        until(
            lambda: cloudformation.describe_stacks(StackName=stack.name)["Stacks"][0],
            lambda found: found["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE",
        )
        assert (
            'The variant(s) "[primary]" must be deregistered as scalable targets with AutoScaling '
            "before they can be removed or have their instance type updated."
        ) in failed.failure_reason
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
    at_once = {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
    batch = {"Type": "CAPACITY_PERCENT", "Value": 20}
    deployment = {
        "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": at_once},
        "RollingUpdatePolicy": {"MaximumBatchSize": batch, "WaitIntervalInSeconds": 60},
    }
    properties = endpoint(DeploymentConfig=deployment)
    reason = stack.refusal(ENDPOINT, properties, **hosting(role, [variant()]))
    assert "only one of [BlueGreenUpdatePolicy, RollingUpdatePolicy]" in reason


def test_the_api_refuses_a_second_of_the_same_name(aws, stack, role):
    made = stack.deploy(ENDPOINT, endpoint(), ("EndpointName",), **hosting(role, [variant()]))
    sagemaker = aws.client("sagemaker")
    name = described(aws, made.attributes["EndpointName"])["EndpointConfigName"]
    found = sagemaker.describe_endpoint_config(EndpointConfigName=name)
    config = {key: found[key] for key in ("EndpointConfigName", "ProductionVariants")}
    _, message = refusal(sagemaker.create_endpoint_config, **config)
    assert "Cannot create already existing endpoint configuration" in message
    unknown = {"EndpointName": "x", "EndpointConfigName": "nowhere"}
    _, message = refusal(sagemaker.create_endpoint, **unknown)
    assert "Could not find endpoint configuration" in message


def test_what_is_not_hosting_is_left_to_moto(aws):
    sagemaker = aws.client("sagemaker")
    arn = sagemaker.create_model_package_group(ModelPackageGroupName="group")
    sagemaker.add_tags(ResourceArn=arn["ModelPackageGroupArn"], Tags=[{"Key": "a", "Value": "b"}])
    tags = sagemaker.list_tags(ResourceArn=arn["ModelPackageGroupArn"])["Tags"]
    assert tags == [{"Key": "a", "Value": "b"}]
