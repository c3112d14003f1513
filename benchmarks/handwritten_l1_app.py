"""What ``pattern_app.py`` creates, written by hand with CloudFormation's own (L1) constructs.

The yardstick of ``make bench``: same resource types, same counts, same properties as far as they
matter for the work. It keeps to what a careful engineer would write, with no trick for speed.

Prints the seconds that building and synthesising took, without the start of Python and Node.js.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from aws_cdk import App, Aws, CfnResource, CfnTag, Environment, Fn, Stack
from aws_cdk import aws_applicationautoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sagemaker as sagemaker

from .handwritten_l1_alarms import NAME, VARIANT, alarms, dashboard, error_alarm, metric_alarm
from .measure import peak_megabytes

ZONES = {"use1-az1": "10.0.0.0/24", "use1-az2": "10.0.1.0/24"}

PACKAGE = Path(__file__).parents[1] / "constructs/low_latency_endpoint"
FUNCTIONS = PACKAGE / "synthesis/custom_resource_functions"


def arn(service: str, resource: str) -> str:
    """An ARN in the stack's account and region."""
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"


def allow(actions: list[str], resource: Any, **more: Any) -> dict[str, Any]:
    """A policy statement."""
    return {"Effect": "Allow", "Action": actions, "Resource": resource, **more}


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def assumed_by(service: str, **source: Any) -> dict[str, Any]:
    """A trust policy."""
    return document(
        {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole", **source}
    )


S3_KINDS = {
    "Read": ["s3:GetObject"],
    "List": ["s3:ListBucket"],
    "Put": ["s3:PutObject"],
    "Change": ["s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"],
}


def objects(of: str) -> str:
    """The ARN of objects in S3."""
    return f"arn:{Aws.PARTITION}:s3:::{of}"


def former_names(stack: Stack) -> lambda_.CfnFunction:
    """The function behind what policies named before their last change."""
    return inline_function(stack, "Former", "former_names", 60)[0]


def former(stack: Stack, name: str, function: lambda_.CfnFunction, **named: Any) -> CfnResource:
    """What one policy names, and named before."""
    return CfnResource(
        stack,
        name,
        type="Custom::FormerNames",
        properties={"ServiceToken": function.attr_arn, "ServiceTimeout": "120", **named},
    )


def named_before(of: CfnResource, kind: str) -> list[str]:
    """The answer of the custom resource."""
    return Fn.split(",", of.get_att(kind).to_string())


def s3_policy(before: CfnResource) -> dict[str, Any]:
    """What passes the S3 gateway endpoint: layers of images, the account's buckets, the models'."""
    return document(
        allow(
            ["s3:GetObject"],
            f"arn:{Aws.PARTITION}:s3:::prod-{Aws.REGION}-starport-layer-bucket/*",
            Principal="*",
        ),
        allow(
            ["s3:*"],
            "*",
            Principal="*",
            Condition={"StringEquals": {"aws:ResourceAccount": Aws.ACCOUNT_ID}},
        ),
        allow(["s3:GetObject"], [objects("models/*")], Principal="*"),
        *(
            allow(actions, named_before(before, kind), Principal="*")
            for kind, actions in S3_KINDS.items()
        ),
    )


def network(
    stack: Stack, function: lambda_.CfnFunction
) -> tuple[ec2.CfnVPC, list[ec2.CfnSubnet], list[CfnResource]]:
    """VPC, one isolated subnet per zone, S3 gateway endpoint."""
    vpc = ec2.CfnVPC(
        stack,
        "Vpc",
        cidr_block="10.0.0.0/16",
        enable_dns_hostnames=True,
        enable_dns_support=True,
        tags=[CfnTag(key="Name", value=NAME)],
    )
    routes = ec2.CfnRouteTable(
        stack, "Routes", vpc_id=vpc.ref, tags=[CfnTag(key="Name", value=NAME)]
    )
    subnets: list[ec2.CfnSubnet] = []
    reachable: list[CfnResource] = []
    for zone, cidr in ZONES.items():
        subnet = ec2.CfnSubnet(
            stack,
            f"Subnet-{zone}",
            vpc_id=vpc.ref,
            availability_zone_id=zone,
            cidr_block=cidr,
            map_public_ip_on_launch=False,
            tags=[CfnTag(key="Name", value=f"{NAME}/{zone}")],
        )
        subnets.append(subnet)
        reachable.append(
            ec2.CfnSubnetRouteTableAssociation(
                stack, f"Route-{zone}", route_table_id=routes.ref, subnet_id=subnet.ref
            )
        )
    reachable.append(
        ec2.CfnVPCEndpoint(
            stack,
            "S3",
            vpc_id=vpc.ref,
            vpc_endpoint_type="Gateway",
            service_name=f"com.amazonaws.{Aws.REGION}.s3",
            route_table_ids=[routes.ref],
            policy_document=s3_policy(
                former(
                    stack,
                    "FormerS3",
                    function,
                    **{
                        kind: [objects("models/*" if kind == "Read" else "-/-")]
                        for kind in S3_KINDS
                    },
                )
            ),
        )
    )
    return vpc, subnets, reachable


def inline_function(
    stack: Stack, name: str, source: str, timeout: int, *statements: dict[str, Any]
) -> tuple[lambda_.CfnFunction, iam.CfnRole]:
    """A function with its code in the template, its role and its log group."""
    log_group = logs.CfnLogGroup(stack, f"{name}Logs", retention_in_days=7)
    role = iam.CfnRole(
        stack,
        f"{name}Role",
        assume_role_policy_document=assumed_by("lambda.amazonaws.com"),
        policies=[
            iam.CfnRole.PolicyProperty(
                policy_name="act",
                policy_document=document(
                    *statements,
                    allow(["logs:CreateLogStream", "logs:PutLogEvents"], log_group.attr_arn),
                ),
            )
        ],
    )
    function = lambda_.CfnFunction(
        stack,
        f"{name}Function",
        architectures=["arm64"],
        code=lambda_.CfnFunction.CodeProperty(
            zip_file=(FUNCTIONS / f"{source}.py").read_text(encoding="utf-8")
        ),
        handler="index.handler",
        logging_config=lambda_.CfnFunction.LoggingConfigProperty(log_group=log_group.ref),
        memory_size=256,
        role=role.attr_arn,
        runtime="python3.14",
        timeout=timeout,
    )
    return function, role


def closed_default_security_group(stack: Stack, vpc: ec2.CfnVPC) -> None:
    """A custom resource that empties the VPC's default security group."""
    function, _ = inline_function(
        stack,
        "Close",
        "close_default_security_group",
        120,
        allow(["ec2:DescribeSecurityGroups"], "*"),
        allow(
            ["ec2:RevokeSecurityGroupIngress", "ec2:RevokeSecurityGroupEgress"],
            arn("ec2", f"security-group/{vpc.attr_default_security_group}"),
        ),
    )
    CfnResource(
        stack,
        "CloseRules",
        type="Custom::ClosedDefaultSecurityGroup",
        properties={
            "ServiceToken": function.attr_arn,
            "SecurityGroupId": vpc.attr_default_security_group,
        },
    )


def flow_log(stack: Stack, vpc: ec2.CfnVPC) -> None:
    """Rejected traffic into a log group."""
    log_group = logs.CfnLogGroup(stack, "FlowLogs", retention_in_days=30)
    role = iam.CfnRole(
        stack,
        "FlowRole",
        assume_role_policy_document=assumed_by(
            "vpc-flow-logs.amazonaws.com",
            Condition={
                "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                "ArnLike": {"aws:SourceArn": arn("ec2", "vpc-flow-log/*")},
            },
        ),
        policies=[
            iam.CfnRole.PolicyProperty(
                policy_name="deliver",
                policy_document=document(
                    allow(
                        ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
                        log_group.attr_arn,
                    ),
                    allow(["logs:DescribeLogGroups"], "*"),
                ),
            )
        ],
    )
    ec2.CfnFlowLog(
        stack,
        "FlowLog",
        deliver_logs_permission_arn=role.attr_arn,
        log_destination_type="cloud-watch-logs",
        log_group_name=log_group.ref,
        resource_id=vpc.ref,
        resource_type="VPC",
        traffic_type="REJECT",
    )


def private_link(
    stack: Stack, vpc: ec2.CfnVPC, subnets: list[ec2.CfnSubnet], function: lambda_.CfnFunction
) -> None:
    """The interface endpoint with private DNS, closed until somebody is let in."""
    group = ec2.CfnSecurityGroup(
        stack,
        "LinkSecurityGroup",
        vpc_id=vpc.ref,
        group_description="SageMaker Runtime interface endpoint",
        security_group_egress=[
            ec2.CfnSecurityGroup.EgressProperty(
                cidr_ip="255.255.255.255/32",
                description="Disallow all traffic",
                from_port=252,
                ip_protocol="icmp",
                to_port=86,
            )
        ],
    )
    served = [arn("sagemaker", f"endpoint/{NAME}")]
    before = former(stack, "FormerlyServed", function, Served=served)
    ec2.CfnVPCEndpoint(
        stack,
        "Link",
        vpc_id=vpc.ref,
        vpc_endpoint_type="Interface",
        service_name="com.amazonaws.us-east-1.sagemaker.runtime",
        subnet_ids=[subnet.ref for subnet in subnets],
        security_group_ids=[group.attr_group_id],
        private_dns_enabled=True,
        policy_document=document(
            *(
                allow(
                    ["sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"],
                    resources,
                    Principal={"AWS": "*"},
                    Condition={"StringEquals": {"aws:PrincipalAccount": Aws.ACCOUNT_ID}},
                )
                for resources in (served, named_before(before, "Served"))
            )
        ),
    )


def hosting_policy() -> dict[str, Any]:
    """What the model's role may do whatever the model's version."""
    return document(
        allow(
            [
                "logs:CreateLogGroup",
                "logs:CreateLogStream",
                "logs:DescribeLogStreams",
                "logs:PutLogEvents",
            ],
            arn("logs", "log-group:/aws/sagemaker/Endpoints/*"),
        ),
        allow(["ec2:DeleteNetworkInterfacePermission"], arn("ec2", "network-interface/*")),
        allow(
            [
                "cloudwatch:DescribeAlarms",
                "ec2:DescribeDhcpOptions",
                "ec2:DescribeNetworkInterfaces",
                "ec2:DescribeSecurityGroups",
                "ec2:DescribeSubnets",
                "ec2:DescribeVpcEndpoints",
                "ec2:DescribeVpcs",
                "ecr:GetAuthorizationToken",
            ],
            "*",
        ),
        allow(
            ["cloudwatch:PutMetricData"],
            "*",
            Condition={"StringLike": {"cloudwatch:namespace": "/aws/sagemaker/*"}},
        ),
    )


def version_policy(
    vpc: ec2.CfnVPC, group: ec2.CfnSecurityGroup, subnets: list[ec2.CfnSubnet]
) -> dict[str, Any]:
    """What it may do for this version: the rights go when no fleet of it is left."""
    return document(
        allow(
            ["ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface"],
            arn("ec2", "network-interface/*"),
            Condition={
                "ArnLike": {"ec2:Vpc": f"arn:{Aws.PARTITION}:ec2:{Aws.REGION}:*:vpc/{vpc.ref}"}
            },
        ),
        allow(
            ["ec2:CreateNetworkInterface"],
            [
                arn("ec2", "network-interface/*"),
                arn("ec2", f"security-group/{group.attr_group_id}"),
                *(arn("ec2", f"subnet/{subnet.ref}") for subnet in subnets),
            ],
        ),
        allow(
            ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"],
            arn("ecr", "repository/sentiment"),
        ),
        allow(["s3:GetObject"], f"arn:{Aws.PARTITION}:s3:::models/sentiment/model.tar.gz"),
    )


def drained_interfaces(stack: Stack, group: ec2.CfnSecurityGroup) -> CfnResource:
    """A custom resource that is deleted when SageMaker's network interfaces have gone."""
    function, role = inline_function(
        stack,
        "Drain",
        "wait_for_interfaces",
        900,
        allow(["ec2:DescribeNetworkInterfaces"], "*"),
        allow(["cloudformation:DescribeStacks"], Aws.STACK_ID),
    )
    rights = iam.CfnPolicy(
        stack,
        "DrainPolicy",
        policy_name="DrainPolicy",
        roles=[role.ref],
        policy_document=document(allow(["lambda:InvokeFunction"], function.attr_arn)),
    )
    drain = CfnResource(
        stack,
        "Drain",
        type="Custom::DrainedInterfaces",
        properties={
            "ServiceToken": function.attr_arn,
            "ServiceTimeout": 3600,
            "GroupIds": [group.attr_group_id],
            "OwnGroupIds": [group.attr_group_id],
        },
    )
    drain.add_dependency(rights)
    return drain


def model(
    stack: Stack, vpc: ec2.CfnVPC, subnets: list[ec2.CfnSubnet], reachable: list[CfnResource]
) -> sagemaker.CfnModel:
    """The model in the network's subnets, with a role whose policy exists first."""
    group = ec2.CfnSecurityGroup(
        stack,
        "ModelSecurityGroup",
        vpc_id=vpc.ref,
        group_description="SageMaker model containers: nothing in, HTTPS out",
        security_group_egress=[
            ec2.CfnSecurityGroup.EgressProperty(
                cidr_ip="0.0.0.0/0",
                description="HTTPS, to S3",
                from_port=443,
                ip_protocol="tcp",
                to_port=443,
            )
        ],
    )
    role = iam.CfnRole(
        stack,
        "ModelRole",
        assume_role_policy_document=assumed_by(
            "sagemaker.amazonaws.com",
            Condition={"ArnLike": {"aws:SourceArn": arn("sagemaker", "*")}},
        ),
    )
    policy = iam.CfnPolicy(
        stack,
        "ModelPolicy",
        policy_name="model",
        policy_document=hosting_policy(),
        roles=[role.ref],
    )
    version = iam.CfnPolicy(
        stack,
        "ModelVersionPolicy",
        policy_name="version",
        policy_document=version_policy(vpc, group, subnets),
        roles=[role.ref],
    )
    drain = drained_interfaces(stack, group)
    for needed in [policy, version, *reachable]:
        drain.add_dependency(needed)
    hosted = sagemaker.CfnModel(
        stack,
        "Model",
        enable_network_isolation=False,
        execution_role_arn=role.attr_arn,
        primary_container=sagemaker.CfnModel.ContainerDefinitionProperty(
            environment={"HF_TASK": "text-classification"},
            image="123456789012.dkr.ecr.us-east-1.amazonaws.com/sentiment:1",
            model_data_url="s3://models/sentiment/model.tar.gz",
        ),
        vpc_config=sagemaker.CfnModel.VpcConfigProperty(
            security_group_ids=[group.attr_group_id], subnets=[subnet.ref for subnet in subnets]
        ),
    )
    for needed in [policy, version, drain, *reachable]:
        hosted.add_dependency(needed)
    return hosted


def endpoint(stack: Stack, hosted: sagemaker.CfnModel) -> None:
    """Configuration, endpoint with canary updates, rollback alarms and scaling."""
    configuration = sagemaker.CfnEndpointConfig(
        stack,
        "Configuration",
        production_variants=[
            sagemaker.CfnEndpointConfig.ProductionVariantProperty(
                variant_name=VARIANT,
                model_name=hosted.attr_model_name,
                instance_type="ml.g5.xlarge",
                initial_instance_count=8,
                initial_variant_weight=1,
                routing_config=sagemaker.CfnEndpointConfig.RoutingConfigProperty(
                    routing_strategy="LEAST_OUTSTANDING_REQUESTS"
                ),
            )
        ],
    )
    new_fleet = {"EndpointConfigName": configuration.attr_endpoint_config_name}
    rollback_alarms = [
        metric_alarm(stack, "RollbackLatency", "ModelLatency", "p99", 160_000, new_fleet),
        error_alarm(stack, "RollbackErrors", new_fleet),
    ]
    hosting = sagemaker.CfnEndpoint(
        stack,
        "Endpoint",
        endpoint_name=NAME,
        endpoint_config_name=configuration.attr_endpoint_config_name,
        retain_all_variant_properties=True,
        exclude_retained_variant_properties=[
            sagemaker.CfnEndpoint.VariantPropertyProperty(variant_property_type="DesiredWeight")
        ],
        deployment_config=sagemaker.CfnEndpoint.DeploymentConfigProperty(
            auto_rollback_configuration=sagemaker.CfnEndpoint.AutoRollbackConfigProperty(
                alarms=[
                    sagemaker.CfnEndpoint.AlarmProperty(alarm_name=alarm.ref)
                    for alarm in rollback_alarms
                ]
            ),
            blue_green_update_policy=sagemaker.CfnEndpoint.BlueGreenUpdatePolicyProperty(
                traffic_routing_configuration=sagemaker.CfnEndpoint.TrafficRoutingConfigProperty(
                    type="CANARY",
                    canary_size=sagemaker.CfnEndpoint.CapacitySizeProperty(
                        type="CAPACITY_PERCENT", value=10
                    ),
                    wait_interval_in_seconds=300,
                )
            ),
        ),
    )
    target = autoscaling.CfnScalableTarget(
        stack,
        "ScalableTarget",
        min_capacity=2,
        max_capacity=16,
        resource_id=Fn.join("", ["endpoint/", hosting.attr_endpoint_name, f"/variant/{VARIANT}"]),
        scalable_dimension="sagemaker:variant:DesiredInstanceCount",
        service_namespace="sagemaker",
    )
    policy = autoscaling.CfnScalingPolicy
    policy(
        stack,
        "ScalingPolicy",
        policy_name=f"Invocations-{NAME}-{VARIANT}",
        policy_type="TargetTrackingScaling",
        scaling_target_id=target.ref,
        target_tracking_scaling_policy_configuration=(
            policy.TargetTrackingScalingPolicyConfigurationProperty(
                target_value=7800,
                scale_in_cooldown=300,
                scale_out_cooldown=60,
                predefined_metric_specification=policy.PredefinedMetricSpecificationProperty(
                    predefined_metric_type="SageMakerVariantInvocationsPerInstance"
                ),
            )
        ),
    )
    alarms(stack)
    serving_check(stack, hosting, configuration)


def serving_check(
    stack: Stack, hosting: sagemaker.CfnEndpoint, configuration: sagemaker.CfnEndpointConfig
) -> None:
    """A custom resource that fails when SageMaker serves another configuration."""
    function, role = inline_function(
        stack,
        "Check",
        "check_endpoint",
        300,
        allow(["cloudformation:DescribeStacks"], Aws.STACK_ID),
    )
    rights = iam.CfnPolicy(
        stack,
        "CheckPolicy",
        policy_name="CheckPolicy",
        roles=[role.ref],
        policy_document=document(
            allow(["sagemaker:DescribeEndpoint"], arn("sagemaker", f"endpoint/{NAME}"))
        ),
    )
    check = CfnResource(
        stack,
        "Check",
        type="Custom::EndpointServingCheck",
        properties={
            "ServiceToken": function.attr_arn,
            "ServiceTimeout": 360,
            "EndpointName": hosting.attr_endpoint_name,
            "EndpointConfigName": configuration.attr_endpoint_config_name,
        },
    )
    check.add_dependency(rights)


def main() -> None:
    """Build the app and synthesise it."""
    started = time.perf_counter()
    app = App()
    stack = Stack(app, "Benchmark", env=Environment(account="123456789012", region="us-east-1"))
    function = former_names(stack)
    vpc, subnets, reachable = network(stack, function)
    closed_default_security_group(stack, vpc)
    flow_log(stack, vpc)
    private_link(stack, vpc, subnets, function)
    endpoint(stack, model(stack, vpc, subnets, reachable))
    dashboard(stack)
    built = time.perf_counter()
    app.synth()
    ended = time.perf_counter()
    print(json.dumps({"build": built - started, "synth": ended - built, "peak": peak_megabytes()}))


if __name__ == "__main__":
    main()
