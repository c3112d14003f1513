"""InvokeEndpoint at the local AWS's main URL: passed on to the runtime's own listener.

For callers who know that URL only, such as functions; the runtime's own URLs are faster.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import quote

from ..signatures import OPENAI_PATH
from .service import Runtime

_PATH = re.compile(r"/endpoints/[^/]+/invocations(-response-stream)?")
_OF_THE_CONNECTION = {"connection", "transfer-encoding", "content-length"}


def is_invocation(path: str) -> bool:
    """Say whether a path is one of the runtime's.

    Examples
    --------
    >>> is_invocation("/endpoints/sentiment/invocations"), is_invocation("/my-bucket/key")
    (True, False)
    """
    return _PATH.fullmatch(path) is not None or OPENAI_PATH.fullmatch(path) is not None


def forward(
    runtime: Runtime, environ: dict[str, Any], start_response: Callable[..., Any]
) -> Iterable[bytes]:
    """Pass one request on; the answer comes back as it comes in."""
    body = environ["wsgi.input"].read()
    headers = {
        name[5:].replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_") and name not in ("HTTP_HOST", "HTTP_CONNECTION", "HTTP_EXPECT")
    }
    if environ.get("CONTENT_TYPE"):
        headers["Content-Type"] = environ["CONTENT_TYPE"]
    connection = http.client.HTTPConnection(runtime.url().removeprefix("http://"))
    try:
        connection.request(environ["REQUEST_METHOD"], quote(environ["PATH_INFO"]), body, headers)
        response = connection.getresponse()
    except BaseException:
        connection.close()
        raise
    kept = [(n, v) for n, v in response.getheaders() if n.lower() not in _OF_THE_CONNECTION]
    if response.length is not None:
        kept.append(("Content-Length", str(response.length)))
    start_response(f"{response.status} {response.reason}", kept)
    return _Body(connection, response)


class _Body:
    """The answer's body, read as the caller takes it, and closed also before it has begun."""

    def __init__(
        self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse
    ) -> None:
        self._connection = connection
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self._response.read1(65536):
            yield chunk

    def close(self) -> None:
        """Close the connection; the WSGI server calls this at the end, however it came."""
        self._response.close()
        self._connection.close()
