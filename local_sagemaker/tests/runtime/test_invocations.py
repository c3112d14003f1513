"""InvokeEndpoint as boto3 sees it: answers, headers, errors, limits, streams, at either URL."""

from __future__ import annotations

import io
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EventStreamError
from hosting_site import taking
from signed_requests import ask, signed

from local_sagemaker.connections import local_client
from local_sagemaker.model_servers import SimulatedModelServer, UrlModelServer
from local_sagemaker.runtime import forwarding
from local_sagemaker.runtime.http_server import listening


def error_of(call, *arguments, **more):
    with pytest.raises(ClientError) as raised:
        call(*arguments, **more)
    response = raised.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"], response


def code_of(here, name):
    try:
        here.invoke(name)
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "ok"


def test_bytes_and_headers_go_both_ways(served):
    here, name = served()
    body = bytes(range(256)) * 3
    answer = here.invoke(
        name, body, ContentType="application/x-npy", CustomAttributes="trace=1", InferenceId="i-1"
    )
    assert answer["Body"] == body
    assert answer["ContentType"] == "application/x-npy"
    assert answer["CustomAttributes"] == "trace=1"
    assert answer["InvokedProductionVariant"] == "primary"
    assert answer["ResponseMetadata"]["RequestId"]


def test_only_the_documented_headers_reach_the_container(site):
    seen = []

    async def answer(request, connection):
        if request.target != "/ping":
            seen.append(set(request.headers))
        connection.send(200, (), b"")

    with listening(answer) as listener:
        here = site({"model": UrlModelServer(f"http://127.0.0.1:{listener.port}")})
        name = here.endpoint()
        here.invoke(
            name, ContentType="text/csv", Accept="text/plain", InferenceId="i", PrefixAwareId="app"
        )
    (headers,) = seen
    assert headers == {
        "host",
        "content-length",
        "content-type",
        "accept",
        "x-amzn-sagemaker-inference-id",
        "x-amzn-sagemaker-prefix-aware-id",
    }


def test_an_unknown_endpoint(site):
    status, error, _ = error_of(site().invoke, "nowhere")
    assert (status, error["Code"]) == (400, "ValidationError")
    assert error["Message"] == "Endpoint nowhere of account 123456789012 not found."


@pytest.mark.parametrize(("status", "side"), [(500, "server"), (503, "server"), (400, "client")])
def test_a_model_error(served, status, side):
    failing = taking(0.001, failure_share=1.0, failure_status=status, failure_message="no good")
    here, name = served(model=failing)
    code, error, response = error_of(here.invoke, name)
    assert (code, error["Code"]) == (424, "ModelError")
    assert response["OriginalStatusCode"] == status
    assert response["OriginalMessage"] == "no good"
    group = f"/aws/sagemaker/Endpoints/{name}"
    assert response["LogStreamArn"] == f"arn:aws:logs:us-east-1:123456789012:log-group:{group}"
    assert error["Message"].startswith(
        f'Received {side} error ({status}) from primary with message "no good". See https://'
    )


def test_a_model_that_takes_too_long(served):
    here, name = served(model=SimulatedModelServer(hang_share=1.0), invocation_timeout=0.2)
    began = time.perf_counter()
    code, error, response = error_of(here.invoke, name)
    assert time.perf_counter() - began >= 0.2  # and of a model that never answers, it ends
    assert (code, error["Code"], response["OriginalStatusCode"]) == (424, "ModelError", 0)
    assert "timed out while waiting for a response from container primary" in error["Message"]
    # It is a model error of no class.
    counts = {"InvocationModelErrors": 1, "Invocation4XXErrors": 0, "Invocation5XXErrors": 0}
    assert {each: here.statistics(name, each, "Sum")["Sum"] for each in counts} == counts
    assert here.statistics(name, "ModelLatency", "Minimum")["Minimum"] >= 200_000


def test_a_multi_model_that_is_not_loaded_in_time(site):
    here = site({"model": SimulatedModelServer(hang_share=1.0)}, invocation_timeout=0.1)
    model = here.model(Mode="MultiModel", ModelDataUrl="s3://bucket/models/")
    name = here.endpoint({"ModelName": model})
    code, error, _ = error_of(here.invoke, name, TargetModel="a.tar.gz")
    assert (code, error["Code"]) == (429, "ModelNotReadyException")
    assert "multi-model" in error_of(here.invoke, name)[1]["Message"]


def test_target_model_needs_a_multi_model_endpoint(served):
    here, name = served()
    _, error, _ = error_of(here.invoke, name, TargetModel="a.tar.gz")
    assert error["Message"] == (
        f"Endpoint {name} is not a multi-model endpoint and does not support target model header."
    )


