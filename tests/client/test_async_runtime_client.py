"""What only the asyncio client has: credentials that are refreshed beside its event loop."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable

import boto3
import pytest
from botocore.credentials import RefreshableCredentials

from benchmarks.tls_server import LoopbackRuntime

from .callers import SECRETS, Caller

Make = Callable[..., Caller]


@pytest.fixture(params=["asyncio", "uvloop"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Refreshed:
    """Credentials that a session asks for anew, with a token of its own each time."""

    def __init__(self, minutes: int) -> None:
        self.tokens: list[str] = []
        self.threads: list[str] = []
        self._minutes = minutes

    def __call__(self) -> dict[str, str]:
        self.tokens.append(f"token{len(self.tokens)}")
        self.threads.append(threading.current_thread().name)
        expiry = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=self._minutes)
        return {
            "access_key": "AKID",
            "secret_key": "s",
            "token": self.tokens[-1],
            "expiry_time": expiry.isoformat(),
        }


def session_with(credentials: RefreshableCredentials) -> boto3.Session:
    made = boto3.Session(*SECRETS, region_name="us-east-1")
    made._session._credentials = credentials
    return made


def test_many_different_parameters_do_not_fill_the_memory(make: Make) -> None:
    wire = make().client._wire
    for number in range(600):
        wire.prepare("https://h", wire.invoke, {"EndpointName": "e", "InferenceId": str(number)})
    assert len(wire._prepared) <= 512


def test_credentials_are_refreshed_beside_the_event_loop(
    server: LoopbackRuntime, make: Make
) -> None:
    refresh = Refreshed(minutes=5)
    credentials = RefreshableCredentials.create_from_metadata(refresh(), refresh, "test")
    caller = make(session=session_with(credentials))
    caller.invoke("headers")
    first = server.runtime.last_headers["X-Amz-Security-Token"]
    caller.client._refresh_at = 0.0
    caller.invoke("headers")
    assert caller.client._refreshing is not None
    caller.wait(caller.client._refreshing)
    caller.client._wire._prepared.clear()  # the clock has not reached the next second
    caller.invoke("headers")
    assert server.runtime.last_headers["X-Amz-Security-Token"] != first
    assert "MainThread" not in refresh.threads[1:]


def test_calls_after_a_long_pause_wait_for_new_credentials(
    server: LoopbackRuntime, make: Make
) -> None:
    now, refresh = datetime.datetime.now(datetime.UTC), Refreshed(minutes=180)
    end = now + datetime.timedelta(hours=1)
    credentials = RefreshableCredentials(
        "AKID", "s", "first", end, refresh, "test", time_fetcher=lambda: now
    )
    caller = make(session=session_with(credentials))
    now += datetime.timedelta(hours=2)
    caller.client._refresh_at = 0.0  # two hours are more than the time between two looks, too
    caller.together(5, "headers")
    assert server.runtime.last_headers["X-Amz-Security-Token"] == "token0"
    caller.invoke("headers")
    assert refresh.tokens == ["token0"]
