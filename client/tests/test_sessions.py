"""Sessions that a container keeps: opened once, kept on one instance, closed; at the local AWS."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import SimulatedModelServer
from low_latency_client import ConfigurationError
from low_latency_client.hedging import Hedging

from .callers import Caller
from .local_endpoints import create_endpoint, requests_by_instance
from .loopback_runtime import LoopbackRuntime
from .test_generations_on_local_aws import MESSAGES, aws, endpoint_of, options_of

__all__ = ["aws"]  # the fixture

KINDS = ("threads", "asyncio")
Use = Callable[..., list[Any]]
KEPT: dict[str, Any] = {"stateful_sessions": True, "output_tokens": 3}
FOUR = {"InitialInstanceCount": 4}


@pytest.fixture
def use(kind: str) -> Use:
    """What each of some calls of a client answers."""

    def answers(options: dict[str, Any], *calls: tuple[Any, ...]) -> list[Any]:
        found = []
        with Caller(kind, latency_target=timedelta(seconds=1), **options) as caller:
            for name, *given, parameters in calls:
                answer = caller.call(name, *given, **parameters)
                found.append(list(caller.each(answer)) if name == "stream" else answer)
        return found

    return answers


def test_a_conversation_stays_on_the_instance_that_opened_its_session(
    aws: LocalAws, use: Use
) -> None:
    here = {"EndpointName": endpoint_of(aws, FOUR, **KEPT)}
    (session,) = use(options_of(aws), ("open_session", here))
    assert ";" not in session
    turn = ("stream", {**here, "Body": {"messages": MESSAGES}, "SessionId": session})
    turns = use(options_of(aws), *[turn] * 12)
    assert [len(parts) for parts in turns] == [3] * 12
    use(options_of(aws), ("close_session", session, here))
    # Twelve streams, and what opened and closed it; at random on one of four: 4 to the minus 13.
    assert requests_by_instance(aws, here["EndpointName"]) == [14]
    with pytest.raises(ClientError, match=r"Session .* not found"):
        use(options_of(aws), turn)


def test_a_container_without_sessions_says_so(aws: LocalAws, use: Use) -> None:
    with pytest.raises(ClientError, match="stateful sessions not enabled") as raised:
        use(options_of(aws), ("open_session", {"EndpointName": endpoint_of(aws)}))
    assert raised.value.response["Error"]["Code"] == "ModelError"


def test_a_container_of_your_own_is_opened_with_its_own_body(aws: LocalAws, use: Use) -> None:
    aws.set_model_servers({"model": SimulatedModelServer()})
    name = create_endpoint(aws)
    own = {"EndpointName": name, "Body": b"begin", "ContentType": "text/plain"}
    (session,) = use(options_of(aws), ("open_session", own))
    assert session


# ------------------------------------------------------------------- whatever the endpoint does


def test_an_answer_that_names_no_session_is_none(use: Use) -> None:
    with LoopbackRuntime() as server, pytest.raises(ConfigurationError) as raised:
        use({"url": server.url}, ("open_session", {"EndpointName": "any"}))
    assert raised.value.code == "LLC117"


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
            use({"url": server.url, "hedging": hedging}, ("open_session", {"EndpointName": name}))
        assert server.runtime.requests[name] == 1


def test_the_session_is_not_given_twice(use: Use) -> None:
    with LoopbackRuntime() as server, pytest.raises(TypeError, match="SessionId"):
        use({"url": server.url}, ("open_session", {"EndpointName": "any", "SessionId": "mine"}))
