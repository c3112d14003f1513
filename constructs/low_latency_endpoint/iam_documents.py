"""Policy documents as plain data: one call into jsii instead of one per statement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from aws_cdk import Aws

__all__ = ["allow", "arn", "document", "trust"]


def arn(service: str, resource: str) -> str:
    """ARN of a resource in the stack's own partition, region and account."""
    return f"{_own(service)}:{resource}"


@cache
def _own(service: str) -> str:
    """The beginning of such ARNs; the pseudo parameters are the same tokens in every stack."""
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}"


def allow(actions: Sequence[str], resources: str | Sequence[str], *, principal: Any = None,
          condition: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """One Allow statement."""
    statement: dict[str, Any] = {"Effect": "Allow"}
    if principal is not None:
        statement["Principal"] = principal
    statement["Action"] = list(actions)
    statement["Resource"] = resources if isinstance(resources, str) else list(resources)
    if condition:
        statement["Condition"] = dict(condition)
    return statement


def document(*statements: Mapping[str, Any]) -> dict[str, Any]:
    """A policy document."""
    return {"Version": "2012-10-17", "Statement": [dict(statement) for statement in statements]}


def trust(service: str) -> dict[str, Any]:
    """Trust policy that lets one AWS service assume a role."""
    return {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
        ],
    }
