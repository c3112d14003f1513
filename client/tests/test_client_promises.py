"""What both clients promise alike: no clear text, no NUL, an end in time, closed is closed."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import botocore.exceptions
import pytest
from botocore.config import Config
from botocore.exceptions import HTTPClientError, ParamValidationError, ReadTimeoutError, SSLError

from low_latency_client import ConfigurationError, client_base
from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_client.blocking_client import RuntimeClient
from low_latency_client.hedging import Hedging
from low_latency_client.zone import checked_origin

from .callers import SECRETS, Caller, options
from .loopback_runtime import LoopbackRuntime, write_certificates
from .refusals import refused
from .threaded_server import ScriptedServer

KINDS = ("threads", "asyncio")
QUICK: dict[str, Any] = {
    "connect_timeout": timedelta(seconds=1),
    "read_timeout": timedelta(milliseconds=400),
}


@pytest.fixture
def server() -> Iterator[LoopbackRuntime]:
    """Without TLS."""
    with LoopbackRuntime() as made:
        yield made


@pytest.fixture(scope="module")
def unreached() -> Iterator[LoopbackRuntime]:
    """For requests that are not sent: nobody has connected to it, whatever went before."""
    with LoopbackRuntime() as made:
        yield made


@pytest.fixture(autouse=True, scope="module")
def authorities() -> Iterator[None]:
    """Reading the certificate authorities takes longer than most tests here: once for all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client_base, "tls_context", functools.cache(client_base.tls_context))
        yield


@pytest.mark.parametrize(
    "url",
    [
        "http://runtime.example.com",
        "http://10.0.0.1:8080",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://[2001:db8::1]",
        "HTTP://EXAMPLE.COM",
    ],
)
def test_clear_text_stays_on_this_machine(kind: str, url: str) -> None:
    for where in ({"url": url}, {"zonal_urls": {"use1-az1": url}, "zone": "use1-az1"}):
        with refused("LLC110"):
            Caller(kind, **where)
    Caller(kind, url=url, allow_plain_http=True).close()


def test_clear_text_from_the_environment_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME", "http://runtime.example.com")
    with refused("LLC110"):
        Caller(kind)


REMOTE = "https://runtime.example.com"
PROXY = "http://user:secret@proxy.example.com:3128"


def proxied_session(proxies: dict[str, str]) -> boto3.Session:
    made = boto3.Session(*SECRETS, region_name="us-east-1")
    made._session.set_default_client_config(Config(proxies=proxies))
    return made


