"""Calls of the OpenAI-compatible path, with tokens as SageMaker's SDK makes them."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from signed_requests import Answer, ask

from local_sagemaker import LocalAws


def token(
    key: str, secret: str, *, region: str = "us-east-1", expires: int = 600, session: str = ""
) -> str:
    """Make a token as SageMaker's SDK does, with botocore."""
    request = AWSRequest(
        "POST",
        "https://sagemaker.amazonaws.com/",
        headers={"host": "sagemaker.amazonaws.com"},
        params={"Action": "CallWithBearerToken"},
    )
    credentials = Credentials(key, secret, session or None)
    SigV4QueryAuth(credentials, "sagemaker", region, expires=expires).add_auth(request)
    url = str(request.url).removeprefix("https://") + "&Version=1"
    return "sagemaker-api-key-" + base64.b64encode(url.encode()).decode()


def own_token(aws: LocalAws, **more: Any) -> str:
    return token(aws.credentials.access_key, aws.credentials.secret_key, **more)


def chat(
    url: str,
    path: str,
    bearer: str | None,
    body: dict[str, Any] | bytes,
    headers: dict[str, str] | None = None,
) -> Answer:
    given = {"Content-Type": "application/json", **(headers or {})}
    if bearer is not None:
        given["Authorization"] = f"Bearer {bearer}"
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ask(urlsplit(url).port or 0, "POST", path, given, data)


def openai(name: str) -> str:
    return f"/endpoints/{name}/openai/v1/chat/completions"


def whole(answer: Answer) -> bytes:
    """The body of an answer in HTTP's chunks, which must have come to its end."""
    if answer.headers.get("transfer-encoding") != "chunked":
        return answer.body
    rest, parts = answer.body, []
    while True:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size, 16)
        if not count:
            assert rest == b"\r\n"
            return b"".join(parts)
        parts.append(rest[:count])
        assert rest[count : count + 2] == b"\r\n"
        rest = rest[count + 2 :]


def events(answer: Answer) -> list[Any]:
    """The events of a stream; the last is the text that ends it."""
    blocks = whole(answer).decode().split("\n\n")
    assert blocks.pop() == ""
    found = [block.removeprefix("data: ") for block in blocks]
    return [one if one == "[DONE]" else json.loads(one) for one in found]
