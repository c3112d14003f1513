"""The cached-key signer against botocore's own, byte for byte."""

from __future__ import annotations

import datetime
import string
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import botocore.auth
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials, RefreshableCredentials
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_client.signing import PreparedRequest, Sigv4Signer, host_of


def signed(request: PreparedRequest, body: bytes, now: float | None = None) -> dict[str, str]:
    """The lines that are added, as headers."""
    lines = request.sign(body, now).decode().removesuffix("\r\n").split("\r\n")
    return dict(line.split(": ", 1) for line in lines)


URL = "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/e/invocations"
JSON = {"Content-Type": "application/json"}


@contextmanager
def botocore_at(second: int) -> Iterator[None]:
    """botocore's clock, stopped."""
    stopped = datetime.datetime.fromtimestamp(second, datetime.UTC).replace(tzinfo=None)
    original = botocore.auth.get_current_datetime
    botocore.auth.get_current_datetime = lambda *_, **__: stopped
    try:
        yield
    finally:
        botocore.auth.get_current_datetime = original


def botocore_headers(
    credentials: Any,
    url: str,
    headers: dict[str, str],
    body: bytes,
    second: int,
    region: str = "us-east-1",
) -> dict[str, str]:
    request = AWSRequest("POST", url, data=body)
    request.headers = HTTPHeaders()
    for name, value in headers.items():
        request.headers[name] = value
    with botocore_at(second):
        SigV4Auth(credentials, "sagemaker", region).add_auth(request)
    written = ("authorization", "x-amz-date")
    found = {name: value for name, value in request.headers.items() if name.lower() in written}
    if credentials.token:
        found["X-Amz-Security-Token"] = request.headers["X-Amz-Security-Token"]
    return found


text = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), max_size=30)
path_text = st.text(string.ascii_letters + string.digits + "-_.~/%+:@!$&'()*,;=", max_size=40)
hosts = st.sampled_from(
    [
        "runtime.sagemaker.eu-west-1.amazonaws.com",
        "RUNTIME.Sagemaker.us-east-1.amazonaws.com:443",
        "127.0.0.1:8080",
        "localhost:443",
        "[::1]:8443",
        "[2001:db8::7]",
        "vpce-0a-1b-us-east-1a.runtime.sagemaker.us-east-1.vpce.amazonaws.com",
    ]
)
header_names = st.sampled_from(
    [
        "Content-Type",
        "Accept",
        "X-Amzn-SageMaker-Target-Variant",
        "X-Amzn-SageMaker-Session-Id",
        "X-Amzn-SageMaker-Custom-Attributes",
        "User-Agent",
        "Connection",
        "Expect",
        "X-Amzn-Trace-Id",
        "traceparent",
        "X-Amz-A",
        "X-Amz-Zz",
        "zzz",
        "a",
    ]
)
header_values = st.text(
    st.sampled_from(string.ascii_letters + string.digits + " \t,;:=/+é"), max_size=30
)
seconds = st.integers(min_value=0, max_value=4_102_444_800)
tokens = st.one_of(st.none(), st.text(string.ascii_letters + "+/=", min_size=1, max_size=900))


@settings(max_examples=250)
@given(
    access_key=st.text(string.ascii_uppercase + string.digits, min_size=1, max_size=20),
    secret=text,
    token=tokens,
    scheme=st.sampled_from(["https", "http"]),
    host=hosts,
    path=path_text,
    headers=st.dictionaries(header_names, header_values, max_size=8),
    body=st.binary(max_size=300),
    second=seconds,
    region=st.sampled_from(["us-east-1", "ap-southeast-4"]),
)
def test_the_signature_is_botocores(
    access_key: str,
    secret: str,
    token: str | None,
    scheme: str,
    host: str,
    path: str,
    headers: dict[str, str],
    body: bytes,
    second: int,
    region: str,
) -> None:
    url = f"{scheme}://{host}/{path}"
    credentials = Credentials(access_key, secret, token)
    signer = Sigv4Signer(credentials, region=region)
    ours = signed(PreparedRequest(signer, "POST", url, headers), body, now=second + 0.7)
    assert ours == botocore_headers(credentials, url, headers, body, second, region)


