"""A request and its answer over HTTP/1.1, with bounds on what the other side may send.

botocore signs requests and reads errors; what is between the two is here, because a container, or
whoever sits on the path, decides how much comes and how slowly.
"""

from __future__ import annotations

import http.client
import io
import select
import socket
import ssl
import time
from collections.abc import Iterator
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

import botocore.exceptions
from botocore.awsrequest import AWSResponse

SEND = "before-send.sagemaker-runtime.InvokeEndpoint"
"""The event at which a handler sends in botocore's stead."""

READ_TIMEOUT = 70
"""Seconds until an answer must have come as a whole: SageMaker answers within 60."""
CONNECT_TIMEOUT = 5.0
HEAD_LIMIT = 64 * 1024
"""Bytes of a head, with all interim answers before it. SageMaker's have less than one KiB, and custom
attributes of 1,024 characters: https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html"""
BODY_LIMIT = 25 * 1024 * 1024
"""Bytes of a body, with what frames its chunks. SageMaker's limit is 25 MB, read generously:
https://docs.aws.amazon.com/sagemaker/latest/dg/realtime-endpoints-options.html"""
ERROR_LIMIT = 64 * 1024
"""Bytes of an error's body that are kept. botocore makes Python objects of them, which take twenty
times as much; a log line shows 500 characters."""
SHOWN = 500
"""Characters of an error that a log line shows."""
_PIECE = 64 * 1024


class AnswerTooLarge(Exception):
    """More came than SageMaker answers."""


class BoundedConnection(http.client.HTTPConnection):
    """A connection whose answers are bounded; its socket is opened by whoever uses it."""

    def __init__(self, url: SplitResult) -> None:
        super().__init__(url.netloc)
        self.response_class = BoundedAnswer

    def ask(self, request: Any) -> BoundedAnswer:
        """Send a signed request; return its answer when its head has come."""
        path = urlsplit(request.url).path
        self.request(request.method, path, request.body, request.headers)
        return cast(BoundedAnswer, self.getresponse())


class BoundedAnswer(http.client.HTTPResponse):
    """An answer of which so many bytes are read, for so many seconds, and never more."""

    def __init__(self, sock: socket.socket, *rest: Any, **named: Any) -> None:
        self._source = _Source(sock)
        super().__init__(self._source, *rest, **named)  # type: ignore[arg-type]  # asks for makefile

    def begin(self) -> None:
        """Read the head, and whatever interim answers come before it."""
        super().begin()
        self._source.left = BODY_LIMIT

    def body(self) -> bytes:
        """Read the body to its end; return the beginning of an error's, and of others nothing."""
        kept = b""
        if self.length is not None and self.length > BODY_LIMIT:
            raise AnswerTooLarge(f"a body of {self.length} bytes")
        while piece := self.read(_PIECE):
            kept += piece[: ERROR_LIMIT - len(kept)]
        if self.length:
            raise http.client.IncompleteRead(kept, self.length)
        return kept if self.status >= 300 else b""


class _Source(io.RawIOBase):
    """A socket's bytes: no more than are left, and not for longer than an answer may take."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self.left = HEAD_LIMIT
        self._sock = sock
        self._bytes = sock.makefile("rb", buffering=0)
        self._ends = time.monotonic() + READ_TIMEOUT

    def makefile(self, mode: str) -> io.BufferedReader:
        """What ``http.client`` asks a socket for."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        seconds = self._ends - time.monotonic()
        if self.left <= 0:
            raise AnswerTooLarge("a head or a body is longer than SageMaker's")
        if seconds <= 0:
            raise TimeoutError(f"the answer took longer than {READ_TIMEOUT} s")
        self._sock.settimeout(seconds)
        count = self._bytes.readinto(memoryview(buffer)[: self.left])
        self.left -= count or 0
        return count

    def close(self) -> None:
        self._bytes.close()
        super().close()


class SenderConnections:
    """Sends over connections that stay open: as many as there are threads that send."""

    def __init__(self) -> None:
        self._free: list[BoundedConnection] = []
        self._tls = tls_context()

    def send(self, request: Any, **_: Any) -> AWSResponse:
        """Send in botocore's stead."""
        url = urlsplit(request.url)
        connection = self._idle() or self._opened(url)
        try:
            connection.sock.settimeout(READ_TIMEOUT)
            answer = connection.ask(request)
            body = answer.body()
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:  # the answer left it open
            self._free.append(connection)
        return botocores(request, answer, body)

    def _idle(self) -> BoundedConnection | None:
        """A connection that is open: what can be read before a request is its end, or worse."""
        while self._free:
            connection = self._free.pop()
            if not select.select([connection.sock], [], [], 0)[0]:
                return connection
            connection.close()
        return None

    def _opened(self, url: SplitResult) -> BoundedConnection:
        where = f"{url.scheme}://{url.netloc}"
        port = url.port or (443 if url.scheme == "https" else 80)
        connection = BoundedConnection(url)
        try:
            connection.sock = socket.create_connection((url.hostname, port), CONNECT_TIMEOUT)
            connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if url.scheme == "https":  # not in a local AWS
                connection.sock = self._tls.wrap_socket(
                    connection.sock, server_hostname=url.hostname
                )
        except ssl.SSLError as failure:
            connection.close()
            raise botocore.exceptions.SSLError(endpoint_url=where, error=failure) from failure
        except OSError as failure:
            connection.close()
            raise botocore.exceptions.EndpointConnectionError(
                endpoint_url=where, error=failure
            ) from failure
        return connection


def tls_context() -> ssl.SSLContext:
    """Trust as callers have it: public authorities, and names in subjectAltName alone."""
    context = ssl.create_default_context()
    context.hostname_checks_common_name = False  # RFC 9110, 4.3.4
    return context


def botocores(request: Any, answer: BoundedAnswer, body: bytes) -> AWSResponse:
    """An answer as botocore reads it; the body's length is what was kept."""
    headers = {
        name: value for name, value in answer.headers.items() if name.lower() != "content-length"
    }
    return AWSResponse(request.url, answer.status, headers, _Body(body))


class _Body(io.BytesIO):
    """A body that was read, as botocore reads bodies."""

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self.read()


def shown(failure: BaseException) -> str:
    """An error in a log line: what it says may be the other side's words."""
    return f"{type(failure).__name__}: {failure}"[:SHOWN]
