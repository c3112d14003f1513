"""The load-test fleet's stack beside the endpoints', deployed, changed and deleted."""

from __future__ import annotations

from pathlib import Path

import pytest
from aws_cdk import Stack

from local_sagemaker import LocalAws, delete_stack, deploy_template
from low_latency_endpoint import ContainerImage, LoadTestFleet, RuntimePrivateLink
from low_latency_endpoint.load_test.fleet.fleet_generator import find_fleet
from tests.deploy.small_stacks import ENV, network_in, stack_in, synthesised

pytestmark = pytest.mark.realtime
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/load-generator:1"


def with_fleet(folder: Path, **given) -> Path:
    serving = stack_in(folder, "Serving", flags=True)
    testing = Stack(serving.node.root, "Testing", env=ENV)
    network = network_in(serving)
    link = RuntimePrivateLink(serving, "Link", network=network)
    LoadTestFleet(
        testing,
        "Fleet",
        network=network,
        private_link=link,
        endpoint="sentiment",
        image=ContainerImage.from_uri(IMAGE),
        **given,
    )
    return synthesised(serving)


def services(aws: LocalAws) -> set[str]:
    """What the VPC's interface endpoints are for."""
    found = aws.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
    return {
        each["ServiceName"].partition("us-east-1.")[2]
        for each in found
        if each["VpcEndpointType"] == "Interface"
        and each["State"].lower() not in ("deleted", "deleting")
    }


def test_its_life_beside_the_endpoints_stack(own_aws, tmp_path):
    aws = own_aws
    ecs, ec2 = aws.client("ecs"), aws.client("ec2")
    first = with_fleet(tmp_path / "first")
    serving = deploy_template(aws, first, "Serving")
    assert services(aws) == {"sagemaker.runtime"}
    deploy_template(aws, first, "Testing")
    assert services(aws) == {"sagemaker.runtime", "ecr.api", "ecr.dkr", "logs"}

    fleet = find_fleet(aws.client, "sentiment")
    task = ecs.describe_task_definition(taskDefinition=fleet.worker)["taskDefinition"]
    (container,) = task["containerDefinitions"]
    assert (task["cpu"], task["memory"], container["image"]) == ("1024", "2048", IMAGE)
    assert container["logConfiguration"]["options"]["awslogs-group"] == fleet.log_group
    assert set(fleet.subnets) <= set(serving.resources.values())
    link = next(
        value for name, value in serving.resources.items() if name.startswith("LinkSecurityGroup")
    )
    (group,) = ec2.describe_security_groups(GroupIds=[link])["SecurityGroups"]
    assert [
        (rule["FromPort"], rule["UserIdGroupPairs"][0]["GroupId"])
        for rule in group["IpPermissions"]
    ] == [(443, fleet.security_group)]

    changed = deploy_template(
        aws,
        with_fleet(tmp_path / "second", cpu=2048, memory_mib=4096, log_retention_days=7),
        "Testing",
    )
    after = find_fleet(aws.client, "sentiment")
    task = ecs.describe_task_definition(taskDefinition=after.worker)["taskDefinition"]
    assert (task["cpu"], task["memory"]) == ("2048", "4096")
    assert after.worker != fleet.worker
    assert (
        ecs.describe_task_definition(taskDefinition=fleet.worker)["taskDefinition"]["status"]
        == "INACTIVE"
    )
    assert (after.cluster, after.bucket, after.security_group) == (
        fleet.cluster,
        fleet.bucket,
        fleet.security_group,
    )
    assert changed.status == "UPDATE_COMPLETE"
    (group,) = aws.client("logs").describe_log_groups(logGroupNamePrefix=fleet.log_group)[
        "logGroups"
    ]
    assert group["retentionInDays"] == 7

    aws.client("s3").put_object(Bucket=after.bucket, Key="runs/1/result.json", Body=b"{}")
    delete_stack(aws, "Testing")
    assert services(aws) == {"sagemaker.runtime"}
    (group,) = ec2.describe_security_groups(GroupIds=[link])["SecurityGroups"]
    assert group["IpPermissions"] == []
    delete_stack(aws, "Serving")
    assert aws.leftovers() == [f"s3: {after.bucket}"]  # results are kept
