"""The runtime's clock."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from local_sagemaker import RuntimeOptions
from local_sagemaker.runtime.clock import FASTEST, LONGEST_JUMP, Clock, Ticks


def test_it_starts_at_the_present_and_runs_as_time_does():
    clock = Clock()
    before = time.time()
    now = clock.now()
    assert before - 0.001 <= now <= time.time() + 0.001  # of two clocks of one machine


def test_a_fast_clock_keeps_what_has_passed_when_its_speed_changes():
    clock = Clock(speed=1000.0, start=0.0)
    time.sleep(0.02)
    clock.set_speed(0.0)
    before = clock.now()
    assert before >= 20.0
    time.sleep(0.01)
    assert clock.now() == before


def test_sleepers_wake_in_their_order_when_it_is_advanced():
    woken = []

    async def sleeper(clock: Clock, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async def run() -> None:
        clock = Clock(speed=0.0, start=100.0)
        tasks = [asyncio.create_task(sleeper(clock, s)) for s in (30.0, 10.0, 20.0)]
        await asyncio.sleep(0.01)
        assert woken == []
        clock.advance(25.0)
        await asyncio.sleep(0.01)
        assert woken == [10.0, 20.0]
        clock.set_speed(1000.0)
        await asyncio.wait_for(asyncio.gather(*tasks), 5)

    asyncio.run(run())
    assert woken == [10.0, 20.0, 30.0]


def test_every_tick_is_worked_once_and_in_order_even_when_one_fails():
    seen = []

    async def work(at: float) -> None:
        seen.append(at)
        if at == 120.0:
            raise RuntimeError("one bad tick")

    async def run() -> None:
        clock = Clock(speed=0.0, start=101.0)
        ticks = Ticks(clock, work)
        clock.advance(45.0)
        await asyncio.gather(ticks.caught_up(), ticks.caught_up())

    asyncio.run(run())
    assert seen == [110.0, 120.0, 130.0, 140.0]


@pytest.mark.parametrize("speed", [-0.1, math.nan, math.inf, FASTEST * 1.001])
def test_a_speed_is_none_backwards_and_none_beyond_the_fastest(speed):
    assert Clock(speed=FASTEST).speed == FASTEST
    for take in (Clock, Clock().set_speed, lambda speed: RuntimeOptions(clock_speed=speed)):
        with pytest.raises(ValueError, match=r"speed|finite"):
            take(speed)


def test_it_goes_from_1970_to_9999_a_day_at_a_time():
    for start in (math.nan, -1.0, 1e12):
        with pytest.raises(ValueError, match=r"between 1970 and 9999|finite"):
            RuntimeOptions(clock_start=start)
    clock = Clock(speed=0.0, start=253_402_300_799.0 - LONGEST_JUMP)
    for jump in (-1.0, LONGEST_JUMP + 1):
        with pytest.raises(ValueError, match="does not run backwards"):
            clock.advance(jump)
    clock.advance(LONGEST_JUMP)
    assert clock.moment().year == 9999
    with pytest.raises(ValueError, match="9999"):
        clock.advance(1)
