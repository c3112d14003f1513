"""OpenAI's chat completions, as vLLM reads and writes them.

Sources: vllm-project/vllm, `vllm/entrypoints/openai` (fields, the order of a stream's events, errors,
also in the middle of a stream); the API reference of OpenAI, "Chat completions" and "Streaming".

Source: aws/model-hosting-container-standards,
`python/model_hosting_container_standards/sagemaker/sessions` (`transform.py`, `handlers.py`,
`manager.py`), whose words these are.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from .specifications import LanguageModelServer

_TEXT = (
    "the river went on through the town and under the bridge where two boys sat with their lines in "
    "the water and said little until the light began to fade"
)
_WORDS = _TEXT.split()


def word(number: int) -> str:
    """Give a generated token, which needs no escaping in JSON."""
    return _WORDS[number % len(_WORDS)]


class Wrong(Exception):
    """A request that is refused, with the status of the answer."""

    def __init__(self, message: str, status: int = 400, kind: str = "BadRequestError") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind


def error_document(message: str, status: int, kind: str) -> bytes:
    """Write an error, which is the same for a whole answer and in the middle of a stream."""
    told = {"message": message, "type": kind, "param": None, "code": status}
    return json.dumps({"error": told}).encode()


@dataclass(frozen=True)
class AskedCompletion:
    model: str
    tokens: list[Hashable]
    output_tokens: int
    finish_reason: str
    stream: bool
    include_usage: bool


def read(body: bytes, settings: LanguageModelServer) -> AskedCompletion:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Wrong("the body is no JSON document") from None
    if not isinstance(document, dict):
        raise Wrong("the body is no JSON object")
    tokens = _tokens(document.get("messages"))
    count, reason = _output(document, len(tokens), settings)
    options = document.get("stream_options")
    return AskedCompletion(
        str(document.get("model") or "language-model"),
        tokens,
        count,
        reason,
        bool(document.get("stream")),
        isinstance(options, dict) and bool(options.get("include_usage")),
    )


def _tokens(messages: object) -> list[Hashable]:
    """Split a chat into tokens: its words, the first of each message told apart by its role."""
    # But for an answer's, so that the next prompt is found to begin with what was computed.
    if not isinstance(messages, list) or not messages:
        raise Wrong("messages: a list with at least one message is needed")
    tokens: list[Hashable] = []
    for message in messages:
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise Wrong("messages: each is an object with a role and a content")
        words: list[Hashable] = [*_text(message.get("content")).split()]
        if words and message["role"] != "assistant":
            words[0] = (message["role"], words[0])
        tokens += words
    return tokens or [""]


def _text(content: object) -> str:
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return " ".join(part for part in parts if isinstance(part, str))
    if not isinstance(content, str | None):
        raise Wrong("messages: a content is a text or a list of parts")
    return content or ""


def _output(
    document: Mapping[str, Any], prompt: int, settings: LanguageModelServer
) -> tuple[int, str]:
    """Say how many tokens the answer has, and why it ends there."""
    limits = [_number(document, name) for name in ("max_completion_tokens", "max_tokens")]
    limit = next((limit for limit in limits if limit is not None), None)
    least = _number(document, "min_tokens") or 0
    longest = settings.context_tokens or settings.kv_tokens
    if limit is not None and limit < 1:
        raise Wrong(f"max_tokens must be at least 1, got {limit}.")
    if prompt + (limit or 1) > longest:
        raise Wrong(
            f"This model's maximum context length is {longest} tokens. However, you requested "
            f"{limit or 0} output tokens and your prompt contains {prompt} input tokens, for a "
            f"total of {prompt + (limit or 0)} tokens. Please reduce the length of the input "
            "prompt or the number of requested output tokens."
        )
    most = limit if limit is not None else longest - prompt
    if least > most:
        raise Wrong(f"min_tokens must be less than or equal to max_tokens={most}, got {least}.")
    own = most if document.get("ignore_eos") else max(least, settings.output_tokens)
    return (own, "stop") if own < most else (most, "length")


def _number(document: Mapping[str, Any], name: str) -> int | None:
    value = document.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
        raise Wrong(f"{name} must be a whole number: {value}")
    return value


def _compact(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


class CompletionAnswer:
    def __init__(self, asked: AskedCompletion) -> None:
        self._asked = asked
        self._said = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": asked.model,
        }
        # What all events have in common is written once: many streams are written at a time.
        self._head = b"data: " + _compact(self._said)[:-1] + b',"choices":['

    def _event(self, delta: str, reason: str = "null") -> bytes:
        return (
            self._head
            + (
                f'{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason}}}]}}\n\n'
            ).encode()
        )

    def token(self, number: int) -> bytes:
        """Write the event of one token, the first behind the one that says whose turn it is."""
        if number == 0:
            opening = self._event('{"role":"assistant","content":""}')
            return opening + self._event(f'{{"content":"{word(0)}"}}')
        return self._event(f'{{"content":" {word(number)}"}}')

    def ending(self, cached: int) -> bytes:
        """Write the last events of a stream."""
        last = self._event('{"content":""}', f'"{self._asked.finish_reason}"')
        if self._asked.include_usage:
            last += self._head + b'],"usage":%b}\n\n' % _compact(self._usage(cached))
        return last + b"data: [DONE]\n\n"

    def failing(self, message: str) -> bytes:
        """Write the events that end a stream in its middle."""
        error = error_document(message, 500, "InternalServerError")
        return b"data: " + error + b"\n\ndata: [DONE]\n\n"

    def whole(self, cached: int) -> bytes:
        asked = self._asked
        text = " ".join(map(word, range(asked.output_tokens)))
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": text},
            "logprobs": None,
            "finish_reason": asked.finish_reason,
        }
        document = {**self._said, "object": "chat.completion", "choices": [choice]}
        return json.dumps({**document, "usage": self._usage(cached)}).encode()

    def _usage(self, cached: int) -> dict[str, Any]:
        """Count tokens; cached ones only where there are any, as vLLM does."""
        prompt, completion = len(self._asked.tokens), self._asked.output_tokens
        return {
            "prompt_tokens": prompt,
            "total_tokens": prompt + completion,
            "completion_tokens": completion,
            "prompt_tokens_details": {"cached_tokens": cached} if cached else None,
        }


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
