"""A stack of an organisation that is audited, deployed: what EC2, KMS and CloudWatch Logs have."""

from __future__ import annotations

import json
from pathlib import Path

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms

from local_sagemaker import delete_stack, deploy_template
from low_latency_endpoint import ContainerImage, LoadTestFleet, RuntimePrivateLink, Safeguards
from tests.deploy.small_stacks import model_in, network_in, stack_in, synthesised

IMAGE = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1")


def audited(folder: Path) -> Path:
    stack = stack_in(folder, "Audited", flags=True)
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    Safeguards(encryption_key=key, log_retention_days=365).apply_to(stack)
    network = network_in(
        stack,
        narrow_s3=True,
        s3_prefix_list=ec2.PrefixList.from_prefix_list_id(stack, "S3", "pl-63a5400a"),
    )
    network.add_interface_endpoint("Secrets", ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER)
    link = RuntimePrivateLink(stack, "Link", network=network)
    model_in(stack, network, data="s3://theirs/llama/")
    LoadTestFleet(
        stack, "Fleet", network=network, private_link=link, endpoint="sentiment", image=IMAGE
    )
    return synthesised(stack)


def test_what_is_asked_for_is_there(own_aws, tmp_path):
    deploy_template(own_aws, audited(tmp_path), "Audited")
    groups = own_aws.client("logs").describe_log_groups(logGroupNamePrefix="Audited-")["logGroups"]
    keys = {group["kmsKeyId"] for group in groups}
    assert len(groups) == 5  # default security group, drain, flow log, fleet, former names
    assert len(keys) == 1
    assert {group["retentionInDays"] for group in groups} == {365}
    policy = json.loads(
        own_aws.client("kms").get_key_policy(KeyId=keys.pop(), PolicyName="default")["Policy"]
    )
    services = {each["Principal"].get("Service") for each in policy["Statement"]}
    assert "logs.us-east-1.amazonaws.com" in services

    endpoints = {
        each["ServiceName"].partition("us-east-1.")[2]: each
        for each in own_aws.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
    }
    assert set(endpoints) == {
        "s3",
        "secretsmanager",
        "sagemaker.runtime",
        "ecr.api",
        "ecr.dkr",
        "logs",
    }
    for service, endpoint in endpoints.items():
        assert json.loads(endpoint["PolicyDocument"])["Statement"], service
    passed = json.loads(endpoints["s3"]["PolicyDocument"])["Statement"]
    assert ["arn:aws:s3:::theirs/*"] in [each["Resource"] for each in passed]
    delete_stack(own_aws, "Audited")
