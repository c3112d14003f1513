"""Bearer tokens are what AWS's recipe says, stay fresh, show themselves nowhere, and serve openai."""

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import hmac
import json
import logging
import re
import threading
import time as real_time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import boto3
import httpx2
import openai
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, RefreshableCredentials

from low_latency_client import ConfigurationError, bearer_tokens
from low_latency_client.bearer_tokens import (
    BearerToken,
    BearerTokens,
    bearer_token,
    openai_base_url,
)

from .model_stream_server import ROLE, STOP, USAGE, ModelStreamServer, sse, word

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "call-a-language-model.md"
SECRETS = ("AKIDVISIBLE", "SECRETKEY", "SESSION/TOKEN+==")
SPOKEN = [sse(ROLE, word("Once"), word(" upon")), sse(STOP, USAGE, "[DONE]")]


def session() -> boto3.Session:
    return boto3.Session(*SECRETS, region_name="us-east-1")


def fields(token: str) -> dict[str, str]:
    """What a token says; checks its form and its signature.

    The form is that of AWS's sagemaker-core 2.27.0 (token_generator.py). The signature is made as
    the IAM guide describes presigned requests, without botocore: canonical request, string to sign,
    signing key.
    """
    prefix, encoded = token[:18], token[18:]
    assert prefix == "sagemaker-api-key-"
    url = base64.b64decode(encoded, validate=True).decode()
    assert url.endswith("&Version=1")
    host, _, query = url.removesuffix("&Version=1").partition("/?")
    assert host == "sagemaker.amazonaws.com"
    said = dict(parse_qsl(query, strict_parsing=True))
    signature = said.pop("X-Amz-Signature")
    canonical_query = urlencode(sorted(said.items()), quote_via=quote, safe="~")
    empty = hashlib.sha256(b"").hexdigest()
    canonical = f"POST\n/\n{canonical_query}\nhost:{host}\n\nhost\n{empty}"
    access_key, _, scope = said["X-Amz-Credential"].partition("/")
    assert access_key == SECRETS[0]
    key = f"AWS4{SECRETS[1]}".encode()
    for step in scope.split("/"):
        key = hmac.new(key, step.encode(), hashlib.sha256).digest()
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"AWS4-HMAC-SHA256\n{said['X-Amz-Date']}\n{scope}\n{hashed}"
    assert signature == hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    return said


