"""What a stack really is: CloudFormation's list of resources, then each service's own word for it.

:func:`read_deployed` asks the services, not the template, so what it returns is what callers meet.
:mod:`low_latency_endpoint.operations.deployed_tables` shows it and compares two readings.

Needs the ``operations`` extra (boto3) and these permissions, all read-only:
``cloudformation:DescribeStacks``, ``cloudformation:ListStackResources``, ``ec2:DescribeSubnets``,
``ec2:DescribeVpcEndpoints``, ``sagemaker:DescribeEndpoint``, ``sagemaker:DescribeEndpointConfig``,
``sagemaker:DescribeModel``, ``sagemaker:ListEndpoints``,
``application-autoscaling:DescribeScalableTargets``,
``application-autoscaling:DescribeScalingPolicies`` and ``cloudwatch:DescribeAlarms``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from ..errors import rule
from .deployed_alarms import DeployedAlarm, read_alarms

__all__ = [
    "DeployedAlarm",
    "DeployedEndpoint",
    "DeployedInterfaceEndpoint",
    "DeployedScalingPolicy",
    "DeployedStack",
    "DeployedSubnet",
    "DeployedVariant",
    "read_deployed",
]

STACK_EXISTS = rule(
    "LLE591",
    "The stack must exist in this account and region.",
    mend="Deploy it first, or name another: --stack-name, AWS_REGION, AWS_PROFILE.",
)
AWS_ANSWERS = rule(
    "LLE592",
    "AWS must answer the requests that read the stack.",
    mend="Check the credentials (aws sts get-caller-identity), the region, and that they may read "
    "CloudFormation, EC2, SageMaker, Application Auto Scaling and CloudWatch.",
)

ClientFactory = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class DeployedSubnet:
    """One subnet; ``zone`` is this account's name for the physical zone ``zone_id``."""

    subnet_id: str
    zone: str
    zone_id: str
    cidr: str


@dataclass(frozen=True, slots=True)
class DeployedInterfaceEndpoint:
    """One PrivateLink interface endpoint; ``zonal_dns_names`` maps zone name to DNS name."""

    interface_endpoint_id: str
    service: str
    state: str
    private_dns: bool
    subnet_ids: tuple[str, ...]
    zonal_dns_names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DeployedScalingPolicy:
    """One scaling policy; ``target`` is ``None`` unless it tracks a target."""

    name: str
    kind: str
    metric: str
    target: float | None


@dataclass(frozen=True, slots=True)
class DeployedVariant:
    """One production variant; the limits of scaling are ``None`` where it does not scale."""

    name: str
    model_names: tuple[str, ...]
    subnet_ids: tuple[str, ...]
    security_group_ids: tuple[str, ...]
    instance_type: str
    routing: str
    current_instances: int
    desired_instances: int
    min_instances: int | None
    max_instances: int | None
    scaling_policies: tuple[DeployedScalingPolicy, ...]


@dataclass(frozen=True, slots=True)
class DeployedEndpoint:
    """One SageMaker endpoint with its variants and the alarms on its metrics.

    ``rollback_alarms`` are the names of those that roll an update back.
    """

    name: str
    status: str
    deployment: str
    variants: tuple[DeployedVariant, ...]
    alarms: tuple[DeployedAlarm, ...]
    rollback_alarms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DeployedStack:
    """What :func:`read_deployed` found."""

    name: str
    status: str
    resources: int
    subnets: tuple[DeployedSubnet, ...]
    interface_endpoints: tuple[DeployedInterfaceEndpoint, ...]
    endpoints: tuple[DeployedEndpoint, ...]


def read_deployed(client: ClientFactory, stack_name: str) -> DeployedStack:
    """Read what the stack created, from the services themselves.

    Subnets and the runtime's interface endpoint are reported too where the stack uses an existing
    VPC and so does not own them.

    Parameters
    ----------
    client : callable
        Service name to boto3 client: the ``client`` method of a ``boto3.Session``.
    stack_name : str
        Name of the CloudFormation stack.

    Raises
    ------
    ConfigurationError
        ``LLE591`` when there is no such stack, ``LLE592`` when AWS refuses or does not answer.
    """
    try:
        stack = _describe_stack(client, stack_name)
        return _read(client, stack)
    except (BotoCoreError, ClientError) as error:
        raise AWS_ANSWERS.error(got=str(error), allowed="an answer", where=stack_name) from error


def _describe_stack(client: ClientFactory, stack_name: str) -> dict[str, Any]:
    missing = STACK_EXISTS.error(
        got=stack_name, allowed="the name of a deployed stack", where=stack_name
    )
    try:
        stacks = client("cloudformation").describe_stacks(StackName=stack_name)["Stacks"]
    except ClientError as error:
        # CloudFormation has no code of its own for this: it is a ValidationError with this text.
        if "does not exist" in str(error):
            raise missing from None
        raise
    if not stacks or stacks[0]["StackStatus"] == "DELETE_COMPLETE":
        raise missing
    return dict(stacks[0])


