"""Our clients and boto3's on servers that do the worst, in one run: counts, not times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from . import chaos
from .chaos import BAD, HINTS, LATE, PLAIN, ChaosServer, Outcome
from .loopback_runtime import write_certificates

pytestmark = pytest.mark.realtime

# By hand: LOW_LATENCY_CHAOS_CALLS=30000 pytest tests/client/test_chaos.py
CALLS = int(os.environ.get("LOW_LATENCY_CHAOS_CALLS", "1500"))
# Every fifth answer ends its connection without having said so.
CLOSES = {"quiet close": 200}
BOTO3_CALLS = 500
KINDS = ("threads", "asyncio")


def share(outcome: Outcome) -> float:
    return outcome.failures / outcome.calls


@pytest.fixture(scope="module")
def boto3_in_chaos() -> Outcome:
    with ChaosServer({**PLAIN, **BAD}) as server:
        return chaos.thread_calls(
            chaos.invoker(chaos.plain_boto3(server, 1)), chaos.bodies(BOTO3_CALLS)
        )


@pytest.fixture(scope="module")
def boto3_where_it_closes() -> Outcome:
    """With its retries off, as the measurement that this is held against."""
    with ChaosServer(CLOSES) as server:
        return chaos.thread_calls(
            chaos.invoker(chaos.plain_boto3(server, 0)), chaos.bodies(BOTO3_CALLS), threads=4
        )


@pytest.mark.parametrize("kind", KINDS)
def test_calls_get_their_own_answer_or_none(kind: str, boto3_in_chaos: Outcome) -> None:
    """Those of asyncio are cancelled at random."""
    cancel = 0.07 if kind == "asyncio" else 0
    with ChaosServer({**PLAIN, **BAD, **HINTS, **LATE}) as server:
        outcome, _ = chaos.calls(kind, server, chaos.bodies(CALLS), cancel=cancel)
        chaos.check(outcome, server, attempts=2)
    assert bool(outcome.cancelled) is bool(cancel)
    # boto3's own share; wrong answers, of which it gives some here, are failures as well.
    theirs = boto3_in_chaos
    assert share(outcome) <= (theirs.failures + theirs.wrong) / theirs.calls


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "more", [{}, {"idempotent": False}, {"retries": 0}, {"idempotent": False, "at_once": 1}]
)
def test_calls_hardly_meet_closed_connections(
    kind: str, more: dict[str, Any], boto3_where_it_closes: Outcome
) -> None:
    calls = CALLS // 5 if "at_once" in more else CALLS  # one after the other, and each waits
    with ChaosServer(CLOSES) as server:
        outcome, counts = chaos.calls(kind, server, chaos.bodies(calls), **more)
        chaos.check(outcome, server, attempts=1)
    assert server.done["quiet close"] > calls / 10
    assert share(outcome) <= max(0.005, share(boto3_where_it_closes))
    # The budget is for an endpoint in need.
    assert counts.retries == counts.reconnects


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_idempotent_is_executed_once_whatever_happens(kind: str) -> None:
    with ChaosServer({**PLAIN, **BAD, **HINTS}) as server:
        outcome, _ = chaos.calls(kind, server, chaos.bodies(CALLS // 3), idempotent=False)
        chaos.check(outcome, server, attempts=1)
    assert outcome.failures


@pytest.mark.parametrize("kind", KINDS)
def test_closed_connections_are_seen_below_tls_too(kind: str, tmp_path: Path) -> None:
    write_certificates(tmp_path)
    todo = chaos.bodies(CALLS // 5)
    with ChaosServer(CLOSES, tmp_path) as server:
        outcome, _ = chaos.calls(kind, server, todo, at_once=4, idempotent=False)
        chaos.check(outcome, server, attempts=1)
        theirs = chaos.thread_calls(chaos.invoker(chaos.plain_boto3(server, 0)), todo, 4)
    assert share(outcome) <= max(0.01, share(theirs))
