"""OpenAI's chat and text completions, as vLLM reads and writes them.

Sources: vllm-project/vllm, `vllm/entrypoints/openai` (fields, the order of a stream's events, errors,
also in the middle of a stream); the API reference of OpenAI, "Chat completions" and "Streaming".
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .language_model_settings import LanguageModelServer

DONE = b"data: [DONE]\n\n"


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
class Asked:
    """What a request asks for."""

    chat: bool
    model: str
    tokens: list[Hashable]
    output_tokens: int
    finish_reason: str
    stream: bool
    include_usage: bool


def read(body: bytes, path: str, settings: LanguageModelServer) -> Asked:
    """Read a request; at `/invocations` its fields say which of both it is.

    Raises
    ------
    Wrong
        As vLLM refuses it.
    """
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise Wrong("the body is no JSON document") from None
    if not isinstance(document, dict):
        raise Wrong("the body is no JSON object")
    chat = "messages" in document if path == "/invocations" else path == "/v1/chat/completions"
    model = document.get("model") or settings.model_name or "language-model"
    if settings.model_name not in (None, model):
        raise Wrong(f"The model `{model}` does not exist.", 404, "NotFoundError")
    if document.get("n") not in (None, 1):
        raise Wrong("n: this server gives one answer to a prompt")
    tokens = _of_messages(document.get("messages")) if chat else _of_prompt(document.get("prompt"))
    count, reason = _output(document, len(tokens), settings)
    options = document.get("stream_options") or {}
    return Asked(
        chat,
        str(model),
        tokens,
        count,
        reason,
        bool(document.get("stream")),
        isinstance(options, dict) and bool(options.get("include_usage")),
    )


def _of_messages(messages: object) -> list[Hashable]:
    """Split a chat into tokens: its words, the first of each message told apart by its role.

    An answer's first word is not, so that the next prompt, which has it within, is found to begin
    with what was computed.
    """
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
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise Wrong("messages: a content is a text or a list of parts")
    parts = [part.get("text", "") for part in content if isinstance(part, dict)]
    return " ".join(part for part in parts if isinstance(part, str))


def _of_prompt(prompt: object) -> list[Hashable]:
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], (str, list)):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return [*prompt.split()] or [""]
    if isinstance(prompt, list) and prompt and all(isinstance(one, int) for one in prompt):
        return [*prompt]
    raise Wrong("send messages, or a prompt: one text, or one list of token numbers")


def _output(
    document: Mapping[str, Any], prompt: int, settings: LanguageModelServer
) -> tuple[int, str]:
    """Say how many tokens the answer has, and why it ends there."""
    limits = [_number(document, name) for name in ("max_completion_tokens", "max_tokens")]
    limit = next((each for each in limits if each is not None), None)
    least = _number(document, "min_tokens") or 0
    longest = settings.longest
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


@dataclass
class Answer:
    """Writes what a request is answered with."""

    asked: Asked
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        self.id = ("chatcmpl-" if self.asked.chat else "cmpl-") + self.id
        # What all events have in common is written once: many streams are written at a time, and
        # the last of them waits for the first.
        kind = "chat.completion.chunk" if self.asked.chat else "text_completion"
        said = {"id": self.id, "object": kind, "created": self.created, "model": self.asked.model}
        self._head = b"data: " + json.dumps(said, separators=(",", ":")).encode()[:-1]
        key = b'"delta":{"content":"' if self.asked.chat else b'"text":"'
        close = b'"}' if self.asked.chat else b'"'
        self._before = self._head + b',"choices":[{"index":0,' + key
        self._after = close + b',"logprobs":null,"finish_reason":null}]}\n\n'

    def opening(self) -> bytes:
        """Write the event that says whose turn it is, which comes with the first token."""
        if not self.asked.chat:
            return b""
        return (
            self._head + b',"choices":[{"index":0,"delta":{"role":"assistant","content":""},'
            b'"logprobs":null,"finish_reason":null}]}\n\n'
        )

    def content(self, text: str) -> bytes:
        """Write an event with text, which must need no escaping."""
        return self._before + text.encode() + self._after

    def ending(self, usage: Mapping[str, Any]) -> bytes:
        """Write the last events of a stream."""
        reason = b'"finish_reason":"%b"' % self.asked.finish_reason.encode()
        last = self._before + self._after.replace(b'"finish_reason":null', reason)
        if self.asked.include_usage:
            last += self._head + b',"choices":[],"usage":%b}\n\n' % json.dumps(usage).encode()
        return last + DONE

    def failing(self, message: str) -> bytes:
        """Write the events that end a stream in its middle."""
        return b"data: " + error_document(message, 500, "InternalServerError") + b"\n\n" + DONE

    def whole(self, text: str, usage: Mapping[str, Any]) -> bytes:
        """Write an answer in one piece."""
        said: dict[str, Any] = {"text": text}
        if self.asked.chat:
            said = {"message": {"role": "assistant", "content": text}}
        choice = {"index": 0, **said, "logprobs": None, "finish_reason": self.asked.finish_reason}
        kind = "chat.completion" if self.asked.chat else "text_completion"
        document = {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.asked.model,
            "choices": [choice],
            "usage": usage,
        }
        return json.dumps(document).encode()


def usage_of(prompt: int, completion: int, cached: int) -> dict[str, Any]:
    """Write a usage; cached tokens only where there are any, as vLLM does."""
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": cached} if cached else None,
    }