@settings(max_examples=60)
@given(
    start=seconds,
    steps=st.lists(st.sampled_from([0, 1, 59, 3600, 86_399, 86_400, -1]), max_size=12),
    bodies=st.lists(st.binary(max_size=50), min_size=12, max_size=12),
)
def test_one_prepared_request_over_seconds_and_days(
    start: int, steps: list[int], bodies: list[bytes]
) -> None:
    credentials = Credentials("AKID", "secret", "token")
    request = PreparedRequest(Sigv4Signer(credentials, region="us-east-1"), "POST", URL, JSON)
    second = start
    for step, body in zip([0, *steps], bodies, strict=False):
        second = max(0, second + step)
        expected = botocore_headers(credentials, URL, JSON, body, second)
        assert signed(request, body, now=second) == expected


def test_new_credentials_are_followed_on_the_same_day() -> None:
    class Rotating:
        current = Credentials("AKID1", "secret1", "token1")

        def get_frozen_credentials(self) -> Any:
            return self.current.get_frozen_credentials()

    source = Rotating()
    request = PreparedRequest(Sigv4Signer(source, region="us-east-1"), "POST", URL, JSON)
    signed(request, b"x", now=1_700_000_000)
    source.current = Credentials("AKID2", "secret2", "token2")
    expected = botocore_headers(source.current, URL, JSON, b"x", 1_700_000_001)
    assert signed(request, b"x", now=1_700_000_001) == expected


def test_refreshable_credentials_are_asked_once_per_second() -> None:
    asked = []

    def refresh() -> dict[str, str]:
        asked.append(1)
        end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        return {
            "access_key": "AKID",
            "secret_key": "secret",
            "token": f"token{len(asked)}",
            "expiry_time": end.isoformat(),
        }

    credentials = RefreshableCredentials.create_from_metadata(refresh(), refresh, "test")
    request = PreparedRequest(Sigv4Signer(credentials, region="us-east-1"), "POST", URL, {})
    for _ in range(50):
        headers = signed(request, b"x", now=1_700_000_000)
    assert headers["X-Amz-Security-Token"] == "token1"
    assert len(asked) == 1


def test_twenty_threads_across_seconds() -> None:
    """Threads whose clocks disagree share one prepared request; each gets its own second's."""
    credentials = Credentials("AKID", "secret", "token")
    request = PreparedRequest(Sigv4Signer(credentials, region="us-east-1"), "POST", URL, JSON)
    first = 1_700_006_395  # midnight is five seconds away
    expected = {
        second: botocore_headers(credentials, URL, JSON, b"{}", second)
        for second in range(first, first + 10)
    }
    start = threading.Barrier(20)

    def wrong(number: int) -> list[int]:
        start.wait()
        asked = [first + (turn + number) % 10 for turn in range(400)]
        return [each for each in asked if signed(request, b"{}", now=each) != expected[each]]

    with ThreadPoolExecutor(20) as threads:
        assert list(threads.map(wrong, range(20))) == [[]] * 20


def test_nothing_secret_is_shown() -> None:
    signer = Sigv4Signer(
        Credentials("AKIDVISIBLE", "SECRETKEY", "SESSIONTOKEN"), region="us-east-1"
    )
    request = PreparedRequest(signer, "POST", URL, JSON)
    signed(request, b"{}")
    shown = repr(signer) + repr(request) + str(signer) + str(request)
    assert not [word for word in ("AKIDVISIBLE", "SECRETKEY", "SESSIONTOKEN") if word in shown]


@given(host=hosts, scheme=st.sampled_from(["http", "https"]))
def test_the_host_is_botocores(host: str, scheme: str) -> None:
    url = f"{scheme}://{host}/x"
    assert host_of(url) == botocore.auth._host_from_url(url)
