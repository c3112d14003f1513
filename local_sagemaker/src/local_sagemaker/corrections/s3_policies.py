"""Bucket policies: moto enforces a Deny but ignores its Condition.

CDK's `enforce_ssl` denies everything when `aws:SecureTransport` is false; moto would then refuse
every upload. A statement with a Condition is kept and readable, but not enforced.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from moto.s3.models import FakeBucket


def apply() -> None:
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
