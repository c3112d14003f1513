"""What a model's role must be allowed, with CDK's tokens and keys; the rules are the plan's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aws_cdk import Aws

from ..plan import model_rights
from ..plan.model_rights import Own, pulling, reading
from .findings import pseudo_parameters
from .token_text import masked

if TYPE_CHECKING:
    from aws_cdk import aws_kms as kms

__all__ = [
    "bucket_arn",
    "decrypting",
    "encrypting_volumes",
    "hosting",
    "making_interfaces",
    "pulling",
    "reading",
    "split_s3_uri",
    "writing_with",
    "written_objects",
]


def _own() -> Own:
    return Own(*pseudo_parameters())


def hosting() -> list[dict[str, Any]]:
    """What hosting needs in a VPC, whatever the version of the model."""
    return model_rights.hosting(_own())


def making_interfaces(
    vpc_id: str, subnet_ids: Sequence[str], group_ids: Sequence[str]
) -> list[dict[str, Any]]:
    """Make network interfaces in these subnets with these groups, and delete those of the VPC."""
    return model_rights.making_interfaces(_own(), vpc_id, subnet_ids, group_ids)


def split_s3_uri(uri: str) -> tuple[str, str] | None:
    """Bucket and key of an ``s3://`` URI, either of which may have tokens in it.

    None for another scheme, and for a URI that is known at deployment only.

    Examples
    --------
    >>> split_s3_uri("s3://models/llama/"), split_s3_uri("https://models.s3.amazonaws.com/a")
    (('models', 'llama/'), None)
    """
    text, restored = masked(uri)
    if not text.startswith("s3://"):
        return None
    bucket, _, key = text.removeprefix("s3://").partition("/")
    return restored(bucket), restored(key)


def bucket_arn(name: str) -> str:
    """ARN of a bucket, in whatever account."""
    return f"arn:{Aws.PARTITION}:s3:::{name}"


def written_objects(uri: str) -> str | None:
    """ARN of the objects below a destination; None where the URI does not say its bucket."""
    location = split_s3_uri(uri)
    if location is None:
        return None
    bucket, prefix = location
    return f"{bucket_arn(bucket)}/{prefix.rstrip('/')}{'/' if prefix else ''}*"


def decrypting(key: kms.IKey) -> dict[str, Any]:
    """Read what a key has encrypted."""
    return model_rights.decrypting(key.key_arn)


def writing_with(key: kms.IKey) -> dict[str, Any]:
    """Write objects that a key encrypts."""
    return model_rights.writing_with(key.key_arn)


def encrypting_volumes(key: kms.IKey) -> list[dict[str, Any]]:
    """Have the instances' volumes encrypted."""
    return model_rights.encrypting_volumes(key.key_arn)
