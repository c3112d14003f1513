"""InvokeEndpoint at the main URL: what is passed on, and that no connection stays open."""

from __future__ import annotations

import io
import warnings
from types import SimpleNamespace
from typing import Any

from local_sagemaker.runtime import forwarding
from local_sagemaker.runtime.http_server import listening


async def answering(request: Any, connection: Any) -> None:
    connection.send(200, [("content-type", "text/plain")], b"an answer")


def passed_on(port: int) -> Any:
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/endpoints/e/invocations",
        "CONTENT_LENGTH": "2",
        "wsgi.input": io.BytesIO(b"{}"),
    }
    behind: Any = SimpleNamespace(url=lambda: f"http://127.0.0.1:{port}")
    return forwarding.forward(behind, environ, lambda status, headers: None)


def test_no_connection_stays_open_however_the_caller_ends(monkeypatch):
    made = []

    class Noted(forwarding.http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            made.append(self.sock)

    monkeypatch.setattr(forwarding.http.client, "HTTPConnection", Noted)
    with listening(answering) as listener, warnings.catch_warnings():
        warnings.simplefilter("error")
        read = passed_on(listener.port)
        assert b"".join(read) == b"an answer"
        read.close()
        passed_on(listener.port).close()  # the caller has gone before the first byte
    assert [opened.fileno() for opened in made] == [-1, -1]
