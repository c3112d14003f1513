"""The forms in which models stream: server-sent events, or JSON objects in lines (LMI's)."""

from __future__ import annotations

from botocore.exceptions import ResponseStreamingError

from ..facts.limits import LARGEST_BODY_BYTES
from .server_sent_events import ServerSentEvents

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


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
