"""Requests written by hand, over a raw socket."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError


@dataclass(frozen=True)
class Answer:
    """What came over a raw socket."""

    status: int
    headers: dict[str, str]
    body: bytes


def raw(port: int, data: bytes) -> Answer:
    """Send bytes; the answer, whose connection the request closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(data)
        got = b""
        while chunk := connection.recv(65536):
            got += chunk
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
    return Answer(int(first.split(" ")[1]), headers, body)


def ask(
    port: int,
    method: str,
    target: str,
    headers: Mapping[str, str | None] | None = None,
    body: bytes = b"",
) -> Answer:
    """Send one request, written by hand; a header that is None is left out."""
    given = {
        "Host": f"localhost:{port}",
        "Content-Length": str(len(body)),
        "Connection": "close",
        **(headers or {}),
    }
    told = [f"{n}: {v}" for n, v in given.items() if v is not None]
    lines = [f"{method} {target} HTTP/1.1", *told, "", ""]
    return raw(port, "\r\n".join(lines).encode() + body)


def signed(key: str, service: str, token: str = "") -> dict[str, str]:
    """Give headers that say a signature was made just now."""
    return {
        "X-Amz-Date": time.strftime("%Y%m%dT%H%M%SZ", time.gmtime()),
        **({"X-Amz-Security-Token": token} if token else {}),
        "Authorization": f"AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/{service}/"
        "aws4_request, SignedHeaders=host, Signature=0",
    }


def is_open(port: int) -> bool:
    """Whether somebody listens on a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def refusal(call: Callable[..., Any], **request: Any) -> tuple[str, str]:
    """Make a call that is refused; gives code and message."""
    with pytest.raises(ClientError) as raised:
        call(**request)
    error = raised.value.response["Error"]
    return error["Code"], error["Message"]


def client_with(
    service: str, url: str, key: str, secret: str = "x", token: str | None = None, **config: Any
) -> Any:
    """A client of boto3's with these keys, which tries once."""
    return boto3.client(
        service,
        "us-east-1",
        endpoint_url=url,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        aws_session_token=token,
        config=Config(retries={"max_attempts": 0}, **config),
    )