def test_a_token_is_a_presigned_request() -> None:
    said = fields(bearer_token(session(), "eu-west-1", timedelta(minutes=2)))
    day = said["X-Amz-Date"][:8]
    assert said == {
        "Action": "CallWithBearerToken",
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"AKIDVISIBLE/{day}/eu-west-1/sagemaker/aws4_request",
        "X-Amz-Date": said["X-Amz-Date"],
        "X-Amz-Expires": "120",
        "X-Amz-SignedHeaders": "host",
        "X-Amz-Security-Token": SECRETS[2],
    }
    made = datetime.strptime(said["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs(datetime.now(UTC) - made) < timedelta(minutes=1)


@pytest.mark.parametrize("secrets", [SECRETS, SECRETS[:2]])
def test_it_is_byte_by_byte_what_botocore_presigns(secrets: tuple[str, ...]) -> None:
    """As AWS's recipe does it."""

    def recipe() -> str:
        request = AWSRequest(
            method="POST",
            url="https://sagemaker.amazonaws.com/",
            headers={"host": "sagemaker.amazonaws.com"},
            params={"Action": "CallWithBearerToken"},
        )
        SigV4QueryAuth(Credentials(*secrets), "sagemaker", "us-east-1", 43200).add_auth(request)
        url = request.url.removeprefix("https://") + "&Version=1"
        return "sagemaker-api-key-" + base64.b64encode(url.encode()).decode()

    def both() -> tuple[str, str]:
        ours = bearer_token(Credentials(*secrets), "us-east-1", timedelta(hours=12))
        return str(ours), recipe()

    assert any(ours == theirs for ours, theirs in (both() for _ in range(20)))  # in one second


def test_credentials_do_as_well_as_a_session_and_five_minutes_are_the_default() -> None:
    said = fields(bearer_token(Credentials(*SECRETS), "us-east-1"))
    assert said["X-Amz-Expires"] == "300"


@pytest.mark.parametrize(
    "expires", [timedelta(0), timedelta(hours=12, seconds=1), timedelta(seconds=1.5)]
)
def test_a_lifetime_that_aws_does_not_allow(expires: timedelta) -> None:
    with pytest.raises(ConfigurationError, match="LLC113"):
        bearer_token(session(), "us-east-1", expires)
    with pytest.raises(ConfigurationError, match="LLC113"):
        BearerTokens(session(), expires=expires)


def test_without_credentials_or_region(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = boto3.Session(region_name="us-east-1")
    monkeypatch.setattr(bare, "get_credentials", lambda: None)
    with pytest.raises(ConfigurationError, match="LLC109"):
        BearerTokens(bare)
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(ConfigurationError, match="LLC108"):
        BearerTokens(boto3.Session(*SECRETS))


def test_nothing_shows_a_token(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        tokens = BearerTokens(session())
        token = tokens()
        logging.getLogger("app").warning("calling with %r", {"token": token, "tokens": tokens})
    shown = f"{token!r} {tokens!r} {[token]} {vars(tokens)} {caplog.text}"
    for secret in (str(token)[18:40], *SECRETS):
        assert secret not in shown
    assert type(copy.deepcopy(token)) is BearerToken
    # It is text wherever text is needed.
    assert f"Bearer {token}" == "Bearer " + str(token)
    assert json.loads(json.dumps(token)) == token


class Clock:
    """In place of the module's ``time``."""

    gmtime, strftime = staticmethod(real_time.gmtime), staticmethod(real_time.strftime)
    time = staticmethod(real_time.time)

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(bearer_tokens, "time", made)
    return made


@pytest.mark.parametrize(("minutes", "seconds"), [(5, 60), (720, 60), (1, 30)])
def test_a_new_token_each_minute_and_before_the_old_one_ends(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, minutes: int, seconds: int
) -> None:
    made: list[str] = []

    def counted(*_: Any) -> BearerToken:
        made.append(f"token {len(made)}")
        return BearerToken(made[-1])

    monkeypatch.setattr(bearer_tokens, "_token", counted)
    tokens = BearerTokens(session(), expires=timedelta(minutes=minutes))
    clock.now = seconds - 0.001
    assert tokens() == "token 0"
    assert asyncio.run(tokens.later()) == "token 0"
    clock.now = float(seconds)
    assert asyncio.run(tokens.later()) == "token 1"
    assert tokens() == "token 1"
    clock.now = 2.0 * seconds
    assert tokens() == "token 2"


def test_renewed_credentials_sign_the_next_token(clock: Clock) -> None:
    later = datetime.now(UTC) + timedelta(hours=1)
    refreshed: list[int] = []

    def refresh() -> dict[str, str]:
        refreshed.append(threading.get_ident())
        return {
            "access_key": SECRETS[0],
            "secret_key": SECRETS[1],
            "token": f"session {len(refreshed)}",
            "expiry_time": later.isoformat(),
        }

    credentials = RefreshableCredentials.create_from_metadata(refresh(), refresh, "test")
    asked = session()
    asked.get_credentials = lambda: credentials
    tokens = BearerTokens(asked)
    assert fields(tokens())["X-Amz-Security-Token"] == "session 1"
    credentials._expiry_time = datetime.now(UTC)
    assert fields(tokens())["X-Amz-Security-Token"] == "session 1"
    clock.now = 61.0
    assert fields(asyncio.run(tokens.later()))["X-Amz-Security-Token"] == "session 2"
    assert refreshed[-1] != threading.get_ident()  # not on the event loop's thread


@pytest.mark.parametrize("minutes", [8, 12])
def test_a_failing_provider_ends_no_token_before_its_credentials_end(
    minutes: int, clock: Clock
) -> None:
    ends = datetime.now(UTC) + timedelta(minutes=minutes)
    first = {
        "access_key": SECRETS[0],
        "secret_key": SECRETS[1],
        "token": "session",
        "expiry_time": ends.isoformat(),
    }

    def refresh() -> dict[str, str]:
        raise ConnectionError("no answer")

    asked = session()
    credentials = RefreshableCredentials.create_from_metadata(first, refresh, "test")
    asked.get_credentials = lambda: credentials
    tokens = BearerTokens(asked)
    assert fields(tokens())["X-Amz-Security-Token"] == "session"
    clock.now = 61.0
    assert fields(asyncio.run(tokens.later()))["X-Amz-Security-Token"] == "session"
    credentials._expiry_time = datetime.now(UTC)
    clock.now = 122.0
    with pytest.raises(ConnectionError, match="no answer"):
        tokens()


def test_base_urls() -> None:
    assert openai_base_url(
        "chat", url="https://vpce-1.runtime.sagemaker.us-east-1.vpce.a.com/"
    ) == ("https://vpce-1.runtime.sagemaker.us-east-1.vpce.a.com/endpoints/chat/openai/v1")
    assert openai_base_url("all", region="us-east-1", inference_component="chat") == (
        "https://runtime.sagemaker.us-east-1.amazonaws.com"
        "/endpoints/all/inference-components/chat/openai/v1"
    )
    for given in ({}, {"region": "us-east-1", "url": "https://a"}):
        with pytest.raises(ConfigurationError, match="LLC108"):
            openai_base_url("chat", **given)


def authorization(server: ModelStreamServer) -> str:
    head = server.requests[-1][0].decode()
    assert head.startswith("POST /endpoints/chat/openai/v1/chat/completions HTTP/1.1")
    found = re.search(r"^authorization: Bearer (\S+)\r$", head, re.IGNORECASE | re.MULTILINE)
    assert found is not None
    return found[1]


def test_the_docs_call_with_openai(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page's own lines, but for where they go."""
    (block,) = re.findall(
        r"^```python\n(from openai import OpenAI\n.*?)^```", PAGE.read_text(), re.S | re.M
    )
    for name, value in zip(
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"), SECRETS, strict=True
    ):
        monkeypatch.setenv(name, value)
    with ModelStreamServer(SPOKEN) as server:
        there = block.replace(
            'openai_base_url("chat", region="us-east-1")',
            f'openai_base_url("chat", url="{server.url}")',
        )
        assert there != block
        exec(there, {})
        said = fields(authorization(server))
    assert capsys.readouterr().out == "Once upon"
    assert said["X-Amz-Expires"] == "300"
    assert json.loads(server.requests[0][1])["stream"] is True


def test_openai_asks_for_a_token_before_each_request(clock: Clock) -> None:
    with ModelStreamServer(SPOKEN) as server:
        tokens = BearerTokens(session())
        client = openai.OpenAI(
            base_url=openai_base_url("chat", url=server.url), api_key=tokens, max_retries=0
        )
        used = []
        for _ in range(2):
            stream = client.chat.completions.create(
                model="chat", messages=[{"role": "user", "content": "Tell me"}], stream=True
            )
            texts = [chunk.choices[0].delta.content for chunk in stream if chunk.choices]
            assert texts == ["", "Once", " upon", None]
            used.append(authorization(server))
            assert used[-1] == tokens()
            tokens._latest = (BearerToken("sagemaker-api-key-next"), 0.0)
        assert used[1] == "sagemaker-api-key-next"
        client.close()


def test_openai_for_asyncio() -> None:
    async def inside(url: str) -> list[str | None]:
        async with openai.AsyncOpenAI(
            base_url=openai_base_url("chat", url=url),
            api_key=BearerTokens(session()).later,
            max_retries=0,
        ) as client:
            stream = await client.chat.completions.create(
                model="chat", messages=[{"role": "user", "content": "Tell me"}], stream=True
            )
            return [chunk.choices[0].delta.content async for chunk in stream if chunk.choices]

    with ModelStreamServer(SPOKEN) as server:
        assert asyncio.run(inside(server.url)) == ["", "Once", " upon", None]
        fields(authorization(server))


def test_httpx_takes_the_tokens_too() -> None:
    with ModelStreamServer(SPOKEN) as server:
        base = openai_base_url("chat", url=server.url)
        with httpx2.Client(auth=BearerTokens(session()).authorize) as client:
            answer = client.post(f"{base}/chat/completions", json={"messages": [], "stream": True})
        assert answer.content == b"".join(SPOKEN)
        fields(authorization(server))
