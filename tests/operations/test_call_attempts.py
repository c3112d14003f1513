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

from low_latency_endpoint.operations.call_attempts import Attempts, CallRules, StaleConnectionError
from low_latency_endpoint.operations.client_timing import ClientCounts, call_timing
from low_latency_endpoint.operations.zonal_route import ZonalRoute

ZONE, REGION = "https://zone", "https://region"
STALE = StaleConnectionError(endpoint_url=ZONE, request=None)
CLOSED = ConnectionClosedError(endpoint_url=ZONE, request=None)
REFUSED = EndpointConnectionError(endpoint_url=ZONE, error="refused")


def rules_of(retries: int = 1, *, zonal: bool = False) -> CallRules:
    counts = ClientCounts()
    return CallRules(call_timing(timedelta(milliseconds=100), retries=retries), counts, REGION,
                     ZonalRoute(ZONE, REGION, counts) if zonal else None)


def call(rules: CallRules, *, idempotent: bool = True, started: float | None = None) -> Attempts:
    return Attempts(rules, idempotent, time.monotonic() if started is None else started)


def test_a_closed_kept_connection_spends_no_budget() -> None:
    rules = rules_of()
    for _ in range(1_000):
        one = call(rules)
        assert one.failed(REGION, STALE) == 0.0
        assert one.fresh
        assert one.answered(REGION, 200) is None
    assert (rules.counts.reconnects, rules.counts.retries) == (1_000, 1_000)
    assert rules.budget.spend()


def test_the_budget_ends_all_other_retries() -> None:
    rules = rules_of()
    again = [call(rules).failed(REGION, CLOSED) is not None for _ in range(1_000)]
    assert again[0]
    assert sum(again) <= 10 + 0.1 * 1_000


@pytest.mark.parametrize(("retries", "idempotent"), [(0, True), (1, False), (5, False)])
def test_what_cannot_be_repeated_asks_for_a_sure_connection(retries: int,
                                                            idempotent: bool) -> None:
    one = call(rules_of(retries), idempotent=idempotent)
    assert one.sure
    assert one.failed(REGION, STALE) is None


def test_a_closed_kept_connection_counts_as_an_attempt() -> None:
    """However connections end, a body is sent at most once more than the retries say."""
    one = call(rules_of(1))
    assert not one.sure
    assert one.failed(REGION, STALE) == 0.0
    assert one.sure
    assert one.failed(REGION, STALE) is None
    assert one.made == 2


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_closed_kept_connection_closes_no_zone(idempotent: bool) -> None:
    rules = rules_of(zonal=True)
    one = call(rules, idempotent=idempotent)
    assert one.origin() == ZONE
    one.failed(ZONE, STALE)
    assert rules.route is not None
    assert rules.route.zone_is_open
    assert one.origin() == ZONE


def test_a_zone_that_cannot_be_reached_is_left_on_top_of_the_retries() -> None:
    rules = rules_of(0, zonal=True)
    one = call(rules, idempotent=False)
    assert one.failed(one.origin(), REFUSED) == 0.0
    assert one.origin() == REGION
    assert one.failed(REGION, REFUSED) is None


@pytest.mark.parametrize(("error", "idempotent", "again"), [
    (REFUSED, False, True), (ConnectTimeoutError(endpoint_url=ZONE), False, True),
    (CLOSED, True, True), (CLOSED, False, False),
    (ReadTimeoutError(endpoint_url=ZONE), True, False),
])
def test_what_may_have_been_sent(error: Exception, idempotent: bool, again: bool) -> None:
    assert (call(rules_of(), idempotent=idempotent).failed(REGION, error) is not None) is again


@pytest.mark.parametrize("error", [STALE, CLOSED, REFUSED])
def test_nothing_is_tried_after_the_deadline(error: Exception) -> None:
    rules = rules_of(5, zonal=True)
    long_ago = time.monotonic() - rules.timing.longest_call.total_seconds()
    assert call(rules, started=long_ago).failed(ZONE, error) is None
    assert call(rules, started=long_ago).answered(ZONE, 503) is None


def test_answers_that_are_tried_again() -> None:
    rules = rules_of()
    pauses = {status: call(rules).answered(REGION, status) for status in (200, 424, 429, 503)}
    assert [status for status, pause in pauses.items() if pause is not None] == [503]
