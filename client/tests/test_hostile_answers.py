"""Whatever is answered: an error that the documentation names, with the words that help, and no wait."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    HTTPClientError,
    ReadTimeoutError,
    ResponseStreamingError,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from low_latency_client import response_streams
from low_latency_client.generations import GenerationCutError, GenerationFailedError

from .callers import PATIENCE, Caller
from .model_stream_server import STOP, event, part, sse, whole, word
from .threaded_server import ScriptedServer

KINDS = ("threads", "asyncio")
MEBIBYTE = b"x" * 1024 * 1024
OK = b"HTTP/1.1 200 OK\r\n"
# Each ends with the connection.
STREAM = OK + b"Content-Type: application/vnd.amazon.eventstream\r\n\r\n"
HTML = OK + b"Content-Type: text/html\r\n\r\n"


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as made:
        yield made


@pytest.fixture
def caller(kind: str, server: ScriptedServer) -> Iterator[Caller]:
    with Caller(kind, url=server.url, retries=1) as made:
        yield made


def read(caller: Caller) -> int:
    """Bytes of a response stream."""
    with closing(caller.stream("e")["Body"]) as stream:
        return sum(len(one["PayloadPart"]["Bytes"]) for one in caller.each(stream))


def generated(caller: Caller) -> str:
    limits = dict.fromkeys(("first_token_timeout", "gap_timeout", "total_timeout"), PATIENCE)
    with closing(caller.call("stream", EndpointName="e", Body=b"{}", **limits)) as generation:
        return "".join(one.text for one in caller.each(generation))


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (OK + b"Content-Length: %d\r\n\r\n" % (26 * 2**20), []),
        (OK + b"Content-Length: 1000000000000000000\r\n\r\n", []),
        (OK + b"\r\n", [MEBIBYTE] * 26),
        (b"HTTP/1.1 503 X\r\n\r\n", [MEBIBYTE] * 26),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", [b"100000\r\n" + MEBIBYTE + b"\r\n"] * 30),
    ],
)
def test_more_than_sagemaker_answers_ends_the_call_and_is_not_asked_for_again(
    caller: Caller, server: ScriptedServer, head: bytes, more: list[bytes]
) -> None:
    server.answer(head, *more)
    with pytest.raises(ResponseStreamingError, match="SageMaker's 25 MB"):
        caller.invoke("e")
    assert server.asked == 1


def test_as_much_as_sagemaker_answers_comes(caller: Caller, server: ScriptedServer) -> None:
    server.answer(OK + b"\r\n", *[MEBIBYTE] * 25)
    assert len(caller.invoke("e")["Body"]) == 25 * 2**20
    piece = part(MEBIBYTE)
    server.answer(STREAM, *[piece] * 30)  # each part may be so large, the whole larger
    assert read(caller) == 30 * 2**20


CUT = part(b"data: {}\n\n")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (STREAM + CUT + CUT[:20], "ended inside an event"),
        (STREAM + CUT[:-1], "ended inside an event"),
        (STREAM + CUT + b"\0", "ended inside an event"),
        (STREAM + CUT[:-4] + b"\0\0\0\7", "ChecksumMismatch"),
        (STREAM + CUT[:8] + b"\0\0\0\0" + CUT[12:], "ChecksumMismatch"),
        (STREAM + b"\x7f\xff\xff\xff" * 4, "ChecksumMismatch"),
        (STREAM + event("exception", "ModelStreamError", b"\xff{")[:-2], "ended inside an event"),
        (HTML + b"<html>Forbidden</html>", "another form, text/html: b'<html>Forbidden"),
        (HTML + b"abcd", "another form, text/html: b'abcd'"),
        (HTML, "another form, text/html"),
        (HTML.replace(b"text/html", b"text/plain") + b'{"label": 1}', "another form, text/plain"),
    ],
)
def test_what_is_no_whole_stream(
    caller: Caller, server: ScriptedServer, answer: bytes, words: str
) -> None:
    server.answer(answer)
    with pytest.raises(ResponseStreamingError, match=words):
        read(caller)
    with pytest.raises((GenerationFailedError, GenerationCutError), match=words):
        generated(caller)


@pytest.mark.parametrize("answer", [STREAM, STREAM + CUT, OK + b"\r\n" + CUT + CUT])
def test_a_whole_stream_is_no_error(caller: Caller, server: ScriptedServer, answer: bytes) -> None:
    server.answer(answer)
    assert read(caller) == 10 * answer.count(CUT)


def error(body: bytes, code: bytes = b"ModelError") -> bytes:
    head = b"HTTP/1.1 424 X\r\nx-amzn-ErrorType: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (code, len(body)) + body


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 100_000,
        b"[]",
        b"7",
        b"null",
        b'{"message": null}',
        b'{"__type": 5}',
        b'{"__type": ["x"]}',
        b"\xff\xfe",
        b'{"OriginalStatusCode": %b}' % (b"9" * 5_000),
        b'{"OriginalStatusCode": "x", "Message": {"a": 1}}',
    ],
)
def test_errors_whose_body_is_none_keep_their_code(
    caller: Caller, server: ScriptedServer, body: bytes
) -> None:
    server.answer(error(body))
    with pytest.raises(caller.client.exceptions.ModelError):
        caller.invoke("e")


@pytest.mark.parametrize("body", [b"", b"{}", b'{"code": {"a": 1}}', b'{"code": ["x"]}', b"5"])
@pytest.mark.parametrize("status", [300, 304, 307, 400, 418, 500, 599, 999])
def test_errors_without_a_code_are_errors(
    caller: Caller, server: ScriptedServer, body: bytes, status: int
) -> None:
    # A retry on a connection that this server is about to end would meet its end.
    head = b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    server.answer(head % (status, len(body)), body)
    with pytest.raises(ClientError):
        caller.invoke("e")


@pytest.mark.parametrize("status", [b"400", b"429", b"503"])
def test_a_throttle_is_not_asked_again(
    caller: Caller, server: ScriptedServer, status: bytes
) -> None:
    """As SageMaker sends it: 400, its code in a header, and no words."""
    server.answer(error(b'{"message": null}', b"ThrottlingException").replace(b"424", status))
    with pytest.raises(ClientError) as raised:
        caller.invoke("e")
    assert raised.value.response["Error"]["Code"] == "ThrottlingException"
    assert server.asked == 1


def test_a_chunk_nested_too_deep_is_no_chunk(caller: Caller, server: ScriptedServer) -> None:
    server.answer(STREAM + part(b"data: " + b"[" * 100_000 + b"\n\n"))
    with pytest.raises(GenerationFailedError, match="another form: data: "):
        generated(caller)


def test_an_event_without_end_ends(caller: Caller, server: ScriptedServer) -> None:
    server.answer(STREAM + part(b"data: "), *[part(MEBIBYTE)] * 26)
    with pytest.raises(GenerationFailedError, match="25 MB without an event"):
        generated(caller)


def test_a_trickling_stream_ends(
    kind: str, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_streams, "LONGEST_STREAM", timedelta(seconds=0.5))
    server.answer(STREAM, *[bytes([one]) for one in part(MEBIBYTE)[:400]])
    server.pause = 0.02
    with Caller(kind, url=server.url) as caller:
        began = time.monotonic()
        with pytest.raises(ReadTimeoutError):
            read(caller)
        assert time.monotonic() - began < 6


VALID = [
    OK + b"Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    error(json.dumps({"Message": "m", "OriginalStatusCode": 500, "LogStreamArn": "a"}).encode()),
    error(b'{"message": null}', b"ThrottlingException"),
    STREAM + b"".join(one for one in whole("Hi", " you") if isinstance(one, bytes)),
    STREAM + part(sse(word("a"))) + event("exception", "ModelStreamError", b'{"Message": "m"}'),
    STREAM + part(b'{"token": {"text": "a"}}\n{"token": {}, "generated_text": "a"}\n'),
    STREAM + part(sse({"choices": [{"message": {"content": "a"}}], "usage": {}}, STOP)),
]
ODD = st.sampled_from(
    [b"\0", b"\xff", b"\r\n", b"\n\n", b":", b"-1", b"9" * 30, b"null", b"[", b"{", b'"', b"0\r\n"]
)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A good answer with some bytes lost, doubled or replaced."""
    answer = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(answer)))
        end = min(len(answer), start + draw(st.integers(0, 12)))
        new = draw(st.one_of(ODD, st.binary(max_size=4), st.just(answer[start:end] * 2)))
        answer = answer[:start] + new + answer[end:]
    return answer


@settings(max_examples=150, deadline=None)
@given(answer=mutated())
@example(answer=VALID[0])
def test_only_documented_errors_come_out(kind: str, answer: bytes) -> None:
    server = _SERVERS.setdefault("one", ScriptedServer())
    if not server.url:
        server.__enter__()
    caller = _CALLERS.get(kind) or _CALLERS.setdefault(
        kind, Caller(kind, url=server.url, retries=0, read_timeout=timedelta(seconds=5))
    )
    server.answer(answer)
    for method in (lambda one: one.invoke("e"), read, generated):
        began = time.monotonic()
        with suppress(ClientError, HTTPClientError):
            method(caller)
        assert time.monotonic() - began < 20


_SERVERS: dict[str, ScriptedServer] = {}
_CALLERS: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    yield
    for caller in _CALLERS.values():
        caller.close()
    for server in _SERVERS.values():
        server.__exit__()
