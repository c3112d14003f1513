"""The asyncio client against a runtime on loopback: boto3's answers and errors, on both loops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
import uvloop
from botocore.credentials import RefreshableCredentials
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
from low_latency_endpoint.client.async_runtime_client import AsyncRuntimeClient
from low_latency_endpoint.client.hedging import Hedging
from low_latency_endpoint.errors import ConfigurationError

SECRETS = ("AKIDVISIBLE", "SECRETKEY", "SESSIONTOKEN")
TARGET = timedelta(milliseconds=100)
PATIENCE = timedelta(seconds=20)  # of a busy machine, where no timeout is meant
Use = Callable[[AsyncRuntimeClient], Awaitable[Any]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    write_certificates(made)
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[LoopbackRuntime]:
    with LoopbackRuntime(folder) as made:
        yield made


@pytest.fixture(params=["asyncio", "uvloop"])
def run(
    request: pytest.FixtureRequest, server: LoopbackRuntime, folder: Path
) -> Callable[..., AsyncRuntimeClient]:
    """Uses a client inside an event loop, and returns it for its counts."""
    factory = {"asyncio": None, "uvloop": uvloop.new_event_loop}[request.param]

    def run_with(use: Use, **more: Any) -> AsyncRuntimeClient:
        async def inside() -> AsyncRuntimeClient:
            async with client_of(server, folder, **more) as client:
                await asyncio.wait_for(use(client), 30)
                return client

        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(inside())

    return run_with


@cache
def session() -> boto3.Session:
    """One for all: each reads botocore's data anew."""
    return boto3.Session(*SECRETS, region_name="us-east-1")


def client_of(server: LoopbackRuntime, folder: Path, **more: Any) -> AsyncRuntimeClient:
    more = {
        "latency_target": TARGET,
        "preconnect": 0,
        "session": session(),
        "url": server.url,
        "ca_bundle": folder / "ca.pem",
        "connect_timeout": PATIENCE,
        "read_timeout": PATIENCE,
        **more,
    }
    return AsyncRuntimeClient(**more)


async def invoke(client: AsyncRuntimeClient, name: str, **more: Any) -> dict[str, Any]:
    return await client.invoke_endpoint(EndpointName=name, Body=b"{}", **more)


Run = Callable[..., AsyncRuntimeClient]


def test_answer_and_request_are_boto3s(server: LoopbackRuntime, folder: Path, run: Run) -> None:
    """Same dictionary (``Body`` read), same request on the wire."""
    parameters: dict[str, Any] = {
        "EndpointName": "headers",
        "Body": b'{"a": 1}',
        "ContentType": "application/json",
        "Accept": "text/plain",
        "CustomAttributes": "trace=1  2",
        "TargetVariant": "primary",
    }
    plain = session().client(
        "sagemaker-runtime", endpoint_url=server.url, verify=str(folder / "ca.pem")
    )
    theirs = plain.invoke_endpoint(**parameters)
    theirs["Body"] = theirs["Body"].read()
    sent = server.runtime.last_headers
    got: list[dict[str, Any]] = []

    async def use(client: AsyncRuntimeClient) -> None:
        got.append(await client.invoke_endpoint(**parameters))

    run(use)
    assert got[0] == theirs
    per_call = {
        "Authorization",
        "X-Amz-Date",
        "User-Agent",
        "amz-sdk-invocation-id",
        "amz-sdk-request",
    }
    ours = server.runtime.last_headers
    assert {key: ours[key] for key in ours if key not in per_call} == {
        key: sent[key] for key in sent if key not in per_call
    }


@pytest.mark.parametrize("status", [400, 424, 429, 500, 503])
def test_errors_are_boto3s(server: LoopbackRuntime, folder: Path, run: Run, status: int) -> None:
    plain = session().client(
        "sagemaker-runtime", endpoint_url=server.url, verify=str(folder / "ca.pem")
    )
    with pytest.raises(ClientError) as theirs:
        plain.invoke_endpoint(EndpointName=f"status-{status}", Body=b"{}")
    expected = theirs.value.response
    for one in ("MaxAttemptsReached", "RetryAttempts"):
        expected["ResponseMetadata"].pop(one, None)

    async def use(client: AsyncRuntimeClient) -> None:
        with pytest.raises(ClientError) as ours:
            await invoke(client, f"status-{status}")
        name = expected["Error"]["Code"]
        assert isinstance(ours.value, getattr(client.exceptions, name))
        assert type(ours.value).__name__ == type(theirs.value).__name__
        assert ours.value.operation_name == "InvokeEndpoint"
        ours.value.response["ResponseMetadata"].pop("RetryAttempts")
        assert ours.value.response == expected

    run(use, retries=0)