@pytest.mark.parametrize(
    ("environment", "more", "refuses"),
    [
        ({"HTTPS_PROXY": PROXY}, {}, True),
        ({"https_proxy": PROXY}, {}, True),
        ({"HTTPS_PROXY": PROXY}, {"url": None}, True),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "runtime.example.com"}, {"zonal": "https://z"}, True),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": ".example.com"}, {}, False),
        ({"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, {}, False),
        ({"HTTP_PROXY": PROXY}, {}, False),
        ({"HTTP_PROXY": PROXY, "HTTPS_PROXY": PROXY}, {"url": "http://127.0.0.1:1"}, False),
        ({"HTTP_PROXY": PROXY}, {"url": "http://localhost:1"}, False),
        ({}, {"session": proxied_session({"https": PROXY})}, True),
        ({"HTTPS_PROXY": PROXY}, {"session": proxied_session({})}, False),
    ],
)
def test_a_proxy_is_refused_in_words(
    kind: str,
    environment: dict[str, str],
    more: dict[str, Any],
    refuses: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    given = {"url": REMOTE, **more}
    if zonal := given.pop("zonal", None):
        given |= {"zonal_urls": {"use1-az1": zonal}, "zone": "use1-az1"}
    if not refuses:
        Caller(kind, **given).close()
        return
    with refused("LLC119") as raised:
        Caller(kind, **given)
    assert "NO_PROXY" in str(raised.value)
    assert "secret" not in str(raised.value)


_REFUSALS = """
import asyncio, sys
import boto3
from low_latency_client import (
    AsyncRuntimeClient, ConfigurationError, Hedging, RuntimeClient, runtime_client)

session = boto3.Session("AKID", "secret", region_name="us-east-1")
good = {"latency_target": "1s", "session": session}
both = [
    {"keepalive": "900s"}, {"latency_target": "0s"}, {"connect_timeout": "1h"}, {"retries": 9},
    {"retries": True}, {"read_timeout": "soon"}, {"region": "Frankfurt"}, {"latency": "1s"},
]
ours = [
    {"ca_bundle": sys.argv[1]}, {"concurrency": 0}, {"preconnect": -1}, {"url": "http://10.0.0.1"},
    {"url": "https://h/path"}, {"zone": "use1-az1"}, {"zonal_urls": {"use1-az1": "ftp://h"}},
    {"hedging": True}, {"url": "https://runtime.sagemaker.eu-west-1.amazonaws.com"},
]

def said(make, *arguments, **options):
    try:
        make(*arguments, **options)
    except Exception as error:
        return getattr(error, "code", type(error).__name__)
    return "accepted"

for make in (RuntimeClient, AsyncRuntimeClient, runtime_client):
    wrong = both if make is runtime_client else both + ours
    print(make.__name__, *(said(make, **{**good, **options}) for options in wrong))
print(*(said(Hedging, **options) for options in
        ({"budget": 2}, {"percentile": 1}, {"delay": "0s"}, {"delay": 1})))
client = RuntimeClient(**good, url="http://127.0.0.1:1", preconnect=0, retries=0)
call = {"EndpointName": "e", "Body": b"{}"}
calls = [{}, {"EndpointName": "e", "Body": 1}, {**call, "Accept": "a\\n"}, {**call, "Idempotent": 1}]
print(*(said(client.invoke_endpoint, **parameters) for parameters in [*calls, call]))
print(*(said(client.stream, **call, **options) for options in
        ({"gap_timeout": "0s"}, {"hedge_generations": True}, {"SessionId": "NEW_SESSION"})))
client.close()
print(said(client.invoke_endpoint, **call))
print(said(asyncio.run, AsyncRuntimeClient(**good).invoke_endpoint(**call)))
"""


def refusals(*flags: str, missing: Path) -> list[str]:
    """What a process says of each mistake."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", _REFUSALS, str(missing)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def test_all_is_refused_without_assertions_and_docstrings_too(tmp_path: Path) -> None:
    """``python -O`` leaves ``assert`` out, and ``-OO`` docstrings too."""
    missing = tmp_path / "missing.pem"
    usual = refusals(missing=missing)
    assert len(usual) == 8
    assert "accepted" not in " ".join(usual)
    assert usual[0].startswith("RuntimeClient LLC103 ")
    assert refusals("-O", missing=missing) == usual
    assert refusals("-OO", missing=missing) == usual


@pytest.mark.parametrize("names", [(), ("localhost",), ("other.example.com",)])
def test_certificates_are_checked_by_their_alternative_names_alone(
    kind: str, names: tuple[str, ...], tmp_path: Path
) -> None:
    write_certificates(tmp_path, names, common_name="localhost")
    with (
        LoopbackRuntime(tmp_path) as server,
        Caller(kind, url=server.url, ca_bundle=tmp_path / "ca.pem", retries=0) as caller,
    ):
        if names == ("localhost",):
            assert caller.invoke("plain")["Body"]
        else:
            with pytest.raises(SSLError):
                caller.invoke("plain")


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost",
        "http://127.0.0.1:8080",
        "http://127.9.9.9",
        "http://[::1]:80",
        "http://model.localhost:1",
        "https://vpce-0a-1b.runtime.sagemaker.us-east-1.vpce.amazonaws.com",
    ],
)
def test_urls_that_are_fine(url: str) -> None:
    assert checked_origin(url, "url") == url


@pytest.mark.parametrize(
    "url",
    [
        "https://h\r\nX", "https://h\nX", "https://h\tX", "https://h X", " https://h", "https://h\0",
        "https://h\n", "https://user@h", "https://user:pass@h", "https://h/path", "https://h//",
        "https://h?x", "https://h#x", "https://h\\x", "https://h:0", "https://h:65536", "https://h:",
        "https://h:8x", "https://", "https://.", "https://a..b", "https://[::1", "https://[127.0.0.1]",
        "https://h%0d", "ftp://h", "h", "", "https://hé", "https://[::1%lo]", None, 7, b"https://h",
    ],
)  # fmt: skip
def test_urls_that_are_none(url: Any) -> None:
    with refused("LLC107"):
        checked_origin(url, "url")


@pytest.mark.parametrize(
    "field",
    ["ContentType", "Accept", "CustomAttributes", "InferenceId", "TargetVariant", "SessionId"],
)
@pytest.mark.parametrize("text", ["a\0b", "a\r\nX-Injected: 1", "a\nb", "a\x1bb", "a\x7f"])
def test_what_no_header_can_carry_is_not_sent(
    kind: str, unreached: LoopbackRuntime, field: str, text: str
) -> None:
    with (
        Caller(kind, url=unreached.url) as caller,
        pytest.raises((ParamValidationError, HTTPClientError)) as raised,
    ):
        caller.invoke("plain", **{field: text})
    assert type(raised.value) is ParamValidationError
    assert unreached.runtime.connections == 0


@pytest.mark.parametrize("more", [{}, {"hedging": Hedging(delay=timedelta(milliseconds=200))}])
def test_a_call_ends_in_time_while_its_answer_trickles(kind: str, more: dict[str, Any]) -> None:
    """A byte each 50 ms, which never falls silent for long."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
    server = ScriptedServer([head, *[b"x"] * 100_000])
    server.pause = 0.05
    with server, Caller(kind, url=server.url, **QUICK, **more) as caller:
        started = time.monotonic()
        with pytest.raises(ReadTimeoutError):
            caller.invoke("e")
        took = time.monotonic() - started
        assert caller.client.timing.longest_call.total_seconds() <= took


def test_a_peer_that_never_reads(kind: str) -> None:
    """The call does not wait for ever."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with Caller(kind, url=url, **QUICK) as caller, pytest.raises(HTTPClientError):
            caller.ask(EndpointName="e", Body=b"x" * 20_000_000)


@pytest.mark.parametrize("hedging", [None, Hedging()])
def test_a_closed_client_says_so_and_opens_nothing(
    kind: str, server: LoopbackRuntime, hedging: Hedging | None
) -> None:
    with Caller(kind, url=server.url, hedging=hedging) as caller:
        caller.invoke("plain")
        caller.wait(caller.client.close())
        opened = server.runtime.connections  # two where a busy machine was late, and it hedged
        for again in (
            lambda: caller.invoke("plain"),
            lambda: caller.call("preconnect", 1),
            lambda: caller.stream("plain"),
        ):
            with refused("LLC111"):
                again()
    assert server.runtime.connections == opened


def test_an_asyncio_client_belongs_to_one_event_loop(server: LoopbackRuntime) -> None:
    client = AsyncRuntimeClient(**options(url=server.url))
    call = {"EndpointName": "plain", "Body": b""}

    async def use() -> Any:
        return await client.invoke_endpoint(**call)

    async def enter_and_use() -> Any:
        await client.__aenter__()
        return await use()

    for _ in range(2):  # not entered, then entered in a loop that is gone
        with refused("LLC112"):
            asyncio.run(use())
        with asyncio.Runner() as runner:  # it can be entered anew
            assert runner.run(enter_and_use())["Body"]


@pytest.mark.parametrize("kept", [0, 4])
def test_calls_of_a_client_that_is_closed_meanwhile_end_at_once(
    kind: str, kept: int, server: LoopbackRuntime
) -> None:
    """Of eight calls of asyncio, four wait for their turn. Nobody blames the peer for the end."""
    call = {"EndpointName": "slow-10000", "Body": b""}
    with Caller(kind, url=server.url, concurrency=4) as caller:
        if kept:
            caller.call("preconnect", kept)
        invoke = caller.client.invoke_endpoint

        async def tasks() -> list[Any]:
            calls = [asyncio.ensure_future(invoke(**call)) for _ in range(8)]
            while server.runtime.requests["slow-10000"] < 4:
                await asyncio.sleep(0.01)
            await caller.client.close()
            return await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 10)

        if kind == "asyncio":
            ends = caller.wait(tasks())
        else:
            with ThreadPoolExecutor(4) as threads:
                calls = [threads.submit(invoke, **call) for _ in range(4)]
                while server.runtime.requests["slow-10000"] < 4:
                    time.sleep(0.01)
                caller.client.close()
                ends = [one.exception(10) for one in calls]
        assert not caller.client._pool._all
        assert caller.client.counts.reconnects == 0
        assert not caller.client._pool._kept._wary_until
    assert all(isinstance(one, (HTTPClientError, ConfigurationError)) for one in ends)
    assert server.runtime.requests["slow-10000"] == 4


def documented_errors(docstring: str) -> list[tuple[str, str]]:
    """Return pairs of a docstring's ``Raises``: an entry, and a class of botocore in its text."""
    entries = re.findall(r"^(botocore\.exceptions\..*)\n((?: +.*\n)+)", docstring, re.M)
    pairs = []
    for entry, text in entries:
        names = re.findall(r"``(\w+)``", text)
        pairs += [(entry, name) for name in names if hasattr(botocore.exceptions, name)]
    return pairs


def test_an_error_is_documented_below_a_class_that_catches_it() -> None:
    """``except HTTPClientError`` catches no ``EndpointConnectionError``, which has another base."""
    pairs = []
    for method in vars(RuntimeClient).values():
        pairs += documented_errors(f"{inspect.getdoc(method) or ''}\n")
    assert len(pairs) >= 6
    for entry, name in pairs:
        bases = [base.__name__ for base in getattr(botocore.exceptions, name).__mro__]
        assert set(bases).intersection(re.findall(r"exceptions\.(\w+)", entry)), (entry, name)