def _read(client: ClientFactory, stack: dict[str, Any]) -> DeployedStack:
    ids: dict[str, list[str]] = {}
    for kind, physical_id in _resources(client, stack["StackName"]):
        ids.setdefault(kind, []).append(physical_id)
    alarms = read_alarms(client, ids.get("AWS::CloudWatch::Alarm", []))
    endpoints = tuple(
        _read_endpoint(client, name, alarms)
        for name in _endpoint_names(client, ids.get("AWS::SageMaker::Endpoint", []))
    )
    used = {s for e in endpoints for v in e.variants for s in v.subnet_ids}
    own_interface_endpoints = ids.get("AWS::EC2::VPCEndpoint", [])
    subnets, vpc_ids = _read_subnets(client, used | set(ids.get("AWS::EC2::Subnet", [])))
    return DeployedStack(
        name=stack["StackName"],
        status=stack["StackStatus"],
        resources=sum(map(len, ids.values())),
        subnets=subnets,
        interface_endpoints=_read_interface_endpoints(client, vpc_ids, own_interface_endpoints),
        endpoints=endpoints,
    )


def _resources(client: ClientFactory, stack_name: str) -> Iterator[tuple[str, str]]:
    """Type and physical ID of each live resource, nested stacks included."""
    paginator = client("cloudformation").get_paginator("list_stack_resources")
    for page in paginator.paginate(StackName=stack_name):
        for resource in page["StackResourceSummaries"]:
            if resource["ResourceStatus"] == "DELETE_COMPLETE":
                continue
            physical_id = resource.get("PhysicalResourceId", "")
            yield resource["ResourceType"], physical_id
            if resource["ResourceType"] == "AWS::CloudFormation::Stack" and physical_id:
                yield from _resources(client, physical_id)


def _read_subnets(
    client: ClientFactory, subnet_ids: set[str]
) -> tuple[tuple[DeployedSubnet, ...], list[str]]:
    if not subnet_ids:
        return (), []
    answer = client("ec2").describe_subnets(SubnetIds=sorted(subnet_ids))["Subnets"]
    subnets = (
        DeployedSubnet(s["SubnetId"], s["AvailabilityZone"], s["AvailabilityZoneId"],
                       s["CidrBlock"])
        for s in answer
    )
    return (
        tuple(sorted(subnets, key=lambda subnet: (subnet.zone_id, subnet.cidr))),
        sorted({s["VpcId"] for s in answer}),
    )


def _read_interface_endpoints(
    client: ClientFactory, vpc_ids: list[str], own: list[str]
) -> tuple[DeployedInterfaceEndpoint, ...]:
    if not vpc_ids:
        return ()
    answer = client("ec2").describe_vpc_endpoints(
        Filters=[{"Name": "vpc-id", "Values": vpc_ids}]
    )["VpcEndpoints"]
    return tuple(
        DeployedInterfaceEndpoint(
            interface_endpoint_id=endpoint["VpcEndpointId"],
            service=endpoint["ServiceName"],
            state=endpoint["State"].lower(),
            private_dns=endpoint.get("PrivateDnsEnabled", False),
            subnet_ids=tuple(sorted(endpoint.get("SubnetIds", []))),
            zonal_dns_names=_zonal_dns_names(endpoint),
        )
        for endpoint in sorted(answer, key=lambda endpoint: endpoint["ServiceName"])
        if endpoint["VpcEndpointType"] == "Interface"
        and endpoint["State"].lower() not in ("deleting", "deleted")
        # A VPC in use already has other interface endpoints: those are not this stack's business.
        and (endpoint["VpcEndpointId"] in own or ".sagemaker.runtime" in endpoint["ServiceName"])
    )


def _zonal_dns_names(endpoint: dict[str, Any]) -> dict[str, str]:
    """Zone to name, from ``vpce-0a1-b2c3-us-east-1a.runtime.sagemaker...``.

    The entry without a zone is the regional name; the one that does not begin with the endpoint's
    ID is the private name, the service's own.
    """
    names = {}
    for entry in endpoint.get("DnsEntries", []):
        label = entry["DnsName"].partition(".")[0]
        if label.startswith(endpoint["VpcEndpointId"]):
            zone = label.removeprefix(endpoint["VpcEndpointId"]).split("-", 2)[2:]
            if zone:
                names[zone[0]] = entry["DnsName"]
    return dict(sorted(names.items()))


def _endpoint_names(client: ClientFactory, arns: list[str]) -> list[str]:
    """Names of the endpoints, in the case they were created with.

    The ARN has the name in small letters, but invocations, metrics and scaling want its own case:
    https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateEndpoint.html
    """
    if not arns:
        return []
    pages = client("sagemaker").get_paginator("list_endpoints").paginate()
    listed = (endpoint for page in pages for endpoint in page["Endpoints"])
    return sorted(e["EndpointName"] for e in listed if e["EndpointArn"] in arns)


