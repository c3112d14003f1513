"""KMS keys, as KMS describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .calls import Account


def described_key(account: Account, key: str) -> Mapping[str, Any] | None:
    """KMS's metadata of a key by its ARN, or its ID in this account and Region; ``None`` without it."""
    answer = account.read("kms", "describe_key", ("NotFoundException",), KeyId=key)
    return None if answer is None else answer["KeyMetadata"]
