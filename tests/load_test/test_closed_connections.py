"""Connections that the server has closed without saying so: no failures that a caller would see.

Beside boto3 without retries on the same server, in the same run.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import boto3
import gevent
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from low_latency_endpoint.load_test.engine.connections import GeneratorConnection
from low_latency_endpoint.load_test.engine.invoking import SageMakerInvoker
from low_latency_endpoint.load_test.engine.target import Target

from .closing_server import ClosingServer

pytestmark = pytest.mark.realtime

SESSION = boto3.Session("AKIDEXAMPLE", "secret", "token", "us-east-1")
CALLERS, CALLS = 4, 400


def invoker_of(server: ClosingServer, folder: Path) -> SageMakerInvoker:
    return SageMakerInvoker(
        Target("sentiment", "us-east-1", (server.url,)),
        session=SESSION,
        ca_bundle=folder / "ca.pem",
    )


def bodies(who: bytes) -> list[bytes]:
    return [b"%s %d" % (who, number) for number in range(CALLS)]


@pytest.fixture
def closes_each_fifth(tls: Path | None) -> Iterator[ClosingServer]:
    with ClosingServer(5, tls) as server:
        yield server


def test_no_more_failures_than_boto3_sees(closes_each_fifth: ClosingServer, folder: Path) -> None:
    server = closes_each_fifth
    client = SESSION.client(
        "sagemaker-runtime",
        endpoint_url=server.url,
        verify=str(folder / "ca.pem"),
        config=Config(retries={"total_max_attempts": 1}),
    )

    def boto3_fails(body: bytes) -> bool:
        try:
            client.invoke_endpoint(EndpointName="sentiment", Body=body)["Body"].read()
        except BotoCoreError:
            return True
        return False

    with ThreadPoolExecutor(CALLERS) as threads:
        failed_boto3 = sum(threads.map(boto3_fails, bodies(b"boto3")))

    invoker = invoker_of(server, folder)
    errors: list[str | None] = []

    def call(own: list[bytes]) -> None:
        for body in own:
            errors.append(invoker.invoke(body).error)

    ours = bodies(b"ours")
    gevent.joinall(
        [gevent.spawn(call, ours[each::CALLERS]) for each in range(CALLERS)], raise_error=True
    )
    failed = [error for error in errors if error is not None]
    assert len(errors) == CALLS
    assert len(failed) < 0.005 * CALLS, (failed[0], len(failed), failed_boto3)
    assert failed_boto3 < 0.005 * CALLS, "it looks before it sends, too"
    repeated = {body: times for body, times in server.read.items() if times > 1}
    assert not repeated, "what was read to its end is sent once"
    assert invoker.connections >= CALLS / 5


@pytest.mark.parametrize("how", [b"hang up", b"hang up: reset"])
def test_a_request_that_was_read_and_not_answered_is_an_error(
    tls: Path | None, folder: Path, how: bytes
) -> None:
    """A model that dies of a request dies once, and the load test says so."""
    with ClosingServer(100, tls) as server:
        invoker = invoker_of(server, folder)
        assert invoker.invoke(b"fine").error is None
        answer = invoker.invoke(how)
        assert (answer.status, answer.error) == (0, "connection closed")
        assert server.read[how] == 1
        assert invoker.reconnects == 0
        assert invoker.invoke(b"fine again").error is None


def test_closed_in_the_moment_of_sending(
    tls: Path | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end overtakes the request: a look at the connection before could not have seen it."""
    monkeypatch.setattr(GeneratorConnection, "ended", lambda self: False)
    with ClosingServer(1, tls) as server:
        invoker = invoker_of(server, folder)
        for number in range(20):
            assert server.closed.wait(5) or not number
            server.closed.clear()
            assert invoker.invoke(b"%d" % number).error is None
        assert set(server.read.values()) == {1}
        assert len(server.read) == 20
        assert invoker.reconnects == 19
