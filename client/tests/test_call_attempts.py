"""What follows a failed attempt, for all clients alike."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ParamValidationError,
    ReadTimeoutError,
)

from low_latency_client import call_attempts
from low_latency_client.call_attempts import (
    Attempts,
    CallRules,
    StaleConnectionError,
    UnreachedPeerError,
    is_idempotent,
)
from low_latency_client.runtime_wire import body_bytes
from low_latency_client.timing import ClientCounts, call_timing
from low_latency_client.zone import ZonalRoute

ZONE, REGION = "https://zone", "https://region"
STALE = StaleConnectionError(endpoint_url=ZONE, request=None)
UNREACHED = UnreachedPeerError(endpoint_url=ZONE, request=None)
CLOSED = ConnectionClosedError(endpoint_url=ZONE, request=None)
REFUSED = EndpointConnectionError(endpoint_url=ZONE, error="refused")


def rules_of(retries: int = 1, *, zonal: bool = False) -> CallRules:
    counts = ClientCounts()
    rules = CallRules(call_timing(timedelta(milliseconds=100), retries=retries), counts, REGION)
    if zonal:
        rules.route = ZonalRoute(ZONE, REGION, counts)
    return rules


def call(rules: CallRules, *, idempotent: bool = True, started: float | None = None) -> Attempts:
    made = Attempts(rules, idempotent)
    if started is not None:
        made.deadline = started + rules.longest_seconds
    made.choose()
    return made


def test_a_closed_kept_connection_spends_no_budget() -> None:
    rules = rules_of()
    for _ in range(1_000):
        one = call(rules)
        assert one.failed(STALE) == 0.0
        assert one.fresh
        assert one.answered(200) is None
    assert (rules.counts.reconnects, rules.counts.retries) == (1_000, 1_000)
    assert rules.budget.spend()


def test_the_budget_ends_all_other_retries() -> None:
    rules = rules_of()
    again = [call(rules).failed(CLOSED) is not None for _ in range(1_000)]
    assert again[0]
    assert sum(again) <= 10 + 0.1 * 1_000


LATE = ReadTimeoutError(endpoint_url=ZONE)
NO_TIME = ConnectTimeoutError(endpoint_url=ZONE)


@pytest.mark.parametrize(
    ("retries", "kind", "failures"),
    [
        # However connections end, a body is sent at most once more than the retries say.
        (1, "", [(STALE, "sure"), (STALE, None)]),
        # The last retry must not meet a closed connection.
        (2, "", [(CLOSED, ""), (CLOSED, "sure"), (CLOSED, None)]),
        (0, "", [(STALE, None)]),
        (1, "", [(UNREACHED, "sure"), (UNREACHED, None)]),
        (5, "once", [(UNREACHED, None)]),
        # What may have been sent is not repeated unless it is idempotent.
        (1, "once", [(REFUSED, "sure"), (REFUSED, None)]),
        (1, "once", [(NO_TIME, "sure")]),
        (5, "once", [(STALE, None)]),
        (1, "once", [(CLOSED, None)]),
        (5, "once", [(REFUSED, "sure"), (CLOSED, None)]),
        (1, "", [(LATE, None)]),
        # A zone that cannot be reached is left once, on top of the retries.
        (0, "zone once", [(REFUSED, "sure"), (REFUSED, None)]),
        (1, "zone", [(REFUSED, ""), (CLOSED, "sure"), (CLOSED, None)]),
        (1, "zone", [(UNREACHED, ""), (UNREACHED, "sure"), (UNREACHED, None)]),
        (0, "zone once", [(UNREACHED, None)]),
        (2, "zone", [(REFUSED, ""), (CLOSED, ""), (CLOSED, "sure"), (CLOSED, None)]),
        (1, "zone that opens", [(REFUSED, ""), (REFUSED, "sure"), (REFUSED, None)]),
    ],
)
def test_what_follows_a_failure(
    retries: int, kind: str, failures: list[tuple[Exception, str | None]]
) -> None:
    """No attempt (``None``), or another, which may have to be ``sure`` of its connection."""
    rules = rules_of(retries, zonal="zone" in kind)
    one = call(rules, idempotent="once" not in kind)
    assert one.sure is ("once" in kind or not retries)
    assert (one.origin, one.fresh) == (ZONE if rules.route else REGION, False)
    for error, expected in failures:
        again = one.failed(error)
        assert (again is not None) is (expected is not None)
        if expected is not None:
            assert one.sure is (expected == "sure" or not retries)
        if rules.route is not None:
            assert one.choose() == REGION
        if kind == "zone that opens":
            rules.route = ZonalRoute(ZONE, REGION, rules.counts)
            one.choose()
    assert one.made == len(failures)


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_closed_kept_connection_closes_no_zone(idempotent: bool) -> None:
    rules = rules_of(zonal=True)
    one = call(rules, idempotent=idempotent)
    assert one.choose() == ZONE
    one.failed(STALE)
    assert rules.route is not None
    assert rules.route.zone_is_open
    assert one.choose() == ZONE


@pytest.mark.parametrize("error", [STALE, CLOSED, REFUSED])
def test_nothing_is_tried_after_the_deadline(error: Exception) -> None:
    rules = rules_of(5, zonal=True)
    long_ago = time.monotonic() - rules.timing.longest_call.total_seconds()
    assert call(rules, started=long_ago).failed(error) is None
    assert call(rules, started=long_ago).answered(503) is None


def test_answers_that_are_tried_again() -> None:
    """As docs/how-to/clients.md lists them."""
    rules = rules_of()
    pauses = {status: call(rules).answered(status) for status in range(200, 600)}
    assert [status for status, pause in pauses.items() if pause is not None] == [
        500,
        502,
        503,
        504,
        530,
    ]
    longest = rules.timing.retry_delay.total_seconds()
    assert all(0 <= pause <= longest for pause in pauses.values() if pause is not None)
    assert call(rules, idempotent=False).answered(503) is None


def test_sessions_have_a_state_unless_the_call_says_otherwise() -> None:
    assert is_idempotent({}, b"")
    assert not is_idempotent({"SessionId": "s"}, b"")
    assert is_idempotent({"SessionId": "s", "Idempotent": True}, b"")
    assert not is_idempotent({"Idempotent": False}, b"")


@pytest.mark.parametrize(
    "field", ["messages", "prompt", "max_tokens", "max_new_tokens", "max_completion_tokens"]
)
@pytest.mark.parametrize(
    "of", [str.encode, lambda t: bytearray(t.encode()), lambda t: memoryview(t.encode()), str]
)
def test_what_asks_for_a_generation_is_not_repeated_unless_the_call_says_so(
    field: str, of: Callable[[str], Any]
) -> None:
    """A second copy would take an accelerator's time as the first does."""
    body = body_bytes(of(f'{{"{field}": 1}}'))
    assert not is_idempotent({}, body)
    assert is_idempotent({"Idempotent": True}, body)
    word = body_bytes(of(f'{{"inputs": "one {field}"}}'))
    assert is_idempotent({}, word), "a word in it is no field"


