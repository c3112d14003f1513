"""ARNs and S3 URIs, which may have CDK's tokens in them, and what CDK makes of an ARN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constructs import Construct, IConstruct

from .annotations import warn
from .launched_names import LaunchedName
from .rights import Own, literal
from .template_values import is_token, masked, pseudo_parameters

if TYPE_CHECKING:
    from aws_cdk import aws_iam as iam
    from aws_cdk import aws_kms as kms


def arn(service: str, resource: str) -> str:
    """ARN of a resource in the stack's own partition, region and account."""
    return Own(*pseudo_parameters()).arn(service, resource)


def endpoint_arn(construct: IConstruct, name: str) -> str:
    """ARN of an endpoint of this account and Region, in lower case as all of them are."""
    text, restored = masked(name)
    if is_token(name) and not isinstance(name, LaunchedName):
        warn(
            construct,
            "endpointNameInLowerCase",
            "An endpoint's name is known only at deployment, and the policy contains it "
            "unchanged. ARNs of endpoints are in lower case: if the name has upper case, "
            "calls are refused.",
        )
    return arn("sagemaker", f"endpoint/{restored(text.lower())}")


def split_s3_uri(uri: str) -> tuple[str, str] | None:
    """Bucket and key of an ``s3://`` URI, which may have tokens; else ``None``."""
    text, restored = masked(uri)
    if not text.startswith("s3://"):
        return None
    bucket, _, key = text.removeprefix("s3://").partition("/")
    return restored(bucket), restored(key)


def bucket_arn(name: str) -> str:
    """ARN of a bucket, in whatever account."""
    return f"arn:{pseudo_parameters()[0]}:s3:::{name}"


def written_objects(uri: str) -> str | None:
    """ARN of the objects below a destination; None where the URI does not say its bucket."""
    location = split_s3_uri(uri)
    if location is None:
        return None
    bucket, prefix = location
    return f"{bucket_arn(bucket)}/{literal(prefix.rstrip('/'))}{'/' if prefix else ''}*"


def key_by_arn(scope: Construct, id: str, arn: str | None) -> kms.IKey | None:
    """The key, if one is named."""
    from aws_cdk import aws_kms as kms  # a container, which reads S3 URIs, needs none

    return kms.Key.from_key_arn(scope, id, arn) if arn else None


def role_by_arn(scope: Construct, id: str, arn: str | None) -> iam.IRole | None:
    """The role, if one is named."""
    from aws_cdk import aws_iam as iam

    return iam.Role.from_role_arn(scope, id, arn) if arn else None
