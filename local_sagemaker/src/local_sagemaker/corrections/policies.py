"""IAM, STS, S3 and EC2: roles, sessions and policy documents that moto takes and AWS refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flask import request
from moto.ec2.exceptions import EC2ClientError
from moto.iam.exceptions import EntityAlreadyExists, MalformedPolicyDocument
from moto.iam.models import IAMBackend
from moto.iam.policy_validation import BaseIAMPolicyValidator
from moto.s3.exceptions import S3ClientError
from moto.s3.models import S3Backend
from moto.sts.exceptions import STSValidationError
from moto.sts.models import STSBackend

from ..admission import access_key
from ..permissions.documents import (
    incomplete_arns,
    misplaced_variables,
    problems_of_endpoint_policy,
)
from ..permissions.principals import longest_session, session_of
from .public_buckets import check_policy
from .replacing import around


@around(BaseIAMPolicyValidator)
def validate(original: Callable[..., Any], self: Any) -> None:
    """Also refuse variables in the first five fields of an ARN."""
    original(self)
    if misplaced_variables(self._policy_json):
        raise MalformedPolicyDocument("The policy failed legacy parsing")


@around(IAMBackend)
def create_role(
    original: Callable[..., Any], self: Any, role_name: str, *given: Any, **more: Any
) -> Any:
    """Refuse a name that differs from another role's by case alone: API reference, CreateRole."""
    if role_name.lower() in {role.name.lower() for role in self.get_roles()}:
        raise EntityAlreadyExists(f"Role with name {role_name} already exists.")
    return original(self, role_name, *given, **more)


@around(STSBackend)
def assume_role(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse what a session's policy may not have and an identity's may, and a session too long."""
    try:
        document = json.loads(named.get("policy") or "{}")
    except ValueError:
        raise MalformedPolicyDocument("This policy contains invalid Json") from None
    for arn in incomplete_arns(document):
        raise MalformedPolicyDocument(f'Resource {arn} must be in ARN format or "*".')
    _check_duration(int(named.get("duration") or 0), named["role_arn"])
    return original(self, *given, **named)


_CHAINED = 3600
"""Seconds; source: STS API reference, AssumeRole, DurationSeconds, as the other limit here."""


def _check_duration(seconds: int, role_arn: str) -> None:
    """Refuse a session that is longer than the role has it, or than a chained one is."""
    longest = longest_session(role_arn)
    if seconds > longest:
        raise STSValidationError(
            "The requested DurationSeconds exceeds the MaxSessionDuration set for this role."
        )
    if seconds > _CHAINED and _is_session():
        raise STSValidationError(
            "The requested DurationSeconds exceeds the 1 hour session limit for roles assumed by "
            "role chaining"
        )


def _is_session() -> bool:
    """Whether the request is signed with the credentials of a role's session."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    key = access_key(request.full_path, headers)
    return key is not None and session_of(key) is not None


@around(S3Backend)
def put_bucket_policy(original: Callable[..., Any], self: Any, name: str, policy: Any) -> Any:
    """Refuse resources that are no ARNs, in the words that S3 was seen to use."""
    try:
        document = json.loads(policy)
    except ValueError:
        words = "Policies must be valid JSON and the first byte must be '{'"
        raise S3ClientError("MalformedPolicy", words) from None
    if incomplete_arns(document):
        raise S3ClientError("MalformedPolicy", "Policy has invalid resource")
    check_policy(self.get_bucket(name), document)
    return original(self, name, policy)


def check_endpoint_policy(text: str | None) -> None:
    """Refuse what EC2 does not take as the policy of a VPC endpoint."""
    problem = next(problems_of_endpoint_policy(text), "") if text else ""
    if problem:
        words = f"The Policy Document is not valid. {problem}"
        raise EC2ClientError("InvalidPolicyDocument", words)
