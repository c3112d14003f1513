"""Chunks of OpenAI-compatible streams: which of them carry tokens, and what went wrong in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["DONE", "as_chunk", "content_of", "error_of"]

_ENDED = "unknown"  # a finish reason that is not told
_USAGE = {"completion_tokens": "generated_tokens", "prompt_tokens": "input_length"}
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
        delta = choice.get("delta") or choice.get("message")
        if delta is None:
            text = choice.get("text")
        else:
            text = delta.get("content")
            if not text and any(value for name, value in delta.items() if name != "role"):
                found = found or ""
        if text:
            found = (found or "") + text
    return found


def as_chunk(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """OpenAI's form of what LMI and TGI stream, and of whole answers; others as they are."""
    token, details = found.get("token"), found.get("details")
    whole = found.get("generated_text")
    if isinstance(token, Mapping):
        special = token.get("special") or token.get("special_token")  # it is no text
        delta = {"special" if special else "content": token.get("text")}
    elif isinstance(whole, str):
        delta = {"content": whole}
    else:
        choices = found.get("choices")
        choices = choices if isinstance(choices, list) else []
        whole = [each for each in choices if isinstance(each, Mapping) and each.get("message")]
        ended = [{**each, "finish_reason": each.get("finish_reason") or _ENDED} for each in whole]
        return {**found, "choices": ended} if ended else found
    details = details if isinstance(details, Mapping) else {}
    reason = None if whole is None and not details else details.get("finish_reason") or _ENDED
    if reason == "error":  # of LMI, in the middle
        return {"error": {"code": "error", "message": str(found.get("error") or "")}}
    usage = {ours: details[theirs] for ours, theirs in _USAGE.items() if theirs in details}
    return {"choices": [{"delta": delta, "finish_reason": reason}], "usage": usage}


def error_of(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error that a chunk reports in place of tokens: vLLM's two forms of it."""
    error = chunk.get("error")
    if error:
        return error if isinstance(error, Mapping) else {"message": str(error)}
    return chunk if chunk.get("object") == "error" else None
