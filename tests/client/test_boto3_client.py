"""The boto3 client against a runtime on loopback, and what it relies on in botocore and urllib3."""

from __future__ import annotations

import inspect
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    ParamValidationError,
    ReadTimeoutError,
    SSLError,
)
from moto import mock_aws

from benchmarks.tls_server import LoopbackRuntime, write_certificates
from low_latency_endpoint.client import boto3_client
from low_latency_endpoint.client.boto3_client import Boto3RuntimeClient, runtime_client
from low_latency_endpoint.client.boto3_connections import Urllib3Connections
from low_latency_endpoint.client.hedging import Hedging
from low_latency_endpoint.errors import ConfigurationError

SECRETS = ("AKIDVISIBLE", "SECRETKEY", "SESSIONTOKEN")
TARGET = timedelta(milliseconds=100)
PATIENCE = timedelta(seconds=20)  # of a busy machine, where no timeout is meant


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


def client_of(server: LoopbackRuntime, folder: Path, **more: Any) -> Boto3RuntimeClient:
    more = {
        "latency_target": TARGET,
        "preconnect": 0,
        "connect_timeout": PATIENCE,
        "read_timeout": PATIENCE,
        **more,
    }
    return runtime_client(session=session(), url=server.url, ca_bundle=folder / "ca.pem", **more)


def invoke(client: Any, name: str, **more: Any) -> Any:
    return client.invoke_endpoint(EndpointName=name, Body=b"{}", **more)


def test_it_is_boto3s_client(server: LoopbackRuntime, folder: Path) -> None:
    client = client_of(server, folder)
    answer = invoke(client, "plain", ContentType="application/json")
    assert answer["Body"].read().startswith(b'{"label"')
    assert answer["InvokedProductionVariant"] == "primary"
    assert isinstance(client, Boto3RuntimeClient)
    assert type(client).__mro__[-2].__name__ == "BaseClient"
    with pytest.raises(ParamValidationError):
        client.invoke_endpoint(EndpointName="plain")
    client.close()


def test_response_streams(server: LoopbackRuntime, folder: Path) -> None:
    client = client_of(server, folder)
    stream = client.invoke_endpoint_with_response_stream(EndpointName="stream-3", Body=b"{}")
    parts = [event["PayloadPart"]["Bytes"] for event in stream["Body"]]
    assert parts == [b"part 0;", b"part 1;", b"part 2;"]
    client.close()


