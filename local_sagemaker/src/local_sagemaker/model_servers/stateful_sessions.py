"""The sessions of AWS's containers for vLLM and SGLang, behind `/invocations` alone.

Source: aws/model-hosting-container-standards,
`python/model_hosting_container_standards/sagemaker/sessions` (`transform.py`, `handlers.py`,
`manager.py`), whose words these are.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from .openai_format import Wrong

_HEADER = "x-amzn-sagemaker-session-id"
_NEW = "NEW_SESSION"
_DISABLED = "Invalid payload. stateful sessions not enabled"
_LAST = 1200.0  # seconds that a session lasts


class Sessions:
    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._until: dict[str, float] = {}

    def answer(
        self, body: bytes, headers: Mapping[str, str], *, enabled: bool
    ) -> tuple[tuple[str, str], bytes] | None:
        """Open or close a session where the body asks for it; any other request is let through."""
        session = headers.get(_HEADER)
        kind = _kind(body)
        if not enabled and (kind or session is not None):
            raise Wrong(_DISABLED + ("" if kind else f", {_HEADER} header not supported"))
        if kind == _NEW:
            session = str(uuid.uuid4())
            self._until[session] = until = self._now() + _LAST
            end = datetime.fromtimestamp(until, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            told = ("x-amzn-sagemaker-new-session-id", f"{session}; Expires={end}")
            return told, f"Session {session} created".encode()
        if session not in (None, "", _NEW):
            self._check(session)
        if kind is None:
            return None
        if self._until.pop(session or "", None) is None:
            raise Wrong(f"Failed to close session: invalid session_id: {session}", 424)
        told = ("x-amzn-sagemaker-closed-session-id", str(session))
        return told, f"Session {session} closed".encode()

    def _check(self, session: str | None) -> None:
        """Refuse a session that is not known; one that is over is let through once, as there."""
        until = self._until.get(session or "")
        if until is None:
            raise Wrong(f"Bad request: session not found: {session}")
        if self._now() > until:
            del self._until[session or ""]


def _kind(body: bytes) -> str | None:
    """What a body asks of sessions; None for nothing."""
    if b'"requestType"' not in body:
        return None
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None  # refused as any other
    if not isinstance(document, dict) or "requestType" not in document:
        return None
    kind = document["requestType"]
    if len(document) > 1 or kind not in (_NEW, "CLOSE"):
        raise Wrong("requestType: NEW_SESSION or CLOSE, and nothing beside it")
    return str(kind)
