"""IAM, STS, S3 and EC2: roles, sessions and policy documents that moto takes and AWS refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from flask import request
from moto.ec2.exceptions import EC2ClientError
from moto.iam.exceptions import (
    DeleteConflictException,
    EntityAlreadyExists,
    LimitExceededException,
    MalformedPolicyDocument,
)
from moto.iam.models import IAMBackend
from moto.iam.policy_validation import (
    BaseIAMPolicyValidator,
    IAMPolicyDocumentValidator,
    IAMTrustPolicyDocumentValidator,
)
from moto.s3.exceptions import S3ClientError
from moto.s3.models import S3Backend
from moto.sts.exceptions import STSValidationError
from moto.sts.models import STSBackend

from ..admission import access_key
from ..permissions.documents import (
    aws_principals,
    incomplete_arns,
    misplaced_variables,
    names_principal,
    problems_of_endpoint_policy,
    problems_of_trust_policy,
    size_of,
)
from ..permissions.principals import longest_session, principal_exists, session_of
from .public_buckets import check_policy
from .replacing import around


@around(BaseIAMPolicyValidator)
def validate(original: Callable[..., Any], self: Any) -> None:
    """Also refuse variables in the first five fields of an ARN."""
    original(self)
    if misplaced_variables(self._policy_json):
        raise MalformedPolicyDocument("The policy failed legacy parsing")


@around(BaseIAMPolicyValidator, "_validate_condition_syntax")
def conditions(original: Callable[..., None], statement: dict[str, Any]) -> None:
    """Take a number as a condition's value: IAM user guide, "Grammar of the IAM JSON policy language"."""
    original(json.loads(json.dumps(statement), parse_int=str, parse_float=str))


@around(IAMTrustPolicyDocumentValidator, "_validate_version")
def version_of_trust(original: Callable[..., None], self: Any) -> None:
    """Take a trust policy of either version: IAM user guide, "IAM JSON policy elements: Version"."""


_SIZE_OF_TRUST, _SIZE_OF_MANAGED = 2_048, 6_144
_SIZE_OF_INLINE = {"role": 10_240, "user": 2_048, "group": 5_120}
"""Characters, those of inline policies in total.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_iam-quotas.html
"""


@around(IAMTrustPolicyDocumentValidator, "validate")
def validate_trust(original: Callable[..., None], self: Any) -> None:
    """Judge a trust policy, of whose principals moto says nothing."""
    BaseIAMPolicyValidator.validate(self)
    for problem in problems_of_trust_policy(self._policy_json):
        raise MalformedPolicyDocument(problem)
    for name in aws_principals(self._policy_json):
        if not principal_exists(name):
            raise MalformedPolicyDocument(f'Invalid principal in policy: "AWS":"{name}"')
    if size_of(self._policy_document) > _SIZE_OF_TRUST:
        raise LimitExceededException(f"Cannot exceed quota for ACLSizePerRole: {_SIZE_OF_TRUST}")


@around(IAMBackend)
def create_role(
    original: Callable[..., Any],
    self: Any,
    role_name: str,
    assume_role_policy_document: str,
    *given: Any,
    **more: Any,
) -> Any:
    """Refuse a name that differs from another role's by case alone: API reference, CreateRole."""
    if role_name.lower() in {role.name.lower() for role in self.get_roles()}:
        raise EntityAlreadyExists(f"Role with name {role_name} already exists.")
    IAMTrustPolicyDocumentValidator(assume_role_policy_document).validate()
    return original(self, role_name, assume_role_policy_document, *given, **more)


@around(IAMBackend, "put_role_policy", "put_user_policy", "put_group_policy")
def put_policy(
    original: Callable[..., Any], self: Any, name: str, policy_name: str, policy_json: str
) -> Any:
    """Refuse what is no identity's policy, or makes the inline policies of one too large."""
    _check_identity_policy(policy_json)
    kind = original.__name__.split("_")[1]
    texts = {**getattr(self, f"get_{kind}")(name).policies, policy_name: policy_json}
    largest = _SIZE_OF_INLINE[kind]
    if sum(map(size_of, texts.values())) > largest:
        raise LimitExceededException(
            f"Maximum policy size of {largest} bytes exceeded for {kind} {name}"
        )
    return original(self, name, policy_name, policy_json)


@around(IAMBackend)
def create_policy(
    original: Callable[..., Any], self: Any, description: str, path: str, document: str, *rest: Any
) -> Any:
    """Look at a new policy first."""
    _check_managed_policy(document)
    return original(self, description, path, document, *rest)


@around(IAMBackend)
def create_policy_version(
    original: Callable[..., Any], self: Any, policy_arn: str, document: str, *rest: Any
) -> Any:
    """Look at a new version first."""
    _check_managed_policy(document)
    return original(self, policy_arn, document, *rest)


def _check_managed_policy(text: str) -> None:
    _check_identity_policy(text)
    if size_of(text) > _SIZE_OF_MANAGED:
        raise LimitExceededException(f"Cannot exceed quota for PolicySize: {_SIZE_OF_MANAGED}")


def _check_identity_policy(text: str) -> None:
    """Refuse a principal; the words: https://github.com/hashicorp/terraform-provider-aws/issues/10419."""
    validator = IAMPolicyDocumentValidator(text)
    validator.validate()
    if names_principal(validator._policy_json):
        raise MalformedPolicyDocument("Policy document should not specify a principal.")


@around(IAMBackend)
def delete_policy(original: Callable[..., Any], self: Any, policy_arn: str) -> Any:
    """Refuse while somebody has the policy: API reference, DeletePolicy.

    A boundary keeps it too: https://github.com/gruntwork-io/cloud-nuke/issues/972.
    """
    roles = [*self.roles.values()]
    holders = (*roles, *self.users.values(), *self.groups.values())
    boundaries = {role.permissions_boundary_arn for role in roles}
    if policy_arn in boundaries or any(policy_arn in one.managed_policies for one in holders):
        raise DeleteConflictException("Cannot delete a policy attached to entities.")
    return original(self, policy_arn)


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
