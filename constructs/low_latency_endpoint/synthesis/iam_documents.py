"""Policy documents as plain data: one call into jsii instead of one per statement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from constructs import IConstruct

from ..plan.rights import allow, document
from .findings import pseudo_parameters, warn
from .token_text import masked
from .validation import is_token

__all__ = [
    "allow",
    "arn",
    "document",
    "endpoint_arn",
    "for_flow_logs",
    "for_hosting",
    "for_tasks",
    "least_length",
    "trust",
]


def arn(service: str, resource: str) -> str:
    """ARN of a resource in the stack's own partition, region and account."""
    return f"{_own(service)}:{resource}"


def _own(service: str) -> str:
    """The beginning of such ARNs."""
    partition, region, account = pseudo_parameters()
    return f"arn:{partition}:{service}:{region}:{account}"


def endpoint_arn(construct: IConstruct, name: str) -> str:
    """ARN of an endpoint of this account and region, by its name, for a policy of ``construct``.

    ARNs of endpoints are in lower case, whatever the case of the name. What a token will say
    cannot be put in lower case: it stays as it is, and the construct warns.
    """
    text, restored = masked(name)
    if is_token(name):
        warn(
            construct,
            "endpointNameInLowerCase",
            "An endpoint's name is known at deployment only and stands in a policy as given. ARNs "
            "of endpoints are in lower case, so the name has to be: with upper case in it, calls "
            "are refused.",
        )
    return arn("sagemaker", f"endpoint/{restored(text.lower())}")


def least_length(policy: Mapping[str, Any], region: str) -> int:
    """Characters that a policy has at least, whatever its tokens will say."""
    known = ("aws", "us-east-1" if is_token(region) else region, "123456789012")  # none is shorter
    text = json.dumps(policy, separators=(",", ":"))
    for token, value in zip(pseudo_parameters(), known, strict=True):
        text = text.replace(token, value)
    return len(masked(text)[0])


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
    """SageMaker assumes the role for this account and Region; the asterisk is what it sends.

    See "SageMaker AI Inference" of
    https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html
    """
    return {"ArnLike": {"aws:SourceArn": arn("sagemaker", "*")}}


def for_flow_logs() -> dict[str, dict[str, str]]:
    """For this account's flow logs; the ID of one is known only afterwards.

    See https://docs.aws.amazon.com/vpc/latest/userguide/flow-logs-iam-role.html
    """
    return _of_account(arn("ec2", "vpc-flow-log/*"))


def for_tasks() -> dict[str, dict[str, str]]:
    """For tasks of this account.

    See https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-iam-roles.html
    """
    return _of_account(arn("ecs", "*"))


def _of_account(source_arn: str) -> dict[str, dict[str, str]]:
    return {
        "StringEquals": {"aws:SourceAccount": pseudo_parameters()[2]},
        "ArnLike": {"aws:SourceArn": source_arn},
    }
