"""The clients behind one face: a test calls, and need not know in which way they wait."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from typing import Any

import boto3
import uvloop

from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_client.blocking_client import RuntimeClient
from low_latency_client.event_loops import run_without_loop

SECRETS = ("AKIDVISIBLE", "SECRETKEY", "SESSIONTOKEN")
PATIENCE = timedelta(seconds=20)  # of a busy machine, where no timeout is meant
MAKERS: dict[str, Any] = {
    "threads": RuntimeClient,
    "asyncio": AsyncRuntimeClient,
    "uvloop": AsyncRuntimeClient,
}
KINDS = tuple(MAKERS)


@cache
def session() -> boto3.Session:
    """One for all: each reads botocore's data anew."""
    return boto3.Session(*SECRETS, region_name="us-east-1")


def options(**more: Any) -> dict[str, Any]:
    """Of a client that opens no connections ahead and waits long."""
    return {
        "latency_target": timedelta(milliseconds=100),
        "preconnect": 0,
        "session": session(),
        "connect_timeout": PATIENCE,
        "read_timeout": PATIENCE,
        **more,
    }


def run_core(kind: str, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """The result of a coroutine of the clients' core, run as the client of this kind does."""
    return run_without_loop(call()) if kind == "threads" else asyncio.run(_in_time(call()))


async def _in_time(found: Awaitable[Any]) -> Any:
    return await asyncio.wait_for(found, 30)


class Caller:
    """A client of one kind; whatever is asked of it is waited for.

    ``in_tasks`` if it is the one of asyncio, in an event loop that runs while something is waited for.
    """

    def __init__(self, kind: str, **more: Any) -> None:
        self.client = MAKERS[kind](**options(**more))
        self.in_tasks = isinstance(self.client, AsyncRuntimeClient)
        if self.in_tasks:
            factory = uvloop.new_event_loop if kind == "uvloop" else None
            self._runner = asyncio.Runner(loop_factory=factory)
            try:
                self.wait(self.client.__aenter__())
            except BaseException:
                self._runner.close()
                raise

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the client; and once more, which does nothing."""
        for _ in range(2):
            self.wait(self.client.close())
        self.end_loop()

    def end_loop(self) -> None:
        """Close the event loop of a client of asyncio, and end its threads."""
        if self.in_tasks:
            self._runner.close()

    def wait(self, found: Any) -> Any:
        """The result of what a method of the client returns."""
        if not inspect.isawaitable(found):
            return found
        return self._runner.run(_in_time(found))

    def call(self, method: str, *given: Any, **parameters: Any) -> Any:
        """What a method of the client gives in the end."""
        return self.wait(getattr(self.client, method)(*given, **parameters))

    def ask(self, **parameters: Any) -> dict[str, Any]:
        """``invoke_endpoint``, with the body read."""
        answer: dict[str, Any] = self.call("invoke_endpoint", **parameters)
        if not self.in_tasks:
            answer["Body"] = answer["Body"].read()
        return answer

    def invoke(self, name: str, **more: Any) -> dict[str, Any]:
        """``ask`` of an endpoint by its name."""
        return self.ask(EndpointName=name, Body=b"{}", **more)

    def stream(self, name: str, **more: Any) -> dict[str, Any]:
        """``invoke_endpoint_with_response_stream`` of an endpoint by its name."""
        answer: dict[str, Any] = self.call(
            "invoke_endpoint_with_response_stream", EndpointName=name, Body=b"{}", **more
        )
        return answer

    def each(self, stream: Any) -> Iterator[Any]:
        """What comes of a stream, one after the other."""
        if not self.in_tasks:
            yield from stream
            return
        events, end = aiter(stream), object()
        while (found := self.wait(_next(events, end))) is not end:
            yield found

    def together(self, number: int, name: str) -> None:
        """So many calls at once."""
        if self.in_tasks:

            async def all_of_them() -> None:
                call = self.client.invoke_endpoint
                await asyncio.gather(*(call(EndpointName=name, Body=b"{}") for _ in range(number)))

            self.wait(all_of_them())
            return
        with ThreadPoolExecutor(number) as threads:
            list(threads.map(self.invoke, [name] * number))

    def rest(self, seconds: float = 0.05) -> None:
        """Do nothing; an event loop sees what comes meanwhile, such as the end of connections."""
        if self.in_tasks:
            self.wait(asyncio.sleep(seconds))
        else:
            time.sleep(seconds)


async def _next(events: Any, end: object) -> Any:
    return await anext(events, end)
