"""What is still there after everything was to be destroyed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

Client = Callable[[str], Any]
_BOOTSTRAP_STACK = "CDKToolkit"
_GONE = ("deleted", "deleting", "DELETE_COMPLETE", "INACTIVE", "PendingDeletion")


def find_leftovers(client: Client) -> list[str]:
    """List what is there but for what every account, AWS itself or CDK's bootstrap has."""
    bootstrap = _bootstrap_resources(client)
    leftovers = []
    names = [(listing.service, name) for listing in _LISTINGS for name in listing.names(client)]
    for service, name in [
        *names,
        *_network_parts(client),
        *_roles(client),
        *_keys(client),
        *_clusters(client),
    ]:
        if not any(own and (own == name or name.endswith(f"/{own}")) for own in bootstrap):
            leftovers.append(f"{service}: {name}")
    return sorted(leftovers)


def _bootstrap_resources(client: Client) -> set[str]:
    try:
        answer = client("cloudformation").describe_stack_resources(StackName=_BOOTSTRAP_STACK)
    except ClientError:
        # Not bootstrapped; what in-process deployments need instead is theirs in the same way.
        return set()
    own = {resource["PhysicalResourceId"] for resource in answer["StackResources"]}
    return {_BOOTSTRAP_STACK, *own}


def _pages(client: Any, operation: str, key: str, **arguments: Any) -> Iterator[Any]:
    """Give every entry of a listing, over all of its pages."""
    if client.can_paginate(operation):
        for page in client.get_paginator(operation).paginate(**arguments):
            yield from page.get(key, [])
    else:
        yield from getattr(client, operation)(**arguments).get(key, [])


@dataclass(frozen=True)
class _Listing:
    """Resources of one kind, by the operation that lists them; entries marked as gone are left out."""

    service: str
    operation: str
    entries: str
    name: str = ""  # the field of an entry; by default the entry is the name
    not_ours: tuple[str, ...] = ()
    """How the names begin of what AWS has, or a deployment makes by itself."""
    given: Mapping[str, Any] = field(default_factory=dict)

    def names(self, client: Client) -> Iterator[str]:
        for entry in _pages(client(self.service), self.operation, self.entries, **self.given):
            name = str(entry[self.name] if self.name else entry)
            states = ("State", "Status", "status") if self.name else ()
            if not name.startswith(self.not_ours) and not any(
                entry.get(state) in _GONE for state in states
            ):
                yield name


