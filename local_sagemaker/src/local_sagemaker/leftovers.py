"""What is still there after everything was to be destroyed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError

Client = Callable[[str], Any]
_BOOTSTRAP_STACK = "CDKToolkit"
_GONE = ("deleted", "deleting", "DELETE_COMPLETE", "INACTIVE", "PendingDeletion")


def find_leftovers(client: Client, account: str, region: str) -> list[str]:
    """List the resources that exist beyond what every account has.

    Left out are the default VPC with what belongs to it, keys and roles that AWS manages, what is
    only still listed as deleted, and whatever belongs to the CDK bootstrap stack.
    """
    bootstrap = _bootstrap_resources(client)
    found = []
    for service, names in _LISTS:
        for name in names(client):
            if not any(own and (own == name or name.endswith(f"/{own}")) for own in bootstrap):
                found.append(f"{service}: {name}")
    return sorted(found)


def _bootstrap_resources(client: Client) -> set[str]:
    try:
        answer = client("cloudformation").describe_stack_resources(StackName=_BOOTSTRAP_STACK)
    except ClientError:
        # Not bootstrapped; what in-process deployments need instead is theirs in the same way.
        return set()
    return {resource["PhysicalResourceId"] for resource in answer["StackResources"]}


def _pages(client: Any, operation: str, key: str, **arguments: Any) -> Iterator[Any]:
    """Give every entry of a listing, over all of its pages."""
    if client.can_paginate(operation):
        for page in client.get_paginator(operation).paginate(**arguments):
            yield from page.get(key, [])
    else:
        yield from getattr(client, operation)(**arguments).get(key, [])


def _simple(
    service: str, operation: str, key: str, field: str | None, **arguments: Any
) -> Callable[[Client], Iterator[str]]:
    """Make a listing out of one operation; entries that are marked as gone are left out."""

    def names(client: Client) -> Iterator[str]:
        for entry in _pages(client(service), operation, key, **arguments):
            if field is None:
                yield str(entry)
            elif not any(entry.get(state) in _GONE for state in ("State", "Status", "status")):
                yield str(entry[field])

    return names


def _stacks(client: Client) -> Iterator[str]:
    for stack in _pages(client("cloudformation"), "describe_stacks", "Stacks"):
        if stack["StackName"] != _BOOTSTRAP_STACK:
            yield stack["StackName"]


def _network(operation: str, key: str, field: str) -> Callable[[Client], Iterator[str]]:
    """List network parts that are not of the default VPC and not made along with a VPC."""

    def names(client: Client) -> Iterator[str]:
        ec2 = client("ec2")
        defaults = {v["VpcId"] for v in _pages(ec2, "describe_vpcs", "Vpcs") if v["IsDefault"]}
        for entry in _pages(ec2, operation, key):
            if entry.get("VpcId") in defaults or entry.get("GroupName") == "default":
                continue
            if any(association.get("Main") for association in entry.get("Associations", [])):
                continue
            if entry.get("IsDefault") or entry.get("State") in _GONE:
                continue
            yield str(entry[field])

    return names


def _roles(client: Client) -> Iterator[str]:
    for role in _pages(client("iam"), "list_roles", "Roles"):
        if not role["Path"].startswith("/aws-service-role/"):
            yield role["RoleName"]


def _keys(client: Client) -> Iterator[str]:
    kms = client("kms")
    for entry in _pages(kms, "list_keys", "Keys"):
        metadata = kms.describe_key(KeyId=entry["KeyId"])["KeyMetadata"]
        if metadata["KeyState"] != "PendingDeletion" and metadata["KeyManager"] != "AWS":
            yield entry["KeyId"]


def _aliases(client: Client) -> Iterator[str]:
    for alias in _pages(client("kms"), "list_aliases", "Aliases"):
        if not alias["AliasName"].startswith("alias/aws/"):
            yield alias["AliasName"]


def _alarms(client: Client) -> Iterator[str]:
    for kind in ("MetricAlarm", "CompositeAlarm"):
        # Without AlarmTypes CloudWatch lists metric alarms only.
        found = _pages(client("cloudwatch"), "describe_alarms", f"{kind}s", AlarmTypes=[kind])
        for alarm in found:
            yield alarm["AlarmName"]


def _parameters(client: Client) -> Iterator[str]:
    for parameter in _pages(client("ssm"), "describe_parameters", "Parameters"):
        # `deploy_template` writes CDK's version parameter when nothing is bootstrapped.
        if not parameter["Name"].startswith("/cdk-bootstrap/"):
            yield parameter["Name"]


def _buckets(client: Client) -> Iterator[str]:
    for bucket in client("s3").list_buckets()["Buckets"]:
        if not bucket["Name"].startswith("cdk-hnb659fds-assets-"):
            yield bucket["Name"]


def _clusters(client: Client) -> Iterator[str]:
    ecs = client("ecs")
    arns = list(_pages(ecs, "list_clusters", "clusterArns"))
    for cluster in ecs.describe_clusters(clusters=arns)["clusters"] if arns else []:
        if cluster["status"] not in _GONE:
            yield cluster["clusterName"]
            yield from _pages(ecs, "list_services", "serviceArns", cluster=cluster["clusterName"])


def _scalable(operation: str, key: str, field: str) -> Callable[[Client], Iterator[str]]:
    def names(client: Client) -> Iterator[str]:
        for namespace in ("sagemaker", "ecs"):
            for entry in _pages(
                client("application-autoscaling"), operation, key, ServiceNamespace=namespace
            ):
                yield str(entry[field])

    return names


def _log_groups(client: Client) -> Iterator[str]:
    # Lambda and SageMaker write these by themselves, and AWS leaves them behind too.
    kept = ("Endpoints", "InferenceComponents")
    theirs = ("/aws/lambda/", *(f"/aws/sagemaker/{kind}/" for kind in kept))
    for group in _pages(client("logs"), "describe_log_groups", "logGroups"):
        if not group["logGroupName"].startswith(theirs):
            yield group["logGroupName"]


def _zones(client: Client) -> Iterator[str]:
    for zone in _pages(client("route53"), "list_hosted_zones", "HostedZones"):
        yield zone["Name"]


_LISTS: tuple[tuple[str, Callable[[Client], Iterator[str]]], ...] = (
    ("cloudformation", _stacks),
    ("sagemaker", _simple("sagemaker", "list_models", "Models", "ModelArn")),
    (
        "sagemaker",
        _simple("sagemaker", "list_endpoint_configs", "EndpointConfigs", "EndpointConfigArn"),
    ),
    ("sagemaker", _simple("sagemaker", "list_endpoints", "Endpoints", "EndpointArn")),
    (
        "sagemaker",
        _simple(
            "sagemaker", "list_inference_components", "InferenceComponents", "InferenceComponentArn"
        ),
    ),
    (
        "application-autoscaling",
        _scalable("describe_scalable_targets", "ScalableTargets", "ResourceId"),
    ),
    (
        "application-autoscaling",
        _scalable("describe_scaling_policies", "ScalingPolicies", "PolicyARN"),
    ),
    ("cloudwatch", _alarms),
    ("cloudwatch", _simple("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName")),
    ("ec2", _network("describe_vpcs", "Vpcs", "VpcId")),
    ("ec2", _network("describe_subnets", "Subnets", "SubnetId")),
    ("ec2", _network("describe_route_tables", "RouteTables", "RouteTableId")),
    ("ec2", _network("describe_security_groups", "SecurityGroups", "GroupId")),
    ("ec2", _network("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId")),
    ("ec2", _network("describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId")),
    ("ec2", _network("describe_nat_gateways", "NatGateways", "NatGatewayId")),
    ("ec2", _network("describe_internet_gateways", "InternetGateways", "InternetGatewayId")),
    ("ec2", _simple("ec2", "describe_addresses", "Addresses", "PublicIp")),
    ("ec2", _simple("ec2", "describe_flow_logs", "FlowLogs", "FlowLogId")),
    ("ecr", _simple("ecr", "describe_repositories", "repositories", "repositoryName")),
    ("ecs", _clusters),
    ("ecs", _simple("ecs", "list_task_definitions", "taskDefinitionArns", None, status="ACTIVE")),
    ("events", _simple("events", "list_rules", "Rules", "Name")),
    ("iam", _roles),
    ("iam", _simple("iam", "list_policies", "Policies", "Arn", Scope="Local")),
    ("iam", _simple("iam", "list_instance_profiles", "InstanceProfiles", "InstanceProfileName")),
    ("kms", _keys),
    ("kms", _aliases),
    ("lambda", _simple("lambda", "list_functions", "Functions", "FunctionName")),
    ("logs", _log_groups),
    ("route53", _zones),
    ("s3", _buckets),
    ("scheduler", _simple("scheduler", "list_schedules", "Schedules", "Name")),
    ("sns", _simple("sns", "list_topics", "Topics", "TopicArn")),
    ("sqs", _simple("sqs", "list_queues", "QueueUrls", None)),
    ("ssm", _parameters),
)
