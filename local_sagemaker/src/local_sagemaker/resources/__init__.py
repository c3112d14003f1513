"""The emulated resource types, one module per service."""

from __future__ import annotations

import importlib

MODULES = (
    "application_autoscaling",
    "cdk",
    "cloudwatch",
    "custom",
    "ec2_endpoints",
    "ec2_gateways",
    "ec2_networks",
    "ec2_security_groups",
    "ecr",
    "ecs",
    "events",
    "iam",
    "kms",
    "lambda_",
    "logs",
    "nested_stacks",
    "route53",
    "s3",
    "sagemaker",
    "scheduler",
    "sns",
    "sqs",
    "ssm",
)


def load() -> None:
    """Register every emulated type."""
    for module in MODULES:
        importlib.import_module(f"{__name__}.{module}")
