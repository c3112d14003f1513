"""A stack deployed into the local AWS is read back through boto3 as it really is."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import NoCredentialsError
from rich.console import Console

from local_sagemaker import LocalAws, delete_stack, deploy_template
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operations.deployed import DeployedStack, read_deployed
from low_latency_endpoint.operations.deployed_tables import Change, changes, tables

STACK = "Sentiment"


def template(*, maximum: int = 10, p99_microseconds: int = 200_000) -> dict[str, Any]:
    """Two zones with a model, an interface endpoint, scaling and two alarms, in plain L1."""
    subnets = {
        f"Subnet{letter}": {
            "Type": "AWS::EC2::Subnet",
            "Properties": {
                "VpcId": {"Ref": "Vpc"},
                "AvailabilityZone": f"us-east-1{letter}",
                "CidrBlock": f"10.0.{number}.0/26",
            },
        }
        for number, letter in enumerate("ab")
    }
    subnet_ids = [{"Ref": name} for name in subnets]
    dimensions = [
        {"Name": "EndpointName", "Value": {"Fn::GetAtt": ["Endpoint", "EndpointName"]}},
        {"Name": "VariantName", "Value": "primary"},
    ]
    return {
        "Resources": {
            "Vpc": {
                "Type": "AWS::EC2::VPC",
                "Properties": {
                    "CidrBlock": "10.0.0.0/16",
                    "EnableDnsSupport": True,
                    "EnableDnsHostnames": True,
                },
            },
            **subnets,
            "Group": {
                "Type": "AWS::EC2::SecurityGroup",
                "Properties": {"GroupDescription": "model", "VpcId": {"Ref": "Vpc"}},
            },
            "Link": {
                "Type": "AWS::EC2::VPCEndpoint",
                "Properties": {
                    "VpcEndpointType": "Interface",
                    "ServiceName": "com.amazonaws.us-east-1.sagemaker.runtime",
                    "VpcId": {"Ref": "Vpc"},
                    "SubnetIds": subnet_ids,
                    "SecurityGroupIds": [{"Ref": "Group"}],
                    "PrivateDnsEnabled": True,
                },
            },
            "Model": {
                "Type": "AWS::SageMaker::Model",
                "Properties": {
                    "ExecutionRoleArn": "arn:aws:iam::123456789012:role/model",
                    "PrimaryContainer": {
                        "Image": "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"
                    },
                    "VpcConfig": {
                        "Subnets": subnet_ids,
                        "SecurityGroupIds": [{"Fn::GetAtt": ["Group", "GroupId"]}],
                    },
                },
            },
            "Configuration": {
                "Type": "AWS::SageMaker::EndpointConfig",
                "Properties": {
                    "ProductionVariants": [
                        {
                            "VariantName": "primary",
                            "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
                            "InstanceType": "ml.g5.xlarge",
                            "InitialInstanceCount": 2,
                            "InitialVariantWeight": 1,
                            "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
                        }
                    ]
                },
            },
            "Endpoint": {
                "Type": "AWS::SageMaker::Endpoint",
                "Properties": {
                    "EndpointConfigName": {
                        "Fn::GetAtt": ["Configuration", "EndpointConfigName"]
                    }
                },
            },
            "Target": {
                "Type": "AWS::ApplicationAutoScaling::ScalableTarget",
                "Properties": {
                    "MinCapacity": 2,
                    "MaxCapacity": maximum,
                    "ResourceId": {
                        "Fn::Sub": "endpoint/${Endpoint.EndpointName}/variant/primary"
                    },
                    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
                    "ServiceNamespace": "sagemaker",
                },
            },
            "Policy": {
                "Type": "AWS::ApplicationAutoScaling::ScalingPolicy",
                "Properties": {
                    "PolicyName": "invocations",
                    "PolicyType": "TargetTrackingScaling",
                    "ScalingTargetId": {"Ref": "Target"},
                    "TargetTrackingScalingPolicyConfiguration": {
                        "TargetValue": 7800,
                        "PredefinedMetricSpecification": {
                            "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
                        },
                    },
                },
            },
            "LatencyAlarm": {
                "Type": "AWS::CloudWatch::Alarm",
                "Properties": {
                    "Namespace": "AWS/SageMaker",
                    "MetricName": "ModelLatency",
                    "ExtendedStatistic": "p99",
                    "Dimensions": dimensions,
                    "Period": 60,
                    "EvaluationPeriods": 3,
                    "Threshold": p99_microseconds,
                    "ComparisonOperator": "GreaterThanThreshold",
                },
            },
            "ErrorAlarm": {
                "Type": "AWS::CloudWatch::Alarm",
                "Properties": {
                    "Namespace": "AWS/SageMaker",
                    "MetricName": "Invocation5XXErrors",
                    "Statistic": "Sum",
                    "Dimensions": dimensions,
                    "Period": 60,
                    "EvaluationPeriods": 1,
                    "Threshold": 5,
                    "ComparisonOperator": "GreaterThanOrEqualToThreshold",
                },
            },
        }
    }


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    # Every in-process local AWS of this process has the same state: leave none behind.
    with LocalAws.in_process(region="us-east-1") as aws:
        aws.reset()
        yield aws
        aws.reset()


@pytest.fixture(scope="module")
def deployed(aws: LocalAws) -> DeployedStack:
    deploy_template(aws, template(), STACK)
    return read_deployed(aws.client, STACK)


def test_the_subnets_of_the_model_carry_zone_name_and_zone_id(deployed: DeployedStack) -> None:
    assert [(s.zone, s.cidr) for s in sorted(deployed.subnets, key=lambda s: s.zone)] == [
        ("us-east-1a", "10.0.0.0/26"),
        ("us-east-1b", "10.0.1.0/26"),
    ]
    assert all(subnet.zone_id.startswith("use1-az") for subnet in deployed.subnets)
    (variant,) = deployed.endpoints[0].variants
    assert set(variant.subnet_ids) == {subnet.subnet_id for subnet in deployed.subnets}
    assert len(variant.security_group_ids) == 1


def test_the_interface_endpoint_shares_the_subnets_and_has_private_dns(
    deployed: DeployedStack,
) -> None:
    (link,) = deployed.interface_endpoints
    assert link.service == "com.amazonaws.us-east-1.sagemaker.runtime"
    assert link.private_dns
    assert set(link.subnet_ids) == {subnet.subnet_id for subnet in deployed.subnets}
    assert sorted(link.zonal_dns_names) == ["us-east-1a", "us-east-1b"]
    for zone, name in link.zonal_dns_names.items():
        assert name.startswith(link.interface_endpoint_id)
        assert f"-{zone}." in name


def test_the_variant_has_its_routing_type_count_and_scaling(deployed: DeployedStack) -> None:
    (endpoint,) = deployed.endpoints
    (variant,) = endpoint.variants
    assert endpoint.status == "InService"
    assert variant.routing == "LEAST_OUTSTANDING_REQUESTS"
    assert variant.instance_type == "ml.g5.xlarge"
    assert (variant.current_instances, variant.desired_instances) == (2, 2)
    assert (variant.min_instances, variant.max_instances) == (2, 10)
    (policy,) = variant.scaling_policies
    assert policy.metric == "SageMakerVariantInvocationsPerInstance"
    assert policy.target == 7800


def test_a_latency_threshold_is_in_milliseconds_and_a_count_stays_a_count(
    deployed: DeployedStack,
) -> None:
    alarms = {a.metric: (a.statistic, a.threshold, a.unit) for a in deployed.endpoints[0].alarms}
    assert alarms == {
        "ModelLatency": ("p99", 200.0, "ms"),
        "Invocation5XXErrors": ("Sum", 5.0, ""),
    }


def test_the_tables_show_what_a_reader_looks_for(deployed: DeployedStack) -> None:
    console = Console(width=160, file=io.StringIO())
    for table in tables(deployed):
        console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for word in (
        "use1-az",
        "us-east-1a",
        "10.0.0.0/26",
        "LEAST_OUTSTANDING_REQUESTS",
        "ml.g5.xlarge",
        "2 to 10 instances",
        "SageMakerVariantInvocationsPerInstance at 7800",
        "> 200 ms",
    ):
        assert word in text


def test_an_update_is_told_as_before_and_after(aws: LocalAws) -> None:
    stack = "Updated"
    deploy_template(aws, template(), stack)
    before = read_deployed(aws.client, stack)
    deploy_template(aws, template(maximum=12, p99_microseconds=150_000), stack)
    after = read_deployed(aws.client, stack)
    delete_stack(aws, stack)
    name, alarm = before.endpoints[0].name, before.endpoints[0].alarms[1].name
    assert changes(before, after) == [
        Change("status", "CREATE_COMPLETE", "UPDATE_COMPLETE"),
        Change(f"endpoints[{name}].variants[primary].max_instances", "10", "12"),
        Change(f"endpoints[{name}].alarms[{alarm}].threshold", "200.0", "150.0"),
    ]


def test_an_unknown_stack_is_a_coded_error(aws: LocalAws) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_deployed(aws.client, "NoSuchStack")
    assert caught.value.code == "LLE591"
    assert caught.value.got == "NoSuchStack"


def test_missing_credentials_are_a_coded_error() -> None:
    def client(service: str) -> Any:
        raise NoCredentialsError

    with pytest.raises(ConfigurationError) as caught:
        read_deployed(client, STACK)
    assert caught.value.code == "LLE592"
    assert "credentials" in caught.value.got
