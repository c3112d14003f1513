"""The index of dispersion tells batches from independent callers, whatever the load does slowly."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from low_latency_endpoint.plan.dispersion import FEWEST_PERIODS, dispersion

Rate = Callable[[int], float]

#: Requests a minute by minute: none of these is a burst.
TRENDS: dict[str, Rate] = {
    "steady": lambda minute: 1000.0,
    "three a minute": lambda minute: 3.0,
    "a daily wave": lambda minute: 300_000 * (1 + 0.9 * math.sin(2 * math.pi * minute / 1440)),
    "a wave down to nothing": lambda minute: 20 * (1 + math.sin(2 * math.pi * minute / 1440)),
    "a step each hour": lambda minute: 1000.0 * (1 + minute // 60 % 3),
    "one spike": lambda minute: 10_000.0 if 300 <= minute < 320 else 1000.0,
    "a slope": lambda minute: 100.0 + 30 * minute,
}


def poisson(chance: random.Random, mean: float) -> int:
    """A count of independent callers; of many of them by the normal law."""
    if mean > 100:
        return max(0, round(chance.gauss(mean, math.sqrt(mean))))
    product = chance.random()
    count = 0
    while product > math.exp(-mean):
        product *= chance.random()
        count += 1
    return count


def counts(rate: Rate, periods: int, batch: int, seed: int) -> list[float]:
    """Counts of batches that come independently of each other."""
    chance = random.Random(seed)
    return [batch * poisson(chance, rate(minute) / batch) for minute in range(periods)]


@pytest.mark.parametrize("rate", TRENDS.values(), ids=TRENDS)
def test_independent_callers_are_not_accused(rate: Rate) -> None:
    for seed in range(20):
        found = dispersion(counts(rate, 1440, 1, seed))
        assert found
        assert not found.is_of_batches
        # Of 950 second differences of a day the estimate scatters by about 0.08.
        assert found.index == pytest.approx(1, abs=0.4)


@pytest.mark.parametrize("batch", [5, 20, 100])
@pytest.mark.parametrize("rate", TRENDS.values(), ids=TRENDS)
def test_batches_are_told_whatever_the_trend(rate: Rate, batch: int) -> None:
    found = dispersion(counts(rate, 1440, batch, seed=1))
    assert found
    assert found.is_of_batches
    if min(rate(minute) for minute in range(1440)) >= 10 * batch:
        assert found.index == pytest.approx(batch, rel=0.3)
    assert "times as much as those of independent callers" in found.warning


@pytest.mark.parametrize("tps", [2, 17, 200, 1000])
@pytest.mark.parametrize("period", [60, 300, 900, 1800, 3600])
def test_a_daily_wave_is_no_batch_in_periods_of_any_length(period: int, tps: int) -> None:
    """A week: where the wave bends within three periods, second differences do not cancel it."""

    def rate(number: int) -> float:
        return tps * period * (1 + 0.7 * math.sin(2 * math.pi * number * period / 86_400))

    for seed in range(5):
        found = dispersion(counts(rate, 7 * 86_400 // period, 1, seed))
        assert found is None or not found.is_of_batches
        assert found is not None or period > 300


@pytest.mark.parametrize("periods", [20, 49, 180])
def test_independent_callers_are_never_too_even(periods: int) -> None:
    found = [dispersion(counts(TRENDS["steady"], periods, 1, seed)) for seed in range(400)]
    assert not any(each.is_too_even for each in found if each)


def test_averages_of_a_minute_are_too_even() -> None:
    """Rates per second in place of counts: a sixtieth of the number, a sixtieth of the scatter."""
    rates = [count / 60 for count in counts(TRENDS["steady"], 1440, 1, seed=1)]
    found = dispersion(rates)
    assert found
    assert found.is_too_even
    assert found.index == pytest.approx(1 / 60, rel=0.2)


def test_few_counts_accuse_rarely_and_fewer_never() -> None:
    few = [dispersion(counts(TRENDS["steady"], FEWEST_PERIODS, 1, seed)) for seed in range(400)]
    accused = sum(1 for found in few if found and found.is_of_batches)
    # 1 in 20 by chance, and three standard errors of 400 recordings: sqrt(400 x 0.05 x 0.95) = 4.4.
    assert accused <= 20 + 3 * 4.4
    assert dispersion(counts(TRENDS["steady"], FEWEST_PERIODS - 1, 20, 1)) is None
    assert dispersion([0.0] * 100) is None
