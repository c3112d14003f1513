"""Intervals of differences, on blocks whose true difference is known."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from low_latency_endpoint.load_test.compare.comparison import (
    FEWEST_PAIRS,
    STATISTICS,
    Difference,
    Pair,
    changes,
)
from low_latency_endpoint.load_test.engine.latencies import LatencyHistogram
from low_latency_endpoint.load_test.engine.steps import Step, StepResult

from .fake_generator import answered

RESOLUTION = 0.001  # of the histogram: no interval is narrower


def block(seconds: list[float], in_time: float = 100) -> StepResult:
    """Ten seconds, in which so many were answered."""
    step = Step("block", 10.0, users=1)
    return answered(step, LatencyHistogram.of(seconds), answered_in_time=in_time)


def in_turn(pairs: list[tuple[StepResult, StepResult]]) -> list[Pair]:
    return [Pair(base, other, number % 2 == 0) for number, (base, other) in enumerate(pairs)]


def drawn(
    generator: numpy.random.Generator,
    *,
    pairs: int = 10,
    requests: int = 200,
    effect: float = 0.0,
    unrest: float = 0.0,
    drift: float = 0.0,
) -> list[Pair]:
    """Lognormal latencies (CV 1); blocks differ by chance (unrest) and by a steady drift."""
    sigma = math.sqrt(math.log(2))
    made = []
    for number in range(pairs):
        blocks = {}
        for place, side in enumerate((0, 1) if number % 2 == 0 else (1, 0)):
            factor = math.exp(
                drift * (2 * number + place)
                + unrest * generator.normal()
                + side * math.log1p(effect)
            )
            blocks[side] = block(
                (factor * generator.lognormal(-2, sigma, requests)).tolist(),
                generator.normal(requests, math.sqrt(requests)) / factor,
            )
        made.append(Pair(blocks[0], blocks[1], number % 2 == 0))
    return made


def many(count: int, **world: float) -> list[dict[str, Difference]]:
    generator = numpy.random.default_rng(20261120)
    return [changes(drawn(generator, **world)) for _ in range(count)]


def near(share: float, expected: float, count: int) -> bool:
    """Whether a share of so many trials is what a chance of ``expected`` gives, 999 in 1000."""
    low, high = stats.binom.ppf([0.0005, 0.9995], count, expected) / count
    return bool(low <= share <= high)


# --------------------------------------------------------------------------- exact, by hand


def test_throughput_as_calculated_by_hand():
    """The jackknife written out in fractions, Student's quantile from SciPy."""
    base, other = [100, 90, 110, 95, 105, 100], [110, 104, 118, 108, 117, 113]
    found = changes(
        in_turn([(block([0.1], a), block([0.1], b)) for a, b in zip(base, other, strict=True)])
    )["throughput"]
    whole = math.log(Fraction(sum(other), sum(base)))
    without = [
        math.log(Fraction(sum(other) - b, sum(base) - a)) for a, b in zip(base, other, strict=True)
    ]
    values = [whole + 5 * (sum(without) / 6 - each) for each in without]
    order = [1, -1, 1, -1, 1, -1]
    slope = sum(o * v for o, v in zip(order, values, strict=True)) / 6
    rest = sum((v - whole - slope * o) ** 2 for o, v in zip(order, values, strict=True))
    half = stats.t.ppf(0.975, 4) * math.sqrt(rest / 4 / 6)
    assert (found.base, found.other) == (10.0, pytest.approx(sum(other) / 60))
    assert found.change == pytest.approx(670 / 600 - 1)
    assert found.low == pytest.approx(math.exp(whole - half) - 1)
    assert found.high == pytest.approx(math.exp(whole + half) - 1)
    seen = (stats.t.ppf(0.975, 4) + stats.t.ppf(0.8, 4)) * math.sqrt(rest / 4 / 6)
    assert found.would_see == pytest.approx(math.exp(seen) - 1)


def test_the_figures_are_those_of_all_requests_of_a_side():
    generator = numpy.random.default_rng(1)
    pairs = drawn(generator, pairs=6, effect=0.3)
    found = changes(pairs)
    for at, name in ((0.5, "p50"), (0.9, "p90"), (0.99, "p99")):
        for side in ("base", "other"):
            whole = LatencyHistogram.sum(getattr(pair, side).latency for pair in pairs)
            assert getattr(found[name], side) == whole.quantiles([at])[0]
        assert found[name].change == pytest.approx(found[name].other / found[name].base - 1)
    assert found["p99"].beyond == 12  # of 1,200 on each side


