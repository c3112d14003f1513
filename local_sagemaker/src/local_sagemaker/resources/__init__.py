"""The emulated resource types, one module per service."""

from __future__ import annotations

import importlib

MODULES = (
    "application_autoscaling",
    "cloudformation",
    "cloudwatch",
    "containers",
    "custom_resources",
    "ec2_networks",
    "ec2_security_groups",
    "events",
    "iam",
    "kms",
    "lambda_",
    "messaging",
    "route53",
    "s3",
    "sagemaker",
)


def load() -> None:
    """Register every emulated type."""
    for module in MODULES:
        importlib.import_module(f"{__name__}.{module}")
