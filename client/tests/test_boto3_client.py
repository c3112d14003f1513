"""boto3's own client, set up: its settings, its connections, and what that relies on in botocore."""

from __future__ import annotations

import functools
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
import urllib3
from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import ClientError, ProxyConnectionError, ReadTimeoutError, SSLError
from botocore.httpsession import URLLib3Session
from moto import mock_aws

from low_latency_client.boto3_client import runtime_client, set_up_connections

from .callers import PATIENCE, session
from .loopback_runtime import LoopbackRuntime, write_certificates
from .refusals import refused

Make = Callable[..., Any]


def options(**more: Any) -> dict[str, Any]:
    """Arguments of a client that waits long."""
    return {
        "latency_target": timedelta(milliseconds=100),
        "session": session(),
        "connect_timeout": PATIENCE,
        "read_timeout": PATIENCE,
        **more,
    }


@pytest.fixture
def make(server: LoopbackRuntime, folder: Path) -> Iterator[Make]:
    """Makes clients of the server, and closes them."""
    clients: list[Any] = []

    def client(**more: Any) -> Any:
        arguments = options(url=server.url, ca_bundle=folder / "ca.pem")
        clients.append(runtime_client(**{**arguments, **more}))
        return clients[-1]

    yield client
    for client_of_test in clients:
        client_of_test.close()


def invoke(client: Any, name: str) -> Any:
    return client.invoke_endpoint(EndpointName=name, Body=b"{}")


def invoke_together(client: Any, number: int, name: str) -> None:
    with ThreadPoolExecutor(number) as threads:
        list(threads.map(lambda _: invoke(client, name)["Body"].read(), range(number)))


def test_it_is_boto3s_client(make: Make) -> None:
    client = make()
    plain = session().client("sagemaker-runtime")
    assert isinstance(client, BaseClient)
    assert type(client).__mro__[1:] == type(plain).__mro__[1:]
    assert invoke(client, "plain")["InvokedProductionVariant"] == "primary"


def test_settings_follow_the_latency_target(make: Make) -> None:
    client = runtime_client(latency_target=timedelta(milliseconds=200), session=session())
    config = client.meta.config
    assert (config.connect_timeout, config.read_timeout) == (0.4, 2.0)
    assert (config.max_pool_connections, config.tcp_keepalive) == (50, True)
    assert client.meta.endpoint_url == "https://runtime.sagemaker.us-east-1.amazonaws.com"


def test_a_config_adds_settings_and_replaces_none(server: LoopbackRuntime, make: Make) -> None:
    client = make(concurrency=7, config=Config(user_agent_extra="team/7", max_pool_connections=3))
    assert client.meta.config.max_pool_connections == 7
    invoke(client, "headers")
    assert server.runtime.last_headers["User-Agent"].endswith("team/7")


@pytest.mark.parametrize(("retries", "requests"), [(0, 1), (1, 2)])
def test_retries_are_those_asked_for(
    server: LoopbackRuntime, make: Make, retries: int, requests: int
) -> None:
    with pytest.raises(ClientError):
        invoke(make(retries=retries), "status-503")
    assert server.runtime.requests["status-503"] == requests


def test_a_slow_model_is_given_up(server: LoopbackRuntime, make: Make) -> None:
    client = make(read_timeout=timedelta(milliseconds=50), retries=0)
    with pytest.raises(ReadTimeoutError):
        invoke(client, "slow-2000")
    assert server.runtime.requests["slow-2000"] == 1


def test_the_pool_keeps_as_many_connections_as_there_are_threads(
    server: LoopbackRuntime, make: Make
) -> None:
    client = make(concurrency=15)
    for _ in range(2):
        invoke_together(client, 15, "slow-100")
    assert server.runtime.connections <= 15