def test_equal_in_every_request_is_no_difference():
    generator = random.Random(2)
    same = [block([generator.expovariate(10) for _ in range(300)]) for _ in range(8)]
    found = changes(in_turn([(one, one) for one in same]))
    for name in STATISTICS:
        assert found[name].change == 0
        assert not found[name].found
        assert found[name].would_see <= RESOLUTION * 1.01


def test_a_steady_drift_is_taken_out_by_the_order():
    """Blocks that become slower one by one, by 3 % each; the sides differ by exactly 10 %."""
    pairs = []
    for number in range(10):
        first = number % 2 == 0
        base, other = (1.03 ** (2 * number + place) for place in ((0, 1) if first else (1, 0)))
        pairs.append(
            Pair(
                block([0.1 * base] * 50, 100 / base), block([0.11 * other] * 50, 90 / other), first
            )
        )
    found = changes(pairs)["throughput"]
    assert found.change == pytest.approx(-0.1, abs=1e-3)  # the drift is exponential, not a line
    assert found.high - found.low < 0.01  # 0.04 where the order is not taken out
    # In the order A B, A B, ... half of the drift would have been the other side's.
    unfair = [
        Pair(block([0.1], 100 / 1.03 ** (2 * n)), block([0.1], 90 / 1.03 ** (2 * n + 1)), True)
        for n in range(10)
    ]
    assert changes(unfair)["throughput"].change < -0.12


def test_scale_and_sides_do_not_matter():
    pairs = drawn(numpy.random.default_rng(3), effect=0.1)
    there = changes(pairs)
    back = changes([Pair(pair.other, pair.base, not pair.base_first) for pair in pairs])
    for name in STATISTICS:
        assert 1 + back[name].change == pytest.approx(1 / (1 + there[name].change))
        assert 1 + back[name].low == pytest.approx(1 / (1 + there[name].high))


@given(
    st.lists(
        st.tuples(
            st.floats(0.001, 100), st.floats(0.001, 100), st.integers(0, 500), st.integers(0, 500)
        ),
        min_size=FEWEST_PAIRS,
        max_size=12,
    )
)
def test_whatever_was_measured_the_numbers_are_numbers(blocks):
    found = changes(
        in_turn([(block([a] * (n > 0), n), block([b] * (m > 0), m)) for a, b, n, m in blocks])
    )
    for each in found.values():
        assert each.low <= each.change <= each.high
        assert all(
            math.isfinite(value) for value in each.to_dict().values() if isinstance(value, float)
        )


def test_too_few_pairs_are_refused():
    pairs = drawn(numpy.random.default_rng(4), pairs=FEWEST_PAIRS)
    assert changes(pairs)
    with pytest.raises(ValueError, match="at least 4 pairs"):
        changes(pairs[:-1])


def test_a_side_without_an_answer_has_no_figures():
    empty = block([], 0)
    assert changes(in_turn([(block([0.1]), empty)] * 5)) == {}


def test_a_percentile_beyond_which_there_is_little_is_called_unreliable():
    generator = numpy.random.default_rng(5)
    assert not changes(drawn(generator, pairs=10, requests=90))["p99"].reliable  # 9 beyond
    found = changes(drawn(generator, pairs=10, requests=110))
    assert found["p99"].reliable
    assert all(found[name].reliable for name in STATISTICS)


# ------------------------------------------------------------------------------- by many tests

#: In 150 tests a chance of one in twenty shows, and three times as many or none at all do not pass.
COUNT = 150


@pytest.mark.parametrize(
    "world",
    [
        {"pairs": 4, "requests": 300},
        pytest.param({"pairs": 10, "requests": 110}, marks=pytest.mark.nightly),
        pytest.param(
            {"pairs": 10, "requests": 200, "unrest": 0.05, "drift": 0.02}, marks=pytest.mark.nightly
        ),
        {"pairs": 9, "requests": 150, "unrest": 0.02, "drift": 0.02},  # an odd number of turns
    ],
    ids=str,
)
def test_equal_sides_are_told_apart_in_one_of_twenty_tests(world):
    found = many(COUNT, **world)
    for name in STATISTICS:
        wrong = sum(each[name].found for each in found) / COUNT
        assert near(wrong, 0.05, COUNT), (name, wrong)
        assert abs(sum(each[name].change for each in found) / COUNT) < 0.03


def test_what_it_would_have_seen_it_sees_in_four_of_five_tests():
    world = {"pairs": 10, "requests": 150, "unrest": 0.03}
    equal = many(100, **world)
    for name in ("p50", "throughput"):
        size = sum(each[name].would_see for each in equal) / len(equal)
        effect = size if name != "throughput" else 1 / (1 + size) - 1
        seen = sum(each[name].found for each in many(COUNT, **world, effect=effect)) / COUNT
        assert 0.70 < seen < 0.90, (name, seen)
