"""What callers do without thinking: subclasses, copies, pickled errors, wrong hosts, early closes."""

from __future__ import annotations

import asyncio
import copy
import pickle
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from low_latency_client import (
    AsyncRuntimeClient,
    ConfigurationError,
    GenerationCutError,
    GenerationFailedError,
    GenerationTimeoutError,
    RuntimeClient,
    openai_base_url,
)

from .callers import Caller, options
from .loopback_runtime import LoopbackRuntime
from .refusals import refused

Make = Callable[..., Caller]
CLIENTS = [RuntimeClient, AsyncRuntimeClient]
ERRORS = [
    ConfigurationError(code="LLC101", what="a", got="b", allowed="c", fix="d", where="e"),
    GenerationTimeoutError(limit="gap_timeout", seconds=1.0, tokens=3, endpoint_url="https://a"),
    GenerationCutError(tokens=3, error="cut", endpoint_url="https://a"),
    GenerationFailedError({"Error": {"Code": "x", "Message": "y"}}, "operation", 3),
]


def loopback(server: LoopbackRuntime, folder: Path) -> dict[str, Any]:
    return options(url=server.url, ca_bundle=folder / "ca.pem")


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("again", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_reaches_another_process_whole(error: Exception, again: Any) -> None:
    same = again(error)
    assert type(same) is type(error)
    assert str(same) == str(error)
    assert getattr(same, "tokens", None) == getattr(error, "tokens", None)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_client_is_not_copied(kind: Any, again: Any) -> None:
    client = kind(**options())
    with pytest.raises(TypeError, match="create one client per process"):
        again(client)


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_subclass_of_a_subclass_is_constructed_by_its_parent(kind: Any) -> None:
    class Named(kind):  # type: ignore[misc]
        def __init__(self, *arguments: Any, **named: Any) -> None:
            self.name = "mine"
            super().__init__(*arguments, **named)

    class Further(Named):
        pass

    assert Further(**options()).name == "mine"


@pytest.mark.parametrize(
    ("argument", "value"), [("concurrency", 5.0), ("preconnect", 1.0), ("retries", 1.0)]
)
@pytest.mark.parametrize("kind", CLIENTS)
def test_a_number_of_things_is_a_whole_number(kind: Any, argument: str, value: float) -> None:
    with pytest.raises(ConfigurationError, match=f"{kind.__name__}, {argument}"):
        kind(**{**options(), argument: value})


@pytest.mark.parametrize("kind", CLIENTS)
def test_a_hook_that_would_have_to_be_awaited_is_refused(kind: Any) -> None:
    async def hook(record: object) -> None: ...

    with refused("LLC120", where=f"{kind.__name__}, on_call"):
        kind(**options(on_call=hook))


def test_a_missing_bundle_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="/no/such/bundle"):
        RuntimeClient(**options(ca_bundle="/no/such/bundle.pem"))


def test_a_host_in_capitals_tells_its_region() -> None:
    url = "https://RUNTIME.SAGEMAKER.EU-WEST-1.AMAZONAWS.COM"
    with refused("LLC122", where="RuntimeClient, url"):
        RuntimeClient("us-east-1", **options(url=url))


@pytest.mark.parametrize(
    ("url", "code"), [("https://a.example/x?y#", "LLC107"), ("http://a.example", "LLC110")]
)
def test_a_token_goes_to_no_url_that_a_client_refuses(url: str, code: str) -> None:
    with refused(code):
        openai_base_url("chat", url=url)


def test_a_name_is_one_part_of_a_path() -> None:
    assert openai_base_url("a/../b", region="us-east-1").endswith("/endpoints/a%2F..%2Fb/openai/v1")


def test_what_json_does_not_have_is_not_sent(make: Make, server: LoopbackRuntime) -> None:
    with pytest.raises(ParamValidationError):
        make().call("stream", EndpointName="plain", Body={"prompt": "x", "top_p": float("nan")})
    assert not server.runtime.requests


def test_a_response_stream_is_not_repeated_unless_the_caller_says_so(
    make: Make, server: LoopbackRuntime
) -> None:
    caller = make()
    for stated, requests in (({}, 1), ({"Idempotent": True}, 3)):
        with pytest.raises(ClientError):
            caller.stream("status-503", **stated)
        assert server.runtime.requests["status-503"] == requests


@pytest.mark.parametrize("kind", ["threads"])
def test_a_call_that_was_answered_keeps_its_error_when_the_client_is_closed(
    make: Make, server: LoopbackRuntime
) -> None:
    """The client closes while the call waits for its retry."""
    with ThreadPoolExecutor(1) as thread:
        for _ in range(10):
            caller = make(retries=5, latency_target=timedelta(milliseconds=200))
            call = thread.submit(caller.invoke, "status-503")
            while not server.runtime.requests["status-503"]:
                time.sleep(0.001)
            time.sleep(0.005)
            caller.close()
            assert not isinstance(call.exception(20), ConfigurationError)
            server.runtime.requests.clear()


def test_a_task_that_leaves_the_client_ends_no_call_of_another(
    server: LoopbackRuntime, folder: Path
) -> None:
    async def both() -> list[int]:
        client = AsyncRuntimeClient(**loopback(server, folder))

        async def call(name: str) -> int:
            async with client:
                answer = await client.invoke_endpoint(EndpointName=name, Body=b"{}")
            return answer["ResponseMetadata"]["HTTPStatusCode"]

        return await asyncio.gather(call("plain"), call("slow-200"))

    assert asyncio.run(both()) == [200, 200]


def test_a_client_serves_one_event_loop_at_a_time(server: LoopbackRuntime, folder: Path) -> None:
    client = AsyncRuntimeClient(**loopback(server, folder))

    async def enter() -> None:
        async with client:
            await client.invoke_endpoint(EndpointName="plain", Body=b"{}")

    async def enter_here_and_elsewhere() -> None:
        async with client:
            renewal = client._credentials.wake  # another one once they are renewed no more
            with refused("LLC112"):
                await asyncio.to_thread(asyncio.run, enter())
            assert client._credentials.wake is renewal
            await client.invoke_endpoint(EndpointName="plain", Body=b"{}")

    asyncio.run(enter_here_and_elsewhere())
    asyncio.run(enter())


@pytest.mark.realtime  # measures how long a constructor takes
def test_peers_that_say_nothing_hold_the_constructor_up_once() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(100)
        url = f"https://localhost:{silent.getsockname()[1]}"
        started = time.monotonic()
        RuntimeClient(**options(url=url, preconnect=20, connect_timeout="250ms")).close()
        assert time.monotonic() - started < 5
