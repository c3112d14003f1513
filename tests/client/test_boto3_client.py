"""The client of boto3's kind: what it relies on in botocore and urllib3, and what it leaves alone."""

from __future__ import annotations

import inspect
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import HTTPClientError
from moto import mock_aws

from benchmarks.tls_server import LoopbackRuntime
from low_latency_endpoint.client import boto3_client
from low_latency_endpoint.client.boto3_client import (
    Boto3RuntimeClient,
    Urllib3Connections,
    runtime_client,
)

from .callers import Caller, options, session

KINDS = ("boto3",)
Make = Callable[..., Caller]


def invoke(client: Any, name: str, **more: Any) -> Any:
    return client.invoke_endpoint(EndpointName=name, Body=b"{}", **more)


def test_it_is_boto3s_client(make: Make) -> None:
    caller = make()
    assert isinstance(caller.client, Boto3RuntimeClient)
    assert type(caller.client).__mro__[-2].__name__ == "BaseClient"
    answer = caller.invoke("plain", ContentType="application/json")
    assert answer["InvokedProductionVariant"] == "primary"


def test_the_pool_keeps_as_many_connections_as_there_are_threads(
    server: LoopbackRuntime, make: Make
) -> None:
    caller = make(concurrency=15)
    for _ in range(2):
        caller.together(15, "slow-100")
    assert server.runtime.connections <= 15


def test_the_user_agent_is_boto3s_own(server: LoopbackRuntime, folder: Path, make: Make) -> None:
    """Built once, it says what boto3 says; only the features per call are left out."""
    settings = Config(
        user_agent_extra="team/7", user_agent_appid="app", retries={"mode": "standard"}
    )
    plain = session().client(
        "sagemaker-runtime", endpoint_url=server.url, config=settings, verify=str(folder / "ca.pem")
    )
    invoke(plain, "headers")
    expected = server.runtime.last_headers["User-Agent"]
    make(config=settings).invoke("headers")
    assert _without_features(server.runtime.last_headers["User-Agent"]) == _without_features(
        expected
    )


def _without_features(agent: str) -> list[str]:
    return [part for part in agent.split() if not part.startswith("m/")]


def test_the_bundle_is_read_once(
    server: LoopbackRuntime, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []
    original = ssl.SSLContext.load_verify_locations
    monkeypatch.setattr(
        ssl.SSLContext,
        "load_verify_locations",
        lambda self, *args, **kw: (loaded.append(1), original(self, *args, **kw)),
    )
    make(preconnect=6).invoke("plain")
    assert server.runtime.connections == 6
    assert len(loaded) == 1


def test_keep_alive_is_on_the_sockets(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[socket.socket] = []
    original = urllib3.util.connection.create_connection

    def create(*args: Any, **more: Any) -> socket.socket:
        first = original(*args, **more)
        made.append(first.dup())  # TLS takes the first one over
        return first

    monkeypatch.setattr(urllib3.util.connection, "create_connection", create)
    make(keepalive=timedelta(seconds=42)).invoke("plain")
    (one,) = made
    assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 42
    one.close()


def test_behind_a_proxy_boto3s_transport_stays(make: Make) -> None:
    caller = make(config=Config(proxies={"https": "http://127.0.0.1:9"}))
    assert caller.client.preconnect(2) == 0
    with pytest.raises(Exception, match="proxy"):
        caller.invoke("plain")


def test_a_clients_session_makes_plain_clients_as_before(make: Make) -> None:
    make()
    assert not isinstance(session().client("sagemaker-runtime"), Boto3RuntimeClient)


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
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boto3_client, "_take_over", lambda *_: False)
    caller = make(preconnect=2)
    assert caller.client.counts.connections_opened == 0
    assert caller.invoke("once-503")["ResponseMetadata"]["RetryAttempts"] == 1


def test_under_motos_mock_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Urllib3Connections, "send", lambda *_: pytest.fail("sent although mocked"))
    with mock_aws():
        client = runtime_client(**options())
        assert invoke(client, "plain")["Body"].read() == b"body"
        client.close()


def test_without_urllib3s_seam_calls_still_work(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = make()
    connections = caller.client._handlers._connections
    assert connections is not None
    monkeypatch.setattr(connections, "connection_from_url", lambda origin: object())
    assert caller.client.preconnect(2) == 0
    monkeypatch.undo()
    assert caller.invoke("plain")["ResponseMetadata"]["HTTPStatusCode"] == 200
