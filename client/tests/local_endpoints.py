"""Endpoints in a local AWS for the clients to call."""

from __future__ import annotations

import itertools
import json
from contextlib import suppress
from datetime import timedelta
from typing import Any

from botocore.exceptions import ClientError

from local_sagemaker import LocalAws

_IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/model:1"
_TRUST = {"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}}
_RIGHTS = {
    "Effect": "Allow",
    "Action": [
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:GetAuthorizationToken",
        "ecr:GetDownloadUrlForLayer",
        "logs:CreateLogGroup",
        "logs:CreateLogStream",
        "logs:DescribeLogStreams",
        "logs:PutLogEvents",
    ],
    "Resource": "*",
}
_numbers = itertools.count(1)


def create_endpoint(aws: LocalAws, name: str = "", **variant: Any) -> str:
    """Create an endpoint with one variant and return its name once it is in service."""
    sagemaker = aws.client("sagemaker")
    name = name or f"clients-{next(_numbers)}"
    sagemaker.create_model(
        ModelName=name, ExecutionRoleArn=_role(aws), PrimaryContainer={"Image": _IMAGE}
    )
    primary = {
        "VariantName": "primary",
        "ModelName": name,
        "InstanceType": "ml.c7i.xlarge",
        "InitialInstanceCount": 1,
        **variant,
    }
    sagemaker.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[primary],
        MetricsConfig={"EnableEnhancedMetrics": True},
    )
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=name, WaiterConfig={"Delay": 0.05, "MaxAttempts": 600}
    )
    return name


def requests_by_instance(aws: LocalAws, endpoint: str) -> list[float]:
    """Return how many requests each instance of an endpoint answered, in ascending order."""
    aws.flush_metrics()
    cloudwatch = aws.client("cloudwatch")
    metrics = cloudwatch.list_metrics(
        Namespace="AWS/SageMaker",
        MetricName="Invocations",
        Dimensions=[{"Name": "EndpointName", "Value": endpoint}, {"Name": "InstanceId"}],
    )["Metrics"]
    now = aws.runtime_time()
    counts = []
    for metric in metrics:
        points = cloudwatch.get_metric_statistics(
            **metric,
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(hours=1),
            Period=60,
            Statistics=["Sum"],
        )["Datapoints"]
        counts.append(sum(point["Sum"] for point in points))
    return sorted(counts)


def _role(aws: LocalAws) -> str:
    """Return the ARN of a role that hosts any model here."""
    iam = aws.client("iam")
    trust = {"Version": "2012-10-17", "Statement": [{**_TRUST, "Action": "sts:AssumeRole"}]}
    with suppress(ClientError):  # an earlier endpoint made it
        iam.create_role(RoleName="models", AssumeRolePolicyDocument=json.dumps(trust))
    rights = {"Version": "2012-10-17", "Statement": [_RIGHTS]}
    iam.put_role_policy(RoleName="models", PolicyName="rights", PolicyDocument=json.dumps(rights))
    return f"arn:aws:iam::{aws.account}:role/models"
