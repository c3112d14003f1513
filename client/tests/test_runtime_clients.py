"""The clients against a runtime on loopback, each in each test: boto3's answers and errors."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    EventStreamError,
    ParamValidationError,
    ReadTimeoutError,
    SSLError,
)

from low_latency_client.hedging import Hedging

from .callers import SECRETS, Caller, session
from .loopback_runtime import LoopbackRuntime, write_certificates
from .refusals import refused

Make = Callable[..., Caller]
PER_CALL = {"Authorization", "X-Amz-Date", "User-Agent", "amz-sdk-invocation-id", "amz-sdk-request"}


@pytest.fixture
def plain(server: LoopbackRuntime, folder: Path) -> Any:
    """boto3's client."""
    return session().client(
        "sagemaker-runtime", endpoint_url=server.url, verify=str(folder / "ca.pem")
    )


def test_answer_and_request_are_boto3s(server: LoopbackRuntime, plain: Any, make: Make) -> None:
    parameters: dict[str, Any] = {
        "EndpointName": "headers",
        "Body": b'{"a": 1}',
        "ContentType": "application/json",
        "Accept": "text/plain",
        "CustomAttributes": "trace=1  2",
        "TargetVariant": "primary",
    }
    theirs = plain.invoke_endpoint(**parameters)
    sent = server.runtime.last_headers
    caller = make()
    assert caller.ask(**parameters) == {**theirs, "Body": theirs["Body"].read()}
    got = server.runtime.last_headers
    assert {key: got[key] for key in got if key not in PER_CALL} == {
        key: sent[key] for key in sent if key not in PER_CALL
    }
    if not caller.in_tasks:
        body = caller.call("invoke_endpoint", **parameters)["Body"]
        assert type(body) is type(theirs["Body"])
        assert (body.read()[:8], body.read()) == (b'{"label"', b"")


@pytest.mark.parametrize("status", [400, 424, 429, 500, 503])
def test_errors_are_boto3s(server: LoopbackRuntime, plain: Any, make: Make, status: int) -> None:
    with pytest.raises(ClientError) as theirs:
        plain.invoke_endpoint(EndpointName=f"status-{status}", Body=b"{}")
    caller = make(retries=0)
    with pytest.raises(ClientError) as raised:
        caller.invoke(f"status-{status}")
    for one in (theirs, raised):
        for name in ("MaxAttemptsReached", "RetryAttempts"):
            one.value.response["ResponseMetadata"].pop(name, None)
    assert raised.value.response == theirs.value.response
    assert type(raised.value).__name__ == type(theirs.value).__name__
    assert raised.value.operation_name == "InvokeEndpoint"
    code = theirs.value.response["Error"]["Code"]
    assert isinstance(raised.value, getattr(caller.client.exceptions, code))
    assert "max retries" not in str(raised.value)


@pytest.mark.parametrize("status", [400, 424, 429])
def test_a_callers_or_a_models_error_is_told_once(
    server: LoopbackRuntime, make: Make, status: int
) -> None:
    with pytest.raises(ClientError):
        make().invoke(f"status-{status}")
    assert server.runtime.requests[f"status-{status}"] == 1


@pytest.mark.parametrize(("retries", "requests"), [(0, 1), (1, 2), (3, 4)])
def test_retries_are_those_asked_for(
    server: LoopbackRuntime, make: Make, retries: int, requests: int
) -> None:
    caller = make(retries=retries)
    with pytest.raises(ClientError):
        caller.invoke("status-503")
    assert server.runtime.requests["status-503"] == requests
    assert caller.client.counts.retries == retries


def test_retries_and_what_is_not_tried_again(server: LoopbackRuntime, make: Make) -> None:
    caller = make()
    assert caller.invoke("once-503")["ResponseMetadata"]["RetryAttempts"] == 1
    assert server.runtime.requests["once-503"] == 2
    with pytest.raises(ClientError):
        caller.invoke("status-503")
    with pytest.raises(ConnectionClosedError):
        caller.invoke("drop")
    assert caller.client.counts.retries == 3
    caller = make(retries=3)
    for more in ({"Idempotent": False}, {"SessionId": "NEW_SESSION"}):
        before = server.runtime.requests.copy()
        with pytest.raises(ClientError):
            caller.invoke("status-503", **more)
        with pytest.raises(ConnectionClosedError):
            caller.invoke("drop", **more)
        assert (server.runtime.requests - before).total() == 2