@pytest.mark.parametrize(
    ("member", "words"),
    [
        ("InferenceComponentName", "Inference Component Name header is not allowed"),
        ("TargetContainerHostname", "takes no"),
    ],
)
def test_what_an_endpoint_does_not_have_is_refused(site, member, words):
    here = site()
    _, error, _ = error_of(here.invoke, here.endpoint(), **{member: "other"})
    assert error["Code"] == "ValidationError"
    assert words in error["Message"]


def test_an_endpoint_that_is_still_being_created_is_not_found(site):
    here = site({"model": SimulatedModelServer(cold_start=100)})
    name = here.endpoint(wait=False)
    assert here.described(name)["EndpointStatus"] == "Creating"
    status, error, _ = error_of(here.invoke, name)
    assert (status, error["Code"]) == (400, "ValidationError")
    here.aws.advance(110)
    assert here.settled(name)["EndpointStatus"] == "InService"
    assert here.invoke(name)["Body"] == b"{}"


def test_an_instance_whose_server_is_gone_leaves_the_rotation(site):
    async def answer(request, connection):
        connection.send(200, (), b"")

    with listening(answer) as listener:
        here = site({"model": UrlModelServer(f"http://127.0.0.1:{listener.port}")})
        name = here.endpoint()
    status, error, _ = error_of(here.invoke, name)
    assert (status, error["Code"]) == (503, "ServiceUnavailable")
    assert here.statistics(name, "Invocation5XXErrors", "Sum") == {"Sum": 1.0}


def test_payloads_up_to_25_mb(served):
    here, name = served(model=taking(0.001))
    large = b"x" * (25 * 1024 * 1024)
    assert here.invoke(name, large)["Body"] == large
    status, error, _ = error_of(here.invoke, name, large + b"x")
    assert (status, error["Code"]) == (413, "413")
    assert error["Message"] == "HTTP content length exceeded 26214400 bytes."
    assert here.invoke(name, b"after")["Body"] == b"after"


@pytest.mark.parametrize(
    ("field", "longest"),
    [
        ("InferenceId", 64),
        ("InferenceComponentName", 63),
        ("SessionId", 256),
        ("PrefixAwareId", 64),
        ("CustomAttributes", 1024),
    ],
)
def test_header_lengths(served, field, longest):
    here, name = served()
    _, error, _ = error_of(here.invoke, name, **{field: "x" * (longest + 1)})
    assert error["Code"] == "ValidationError"
    assert f"Member must have length less than or equal to {longest}" in error["Message"]
    assert f"at '{field[0].lower()}{field[1:]}'" in error["Message"]


def test_a_stream_opens_no_session(site):
    here = site()
    runtime = here.aws.client("sagemaker-runtime")
    _, error, _ = error_of(
        runtime.invoke_endpoint_with_response_stream,
        EndpointName=here.endpoint(),
        Body=b"{}",
        SessionId="NEW_SESSION",
    )
    assert error["Code"] == "ValidationError"
    assert "'sessionId' failed to satisfy constraint" in error["Message"]


@pytest.mark.parametrize(("limit", "taken"), [(None, 5), (3, 3)])
def test_beyond_a_rate_callers_may_be_throttled(served, limit, taken):
    here, name = served(requests_per_second=limit)
    found = [code_of(here, name) for _ in range(5)]
    assert found == ["ok"] * taken + ["ThrottlingException"] * (5 - taken)


def test_a_serverless_variant_takes_no_more_than_its_concurrency(site):
    here = site({"model": taking(0.5, concurrency=8)})
    sagemaker = here.aws.client("sagemaker")
    sagemaker.create_endpoint_config(
        EndpointConfigName="serverless",
        ProductionVariants=[
            {
                "VariantName": "primary",
                "ModelName": here.model(),
                "ServerlessConfig": {"MemorySizeInMB": 1024, "MaxConcurrency": 2},
            }
        ],
    )
    sagemaker.create_endpoint(EndpointName="serverless", EndpointConfigName="serverless")
    here.settled("serverless")
    with ThreadPoolExecutor(4) as pool:
        found = sorted(pool.map(code_of, [here] * 4, ["serverless"] * 4))
    assert found == ["ThrottlingException"] * 2 + ["ok"] * 2
    # Developer guide, "Model deployment options": 4 MB; the words are of sagemaker-python-sdk#4271.
    whole = bytes(4 * 2**20)
    assert here.invoke("serverless", whole)["Body"]
    with pytest.raises(ClientError, match=r"ValidationError.*Request \S+ has oversize body"):
        here.invoke("serverless", whole + b"x")
    assert here.invoke(here.endpoint(), whole + b"x")["Body"]


