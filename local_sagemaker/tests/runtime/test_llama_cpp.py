"""llama.cpp behind an endpoint: a real server with continuous batching, and a model of nonsense."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from signed_requests import Answer, ask

from local_sagemaker.hub import tiny_gguf
from local_sagemaker.model_servers import llama_cpp_model_server

pytestmark = pytest.mark.realtime
pytest.importorskip("gguf")
pytest.importorskip("xllamacpp")

CHAT = {"messages": [{"role": "user", "content": "hi"}], "ignore_eos": True, "temperature": 0}


def gguf() -> bytes:
    return tiny_gguf().files["tiny-llama.gguf"]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The server alone, with two slots."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "tiny.gguf").write_bytes(gguf())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    own = {"SAGEMAKER_BIND_TO_PORT": str(number), "SM_MODEL_DIR": str(folder)}
    command = llama_cpp_model_server().command
    environment = {**os.environ, **own, "SM_LLAMA_CPP_PARALLEL": "2"}
    with subprocess.Popen(command, env=environment) as process:
        try:
            deadline = time.monotonic() + 60
            while not is_ready(number):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
            yield number
        finally:
            process.terminate()


def is_ready(port: int) -> bool:
    try:
        return get(port, "/ping").status == 200
    except OSError:
        return False


def get(port: int, path: str) -> Answer:
    return ask(port, "GET", path)


def post(port: int, path: str, document: Any) -> Answer:
    return ask(port, "POST", path, body=json.dumps(document).encode())


def test_a_chat_and_a_completion_at_every_path(port: int) -> None:
    completion = {"prompt": "hello", "max_tokens": 4, "temperature": 0, "ignore_eos": True}
    for path, asked, kind in (
        ("/invocations", {**CHAT, "max_tokens": 4}, "chat.completion"),
        ("/v1/chat/completions", {**CHAT, "max_tokens": 4}, "chat.completion"),
        ("/invocations", completion, "text_completion"),
        ("/v1/completions", completion, "text_completion"),
    ):
        document = json.loads(post(port, path, asked).body)
        assert (document["object"], document["usage"]["completion_tokens"]) == (kind, 4)
    # "hello" is a token a byte, after the one that begins each text.
    assert document["usage"]["prompt_tokens"] == 6


def test_what_cannot_be_asked_is_llama_cpps_own_refusal(port: int) -> None:
    for asked in ([1], {"messages": 3}):
        answer = post(port, "/invocations", asked)
        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, 400)


def test_streams_share_its_slots(port: int) -> None:
    asked = {**CHAT, "stream": True, "max_tokens": 60}
    with ThreadPoolExecutor(2) as pool:
        for answer in pool.map(lambda _: post(port, "/invocations", asked), range(24)):
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert b"data: [DONE]" in answer.body
            assert b'"finish_reason":"length"' in answer.body
    (line,) = [
        line
        for line in get(port, "/metrics").body.decode().splitlines()
        if line.startswith("llamacpp:n_busy_slots_per_decode ")
    ]
    # One slot is 1: tokens of both were computed together.
    assert float(line.split()[1]) > 1


def test_it_tells_its_load(port: int) -> None:
    told = json.loads(get(port, "/utilization").body)
    assert told.keys() == {"CPUUtilization", "MemoryUtilization"}


def test_without_a_model_it_ends_and_says_so(tmp_path: Path) -> None:
    environment = {**os.environ, "SAGEMAKER_BIND_TO_PORT": "0", "SM_MODEL_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "local_sagemaker.model_servers.llama_cpp"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert f"no *.gguf under {tmp_path}" in done.stderr


def test_tokens_come_through_the_endpoint(site: Any) -> None:
    here = site({"model": llama_cpp_model_server()})
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        member = tarfile.TarInfo("tiny.gguf")
        member.size = len(gguf())
        tar.addfile(member, io.BytesIO(gguf()))
    s3 = here.aws.client("s3")
    s3.create_bucket(Bucket="gguf")
    s3.put_object(Bucket="gguf", Key="model.tar.gz", Body=archive.getvalue())
    model = here.model(ModelDataUrl="s3://gguf/model.tar.gz")
    name = here.endpoint({"ModelName": model})
    asked = {**CHAT, "stream": True, "max_tokens": 20}
    answer = here.aws.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
        EndpointName=name, Body=json.dumps(asked).encode(), ContentType="application/json"
    )
    sent = b"".join(event["PayloadPart"]["Bytes"] for event in answer["Body"])
    events = [line for line in sent.decode().splitlines() if line]
    assert events.pop() == "data: [DONE]"
    deltas = [json.loads(line.removeprefix("data: "))["choices"] for line in events]
    text = "".join(each[0]["delta"].get("content") or "" for each in deltas if each)
    assert text
    whole = json.loads(here.invoke(name, json.dumps({**asked, "stream": False}).encode())["Body"])
    assert whole["usage"]["completion_tokens"] == 20
    assert whole["choices"][0]["message"]["content"] == text
