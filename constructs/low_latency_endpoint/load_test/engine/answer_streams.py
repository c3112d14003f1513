"""Response streams of SageMaker: parts out of the event stream, as they come."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import permutations

from botocore.exceptions import EventStreamError, ResponseStreamingError

from ...client.runtime_wire import EventBuffer, Wire
from .connections import GeneratorConnection
from .target import INVOKE, Target
from .token_streams import TokenReader, TokenTimes


class AnswerStream:
    """Puts the parts of a response stream together, and reads the tokens in them."""

    def __init__(self, wire: Wire, target: Target, connection: GeneratorConnection) -> None:
        self._connection = connection
        self._events, self._buffer = wire.events, EventBuffer()
        self._parts_of = EventParts(self._other_event) if target.api == INVOKE else None
        self._reader = TokenReader() if target.tokens is not None else None
        self.first_byte: float | None = None
        self.parts: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take bytes of the body; raises what the stream reports."""
        now = self._connection.came_at
        for part in (data,) if self._parts_of is None else self._parts_of.feed(data):
            if self.first_byte is None:
                self.first_byte = now
            self.parts.append(part)
            if self._reader is not None:
                self._reader.feed(part, now)

    def _other_event(self, event: bytes) -> Iterator[bytes]:
        for found in self._events(self._buffer, event):
            part = found.get("PayloadPart", {}).get("Bytes")
            if part is not None:
                yield part

    def problem(self) -> tuple[str, str] | None:
        """What the model's own stream says is wrong, or shows by its end."""
        if self._parts_of is not None and self._parts_of.unfinished:
            return "stream malformed", "the answer ended inside an event"
        return None if self._reader is None else self._reader.end()

    @property
    def tokens(self) -> TokenTimes | None:
        """When its tokens came, so far."""
        return None if self._reader is None else self._reader.times()


def stream_error(error: EventStreamError | ResponseStreamingError) -> tuple[str, str]:
    """Kind and message of an error that SageMaker reports in the stream, or of a damaged one."""
    if isinstance(error, EventStreamError):
        found = error.response.get("Error", {})
        return f"stream {found.get('Code') or 'error'}", str(found.get("Message") or error)
    return "stream malformed", str(error)


class EventParts:
    """Payload parts out of SageMaker's event stream, for a tenth of botocore's processor time."""

    # An event whose headers are, byte for byte, those of a payload part is taken here, its checksum
    # checked; what is anything else is left to botocore.

    __slots__ = ("_other", "_rest")

    def __init__(self, other: Callable[[bytes], Iterable[bytes]]) -> None:
        self._other = other
        self._rest = b""

    @property
    def unfinished(self) -> bool:
        """Whether an event has begun that is not at its end."""
        return bool(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        """The parts that are complete with these bytes."""
        data = self._rest + data if self._rest else data
        at, size = 0, len(data)
        found: list[bytes] = []
        while size - at >= _PRELUDE:
            length = int.from_bytes(data[at : at + 4], "big")
            if not _SMALLEST <= length <= _LARGEST:
                found.extend(self._other(data[at:]))  # no event; botocore says so
                break
            if size - at < length:
                break
            event = data[at : at + length]
            at += length
            if _is_part(event):
                found.append(event[_PART_HEAD:-4])
            else:
                found.extend(self._other(event))
        self._rest = data[at:]
        return found


_PRELUDE, _SMALLEST, _LARGEST = 12, 16, 24 * 1024 * 1024


def _header(name: bytes, value: bytes) -> bytes:
    """A header of type 7, a text."""
    return bytes([len(name)]) + name + b"\x07" + len(value).to_bytes(2, "big") + value


def _part_headers(*order: bytes) -> bytes:
    values = {
        b":event-type": b"PayloadPart",
        b":content-type": b"application/octet-stream",
        b":message-type": b"event",
    }
    return b"".join(_header(name, values[name]) for name in order)


_EVENT, _TYPE, _MESSAGE = b":event-type", b":content-type", b":message-type"
#: The order of headers is nobody's promise.
_PART_HEADERS = frozenset(
    _part_headers(*order) for order in permutations((_EVENT, _TYPE, _MESSAGE))
)
_PART_HEAD = _PRELUDE + len(_part_headers(_EVENT, _TYPE, _MESSAGE))


def _is_part(event: bytes) -> bool:
    return (
        event[_PRELUDE:_PART_HEAD] in _PART_HEADERS
        and int.from_bytes(event[4:8], "big") == _PART_HEAD - _PRELUDE
        and zlib.crc32(event[:-4]) == int.from_bytes(event[-4:], "big")
        and zlib.crc32(event[:8]) == int.from_bytes(event[8:12], "big")
    )
