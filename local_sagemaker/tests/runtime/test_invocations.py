"""InvokeEndpoint as boto3 sees it: answers, headers, errors, limits, streams."""

from __future__ import annotations

import http.client
import time
from contextlib import closing

import pytest
from botocore.exceptions import ClientError, EventStreamError

from local_sagemaker.connections import local_client
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer, UrlModelServer

FAST = ServiceTime.constant(0.001)


def error_of(call, *arguments, **more):
    with pytest.raises(ClientError) as raised:
        call(*arguments, **more)
    response = raised.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"], response


def admitted(here):
    """Give the header lines of a request that a local AWS lets in."""
    exports = here.aws.exports()
    host = exports["AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME"].removeprefix("http://")
    scope = f"Credential={exports['AWS_ACCESS_KEY_ID']}/20260101/us-east-1/sagemaker/aws4_request"
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    lines = (f"host: {host}", f"authorization: AWS4-HMAC-SHA256 {scope}", f"x-amz-date: {now}")
    return "".join(f"{line}\r\n" for line in lines).encode()


def test_bytes_and_headers_go_both_ways(site):
    here = site()
    name = here.endpoint()
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
    import http.server
    import threading

    seen = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append({n.lower() for n in self.headers})
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        here = site({"model": UrlModelServer(f"http://127.0.0.1:{server.server_port}")})
        name = here.endpoint()
        here.invoke(
            name, ContentType="text/csv", Accept="text/plain", InferenceId="i", PrefixAwareId="app"
        )
    finally:
        server.shutdown()
        server.server_close()
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
def test_a_model_error(site, status, side):
    failing = SimulatedModelServer(
        service_time=FAST, failure_share=1.0, failure_status=status, failure_message="no good"
    )
    here = site({"model": failing})
    name = here.endpoint()
    code, error, response = error_of(here.invoke, name)
    assert (code, error["Code"]) == (424, "ModelError")
    assert response["OriginalStatusCode"] == status
    assert response["OriginalMessage"] == "no good"
    group = f"/aws/sagemaker/Endpoints/{name}"
    assert response["LogStreamArn"] == f"arn:aws:logs:us-east-1:123456789012:log-group:{group}"
    assert error["Message"].startswith(
        f'Received {side} error ({status}) from primary with message "no good". See https://'
    )


def test_a_model_that_takes_too_long(site):
    here = site({"model": SimulatedModelServer(hang_share=1.0)}, invocation_timeout=0.2)
    name = here.endpoint()
    began = time.perf_counter()
    code, error, response = error_of(here.invoke, name)
    assert time.perf_counter() - began >= 0.2  # and of a model that never answers, it ends
    assert (code, error["Code"], response["OriginalStatusCode"]) == (424, "ModelError", 0)
    assert "timed out while waiting for a response from container primary" in error["Message"]


def test_a_multi_model_that_is_not_loaded_in_time(site):
    here = site({"model": SimulatedModelServer(hang_share=1.0)}, invocation_timeout=0.1)
    model = here.model(Mode="MultiModel", ModelDataUrl="s3://bucket/models/")
    name = here.endpoint({"ModelName": model})
    code, error, _ = error_of(here.invoke, name, TargetModel="a.tar.gz")
    assert (code, error["Code"]) == (429, "ModelNotReadyException")
    assert "multi-model" in error_of(here.invoke, name)[1]["Message"]


def test_target_model_needs_a_multi_model_endpoint(site):
    here = site()
    name = here.endpoint()
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
    import http.server
    import threading

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments):
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    here = site({"model": UrlModelServer(f"http://127.0.0.1:{server.server_port}")})
    name = here.endpoint()
    server.shutdown()
    server.server_close()
    status, error, _ = error_of(here.invoke, name)
    assert (status, error["Code"]) == (503, "ServiceUnavailable")
    assert here.statistics(name, "Invocation5XXErrors", "Sum") == {"Sum": 1.0}


def test_payloads_up_to_25_mb(site):
    here = site({"model": SimulatedModelServer(service_time=FAST)})
    name = here.endpoint()
    large = b"x" * (25 * 1024 * 1024)
    assert here.invoke(name, large)["Body"] == large
    status, error, _ = error_of(here.invoke, name, large + b"x")
    assert (status, error["Code"]) == (413, "413")
    assert error["Message"] == "HTTP content length exceeded 26214400 bytes."
    assert here.invoke(name, b"after")["Body"] == b"after"


