"""One generation of a language model, streamed: forms of servers, tokens, time limits, errors.

What the two clients share of ``stream()``. It sends nothing and waits for nothing: it takes the
bytes of a response stream, says until when the next ones may come, and names what went wrong.

A generation is finished by ``[DONE]``, or by the end of an answer that told a finish reason.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from botocore.exceptions import (
    ConnectionClosedError,
    EventStreamError,
    HTTPClientError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from .arguments import milliseconds
from .limits import LARGEST_BODY_BYTES
from .runtime_wire import LONGEST_STREAM, MOST_SHOWN, EventBuffer, Wire
from .timing import CLIENT_DURATION, CallTiming

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_ENDED = "unknown"  # a finish reason that is not told
_USAGE = {"completion_tokens": "generated_tokens", "prompt_tokens": "input_length"}
DONE = b"[DONE]"  # the data of a stream's last event
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerSentEvents:
    """Reads one stream of server-sent events as its bytes come.

    Lines end with ``\\n``, ``\\r\\n`` or ``\\r``; an event ends with an empty line; one that does
    not end is not told (WHATWG HTML, 9.2.6). Comments and the fields ``event``, ``id`` and
    ``retry`` are passed over.
    """

    __slots__ = ("_after_return", "_begun", "_data", "_line")

    def __init__(self) -> None:
        self._line: list[bytes] = []  # parts of a line whose end has not come
        self._data: list[bytes] = []  # lines of an event whose end has not come
        self._after_return = False
        self._begun = False

    def feed(self, data: bytes) -> list[bytes]:
        """The data of the events that these bytes complete: its lines, joined by ``\\n``."""
        if not data:
            return []
        if self._after_return:  # its line is told already
            self._after_return = False
            if data[0] == 10:
                data = data[1:]
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if not end:
            if data:
                self._line.append(data)
            return []
        self._after_return = data[-1] == 13
        if end < len(data):
            complete, rest = data[:end], [data[end:]]
        else:
            complete, rest = data, []
        if self._line:
            complete = b"".join(self._line) + complete
        self._line = rest
        lines = complete.splitlines()  # of bytes: at exactly the three line ends
        if not self._begun:
            self._begun = True
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        payloads: list[bytes] = []
        event_lines = self._data
        for line in lines:
            if not line:
                if event_lines:
                    payloads.append(b"\n".join(event_lines))
                    event_lines.clear()
            elif line.startswith(b"data:"):
                event_lines.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line == b"data":
                event_lines.append(b"")
        return payloads


class StreamedForm:
    """Reads the payloads of one stream; of a form that is neither, the bytes as they come."""

    __slots__ = ("_events", "_line", "_unread", "name")

    def __init__(self) -> None:
        self._events = ServerSentEvents()
        self._line = b""
        self._unread = 0
        self.name = ""  # events, lines or other, as the first bytes show

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that these bytes complete."""
        payloads = self._whole(data)
        self._unread = 0 if payloads else self._unread + len(data)
        if self._unread > LARGEST_BODY_BYTES:
            raise ResponseStreamingError(error="more than 25 MB without an event")
        return payloads

    def end(self) -> list[bytes]:
        """The last payload, if its end has not come: whole or cut."""
        if self.name == "events":
            return self._events.feed(b"\n\n")
        line, self._line = self._line, b""
        return [line] if line.strip() else []

    def _whole(self, data: bytes) -> list[bytes]:
        if not self.name:
            self._line += data
            begun = self._line.lstrip(b"\xef\xbb\xbf\r\n\t ")
            if begun.startswith(_FIELDS):
                self.name = "events"
            elif any(field.startswith(begun) for field in _FIELDS):
                return []  # it may still become one
            else:
                self.name = "lines" if begun.startswith(b"{") else "other"
            data, self._line = self._line, b""
        if self.name == "events":
            return self._events.feed(data)
        if self.name == "other":
            return [data] if data else []
        *whole, self._line = (self._line + data).split(b"\n")
        return [text for text in whole if text.strip()]


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
    content = None
    for choice in chunk.get("choices") or ():
        delta = choice.get("delta") or choice.get("message")
        if delta is None:
            text = choice.get("text")
        else:
            text = delta.get("content")
            if not text and any(value for name, value in delta.items() if name != "role"):
                content = content or ""
        if text:
            content = (content or "") + text
    return content


