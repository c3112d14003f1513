"""The synchronous client against a runtime on loopback: boto3's answers and errors."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import cache
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

from benchmarks.tls_server import LoopbackRuntime, write_certificates
from low_latency_endpoint.client.hedging import Hedging
from low_latency_endpoint.client.runtime_client import RuntimeClient
from low_latency_endpoint.errors import ConfigurationError

SECRETS = ("AKIDVISIBLE", "SECRETKEY", "SESSIONTOKEN")
TARGET = timedelta(milliseconds=100)
PATIENCE = timedelta(seconds=20)  # of a busy machine, where no timeout is meant
Make = Callable[..., RuntimeClient]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    write_certificates(made)
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[LoopbackRuntime]:
    with LoopbackRuntime(folder) as made:
        yield made


@cache
def session() -> boto3.Session:
    """One for all: each reads botocore's data anew."""
    return boto3.Session(*SECRETS, region_name="us-east-1")


@pytest.fixture
def make(server: LoopbackRuntime, folder: Path) -> Iterator[Make]:
    made: list[RuntimeClient] = []

    def client(**more: Any) -> RuntimeClient:
        made.append(
            RuntimeClient(
                **{
                    "latency_target": TARGET,
                    "preconnect": 0,
                    "session": session(),
                    "url": server.url,
                    "ca_bundle": folder / "ca.pem",
                    "connect_timeout": PATIENCE,
                    "read_timeout": PATIENCE,
                    **more,
                }
            )
        )
        return made[-1]

    yield client
    for one in made:
        one.close()


def invoke(client: Any, name: str, **more: Any) -> Any:
    return client.invoke_endpoint(EndpointName=name, Body=b"{}", **more)


def plain_boto3(server: LoopbackRuntime, folder: Path) -> Any:
    return session().client(
        "sagemaker-runtime", endpoint_url=server.url, verify=str(folder / "ca.pem")
    )


def test_answer_and_request_are_boto3s(server: LoopbackRuntime, folder: Path, make: Make) -> None:
    parameters: dict[str, Any] = {
        "EndpointName": "headers",
        "Body": b'{"a": 1}',
        "ContentType": "application/json",
        "Accept": "text/plain",
        "CustomAttributes": "trace=1  2",
        "TargetVariant": "primary",
    }
    theirs = plain_boto3(server, folder).invoke_endpoint(**parameters)
    sent = server.runtime.last_headers
    ours = make().invoke_endpoint(**parameters)
    assert type(ours["Body"]) is type(theirs["Body"])
    assert {**ours, "Body": ours["Body"].read()} == {**theirs, "Body": theirs["Body"].read()}
    assert ours["Body"].read() == b""
    per_call = {
        "Authorization",
        "X-Amz-Date",
        "User-Agent",
        "amz-sdk-invocation-id",
        "amz-sdk-request",
    }
    got = server.runtime.last_headers
    assert {key: got[key] for key in got if key not in per_call} == {
        key: sent[key] for key in sent if key not in per_call
    }


@pytest.mark.parametrize("status", [400, 424, 429, 500, 503])
def test_errors_are_boto3s(server: LoopbackRuntime, folder: Path, make: Make, status: int) -> None:
    with pytest.raises(ClientError) as theirs:
        invoke(plain_boto3(server, folder), f"status-{status}")
    client = make(retries=0)
    with pytest.raises(ClientError) as ours:
        invoke(client, f"status-{status}")
    for one in (theirs, ours):
        for name in ("MaxAttemptsReached", "RetryAttempts"):
            one.value.response["ResponseMetadata"].pop(name, None)
    assert ours.value.response == theirs.value.response
    code = theirs.value.response["Error"]["Code"]
    assert isinstance(ours.value, getattr(client.exceptions, code))


def test_retries_and_what_is_not_tried_again(server: LoopbackRuntime, make: Make) -> None:
    client = make()
    assert invoke(client, "once-503")["ResponseMetadata"]["RetryAttempts"] == 1
    with pytest.raises(ClientError):
        invoke(client, "status-503")
    with pytest.raises(ConnectionClosedError):
        invoke(client, "drop")
    for more in ({"Idempotent": False}, {"SessionId": "NEW_SESSION"}):
        before = server.runtime.requests.copy()
        with pytest.raises(ClientError):
            invoke(client, "status-503", **more)
        with pytest.raises(ConnectionClosedError):
            invoke(client, "drop", **more)
        assert (server.runtime.requests - before).total() == 2


def test_a_slow_model_is_given_up_and_not_asked_again(server: LoopbackRuntime, make: Make) -> None:
    with pytest.raises(ReadTimeoutError):
        invoke(make(read_timeout=timedelta(milliseconds=50), retries=3), "slow-2000")
    assert server.runtime.requests["slow-2000"] == 1


