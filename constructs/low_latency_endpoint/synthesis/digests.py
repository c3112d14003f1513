"""Short digests, for names that follow a content."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from constructs import IConstruct

from .asked_once import stack_of


def digest(scope: IConstruct, content: Any) -> str:
    """The same for the same content in every synthesis: tokens count as what they refer to."""
    if isinstance(content, Sequence) and not isinstance(content, str):
        content = list(content)
    return digest_of(stack_of(scope).resolve(content))


def digest_of(resolved: Any) -> str:
    """The same of what a stack has resolved already."""
    text = json.dumps(resolved, sort_keys=True)
    from hashlib import sha256  # OpenSSL: a tenth of what importing the constructs takes

    return sha256(text.encode()).hexdigest()[:8]
