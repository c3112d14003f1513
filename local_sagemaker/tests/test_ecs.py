"""AWS::ECS::*."""

from __future__ import annotations

from typing import Any

from stacks_under_test import resource_of


def test_cluster_and_task_definition(aws, stack, role):
    ecs = aws.client("ecs")
    container = {
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

    def deploy(insights: str, cpu: str, memory: str) -> tuple[str, str]:
        """Give the cluster's name and the task definition's ARN."""
        cluster = resource_of(
            "AWS::ECS::Cluster",
            ClusterSettings=[{"Name": "containerInsights", "Value": insights}],
            Tags=[{"Key": "k", "Value": "v"}],
        )
        task = {
            "Cpu": cpu,
            "Memory": memory,
            "NetworkMode": "awsvpc",
            "RequiresCompatibilities": ["FARGATE"],
            "ExecutionRoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
            "RuntimePlatform": {"CpuArchitecture": "ARM64", "OperatingSystemFamily": "LINUX"},
            "ContainerDefinitions": [container],
        }
        made = stack.deploy("AWS::ECS::TaskDefinition", task, Role=role, Cluster=cluster)
        return made.stack.resources["Cluster"], made.ref

    def cluster(name: str) -> Any:
        return ecs.describe_clusters(clusters=[name], include=["SETTINGS", "TAGS"])["clusters"][0]

    def task(arn: str) -> Any:
        return ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"]

    name, arn = deploy("enabled", "256", "512")
    assert task(arn)["runtimePlatform"]["cpuArchitecture"] == "ARM64"
    (found,) = task(arn)["containerDefinitions"]
    assert found["environment"] == [{"name": "A", "value": "1"}]
    assert found["logConfiguration"]["options"]["awslogs-group"] == "g"
    assert cluster(name)["settings"] == [{"name": "containerInsights", "value": "enabled"}]
    assert cluster(name)["tags"] == [{"key": "k", "value": "v"}]

    same, other = deploy("disabled", "512", "1024")
    assert same == name
    assert cluster(name)["settings"] == [{"name": "containerInsights", "value": "disabled"}]
    assert (task(arn)["status"], task(other)["cpu"]) == ("INACTIVE", "512")
    stack.delete()
    assert cluster(name)["status"] != "ACTIVE"