class TestStreams:
    def test_chunks_come_as_the_model_sends_them(self, served):
        here, name = served(model=taking(0.8, stream_chunks=4))
        runtime = here.aws.client("sagemaker-runtime")
        began = time.perf_counter()
        answer = runtime.invoke_endpoint_with_response_stream(
            EndpointName=name, Body=b"abcdefgh", ContentType="text/plain"
        )
        parts, times = [], []
        for event in answer["Body"]:
            parts.append(event["PayloadPart"]["Bytes"])
            times.append(time.perf_counter() - began)
        assert parts == [b"ab", b"cd", b"ef", b"gh"]
        assert answer["ContentType"] == "text/plain"
        assert answer["InvokedProductionVariant"] == "primary"
        assert times[0] < 0.5 < 0.78 < times[-1]

    def test_an_error_before_the_first_chunk(self, served):
        here, name = served(model=SimulatedModelServer(failure_share=1.0, failure_message="no"))
        runtime = here.aws.client("sagemaker-runtime")
        status, error, response = error_of(
            runtime.invoke_endpoint_with_response_stream, EndpointName=name, Body=b""
        )
        assert (status, error["Code"]) == (424, "ModelError")
        assert response["OriginalMessage"] == "no"

    def test_an_error_after_the_first_chunk(self, served):
        here, name = served(model=taking(2.0, stream_chunks=10), stream_timeout=0.5)
        answer = here.aws.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
            EndpointName=name, Body=b"0123456789"
        )
        parts = []

        def read():
            for event in answer["Body"]:
                parts.append(event["PayloadPart"]["Bytes"])

        # A stream that broke off keeps its connection until it is closed.
        with closing(answer["Body"]), pytest.raises(EventStreamError, match="ModelStreamError"):
            read()
        assert parts[0] == b"0"
        assert len(parts) < 10
        assert here.statistics(name, "MidStreamErrors", "Sum") == {"Sum": 1.0}


def test_the_main_url_answers_too(served):
    here, name = served(model=taking(0.001, stream_chunks=2))
    client = local_client("sagemaker-runtime", "us-east-1", here.aws.url)
    assert client.invoke_endpoint(EndpointName=name, Body=b"\x00\xff")["Body"].read() == b"\x00\xff"
    stream = client.invoke_endpoint_with_response_stream(EndpointName=name, Body=b"ab")["Body"]
    assert [event["PayloadPart"]["Bytes"] for event in stream] == [b"a", b"b"]
    status, error, _ = error_of(client.invoke_endpoint, EndpointName="nowhere", Body=b"")
    assert (status, error["Code"]) == (400, "ValidationError")
    status, _, _ = error_of(client.invoke_endpoint, EndpointName=name, Body=bytes(25 * 2**20 + 1))
    assert status == 413  # S3's objects may be larger there, requests to a model not
    assert here.statistics(name, "Invocations", "Sum") == {"Sum": 2}


def test_without_a_model_server_an_endpoint_echoes_at_once(site):
    here = site({})
    sagemaker = here.aws.client("sagemaker")
    name = here.endpoint({"InitialInstanceCount": 3}, wait=False)
    assert here.described(name)["EndpointStatus"] == "InService"
    assert here.invoke(name, b"echo")["Body"] == b"echo"
    assert here.statistics(name, "InvocationsPerInstance", "Sum") == {"Sum": pytest.approx(1 / 3)}
    here.scale(name, 1)
    here.invoke(name)
    found = here.statistics(name, "InvocationsPerInstance", "Sum")
    assert found == {"Sum": pytest.approx(1 / 3 + 1)}
    sagemaker.delete_endpoint(EndpointName=name)
    assert error_of(here.invoke, name)[0] == 400


@pytest.mark.parametrize(
    ("method", "path", "more", "status"),
    [
        ("GET", "/endpoints/e/invocations", {}, 404),
        ("POST", "/other", {}, 404),
        ("POST", "/", {"Transfer-Encoding": "chunked", "Content-Length": None}, 411),
    ],
)
def test_what_is_no_invocation_is_refused(site, method, path, more, status):
    here = site()
    headers = signed(here.aws.exports()["AWS_ACCESS_KEY_ID"], "sagemaker")
    port = int(here.aws.runtime_url().rpartition(":")[2])
    assert ask(port, method, path, {**headers, **more}).status == status


async def answering(request: Any, connection: Any) -> None:
    connection.send(200, [("content-type", "text/plain")], b"an answer")


def passed_on(port: int) -> Any:
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/endpoints/e/invocations",
        "CONTENT_LENGTH": "2",
        "wsgi.input": io.BytesIO(b"{}"),
    }
    behind: Any = SimpleNamespace(url=lambda: f"http://127.0.0.1:{port}")
    return forwarding.forward(behind, environ, lambda status, headers: None)


def test_no_connection_stays_open_however_the_caller_ends(monkeypatch):
    made = []

    class Noted(forwarding.http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            made.append(self.sock)

    monkeypatch.setattr(forwarding.http.client, "HTTPConnection", Noted)
    with listening(answering) as listener, warnings.catch_warnings():
        warnings.simplefilter("error")
        read = passed_on(listener.port)
        assert b"".join(read) == b"an answer"
        read.close()
        passed_on(listener.port).close()  # the caller has gone before the first byte
    assert [opened.fileno() for opened in made] == [-1, -1]
