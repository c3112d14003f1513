"""Streams of tokens over a socket: when they came, how they fail, and the OpenAI-compatible path."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from statistics import median

import boto3
import gevent
import pytest

from local_sagemaker.runtime.event_stream import exception_event, payload_part
from low_latency_endpoint.load_test.engine.invoking import Invocation, SageMakerInvoker
from low_latency_endpoint.load_test.engine.target import OPENAI, Target, TokenLimits
from tests.refusals import refused

from .servers import Scripted, said_by, served_by

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


def sse(**document: object) -> bytes:
    return b"data: %b\n\n" % json.dumps(document).encode()


FIRST = sse(choices=[{"delta": {"content": "Once"}}])
LAST = sse(choices=[{"delta": {"content": " upon"}, "finish_reason": "stop"}])


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
    failed = sse(error={"message": "out of blocks", "type": "InternalServerError"})
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
    # what a mistake about which gap is which would be. `make bench` measures the 99th percentile.
    assert median(late) < 0.0125
