"""Metadata services of Lambda, ECS and EC2 on loopback."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

LAMBDA = "/2026-01-15/metadata/execution-environment"


class Metadata:
    """Answers by path; requires the tokens that the services require."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.asked: list[str] = []
        metadata = self

        class Handler(BaseHTTPRequestHandler):
            def reply(self, method: str) -> None:
                metadata.asked.append(f"{method} {self.path}")
                allowed = True
                if self.path.startswith("/latest/meta-data"):
                    allowed = self.headers["X-aws-ec2-metadata-token"] == "ec2-token"
                if self.path == LAMBDA:
                    allowed = self.headers["Authorization"] == "Bearer lambda-token"
                body = metadata.answers.get(self.path, "").encode()
                self.send_response(200 if body and allowed else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                self.reply("GET")

            def do_PUT(self) -> None:
                self.reply("PUT")

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self.server.server_port}"