def test_retries_and_what_is_not_tried_again(server: LoopbackRuntime, run: Run) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        answer = await invoke(client, "once-503")
        assert answer["ResponseMetadata"]["RetryAttempts"] == 1
        with pytest.raises(ClientError):
            await invoke(client, "status-503")
        with pytest.raises(ConnectionClosedError):
            await invoke(client, "drop")
        for more in ({"Idempotent": False}, {"SessionId": "NEW_SESSION"}):
            before = server.runtime.requests.copy()
            with pytest.raises(ClientError):
                await invoke(client, "status-503", **more)
            with pytest.raises(ConnectionClosedError):
                await invoke(client, "drop", **more)
            assert (server.runtime.requests - before).total() == 2

    client = run(use)
    assert server.runtime.requests["once-503"] == 2
    assert client.counts.retries == 3


def test_a_slow_model_is_given_up_and_not_asked_again(server: LoopbackRuntime, run: Run) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        with pytest.raises(ReadTimeoutError):
            await invoke(client, "slow-2000")

    run(use, read_timeout=timedelta(milliseconds=50), retries=3)
    assert server.runtime.requests["slow-2000"] == 1


def test_connections_are_opened_ahead_and_kept(server: LoopbackRuntime, run: Run) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        for _ in range(3):
            await asyncio.gather(*(invoke(client, "slow-20") for _ in range(5)))

    client = run(use, preconnect=5)
    assert client.counts.connections_opened == 5
    assert server.runtime.connections == 5


def test_response_streams(server: LoopbackRuntime, run: Run) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        for _ in range(2):
            answer = await client.invoke_endpoint_with_response_stream(
                EndpointName="stream-3", Body=b"{}"
            )
            stream = answer["Body"]
            assert answer["ContentType"] == "text/plain"
            assert stream.time_to_first_byte is None
            parts = [event["PayloadPart"]["Bytes"] async for event in stream]
            assert parts == [b"part 0;", b"part 1;", b"part 2;"]
            assert stream.time_to_first_byte > timedelta(0)

    run(use)
    assert server.runtime.connections == 1


def test_a_stream_that_breaks(run: Run) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        answer = await client.invoke_endpoint_with_response_stream(
            EndpointName="broken-stream-2", Body=b"{}"
        )
        events = aiter(answer["Body"])
        assert await anext(events) == {"PayloadPart": {"Bytes": b"part 0;"}}
        assert await anext(events) == {"PayloadPart": {"Bytes": b"part 1;"}}
        with pytest.raises(EventStreamError) as raised:
            await anext(events)
        assert raised.value.response["Error"]["Code"] == "ModelStreamError"
        with pytest.raises(ClientError):
            await client.invoke_endpoint_with_response_stream(EndpointName="status-424", Body=b"")

    run(use)


def test_a_stream_left_early_costs_only_its_connection(server: LoopbackRuntime, run: Run) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        for _ in range(3):
            answer = await client.invoke_endpoint_with_response_stream(
                EndpointName="stream-3", Body=b"{}"
            )
            async with answer["Body"] as stream:
                async for _event in stream:
                    break
        await invoke(client, "plain")

    run(use, concurrency=1)


def test_the_zone_fails_and_comes_back(server: LoopbackRuntime, folder: Path, run: Run) -> None:
    with LoopbackRuntime(folder) as zone:

        async def use(client: AsyncRuntimeClient) -> None:
            await invoke(client, "plain")
            assert zone.runtime.requests["plain"] == 1
            zone.stop()
            for _ in range(3):
                await invoke(client, "plain")
            assert server.runtime.requests["plain"] == 3
            assert client.counts.failovers == 1
            zone.start()
            assert client.route is not None
            client.route._retry_at = 0.0  # the pause is over
            await invoke(client, "headers")
            assert zone.runtime.last_headers["Host"] == zone.url.removeprefix("https://")
            assert client.counts.recoveries == 1
            zone.stop()
            server.stop()
            await asyncio.sleep(0.05)  # the event loop sees the kept connections go
            with pytest.raises(EndpointConnectionError):
                await invoke(client, "plain", Idempotent=False)

        run(use, zonal_urls={"use1-az4": zone.url}, zone="use1-az4", retries=0)


