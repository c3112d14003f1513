"""A loopback server that plays SageMaker Runtime, one for each zone."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from low_latency_endpoint.warm_up.warm_up_function import sender

Behaviour = Callable[[int], "Answer"]


@dataclass(frozen=True)
class Answer:
    """What the server answers, and after how many seconds."""

    status: int = 200
    body: bytes = b"[]"
    error: str = ""
    after: float = 0.0


def model_error(status: int, message: str, after: float = 0.0) -> Answer:
    """The model's own refusal, as SageMaker passes it on."""
    body = {
        "Message": f'Received client error ({status}) from primary with message "{message}"',
        "OriginalMessage": message,
        "OriginalStatusCode": status,
        "LogStreamArn": "arn:aws:logs:us-east-1:123456789012:log-group:/aws/sagemaker/Endpoints/x",
    }
    return Answer(424, json.dumps(body).encode(), "ModelError", after)


def aws_error(status: int, code: str, message: str) -> Answer:
    """SageMaker's own refusal."""
    return Answer(status, json.dumps({"Message": message}).encode(), code)


@dataclass
class Seen:
    """One request as the server saw it."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Runtime:
    """SageMaker Runtime of one zone."""

    host: str = ""
    behaviour: Behaviour = lambda number: Answer()
    requests: list[Seen] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    connections: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@pytest.fixture
def new_runtime() -> Iterator[Callable[[Behaviour], Runtime]]:
    """Start a server with a behaviour: what the n-th request, from 0, gets."""
    servers = []

    def start(behaviour: Behaviour = lambda number: Answer()) -> Runtime:
        runtime = Runtime(behaviour=behaviour)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # connections stay open, as SageMaker's do
            disable_nagle_algorithm = True  # or head and body are 40 ms apart

            def setup(self) -> None:
                super().setup()
                with runtime.lock:
                    runtime.connections += 1

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with runtime.lock:
                    number = len(runtime.requests)
                    headers = {name.lower(): value for name, value in self.headers.items()}
                    runtime.requests.append(Seen(self.path, headers, body))
                    runtime.in_flight += 1
                    runtime.most_in_flight = max(runtime.most_in_flight, runtime.in_flight)
                answer = runtime.behaviour(number)
                time.sleep(answer.after)
                with runtime.lock:
                    runtime.in_flight -= 1
                self.send_response(answer.status)
                if answer.error:
                    self.send_header("x-amzn-ErrorType", answer.error)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer.body)))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *arguments: Any) -> None:
                return

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        runtime.host = f"127.0.0.1:{server.server_port}"
        return runtime

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def run_sender(monkeypatch, tmp_path):
    """Run the sender's handler against the servers given by zone."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    monkeypatch.setenv("LAMBDA_TASK_ROOT", str(tmp_path))
    monkeypatch.setattr(sender, "_clients", {})
    monkeypatch.setattr(sender, "PAUSE_SECONDS", 0.01)
    real_url = sender.url_of

    def plain(host: str) -> str:
        return real_url(host).replace("https://127.", "http://127.")

    monkeypatch.setattr(sender, "url_of", plain)
    folder = tmp_path / "payloads"

    def run(
        servers: dict[str, Runtime],
        zones: dict[str, Any] | None = None,
        payloads: tuple[tuple[dict[str, str], bytes], ...] = (
            ({"ContentType": "application/json"}, b'{"inputs": "secret-words"}'),
        ),
        **how: Any,
    ) -> dict[str, Any]:
        folder.mkdir(exist_ok=True)
        index = []
        for number, (headers, body) in enumerate(payloads):
            (folder / str(number)).write_bytes(body)
            index.append({"File": str(number), **headers})
        (folder / "payloads.json").write_text(json.dumps(index))
        hosts = {name: server.host for name, server in servers.items()}
        monkeypatch.setenv("WARM_UP", json.dumps({"endpoint": "Sentiment", "zones": hosts}))
        event = {"run": {"seconds": 20, "requests": 1, **how}, "zones": zones or {}}
        # Through JSON and back, as Lambda hands it over.
        return json.loads(json.dumps(sender.handler(json.loads(json.dumps(event)), None)))

    return run
