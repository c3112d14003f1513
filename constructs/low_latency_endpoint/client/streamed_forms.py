"""What language models stream: server-sent events or lines of JSON, of OpenAI's and other chunks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ResponseStreamingError

from ..facts.limits import LARGEST_BODY_BYTES

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
        found: list[bytes] = []
        held = self._data
        for line in lines:
            if not line:
                if held:
                    found.append(held[0] if len(held) == 1 else b"\n".join(held))
                    held.clear()
            elif line.startswith(b"data:"):
                held.append(line[6:] if line[5:6] == b" " else line[5:])
            elif line == b"data":
                held.append(b"")
        return found


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
        found = self._whole(data)
        self._unread = 0 if found else self._unread + len(data)
        if self._unread > LARGEST_BODY_BYTES:
            raise ResponseStreamingError(error="more than 25 MB without an event")
        return found

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
