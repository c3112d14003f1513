"""Policies: of IAM's own one at a time, of buckets without their conditions."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from moto.iam import models
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.s3.models import FakeBucket

from .replacing import around

# AWS-managed policies: moto loads all of them or none.
#
# All would cost a second at the first IAM call; none would refuse `AdministratorAccess`, which the
# CDK bootstrap template attaches. So one is loaded when it is asked for.


_PREFIX = ":iam::aws:policy/"


@functools.cache
def _known() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(aws_managed_policies_data)
    return known


@around(models.IAMBackend)
def attach_role_policy(
    original: Callable[..., None], self: Any, policy_arn: str, role_name: str
) -> None:
    """Load an AWS-managed policy before it is attached."""
    name = policy_arn.rpartition("/")[2]
    if _PREFIX in policy_arn and policy_arn not in self.managed_policies and name in _known():
        policy = models.AWSManagedPolicy.from_data(
            name, self.account_id, self.region_name, _known()[name]
        )
        self.managed_policies[policy.arn] = policy
    original(self, policy_arn, role_name)


# Bucket policies: moto enforces a Deny but ignores its Condition.
#
# CDK's `enforce_ssl` denies everything when `aws:SecureTransport` is false; moto would then refuse
# every upload. A statement with a Condition is kept and readable, but not enforced.


@around(FakeBucket)
def get_permission(original: Callable[..., Any], self: Any, action: str, resource: str) -> Any:
    """Judge only by the statements that have no Condition."""
    if self.policy is None:
        return original(self, action, resource)
    document = json.loads(self.policy)
    statements = document["Statement"]
    statements = statements if isinstance(statements, list) else [statements]
    document["Statement"] = [s for s in statements if not s.get("Condition")]
    # A stand-in with the same verdict, so that the stored policy is never touched.
    stand_in = object.__new__(FakeBucket)
    stand_in.policy = json.dumps(document).encode() if document["Statement"] else None
    return original(stand_in, action, resource)
