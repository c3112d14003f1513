"""What callers leave open: streams and clients that are dropped, event loops that are closed."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator
from typing import Any

import pytest

from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_client.async_http import AsyncPool
from low_latency_client.hedging import Hedging

from .callers import Caller, options
from .loopback_runtime import LoopbackRuntime

CALL: dict[str, Any] = {"EndpointName": "plain", "Body": b"{}"}


@pytest.fixture
def server() -> Iterator[LoopbackRuntime]:
    """Without TLS."""
    with LoopbackRuntime() as server:
        yield server


def wait_for_connections(server: LoopbackRuntime, number: int) -> int:
    """So many that the server has open, or what it has after a while."""
    ends = time.monotonic() + 5
    while len(server.runtime.transports) != number and time.monotonic() < ends:
        time.sleep(0.005)
    return len(server.runtime.transports)


@pytest.mark.filterwarnings("ignore:unclosed .*Stream:ResourceWarning")
def test_a_dropped_stream_is_hung_up(kind: str, server: LoopbackRuntime) -> None:
    """Its place among the concurrent calls is free again."""
    with Caller(kind, url=server.url, concurrency=2) as caller:
        for _ in range(4):
            caller.stream("half-stream-1")
            caller.rest(0.01)
        assert wait_for_connections(server, 0) == 0
        assert caller.invoke("plain")["Body"]


def test_a_dropped_stream_warns(kind: str, server: LoopbackRuntime) -> None:
    with Caller(kind, url=server.url) as caller:
        answer = caller.stream("half-stream-1")
        with pytest.warns(ResourceWarning, match="unclosed .*ResponseStream"):
            del answer


def test_a_dropped_client_keeps_no_connection(kind: str, server: LoopbackRuntime) -> None:
    caller = Caller(kind, url=server.url, preconnect=2)
    answer = caller.stream("stream-3")
    del caller.client
    gc.collect()
    caller.rest()
    assert wait_for_connections(server, 1) == 1  # the stream's
    assert len(list(caller.each(answer["Body"]))) == 3
    caller.rest()
    assert wait_for_connections(server, 0) == 0
    caller.end_loop()


@pytest.fixture
def entered(server: LoopbackRuntime) -> Iterator[AsyncRuntimeClient]:
    """One whose event loop was closed while it was in use, with a stream under way."""
    client = AsyncRuntimeClient(**options(url=server.url, preconnect=2, hedging=Hedging()))

    async def enter_and_call() -> Any:
        await client.__aenter__()
        await client.invoke_endpoint(**CALL)
        events = {**CALL, "EndpointName": "half-stream-1"}
        return await client.invoke_endpoint_with_response_stream(**events)

    with asyncio.Runner() as runner:
        answer = runner.run(enter_and_call())
    yield client
    answer["Body"].close()


def test_a_client_can_be_closed_after_its_event_loop(
    entered: AsyncRuntimeClient, server: LoopbackRuntime
) -> None:
    asyncio.run(entered.close())
    assert wait_for_connections(server, 0) == 0


def test_a_client_is_entered_anew_in_each_event_loop(
    entered: AsyncRuntimeClient, server: LoopbackRuntime
) -> None:
    async def use() -> None:
        async with entered as client:
            assert wait_for_connections(server, 2) == 2
            answers = await asyncio.gather(*(client.invoke_endpoint(**CALL) for _ in range(4)))
        assert all(answer["Body"] for answer in answers)

    for _ in range(2):
        asyncio.run(use())
        assert wait_for_connections(server, 0) == 0


def test_a_client_is_closed_from_another_event_loop(server: LoopbackRuntime) -> None:
    """While its own is not closed; that one ends the connections when it runs again."""
    client = AsyncRuntimeClient(**options(url=server.url, preconnect=2))
    with asyncio.Runner() as runner:
        runner.run(client.__aenter__())
        asyncio.run(client.close())
        runner.run(asyncio.sleep(0.01))
        assert wait_for_connections(server, 0) == 0


def test_a_client_that_is_entered_twice_opens_one_pool(server: LoopbackRuntime) -> None:
    client = AsyncRuntimeClient(**options(url=server.url, preconnect=2))

    async def use() -> None:
        await asyncio.gather(client.__aenter__(), client.__aenter__())
        async with client:
            await client.invoke_endpoint(**CALL)
        await client.invoke_endpoint(**CALL)  # the two others have not left it
        assert server.runtime.connections == 2
        await asyncio.gather(client.__aexit__(), client.__aexit__())

    asyncio.run(use())
    assert wait_for_connections(server, 0) == 0


def test_an_entering_that_is_cancelled_leaves_nothing_open(
    server: LoopbackRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = AsyncRuntimeClient(**options(url=server.url, preconnect=2))
    original = AsyncPool.open

    async def open_and_stay(pool: AsyncPool, origin: str, number: int) -> int:
        await original(pool, origin, number)
        return await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(AsyncPool, "open", open_and_stay)

    async def enter_for_a_moment() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await client.__aenter__()
        await asyncio.sleep(0)
        assert server.runtime.connections == 2
        assert wait_for_connections(server, 0) == 0

    asyncio.run(enter_for_a_moment())


def test_connections_opened_ahead_are_kept_when_the_caller_waits_no_longer(
    server: LoopbackRuntime, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Caller("asyncio", url=server.url) as caller:
        pool = caller.client._pool
        connected = pool._connected
        calls = iter(range(3))

        async def all_but_one(origin: str, seconds: float) -> Any:
            if next(calls) == 0:
                await asyncio.sleep(60)
            return await connected(origin, seconds)

        monkeypatch.setattr(pool, "_connected", all_but_one)

        async def preconnect_for_a_moment() -> None:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await caller.client.preconnect(3)

        caller.wait(preconnect_for_a_moment())
        caller.together(2, "plain")
        assert server.runtime.connections == 2


def test_no_connection_may_be_asked_for(
    kind: str, server: LoopbackRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    with Caller(kind, url=server.url) as caller:
        assert caller.call("preconnect", 0) == 0
    assert not caplog.records
