"""Sessions that a container keeps: opened once, kept on one instance, closed; at the local AWS."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from hosting_site import Site

from benchmarks.tls_server import LoopbackRuntime
from local_sagemaker import LocalAws, RuntimeOptions
from local_sagemaker.model_servers import LanguageModelServer, SimulatedModelServer
from low_latency_endpoint.client.async_runtime_client import AsyncRuntimeClient
from low_latency_endpoint.client.hedging import Hedging
from low_latency_endpoint.client.runtime_client import RuntimeClient
from low_latency_endpoint.errors import ConfigurationError

INSTANCES = 4
LM = LanguageModelServer(
    gap_seconds=0.002, seconds_per_prompt_token=1e-6, output_tokens=3, stateful_sessions=True
)
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "what does the river do"}]}
OPTIONS: dict[str, Any] = {
    "latency_target": timedelta(seconds=1),
    "read_timeout": timedelta(seconds=30),
    "preconnect": 0,
}
Use = Callable[..., list[Any]]
Call = tuple[Any, ...]


def in_thread(options: dict[str, Any], *calls: Call) -> list[Any]:
    """What each of the calls answers."""
    found: list[Any] = []
    with RuntimeClient(**OPTIONS, **options) as client:
        for name, *given, parameters in calls:
            answer = getattr(client, name)(*given, **parameters)
            found.append(list(answer) if name == "stream" else answer)
    return found


def in_task(options: dict[str, Any], *calls: Call) -> list[Any]:
    """The same with asyncio."""

    async def main() -> list[Any]:
        found: list[Any] = []
        async with AsyncRuntimeClient(**OPTIONS, **options) as client:
            for name, *given, parameters in calls:
                answer = await getattr(client, name)(*given, **parameters)
                found.append([each async for each in answer] if name == "stream" else answer)
        return found

    return asyncio.run(main())


both = pytest.mark.parametrize("use", [in_thread, in_task], ids=["threads", "asyncio"])


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    with LocalAws.in_process(model_servers={"model": LM}, runtime=RuntimeOptions(seed=1)) as made:
        yield made


def options_of(aws: LocalAws) -> dict[str, Any]:
    session = boto3.Session(
        aws.credentials.access_key, aws.credentials.secret_key, region_name="us-east-1"
    )
    return {"url": aws.runtime_url(), "session": session}


def endpoint_of(aws: LocalAws, server: Any = LM) -> str:
    aws.set_model_servers({"model": server})
    return Site(aws).endpoint(
        {"InitialInstanceCount": INSTANCES}, MetricsConfig={"EnableEnhancedMetrics": True}
    )


@both
def test_a_conversation_stays_on_the_instance_that_opened_its_session(
    aws: LocalAws, use: Use
) -> None:
    here = {"EndpointName": endpoint_of(aws)}
    (session,) = use(options_of(aws), ("open_session", here))
    assert ";" not in session
    turn = ("stream", {**here, "Body": BODY, "SessionId": session})
    turns = use(options_of(aws), *[turn] * 12)
    assert [len(parts) for parts in turns] == [3] * 12
    use(options_of(aws), ("close_session", session, here))
    # Twelve streams, and what opened and closed it; at random on one of four: 4 to the minus 13.
    assert Site(aws).by_instance(here["EndpointName"]) == [14]
    with pytest.raises(ClientError, match=r"Session .* not found"):
        use(options_of(aws), turn)


@both
def test_a_container_without_sessions_says_so(aws: LocalAws, use: Use) -> None:
    without = LanguageModelServer(gap_seconds=0.002, output_tokens=3)
    with pytest.raises(ClientError, match="stateful sessions not enabled") as raised:
        use(options_of(aws), ("open_session", {"EndpointName": endpoint_of(aws, without)}))
    assert raised.value.response["Error"]["Code"] == "ModelError"


@both
def test_a_container_of_your_own_is_opened_with_its_own_body(aws: LocalAws, use: Use) -> None:
    name = endpoint_of(aws, SimulatedModelServer())
    own = {"EndpointName": name, "Body": b"begin", "ContentType": "text/plain"}
    (session,) = use(options_of(aws), ("open_session", own))
    assert session


# ------------------------------------------------------------------- whatever the endpoint does


def options(server: LoopbackRuntime, **more: Any) -> dict[str, Any]:
    session = boto3.Session("AKID", "secret", region_name="us-east-1")
    return {"url": server.url, "session": session, **more}


@both
def test_an_answer_that_names_no_session_is_none(use: Use) -> None:
    with LoopbackRuntime() as server, pytest.raises(ConfigurationError) as raised:
        use(options(server), ("open_session", {"EndpointName": "any"}))
    assert raised.value.code == "LLC117"


@both
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("status-503", ClientError),
        ("drop", ConnectionClosedError),
        ("slow-200", ConfigurationError),  # LLC117, as it names none
    ],
)
def test_no_session_is_opened_twice_unasked(use: Use, name: str, error: type[Exception]) -> None:
    hedging = Hedging(delay=timedelta(milliseconds=5), budget=0.5)
    with LoopbackRuntime() as server:
        with pytest.raises(error):
            use(options(server, hedging=hedging), ("open_session", {"EndpointName": name}))
        assert server.runtime.requests[name] == 1


@both
def test_the_session_is_not_given_twice(use: Use) -> None:
    with LoopbackRuntime() as server, pytest.raises(TypeError, match="SessionId"):
        use(options(server), ("open_session", {"EndpointName": "any", "SessionId": "mine"}))
