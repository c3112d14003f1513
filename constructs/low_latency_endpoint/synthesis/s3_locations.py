"""URIs and ARNs of S3, which may have CDK's tokens in them."""

from __future__ import annotations

from .findings import pseudo_parameters
from .token_text import masked


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
    return f"{bucket_arn(bucket)}/{prefix.rstrip('/')}{'/' if prefix else ''}*"
