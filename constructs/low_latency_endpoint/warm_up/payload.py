"""The payloads as they are shipped with the function."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..options.warm_up import WarmUpPayload

_INDEX = "payloads.json"


def write_payloads(payloads: Sequence[WarmUpPayload], folder: Path) -> None:
    """Write bodies and their headers where the function finds them."""
    folder.mkdir()
    index = []
    for number, payload in enumerate(payloads):
        (folder / str(number)).write_bytes(payload.body)
        index.append({"File": str(number), **payload.headers})
    (folder / _INDEX).write_text(json.dumps(index, indent=1), encoding="utf-8")


def payload_digest(payloads: Sequence[WarmUpPayload]) -> str:
    """Changes with the payloads: a new payload is tried at once."""
    from hashlib import sha256  # OpenSSL: a tenth of what importing the constructs takes

    digest = sha256()
    for payload in payloads:
        digest.update(json.dumps([payload.headers, len(payload.body)]).encode())
        digest.update(payload.body)
    return digest.hexdigest()[:16]
