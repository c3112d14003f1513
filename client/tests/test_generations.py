"""Generations streamed by both clients: tokens, limits, faults, and no generation begun twice."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from low_latency_client import ConfigurationError
from low_latency_client.generations import (
    GenerationCutError,
    GenerationFailedError,
    GenerationTimeoutError,
)
from low_latency_client.timing import ClientCounts

from .callers import PATIENCE, Caller
from .model_stream_server import (
    CUT,
    HANG,
    ROLE,
    STOP,
    USAGE,
    ModelStreamServer,
    event,
    part,
    sse,
    whole,
    word,
)

KINDS = ("threads", "asyncio")
SHORT = timedelta(milliseconds=400)  # a limit that is meant
MESSAGES = [{"role": "user", "content": "Tell me"}]
# Comments and empty chunks keep a connection alive, not a generation.
PINGS = [part(b": ping\n\n"), 0.1] * 100


@dataclass
class Outcome:
    """What a caller saw of its generations, one after the other."""

    texts: list[str] = field(default_factory=list)
    error: Exception | None = None
    generations: list[Any] = field(default_factory=list)
    counts: ClientCounts = field(default_factory=ClientCounts)


Call = Callable[..., Outcome]


def asked(given: dict[str, Any]) -> dict[str, Any]:
    limits = dict.fromkeys(("first_token_timeout", "gap_timeout", "total_timeout"), PATIENCE)
    return {"EndpointName": "chat", "Body": {"messages": MESSAGES}, **limits, **given}


def generate(
    kind: str,
    server: ModelStreamServer,
    *,
    client: dict[str, Any] | None = None,
    times: int = 1,
    leave_after: int | None = None,
    pause: float = 0.0,
    **more: Any,
) -> Outcome:
    seen = Outcome()
    with Caller(kind, url=server.url, **(client or {})) as caller:
        seen.counts = caller.client.counts
        try:
            for _ in range(times):
                generation = caller.call("stream", **asked(more))
                seen.generations.append(generation)
                with closing(generation):
                    for one in caller.each(generation):
                        seen.texts.append(one.text)
                        if pause:
                            caller.rest(pause)
                        if len(seen.texts) == leave_after:
                            break
        except Exception as error:
            seen.error = error
    return seen


@pytest.fixture
def call(kind: str) -> Call:
    """Generations of one client."""
    return partial(generate, kind)


def test_a_whole_generation(call: Call) -> None:
    with ModelStreamServer(whole("Once", " upon", " a time")) as server:
        seen = call(server)
    assert (seen.texts, seen.error) == (["Once", " upon", " a time"], None)
    (made,) = seen.generations
    assert made.usage == USAGE["usage"]
    assert (made.tokens, made.finish_reason) == (7, "stop")
    assert timedelta(0) < made.time_to_first_token < PATIENCE
    assert made.response["ContentType"] == "text/event-stream"
    ((head, body),) = server.requests
    assert b"/endpoints/chat/invocations-response-stream " in head
    assert b"Content-Type: application/json\r\n" in head
    # What the router looks at first stays first.
    assert body.startswith(b'{"messages": ')
    assert json.loads(body)["stream"] is True
    assert json.loads(body)["stream_options"] == {"include_usage": True}


def test_the_connection_is_kept_for_the_next(call: Call) -> None:
    with ModelStreamServer(whole("a", "b")) as server:
        seen = call(server, times=3)
    assert seen.texts == ["a", "b"] * 3
    assert (server.connections, server.finished) == (1, 3)


@pytest.mark.parametrize("before", [[part(sse(ROLE)), 0.5], [0.5]], ids=["role", "head"])
def test_the_first_token_counts_from_the_sending_to_the_content(
    call: Call, before: list[Any]
) -> None:
    """Half a second after the role, or before the head of the answer."""
    with ModelStreamServer([*before, *whole("a")]) as server:
        seen = call(server)
    assert seen.texts == ["a"]
    assert seen.generations[0].time_to_first_token >= timedelta(seconds=0.45)


def test_without_usage_chunks_with_content_are_counted(call: Call) -> None:
    tool = {"choices": [{"delta": {"tool_calls": [{"index": 0}]}, "finish_reason": None}]}
    with ModelStreamServer([part(sse(ROLE, word("a"), tool, STOP, "[DONE]"))]) as server:
        seen = call(server)
    assert seen.texts == ["a", ""]
    assert seen.generations[0].tokens == 2


@pytest.mark.parametrize(
    ("script", "limits", "limit", "tokens"),
    [
        ([HANG], {"first_token_timeout": SHORT}, "first_token_timeout", 0),
        ([part(sse(ROLE)), HANG], {"first_token_timeout": SHORT}, "first_token_timeout", 0),
        ([part(sse(ROLE)), *PINGS], {"first_token_timeout": SHORT}, "first_token_timeout", 0),
        ([part(sse(word("a"), word("b"))), HANG], {"gap_timeout": SHORT}, "gap_timeout", 2),
        ([part(sse(word("a"), word("b"))), *PINGS], {"gap_timeout": SHORT}, "gap_timeout", 2),
        ([HANG], {"total_timeout": SHORT}, "total_timeout", 0),
    ],
)
def test_a_limit_says_which_it_is_and_what_had_come(
    call: Call, script: Sequence[Any], limits: dict[str, Any], limit: str, tokens: int
) -> None:
    with ModelStreamServer(script) as server:
        seen = call(server, **limits)
        server.wait_for_hang_ups(1)
    assert isinstance(seen.error, GenerationTimeoutError)
    assert isinstance(seen.error, ReadTimeoutError)
    assert (seen.error.limit, seen.error.seconds, seen.error.tokens) == (limit, 0.4, tokens)
    assert str(seen.error).startswith(f"{limit} of 0.4 s passed; {tokens} tokens had come")
    assert len(seen.texts) == tokens
    assert len(server.requests) == 1


def test_the_total_ends_a_generation_that_never_pauses(call: Call) -> None:
    with ModelStreamServer([part(sse(word("a"))), 0.05] * 400) as server:
        seen = call(server, total_timeout=timedelta(seconds=1))
        server.wait_for_hang_ups(1)
    assert isinstance(seen.error, GenerationTimeoutError)
    assert seen.error.limit == "total_timeout"
    assert seen.error.tokens == len(seen.texts)


def test_a_slow_caller_is_no_gap(call: Call) -> None:
    """Its pauses add up to more than the gap; each word is there when it asks for it."""
    words = [step for one in "abcd" for step in (part(sse(word(one))), 0.4)]
    with ModelStreamServer([*words, part(sse(STOP, "[DONE]"))]) as server:
        seen = call(server, pause=0.5, gap_timeout=timedelta(seconds=1))
    assert (seen.texts, seen.error) == (["a", "b", "c", "d"], None)


def test_the_clients_read_timeout_is_for_other_calls(call: Call) -> None:
    """0.2 s of silence end a call, but no generation whose limits are wider."""
    pauses = [0.6, part(sse(ROLE)), 0.6, part(sse(word("a"))), 0.6, part(sse(STOP, "[DONE]"))]
    with ModelStreamServer(pauses) as server:
        seen = call(server, client={"read_timeout": timedelta(milliseconds=200)})
    assert (seen.texts, seen.error) == (["a"], None)


def test_after_a_generation_the_read_timeout_is_back(kind: str) -> None:
    quick = {"read_timeout": timedelta(milliseconds=300), "retries": 0}
    with (
        ModelStreamServer(whole("a"), [HANG]) as server,
        Caller(kind, url=server.url, **quick) as caller,
    ):
        with closing(caller.call("stream", **asked({}))) as generation:
            assert [one.text for one in caller.each(generation)] == ["a"]
        began = time.monotonic()
        with pytest.raises(ReadTimeoutError):
            caller.invoke("e")
        assert time.monotonic() - began < 15
        assert server.connections == 1


@pytest.mark.parametrize(
    "script",
    [
        [part(sse(word("a"), word("b"))), CUT],
        [part(sse(word("a"), word("b")))],  # the answer ends well, the generation does not
        [part(sse(word("a"), word("b"))), part(b'data: {"choi')],
        [part(sse(word("a"), word("b"), STOP) + b"data: [DO")],
    ],
)
def test_a_cut_stream_is_an_error_after_its_tokens(call: Call, script: Sequence[Any]) -> None:
    with ModelStreamServer(script) as server:
        seen = call(server, Idempotent=True)
    assert isinstance(seen.error, GenerationCutError)
    assert isinstance(seen.error, ConnectionClosedError)
    assert seen.error.tokens == 2
    assert seen.texts == ["a", "b"]
    assert len(server.requests) == 1  # repeatable or not: the caller has tokens of it


ENDED = {"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop"}]}
LMI = b'{"token": {"id": 1, "text": "a"}}\n{"token": {"id": 2, "text": "b"}, "generated_text": "ab"'
TGI_END = {
    "token": {"text": "</s>", "special": True},
    "generated_text": "ab",
    "details": {"finish_reason": "eos_token", "generated_tokens": 3},
}


@pytest.mark.parametrize(
    ("stream", "reason", "tokens"),
    [
        # A last event without its empty line, or without any end.
        (sse(ROLE, word("a"), word("b"), STOP) + b"data: [DONE]", "stop", 2),
        (sse(ROLE, word("a"), word("b"), STOP) + b"data: [DONE]\n", "stop", 2),
        (sse(ROLE, word("a"), word("b"), STOP), "stop", 2),
        (sse(word("a"), ENDED)[:-1], "stop", 2),
        (sse(ROLE, {"choices": [{**word("a")["choices"][0], "message": None}]}, ENDED), "stop", 2),
        (sse(word("a"), ENDED)[:-2], "stop", 2),
        (sse(word("a"), ENDED) + b": a comm", "stop", 2),
        (sse(word("a"), ENDED).replace(b"\n", b"\r\n")[:-2], "stop", 2),
        # Of LMI, with or without its details and its last line's end.
        (LMI + b', "details": {"finish_reason": "length", "generated_tokens": 9}}\n', "length", 9),
        (LMI + b"}\n", "unknown", 2),
        (LMI + b"}", "unknown", 2),
        # Of TGI, whose special tokens are no text.
        (
            b"".join(
                b"data:" + json.dumps(one).encode() + b"\n\n"
                for one in ({"token": {"text": "a"}}, {"token": {"text": "b"}}, TGI_END)
            ),
            "eos_token",
            3,
        ),
        # Of servers that do not stream.
        (b'{"choices": [{"message": {"content": "ab"}, "finish_reason": "length"}]}', "length", 1),
        (b'{"choices": [{"message": {"content": "ab"}}], "usage": {"completion_tokens": 2}}\n',
         "unknown", 2),
        (b'{"choices": [{"text": "ab", "finish_reason": "stop"}]}', "stop", 1),
        (b'{"generated_text": "ab"}', "unknown", 1),
    ],
)  # fmt: skip
@pytest.mark.parametrize("size", [1, 10_000])
def test_whole_answers_of_each_form(
    call: Call, stream: bytes, reason: str, tokens: int, size: int
) -> None:
    parts = [part(stream[at : at + size]) for at in range(0, len(stream), size)]
    with ModelStreamServer([b"".join(parts)]) as server:
        seen = call(server)
    assert ("".join(seen.texts), seen.error) == ("ab", None)
    (made,) = seen.generations
    assert (made.finish_reason, made.tokens) == (reason, tokens)


@pytest.mark.parametrize(
    "stream",
    [
        b'{"label": "POSITIVE", "score": 0.9}',
        b'[{"generated_text": "a"}]',
        b"[[0.1, 0.2]]",
        b"Once upon a time",
        b"<html>Forbidden</html>",
        b'data: {"event": "ping"}\n\n',
        b"\x93NUMPY\x01\0v\0",
    ],
)
def test_an_answer_of_another_form_is_named(call: Call, stream: bytes) -> None:
    with ModelStreamServer([part(stream)]) as server:
        seen = call(server)
    assert isinstance(seen.error, GenerationFailedError)
    begun = stream[:60].decode(errors="replace")
    assert seen.error.response["Error"]["Message"] == f"an answer of another form: {begun}"


@pytest.mark.parametrize(
    ("stream", "words"),
    [
        (b'data:{"token": {"text": "a"}}\n\n' * 3, 'another form: data:{"token"'),
        (b'{"token": {"text": "a"}}\n', 'another form: {"token"'),
        (b'{"token": {"text": "a"}}\n{"token": {"te', "inside an event"),
        (sse(word("a")) + b'data: {"choices": [{"delta', "inside an event"),
        (sse(word("a"), ENDED) + b'data: {"choices": [], "usage"', "inside an event"),
        (sse({"choices": [{"index": n, "delta": {"content": "a"}} for n in (0, 1)]}, STOP), "nor"),
    ],
)
def test_a_stream_without_its_end(call: Call, stream: bytes, words: str) -> None:
    """Of two choices one that goes on has none either."""
    with ModelStreamServer([part(stream)]) as server:
        seen = call(server)
    assert isinstance(seen.error, GenerationCutError)
    assert words in str(seen.error)
    assert seen.texts


@pytest.mark.parametrize(
    "ending", [[part(sse(STOP))], [part(sse("[DONE]"))], [part(sse("[DONE]")), CUT]]
)
def test_a_finish_reason_or_done_ends_it(call: Call, ending: list[Any]) -> None:
    with ModelStreamServer([part(sse(word("a"))), *ending]) as server:
        seen = call(server)
    assert (seen.texts, seen.error) == (["a"], None)


def test_after_done_nobody_waits_for_the_server(call: Call) -> None:
    with ModelStreamServer([part(sse(word("a"), "[DONE]")), HANG]) as server:
        seen = call(server)
        server.wait_for_hang_ups(1)
    assert (seen.texts, seen.error) == (["a"], None)


LMI_ERROR = {"token": {"text": ""}, "details": {"finish_reason": "error"}}
STREAM_ERROR = json.dumps({"Message": "worker died", "ErrorCode": "500"}).encode()


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (event("exception", "ModelStreamError", STREAM_ERROR), "ModelStreamError"),
        (event("exception", "InternalStreamFailure", STREAM_ERROR), "InternalStreamFailure"),
        (part(sse({"error": {"message": "worker died", "code": 500}})), "500"),
        (part(sse({"object": "error", "message": "worker died", "type": "Down"})), "Down"),
        (part(sse({**LMI_ERROR, "error": "worker died"})), "error"),
        (part(sse({"error": "worker died", "error_type": "generation"})), "Unknown"),
        (part(sse("worker died")), "NoChunk"),
        (part(sse(["worker died"])), "NoChunk"),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_an_error_in_the_middle_comes_after_its_tokens(
    call: Call, end: bytes, code: str, together: bool
) -> None:
    words = part(sse(ROLE, word("a"), word("b")))
    with ModelStreamServer([words + end] if together else [words, 0.05, end]) as server:
        seen = call(server)
    assert isinstance(seen.error, GenerationFailedError)
    assert seen.error.response["Error"]["Code"] == code
    assert seen.error.tokens == 2
    assert "2 tokens had come" in str(seen.error)
    assert seen.texts == ["a", "b"]
    assert ("worker died" in str(seen.error)) is (code != "NoChunk")  # content is not told


def test_an_error_in_place_of_tokens(call: Call) -> None:
    with ModelStreamServer([event("exception", "ModelStreamError", STREAM_ERROR)]) as server:
        seen = call(server)
    assert isinstance(seen.error, GenerationFailedError)
    assert (seen.error.tokens, seen.texts) == (0, [])


def test_a_failed_generation_holds_no_connection(kind: str) -> None:
    """Seen while the client lives, whose end would close all."""
    script = [event("exception", "ModelStreamError", STREAM_ERROR), HANG]
    kept: list[BaseException] = []
    with ModelStreamServer(script) as server, Caller(kind, url=server.url) as caller:
        try:
            caller.call("stream", **asked({}))
        except GenerationFailedError as error:
            kept.append(error)  # with its traceback, so that no garbage collection closes it
        assert len(kept) == 1
        caller.rest()
        server.wait_for_hang_ups(1)


@pytest.mark.parametrize("script", [[CUT], 503])
def test_what_was_sent_is_not_sent_again_unless_the_call_says_so(call: Call, script: Any) -> None:
    with ModelStreamServer(script, whole("a")) as server:
        seen = call(server)
    assert isinstance(seen.error, (ConnectionClosedError, ClientError))
    assert len(server.requests) == 1
    with ModelStreamServer(script, whole("a")) as server:
        seen = call(server, Idempotent=True)
    assert (seen.texts, seen.error) == (["a"], None)
    assert len(server.requests) == 2
    assert seen.counts.retries == 1


def test_after_the_head_nothing_is_sent_again(call: Call) -> None:
    with ModelStreamServer([part(sse(ROLE)), CUT], whole("a")) as server:
        seen = call(server, Idempotent=True)
    assert isinstance(seen.error, GenerationCutError)
    assert len(server.requests) == 1


def test_leaving_hangs_up(call: Call) -> None:
    with ModelStreamServer([part(sse(word("a"))), HANG]) as server:
        seen = call(server, leave_after=1)
        server.wait_for_hang_ups(1)
    assert (seen.texts, seen.error) == (["a"], None)


def test_conversations_reach_the_router_as_hashes(call: Call) -> None:
    def sent(**more: Any) -> str | None:
        with ModelStreamServer(whole("a")) as server:
            assert call(server, **more).error is None
        lines = server.requests[0][0].decode().split("\r\n")
        found = [line for line in lines if line.startswith("X-Amzn-SageMaker-Prefix-Aware-Id: ")]
        return found[0].partition(": ")[2] if found else None

    named = sent(conversation="Ada's, of Monday")
    assert named is not None
    assert len(named) == 32
    int(named, 16)
    assert sent(conversation="Ada's, of Monday") == named
    assert sent(conversation="Ada's, of Tuesday") != named
    assert sent(PrefixAwareId="shop") == "shop"
    assert sent() is None


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"conversation": ""}, "LLC115"),
        ({"conversation": "a", "PrefixAwareId": "b"}, "LLC115"),
        ({"Body": {"messages": [], "stream": False}}, "LLC114"),
        ({"hedge_generations": True}, "LLC116"),
        ({"SessionId": "NEW_SESSION"}, "LLC118"),
        ({"gap_timeout": timedelta(0)}, "LLC101"),
        ({"first_token_timeout": 5}, "LLC125"),
    ],
)
def test_mistakes_are_told_before_anything_is_sent(
    call: Call, more: dict[str, Any], code: str
) -> None:
    with ModelStreamServer(whole("a")) as server:
        seen = call(server, **more)
    assert isinstance(seen.error, ConfigurationError)
    assert seen.error.code == code
    assert server.requests == []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_parts_cut_anywhere_give_the_same_tokens(data: st.DataObject) -> None:
    """Server-sent events cut into parts, and the parts' bytes cut into HTTP's chunks."""
    words = data.draw(st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=6))
    words = [one.encode(errors="replace").decode() for one in words]  # lone surrogates
    stream = sse(ROLE, *(word(one) for one in words), STOP, USAGE, "[DONE]")
    wire = b"".join(part(piece) for piece in _pieces(data, stream))
    with ModelStreamServer(_pieces(data, wire)) as server:
        seen = generate("threads", server)
    assert (seen.texts, seen.error) == (words, None)
    assert seen.generations[0].tokens == 7


def _pieces(data: st.DataObject, whole_bytes: bytes) -> list[bytes]:
    cuts = data.draw(st.lists(st.integers(1, len(whole_bytes) - 1), max_size=8, unique=True))
    edges = [0, *sorted(cuts), len(whole_bytes)]
    return [whole_bytes[edges[at] : edges[at + 1]] for at in range(len(edges) - 1)]
