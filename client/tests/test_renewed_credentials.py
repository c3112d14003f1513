"""Credentials are renewed beside the calls, by a thread of the client's, while the old ones are good."""

from __future__ import annotations

import datetime
import gc
import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import boto3
import pytest
from botocore.credentials import (
    DeferredRefreshableCredentials,
    ReadOnlyCredentials,
    RefreshableCredentials,
)
from botocore.exceptions import CredentialRetrievalError

from low_latency_client.signing import RenewedCredentials, held_credentials

from .callers import SECRETS, Caller
from .loopback_runtime import LoopbackRuntime

KINDS = ("threads", "asyncio")
Make = Callable[..., Caller]


class Provider:
    """Gives a new token each time, waits while it is not ``free``, fails with its ``error``."""

    def __init__(self, seconds: float = 300.0) -> None:
        self.tokens: list[str] = []
        self.seconds = seconds
        self.error: Exception | None = None
        self.nonsense = False
        self.free = threading.Event()
        self.free.set()

    def __call__(self) -> dict[str, str]:
        self.free.wait(30)
        if self.error is not None:
            raise self.error
        if self.nonsense:
            return {}
        self.tokens.append(f"token{len(self.tokens)}")
        expiry = datetime.datetime.now(datetime.UTC) + timedelta(seconds=self.seconds)
        return {
            "access_key": "AKID",
            "secret_key": "s",
            "token": self.tokens[-1],
            "expiry_time": expiry.isoformat(),
        }

    def credentials(self) -> RefreshableCredentials:
        return RefreshableCredentials.create_from_metadata(self(), self, "test")


def session_of(credentials: Any) -> boto3.Session:
    made = boto3.Session(*SECRETS, region_name="us-east-1")
    made._session._credentials = credentials
    return made


def until(happened: Callable[[], Any]) -> None:
    ends = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < ends
        time.sleep(0.005)


def token(caller: Caller, server: LoopbackRuntime) -> str:
    """Which credentials a call goes out with now."""
    caller.client._wire._prepared.clear()  # the signer asks once per second
    caller.invoke("headers")
    return str(server.runtime.last_headers["X-Amz-Security-Token"])


def end(caller: Caller) -> None:
    """Let the client's credentials end now."""
    ours = caller.client._credentials
    ours._ends = time.time()
    ours._source._expiry_time = datetime.datetime.now(datetime.UTC)


def renewing() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name == "credentials"}


# The moments at which a caller may meet a provider in trouble while what it gave is still valid.
MINUTES = [8, 12]  # left: botocore insists, asks
TROUBLES = ["fails", "slow", "hangs", "gives ended ones", "gives nonsense"]
SLOW_SECONDS = 3.0


def begin(provider: Provider, trouble: str) -> None:
    """From now on the provider is in trouble."""
    if trouble == "fails":
        provider.error = ValueError("no such profile")
    elif trouble == "slow":
        provider.free.clear()
        threading.Timer(SLOW_SECONDS, provider.free.set).start()
    elif trouble == "hangs":
        provider.free.clear()
    elif trouble == "gives ended ones":
        provider.seconds = -60.0
    else:
        provider.nonsense = True


def calls_at_once(caller: Caller, number: int = 10) -> float:
    """How long so many calls at the same moment take; raises what the first that fails does."""
    caller.client._wire._prepared.clear()
    began = time.monotonic()
    caller.together(number, "headers")
    return time.monotonic() - began


@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("minutes", MINUTES)
def test_what_the_source_holds_is_taken_from_the_start(
    server: LoopbackRuntime, make: Make, minutes: int, trouble: str
) -> None:
    """No call of a new client waits or fails, nor any that comes when the provider was asked."""
    provider = Provider(seconds=minutes * 60)
    source = provider.credentials()
    begin(provider, trouble)
    began = time.monotonic()
    caller = make(session=session_of(source))
    took = calls_at_once(caller)
    assert time.monotonic() - began < SLOW_SECONDS * 0.9
    assert server.runtime.requests["headers"] == 10
    if trouble not in ("slow", "hangs"):
        until(lambda: caller.client._credentials._tries)
        took += calls_at_once(caller)
    provider.free.set()
    assert took < SLOW_SECONDS * 0.9
    assert token(caller, server)


@pytest.mark.parametrize("minutes", [8, 12])
def test_renewal_goes_on_aside_from_the_start(
    server: LoopbackRuntime, make: Make, minutes: int
) -> None:
    provider = Provider(seconds=minutes * 60)
    source = provider.credentials()
    provider.seconds = 3600
    provider.free.clear()
    caller = make(session=session_of(source))
    assert token(caller, server) == "token0"
    provider.free.set()
    until(lambda: token(caller, server) == "token1")


@pytest.mark.parametrize("trouble", ["fails", "slow", "gives ended ones"])
def test_credentials_that_ended_before_the_start_are_not_taken(
    server: LoopbackRuntime, make: Make, trouble: str
) -> None:
    """The twin: a call waits for the provider, or fails with it."""
    provider = Provider(seconds=-5)
    source = provider.credentials()
    provider.seconds = 3600
    begin(provider, trouble)
    began = time.monotonic()
    if trouble == "slow":
        assert token(make(session=session_of(source)), server) == "token1"
        assert time.monotonic() - began > SLOW_SECONDS * 0.9
    else:
        with pytest.raises(CredentialRetrievalError):
            token(make(session=session_of(source)), server)
    assert server.runtime.requests["headers"] == (trouble == "slow")


