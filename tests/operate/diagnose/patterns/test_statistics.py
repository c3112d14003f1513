"""The tests behind the patterns hold their level: chance alone is named as rarely as they say."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from low_latency_endpoint.operate.diagnose.patterns.growth import creep
from low_latency_endpoint.operate.diagnose.patterns.recurring import SIGNIFICANT, rhythm

_WINDOWS = 200


def _markov(chosen: random.Random, bins: int) -> list[int]:
    """Slow minutes that come in clusters, five long in the mean."""
    found, state = [], False
    for each in range(bins):
        state = chosen.random() < (0.8 if state else 0.05)
        if state:
            found.append(each)
    return found


_CHANCE: dict[str, Callable[[random.Random, int], list[int]]] = {
    "four": lambda chosen, bins: sorted(chosen.sample(range(bins), 4)),
    "rare": lambda chosen, bins: [b for b in range(bins) if chosen.random() < 0.05],
    "often": lambda chosen, bins: [b for b in range(bins) if chosen.random() < 0.3],
    "half": lambda chosen, bins: [b for b in range(bins) if chosen.random() < 0.5],
    "clusters": _markov,
    "more and more": lambda chosen, bins: [
        b for b in range(bins) if chosen.random() < 0.6 * b / bins
    ],
}


@pytest.mark.parametrize("kind", _CHANCE)
def test_no_rhythm_in_chance(kind: str) -> None:
    """At most 6 of 200: with a level of 1 % more come once in 200 runs (binomial)."""
    chosen = random.Random(kind)
    found = sum(rhythm(range(60), _CHANCE[kind](chosen, 60)) is not None for _ in range(_WINDOWS))
    assert SIGNIFICANT == 0.01
    assert found <= 6


@pytest.mark.parametrize("period", [2, 3, 5, 7, 12.5, 15, 20])
def test_the_rhythm_that_is_there(period: float) -> None:
    bins = range(int(max(60, 5 * period)))
    found = rhythm(bins, [each for each in bins if each % period < 1])
    assert found is not None
    assert found.period == pytest.approx(period, rel=0.02)


@pytest.mark.parametrize("seed", range(5))
def test_a_rhythm_with_bursts_missing_and_others_besides(seed: int) -> None:
    chosen = random.Random(seed)
    slow = {b for b in range(0, 240, 8) if chosen.random() < 0.9}
    slow |= {b for b in range(240) if chosen.random() < 0.03}
    found = rhythm(range(240), sorted(slow))
    assert found is not None
    assert found.period == pytest.approx(8, rel=0.01)


def test_three_times_are_no_rhythm() -> None:
    assert rhythm(range(60), [10, 25, 40]) is None


def test_no_creep_in_chance() -> None:
    """Noise of a fifth does not double from beginning to end."""
    chosen = random.Random(1)
    found = sum(
        creep([40 * chosen.lognormvariate(0, 0.2) for _ in range(60)]) is not None
        for _ in range(_WINDOWS)
    )
    assert found == 0


def test_a_fall_is_no_creep() -> None:
    assert creep([200 - 2 * n for n in range(60)]) is None