def _read_endpoint(
    client: ClientFactory, name: str, alarms: tuple[DeployedAlarm, ...]
) -> DeployedEndpoint:
    sagemaker = client("sagemaker")
    endpoint = sagemaker.describe_endpoint(EndpointName=name)
    configuration = sagemaker.describe_endpoint_config(
        EndpointConfigName=endpoint["EndpointConfigName"]
    )
    deployment = endpoint.get("LastDeploymentConfig", {})
    rollback = deployment.get("AutoRollbackConfiguration", {})
    running = {v["VariantName"]: v for v in endpoint.get("ProductionVariants", [])}
    return DeployedEndpoint(
        name=name,
        status=endpoint["EndpointStatus"],
        deployment=_deployment_in_words(deployment),
        variants=tuple(
            _read_variant(client, name, variant, running.get(variant["VariantName"], {}))
            for variant in configuration["ProductionVariants"]
        ),
        alarms=tuple(alarm for alarm in alarms if alarm.endpoint_name == name),
        rollback_alarms=tuple(
            sorted(alarm["AlarmName"] for alarm in rollback.get("Alarms", []))
        ),
    )


def _read_variant(
    client: ClientFactory, endpoint_name: str, configured: dict[str, Any], running: dict[str, Any]
) -> DeployedVariant:
    # A variant of an endpoint that hosts inference components has no model of its own.
    model_names = tuple(filter(None, [configured.get("ModelName")]))
    network = (
        client("sagemaker").describe_model(ModelName=model_names[0]).get("VpcConfig", {})
        if model_names
        else {}
    )
    initial = configured.get("InitialInstanceCount", 0)
    resource_id = f"endpoint/{endpoint_name}/variant/{configured['VariantName']}"
    scaling = client("application-autoscaling")
    targets = scaling.describe_scalable_targets(
        ServiceNamespace="sagemaker", ResourceIds=[resource_id]
    )["ScalableTargets"]
    policies = (
        scaling.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=resource_id)
        if targets
        else {"ScalingPolicies": []}
    )["ScalingPolicies"]
    return DeployedVariant(
        name=configured["VariantName"],
        model_names=model_names,
        subnet_ids=tuple(sorted(network.get("Subnets", []))),
        security_group_ids=tuple(sorted(network.get("SecurityGroupIds", []))),
        instance_type=configured.get("InstanceType")
        or ", ".join(pool["InstanceType"] for pool in configured.get("InstancePools", [])),
        # https://aws.amazon.com/blogs/machine-learning/minimize-real-time-inference-latency-by-using-amazon-sagemaker-routing-strategies/
        routing=configured.get("RoutingConfig", {}).get("RoutingStrategy", "RANDOM (default)"),
        current_instances=running.get("CurrentInstanceCount", 0),
        desired_instances=running.get("DesiredInstanceCount", initial),
        min_instances=targets[0]["MinCapacity"] if targets else None,
        max_instances=targets[0]["MaxCapacity"] if targets else None,
        scaling_policies=tuple(sorted(map(_scaling_policy, policies), key=lambda p: p.name)),
    )


def _scaling_policy(policy: dict[str, Any]) -> DeployedScalingPolicy:
    tracking = policy.get("TargetTrackingScalingPolicyConfiguration", {})
    predefined = tracking.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    customized = tracking.get("CustomizedMetricSpecification", {})
    return DeployedScalingPolicy(
        name=policy["PolicyName"],
        kind=policy["PolicyType"],
        metric=predefined or customized.get("MetricName") or "metric math" * bool(customized),
        target=tracking.get("TargetValue"),
    )


def _deployment_in_words(deployment: dict[str, Any]) -> str:
    """The update policy in one line; empty where SageMaker reports none.

    >>> _deployment_in_words({"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": {
    ...     "Type": "CANARY", "WaitIntervalInSeconds": 300,
    ...     "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 10}}},
    ...     "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "p99"}]}})
    'blue/green, canary 10 %, waits 300 s, rolls back on 1 alarm'
    """
    parts: list[str] = []
    if blue_green := deployment.get("BlueGreenUpdatePolicy"):
        routing = blue_green["TrafficRoutingConfiguration"]
        kind = routing["Type"].lower().replace("_", " ")
        size = _size_in_words(routing.get("CanarySize") or routing.get("LinearStepSize"))
        parts = ["blue/green", f"{kind} {size}".strip()]
        wait = routing.get("WaitIntervalInSeconds", 0) if size else 0
    elif rolling := deployment.get("RollingUpdatePolicy"):
        parts = [f"rolling, batches of {_size_in_words(rolling['MaximumBatchSize'])}"]
        wait = rolling.get("WaitIntervalInSeconds", 0)
    else:
        return ""
    if wait:
        parts.append(f"waits {wait} s")
    count = len(deployment.get("AutoRollbackConfiguration", {}).get("Alarms", []))
    if count:
        parts.append(f"rolls back on {count} alarm{'s' * (count != 1)}")
    return ", ".join(parts)


def _size_in_words(size: dict[str, Any] | None) -> str:
    if not size:
        return ""
    percent = size["Type"] == "CAPACITY_PERCENT"
    return f"{size['Value']} %" if percent else f"{size['Value']} instances"
