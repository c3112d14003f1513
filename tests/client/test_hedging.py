"""When a call is sent twice, and who wins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from low_latency_endpoint.client.client_timing import ClientCounts
from low_latency_endpoint.client.hedging import (
    Claim,
    Hedging,
    HedgingState,
    Watch,
    hedged_in_tasks,
    hedged_in_threads,
)
from tests.refusals import refused

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
        ({"delay": 3}, "LLE801"),
    ],
)
def test_mistakes_are_coded(arguments: dict[str, object], code: str) -> None:
    with refused(code):
        Hedging(**arguments)  # type: ignore[arg-type]


class Calls:
    """What the first, second, ... call does: ``wait`` for the release, fail, or answer."""

    def __init__(self, *does: str) -> None:
        self.does = list(does)
        self.release = threading.Event()

    def __call__(self, claim: Claim) -> str:
        todo = self.does.pop(0)
        claim.watch(self)
        if todo.startswith("wait"):
            self.release.wait(20)
        if todo.endswith("fail"):
            raise ValueError(todo)
        return todo


@pytest.mark.parametrize(
    ("does", "budget_left", "expected"),
    [
        (("wait", "second"), True, "second"),
        (("fail", "never"), True, "fail"),
        (("wait", "never"), False, "wait"),
        (("wait", "fail"), True, "wait"),
        (("wait-fail", "fail"), True, "wait-fail"),
    ],
)
def test_in_threads(does: tuple[str, str], budget_left: bool, expected: str) -> None:
    calls, made = Calls(*does), state(delay=timedelta(milliseconds=5))
    if not budget_left:
        assert made.allow()
    if expected.startswith("wait"):
        threading.Timer(0.05, calls.release.set).start()
    with ThreadPoolExecutor(2) as threads:
        try:
            found = hedged_in_threads(calls, made, threads)
        except ValueError as error:
            found = str(error)
        finally:
            calls.release.set()
    assert found == expected
    assert calls.does == [call for call in does if call == "never"]


def task(seconds: float, result: str, cancelled: list[str]) -> Callable[[Watch], object]:
    async def call(sent: Watch) -> str:
        sent(result)
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            cancelled.append(result)
            raise
        if result.endswith("fail"):
            raise ValueError(result)
        return result

    return call


@pytest.mark.parametrize(
    ("first", "second", "expected", "cancelled"),
    [
        ((20, "first"), (0.001, "second"), "second", ["first"]),
        ((0.05, "first"), (20, "second"), "first", ["second"]),
        ((0.05, "first"), (0.001, "second-fail"), "first", []),
        ((0.05, "first-fail"), (0.001, "second-fail"), "first-fail", []),
        ((0.05, "first-fail"), (0.1, "second"), "second", []),
    ],
)
def test_in_tasks(
    first: tuple[float, str], second: tuple[float, str], expected: str, cancelled: list[str]
) -> None:
    seen: list[str] = []
    calls = [task(*first, seen), task(*second, seen)]

    async def run() -> object:
        try:
            return await hedged_in_tasks(
                lambda sent: calls.pop(0)(sent),
                state(delay=timedelta(milliseconds=5)),
                lambda: False,
            )  # type: ignore
        except ValueError as error:
            return str(error)
        finally:
            await asyncio.sleep(0.01)

    assert asyncio.run(run()) == expected
    assert seen == cancelled


def test_a_cancelled_caller_cancels_both() -> None:
    seen: list[str] = []
    calls = [task(20, "first", seen), task(20, "second", seen)]

    async def run() -> None:
        outer = asyncio.ensure_future(
            hedged_in_tasks(
                lambda sent: calls.pop(0)(sent),
                state(delay=timedelta(milliseconds=5)),
                lambda: False,
            )
        )  # type: ignore
        while calls:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)
        outer.cancel()
        await asyncio.wait([outer])
        await asyncio.sleep(0)

    asyncio.run(run())
    assert sorted(seen) == ["first", "second"]
