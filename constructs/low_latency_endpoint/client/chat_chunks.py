"""Chunks of OpenAI-compatible streams: which of them carry tokens, and what went wrong in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["DONE", "content_of", "error_of"]

DONE = b"[DONE]"
"""The data of a stream's last event."""


def content_of(chunk: Mapping[str, Any]) -> str | None:
    """The text that a chunk adds; ``""`` for other content, ``None`` for a chunk without any.

    Other content is a tool call, a refusal or reasoning: the model made tokens for it. The chunk
    that tells the role, the one that tells the finish reason and the one that tells the usage have
    none, so none of them is a first token.

    Examples
    --------
    >>> content_of({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
    >>> content_of({"choices": [{"delta": {"content": "Once"}}]})
    'Once'
    >>> content_of({"choices": [{"delta": {"tool_calls": [{"index": 0}]}}]})
    ''
    >>> content_of({"choices": [{"text": "Once"}]})  # the completions API
    'Once'
    >>> content_of({"choices": [], "usage": {"completion_tokens": 1}})
    """
    found = None
    for choice in chunk.get("choices") or ():
        delta = choice.get("delta")
        if delta is None:
            text = choice.get("text")
        else:
            text = delta.get("content")
            if not text and any(value for name, value in delta.items() if name != "role"):
                found = found or ""
        if text:
            found = (found or "") + text
    return found


def error_of(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error that a chunk reports in place of tokens: vLLM's two forms of it."""
    error = chunk.get("error")
    if error:
        return error if isinstance(error, Mapping) else {"message": str(error)}
    return chunk if chunk.get("object") == "error" else None
