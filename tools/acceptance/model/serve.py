"""Serves ``inference.py`` as the local AWS wants it: the container contract on a port of loopback.

The addresses of this machine are no instance's, so answers leave them out.
"""

from __future__ import annotations

import json
import os
import runpy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_INFERENCE = runpy.run_path(str(Path(__file__).with_name("inference.py")))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: Any

    def do_GET(self) -> None:
        self._answer(200, b"")

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = {**json.loads(body), "addresses": False}
        try:
            told = _INFERENCE["transform_fn"](self.model, json.dumps(request), "", "")
        except RuntimeError as error:
            self._answer(500, str(error).encode())
        else:
            self._answer(200, told.encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        return


if __name__ == "__main__":
    _Handler.model = _INFERENCE["model_fn"]("")
    port = int(os.environ["SAGEMAKER_BIND_TO_PORT"])
    ThreadingHTTPServer(("127.0.0.1", port), _Handler).serve_forever()
