"""A language model's server on a clock that jumps: the times of its tokens to the last digit."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from jumping_loop import run_jumping

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
    began: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    def send(self, status: int, headers: Iterable[tuple[str, str]], body: bytes) -> None:
        self.status, self.headers, self.body, self.ended = status, dict(headers), body, True

    def start_stream(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self.status, self.headers = status, dict(headers)

    async def send_chunk(self, data: bytes) -> None:
        assert not self.ended
        self.chunks.append((asyncio.get_running_loop().time(), data))

    def end_stream(self) -> None:
        self.ended = True

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
        return [
            (moment, choice["delta"]["content"])
            for moment, event in self.events()
            if isinstance(event, dict)
            for choice in event.get("choices", ())
            if choice["delta"]["content"]
        ]

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
        body.setdefault("messages", [{"role": "user", "content": content}])
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

    async def with_server(_: Any) -> Any:
        model = LanguageModel(settings, place)
        model.start()
        await asyncio.sleep(0)
        try:
            return await main(Server(model))
        finally:
            model.stop()

    return run_jumping(with_server)


STREAM = {"stream": True}


def exactly(tokens: int) -> dict[str, Any]:
    """What a request has that wants so many tokens."""
    return {"max_tokens": tokens, "min_tokens": tokens, "ignore_eos": True}


def asked(settings: LanguageModelServer, *asks: dict[str, Any], **options: Any) -> list[Caller]:
    """Ask one after the other, or `together`, for streams unless an ask says otherwise."""
    together, place = options.pop("together", False), options.pop("place", 0)

    async def main(server: Server) -> list[Caller]:
        calls = [server.ask(**{"stream": True, **options, **each}) for each in asks]
        return list(await asyncio.gather(*calls)) if together else [await call for call in calls]

    found: list[Caller] = run(settings, main, place)
    return found


def usage_of(caller: Caller) -> dict[str, Any]:
    usage: dict[str, Any] = json.loads(caller.body)["usage"]
    return usage
