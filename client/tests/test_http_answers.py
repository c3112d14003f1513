"""Answers of HTTP/1.1 byte by byte: what is one, what is none, and where it ends."""

from __future__ import annotations

import http.client
import io
import itertools
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from low_latency_client.http_answers import AnswerReader, MalformedAnswer

OK = b"HTTP/1.1 200 OK\r\n"


def read(data: bytes, *, end: bool = False) -> AnswerReader:
    reader = AnswerReader()
    reader.expect()
    if data:
        reader.feed(data)
    if end:
        reader.end()
    return reader


def pieces(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


@pytest.mark.parametrize(
    ("data", "status", "body", "keep"),
    [
        (OK + b"Content-Length: 2\r\n\r\nab", 200, b"ab", True),
        (OK + b"Content-Length: 2\r\nConnection: close\r\n\r\nab", 200, b"ab", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", 200, b"ab", False),
        (b"HTTP/1.1 204 No\r\n\r\n", 204, b"", True),
        (b"HTTP/1.1 304 No\r\nContent-Length: 7\r\n\r\n", 304, b"", True),
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", 503, b"", True),
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n"
            + OK
            + b"Content-Length: 2\r\n\r\nab",
            200,
            b"ab",
            True,
        ),
        (
            OK + b"Transfer-Encoding: chunked\r\n\r\n1;x=y\r\na\r\n1\r\nb\r\n0\r\nT: 1\r\n\r\n",
            200,
            b"ab",
            True,
        ),
        (OK + b"Transfer-Encoding: chunked \r\n\r\n1\r\na\r\n0\r\n\r\n", 200, b"a", True),
        # What follows is no answer to anything.
        (
            OK + b"Content-Length: 2\r\n\r\nab" + OK + b"Content-Length: 1\r\n\r\nx",
            200,
            b"ab",
            False,
        ),
        (OK + b"Content-Length: 2\r\n\r\nabH", 200, b"ab", False),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nx", 200, b"ab", False),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_good_answers(data: bytes, status: int, body: bytes, keep: bool, at_once: bool) -> None:
    reader = AnswerReader()
    reader.expect()
    for piece in [data] if at_once else [data[at : at + 1] for at in range(len(data))]:
        if reader.complete and not at_once:
            with pytest.raises(MalformedAnswer):
                reader.feed(piece)
            keep = reader.keep
            break
        reader.feed(piece)
    assert (reader.status, b"".join(reader.parts), reader.complete) == (status, body, True)
    assert reader.keep is keep


@pytest.mark.parametrize("status", [b"200 OK", b"205 Reset"])
def test_an_answer_without_a_length_ends_with_the_connection(status: bytes) -> None:
    reader = read(b"HTTP/1.1 " + status + b"\r\n\r\nall of it")
    assert not reader.complete
    reader.end()
    assert (b"".join(reader.parts), reader.complete, reader.keep) == (b"all of it", True, False)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/2.0 200 OK\r\n\r\n",
        b"HTTP/0.9 200 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"POST / HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n" + OK + b"\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"A : b\r\n\r\n",
        OK + b"A: b\r\n c\r\n\r\n",
        OK + b"A: \x00\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Content-Length: many\r\n\r\n",
        OK + b"Content-Length: 1, 1\r\n\r\na",
        OK + b"Content-Length: 99999999999999999999999\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\na",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: gzip\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        b"x" * 70_000,
        OK + b"A: " + b"x" * 70_000,
        OK + b"A: b\r\n" * 20_000,
        b"HTTP/1.1 103 Hints\r\n\r\n" * 5_000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 70_000,
    ],
)
def test_what_is_no_answer(data: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 2",
        OK + b"Content-Length: 2\r\n\r\na",
        OK + b"A: b\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        b"HTTP/1.1 103 Hints\r\n\r\n",
    ],
)
def test_an_answer_that_ends_too_soon(data: bytes) -> None:
    with pytest.raises(MalformedAnswer):
        read(data, end=True)


def test_bytes_before_any_request() -> None:
    with pytest.raises(MalformedAnswer):
        AnswerReader().feed(b"H")
    reader = read(OK + b"Content-Length: 0\r\n\r\n")
    with pytest.raises(MalformedAnswer):
        reader.feed(b"\r\n")


def test_headers() -> None:
    reader = read(OK + b"X-A:  1 \r\nx-a:2\r\nB:\r\nCafe: \xe9\r\nContent-Length: 0\r\n\r\n")
    assert reader.headers == {"x-a": "1, 2", "b": "", "cafe": "é", "content-length": "0"}


