"""Continuous batching, to the last digit on a clock that jumps."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jumping_loop import JumpingLoop, run_jumping

from local_sagemaker.model_servers.simulated import SharedWork


def ends(slope: float, jobs: list[tuple[float, float]]) -> list[float]:
    """When each job (start, undisturbed seconds) ends."""

    async def main(loop: JumpingLoop) -> list[float]:
        shared = SharedWork(slope)

        async def job(start: float, seconds: float) -> float:
            await asyncio.sleep(start - loop.time())
            await shared.work(seconds)
            return loop.time()

        return list(await asyncio.gather(*(job(*each) for each in jobs)))

    return run_jumping(main)


def test_neighbours_slow_each_other_while_they_are_there():
    # The first has 1 s alone; then both take half as long again: the second 0.75 s, in which the
    # first gets on by 0.5 s; the rest of it, 0.5 s, alone.
    assert ends(0.5, [(0, 2), (1, 0.5)]) == pytest.approx([2.25, 1.75])


@pytest.mark.parametrize(("slope", "each"), [(0, 1.0), (0.4, 2.2), (1, 4.0)])
def test_four_equal_ones_end_together(slope, each):
    assert ends(slope, [(0, 1)] * 4) == pytest.approx([each] * 4)


def by_the_book(slope: float, jobs: list[tuple[float, float]]) -> list[float]:
    """The same in small steps from event to event, without any cleverness."""
    left = {number: seconds for number, (_, seconds) in enumerate(jobs)}
    ended: dict[int, float] = {}
    now = 0.0
    while len(ended) < len(jobs):
        at_work = [n for n, (start, _) in enumerate(jobs) if start <= now and n not in ended]
        coming = [start for start, _ in jobs if start > now]
        slowness = 1 + slope * (len(at_work) - 1)
        steps = [left[n] * slowness for n in at_work] + [start - now for start in coming]
        step = min(steps)
        for n in at_work:
            left[n] -= step / slowness
        now = min(coming) if coming and step == min(coming) - now else now + step
        ended |= {n: now for n in at_work if left[n] <= 1e-9}
    return [ended[n] for n in range(len(jobs))]


@given(
    slope=st.sampled_from([0.0, 0.25, 0.4, 1.0]),
    jobs=st.lists(
        st.tuples(st.integers(0, 8).map(float), st.integers(1, 8).map(float)),
        min_size=1,
        max_size=8,
    ),
)
def test_as_by_the_book(slope, jobs):
    assert ends(slope, jobs) == pytest.approx(by_the_book(slope, jobs), abs=1e-6)


def test_one_that_is_given_up_slows_nobody_any_more():
    async def main(loop: JumpingLoop) -> float:
        shared = SharedWork(1.0)
        other = asyncio.ensure_future(shared.work(1))
        loop.call_later(1, other.cancel)
        await shared.work(1)  # half of it in the first second, the rest alone
        return loop.time()

    assert run_jumping(main) == pytest.approx(1.5)


def test_another_slope_holds_from_the_change_on():
    async def main(loop: JumpingLoop) -> float:
        shared = SharedWork(1.0)
        loop.call_later(1, shared.change_slope, 0.0)
        await asyncio.gather(shared.work(1), shared.work(1))
        return loop.time()

    assert run_jumping(main) == pytest.approx(1.5)
