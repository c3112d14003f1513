"""ECR: moto takes a key of any Region."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moto.ecr.exceptions import InvalidParameterException
from moto.ecr.models import ECRBackend

from .replacing import around


@around(ECRBackend)
def create_repository(original: Callable[..., Any], self: Any, *given: Any, **named: Any) -> Any:
    """Refuse a key of another Region: API reference, EncryptionConfiguration."""
    key = str((named.get("encryption_config") or {}).get("kmsKey", ""))
    if key.startswith("arn:") and f":{self.region_name}:" not in key:
        raise InvalidParameterException(f"The key must exist in the same Region: {key}")
    return original(self, *given, **named)
