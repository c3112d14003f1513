"""The bucket that keeps the plans and results of load tests."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ..synthesis.findings import acknowledge
from ..synthesis.safeguards import safeguards_of


def make_results_bucket(scope: Construct, id: str, *, days: int) -> s3.Bucket:
    """Private, encrypted, TLS only; forgets after some days, and outlives the fleet."""
    key = safeguards_of(scope).encryption_key
    bucket = s3.Bucket(
        scope,
        id,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.KMS if key else s3.BucketEncryption.S3_MANAGED,
        encryption_key=key,
        bucket_key_enabled=True if key else None,
        enforce_ssl=True,
        object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
        lifecycle_rules=[
            s3.LifecycleRule(
                id="forget",
                expiration=Duration.days(days),
                abort_incomplete_multipart_upload_after=Duration.days(1),
            )
        ],
        # Results are what the fleet was for: deleting it must not lose them.
        removal_policy=RemovalPolicy.RETAIN,
    )
    acknowledge(
        bucket,
        "AwsSolutions-S1",
        reason="Holds load-test plans and results only; CloudTrail data events record access "
        "where an account wants that.",
    )
    return bucket