def test_what_another_client_renewed_is_taken_though_our_own_thread_does_not_come_back(
    server: LoopbackRuntime, make: Make
) -> None:
    """boto3 clients and ours share a session's credentials."""
    provider = Provider()
    caller = make(session=session_of(provider.credentials()))
    old = token(caller, server)
    ours = caller.client._credentials
    ours.close()  # no thread looks any more
    end(caller)
    assert ours._source.get_frozen_credentials().token != old
    assert token(caller, server) == provider.tokens[-1]


class Renewing:
    """Attributes as botocore's have them in the middle of a renewal."""

    def __init__(self, token: str, frozen: str, minutes: float) -> None:
        self._token = token
        self._frozen_credentials = ReadOnlyCredentials("AKID", "s", frozen)
        self._expiry_time = datetime.datetime.now(datetime.UTC) + timedelta(minutes=minutes)


@pytest.mark.parametrize("minutes", [5, 60])
def test_old_credentials_are_not_taken_for_new_ones_in_the_middle_of_a_renewal(
    minutes: float,
) -> None:
    """botocore's versions differ in what they write first, the new end or the new credentials."""
    assert held_credentials(Renewing("new", "old", minutes)) == (None, 0.0)
    frozen, ends = held_credentials(Renewing("new", "new", minutes))
    assert frozen.token == "new"
    assert ends == pytest.approx(time.time() + minutes * 60, abs=5)


def test_a_provider_that_hangs_stops_no_call(server: LoopbackRuntime, make: Make) -> None:
    """Five minutes before the end, when botocore waits for new ones in each call."""
    provider = Provider()
    caller = make(session=session_of(provider.credentials()))
    old = token(caller, server)
    provider.free.clear()
    caller.client._credentials.wake.set()  # time to look
    until(lambda: caller.client._credentials._source._refresh_lock.locked())
    began = time.monotonic()
    assert [token(caller, server) for _ in range(3)] == [old] * 3
    assert time.monotonic() - began < 10
    provider.free.set()
    until(lambda: token(caller, server) != old)


def test_a_provider_that_fails_stops_no_call_until_the_end(
    server: LoopbackRuntime, make: Make
) -> None:
    provider = Provider()
    caller = make(session=session_of(provider.credentials()))
    old, tries = token(caller, server), caller.client._credentials._tries
    provider.error = ValueError("no such profile")
    caller.client._credentials.wake.set()
    until(lambda: caller.client._credentials._tries > tries)
    assert token(caller, server) == old
    end(caller)
    with pytest.raises(CredentialRetrievalError, match="no such profile"):
        token(caller, server)
    provider.error = None
    assert token(caller, server) != old


def test_with_nothing_valid_a_call_waits_and_no_longer_than_a_call_may(
    server: LoopbackRuntime, make: Make
) -> None:
    provider = Provider()
    quick = {"connect_timeout": timedelta(seconds=0.2), "read_timeout": timedelta(seconds=0.5)}
    caller = make(session=session_of(provider.credentials()), retries=0, **quick)
    token(caller, server)
    provider.free.clear()
    end(caller)
    began = time.monotonic()
    with pytest.raises(CredentialRetrievalError, match="in time"):
        token(caller, server)
    assert 0.65 < time.monotonic() - began < 15
    threading.Timer(0.2, provider.free.set).start()
    assert token(caller, server) == provider.tokens[-1]
    assert server.runtime.requests["headers"] == 2, "nothing went out with credentials that ended"


def test_the_first_ones_are_waited_for(server: LoopbackRuntime, make: Make) -> None:
    """A role that is assumed asks at the first use."""
    provider = Provider()
    caller = make(session=session_of(DeferredRefreshableCredentials(provider, "test")))
    assert token(caller, server) in provider.tokens


def test_short_lives_are_followed(server: LoopbackRuntime, make: Make) -> None:
    provider = Provider(seconds=1.5)
    caller = make(session=session_of(provider.credentials()))
    seen = set()
    until(lambda: seen.add(token(caller, server)) or len(seen) > 3)


def test_the_thread_ends_with_the_client_and_static_ones_have_none(make: Make) -> None:
    before = renewing()
    caller = make()
    assert renewing() == before
    caller = make(session=session_of(Provider().credentials()))
    assert len(renewing() - before) == 1
    caller.wait(caller.client.close())
    until(lambda: renewing() <= before)


def test_the_thread_ends_with_a_client_that_nobody_closed() -> None:
    before = renewing()
    made = RenewedCredentials(Provider(seconds=3600).credentials())
    made.start()
    wake = made.wake
    del made
    gc.collect()
    wake.set()
    until(lambda: renewing() <= before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only where processes fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of Python 3.12 and newer
def test_a_forked_child_renews_for_itself_though_the_parents_thread_hung() -> None:
    provider = Provider()
    made = RenewedCredentials(provider.credentials())
    made.start()
    until(lambda: made._tries)
    provider.free.clear()
    made.wake.set()
    until(made._source._refresh_lock.locked)
    old = made.get_frozen_credentials().token
    child = os.fork()
    if not child:
        try:
            provider.free.set()
            until(lambda: made.get_frozen_credentials().token != old)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    provider.free.set()
    made.close()
