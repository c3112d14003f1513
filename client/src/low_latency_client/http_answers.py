"""Answers of HTTP/1.1, from bytes to status, headers and body: llhttp reads, nothing here sends.

The one reading of HTTP that the clients for callers share. It knows no socket: whoever has one
gives the bytes as they come (:meth:`AnswerReader.feed`) and says when the peer has ended
(:meth:`AnswerReader.end`).
"""

from __future__ import annotations

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from .limits import LARGEST_BODY_BYTES

# Bytes without a byte of a body among them: of heads, of trailers, of a chunk's extensions.
_LARGEST_HEAD = 64 * 1024


class MalformedAnswer(Exception):
    """What came is no answer of HTTP/1.1, or none that a client without an upgrade may take."""


class OversizedAnswer(MalformedAnswer):
    """More than SageMaker answers: it would be as large the next time."""


class AnswerReader:
    """Reads the answers of one connection, one after the other."""

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._expected = False
        self._fields: list[bytes] = []  # names and values in turns
        self._checked = False  # the version, once per connection
        self._problem = ""
        self._left: float = 0  # bytes that the body may still have
        self._stream = False
        self._until_closed = False
        self._without_body = 0
        self.status = 0  # until the answer's head is there; interim answers (1xx) are passed over
        self.headers: dict[str, str] = {}  # names in lower case; repeated ones joined with a comma
        self.parts: list[bytes] = []  # of the body; whoever reads takes them out
        self.started = False  # whether any byte came since expect()
        self.complete = False
        self.keep = True  # whether another request may follow on this connection

    def expect(self, *, stream: bool = False) -> None:
        """Begin with the next answer; a good one of a stream may be of any size."""
        self._expected = True
        self._left = LARGEST_BODY_BYTES
        self._stream = stream
        self._fields = []
        self._without_body = 0
        self.status = 0
        self.headers = {}
        self.parts = []
        self.started = self.complete = False

    def feed(self, data: bytes) -> None:
        """Take bytes as they come.

        What follows the end of an answer is never taken for another one: :attr:`keep` is then
        false, and the answer itself stands, as it would had the rest come a moment later.
        """
        if not self._expected:
            raise MalformedAnswer("bytes that nobody asked for")
        self.started = True
        self._without_body += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._problem = self._problem or str(error)
        if self._without_body > _LARGEST_HEAD and not self.complete:
            self._problem = self._problem or "a head of more than 64 KiB"
        if self._problem:
            self.keep = False
            if not self.complete:
                raise (OversizedAnswer if self._left < 0 else MalformedAnswer)(self._problem)

    def end(self) -> None:
        """Take the peer's end, which is the end of an answer that told no length."""
        self.keep = False
        if self.complete or not self._expected:
            return
        if not self._until_closed or not self.status:
            raise MalformedAnswer(
                "closed before the end of the answer"
                if self.started
                else "closed without an answer"
            )
        self._finish()

    def _finish(self) -> None:
        self.complete = True
        self._expected = False

    # llhttp's calls. What they would raise comes out of feed_data() in several disguises, so they
    # note a problem instead.

    def on_message_begin(self) -> None:
        """llhttp: the first byte of an answer."""
        if not self._expected:
            self._problem = self._problem or "bytes after the answer"

    def on_header(self, name: bytes, value: bytes) -> None:
        """llhttp: a header, or a trailer, which nobody needs."""
        if not self.status:
            self._fields += (name, value)

    def on_headers_complete(self) -> None:
        """llhttp: the end of a head."""
        if self._problem:
            return
        parser = self._parser
        status: int = parser.get_status_code()
        if not self._checked:
            self._checked = True
            if not parser.get_http_version().startswith("1."):
                self._problem = "not HTTP/1.1"
                return
        if status < 200:
            if status < 100 or status == 101:
                self._problem = "a status that no request of ours has"
            self._fields = []
            return  # an interim answer; the real one follows
        # llhttp lets no line end into a name or a value.
        texts = b"\n".join(self._fields).decode("latin-1").split("\n") if self._fields else []
        names = [name.lower() for name in texts[::2]]
        values = [value.strip(" \t") for value in texts[1::2]]
        headers = dict(zip(names, values, strict=True))
        if len(headers) < len(names):
            headers = {
                name: ", ".join(
                    value for key, value in zip(names, values, strict=True) if key == name
                )
                for name in headers
            }
        coding = headers.get("transfer-encoding")
        if coding is not None and coding.lower() != "chunked":
            self._problem = "a transfer coding that nobody asked for"
            return
        self.keep = parser.should_keep_alive()
        self._until_closed = coding is None and "content-length" not in headers
        self.headers = headers
        self.status = status
        if self._stream and status < 300:
            self._left = float("inf")
        elif int(headers.get("content-length", 0)) > self._left:
            self._refuse()

    def on_body(self, data: bytes) -> None:
        """llhttp: a part of the body."""
        self._left -= len(data)
        if self._left < 0:
            self._refuse()
        if self._problem:
            return
        self._without_body = 0
        self.parts.append(data)

    def _refuse(self) -> None:
        self._left = -1
        self._problem = self._problem or "an answer of more than SageMaker's 25 MB"

    def on_message_complete(self) -> None:
        """llhttp: the end of an answer, of an interim one too."""
        if self.status and not self._problem:
            self._finish()