def test_connections_are_opened_ahead_and_kept(server: LoopbackRuntime, make: Make) -> None:
    """Session tickets, which lie on them unread, do not count as a farewell."""
    client = make(preconnect=5)
    assert client.counts.connections_opened == 5
    for _ in range(3):
        threads = [threading.Thread(target=invoke, args=(client, "slow-20")) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.runtime.connections == 5


def test_response_streams(server: LoopbackRuntime, make: Make) -> None:
    client = make()
    for _ in range(2):
        answer = client.invoke_endpoint_with_response_stream(EndpointName="stream-3", Body=b"{}")
        stream = answer["Body"]
        assert answer["ContentType"] == "text/plain"
        assert stream.time_to_first_byte is None
        assert [event["PayloadPart"]["Bytes"] for event in stream] == [
            b"part 0;",
            b"part 1;",
            b"part 2;",
        ]
        assert stream.time_to_first_byte > timedelta(0)
    assert server.runtime.connections == 1


def test_streams_that_break_or_are_left(server: LoopbackRuntime, make: Make) -> None:
    client = make()
    events = iter(
        client.invoke_endpoint_with_response_stream(EndpointName="broken-stream-2", Body=b"{}")[
            "Body"
        ]
    )
    assert next(events) == {"PayloadPart": {"Bytes": b"part 0;"}}
    assert next(events) == {"PayloadPart": {"Bytes": b"part 1;"}}
    with pytest.raises(EventStreamError) as raised:
        next(events)
    assert raised.value.response["Error"]["Code"] == "ModelStreamError"
    with pytest.raises(ClientError):
        client.invoke_endpoint_with_response_stream(EndpointName="status-424", Body=b"")
    with client.invoke_endpoint_with_response_stream(EndpointName="half-stream-1", Body=b"{}")[
        "Body"
    ] as stream:
        next(iter(stream))
    assert not [one for one in client._pool._all if not one.reader.complete]
    invoke(client, "plain")


def test_a_stream_that_falls_silent(make: Make) -> None:
    client = make(read_timeout=timedelta(milliseconds=50))
    stream = client.invoke_endpoint_with_response_stream(EndpointName="half-stream-1", Body=b"{}")
    with pytest.raises(ReadTimeoutError):
        list(stream["Body"])


def test_the_zone_fails_and_comes_back(server: LoopbackRuntime, folder: Path, make: Make) -> None:
    with LoopbackRuntime(folder) as zone:
        client = make(zonal_urls={"use1-az4": zone.url}, zone="use1-az4", retries=0, preconnect=2)
        assert client.counts.connections_opened == 3
        invoke(client, "plain")
        assert zone.runtime.requests["plain"] == 1
        zone.stop()
        for _ in range(3):
            invoke(client, "plain")
        assert server.runtime.requests["plain"] == 3
        assert client.counts.failovers == 1
        zone.start()
        assert client.route is not None
        client.route._retry_at = 0.0  # the pause is over
        invoke(client, "headers")
        assert zone.runtime.last_headers["Host"] == zone.url.removeprefix("https://")
        assert client.counts.recoveries == 1
        zone.stop()
        server.stop()
        with pytest.raises(EndpointConnectionError):
            invoke(client, "plain", Idempotent=False)


def test_a_slow_call_is_hedged_within_the_budget(server: LoopbackRuntime, make: Make) -> None:
    client = make(hedging=Hedging(budget=0.1, delay=timedelta(milliseconds=30)))
    for _ in range(30):
        assert invoke(client, "sometimes-slow-400")["Body"].read().startswith(b'{"label"')
    invoke(client, "slow-100", Idempotent=False)
    assert 1 <= client.counts.hedges <= 1 + 0.1 * 30
    # A hedge may be given up, its call being answered, before the server has it.
    assert 30 < server.runtime.requests["sometimes-slow-400"] <= 30 + client.counts.hedges
    assert server.runtime.requests["slow-100"] == 1


def test_the_tls_context_verifies(server: LoopbackRuntime, make: Make, tmp_path: Path) -> None:
    write_certificates(tmp_path)
    with pytest.raises(SSLError):
        invoke(make(ca_bundle=tmp_path / "ca.pem"), "plain")
    assert server.runtime.requests["plain"] == 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"Body": b"x"},
        {"EndpointName": "plain"},
        {"EndpointName": "plain", "Body": 7},
        {"EndpointName": "plain", "Body": b"x", "Unknown": "x"},
        {"EndpointName": "plain", "Body": b"x", "ContentType": 7},
        {"EndpointName": "plain", "Body": b"x", "CustomAttributes": "a\r\nX-Injected: 1"},
    ],
)
def test_bad_parameters_are_botocores_error(
    server: LoopbackRuntime, make: Make, parameters: dict[str, Any]
) -> None:
    with pytest.raises(ParamValidationError):
        make().invoke_endpoint(**parameters)
    assert server.runtime.requests.total() == 0


def test_a_closed_client_ends_calls_under_way_and_opens_nothing(
    server: LoopbackRuntime, make: Make
) -> None:
    client = make()
    raised: list[BaseException] = []

    def call() -> None:
        try:
            invoke(client, "slow-10000")
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    while server.runtime.requests["slow-10000"] < 4:
        time.sleep(0.01)
    client.close()
    for thread in threads:
        thread.join(5)
    assert [isinstance(error, ConnectionClosedError) for error in raised] == [True] * 4
    assert not client._pool._all
    assert server.runtime.requests["slow-10000"] == 4


def test_secrets_are_in_no_text(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client = make()
    invoke(client, "plain")
    with pytest.raises(ClientError) as raised:
        invoke(client, "status-424")
    shown = [repr(client), str(client.counts), str(raised.value), repr(client._wire)]
    shown += [repr(one) for one in client._wire._prepared.values()]
    shown += [record.getMessage() for record in caplog.records]
    assert not [secret for secret in SECRETS if secret in " ".join(shown)]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"concurrency": 0}, "LLC102"),
        ({"keepalive": timedelta(seconds=400)}, "LLC103"),
        ({"url": "localhost"}, "LLC107"),
        ({"session": boto3.Session()}, "LLC108"),
        ({"session": boto3.Session(region_name="us-east-1")}, "LLC109"),
    ],
)
def test_mistakes_are_coded(arguments: dict[str, Any], code: str) -> None:
    arguments = {"latency_target": TARGET, "session": session(), **arguments}
    with pytest.raises(ConfigurationError) as raised:
        RuntimeClient(**arguments)
    assert raised.value.code == code
