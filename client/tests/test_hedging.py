"""When a call is sent twice, and who wins."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from botocore.exceptions import ClientError

from low_latency_client.async_http import AsyncPool
from low_latency_client.blocking_http import BlockingPool
from low_latency_client.hedging import Claim, Hedging, HedgingState, TaskRace, ThreadRace, hedged
from low_latency_client.timing import ClientCounts

from .callers import run_core
from .refusals import refused

TARGET = timedelta(milliseconds=20)


def state(**more: object) -> HedgingState:
    return HedgingState(Hedging(**more), TARGET, ClientCounts())  # type: ignore[arg-type]


def test_the_delay_is_the_target_until_the_percentile_is_known() -> None:
    made = state(percentile=90)
    for number in range(99):
        made.record(number / 1000)
    assert made.delay_seconds == 0.02
    made.record(0.099)
    assert made.delay_seconds == 0.09


def test_old_calls_are_forgotten() -> None:
    made = state(percentile=50)
    for seconds in (1.0, 2.0):
        for _ in range(1_000):
            made.record(seconds)
    assert made.delay_seconds == 2.0


def test_a_fixed_delay_stays() -> None:
    made = state(delay=timedelta(milliseconds=7))
    for _ in range(500):
        made.record(1.0)
    assert made.delay_seconds == 0.007


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"budget": 0}, "LLC105"),
        ({"budget": 0.6}, "LLC105"),
        ({"percentile": 20}, "LLC106"),
        ({"percentile": 100}, "LLC106"),
        ({"delay": timedelta(0)}, "LLC101"),
        ({"delay": 3}, "LLC125"),
    ],
)
def test_mistakes_are_coded(arguments: dict[str, object], code: str) -> None:
    with refused(code):
        Hedging(**arguments)  # type: ignore[arg-type]


class Copies:
    """What the first, second, ... copy does: after so many seconds it fails or answers."""

    def __init__(self, kind: str, *does: tuple[float, str]) -> None:
        self.does, self.ended = list(does), list[str]()
        self.sleep = AsyncPool.sleep if kind == "asyncio" else BlockingPool.sleep

    def doubt(self) -> None:
        """As a connection's."""

    async def __call__(self, claim: Claim) -> str:
        seconds, result = self.does.pop(0)
        claim.watch(self)
        try:
            await self.sleep(seconds)
        except asyncio.CancelledError:
            self.ended.append(result)
            raise
        if result.endswith("fail"):
            raise ValueError(result)
        return result


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize(
    ("first", "second", "full", "expected", "cancelled"),
    [
        ((0.5, "first"), (0.001, "second"), "", "second", ["first"]),
        ((0.05, "first"), (0.5, "second"), "", "first", ["second"]),
        ((0.05, "first"), (0.001, "second-fail"), "", "first", []),
        ((0.05, "first-fail"), (0.001, "second-fail"), "", "first-fail", []),
        ((0.05, "first-fail"), (0.1, "second"), "", "second", []),
        ((0, "first-fail"), (0, "never"), "", "first-fail", []),
        ((0.05, "first"), (0, "never"), "budget", "first", []),
        ((0.05, "first"), (0, "never"), "connections", "first", []),
    ],
)
def test_which_copy_answers(
    kind: str,
    first: tuple[float, str],
    second: tuple[float, str],
    full: str,
    expected: str,
    cancelled: list[str],
) -> None:
    """In tasks the other one is cancelled; in threads it runs to its end."""
    copies, made = Copies(kind, first, second), state(delay=timedelta(milliseconds=5))
    if full == "budget":
        assert made.allow()

    async def call() -> str:
        race = TaskRace() if kind == "asyncio" else ThreadRace()
        try:
            return await hedged(copies, made, race, lambda: full == "connections")
        except ValueError as error:
            return str(error)
        finally:
            if kind == "asyncio":
                await asyncio.sleep(0.01)
            else:
                race.close()

    assert run_core(kind, call) == expected
    assert copies.ended == (cancelled if kind == "asyncio" else [])
    assert copies.does == ([second] if second[1] == "never" else [])


def answered(status: int, code: str) -> ClientError:
    response = {"ResponseMetadata": {"HTTPStatusCode": status}, "Error": {"Code": code}}
    return ClientError(response, "InvokeEndpoint")


@pytest.mark.parametrize("kind", ["threads", "asyncio"])
@pytest.mark.parametrize(
    ("error", "is_final"),
    [
        (answered(400, "ValidationError"), True),
        (answered(403, "AccessDeniedException"), True),
        (answered(400, "ThrottlingException"), False),
        (answered(424, "ModelError"), False),
        (answered(503, "ServiceUnavailable"), False),
    ],
    ids=str,
)
def test_an_error_that_both_copies_would_get_is_not_waited_for(
    kind: str, error: ClientError, is_final: bool
) -> None:
    sleep = AsyncPool.sleep if kind == "asyncio" else BlockingPool.sleep
    begun: list[str] = []
    copies = state(delay=timedelta(milliseconds=1))

    async def copy(claim: Claim) -> str:
        begun.append("copy")
        number = len(begun)
        claim.watch(Copies(kind))
        await sleep(0.05 if number == 1 else 0.2)
        if number == 1:
            raise error
        return "second"

    async def call() -> str:
        race = TaskRace() if kind == "asyncio" else ThreadRace()
        try:
            return await hedged(copy, copies, race, lambda: False)
        except ClientError:
            return "error"

    assert run_core(kind, call) == ("error" if is_final else "second")
    assert len(begun) == 2


def test_a_cancelled_caller_cancels_both() -> None:
    copies = Copies("asyncio", (20, "first"), (20, "second"))

    async def run() -> None:
        made = state(delay=timedelta(milliseconds=5))
        outer = asyncio.ensure_future(hedged(copies, made, TaskRace(), lambda: False))
        while copies.does:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)
        outer.cancel()
        await asyncio.wait([outer])
        await asyncio.sleep(0)

    run_core("asyncio", run)
    assert sorted(copies.ended) == ["first", "second"]