def test_idempotent_is_not_sent_to_aws(server: LoopbackRuntime, make: Make) -> None:
    make().invoke("headers", Idempotent=True, SessionId="s-1")
    assert not [name for name in server.runtime.last_headers if "dempotent" in name]


def test_a_slow_model_is_given_up_and_not_asked_again(server: LoopbackRuntime, make: Make) -> None:
    with pytest.raises(ReadTimeoutError):
        make(read_timeout=timedelta(milliseconds=50), retries=3).invoke("slow-2000")
    assert server.runtime.requests["slow-2000"] == 1


def test_connections_are_opened_ahead_and_kept(server: LoopbackRuntime, make: Make) -> None:
    """Session tickets, which lie on them unread, do not count as a farewell."""
    caller = make(preconnect=5)
    assert caller.client.counts.connections_opened == 5
    for _ in range(3):
        caller.together(5, "slow-100")
    assert server.runtime.connections == 5


def test_response_streams(server: LoopbackRuntime, make: Make) -> None:
    caller = make()
    for _ in range(2):
        answer = caller.stream("stream-3")
        stream = answer["Body"]
        assert answer["ContentType"] == "text/plain"
        assert stream.time_to_first_byte is None
        parts = [event["PayloadPart"]["Bytes"] for event in caller.each(stream)]
        assert parts == [b"part 0;", b"part 1;", b"part 2;"]
        assert stream.time_to_first_byte > timedelta(0)
    assert server.runtime.connections == 1


def test_streams_that_break_or_are_left(make: Make) -> None:
    caller = make(concurrency=2)
    events = caller.each(caller.stream("broken-stream-2")["Body"])
    assert next(events) == {"PayloadPart": {"Bytes": b"part 0;"}}
    assert next(events) == {"PayloadPart": {"Bytes": b"part 1;"}}
    with pytest.raises(EventStreamError) as raised:
        next(events)
    assert raised.value.response["Error"]["Code"] == "ModelStreamError"
    with pytest.raises(ClientError):
        caller.stream("status-424")
    for name in ("stream-3", "half-stream-1", "half-stream-1"):
        stream = caller.stream(name)["Body"]
        next(caller.each(stream))
        stream.close()
    caller.rest()
    assert not [one for one in caller.client._pool._all if not one.reader.complete]
    caller.invoke("plain")


def test_a_stream_that_falls_silent(make: Make) -> None:
    caller = make(read_timeout=timedelta(milliseconds=500))
    stream = caller.stream("half-stream-1")["Body"]
    with pytest.raises(ReadTimeoutError):
        list(caller.each(stream))


def test_the_zone_fails_and_comes_back(server: LoopbackRuntime, folder: Path, make: Make) -> None:
    with LoopbackRuntime(folder) as zone:
        caller = make(zonal_urls={"use1-az4": zone.url}, zone="use1-az4", retries=0, preconnect=2)
        counts, route = caller.client.counts, caller.client.route
        assert counts.connections_opened == 3
        caller.invoke("plain")
        assert (zone.runtime.requests["plain"], server.runtime.requests["plain"]) == (1, 0)
        zone.stop()
        for _ in range(3):
            caller.invoke("plain")
        assert (zone.runtime.requests["plain"], server.runtime.requests["plain"]) == (1, 3)
        assert counts.failovers == 1
        zone.start()
        route._retry_at = 0.0  # the pause is over
        caller.invoke("headers")
        assert zone.runtime.last_headers["Host"] == zone.url.removeprefix("https://")
        signed = zone.runtime.last_headers["Authorization"]
        assert "host" in signed.split("SignedHeaders=")[1].split(",")[0].split(";")
        assert counts.recoveries == 1
        zone.stop()
        server.stop()
        caller.rest()
        with pytest.raises(EndpointConnectionError):
            caller.invoke("plain", Idempotent=False)


def test_a_models_error_is_no_failure_of_the_zone(
    server: LoopbackRuntime, folder: Path, make: Make
) -> None:
    with LoopbackRuntime(folder) as zone:
        caller = make(zonal_urls={"use1-az4": zone.url}, zone="use1-az4")
        for name in ("status-424", "status-503"):
            with pytest.raises(ClientError):
                caller.invoke(name)
        assert caller.client.route.zone_is_open
        assert server.runtime.requests.total() == 0


