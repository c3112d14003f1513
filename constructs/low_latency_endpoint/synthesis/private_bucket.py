"""The buckets that the constructs make: private, encrypted, over TLS alone."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ..options.safeguards import Safeguards
from .findings import acknowledge
from .safeguards import safeguards_of


def private_bucket(
    scope: Construct,
    id: str,
    *,
    holds: str,
    lifecycle_rules: Sequence[s3.LifecycleRule],
    removal_policy: RemovalPolicy,
    safeguards: Safeguards | None = None,
) -> s3.Bucket:
    """Make a bucket with the safeguards' key; ``holds`` says why access is not logged."""
    key = (safeguards or safeguards_of(scope)).encryption_key
    bucket = s3.Bucket(
        scope,
        id,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=key,
        bucket_key_enabled=True if key else None,
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=list(lifecycle_rules),
        removal_policy=removal_policy,
    )
    acknowledge(
        bucket,
        "AwsSolutions-S1",
        reason=f"Holds {holds}; CloudTrail data events record access where an account wants that.",
    )
    return bucket