# Lambda and SageMaker write these by themselves, and AWS leaves them behind too.
_LOGS = ("/aws/lambda/", "/aws/sagemaker/Endpoints/", "/aws/sagemaker/InferenceComponents/")
_LISTINGS = (
    _Listing("cloudformation", "describe_stacks", "Stacks", "StackName"),
    _Listing("sagemaker", "list_models", "Models", "ModelArn"),
    _Listing("sagemaker", "list_endpoint_configs", "EndpointConfigs", "EndpointConfigArn"),
    _Listing("sagemaker", "list_endpoints", "Endpoints", "EndpointArn"),
    _Listing(
        "sagemaker", "list_inference_components", "InferenceComponents", "InferenceComponentArn"
    ),
    *(
        _Listing("application-autoscaling", operation, entries, name, given=given)
        for given in ({"ServiceNamespace": "sagemaker"}, {"ServiceNamespace": "ecs"})
        for operation, entries, name in (
            ("describe_scalable_targets", "ScalableTargets", "ResourceId"),
            ("describe_scaling_policies", "ScalingPolicies", "PolicyARN"),
        )
    ),
    # Without AlarmTypes CloudWatch lists metric alarms only.
    *(
        _Listing(
            "cloudwatch", "describe_alarms", f"{kind}s", "AlarmName", (), {"AlarmTypes": [kind]}
        )
        for kind in ("MetricAlarm", "CompositeAlarm")
    ),
    _Listing("cloudwatch", "list_dashboards", "DashboardEntries", "DashboardName"),
    _Listing("dynamodb", "list_tables", "TableNames"),
    _Listing("ec2", "describe_addresses", "Addresses", "PublicIp"),
    _Listing("ec2", "describe_flow_logs", "FlowLogs", "FlowLogId"),
    _Listing("ec2", "describe_volumes", "Volumes", "VolumeId"),
    _Listing("ecr", "describe_repositories", "repositories", "repositoryName"),
    _Listing("ecs", "list_task_definitions", "taskDefinitionArns", given={"status": "ACTIVE"}),
    _Listing("events", "list_rules", "Rules", "Name"),
    _Listing("iam", "list_instance_profiles", "InstanceProfiles", "InstanceProfileName"),
    _Listing("iam", "list_users", "Users", "UserName"),
    _Listing("iam", "list_policies", "Policies", "Arn", given={"Scope": "Local"}),
    _Listing("kms", "list_aliases", "Aliases", "AliasName", ("alias/aws/",)),
    _Listing("lambda", "list_functions", "Functions", "FunctionName"),
    _Listing("logs", "describe_log_groups", "logGroups", "logGroupName", _LOGS),
    _Listing("route53", "list_hosted_zones", "HostedZones", "Name"),
    _Listing("s3", "list_buckets", "Buckets", "Name", ("cdk-hnb659fds-assets-",)),
    _Listing("secretsmanager", "list_secrets", "SecretList", "ARN"),
    _Listing("sns", "list_topics", "Topics", "TopicArn"),
    _Listing("sqs", "list_queues", "QueueUrls"),
    # `deploy_template` writes CDK's version parameter when nothing is bootstrapped.
    _Listing("ssm", "describe_parameters", "Parameters", "Name", ("/cdk-bootstrap/",)),
)
_OF_NETWORKS = (
    ("describe_vpcs", "Vpcs", "VpcId"),
    ("describe_subnets", "Subnets", "SubnetId"),
    ("describe_network_acls", "NetworkAcls", "NetworkAclId"),
    ("describe_route_tables", "RouteTables", "RouteTableId"),
    ("describe_security_groups", "SecurityGroups", "GroupId"),
    ("describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"),
    ("describe_network_interfaces", "NetworkInterfaces", "NetworkInterfaceId"),
    ("describe_nat_gateways", "NatGateways", "NatGatewayId"),
    ("describe_internet_gateways", "InternetGateways", "InternetGatewayId"),
)


def _network_parts(client: Client) -> Iterator[tuple[str, str]]:
    """List the network parts that are not of the default VPC and not made along with a VPC."""
    ec2 = client("ec2")
    defaults = {v["VpcId"] for v in _pages(ec2, "describe_vpcs", "Vpcs") if v["IsDefault"]}
    account = client("sts").get_caller_identity()["Account"]  # others may share theirs
    for operation, entries, name in _OF_NETWORKS:
        for entry in _pages(ec2, operation, entries):
            main = any(association.get("Main") for association in entry.get("Associations", []))
            if (
                not main
                and entry.get("OwnerId", account) == account
                and entry.get("VpcId") not in defaults
                and entry.get("GroupName") != "default"
                and not entry.get("IsDefault")
                and entry.get("State") not in _GONE
            ):
                yield "ec2", str(entry[name])


def _roles(client: Client) -> Iterator[tuple[str, str]]:
    for role in _pages(client("iam"), "list_roles", "Roles"):
        if not role["Path"].startswith("/aws-service-role/"):
            yield "iam", role["RoleName"]


def _keys(client: Client) -> Iterator[tuple[str, str]]:
    kms = client("kms")
    for entry in _pages(kms, "list_keys", "Keys"):
        metadata = kms.describe_key(KeyId=entry["KeyId"])["KeyMetadata"]
        if metadata["KeyState"] != "PendingDeletion" and metadata["KeyManager"] != "AWS":
            yield "kms", entry["KeyId"]


def _clusters(client: Client) -> Iterator[tuple[str, str]]:
    ecs = client("ecs")
    arns = list(_pages(ecs, "list_clusters", "clusterArns"))
    for cluster in ecs.describe_clusters(clusters=arns)["clusters"] if arns else []:
        if cluster["status"] not in _GONE:
            yield "ecs", cluster["clusterName"]
