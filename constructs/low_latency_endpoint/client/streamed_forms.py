"""The forms in which models stream: server-sent events, or JSON objects in lines (LMI's)."""

from __future__ import annotations

from botocore.exceptions import ResponseStreamingError

from ..plan.limits import LARGEST_BODY_BYTES
from .server_sent_events import ServerSentEvents

__all__ = ["StreamedForm"]

_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_BLANK = b"\xef\xbb\xbf\r\n\t "


class StreamedForm:
    """Reads the payloads of one stream; its form shows with the first bytes.

    Attributes
    ----------
    name : str
        ``events``, ``lines`` or ``other``, whose bytes are told as they come; empty until it shows.
    """

    __slots__ = ("_events", "_line", "_unread", "name")

    def __init__(self) -> None:
        self._events = ServerSentEvents()
        self._line = b""
        self._unread = 0
        self.name = ""

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads that these bytes complete."""
        found = self._whole(data) if self.name else self._sniffed(data)
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

    def _sniffed(self, data: bytes) -> list[bytes]:
        self._line += data
        begun = self._line.lstrip(_BLANK)
        if begun.startswith(_FIELDS):
            self.name = "events"
        elif begun.startswith(b"{"):
            self.name = "lines"
        elif any(field.startswith(begun) for field in _FIELDS):
            return []  # it may still become one
        else:
            self.name = "other"
        data, self._line = self._line, b""
        return self._whole(data)

    def _whole(self, data: bytes) -> list[bytes]:
        if self.name == "events":
            return self._events.feed(data)
        if self.name == "other":
            return [data] if data else []
        *whole, self._line = (self._line + data).split(b"\n")
        return [text for text in whole if text.strip()]
