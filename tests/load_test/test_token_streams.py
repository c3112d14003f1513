"""Streams of tokens: as bytes come, over a socket, how they fail, and the OpenAI-compatible path."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from statistics import median
from typing import Any

import boto3
import gevent
import pytest
from botocore.eventstream import ChecksumMismatch, EventStreamBuffer, InvalidPayloadLength
from hypothesis import given
from hypothesis import strategies as st

from local_sagemaker.runtime.answers import exception_event, payload_part
from low_latency_endpoint.load_test.engine.invoking import EventParts, SageMakerInvoker
from low_latency_endpoint.load_test.engine.measurement import Invocation
from low_latency_endpoint.load_test.engine.target import OPENAI, Target, TokenLimits
from low_latency_endpoint.load_test.engine.token_streams import (
    ENDED_EARLY,
    MALFORMED,
    TokenReader,
    TokenTimes,
)
from tests.refusals import refused

from .servers import Scripted, said_by, served_by


def sse(*documents: Any) -> bytes:
    """Server-sent events with these data."""
    return b"".join(
        b"data: %b\n\n" % (each if isinstance(each, bytes) else json.dumps(each).encode())
        for each in documents
    )


def delta(**content: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": content, "finish_reason": None}]}


ROLE = delta(role="assistant", content="")
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]}
USAGE = {
    "choices": [],
    "usage": {
        "prompt_tokens": 12,
        "completion_tokens": 6,
        "prompt_tokens_details": {"cached_tokens": 8},
    },
}
DONE = b"[DONE]"


def read(*timed: tuple[float, bytes]) -> TokenReader:
    reader = TokenReader()
    for now, data in timed:
        reader.feed(data, now)
    return reader


def test_the_role_is_no_token_and_the_usage_counts_them() -> None:
    reader = read(
        (1.0, sse(ROLE)),
        (1.5, sse(delta(content="Once"))),
        (1.6, sse(delta(content=" upon a"))),
        (1.9, sse(delta(content=" time")) + sse(END, USAGE, DONE)),
    )
    assert reader.end() is None
    times = reader.times()
    assert (times.first, times.last) == (1.5, 1.9)
    assert times.gaps == pytest.approx([0.1, 0.3])
    assert (times.output_tokens, times.prompt_tokens, times.cached_tokens) == (6, 12, 8)
    assert times.counted
    # Six tokens in 0.4 s after the first: five of them followed.
    assert times.per_token == pytest.approx(0.08)


def test_without_usage_chunks_with_content_are_counted() -> None:
    reader = read((1.0, sse(ROLE, delta(content="a"))), (1.2, sse(delta(content="b"), END)))
    assert reader.end() is None
    times = reader.times()
    assert (times.output_tokens, times.counted) == (2, False)
    assert times.per_token == pytest.approx(0.2)


@pytest.mark.parametrize(
    "content",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"refusal": "no"},
    ],
)
def test_what_the_model_made_is_a_token_whatever_it_is_for(content: dict[str, Any]) -> None:
    reader = read((2.0, sse(delta(content=None, **content), END)))
    assert reader.times().first == 2.0


@pytest.mark.parametrize(
    "empty", [{"content": ""}, {"content": None}, {"role": "assistant"}, {"tool_calls": []}]
)
def test_an_empty_chunk_is_no_token(empty: dict[str, Any]) -> None:
    reader = read((1.0, sse(delta(**empty))), (2.0, sse(delta(content="x"), END)))
    assert (reader.times().first, reader.times().gaps) == (2.0, [])


def test_several_tokens_in_one_arrival_have_no_gap_between_them() -> None:
    reader = read(
        (1.0, sse(delta(content="a"), delta(content="b"))), (1.3, sse(delta(content="c"), END))
    )
    assert reader.times().gaps == pytest.approx([0.0, 0.3])


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"error": {"message": "no blocks", "type": "InternalServerError"}}, "InternalServerError"),
        ({"error": {"message": "no blocks", "code": 500}}, "500"),
        ({"object": "error", "message": "no blocks", "type": "BadRequestError"}, "BadRequestError"),
        ({"error": "no blocks", "error_type": "overloaded"}, "overloaded"),
    ],
)
def test_an_error_in_the_middle_is_told_by_its_kind(document: dict[str, Any], kind: str) -> None:
    reader = read((1.0, sse(delta(content="a"))), (1.1, sse(document, DONE)))
    problem = reader.end()
    assert problem[0] == f"stream {kind}"
    assert "no blocks" in problem[1]
    assert reader.times().first == 1.0, "what came before it came"


@pytest.mark.parametrize(
    "begun", [sse(ROLE), sse(delta(content="a")), sse(delta(content="a"), USAGE)]
)
def test_a_stream_without_its_end_has_ended_early(begun: bytes) -> None:
    reader = read((1.0, begun))
    problem = reader.end()
    assert problem[0] == ENDED_EARLY


def test_what_is_no_json_is_malformed() -> None:
    problem = read((1.0, sse(b"{'single': 'quotes'}", DONE))).end()
    assert problem[0] == MALFORMED


def test_lines_of_json_as_tgi_and_lmi_write_them() -> None:
    lines = (
        b'{"token": {"id": 1, "text": ""}}\n{"token": {"id": 2, "text": " a"}}\n',
        b'{"token": {"id": 3, "text": " b"}, "generated_text": " a b", '
        b'"details": {"finish_reason": "length", "generated_tokens": 3, "input_length": 9}}',
    )
    reader = read((1.0, lines[0]), (1.5, lines[1]))
    assert reader.end() is None
    times = reader.times()
    assert (times.first, times.output_tokens, times.prompt_tokens) == (1.0, 3, 9)


def test_the_last_line_needs_no_end_but_its_finish() -> None:
    reader = read((1.0, b'{"token": {"text": " a"}}\n'))
    problem = reader.end()
    assert problem[0] == ENDED_EARLY


def test_parts_of_any_other_stream_count_one_by_one() -> None:
    reader = read((1.0, b"Once"), (1.2, b" upon"), (1.5, b" a time"))
    assert reader.end() is None
    assert reader.times().output_tokens == 3
    assert reader.times().gaps == pytest.approx([0.2, 0.3])


def test_a_short_text_that_could_have_become_an_event_is_one_part() -> None:
    reader = read((1.0, b"da"))
    assert reader.end() is None
    assert reader.times().output_tokens == 1


def test_a_whole_answer_is_one_chunk_of_many_tokens() -> None:
    whole = {
        "choices": [{"message": {"content": "Once upon a time"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    }
    reader = read((1.0, json.dumps(whole).encode()))
    assert reader.end() is None
    assert (reader.times().output_tokens, reader.times().gaps) == (4, [])


@given(st.data())
def test_cuts_anywhere_change_nothing_but_the_moment(data: st.DataObject) -> None:
    tokens = data.draw(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=6))
    stream = sse(ROLE, *(delta(content=token) for token in tokens), END, USAGE, DONE)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    reader = TokenReader()
    edges = [0, *cuts, len(stream)]
    for moment, (start, end) in enumerate(itertools.pairwise(edges)):
        reader.feed(stream[start:end], float(moment))
    assert reader.end() is None
    times = reader.times()
    assert len(times.gaps) == len(tokens) - 1
    # A token comes when its event's last byte does.
    for count, time in ((1, times.first), (len(tokens), times.last)):
        end = len(sse(ROLE, *(delta(content=token) for token in tokens[:count])))
        assert time == next(moment for moment, edge in enumerate(edges[1:]) if edge >= end)


@given(st.data())
def test_payload_parts_cut_anywhere_are_those_that_were_sent(data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.binary(max_size=40), max_size=8))
    stream = b"".join(map(payload_part, parts))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    others: list[bytes] = []

    def other(event: bytes) -> list[bytes]:
        others.append(event)
        return []

    reader = EventParts(other)
    edges = [0, *cuts, len(stream)]
    found = [
        part for start, end in itertools.pairwise(edges) for part in reader.feed(stream[start:end])
    ]
    assert found == parts
    assert not others
    assert not reader.unfinished
    assert reader.feed(payload_part(b"cut")[:-1]) == []
    assert reader.unfinished


def test_what_is_no_payload_part_goes_to_botocore_whole() -> None:
    seen: list[bytes] = []

    def other(event: bytes) -> list[bytes]:
        seen.append(event)
        return [b"from botocore"]

    error = exception_event("ModelStreamError", b'{"Message": "gone"}')
    stream = payload_part(b"a") + error + payload_part(b"b")
    assert EventParts(other).feed(stream) == [b"a", b"from botocore", b"b"]
    assert seen == [error]


@pytest.mark.parametrize("place", [0, 5, 9, 14, 90, -6, -1])
def test_a_damaged_event_is_botocores(place: int) -> None:
    event = bytearray(payload_part(b"some words of a model"))
    event[place] ^= 0x40

    def other(data: bytes) -> list[bytes]:
        buffer = EventStreamBuffer()
        buffer.add_data(data)
        return [each.payload for each in buffer]

    with pytest.raises((ChecksumMismatch, InvalidPayloadLength)):
        EventParts(other).feed(bytes(event))


def test_the_time_per_token_needs_two() -> None:
    assert TokenTimes(1.0, 1.0, [], 1, 0, 0, True).per_token is None
    assert TokenTimes(None, None, [], 0, 0, 0, False).per_token is None


def test_random_bytes_never_end_the_generator() -> None:
    chance = random.Random(1)
    for _ in range(300):
        reader = TokenReader()
        for _ in range(3):
            reader.feed(chance.randbytes(chance.randrange(40)), 1.0)
            reader.feed(b'data: {"choices": 3}\n\n{"choices": [null]}\n', 1.0)
        reader.end()
        reader.times()


SESSION = boto3.Session("AKIDEXAMPLE", "secret", region_name="us-east-1")
HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def answering(*parts: bytes, ends: bool = True) -> Scripted:
    """A server that answers with these parts."""
    chunks = [b"%x\r\n%b\r\n" % (len(part), part) for part in parts]
    return Scripted((HEAD, *chunks, *([b"0\r\n\r\n"] if ends else [])), ends=ends)


def target(url: str, **more: object) -> Target:
    return Target(
        "chat",
        "us-east-1",
        (url,),
        streaming=True,
        tokens=TokenLimits(),
        **{"timeout_seconds": 5, **more},  # type: ignore[arg-type]
    )


def invoked(url: str, overrides: dict[str, str] | None = None, **more: object) -> Invocation:
    invoker = SageMakerInvoker(target(url, **more), session=SESSION)
    try:
        return invoker.invoke(b'{"messages": []}', overrides)
    finally:
        invoker.close()


def chunk(**document: object) -> bytes:
    return sse(document)


FIRST = chunk(choices=[{"delta": {"content": "Once"}}])
LAST = chunk(choices=[{"delta": {"content": " upon"}, "finish_reason": "stop"}])


def test_tokens_come_out_of_the_event_stream() -> None:
    with answering(payload_part(FIRST[:9]), payload_part(FIRST[9:] + LAST)) as server:
        answer = invoked(server.url)
    assert answer.error is None
    assert answer.body == FIRST + LAST
    assert answer.tokens.output_tokens == 2
    assert answer.first_byte is not None
    assert answer.tokens.first is not None
    assert answer.started < answer.first_byte <= answer.tokens.first <= answer.ended


def test_an_error_event_of_sagemaker_ends_the_stream() -> None:
    error = exception_event("ModelStreamError", b'{"Message": "gone", "ErrorCode": "X"}')
    with answering(payload_part(FIRST), error) as server:
        answer = invoked(server.url)
    assert answer.error == "stream ModelStreamError"


def test_an_error_of_the_model_is_no_good_answer_though_the_stream_ends_well() -> None:
    failed = chunk(error={"message": "out of blocks", "type": "InternalServerError"})
    with answering(payload_part(FIRST), payload_part(failed)) as server:
        answer = invoked(server.url)
    assert answer.error == "stream InternalServerError"
    assert answer.message == "out of blocks"
    assert not answer.unanswered


def test_a_stream_that_stands_still_times_out_with_the_tokens_it_had() -> None:
    with answering(payload_part(FIRST), ends=False) as server:
        answer = invoked(server.url, timeout_seconds=0.5)
    assert answer.error == "timeout"
    assert answer.unanswered
    assert answer.tokens.output_tokens == 1


def test_the_openai_path_has_a_bearer_token_and_its_bytes_as_they_are() -> None:
    with answering(FIRST[:5], FIRST[5:], LAST) as server:
        answer = invoked(server.url, {"PrefixAwareId": "tenant-1", "SessionId": "s-1"}, api=OPENAI)
    assert answer.error is None
    assert answer.tokens.output_tokens == 2
    head, _, body = server.read[0].partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert lines[0] == "POST /endpoints/chat/openai/v1/chat/completions HTTP/1.1"
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    assert headers["authorization"].startswith("Bearer sagemaker-api-key-")
    assert headers["x-amzn-sagemaker-prefix-aware-id"] == "tenant-1"
    assert headers["x-amzn-sagemaker-session-id"] == "s-1"
    assert headers["content-length"] == str(len(body))
    assert "secret" not in head.decode()


def test_an_inference_component_is_in_the_openai_path() -> None:
    with answering(FIRST, LAST) as server:
        invoked(server.url, api=OPENAI, inference_component="adapter")
    assert server.read[0].startswith(
        b"POST /endpoints/chat/inference-components/adapter/openai/v1/chat/completions "
    )


@pytest.mark.parametrize(
    "more", [{"target_variant": "blue"}, {"target_model": "a.tar.gz"}, {"streaming": False}]
)
def test_what_the_openai_path_cannot_carry_is_refused(more: dict[str, object]) -> None:
    with refused("LLT164"):
        Target("chat", "us-east-1", **{"streaming": True, "api": OPENAI, **more})  # type: ignore[arg-type]


def test_an_override_without_a_header_on_the_openai_path_is_refused() -> None:
    invoker = SageMakerInvoker(target("http://127.0.0.1:9", api=OPENAI), session=SESSION)
    with refused("LLT164", got="TargetVariant"):
        invoker.invoke(b"{}", {"TargetVariant": "blue"})


def test_users_of_locust_have_all_that_a_target_has() -> None:
    # In a process of its own: Locust replaces parts of the standard library.
    program = (
        "from low_latency_endpoint.load_test.engine import users; "
        "print([name for name in users._SETTINGS if not hasattr(users.SageMakerUser, name)])"
    )
    assert said_by(program).endswith("[]")


# --- against moments that a server tells ------------------------------------------------------------


def moments(answer: Invocation) -> list[float]:
    """When the server sent each token, by the clock that both share."""
    return [json.loads(line[6:])["sent"] for line in answer.body.split(b"\n") if b'"sent"' in line]


def together(invoke: Callable[[bytes], Invocation], count: int) -> list[Invocation]:
    greenlets = [gevent.spawn(invoke, b"{}") for _ in range(count)]
    gevent.joinall(greenlets, raise_error=True)
    return [each.value for each in greenlets]


@pytest.mark.realtime
def test_gaps_are_those_of_the_server_on_every_one_of_forty_streams() -> None:
    with served_by("precise_server.py", first=0.2, gaps=[0.05, 0.15], chunks=12) as url:
        invoker = SageMakerInvoker(target(url), session=SESSION)
        answers = together(invoker.invoke, 40)
    late: list[float] = []
    for answer in answers:
        assert answer.error is None
        sent, times = moments(answer), answer.tokens
        assert times.output_tokens == len(sent) == 12
        assert times.first is not None
        assert times.last is not None
        # Nothing comes before it is sent, and no gap is lost between two of them.
        assert times.first >= sent[0]
        assert times.last >= sent[-1]
        assert sum(times.gaps) == pytest.approx(times.last - times.first)
        told = [later - earlier for earlier, later in itertools.pairwise(sent)]
        late += [abs(seen - real) for seen, real in zip(times.gaps, told, strict=True)]
    # A quarter of the shorter gap: far above what a busy machine takes from the median, far below
    # what a mistake about which gap is which would be.
    assert median(late) < 0.0125
