"""A language model's server on a clock that jumps: the times of its tokens to the last digit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jumping_loop import JumpingLoop

from local_sagemaker.model_servers import LanguageModelServer
from local_sagemaker.model_servers.language_model import LanguageModel
from local_sagemaker.runtime.http_server import Request


def words(count: int, name: str = "word") -> str:
    return " ".join(f"{name}{place}" for place in range(count))


@dataclass
class Caller:
    """Stands for a connection: keeps what is sent, each chunk with its moment."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    chunks: list[tuple[float, bytes]] = field(default_factory=list)
    lost: Callable[[], None] | None = None
    ended: bool = False
    at: float = 0.0

    def send(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        self.status, self.headers, self.body = status, dict(headers), body
        self.at, self.ended = asyncio.get_running_loop().time(), True

    def start_stream(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self.status, self.headers = status, dict(headers)

    def write(self, data: bytes) -> None:
        size, _, rest = data.partition(b"\r\n")
        count = int(size, 16)
        assert rest[count:] in (b"\r\n", b"\r\n0\r\n\r\n"), "one chunk, and perhaps the end"
        assert not self.ended
        self.ended = rest[count:] != b"\r\n"
        self.chunks.append((asyncio.get_running_loop().time(), rest[:count]))

    # -------------------------------------------------------------------------- read independently

    def events(self) -> list[tuple[float, Any]]:
        """Each server-sent event with its moment."""
        found: list[tuple[float, Any]] = []
        for moment, chunk in self.chunks:
            for line in chunk.decode().split("\n"):
                if line.startswith("data: "):
                    text = line.removeprefix("data: ")
                    found.append((moment, text if text == "[DONE]" else json.loads(text)))
                else:
                    assert line == ""
        return found

    def tokens(self) -> list[tuple[float, str]]:
        """Each chunk with content, with its moment."""
        found = []
        for moment, event in self.events():
            for choice in (
                event["choices"] if isinstance(event, dict) and "choices" in event else ()
            ):
                text = choice["delta"].get("content") if "delta" in choice else choice["text"]
                if text:
                    found.append((moment, text))
        return found

    def times(self) -> list[float]:
        return [moment for moment, _ in self.tokens()]

    def gaps(self) -> list[float]:
        return [b - a for a, b in pairwise(self.times())]

    def error(self) -> dict[str, Any]:
        error: dict[str, Any] = json.loads(self.body)["error"]
        return error


@dataclass
class Server:
    """A server with callers."""

    model: LanguageModel

    async def ask(
        self,
        content: str = "hello",
        caller: Caller | None = None,
        *,
        path: str = "/v1/chat/completions",
        headers: dict[str, str] | None = None,
        **body: Any,
    ) -> Caller:
        """Ask, and come back when it is answered."""
        if not {"messages", "prompt"} & body.keys():
            body["messages"] = [{"role": "user", "content": content}]
        return await self.post(path, json.dumps(body).encode(), caller, headers)

    async def post(
        self,
        path: str,
        body: bytes,
        caller: Caller | None = None,
        headers: dict[str, str] | None = None,
        method: str = "POST",
    ) -> Caller:
        caller = caller or Caller()
        request = Request(method, path, headers or {}, body)
        await self.model(request, caller)  # type: ignore[arg-type]
        return caller

    async def get(self, path: str) -> Caller:
        return await self.post(path, b"", method="GET")


def run(
    settings: LanguageModelServer,
    main: Callable[[Server], Coroutine[Any, Any, Any]],
    place: int = 0,
) -> Any:
    """Run with a server, from moment 0 on."""
    loop = JumpingLoop()
    loop.jump_from_now_on(True)
    loop.jumped = 0.0

    async def with_server() -> Any:
        model = LanguageModel(settings, place)
        model.start()
        await asyncio.sleep(0)
        try:
            return await main(Server(model))
        finally:
            model.stop()

    try:
        return loop.run_until_complete(with_server())
    finally:
        loop.close()


STREAM = {"stream": True}


def exactly(tokens: int) -> dict[str, Any]:
    """What a request has that wants so many tokens."""
    return {"max_tokens": tokens, "min_tokens": tokens, "ignore_eos": True}
