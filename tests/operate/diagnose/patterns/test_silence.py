"""No pattern is seen on a healthy endpoint, and none makes the diagnosis fail."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .readings import PerMinute, Readings, constant, scaled


def _day(m: float) -> float:
    return 600 - 400 * math.cos(2 * math.pi * m / 1440)


def _bad_minutes(seed: int, minutes: int, share: float) -> PerMinute:
    chosen = random.Random(seed)
    drawn = {m for m in range(minutes) if chosen.random() < share}
    # Two of three are an alarm, by chance or not.
    bad = {m for m in drawn if not drawn & {m - 1, m - 2}}
    return lambda m: 400 if m in bad else 40


def _wandering(seed: int) -> PerMinute:
    """Latency that wanders: each minute resembles the last, as the mix of inputs does."""
    chosen, at, found = random.Random(seed), 0.0, []
    for _ in range(720):
        at = 0.95 * at + chosen.gauss(0, 0.06)
        found.append(min(40 * math.exp(at), 70))
    return lambda m: found[m]


HEALTHY: dict[str, Callable[[int], Readings]] = {
    "the curve of a day": lambda s: Readings(
        minutes=1440,
        tps=_day,
        instances=lambda m: max(2, math.ceil(_day(m - 5) * 60 / 6000)),
        latency=lambda m: 35 + _day(m) / 50,
        noise=0.1,
    ),
    "a week of days": lambda s: Readings(
        minutes=7 * 1440, step=5, tps=_day, latency=lambda m: 30 + _day(m) / 50
    ),
    "scale-outs": lambda s: Readings(
        minutes=120,
        tps=lambda m: 400 + 5 * m,
        instances=lambda m: 4 if m < 40 else 6 if m < 80 else 8,
        activities=[scaled(40, 6), scaled(80, 8)],
    ),
    "a scale-in of half": lambda s: Readings(
        minutes=120,
        tps=lambda m: 900 - 3 * m,
        instances=lambda m: 8 if m < 60 else 4,
        activities=[scaled(60, 4, to_fewer=True)],
    ),
    "nights without requests": lambda s: Readings(
        minutes=2880, tps=lambda m: 0 if m % 1440 < 360 else 100
    ),
    "noise": lambda s: Readings(minutes=240, latency=constant(45), noise=0.12),
    "one bad minute": lambda s: Readings(latency=lambda m: 900 if m == 20 + s else 40),
    "bad minutes by chance": lambda s: Readings(minutes=360, latency=_bad_minutes(s, 360, 0.03)),
    "a deployment": lambda s: Readings(
        minutes=120,
        deployed=40,
        instances=lambda m: 16 if 40 <= m < 50 else 8,
        memory=lambda m: 86 if m < 42 else 30,
        latency=lambda m: 70 if 41 <= m < 44 else 40,
    ),
    "a weekly job with its own load": lambda s: Readings(
        minutes=7 * 1440,
        step=5,
        tps=lambda m: 900 if 3000 <= m < 3120 else 400,
        latency=lambda m: 65 if 3000 <= m < 3120 else 40,
        memory=lambda m: 88 if 3000 <= m < 3120 else 40,
    ),
    "few requests": lambda s: Readings(
        minutes=240, tps=constant(0.05), cpu=constant(2), latency=_bad_minutes(s, 240, 0.08)
    ),
    "a request every third minute": lambda s: Readings(
        minutes=180, tps=lambda m: 1 if m % 3 == 0 else 0, cpu=constant(2)
    ),
    "warming up from the start": lambda s: Readings(latency=lambda m: 70 - min(m, 30)),
    "a creep that stays far below": lambda s: Readings(minutes=240, latency=lambda m: 10 + m / 12),
    "batches at each hour": lambda s: Readings(
        minutes=360,
        tps=lambda m: 1000 if m % 60 < 3 else 600,
        latency=lambda m: 65 if m % 60 < 3 else 40,
    ),
    "datapoints missing": lambda s: Readings(minutes=180, lost=0.25, gaps=((50, 70),)),
    "latency that wanders": lambda s: Readings(minutes=720, latency=_wandering(s), noise=0.02),
    "no limit stated": lambda s: Readings(minutes=240, limits={}, noise=0.2),
    "half by hand, and enough": lambda s: Readings(
        tps=constant(300), cpu=constant(50), instances=lambda m: 4 if m > 30 else 8
    ),
}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", HEALTHY)
def test_silent_on_a_healthy_endpoint(name: str, seed: int) -> None:
    made = HEALTHY[name](seed)
    made.seed = seed
    assert [(f.id, [e.text for e in f.evidence]) for f in made.findings()] == []


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.0, 0.01, 3.0, 600.0]),  # requests a second
            st.sampled_from([0.0, 0.5, 40.0, 79.0, 81.0, 4000.0]),  # median in ms
            st.integers(1, 9),  # instances
            st.sampled_from([0.0, 50.0, 99.0]),  # CPU
            st.sampled_from([0.0, 35.0, 97.0]),  # memory
        ),
        min_size=1,
        max_size=90,
    ),
    st.sampled_from([1, 5]),
    st.sampled_from([{}, {"p99": 160.0}, {"Average": 0.1, "Maximum": 100.0}]),
    st.floats(0, 0.5),
)
def test_any_minutes_can_be_looked_at(
    minutes: list[tuple[float, float, int, float, float]],
    step: int,
    limits: dict[str, float],
    lost: float,
) -> None:
    """Whatever CloudWatch has: an answer, each with evidence, and each finding once."""
    made = Readings(
        minutes=len(minutes),
        step=step,
        tps=lambda m: minutes[m][0],
        latency=lambda m: minutes[m][1],
        instances=lambda m: minutes[m][2],
        cpu=lambda m: minutes[m][3],
        memory=lambda m: minutes[m][4],
        limits=limits,
        lost=lost,
        noise=0.0,
    )
    found = made.findings()
    assert all(finding.evidence and (finding.changes or finding.besides) for finding in found)
    names = [finding.id for finding in found if finding.id != "LLD135"]
    assert len(names) == len(set(names)), "only losses come more than once"
