"""What callers need, as SSM parameters."""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_ssm as ssm
from constructs import Construct


def publish(scope: Construct, prefix: str, values: Mapping[str, str]) -> None:
    """Make a parameter of each value, named by the prefix and its key."""
    for key, value in values.items():
        ssm.CfnParameter(
            scope,
            key.replace("/", "-"),
            type="String",
            name=f"{prefix}/{key}",
            value=value,
            description="Of a low-latency SageMaker endpoint, for its callers",
        )
