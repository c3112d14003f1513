"""A language model's answer, token by token, as it comes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from low_latency_client.generations import DONE, StreamedForm, as_chunk, content_of, error_of

ENDED_EARLY = "stream ended early"
MALFORMED = "stream malformed"


class TokenTimes(NamedTuple):
    """When the tokens of one answer came; ``time.perf_counter()``'s seconds."""

    first: float | None  # first and last chunk with content; ``None`` without one
    last: float | None
    gaps: list[float]  # between successive chunks with content
    output_tokens: int  # as the model counts them; without its count, the chunks with content
    prompt_tokens: int  # as the model counts them; 0 where it does not
    cached_tokens: int
    counted: bool  # whether the model counted its output tokens

    @property
    def per_token(self) -> float | None:
        """Time per output token after the first; ``None`` for an answer of one token."""
        if self.first is None or self.last is None or self.output_tokens < 2:
            return None
        return (self.last - self.first) / (self.output_tokens - 1)


class TokenReader:
    """Reads one stream."""

    __slots__ = (
        "_cached",
        "_chunks",
        "_counted",
        "_fed",
        "_finished",
        "_first",
        "_form",
        "_gaps",
        "_known",
        "_last",
        "_prompt",
        "problem",
    )

    def __init__(self) -> None:
        self._form = StreamedForm()
        self._fed = 0.0
        self._first: float | None = None
        self._last: float | None = None
        self._gaps: list[float] = []
        self._chunks = 0
        self._counted: int | None = None
        self._prompt = self._cached = 0
        self._finished = self._known = False
        self.problem: tuple[str, str] | None = None

    def feed(self, data: bytes, now: float) -> None:
        """Take bytes of the answer that came at ``now``, cut anywhere."""
        self._fed = now
        for payload in self._form.feed(data):
            self._payload(payload, now)

    def end(self) -> tuple[str, str] | None:
        """Kind and message of what is wrong with the whole answer; ``None`` for a good one."""
        for payload in self._form.end():
            self._payload(payload, self._fed, ENDED_EARLY)
        if self.problem is not None:
            return self.problem
        if (self._known or self._form.name == "events") and not self._finished:
            return ENDED_EARLY, f"after {self._chunks} chunks, without a finish_reason or [DONE]"
        return None

    def times(self) -> TokenTimes:
        """When its tokens came."""
        return TokenTimes(
            self._first,
            self._last,
            self._gaps,
            self._chunks if self._counted is None else self._counted,
            self._prompt,
            self._cached,
            self._counted is not None,
        )

    def _payload(self, text: bytes, now: float, broken: str = MALFORMED) -> None:
        if text == DONE:
            self._finished = True
            return
        if self._form.name in ("other", ""):
            self._content(now)
            return
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            self.problem = self.problem or (broken, f"no JSON: {text[:80]!r}")
            return
        if isinstance(document, dict):
            self._chunk(as_chunk(document), now)
        else:
            self._content(now)

    def _chunk(self, found: Mapping[str, Any], now: float) -> None:
        choices = found.get("choices")
        if isinstance(choices, list) and all(isinstance(choice, dict) for choice in choices):
            self._known = True
            if content_of(found) is not None:
                self._content(now)
            if any(choice.get("finish_reason") is not None for choice in choices):
                self._finished = True
            usage = found.get("usage")
            if isinstance(usage, dict):
                self._usage(usage)
        elif (error := error_of(found)) is not None:
            kind = error.get("type") or error.get("code") or found.get("error_type")
            said = str(error.get("message") or error)
            self.problem = self.problem or (f"stream {kind or 'error'}", said)
        else:
            self._content(now)

    def _usage(self, usage: Mapping[str, Any]) -> None:
        self._counted = _whole(usage.get("completion_tokens"), self._counted)
        self._prompt = _whole(usage.get("prompt_tokens"), self._prompt) or 0
        details = usage.get("prompt_tokens_details")
        if isinstance(details, dict):
            self._cached = _whole(details.get("cached_tokens"), self._cached) or 0

    def _content(self, now: float) -> None:
        last = self._last
        if last is None:
            self._first = now
        else:
            self._gaps.append(now - last)
        self._last = now
        self._chunks += 1


def _whole(value: Any, otherwise: int | None) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else otherwise