def test_a_slow_call_is_hedged_within_the_budget(server: LoopbackRuntime, run: Run) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        for _ in range(30):
            await invoke(client, "sometimes-slow-400")
        await invoke(client, "slow-100", Idempotent=False)

    client = run(
        use,
        hedging=Hedging(budget=0.1, delay=timedelta(milliseconds=30)),
        read_timeout=timedelta(seconds=20),
    )
    assert 1 <= client.counts.hedges <= 1 + 0.1 * 30
    assert client.counts.hedges_won >= 1
    # A hedge may be given up, its call being answered, before the server has it.
    assert 30 < server.runtime.requests["sometimes-slow-400"] <= 30 + client.counts.hedges
    assert server.runtime.requests["slow-100"] == 1


def test_the_tls_context_verifies(server: LoopbackRuntime, run: Run, tmp_path: Path) -> None:
    write_certificates(tmp_path)

    async def use(client: AsyncRuntimeClient) -> None:
        with pytest.raises(SSLError):
            await invoke(client, "plain")

    run(use, ca_bundle=tmp_path / "ca.pem")
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
    server: LoopbackRuntime, run: Run, parameters: dict[str, Any]
) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        with pytest.raises(ParamValidationError):
            await client.invoke_endpoint(**parameters)

    run(use)
    assert server.runtime.requests.total() == 0


def test_many_different_parameters_do_not_fill_the_memory(run: Run) -> None:
    async def use(client: AsyncRuntimeClient) -> None:
        for number in range(600):
            client._wire.prepare(
                "https://h", client._wire.invoke, {"EndpointName": "e", "InferenceId": str(number)}
            )
        assert len(client._wire._prepared) <= 512

    run(use)


def test_credentials_are_refreshed_beside_the_event_loop(server: LoopbackRuntime, run: Run) -> None:
    import datetime
    import threading

    threads: list[str] = []

    def refresh() -> dict[str, str]:
        threads.append(threading.current_thread().name)
        soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=5)
        return {
            "access_key": "AKID",
            "secret_key": "s",
            "token": f"token{len(threads)}",
            "expiry_time": soon.isoformat(),
        }

    made = session()
    made._session._credentials = RefreshableCredentials.create_from_metadata(
        refresh(), refresh, "test"
    )

    async def use(client: AsyncRuntimeClient) -> None:
        await invoke(client, "headers")
        first = server.runtime.last_headers["X-Amz-Security-Token"]
        client._refresh_at = 0.0
        await invoke(client, "headers")
        assert client._refreshing is not None
        await client._refreshing
        client._wire._prepared.clear()  # the clock has not reached the next second
        await invoke(client, "headers")
        assert server.runtime.last_headers["X-Amz-Security-Token"] != first

    run(use, session=made)
    assert "MainThread" not in threads[1:]


def test_calls_after_a_long_pause_wait_for_new_credentials(
    server: LoopbackRuntime, run: Run
) -> None:
    import datetime

    now = datetime.datetime.now(datetime.UTC)
    made: list[str] = []

    def refresh() -> dict[str, str]:
        made.append(f"token{len(made)}")
        return {
            "access_key": "AKID",
            "secret_key": "s",
            "token": made[-1],
            "expiry_time": (now + datetime.timedelta(hours=1)).isoformat(),
        }

    with_expiry = session()
    with_expiry._session._credentials = RefreshableCredentials(
        "AKID",
        "s",
        "first",
        now + datetime.timedelta(hours=1),
        refresh,
        "test",
        time_fetcher=lambda: now,
    )

    async def use(client: AsyncRuntimeClient) -> None:
        nonlocal now
        now += datetime.timedelta(hours=2)
        client._refresh_at = 0.0  # two hours are more than the time between two looks, too
        await asyncio.gather(*(invoke(client, "headers") for _ in range(5)))
        assert server.runtime.last_headers["X-Amz-Security-Token"] == "token0"
        await invoke(client, "headers")

    run(use, session=with_expiry)
    assert made == ["token0"]


def test_secrets_are_in_no_text(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []

    async def use(client: AsyncRuntimeClient) -> None:
        await invoke(client, "plain")
        with pytest.raises(ClientError) as raised:
            await invoke(client, "status-424")
        shown.extend(
            [
                repr(client),
                str(client.counts),
                str(raised.value),
                repr(client._wire),
                repr(client._frozen),
            ]
        )
        shown.extend(repr(one) for one in client._wire._prepared.values())

    run(use)
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
        AsyncRuntimeClient(**arguments)
    assert raised.value.code == code
