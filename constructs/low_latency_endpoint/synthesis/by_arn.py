"""What a settings file names by its ARN, as the CDK's interfaces."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct


def key_by_arn(scope: Construct, id: str, arn: str | None) -> kms.IKey | None:
    """The key, if one is named."""
    return kms.Key.from_key_arn(scope, id, arn) if arn else None


def role_by_arn(scope: Construct, id: str, arn: str | None) -> iam.IRole | None:
    """The role, if one is named."""
    return iam.Role.from_role_arn(scope, id, arn) if arn else None
