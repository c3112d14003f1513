"""Our clients and boto3's on servers that do the worst, in one run: counts, not times."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from benchmarks.tls_server import write_certificates
from low_latency_endpoint.client.runtime_client import RuntimeClient
from tests.client import chaos
from tests.client.chaos import BAD, HINTS, LATE, PLAIN, ChaosServer, Outcome

pytestmark = pytest.mark.realtime

# By hand: LOW_LATENCY_CHAOS_CALLS=30000 pytest tests/client/test_chaos.py
CALLS = int(os.environ.get("LOW_LATENCY_CHAOS_CALLS", "1500"))
# Every fifth answer ends its connection without having said so.
CLOSES = {"quiet close": 200}
BOTO3_CALLS = 500


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


def test_asyncio_calls_cancelled_at_random_get_their_own_answer_or_none(
    boto3_in_chaos: Outcome,
) -> None:
    with ChaosServer({**PLAIN, **BAD, **HINTS, **LATE}) as server:
        outcome, _ = chaos.run_quietly(
            chaos.asyncio_calls(server, chaos.bodies(CALLS), cancel=0.07)
        )
        chaos.check(outcome, server, attempts=2)
    assert outcome.cancelled
    assert share(outcome) <= boto3_bound(boto3_in_chaos)


def test_threads_get_their_own_answer_or_none(boto3_in_chaos: Outcome) -> None:
    with ChaosServer({**PLAIN, **BAD, **HINTS, **LATE}) as server:
        with RuntimeClient(**chaos.options(server)) as client:
            outcome = chaos.thread_calls(chaos.invoker(client), chaos.bodies(CALLS))
        chaos.check(outcome, server, attempts=2)
    assert share(outcome) <= boto3_bound(boto3_in_chaos)


def boto3_bound(theirs: Outcome) -> float:
    """boto3's own share; wrong answers, of which it gives some here, are failures as well."""
    return (theirs.failures + theirs.wrong) / theirs.calls


@pytest.mark.parametrize(
    "more",
    [{}, {"idempotent": False}, {"retries": 0}, {"idempotent": False, "tasks": 1, "preconnect": 0}],
)
def test_asyncio_calls_hardly_meet_closed_connections(
    more: dict[str, Any], boto3_where_it_closes: Outcome
) -> None:
    calls = CALLS // 5 if "tasks" in more else CALLS  # one after the other, and each waits
    with ChaosServer(CLOSES) as server:
        outcome, client = chaos.run_quietly(
            chaos.asyncio_calls(server, chaos.bodies(calls), **more)
        )
        chaos.check(outcome, server, attempts=1)
    assert server.done["quiet close"] > calls / 10
    assert share(outcome) <= max(0.005, share(boto3_where_it_closes))
    # The budget is for an endpoint in need.
    assert client.counts.retries == client.counts.reconnects


@pytest.mark.parametrize("idempotent", [True, False])
def test_threads_hardly_meet_closed_connections(
    idempotent: bool, boto3_where_it_closes: Outcome
) -> None:
    with ChaosServer(CLOSES) as server:
        with RuntimeClient(**chaos.options(server)) as client:
            outcome = chaos.thread_calls(
                chaos.invoker(client, Idempotent=idempotent), chaos.bodies(CALLS)
            )
            assert client.counts.retries == client.counts.reconnects
        chaos.check(outcome, server, attempts=1)
    assert share(outcome) <= max(0.005, share(boto3_where_it_closes))


def test_what_is_not_idempotent_is_executed_once_whatever_happens() -> None:
    with ChaosServer({**PLAIN, **BAD, **HINTS}) as server:
        outcome, _ = chaos.run_quietly(
            chaos.asyncio_calls(server, chaos.bodies(CALLS // 3), idempotent=False)
        )
        chaos.check(outcome, server, attempts=1)
        assert outcome.failures
    with ChaosServer({**PLAIN, **BAD, **HINTS}) as server:
        with RuntimeClient(**chaos.options(server)) as client:
            outcome = chaos.thread_calls(
                chaos.invoker(client, Idempotent=False), chaos.bodies(CALLS // 3)
            )
        chaos.check(outcome, server, attempts=1)
        assert outcome.failures


@pytest.mark.parametrize("client", ["asyncio", "threads"])
def test_closed_connections_are_seen_below_tls_too(client: str, tmp_path: Path) -> None:
    write_certificates(tmp_path)
    todo = chaos.bodies(CALLS // 5)
    with ChaosServer(CLOSES, tmp_path) as server:
        if client == "asyncio":
            outcome, _ = chaos.run_quietly(
                chaos.asyncio_calls(server, todo, tasks=4, idempotent=False)
            )
        else:
            with RuntimeClient(**chaos.options(server)) as ours:
                outcome = chaos.thread_calls(chaos.invoker(ours, Idempotent=False), todo, 4)
        chaos.check(outcome, server, attempts=1)
        theirs = chaos.thread_calls(chaos.invoker(chaos.plain_boto3(server, 0)), todo, 4)
    assert share(outcome) <= max(0.01, share(theirs))