def as_chunk(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """OpenAI's form of what LMI and TGI stream, and of whole answers; others as they are."""
    token, details = answer.get("token"), answer.get("details")
    whole = answer.get("generated_text")
    if isinstance(token, Mapping):
        special = token.get("special") or token.get("special_token")  # it is no text
        delta = {"special" if special else "content": token.get("text")}
    elif isinstance(whole, str):
        delta = {"content": whole}
    else:
        choices = answer.get("choices")
        choices = choices if isinstance(choices, list) else []
        whole = [
            choice for choice in choices if isinstance(choice, Mapping) and choice.get("message")
        ]
        ended = [
            {**choice, "finish_reason": choice.get("finish_reason") or _ENDED} for choice in whole
        ]
        return {**answer, "choices": ended} if ended else answer
    details = details if isinstance(details, Mapping) else {}
    reason = None if whole is None and not details else details.get("finish_reason") or _ENDED
    if reason == "error":  # of LMI, in the middle
        return {"error": {"code": "error", "message": str(answer.get("error") or "")}}
    usage = {ours: details[theirs] for ours, theirs in _USAGE.items() if theirs in details}
    return {"choices": [{"delta": delta, "finish_reason": reason}], "usage": usage}


def error_of(chunk: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The error that a chunk reports in place of tokens: vLLM's two forms of it."""
    error = chunk.get("error")
    if error:
        return error if isinstance(error, Mapping) else {"message": str(error)}
    return chunk if chunk.get("object") == "error" else None


#: What may still come when the last event is here: the end of the answer, in the same packet
#: mostly. A connection that does not bring it is closed instead of kept.
END_SECONDS = 0.25
_NO_CHUNK = "NoChunk"


class GenerationTimeoutError(ReadTimeoutError):  # type: ignore[misc]  # untyped botocore
    """A generation took longer than a limit; its connection is closed.

    Attributes
    ----------
    limit : str
        ``first_token_timeout``, ``gap_timeout`` or ``total_timeout``.
    seconds : float
        That limit.
    tokens : int
        Parts that had come until then.
    """

    fmt = (
        '{limit} of {seconds:g} s passed; {tokens} tokens had come (endpoint URL: "{endpoint_url}")'
    )

    def __init__(self, request: Any = None, response: Any = None, **named: Any) -> None:
        super().__init__(
            request, response, **named
        )  # in botocore's order, by which it is unpickled
        self.limit: str = named["limit"]
        self.seconds: float = named["seconds"]
        self.tokens: int = named["tokens"]


class GenerationCutError(ConnectionClosedError):  # type: ignore[misc]  # untyped botocore
    """The answer ended, or its connection did, before the generation was finished.

    Attributes
    ----------
    tokens : int
        Parts that had come until then.
    """

    fmt = (
        "the answer ended after {tokens} tokens, before its end as server-sent events "
        '({error}; endpoint URL: "{endpoint_url}")'
    )

    def __init__(self, request: Any = None, response: Any = None, **named: Any) -> None:
        super().__init__(
            request, response, **named
        )  # in botocore's order, by which it is unpickled
        self.tokens: int = named["tokens"]


class GenerationFailedError(EventStreamError):  # type: ignore[misc]  # untyped botocore
    """The model or SageMaker reported an error in the middle of the answer.

    ``response["Error"]`` holds its ``Code`` and ``Message``, of SageMaker's events
    (``ModelStreamError``, ``InternalStreamFailure``) and of the server's own alike.

    Attributes
    ----------
    tokens : int
        Parts that had come until then.
    """

    def __init__(self, response: dict[str, Any], operation: str, tokens: int) -> None:
        super().__init__(response, operation)
        self.tokens = tokens

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.response, self.operation_name, self.tokens)

    def __str__(self) -> str:
        return f"{super().__str__()} ({self.tokens} tokens had come)"


@dataclass(frozen=True, slots=True)
class GenerationPart:
    """What one chunk with content adds."""

    text: str  # empty for content of other kinds, such as tool calls
    chunk: dict[str, Any]  # the whole chunk as the server sent it


@dataclass(frozen=True, slots=True)
class Limits:
    """Time limits of one generation, in seconds."""

    first_token: float
    gap: float
    total: float

    @property
    def first(self) -> float:
        """What ends the wait for the first token."""
        return min(self.first_token, self.total)


def limits_of(
    timing: CallTiming,
    first_token_timeout: timedelta | str | None,
    gap_timeout: timedelta | str | None,
    total_timeout: timedelta | str | None,
) -> Limits:
    """The limits stated, else the client's read timeout for both waits and AWS's for the whole."""

    def seconds(value: timedelta | str | None, name: str, default: timedelta) -> float:
        if value is None:
            return default.total_seconds()
        return float(CLIENT_DURATION.check(milliseconds(value, name), name)) / 1000

    return Limits(
        seconds(first_token_timeout, "stream, first_token_timeout", timing.read_timeout),
        seconds(gap_timeout, "stream, gap_timeout", timing.read_timeout),
        seconds(total_timeout, "stream, total_timeout", LONGEST_STREAM),
    )


class Tokens:
    """What came of one generation so far.

    Attributes
    ----------
    response : dict
        boto3's dictionary of the call, without ``Body``.
    time_to_first_token : timedelta or None
        From the sending of the request to the first chunk with content.
    usage : dict or None
        As the server counted.
    finish_reason : str or None
        ``stop``, ``length``, ...; ``None`` until the model told it.
    """

    def __init__(self, wire: Wire, limits: Limits) -> None:
        self.response: dict[str, Any] = {}
        self.time_to_first_token: timedelta | None = None
        self.usage: dict[str, Any] | None = None
        self.finish_reason: str | None = None
        self._wire, self._limits = wire, limits
        self._buffer = EventBuffer()
        self._form = StreamedForm()
        self._reasons: dict[Any, Any] = {}  # by the choice's index
        self._first = b""
        self._missing = "neither [DONE] nor a finish reason came"
        self._count = 0
        self._done = False
        self._failure: Exception | None = None
        self._began = self._asked = 0.0
        self._origin = ""

    @property
    def tokens(self) -> int:
        """Output tokens: the server's count, else the number of chunks with content."""
        counted = (self.usage or {}).get("completion_tokens")
        return counted if isinstance(counted, int) else self._count

    def _deadline(self) -> float:
        """Until when the next bytes may come, in the seconds of ``time.monotonic()``."""
        if self._done:
            return time.monotonic() + END_SECONDS
        if self.time_to_first_token is None:
            return self._began + self._limits.first
        return min(self._asked + self._limits.gap, self._began + self._limits.total)

    def late(self, origin: str = "") -> GenerationTimeoutError:
        """The error for a deadline that passed."""
        limits = self._limits
        limit, seconds = "total_timeout", limits.total
        if self.time_to_first_token is None:
            if limits.first_token <= limits.total:
                limit, seconds = "first_token_timeout", limits.first_token
        elif self._asked + limits.gap < self._began + limits.total:
            limit, seconds = "gap_timeout", limits.gap
        return GenerationTimeoutError(
            limit=limit, seconds=seconds, tokens=self._count, endpoint_url=origin or self._origin
        )

    def _lost(self, error: HTTPClientError) -> GenerationTimeoutError | GenerationCutError:
        """The error for one of the connection's after the head of the answer."""
        if isinstance(error, ReadTimeoutError):
            return self.late()
        return self._cut(error.kwargs.get("error") or "the connection was closed")

    def _cut(self, error: object) -> GenerationCutError:
        return GenerationCutError(tokens=self._count, endpoint_url=self._origin, error=error)

    def _ended(self) -> list[GenerationPart]:
        """Take the end of the answer, and the part of a last event that has no end of its own."""
        parts: list[GenerationPart] = []
        try:
            for payload in self._form.end():
                self._add(parts, payload)
            if not self._done:
                self._buffer.check_end()
                if self._first and not self._reasons:
                    raise self._no_chunk()
                if None in (self._reasons or {0: None}).values():
                    self._failure = self._cut(self._missing)
        except ResponseStreamingError as error:
            cut = self._cut if self._buffer.is_stream else self._no_chunk
            self._failure = cut(error.kwargs["error"])
        except GenerationFailedError as error:
            inside = error.response["Error"]["Code"] == _NO_CHUNK and self._reasons
            self._failure = self._cut("inside an event") if inside else error
        if self._failure is not None and not parts:
            raise self._failure
        return parts

    def _take(self, data: bytes) -> list[GenerationPart]:
        """The parts that these bytes complete.

        An error that follows them waits in ``_failure`` until they were given to the caller.
        """
        parts: list[GenerationPart] = []
        try:
            for event in self._wire.events(self._buffer, data):
                piece = event.get("PayloadPart", {}).get("Bytes", b"")
                if len(self._first) < MOST_SHOWN:
                    self._first += piece[:MOST_SHOWN]
                for payload in self._form.feed(piece):
                    self._add(parts, payload)
        except GenerationFailedError as error:
            self._failure = error
        except EventStreamError as error:
            self._failure = self._failed(error.response)
        except ResponseStreamingError as error:
            self._failure = self._no_chunk(error.kwargs["error"])
        return parts

    def _failed(self, response: dict[str, Any]) -> GenerationFailedError:
        return GenerationFailedError(response, self._wire.stream.name, self._count)

    def _no_chunk(self, why: object = None) -> GenerationFailedError:
        """Of a later event nothing is told: it is what users asked for."""
        why = why or ("an event is no chunk" if self._reasons else self._other_form())
        return self._failed({"Error": {"Code": _NO_CHUNK, "Message": why}})

    def _other_form(self) -> str:
        return f"an answer of another form: {self._first[:MOST_SHOWN].decode(errors='replace')}"

    def _add(self, parts: list[GenerationPart], payload: bytes) -> None:
        if self._done or payload == DONE:
            self._done = True
            return
        try:
            content = json.loads(payload)
            chunk = as_chunk(content)
            if chunk is not content:
                self._missing = f"{self._other_form()}, without the last event of that form"
            text, error, usage = content_of(chunk), error_of(chunk), chunk.get("usage")
            for choice in chunk.get("choices") or ():
                index, reason = choice.get("index", 0), choice.get("finish_reason")
                self.finish_reason = reason or self.finish_reason
                self._reasons[index] = reason or self._reasons.get(index)
        except Exception as problem:  # whatever JSON holds
            raise self._no_chunk() from problem
        if error is not None:
            code = error.get("code") or error.get("type") or "Unknown"
            message = str(error.get("message", ""))
            raise self._failed({"Error": {"Code": str(code), "Message": message}})
        self.usage = usage if usage and isinstance(usage, dict) else self.usage
        if text is None:
            return
        self._count += 1
        if self.time_to_first_token is None:
            self.time_to_first_token = timedelta(seconds=time.monotonic() - self._began)
        parts.append(GenerationPart(text, content))
