"""The language model's server behind an endpoint: streams, faults, hang-ups, a process of its own."""

from __future__ import annotations

import gc
import json
import socket
import statistics
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from openai_requests import chat, openai, own_token
from signed_requests import ask
from waiting import wait_for

from local_sagemaker.model_servers import LanguageModelServer, UrlModelServer
from local_sagemaker.model_servers.language_model import LanguageModel
from local_sagemaker.runtime.http_server import Connection, Request, listening
from local_sagemaker.separate_process import _spare_what_stays

pytestmark = pytest.mark.realtime

STEP = 0.02
LM = LanguageModelServer(gap_seconds=STEP, seconds_per_prompt_token=1e-6, output_tokens=10)
EXACT = {"ignore_eos": True, "stream": True}


def body(tokens: int, content: str = "hello there", **more: Any) -> bytes:
    document = {"messages": [{"role": "user", "content": content}], "max_tokens": tokens}
    return json.dumps({**document, **EXACT, **more}).encode()


def stream(here: Any, name: str, tokens: int, **more: Any) -> tuple[list[float], bytes]:
    """Moments of the content, from the call on, and all bytes."""
    began = time.perf_counter()
    answer = here.aws.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
        EndpointName=name, Body=body(tokens, **more), ContentType="application/json"
    )
    assert answer["ContentType"].startswith("text/event-stream")
    moments, parts = [], []
    for event in answer["Body"]:
        part = event["PayloadPart"]["Bytes"]
        count = part.count(b'"content":"') - part.count(b'"content":""')
        moments += [time.perf_counter() - began] * count
        parts.append(part)
    return moments, b"".join(parts)


def gaps(moments: list[float]) -> list[float]:
    return [after - before for before, after in pairwise(moments)]


@pytest.mark.parametrize("in_process", [True, False])
def test_tokens_come_through_the_event_stream_at_their_pace(served: Any, in_process: bool) -> None:
    here, name = served(model=LanguageModelServer(gap_seconds=STEP, in_process=in_process))
    moments, sent = stream(here, name, 30)
    assert len(moments) == 30
    assert sent.endswith(b"data: [DONE]\n\n")
    # A busy machine makes gaps longer and the next ones shorter: the times are added up.
    assert moments[-1] >= 29 * STEP
    assert statistics.median(gaps(moments)) == pytest.approx(STEP, abs=STEP / 2)


def test_an_error_in_the_middle_is_no_error_of_the_stream(served: Any) -> None:
    failing = LanguageModelServer(gap_seconds=STEP, failure_share=1.0, mid_stream_share=1.0)
    here, name = served(model=failing)
    moments, sent = stream(here, name, 10)
    assert len(moments) == 5
    *_, error, done = sent.decode().rstrip().split("\n\n")
    assert json.loads(error.removeprefix("data: "))["error"]["code"] == 500
    assert done == "data: [DONE]"
    # To SageMaker it was a whole answer with status 200.
    assert here.statistics(name, "MidStreamErrors", "Sum") == {"Sum": 0}


def metrics(port: int) -> str:
    answer = ask(port, "GET", "/metrics", {"Host": f"127.0.0.1:{port}"})
    assert answer.headers["content-type"].startswith("text/plain")
    return answer.body.decode()


def value(port: int, name: str) -> float:
    lines = metrics(port).splitlines()
    (line,) = [line for line in lines if line.startswith(f"vllm:{name}{{")]
    return float(line.rpartition(" ")[2])


def until(port: int, name: str, wanted: float) -> None:
    wait_for(lambda: value(port, name) == wanted)


@pytest.fixture
def port() -> Iterator[int]:
    """A server alone, which nothing stands before."""
    with listening(LanguageModel(LM, 0)) as listener:
        yield listener.port


def test_a_connection_is_kept_from_one_stream_to_the_next(port: int) -> None:
    data = body(3)
    head = f"POST /invocations HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=30) as caller:
        for _ in range(3):
            caller.sendall(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
            got = b""
            while not got.endswith(b"\r\n0\r\n\r\n"):
                part = caller.recv(65536)
                assert part
                got += part
            assert got.count(b"HTTP/1.1 200 OK") == 1
            assert got.count(b"data: [DONE]") == 1
    until(port, "inter_token_latency_seconds_count", 6)


@pytest.mark.parametrize("reaches", [True, False])
def test_a_hang_up_reaches_the_model_or_does_not(served: Any, port: int, reaches: bool) -> None:
    model = UrlModelServer(f"http://127.0.0.1:{port}")
    here, name = served(model=model, hang_up_reaches_model=reaches)
    answer = here.aws.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
        EndpointName=name, Body=body(150), ContentType="application/json"
    )
    next(iter(answer["Body"]))
    answer["Body"].close()
    until(port, "num_requests_running", 0)
    generated = 1 + value(port, "inter_token_latency_seconds_count")
    assert generated < 150 if reaches else generated == 150
    # Nobody has an error: the model had none, and the caller has gone.
    assert here.statistics(name, "MidStreamErrors", "Sum") == {"Sum": 0}


def test_a_stream_that_breaks_off_does_not_look_whole(site: Any) -> None:
    async def breaks_off(request: Request, connection: Connection) -> None:
        if request.target == "/ping":
            connection.send(200, (), b"")
            return
        connection.start_stream(200, [("content-type", "text/event-stream")])
        await connection.send_chunk(b"data: {}\n\n")
        connection.close()

    with listening(breaks_off) as listener:
        here = site({"model": UrlModelServer(f"http://127.0.0.1:{listener.port}")})
        name = here.endpoint()
        answer = chat(here.aws.runtime_url(), openai(name), own_token(here.aws), {"messages": []})
        assert answer.status == 200
        assert (
            answer.body == b"a\r\ndata: {}\n\n\r\n"
        )  # and no chunk of nothing, which would end it
        assert here.statistics(name, "MidStreamErrors", "Sum") == {"Sum": 1}


def test_what_survives_a_full_collection_is_not_looked_through_again() -> None:
    before = gc.get_freeze_count()  # of other tests' own
    try:
        _spare_what_stays("stop", {"generation": 1})
        _spare_what_stays("start", {"generation": 2})
        assert gc.get_freeze_count() == before
        _spare_what_stays("stop", {"generation": 2})
        assert gc.get_freeze_count() > before
    finally:
        gc.unfreeze()