def test_the_bundle_is_read_once_for_all_connections(
    server: LoopbackRuntime, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles: list[Any] = []
    original = ssl.SSLContext.load_verify_locations

    def load(context: ssl.SSLContext, *arguments: Any) -> None:
        bundles.append(arguments)
        original(context, *arguments)

    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", load)
    client = make()
    for _ in range(3):
        invoke(client, "close")
    assert server.runtime.connections == 3
    assert len(bundles) == 1


def test_keep_alive_is_on_the_sockets(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets: list[socket.socket] = []
    original = urllib3.util.connection.create_connection

    def create(*arguments: Any, **more: Any) -> socket.socket:
        connection = original(*arguments, **more)
        sockets.append(connection.dup())  # TLS takes the first one over
        return connection

    monkeypatch.setattr(urllib3.util.connection, "create_connection", create)
    invoke(make(keepalive=timedelta(seconds=42)), "plain")
    (connection,) = sockets
    assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 42
    assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    connection.close()


def test_another_authoritys_certificate_is_refused(
    server: LoopbackRuntime, make: Make, tmp_path: Path
) -> None:
    """Also after another client read the right one."""
    invoke(make(), "plain")
    write_certificates(tmp_path)
    with pytest.raises(SSLError):
        invoke(make(ca_bundle=tmp_path / "ca.pem"), "plain")
    assert server.runtime.requests["plain"] == 1


@pytest.mark.parametrize("names", [(), ("localhost",), ("other.example.com",)])
def test_certificates_are_checked_by_their_alternative_names_alone(
    make: Make, names: tuple[str, ...], tmp_path: Path
) -> None:
    write_certificates(tmp_path, names, common_name="localhost")
    with LoopbackRuntime(tmp_path) as server:
        client = make(url=server.url, ca_bundle=tmp_path / "ca.pem", retries=0)
        if names == ("localhost",):
            assert invoke(client, "plain")["Body"]
        else:
            with pytest.raises(SSLError):
                invoke(client, "plain")


def test_a_proxy_is_used(make: Make) -> None:
    client = make(config=Config(proxies={"https": "http://127.0.0.1:9"}), retries=0)
    with pytest.raises(ProxyConnectionError):
        invoke(client, "plain")


def test_under_motos_mock_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(URLLib3Session, "send", lambda *_: pytest.fail("sent although mocked"))
    with mock_aws():
        client = runtime_client(**options())
        assert invoke(client, "plain")["Body"].read() == b"body"
        client.close()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"concurrency": 0}, "LLC102"),
        ({"keepalive": timedelta(seconds=400)}, "LLC103"),
        ({"retries": 9}, "LLC104"),
        ({"url": "localhost"}, "LLC107"),
        ({"session": boto3.Session()}, "LLC108"),
        ({"url": "http://runtime.example.com"}, "LLC110"),
        ({"latency_target": 3}, "LLC125"),
    ],
)
def test_mistakes_are_coded(arguments: dict[str, Any], code: str) -> None:
    with refused(code):
        runtime_client(**options(**arguments))


def test_clear_text_stays_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime_client(**options(url="http://runtime.example.com", allow_plain_http=True)).close()
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", "http://runtime.example.com/path")
    with refused("LLC110"):
        runtime_client(**options())


def test_importing_it_loads_boto3_only() -> None:
    code = (
        "import sys, low_latency_client.blocking_client\n"
        "names = ('aws_cdk', 'jsii', 'moto', 'pydantic', 'typer', 'aiohttp', 'uvloop')\n"
        "print([name for name in names if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_botocore_has_the_private_attributes_that_the_client_relies_on(make: Make) -> None:
    """If this fails after an update of botocore, look for another way to these two settings.

    The client still works then, as boto3 made it: it reads the authorities for each connection, and
    its TCP keep-alive comes too late for PrivateLink.
    """
    plain = session().client("sagemaker-runtime")._endpoint.http_session._manager
    assert isinstance(plain, urllib3.PoolManager)
    assert isinstance(plain.connection_pool_kw["ssl_context"], ssl.SSLContext)
    assert "socket_options" in plain.connection_pool_kw
    ours = make()._endpoint.http_session._manager.connection_pool_kw
    assert isinstance(ours["ssl_context"].load_verify_locations, functools._lru_cache_wrapper)
    assert (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60) in ours["socket_options"]


def test_without_these_attributes_the_client_stays_as_boto3_made_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    set_up_connections(object(), [])
    assert "new ones will be slow" in caplog.text
