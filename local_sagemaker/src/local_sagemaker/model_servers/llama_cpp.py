"""llama.cpp's own server, without a GPU, behind the container contract: it really computes.

It serves the first GGUF file of the model's data, with continuous batching over ``parallel`` slots.
``POST /invocations`` takes a chat or a completion in OpenAI's form, as AWS's llama.cpp container
does (aws/deep-learning-containers, scripts/docker/llama_cpp); ``/v1/chat/completions``,
``/v1/completions`` and ``/metrics`` are llama.cpp's own. Answers come whole, or with ``stream`` as
server-sent events while they are computed. A model with random weights answers nonsense.

Of the container's variables it reads ``SM_LLAMA_CPP_PARALLEL`` (by default 4),
``SM_LLAMA_CPP_CTX_SIZE`` (tokens of all slots together; by default the model's own) and
``SM_LLAMA_CPP_THREADS`` (by default 1). As the GGUF file and these are those of AWS's container,
the same image's settings do for both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..runtime.http_client import Broken, Connections, Unreachable
from ..runtime.http_server import LOOPBACK, Connection, Request, listen
from .own_load import OwnLoad

_ASKED = ("/invocations", "/v1/chat/completions", "/v1/completions")


def load(model_dir: str, key: str) -> Any:
    """Start llama.cpp's server on a port of its own; the key keeps everybody else out.

    Raises
    ------
    FileNotFoundError
        When there is no GGUF file.
    """
    found = sorted(Path(model_dir).rglob("*.gguf"))
    if not found:
        raise FileNotFoundError(f"no *.gguf under {model_dir}")
    llama = import_module("xllamacpp")
    parameters = llama.CommonParams()
    parameters.model.path = str(found[0])
    parameters.cpuparams.n_threads = _number("THREADS", 1)
    parameters.n_parallel = _number("PARALLEL", 4)
    parameters.n_ctx = _number("CTX_SIZE", parameters.n_ctx)
    parameters.kv_unified = True  # any slot may use all of it, as in llama-server's own default
    parameters.hostnames = [LOOPBACK]
    parameters.port = 0
    parameters.api_keys = [key]
    parameters.ui = False
    parameters.endpoint_metrics = True
    parameters.verbosity = 0
    return llama.Server(parameters)


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(f"SM_LLAMA_CPP_{name}", "")
    if text and not text.isdecimal():
        raise ValueError(f"SM_LLAMA_CPP_{name} must be a whole number: {text}")
    return int(text) if text else otherwise


class LlamaCpp:
    """Passes requests on to llama.cpp's server."""

    def __init__(self) -> None:
        self._key = secrets.token_urlsafe(24)
        self._server: Any = None
        self._connections: Connections | None = None
        self._load = OwnLoad()

    async def load(self, model_dir: str) -> None:
        """Load the model; `/ping` answers 200 from then on."""
        loop = asyncio.get_running_loop()
        self._server = await loop.run_in_executor(None, load, model_dir, self._key)
        address = urlsplit(self._server.listening_address)
        self._connections = Connections(LOOPBACK, address.port or 0)

    async def __call__(self, request: Request, connection: Connection) -> None:
        """Answer one request."""
        path = request.target.partition("?")[0]
        if path == "/ping":
            connection.send(200 if self._connections else 503, (), b"")
        elif path == "/utilization":
            connection.send(200, (), json.dumps(self._load.utilization()).encode())
        elif self._connections is None:
            connection.send(503, (), b"the model is being loaded")
        elif path == "/metrics":
            await self._pass_on(self._connections, "GET", path, b"", connection)
        elif path in _ASKED and request.method == "POST":
            own = path
            if path == "/invocations":
                own = "/v1/chat/completions" if _is_chat(request.body) else "/v1/completions"
            await self._pass_on(self._connections, "POST", own, request.body, connection)
        else:
            connection.send(404, (), b"")

    async def _pass_on(
        self, connections: Connections, method: str, path: str, body: bytes, caller: Connection
    ) -> None:
        """Ask llama.cpp, and give its bytes to the caller as they come."""
        headers = [("content-type", "application/json"), ("authorization", f"Bearer {self._key}")]
        try:
            answer = await connections.request(method, path, headers, body, streaming=True)
        except (Broken, Unreachable):
            caller.send(500, (), b"llama.cpp does not answer")
            return
        assert answer.chunks is not None
        # llama.cpp stops to generate when nobody listens to it any more.
        caller.lost = answer.hang_up
        kind = [("content-type", answer.headers.get("content-type", "application/json"))]
        try:
            if "content-length" in answer.headers:
                whole = b"".join([chunk async for chunk in answer.chunks])
                caller.send(answer.status, kind, whole)
                return
            caller.start_stream(answer.status, kind)
            async for chunk in answer.chunks:
                await caller.send_chunk(chunk)
            caller.end_stream()
        except Broken:
            caller.close()


def _is_chat(body: bytes) -> bool:
    with contextlib.suppress(ValueError, RecursionError):
        document = json.loads(body)
        return isinstance(document, dict) and "messages" in document
    return False


async def _run() -> None:
    server = LlamaCpp()
    await listen(server, port=int(os.environ.get("SAGEMAKER_BIND_TO_PORT", "8080")))
    await server.load(os.environ.get("SM_MODEL_DIR", "/opt/ml/model"))
    await asyncio.Event().wait()  # its supervisor ends it


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run())
