"""Server-sent events, the form in which language models stream: bytes in, data payloads out.

Neither HTTP's chunks nor the parts of a SageMaker response stream end where an event ends, so the
reader takes bytes cut anywhere, inside a character too.
"""

from __future__ import annotations

__all__ = ["ServerSentEvents"]

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
