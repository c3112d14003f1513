"""AWS-managed policies, of which moto loads all or none.

All would cost a second at the first IAM call; none would refuse `AdministratorAccess`, which the CDK
bootstrap template attaches. So one is loaded when it is asked for.
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


def aws_managed_policy(arn: str, backend: Any) -> Any:
    """Give an AWS-managed policy, loaded into a backend; None when AWS has none of that name."""
    name = arn.rpartition("/")[2]
    if _PREFIX in arn and arn not in backend.managed_policies and name in _known():
        policy = models.AWSManagedPolicy.from_data(
            name, backend.account_id, backend.region_name, _known()[name]
        )
        backend.managed_policies[policy.arn] = policy
    return backend.managed_policies.get(arn)
