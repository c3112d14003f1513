"""The bucket that keeps the plans and results of load tests."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from ..synthesis.private_bucket import private_bucket


def make_results_bucket(scope: Construct, id: str, *, days: int) -> s3.Bucket:
    """Private, encrypted, TLS only; forgets after some days, and outlives the fleet."""
    return private_bucket(
        scope,
        id,
        holds="load-test plans and results only",
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
