"""S3: moto's new buckets are open to public policies and ACLs; AWS's have been closed since April 2023.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/create-bucket-faq.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from flask import has_request_context, request
from moto.s3.exceptions import S3ClientError
from moto.s3.models import FakeBucket, PublicAccessBlock, S3Backend
from moto.s3.responses import S3Response

from ..permissions.evaluator import as_texts
from .replacing import around

_NARROWING = {
    *("aws:sourceip", "aws:sourcearn", "aws:sourcevpc", "aws:sourcevpce", "aws:sourceowner"),
    *("aws:sourceaccount", "aws:userid", "aws:principalorgid", "aws:principalaccount"),
    *("aws:principalarn", "aws:principalorgpaths", "s3:dataaccesspointarn"),
    *("s3:dataaccesspointaccount", "s3:x-amz-server-side-encryption-aws-kms-key-id"),
}
"""Keys with fixed values that keep a statement from being public.

https://docs.aws.amazon.com/AmazonS3/latest/userguide/access-control-block-public-access.html, "The meaning of public"
"""
_ENFORCED = "BucketOwnerEnforced"
_PUBLIC = {"public-read", "public-read-write", "authenticated-read"}
_OF_THE_OWNER = {"", "private", "bucket-owner-full-control"}
"""https://docs.aws.amazon.com/AmazonS3/latest/userguide/about-object-ownership.html; of a bucket, private is not said."""


@around(FakeBucket, "__init__")
def close(original: Callable[..., None], self: Any, *given: Any, **named: Any) -> None:
    """Close what is new."""
    original(self, *given, **named)
    self.public_access_block = PublicAccessBlock(True, True, True, True)
    self.ownership_rule = _ENFORCED


def check_policy(bucket: Any, document: Mapping[str, Any]) -> None:
    """Refuse a public policy while BlockPublicPolicy is on."""
    block = bucket.public_access_block
    if block and block.block_public_policy and any(_public_statements(document)):
        raise S3ClientError(
            "AccessDenied",
            "User is not authorized to perform: s3:PutBucketPolicy on resource: "
            f'"arn:aws:s3:::{bucket.name}" because public policies are prevented by the '
            "BlockPublicPolicy setting in S3 Block Public Access.",
        )


def _public_statements(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    statements = document.get("Statement", [])
    for statement in statements if isinstance(statements, list) else [statements]:
        principal = statement.get("Principal")
        named = principal.get("AWS", []) if isinstance(principal, Mapping) else principal or []
        if statement.get("Effect") == "Allow" and "*" in as_texts(named) and not _narrow(statement):
            yield statement


def _narrow(statement: Mapping[str, Any]) -> bool:
    """Whether a condition says by a fixed value who it is."""
    condition = statement.get("Condition") or {}
    blocks = [block for operator, block in condition.items() if "Not" not in operator]
    pairs = [pair for block in blocks for pair in block.items()]
    return any(
        key.lower() in _NARROWING and not re.search(r"[*?]|\$\{", " ".join(as_texts(values)))
        for key, values in pairs
    )


@around(S3Backend)
def create_bucket(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse an ACL for a bucket whose owner owns every object."""
    headers: Any = request.headers if has_request_context() else {}
    if headers.get("x-amz-object-ownership", _ENFORCED) == _ENFORCED and _states_acl(headers):
        raise S3ClientError(
            "InvalidBucketAclWithObjectOwnership",
            "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
        )
    return original(self, *given, **named)


@around(S3Response)
def _acl_from_headers(original: Callable[..., Any], self: Any, headers: Any) -> Any:
    """Refuse ACLs where there are none, and public ones while BlockPublicAcls is on."""
    bucket = self.backend.buckets.get(self.bucket_name)
    if bucket and bucket.ownership_rule == _ENFORCED and _states_acl(headers):
        raise S3ClientError("AccessControlListNotSupported", "The bucket does not allow ACLs")
    block = bucket and bucket.public_access_block
    if block and block.block_public_acls and headers.get("x-amz-acl", "") in _PUBLIC:
        raise S3ClientError("AccessDenied", "Access Denied")
    return original(self, headers)


def _states_acl(headers: Any) -> bool:
    grants = any(name.lower().startswith("x-amz-grant-") for name, _ in headers.items())
    return grants or headers.get("x-amz-acl", "") not in _OF_THE_OWNER