def test_preconnected_connections_are_the_ones_used(server: LoopbackRuntime, folder: Path) -> None:
    client = client_of(server, folder, preconnect=4)
    assert client.counts.connections_opened == 4
    threads = [
        threading.Thread(target=lambda: invoke(client, "slow-200")["Body"].read()) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.runtime.connections == 4
    client.close()


def test_the_pool_keeps_as_many_connections_as_there_are_threads(
    server: LoopbackRuntime, folder: Path
) -> None:
    client = client_of(server, folder, concurrency=15)
    for _ in range(2):
        start = threading.Barrier(15)

        def call(start: threading.Barrier = start) -> None:
            start.wait()
            invoke(client, "slow-100")["Body"].read()

        threads = [threading.Thread(target=call) for _ in range(15)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert server.runtime.connections <= 15
    client.close()


@pytest.mark.parametrize(
    ("status", "name"),
    [(400, "ValidationError"), (424, "ModelError"), (429, "ModelNotReadyException")],
)
def test_errors_are_boto3s_and_tried_once(
    server: LoopbackRuntime, folder: Path, status: int, name: str
) -> None:
    client = client_of(server, folder)
    with pytest.raises(ClientError) as raised:
        invoke(client, f"status-{status}")
    assert raised.value.response["Error"]["Code"] == name
    assert isinstance(raised.value, getattr(client.exceptions, name))
    assert "max retries" not in str(raised.value)
    assert server.runtime.requests[f"status-{status}"] == 1
    client.close()


@pytest.mark.parametrize(("retries", "requests"), [(0, 1), (1, 2), (3, 4)])
def test_retries_are_those_asked_for(
    server: LoopbackRuntime, folder: Path, retries: int, requests: int
) -> None:
    client = client_of(server, folder, retries=retries)
    with pytest.raises(ClientError):
        invoke(client, "status-503")
    assert server.runtime.requests["status-503"] == requests
    assert client.counts.retries == retries
    client.close()


def test_an_endpoint_that_recovers(server: LoopbackRuntime, folder: Path) -> None:
    client = client_of(server, folder)
    assert invoke(client, "once-503")["ResponseMetadata"]["RetryAttempts"] == 1
    client.close()


@pytest.mark.parametrize("more", [{"Idempotent": False}, {"SessionId": "NEW_SESSION"}])
@pytest.mark.parametrize("name", ["status-503", "drop"])
def test_what_is_not_idempotent_is_sent_once(
    server: LoopbackRuntime, folder: Path, name: str, more: dict[str, Any]
) -> None:
    client = client_of(server, folder, retries=3)
    with pytest.raises((ClientError, ConnectionClosedError)):
        invoke(client, name, **more)
    assert server.runtime.requests[name] == 1
    client.close()


def test_idempotent_is_not_sent_to_aws(server: LoopbackRuntime, folder: Path) -> None:
    client = client_of(server, folder)
    invoke(client, "headers", Idempotent=True, SessionId="s-1")
    assert not [name for name in server.runtime.last_headers if "dempotent" in name]
    client.close()


def test_a_slow_model_is_given_up_and_not_asked_again(
    server: LoopbackRuntime, folder: Path
) -> None:
    client = client_of(server, folder, read_timeout=timedelta(milliseconds=50), retries=3)
    with pytest.raises(ReadTimeoutError):
        invoke(client, "slow-2000")
    assert server.runtime.requests["slow-2000"] == 1
    client.close()


def test_the_user_agent_is_boto3s_own(server: LoopbackRuntime, folder: Path) -> None:
    """Built once, it says what boto3 says; only the features per call are left out."""
    settings = Config(
        user_agent_extra="team/7", user_agent_appid="app", retries={"mode": "standard"}
    )
    plain = session().client(
        "sagemaker-runtime", endpoint_url=server.url, config=settings, verify=str(folder / "ca.pem")
    )
    invoke(plain, "headers")
    expected = server.runtime.last_headers["User-Agent"]
    client = client_of(server, folder, config=settings)
    invoke(client, "headers")
    assert _without_features(server.runtime.last_headers["User-Agent"]) == _without_features(
        expected
    )
    client.close()


def _without_features(agent: str) -> list[str]:
    return [part for part in agent.split() if not part.startswith("m/")]


def test_the_tls_context_verifies(server: LoopbackRuntime, tmp_path: Path) -> None:
    """Another authority's certificate is refused, and so is another host's."""
    write_certificates(tmp_path)
    client = client_of(server, tmp_path)
    with pytest.raises(SSLError):
        invoke(client, "plain")
    client.close()
    write_certificates(tmp_path, ("elsewhere.example",))
    with LoopbackRuntime(tmp_path) as other:
        client = client_of(other, tmp_path)
        with pytest.raises(SSLError):
            invoke(client, "plain")
        client.close()
    assert server.runtime.requests["plain"] == 0


def test_the_bundle_is_read_once(
    server: LoopbackRuntime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ssl

    loaded = []
    original = ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(
        ssl.SSLContext,
        "load_verify_locations",
        lambda self, *args, **kw: (loaded.append(1), original(self, *args, **kw)),
    )
    client = client_of(server, folder, preconnect=6)
    invoke(client, "plain")
    assert server.runtime.connections == 6
    assert len(loaded) == 1
    client.close()


def test_keep_alive_is_on_the_sockets(
    server: LoopbackRuntime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[socket.socket] = []
    original = urllib3.util.connection.create_connection

    def create(*args: Any, **more: Any) -> socket.socket:
        first = original(*args, **more)
        made.append(first.dup())  # TLS takes the first one over
        return first

    monkeypatch.setattr(urllib3.util.connection, "create_connection", create)
    client = client_of(server, folder, keepalive=timedelta(seconds=42))
    invoke(client, "plain")
    (one,) = made
    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 42
    one.close()
    client.close()


def zonal(
    server: LoopbackRuntime, zone: LoopbackRuntime, folder: Path, **more: Any
) -> Boto3RuntimeClient:
    return client_of(server, folder, zonal_urls={"use1-az4": zone.url}, zone="use1-az4", **more)


def test_the_zone_fails_and_comes_back(server: LoopbackRuntime, folder: Path) -> None:
    with LoopbackRuntime(folder) as zone:
        client = zonal(server, zone, folder, retries=0, preconnect=2)
        assert client.counts.connections_opened == 3
        invoke(client, "plain")["Body"].read()
        assert (zone.runtime.requests["plain"], server.runtime.requests["plain"]) == (1, 0)
        zone.stop()
        for _ in range(3):
            invoke(client, "plain")["Body"].read()
        assert (zone.runtime.requests["plain"], server.runtime.requests["plain"]) == (1, 3)
        assert client.counts.failovers == 1
        zone.start()
        assert client.route is not None
        client.route._retry_at = 0.0  # the pause is over
        invoke(client, "plain")["Body"].read()
        assert zone.runtime.requests["plain"] == 2
        assert client.counts.recoveries == 1
        client.close()


def test_the_signature_is_for_the_zones_host(server: LoopbackRuntime, folder: Path) -> None:
    with LoopbackRuntime(folder) as zone:
        client = zonal(server, zone, folder)
        invoke(client, "headers")
        assert zone.runtime.last_headers["Host"] == zone.url.removeprefix("https://")
        signed = zone.runtime.last_headers["Authorization"]
        assert "host" in signed.split("SignedHeaders=")[1].split(",")[0].split(";")
        client.close()


def test_a_models_error_is_no_failure_of_the_zone(server: LoopbackRuntime, folder: Path) -> None:
    with LoopbackRuntime(folder) as zone:
        client = zonal(server, zone, folder)
        for name in ("status-424", "status-503"):
            with pytest.raises(ClientError):
                invoke(client, name)
        assert client.route is not None
        assert client.route.zone_is_open
        assert server.runtime.requests.total() == 0
        client.close()


def test_when_zone_and_region_fail_the_callers_error_is_boto3s(
    server: LoopbackRuntime, folder: Path
) -> None:
    with LoopbackRuntime(folder) as zone:
        client = zonal(server, zone, folder)
        zone.stop()
        server.stop()
        with pytest.raises(EndpointConnectionError):
            invoke(client, "plain", Idempotent=False)
        client.close()


def test_an_unknown_zone_goes_to_the_region(
    server: LoopbackRuntime, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = client_of(
        server, folder, zone="use1-az9", zonal_urls={"use1-az4": "https://vpce-x.example"}
    )
    assert client.route is None
    assert "use1-az9" in caplog.text
    client.close()


def test_a_slow_call_is_hedged_within_the_budget(server: LoopbackRuntime, folder: Path) -> None:
    hedging = Hedging(budget=0.1, delay=timedelta(milliseconds=30))
    client = client_of(server, folder, hedging=hedging, read_timeout=timedelta(seconds=20))
    for _ in range(30):
        assert invoke(client, "sometimes-slow-400")["Body"].read().startswith(b'{"label"')
    assert 1 <= client.counts.hedges <= 1 + 0.1 * 30
    assert client.counts.hedges_won >= 1
    # A hedge may be given up, its call being answered, before the server has it.
    assert 30 < server.runtime.requests["sometimes-slow-400"] <= 30 + client.counts.hedges
    client.close()


def test_a_call_that_is_not_idempotent_is_not_hedged(server: LoopbackRuntime, folder: Path) -> None:
    client = client_of(server, folder, hedging=Hedging(delay=timedelta(milliseconds=5)))
    invoke(client, "slow-100", Idempotent=False)
    assert server.runtime.requests["slow-100"] == 1
    client.close()


def test_behind_a_proxy_boto3s_transport_stays(server: LoopbackRuntime, folder: Path) -> None:
    client = client_of(server, folder, config=Config(proxies={"https": "http://127.0.0.1:9"}))
    assert client.preconnect(2) == 0
    with pytest.raises(Exception, match="proxy"):
        invoke(client, "plain")
    client.close()


def test_secrets_are_in_no_text(
    server: LoopbackRuntime, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Of ours: botocore's own debug log is known to show signed requests."""
    caplog.set_level(logging.DEBUG)
    client = client_of(server, folder, preconnect=2)
    invoke(client, "plain")
    shown = [repr(client), str(client.counts), repr(client.timing)]
    for record in caplog.records:
        if record.name.startswith("low_latency_endpoint"):
            shown.append(record.getMessage())
    assert not [secret for secret in SECRETS if secret in " ".join(shown)]
    client.close()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"concurrency": 0}, "LLC102"),
        ({"preconnect": -1}, "LLC102"),
        ({"keepalive": timedelta(seconds=400)}, "LLC103"),
        ({"retries": 9}, "LLC104"),
        ({"url": "localhost"}, "LLC107"),
        ({"zonal_urls": {"use1-az1": "x"}}, "LLC107"),
        ({"latency_target": 3}, "LLE801"),
    ],
)
def test_mistakes_are_coded(arguments: dict[str, Any], code: str) -> None:
    arguments = {"latency_target": TARGET, "session": session(), **arguments}
    with pytest.raises(ConfigurationError) as raised:
        runtime_client(**arguments)
    assert raised.value.code == code


def test_a_region_is_needed() -> None:
    with pytest.raises(ConfigurationError) as raised:
        runtime_client(latency_target=TARGET, session=boto3.Session())
    assert raised.value.code == "LLC108"


def test_a_clients_session_makes_plain_clients_as_before(
    server: LoopbackRuntime, folder: Path
) -> None:
    shared = session()
    runtime_client(
        session=shared,
        url=server.url,
        ca_bundle=folder / "ca.pem",
        latency_target=TARGET,
        preconnect=0,
    ).close()
    assert not isinstance(shared.client("sagemaker-runtime"), Boto3RuntimeClient)


def test_importing_it_loads_boto3_only() -> None:
    code = (
        "import sys, low_latency_endpoint.client.runtime_client\n"
        "names = ('aws_cdk', 'jsii', 'moto', 'pydantic', 'typer', 'aiohttp', 'uvloop')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_seams_are_where_they_were() -> None:
    """What the client uses beyond the documented surface of botocore and urllib3.

    When this fails after an update, the client still works: it then keeps botocore's connections,
    opens none ahead, or trusts the authorities that the environment names.
    """

    class Instead:
        def send(self, request: Any) -> Any:
            raise HTTPClientError(error=f"{request.method} {request.stream_output}")

    plain = session().client("sagemaker-runtime", config=Config(retries={"total_max_attempts": 1}))
    plain._endpoint.http_session = Instead()
    with pytest.raises(HTTPClientError, match="POST True"):
        invoke(plain, "plain")
    pool = urllib3.HTTPSConnectionPool("localhost")
    assert set(inspect.signature(pool._get_conn).parameters) == {"timeout"}
    assert set(inspect.signature(pool._put_conn).parameters) == {"conn"}
    assert isinstance(urllib3.connection.HTTPSConnection.is_connected, property)
    assert boto3.Session()._session.get_config_variable("ca_bundle") is None


def test_without_botocores_seam_calls_still_work(
    server: LoopbackRuntime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boto3_client, "_take_over", lambda *_: False)
    client = client_of(server, folder, preconnect=2)
    assert client.counts.connections_opened == 0
    assert invoke(client, "once-503")["ResponseMetadata"]["RetryAttempts"] == 1
    client.close()


def test_under_motos_mock_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Urllib3Connections, "send", lambda *_: pytest.fail("sent although mocked"))
    with mock_aws():
        client = runtime_client(session=session(), latency_target=TARGET, preconnect=0)
        assert invoke(client, "plain")["Body"].read() == b"body"
        client.close()


def test_without_urllib3s_seam_calls_still_work(
    server: LoopbackRuntime, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(server, folder)
    connections = client._handlers._connections
    assert connections is not None
    monkeypatch.setattr(connections, "connection_from_url", lambda origin: object())
    assert client.preconnect(2) == 0
    monkeypatch.undo()
    assert invoke(client, "plain")["ResponseMetadata"]["HTTPStatusCode"] == 200
    client.close()
