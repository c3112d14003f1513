"""Policies: AWS's managed ones are loaded one at a time; of buckets' `permissions` judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flask import request
from moto.iam import models
from moto.iam.access_control import PermissionResult
from moto.s3.models import FakeBucket

from ..permissions.gate import DENIED_OBJECTS
from ..permissions.principals import aws_managed_policy
from .replacing import around


@around(models.IAMBackend, "attach_role_policy", "attach_user_policy")
def load_before_attaching(
    original: Callable[..., None], self: Any, policy_arn: str, name: str
) -> None:
    """Load an AWS-managed policy before it is attached."""
    aws_managed_policy(policy_arn, self)
    original(self, policy_arn, name)


@around(FakeBucket)
def get_permission(_: Callable[..., Any], self: Any, action: str, resource: str) -> Any:
    """Leave the bucket's policy to `permissions`, which has judged the request already."""
    denied = resource in request.environ.get(DENIED_OBJECTS, ())
    return PermissionResult.DENIED if denied else PermissionResult.NEUTRAL
