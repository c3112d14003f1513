"""Sessions that a container keeps: SageMaker sends a session's requests to the instance that opened it.

``InvokeEndpoint`` alone opens one (``SessionId=NEW_SESSION``). The bodies are those of AWS's own
containers (vLLM, SGLang), which have them from aws/model-hosting-container-standards,
``docs/sagemaker/04_sticky_session_routing.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import rule

__all__ = ["NEW_SESSION", "closing", "opening", "session_id"]

_PAGE = "/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"
NO_SESSION = rule(
    "LLC117",
    "the container opened no session",
    fix="Set SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true for vLLM's and SGLang's images; give the Body "
    "with which a container of your own opens one.",
    source=_PAGE,
)
OPENED_BY_STREAM = rule(
    "LLC118",
    "a stream cannot open a session",
    fix="Open it with open_session(), and give the stream its ID.",
    source="/sagemaker/latest/APIReference/API_runtime_InvokeEndpointWithResponseStream.html",
)

NEW_SESSION = "NEW_SESSION"


def opening(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the call that opens a session."""
    return _asking("NEW_SESSION", NEW_SESSION, parameters)


def closing(session: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the call that closes it."""
    return _asking("CLOSE", session, parameters)


def _asking(kind: str, session: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    body = b'{"requestType": "%b"}' % kind.encode()
    asked = {"ContentType": "application/json", "Body": body, **parameters}
    return dict(SessionId=session, **asked)  # a TypeError where the caller gives one, too


def session_id(told: str | None) -> str:
    """The ID of ``NewSessionId``, which names the session's end beside it."""
    found = (told or "").partition(";")[0].strip()
    if not found:
        raise NO_SESSION.error(got="an answer without NewSessionId", allowed="one with it")
    return found