NAMES = st.sampled_from([b"X-A", b"x-b", b"Content-Type", b"Date"])
VALUES = st.binary(max_size=20).filter(
    lambda value: all(byte == 9 or 32 <= byte < 127 or byte >= 128 for byte in value)
)


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """An answer as some server may write it, and its body."""
    head = [b"%b: %b\r\n" % pair for pair in draw(st.lists(st.tuples(NAMES, VALUES), max_size=4))]
    parts = draw(st.lists(st.binary(min_size=1, max_size=50), max_size=4))
    body = b"".join(parts)
    if draw(st.booleans()):
        head.append(b"Content-Length: %d\r\n" % len(body))
        sent = body
    else:
        head.append(
            draw(
                st.sampled_from(
                    [b"Transfer-Encoding: chunked\r\n", b"transfer-encoding:Chunked\r\n"]
                )
            )
        )
        extension = draw(st.sampled_from([b"", b";a", b';a="b c"']))
        sent = b"".join(b"%X%b\r\n%b\r\n" % (len(part), extension, part) for part in parts)
        sent += b"0\r\n" + draw(st.sampled_from([b"", b"X-Trailer: 1\r\n"])) + b"\r\n"
    interim = draw(st.sampled_from([b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"]))
    return interim + OK + b"".join(draw(st.permutations(head))) + b"\r\n" + sent, body


@settings(max_examples=200)
@given(made=st.lists(answers(), min_size=1, max_size=3), places=st.lists(st.integers(0, 900)))
def test_answers_one_after_the_other_in_any_pieces(
    made: list[tuple[bytes, bytes]], places: list[int]
) -> None:
    reader = AnswerReader()
    for data, body in made:
        reader.expect()
        for piece in pieces(data, places):
            assert not reader.complete
            reader.feed(piece)
        assert reader.complete
        assert (reader.status, b"".join(reader.parts), reader.keep) == (200, body, True)


@settings(max_examples=400)
@given(
    made=answers(),
    edits=st.lists(
        st.tuples(
            st.integers(0, 400),
            st.sampled_from(["drop", "put", "cut", "twice"]),
            st.binary(min_size=1, max_size=3)
            | st.sampled_from([b"\r", b"\n", b"\r\n", b":", b" "]),
        ),
        min_size=1,
        max_size=3,
    ),
    places=st.lists(st.integers(0, 400), max_size=4),
)
@example(
    made=(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", b"a"),
    edits=[(len(OK) + 26, "put", b" ")],  # behind "chunked"
    places=[],
)
def test_a_damaged_answer_is_an_error_or_what_http_client_reads(
    made: tuple[bytes, bytes], edits: list[tuple[int, str, bytes]], places: list[int]
) -> None:
    """Never another exception; and where both readers take it, never another body."""
    data = made[0]
    for place, kind, more in edits:
        at = place % (len(data) + 1)
        if kind == "drop":
            data = data[:at] + data[at + 1 :]
        elif kind == "put":
            data = data[:at] + more + data[at:]
        elif kind == "cut":
            data = data[:at]
        else:
            data = data[:at] + data[max(0, at - 9) :]
    reader = AnswerReader()
    reader.expect()
    try:
        for piece in pieces(data, places):
            if reader.complete:
                break
            reader.feed(piece)
        reader.end()
    except MalformedAnswer:
        return
    assert reader.complete
    found = _standard_library(data)
    if found is not None:
        assert (reader.status, b"".join(reader.parts)) == found


# http.client takes blanks at a value's end for a part of it, and "chunked " for no coding that it knows.
# They are none: RFC 9112, section 5.
_BLANKS_AT_THE_END = re.compile(rb"(?im)^(transfer-encoding:[^\r\n]*?)[ \t]+(?=\r?$)")


def _standard_library(data: bytes) -> tuple[int, bytes] | None:
    """Status and body as ``http.client`` reads them; ``None`` where it reads none or another."""
    data = _BLANKS_AT_THE_END.sub(rb"\1", data)

    class Socket:
        def makefile(self, _: str) -> io.BytesIO:
            return io.BytesIO(data)

    answer = http.client.HTTPResponse(Socket(), method="POST")  # type: ignore[arg-type]
    try:
        answer.begin()
        body = answer.read()
    except (http.client.HTTPException, ValueError, OSError):
        return None
    # 103 is its final answer, and it takes lines that llhttp refuses for the end of the head.
    return (answer.status, body) if answer.status >= 200 and not answer.headers.defects else None


@settings(max_examples=300)
@given(data=st.binary(max_size=300) | st.binary(max_size=100).map(lambda rest: OK + rest))
def test_any_bytes_at_all(data: bytes) -> None:
    try:
        read(data, end=True)
    except MalformedAnswer:
        return
