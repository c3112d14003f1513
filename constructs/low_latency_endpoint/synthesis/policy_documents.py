"""Policy documents as plain data: one call into jsii instead of one for each statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .arns import arn
from .template_values import pseudo_parameters


def trust(service: str, source: Mapping[str, Mapping[str, str]] | None = None) -> dict[str, Any]:
    """Trust policy that lets one AWS service assume a role."""
    statement: dict[str, Any] = {
        "Effect": "Allow",
        "Principal": {"Service": service},
        "Action": "sts:AssumeRole",
    }
    if source:
        statement["Condition"] = {name: dict(keys) for name, keys in source.items()}
    return {"Version": "2012-10-17", "Statement": [statement]}


def for_hosting() -> dict[str, dict[str, str]]:
    """SageMaker assumes the role for this account and Region; the asterisk is what it sends."""
    # "SageMaker AI Inference" of
    # https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html
    return {"ArnLike": {"aws:SourceArn": arn("sagemaker", "*")}}


def for_flow_logs() -> dict[str, dict[str, str]]:
    """For this account's flow logs; the ID of one is known only afterwards."""
    # https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-iam-role.html
    return _of_account(arn("ec2", "vpc-flow-log/*"))


def for_tasks() -> dict[str, dict[str, str]]:
    """For tasks of this account."""
    # https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html
    return _of_account(arn("ecs", "*"))


def _of_account(source_arn: str) -> dict[str, dict[str, str]]:
    return {
        "StringEquals": {"aws:SourceAccount": pseudo_parameters()[2]},
        "ArnLike": {"aws:SourceArn": source_arn},
    }