@pytest.mark.parametrize(
    ("field", "longest"),
    [("InferenceId", 64), ("SessionId", 256), ("PrefixAwareId", 64), ("CustomAttributes", 1024)],
)
def test_header_lengths(site, field, longest):
    here = site()
    name = here.endpoint()
    _, error, _ = error_of(here.invoke, name, **{field: "x" * (longest + 1)})
    assert error["Code"] == "ValidationError"
    assert f"Member must have length less than or equal to {longest}" in error["Message"]


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


def test_throttling(site):
    here = site(requests_per_second=3)
    name = here.endpoint()
    codes = []
    for _ in range(5):
        try:
            here.invoke(name)
            codes.append("ok")
        except ClientError as error:
            codes.append(error.response["Error"]["Code"])
    assert codes == ["ok", "ok", "ok", "ThrottlingException", "ThrottlingException"]


def test_a_serverless_variant_takes_no_more_than_its_concurrency(site):
    slow = SimulatedModelServer(service_time=ServiceTime.constant(0.5), concurrency=8)
    here = site({"model": slow})
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
    from concurrent.futures import ThreadPoolExecutor

    def code(_):
        try:
            here.invoke("serverless")
        except ClientError as error:
            return error.response["Error"]["Code"]
        return "ok"

    with ThreadPoolExecutor(4) as pool:
        found = sorted(pool.map(code, range(4)))
    assert found == ["ThrottlingException"] * 2 + ["ok"] * 2


class TestStreams:
    def test_chunks_come_as_the_model_sends_them(self, site):
        model = SimulatedModelServer(service_time=ServiceTime.constant(0.8), stream_chunks=4)
        here = site({"model": model})
        name = here.endpoint()
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

    def test_an_error_before_the_first_chunk(self, site):
        here = site({"model": SimulatedModelServer(failure_share=1.0, failure_message="no")})
        name = here.endpoint()
        runtime = here.aws.client("sagemaker-runtime")
        status, error, response = error_of(
            runtime.invoke_endpoint_with_response_stream, EndpointName=name, Body=b""
        )
        assert (status, error["Code"]) == (424, "ModelError")
        assert response["OriginalMessage"] == "no"

    def test_an_error_after_the_first_chunk(self, site):
        model = SimulatedModelServer(service_time=ServiceTime.constant(2.0), stream_chunks=10)
        here = site({"model": model}, stream_timeout=0.5)
        name = here.endpoint()
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


def test_the_main_url_answers_too(site):
    here = site({"model": SimulatedModelServer(service_time=FAST, stream_chunks=2)})
    name = here.endpoint()
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
    sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=name,
        DesiredWeightsAndCapacities=[{"VariantName": "primary", "DesiredInstanceCount": 1}],
    )
    here.invoke(name)
    found = here.statistics(name, "InvocationsPerInstance", "Sum")
    assert found == {"Sum": pytest.approx(1 / 3 + 1)}
    sagemaker.delete_endpoint(EndpointName=name)
    assert error_of(here.invoke, name)[0] == 400


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /endpoints/e/invocations HTTP/1.1\r\n%b\r\n", 404),
        (b"POST /other HTTP/1.1\r\n%bcontent-length: 0\r\n\r\n", 404),
        (b"nonsense\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n", 411),
        (b"POST / HTTP/1.1\r\n" + b"x: " + b"y" * 70_000, 431),
    ],
)
def test_what_is_no_invocation_is_refused(site, request_bytes, status):
    import socket

    here = site()
    host, port = here.aws.runtime_url().removeprefix("http://").split(":")
    if b"%b" in request_bytes:
        request_bytes = request_bytes % admitted(here)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(request_bytes)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
    assert answer.status == status


def test_a_request_in_pieces_and_two_at_once(site):
    import socket

    here = site({"model": SimulatedModelServer(service_time=FAST)})
    name = here.endpoint()
    host, port = here.aws.runtime_url().removeprefix("http://").split(":")
    one = f"POST /endpoints/{name}/invocations HTTP/1.1\r\ncontent-length: 3\r\n".encode()
    one += admitted(here) + b"\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        for piece in (one[:20], one[20:-1], one[-1:] + b"a", b"bc" + one + b"de", b"f"):
            connection.sendall(piece)
            time.sleep(0.02)
        received = b""
        while received.count(b"\r\n\r\n") < 2 or not received.endswith((b"abc", b"def")):
            received += connection.recv(65536)
    assert received.index(b"abc") < received.index(b"def")