def test_a_file_is_not_read_to_see_what_it_asks_for() -> None:
    body = io.BytesIO(b'{"messages": []}')
    with pytest.raises(ParamValidationError):
        body_bytes(body)
    assert body.tell() == 0


def test_the_zone_that_answers_again_is_open() -> None:
    rules = rules_of(zonal=True)
    assert rules.route is not None
    one = call(rules)
    one.failed(REFUSED)
    assert not rules.route.zone_is_open
    one.answered(200)
    assert rules.route.zone_is_open


@pytest.mark.parametrize("error", [STALE, REFUSED])
def test_what_needs_no_pause_is_done_up_to_the_deadline(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = rules_of(zonal=True)
    longest = rules.timing.longest_call.total_seconds()
    now = 1000.0
    monkeypatch.setattr(call_attempts.time, "monotonic", lambda: now)
    late = call(rules, started=now - longest + 0.001)
    assert late.failed(error) == 0.0
    assert call(rules_of(), started=now - longest + 0.001).failed(STALE) == 0.0
    over = call(rules, started=now - longest)
    assert over.deadline == now
    assert over.failed(STALE) is None


def test_the_wait_for_the_first_token_counts_from_the_first_request_that_went_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Connecting is none of it, and a second attempt does not start it anew."""
    clock = iter([1000.0, 1003.0, 1009.0])
    monkeypatch.setattr(call_attempts.time, "monotonic", lambda: next(clock))
    one = Attempts(rules_of(), idempotent=True)
    assert one.deadline == 1000.0 + one._rules.longest_seconds
    one.first_token = 5.0
    for _ in range(2):
        one.sending(None)
        assert (one.sent, one.deadline) == (1003.0, 1008.0)


def test_without_a_limit_on_the_first_token_the_call_keeps_its_deadline() -> None:
    one = call(rules_of())
    deadline = one.deadline
    one.sending(None)
    assert one.deadline == deadline


def test_each_connection_is_told_before_the_request_goes_out_on_it() -> None:
    one = call(rules_of())
    told: list[object] = []
    one.watch = told.append
    connections = [object(), object()]
    for connection in connections:
        one.sending(connection)
    assert told == connections


def test_a_forked_child_starts_with_its_own_locks_and_budget() -> None:
    rules = rules_of(zonal=True)
    assert rules.route is not None
    rules.route._lock.acquire()  # as a thread of the parent's may have done
    while rules.budget.spend():
        pass
    rules.start_anew()
    assert not rules.route._lock.locked()
    assert rules.budget.spend()
    rules_of().start_anew()  # without a zone there is no more to do


def test_a_closed_kept_connection_without_a_retry_left_closes_no_zone() -> None:
    """Its own comment says so; before, the fall-through charged the zone and failed over."""
    rules = rules_of(0, zonal=True)
    for _ in range(100):
        one = call(rules)
        assert one.failed(STALE) is None
        assert one.choose() == ZONE
    assert rules.route is not None
    assert rules.route.zone_is_open
