"""What follows a failed attempt, for all clients alike."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from low_latency_endpoint.client import call_attempts
from low_latency_endpoint.client.call_attempts import (
    Attempts,
    CallRules,
    StaleConnectionError,
    is_idempotent,
)
from low_latency_endpoint.client.client_timing import ClientCounts, call_timing
from low_latency_endpoint.client.zonal_route import ZonalRoute

ZONE, REGION = "https://zone", "https://region"
STALE = StaleConnectionError(endpoint_url=ZONE, request=None)
CLOSED = ConnectionClosedError(endpoint_url=ZONE, request=None)
REFUSED = EndpointConnectionError(endpoint_url=ZONE, error="refused")


def rules_of(retries: int = 1, *, zonal: bool = False) -> CallRules:
    counts = ClientCounts()
    return CallRules(
        call_timing(timedelta(milliseconds=100), retries=retries),
        counts,
        REGION,
        ZonalRoute(ZONE, REGION, counts) if zonal else None,
    )


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


@pytest.mark.parametrize(("retries", "idempotent"), [(0, True), (1, False), (5, False)])
def test_what_cannot_be_repeated_asks_for_a_sure_connection(retries: int, idempotent: bool) -> None:
    one = call(rules_of(retries), idempotent=idempotent)
    assert one.sure
    assert one.failed(STALE) is None


def test_a_closed_kept_connection_counts_as_an_attempt() -> None:
    """However connections end, a body is sent at most once more than the retries say."""
    one = call(rules_of(1))
    assert not one.sure
    assert one.failed(STALE) == 0.0
    assert one.sure
    assert one.failed(STALE) is None
    assert one.made == 2


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_closed_kept_connection_closes_no_zone(idempotent: bool) -> None:
    rules = rules_of(zonal=True)
    one = call(rules, idempotent=idempotent)
    assert one.choose() == ZONE
    one.failed(STALE)
    assert rules.route is not None
    assert rules.route.zone_is_open
    assert one.choose() == ZONE


def test_a_zone_that_cannot_be_reached_is_left_on_top_of_the_retries() -> None:
    rules = rules_of(0, zonal=True)
    one = call(rules, idempotent=False)
    assert one.failed(REFUSED) == 0.0
    assert one.choose() == REGION
    assert one.failed(REFUSED) is None


@pytest.mark.parametrize(
    ("error", "idempotent", "again"),
    [
        (REFUSED, False, True),
        (ConnectTimeoutError(endpoint_url=ZONE), False, True),
        (CLOSED, True, True),
        (CLOSED, False, False),
        (ReadTimeoutError(endpoint_url=ZONE), True, False),
    ],
)
def test_what_may_have_been_sent(error: Exception, idempotent: bool, again: bool) -> None:
    assert (call(rules_of(), idempotent=idempotent).failed(error) is not None) is again


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
    assert is_idempotent({})
    assert not is_idempotent({"SessionId": "s"})
    assert is_idempotent({"SessionId": "s", "Idempotent": True})
    assert not is_idempotent({"Idempotent": False})


def test_a_call_begins_at_the_region_on_any_connection() -> None:
    one = call(rules_of())
    assert (one.choose(), one.fresh) == (REGION, False)


def test_leaving_the_zone_is_once_and_takes_no_retry_away() -> None:
    class AlwaysOpen(ZonalRoute):
        def failed(self, origin: str) -> bool:
            return True

    rules = rules_of(1)
    rules.route = AlwaysOpen(ZONE, REGION, rules.counts)
    one = call(rules)
    assert one.failed(REFUSED) == 0.0
    assert one.failed(REFUSED) is not None, "the retry is left"
    assert one.failed(REFUSED) is None
    assert (one.made, rules.counts.retries) == (3, 1)


def test_the_last_retry_must_not_meet_a_closed_connection() -> None:
    one = call(rules_of(2))
    assert one.failed(CLOSED) is not None
    assert not one.sure, "another retry may follow"
    assert one.failed(CLOSED) is not None
    assert one.sure
    unsent = call(rules_of(5), idempotent=False)
    assert unsent.failed(REFUSED) is not None
    assert unsent.sure, "once sent it may not be repeated"


def test_the_retry_after_the_zone_was_left_is_the_last() -> None:
    rules = rules_of(1, zonal=True)
    one = call(rules)
    assert one.failed(REFUSED) == 0.0
    assert not one.sure
    assert one.choose() == REGION
    assert one.failed(CLOSED) is not None
    assert one.sure
    two = call(rules_of(2, zonal=True))
    assert two.failed(REFUSED) == 0.0
    assert two.choose() == REGION
    assert two.failed(CLOSED) is not None
    assert not two.sure


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
