"""A call that waits for a connection is made when it goes out: signature, way, clocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from botocore.credentials import ReadOnlyCredentials

from low_latency_client.hedging import Hedging
from low_latency_client.zone import ZonalRoute

from .callers import Caller
from .loopback_runtime import LoopbackRuntime
from .model_stream_server import ModelStreamServer, whole

Make = Callable[..., Caller]
CALL = {"EndpointName": "slow-200", "Body": b"{}"}


@pytest.mark.parametrize("kind", ["asyncio"])
def test_signature_and_way_are_those_of_the_sending(server: LoopbackRuntime, make: Make) -> None:
    """The credentials change and the zone fails while a call waits for the one connection."""
    caller = make(concurrency=1)
    client = caller.client

    async def both() -> None:
        first = asyncio.ensure_future(client.invoke_endpoint(**CALL))
        waits = asyncio.ensure_future(client.invoke_endpoint(**CALL))
        while not server.runtime.requests["slow-200"]:
            await asyncio.sleep(0.005)
        old = server.runtime.last_headers
        client._credentials._current = ReadOnlyCredentials("NEW", "secret", "new token")
        client._wire._prepared.clear()  # the signer asks once per second
        client._rules.route = ZonalRoute("https://z.invalid", server.url, client.counts)
        client._rules.route.failed("https://z.invalid")
        await first
        await waits
        assert "new token" not in str(old)
        assert server.runtime.last_headers["X-Amz-Security-Token"] == "new token"
        assert "Credential=NEW/" in server.runtime.last_headers["Authorization"]

    caller.wait(both())


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_calls_that_wait_are_not_hedged(server: LoopbackRuntime, make: Make) -> None:
    """Eight at once where there is room for one; each is answered after 0.2 s."""
    caller = make(concurrency=1, hedging=Hedging(budget=0.5, delay=timedelta(seconds=0.6)))
    caller.together(8, "slow-200")
    assert caller.client.counts.hedges == 0
    assert server.runtime.requests["slow-200"] == 8


@pytest.mark.parametrize("kind", ["asyncio"])
def test_no_second_copy_waits_for_a_connection(server: LoopbackRuntime, make: Make) -> None:
    caller = make(concurrency=1, hedging=Hedging(budget=0.5, delay=timedelta(seconds=0.02)))
    caller.together(2, "slow-200")  # both connections are in use
    assert server.runtime.requests["slow-200"] == 2
    caller.invoke("slow-200")
    assert server.runtime.requests["slow-200"] == 4


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_a_second_copy_of_a_call_that_waited_ends_with_the_first(
    server: LoopbackRuntime, make: Make
) -> None:
    """Its time is that of one call from its sending, however long it waited before."""
    quick = timedelta(milliseconds=500)
    caller = make(
        concurrency=1,
        hedging=Hedging(budget=0.5, delay=timedelta(milliseconds=100)),
        connect_timeout=quick,
        read_timeout=quick,
        retries=0,
    )
    caller.together(6, "slow-400")


@pytest.mark.parametrize("kind", ["asyncio"])  # in threads, none waits
def test_a_generations_limits_begin_with_its_sending(kind: str) -> None:
    """Three wait for each other: 0.4 s each before the head of the answer, 1 s allowed."""
    limits = {"first_token_timeout": timedelta(seconds=1), "gap_timeout": timedelta(seconds=10)}
    script = [0.4, *whole("a")]
    with ModelStreamServer(script) as server, Caller(kind, url=server.url, concurrency=1) as caller:

        async def read() -> timedelta:
            call = caller.client.stream(EndpointName="e", Body=b"{}", **limits)
            async with await call as generation:
                assert [part.text async for part in generation] == ["a"]
            return generation.time_to_first_token

        async def three() -> list[timedelta]:
            return await asyncio.gather(read(), read(), read())

        took = caller.wait(three())
    assert all(timedelta(seconds=0.35) < each < timedelta(seconds=0.8) for each in took)
