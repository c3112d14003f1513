"""InvokeEndpoint at the main URL: what is passed on, and that no connection stays open."""

from __future__ import annotations

import io
import warnings
from typing import Any

from local_sagemaker.runtime import forwarding
from local_sagemaker.runtime.forwarding import forward
from local_sagemaker.runtime.http_server import listen
from local_sagemaker.runtime.loop_thread import LoopThread


class Behind:
    """Stands where the runtime stands: a listener that answers everything."""

    def __init__(self) -> None:
        self._thread = LoopThread(self._nothing, self._nothing)

        async def answer(request: Any, connection: Any) -> None:
            connection.send(200, [("content-type", "text/plain")], b"an answer")

        self._listener = self._thread.run(listen(answer))

    @staticmethod
    async def _nothing() -> None:
        pass

    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.port}"

    async def _close(self) -> None:
        self._listener.close()

    def stop(self) -> None:
        self._thread.run(self._close())
        self._thread.stop()


def passed_on(behind: Any) -> Any:
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/endpoints/e/invocations",
        "CONTENT_LENGTH": "2",
        "wsgi.input": io.BytesIO(b"{}"),
    }
    return forward(behind, environ, lambda status, headers: None)


def test_no_connection_stays_open_however_the_caller_ends(monkeypatch):
    made = []

    class Noted(forwarding.http.client.HTTPConnection):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

        def connect(self) -> None:
            super().connect()
            self.opened = self.sock

    monkeypatch.setattr(forwarding.http.client, "HTTPConnection", Noted)
    behind = Behind()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = passed_on(behind)
            assert b"".join(read) == b"an answer"
            read.close()
            passed_on(behind).close()  # the caller has gone before the first byte
        assert [each.opened.fileno() for each in made] == [-1, -1]
    finally:
        behind.stop()
