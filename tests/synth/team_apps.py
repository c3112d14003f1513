"""Apps of other teams around the pattern, and what is in their templates."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
from aws_cdk import Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_lambda as lambda_
from aws_cdk.assertions import Template
from constructs import Construct

from low_latency_endpoint import (
    ClientZones,
    Container,
    LatencyTarget,
    LowLatencyEndpoint,
    MeasuredThroughput,
    WarmUpOptions,
    WarmUpPayload,
)

A, B = "us-east-1a", "us-east-1b"
ACCOUNT, OTHER = "123456789012", "210987654321"
HERE = cdk.Environment(account=ACCOUNT, region="us-east-1")
SUBNETS = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
INGRESS = "AWS::EC2::SecurityGroupIngress"
WARMED = WarmUpOptions(payload=WarmUpPayload(data={"inputs": "warm"}))


def an_app(**context: Any) -> cdk.App:
    return cdk.App(analytics_reporting=False, context=context)


def stack_of(scope: Construct, name: str, env: cdk.Environment | None = HERE) -> cdk.Stack:
    return cdk.Stack(scope, name, env=env)


def arguments(**given: Any) -> dict[str, Any]:
    """What a team writes: in a new VPC by zone IDs, in a VPC that exists by names."""
    if "network" not in given:
        zones = ClientZones.of_names(A, B) if "vpc" in given else ["use1-az1", "use1-az2"]
        given.setdefault("client_zones", zones)
    return {
        "containers": [
            Container.from_dlc(
                "huggingface-pytorch-inference", "2.6.0-transformers4.51.3-cpu-py312-ubuntu22.04"
            )
        ],
        "instance_type": "ml.m5.xlarge",
        "latency": LatencyTarget(p99=Duration.millis(200)),
        "throughput": MeasuredThroughput(peak_tps=100, tps_per_instance=50),
        **given,
    }


def serve(scope: Construct, id: str = "Sentiment", **given: Any) -> LowLatencyEndpoint:
    return LowLatencyEndpoint(scope, id, **arguments(**given))


def vpc_in(stack: Construct) -> ec2.Vpc:
    return ec2.Vpc(stack, "Vpc", availability_zones=[A, B])


def resources(stack: cdk.Stack, kind: str = "") -> dict[str, dict[str, Any]]:
    made = Template.from_stack(stack).to_json().get("Resources", {})
    return {name: each for name, each in made.items() if each["Type"] == kind or not kind}


def only(stack: cdk.Stack, kind: str) -> dict[str, Any]:
    (found,) = resources(stack, kind).values()
    return found["Properties"]


def a_function(stack: Construct, vpc: ec2.IVpc | None = None, **environment: str) -> Any:
    return lambda_.Function(
        stack,
        "Function",
        vpc=vpc,
        runtime=lambda_.Runtime.PYTHON_3_13,
        handler="index.handler",
        code=lambda_.Code.from_inline("def handler(event, context): ..."),
        environment=environment,
    )
