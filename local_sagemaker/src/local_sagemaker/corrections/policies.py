"""IAM, STS, S3 and EC2: policy documents that moto takes and AWS refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from moto.ec2.exceptions import EC2ClientError
from moto.iam.exceptions import MalformedPolicyDocument
from moto.iam.policy_validation import BaseIAMPolicyValidator
from moto.s3.exceptions import S3ClientError
from moto.s3.models import S3Backend
from moto.sts.models import STSBackend

from ..permissions.documents import (
    incomplete_arns,
    misplaced_variables,
    problems_of_endpoint_policy,
)
from .replacing import around


@around(BaseIAMPolicyValidator)
def validate(original: Callable[..., Any], self: Any) -> None:
    """Also refuse variables in the first five fields of an ARN."""
    original(self)
    if misplaced_variables(self._policy_json):
        raise MalformedPolicyDocument("The policy failed legacy parsing")


@around(STSBackend)
def assume_role(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse what a session's policy may not have and an identity's may."""
    try:
        document = json.loads(named.get("policy") or "{}")
    except ValueError:
        raise MalformedPolicyDocument("This policy contains invalid Json") from None
    for arn in incomplete_arns(document):
        raise MalformedPolicyDocument(f'Resource {arn} must be in ARN format or "*".')
    return original(self, *given, **named)


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
    return original(self, name, policy)


def check_endpoint_policy(text: str | None) -> None:
    """Refuse what EC2 does not take as the policy of a VPC endpoint."""
    problem = next(problems_of_endpoint_policy(text), "") if text else ""
    if problem:
        words = f"The Policy Document is not valid. {problem}"
        raise EC2ClientError("InvalidPolicyDocument", words)
