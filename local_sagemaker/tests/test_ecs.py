"""AWS::ECS::*."""

from __future__ import annotations

from typing import Any

import pytest
from stacks_under_test import resource_of

SERVICE = "AWS::ECS::Service"


@pytest.fixture
def parts(role, vpc) -> dict[str, Any]:
    """A network, a cluster and a Fargate task definition."""
    return {
        "Role": role,
        "Vpc": vpc,
        "Subnet": resource_of("AWS::EC2::Subnet", VpcId={"Ref": "Vpc"}, CidrBlock="10.0.1.0/24"),
        "Group": resource_of("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId={"Ref": "Vpc"}),
        "Cluster": resource_of(
            "AWS::ECS::Cluster",
            ClusterSettings=[{"Name": "containerInsights", "Value": "enabled"}],
            Tags=[{"Key": "k", "Value": "v"}],
        ),
        "Task": resource_of(
            "AWS::ECS::TaskDefinition",
            Cpu="256",
            Memory="512",
            NetworkMode="awsvpc",
            RequiresCompatibilities=["FARGATE"],
            ExecutionRoleArn={"Fn::GetAtt": ["Role", "Arn"]},
            RuntimePlatform={"CpuArchitecture": "ARM64", "OperatingSystemFamily": "LINUX"},
            ContainerDefinitions=[
                {
                    "Name": "load",
                    "Image": "image:1",
                    "Essential": True,
                    "Environment": [{"Name": "A", "Value": "1"}],
                    "PortMappings": [{"ContainerPort": 8089, "Protocol": "tcp"}],
                    "LogConfiguration": {
                        "LogDriver": "awslogs",
                        "Options": {"awslogs-group": "g", "awslogs-region": "us-east-1"},
                    },
                }
            ],
        ),
    }


def service(**more: Any) -> dict[str, Any]:
    return {
        "Cluster": {"Ref": "Cluster"},
        "TaskDefinition": {"Ref": "Task"},
        "LaunchType": "FARGATE",
        "DesiredCount": 2,
        "EnableECSManagedTags": False,
        "DeploymentConfiguration": {"MaximumPercent": 200, "MinimumHealthyPercent": 50},
        "NetworkConfiguration": {
            "AwsvpcConfiguration": {
                "AssignPublicIp": "DISABLED",
                "Subnets": [{"Ref": "Subnet"}],
                "SecurityGroups": [{"Ref": "Group"}],
            }
        },
        **more,
    }


def described(aws: Any, cluster: str, arn: str) -> dict[str, Any]:
    (found,) = aws.client("ecs").describe_services(cluster=cluster, services=[arn])["services"]
    return found


def test_service_cluster_and_task_definition(aws, stack, parts):
    ecs = aws.client("ecs")
    made = stack.deploy(SERVICE, service(), ("Name", "ServiceArn"), **parts)
    ids = made.stack.resources
    found = described(aws, ids["Cluster"], made.ref)
    assert made.ref == made.attributes["ServiceArn"] == found["serviceArn"]
    assert found["serviceName"] == made.attributes["Name"]
    assert (found["launchType"], found["desiredCount"]) == ("FARGATE", 2)
    network = found["networkConfiguration"]["awsvpcConfiguration"]
    assert network["subnets"] == [ids["Subnet"]]
    assert network["securityGroups"] == [ids["Group"]]
    assert found["deploymentConfiguration"]["minimumHealthyPercent"] == 50
    assert found["taskDefinition"] == ids["Task"]
    task = ecs.describe_task_definition(taskDefinition=ids["Task"])["taskDefinition"]
    assert task["runtimePlatform"]["cpuArchitecture"] == "ARM64"
    container = task["containerDefinitions"][0]
    assert container["environment"] == [{"name": "A", "value": "1"}]
    assert container["logConfiguration"]["options"]["awslogs-group"] == "g"
    (cluster,) = ecs.describe_clusters(clusters=[ids["Cluster"]], include=["SETTINGS", "TAGS"])[
        "clusters"
    ]
    assert cluster["settings"] == [{"name": "containerInsights", "value": "enabled"}]
    assert cluster["tags"] == [{"key": "k", "value": "v"}]

    parts["Task"]["Properties"]["Cpu"] = "512"
    parts["Task"]["Properties"]["Memory"] = "1024"
    parts["Cluster"]["Properties"]["ClusterSettings"][0]["Value"] = "disabled"
    changed = stack.deploy(SERVICE, service(DesiredCount=5, EnableExecuteCommand=True), **parts)
    assert changed.ref == made.ref
    assert changed.stack.resources["Task"] != ids["Task"]
    found = described(aws, ids["Cluster"], made.ref)
    assert found["desiredCount"] == 5
    assert found["enableExecuteCommand"] is True
    assert found["taskDefinition"] == changed.stack.resources["Task"]
    (cluster,) = ecs.describe_clusters(clusters=[ids["Cluster"]], include=["SETTINGS"])["clusters"]
    assert cluster["settings"] == [{"name": "containerInsights", "value": "disabled"}]
    old = ecs.describe_task_definition(taskDefinition=ids["Task"])["taskDefinition"]
    assert old["status"] == "INACTIVE"

    renamed = stack.deploy(SERVICE, service(ServiceName="named"), **parts)
    assert renamed.ref.endswith("/named")
    stack.delete()
    active = [
        c["clusterName"]
        for c in ecs.describe_clusters(clusters=[ids["Cluster"]])["clusters"]
        if c["status"] == "ACTIVE"
    ]
    assert active == []


def test_a_cluster_s_capacity_providers(aws, stack):
    cluster = resource_of("AWS::ECS::Cluster")
    kind = "AWS::ECS::ClusterCapacityProviderAssociations"

    def properties(*providers: str) -> dict[str, Any]:
        return {
            "Cluster": {"Ref": "Cluster"},
            "CapacityProviders": list(providers),
            "DefaultCapacityProviderStrategy": [
                {"CapacityProvider": providers[0], "Weight": "2", "Base": 1}
            ],
        }

    def described() -> tuple[list[str], list[dict[str, Any]]]:
        (found,) = aws.client("ecs").describe_clusters(clusters=[made.ref])["clusters"]
        return found["capacityProviders"], found["defaultCapacityProviderStrategy"]

    made = stack.deploy(kind, properties("FARGATE"), Cluster=cluster)
    assert made.ref == made.stack.resources["Cluster"]
    assert described() == (["FARGATE"], [{"capacityProvider": "FARGATE", "weight": 2, "base": 1}])
    changed = stack.deploy(kind, properties("FARGATE_SPOT", "FARGATE"), Cluster=cluster)
    assert changed.ref == made.ref
    assert described()[0] == ["FARGATE_SPOT", "FARGATE"]
    assert described()[1][0]["capacityProvider"] == "FARGATE_SPOT"

    stack.template({"Resources": {"Cluster": cluster}})
    assert described() == ([], [])
