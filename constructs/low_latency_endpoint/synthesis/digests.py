"""Short digests, for names that follow a content."""

from __future__ import annotations

import json
from typing import Any

from constructs import IConstruct

from .asked_once import stack_of


def digest(scope: IConstruct, text: str) -> str:
    """The same for the same text in every synthesis: tokens count as what they refer to."""
    return digest_of(stack_of(scope).resolve(text))


def digest_of(resolved: Any) -> str:
    """The same of anything that a stack has resolved already."""
    canonical = json.dumps(resolved, sort_keys=True)
    from hashlib import sha256  # OpenSSL: a tenth of what importing the constructs takes

    return sha256(canonical.encode()).hexdigest()[:8]
