"""AWS-managed policies: moto loads all of them or none.

All would cost a second at the first IAM call; none would refuse `AdministratorAccess`, which the
CDK bootstrap template attaches. So one is loaded when it is asked for.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from moto.iam import models
from moto.iam.aws_managed_policies import aws_managed_policies_data

_PREFIX = ":iam::aws:policy/"


@functools.cache
def _known() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(aws_managed_policies_data)
    return known


def apply() -> None:
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