def test_an_unknown_zone_goes_to_the_region(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caller = make(zone="use1-az9", zonal_urls={"use1-az4": "https://vpce-x.example"})
    assert caller.client.route is None
    assert "use1-az9" in caplog.text


def test_a_slow_call_is_hedged_within_the_budget(server: LoopbackRuntime, make: Make) -> None:
    caller = make(hedging=Hedging(budget=0.1, delay=timedelta(milliseconds=30)))
    for _ in range(30):
        assert caller.invoke("sometimes-slow-400")["Body"].startswith(b'{"label"')
    caller.invoke("slow-100", Idempotent=False)
    counts = caller.client.counts
    assert 1 <= counts.hedges <= 1 + 0.1 * 30
    assert counts.hedges_won >= 1
    # A hedge may be given up, its call being answered, before the server has it.
    assert 30 < server.runtime.requests["sometimes-slow-400"] <= 30 + counts.hedges
    assert server.runtime.requests["slow-100"] == 1


def test_the_tls_context_verifies(server: LoopbackRuntime, make: Make, tmp_path: Path) -> None:
    """Another authority's certificate is refused, and so is another host's."""
    write_certificates(tmp_path)
    with pytest.raises(SSLError):
        make(ca_bundle=tmp_path / "ca.pem").invoke("plain")
    write_certificates(tmp_path, ("elsewhere.example",))
    with LoopbackRuntime(tmp_path) as other, pytest.raises(SSLError):
        make(ca_bundle=tmp_path / "ca.pem", url=other.url).invoke("plain")
    assert server.runtime.requests["plain"] == 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"Body": b"x"},
        {"EndpointName": "plain"},
        {"EndpointName": "plain", "Body": 7},
        {"EndpointName": "plain", "Body": b"x", "Unknown": "x"},
        {"EndpointName": "plain", "Body": b"x", "ContentType": 7},
        {"EndpointName": "plain", "Body": b"x", "ContentType": ["text/plain"]},
        {"EndpointName": "plain", "Body": b"x", "CustomAttributes": "a\r\nX-Injected: 1"},
    ],
)
def test_bad_parameters_are_botocores_error(
    server: LoopbackRuntime, make: Make, parameters: dict[str, Any]
) -> None:
    with pytest.raises(ParamValidationError):
        make().ask(**parameters)
    assert server.runtime.requests.total() == 0


def test_secrets_are_in_no_text(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caller = make(preconnect=2)
    caller.invoke("plain")
    with pytest.raises(ClientError) as raised:
        caller.invoke("status-424")
    client = caller.client
    shown = [repr(client), str(client.counts), str(raised.value), repr(client.timing)]
    shown += [repr(one) for one in (client._wire, *client._wire._prepared.values())]
    if caller.in_tasks:
        shown.append(repr(client._credentials))
    shown += [record.getMessage() for record in caplog.records]
    assert not [secret for secret in SECRETS if secret in " ".join(shown)]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"concurrency": 0}, "LLC102"),
        ({"preconnect": -1}, "LLC102"),
        ({"keepalive": timedelta(seconds=400)}, "LLC103"),
        ({"retries": 9}, "LLC104"),
        ({"url": "localhost"}, "LLC107"),
        ({"zonal_urls": {"use1-az1": "x"}}, "LLC107"),
        ({"session": boto3.Session()}, "LLC108"),
        ({"latency_target": 3}, "LLC125"),
    ],
)
def test_mistakes_are_coded(kind: str, arguments: dict[str, Any], code: str) -> None:
    with refused(code):
        Caller(kind, **arguments)


def test_credentials_are_needed(kind: str) -> None:
    with refused("LLC109"):
        Caller(kind, session=boto3.Session(region_name="us-east-1"))


def test_many_different_parameters_do_not_fill_the_memory(make: Make) -> None:
    wire = make().client._wire
    for number in range(600):
        wire.prepare("https://h", wire.invoke, {"EndpointName": "e", "InferenceId": str(number)})
    assert len(wire._prepared) <= 512


@pytest.mark.parametrize("kind", ["threads"])
def test_a_forked_child_hedges_with_its_own_locks(make: Make) -> None:
    client = make(hedging=Hedging()).client
    client._hedging._lock.acquire()  # as a thread of the parent's may have done
    client.start_anew()
    assert not client._hedging._lock.locked()
