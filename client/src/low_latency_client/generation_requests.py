"""What is asked of a language model: the request's body, the router's hint, a session."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from botocore.exceptions import ParamValidationError

from .arguments import check_kind
from .errors import rule
from .runtime_wire import body_bytes

_STREAM_PAGE = "/sagemaker/latest/APIReference/API_runtime_InvokeEndpointWithResponseStream.html"
NOT_STREAMED = rule(
    "LLC114",
    "stream() needs a streamed answer",
    fix='Set "stream" to true or leave it out. For a whole answer, call invoke_endpoint.',
)
ONE_IDENTIFIER = rule(
    "LLC115",
    "the conversation's ID for the router is not valid",
    fix="Give a text that names the conversation, or PrefixAwareId (1 to 64 characters), not both.",
    source=_STREAM_PAGE,
)
NOT_TWICE = rule(
    "LLC116",
    "a generation cannot be hedged with these arguments",
    fix="Make the client with hedging=Hedging(...), and hedge only calls without a session: each "
    "hedged call makes the model begin the same generation twice.",
)
NO_SESSION = rule(
    "LLC117",
    "the container opened no session",
    fix="Set SAGEMAKER_ENABLE_STATEFUL_SESSIONS=true for the vLLM and SGLang images. For "
    "your own container, pass the Body that opens a session.",
    source="/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html",
)
OPENED_BY_STREAM = rule(
    "LLC118",
    "a stream cannot open a session",
    fix="Open the session with open_session(), and pass its ID to the stream.",
    source=_STREAM_PAGE,
)
NEW_SESSION = "NEW_SESSION"


def generation_body(body: Any) -> bytes:
    """The request's body: bytes and text as they are, a mapping as JSON that asks for a stream.

    The mapping's order is kept and what is added comes last: prefix-aware routing looks at the
    body's first bytes.
    """
    if not isinstance(body, Mapping):
        return body_bytes(body)
    if body.get("stream", True) is not True:
        raise NOT_STREAMED.error(
            got=f'"stream": {body["stream"]!r}', allowed='"stream": true', where="stream, Body"
        )
    streamed = {**body, "stream": True}
    streamed.setdefault("stream_options", {"include_usage": True})
    try:
        return json.dumps(streamed, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise ParamValidationError(report=f"Body is not JSON: {error}") from error


def with_conversation(parameters: dict[str, Any], conversation: str | None) -> dict[str, Any]:
    """The call's parameters with ``PrefixAwareId`` made from the conversation's name.

    A hash of it, as names of users' conversations are no business of the router's logs.
    """
    if conversation is None:
        return parameters
    if not isinstance(conversation, str) or not conversation:
        raise ONE_IDENTIFIER.error(
            got=repr(conversation), allowed="a non-empty text", where="stream, conversation"
        )
    if "PrefixAwareId" in parameters:
        raise ONE_IDENTIFIER.error(
            got="conversation and PrefixAwareId",
            allowed="only one of the two",
            where="stream, conversation",
        )
    return {**parameters, "PrefixAwareId": _hashed(conversation)}


def prefix_aware_id(messages: Iterable[Mapping[str, Any]], leading: int | None = None) -> str:
    """An identifier for ``PrefixAwareId`` that messages with the same beginning share.

    Parameters
    ----------
    messages : iterable of mapping
        The messages of a chat, each with ``role`` and ``content``.
    leading : int, optional
        How many messages are the beginning; by default those up to the first of the user.

    Examples
    --------
    >>> opened = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
    >>> later = [*opened, {"role": "assistant", "content": "Hi."}]
    >>> prefix_aware_id(opened) == prefix_aware_id(later)
    True
    >>> prefix_aware_id(opened) == prefix_aware_id(opened, leading=1)
    False
    """
    beginning: list[Any] = []
    if leading is not None:
        check_kind(leading, int, "prefix_aware_id, leading")
    try:
        conversation = iter(messages)
    except TypeError:
        check_kind(messages, Iterable, "prefix_aware_id, messages")
        raise
    for message in conversation:
        if leading is not None and len(beginning) >= leading:
            break
        try:
            beginning.append([message.get("role"), message.get("content")])
        except AttributeError:
            check_kind(message, Mapping, "prefix_aware_id, messages")
            raise
        if leading is None and message.get("role") == "user":
            break
    return _hashed(json.dumps(beginning, sort_keys=True))


def _hashed(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


# Sessions: the bodies are those of AWS's own containers (vLLM, SGLang), which have them from
# aws/model-hosting-container-standards, docs/sagemaker/04_sticky_session_routing.md.


def opening(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the call that opens a session."""
    return _asking("NEW_SESSION", NEW_SESSION, parameters)


def closing(session: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the call that closes it."""
    check_kind(session, str, "close_session, session")
    return _asking("CLOSE", session, parameters)


def _asking(kind: str, session: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    body = b'{"requestType": "%b"}' % kind.encode()
    request = {"ContentType": "application/json", "Body": body, **parameters}
    return dict(SessionId=session, **request)  # a TypeError if the caller passes one, too


def session_id(header: str | None) -> str:
    """Return the ID in ``NewSessionId``, which has the session's expiry beside it."""
    session = (header or "").partition(";")[0].strip()
    if not session:
        raise NO_SESSION.error(
            got="an answer without NewSessionId",
            allowed="an answer with NewSessionId",
            where="open_session",
        )
    return session
