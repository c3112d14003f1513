"""Policies: of IAM's own one at a time, of buckets without their conditions."""

from __future__ import annotations

import functools
import json
from typing import Any

from moto.iam import models
from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.s3.models import FakeBucket

# AWS-managed policies: moto loads all of them or none.
#
# All would cost a second at the first IAM call; none would refuse `AdministratorAccess`, which the
# CDK bootstrap template attaches. So one is loaded when it is asked for.


_PREFIX = ":iam::aws:policy/"


@functools.cache
def _known() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(aws_managed_policies_data)
    return known


def _know_managed_policies() -> None:
    """Make attaching an AWS-managed policy load it first."""
    attach = models.IAMBackend.attach_role_policy

    @functools.wraps(attach)
    def attach_role_policy(self: Any, policy_arn: str, role_name: str) -> None:
        name = policy_arn.rpartition("/")[2]
        if _PREFIX in policy_arn and policy_arn not in self.managed_policies and name in _known():
            policy = models.AWSManagedPolicy.from_data(
                name, self.account_id, self.region_name, _known()[name]
            )
            self.managed_policies[policy.arn] = policy
        attach(self, policy_arn, role_name)

    models.IAMBackend.attach_role_policy = attach_role_policy


# Bucket policies: moto enforces a Deny but ignores its Condition.
#
# CDK's `enforce_ssl` denies everything when `aws:SecureTransport` is false; moto would then refuse
# every upload. A statement with a Condition is kept and readable, but not enforced.


def _enforce_plain_denials() -> None:
    """Judge only by the statements that have no Condition."""
    judge = FakeBucket.get_permission

    @functools.wraps(judge)
    def get_permission(self: Any, action: str, resource: str) -> Any:
        if self.policy is None:
            return judge(self, action, resource)
        document = json.loads(self.policy)
        statements = document["Statement"]
        statements = statements if isinstance(statements, list) else [statements]
        document["Statement"] = [s for s in statements if not s.get("Condition")]
        # A stand-in with the same verdict, so that the stored policy is never touched.
        stand_in = object.__new__(FakeBucket)
        stand_in.policy = json.dumps(document).encode() if document["Statement"] else None
        return judge(stand_in, action, resource)

    FakeBucket.get_permission = get_permission


APPLY = (_know_managed_policies, _enforce_plain_denials)
