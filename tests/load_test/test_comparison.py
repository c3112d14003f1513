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
from low_latency_endpoint.simulate import Constant, OpenLoop, Scenario, compare
from tests.depth import BY_NIGHT

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


# ------------------------------------------------------- an interval covers what the pairs say


def cut(*shares: float, requests: int = 240) -> list[Pair]:
    """Pairs that cut every latency by these shares."""
    base = [0.1 * (1 + number / requests) for number in range(requests)]
    return in_turn(
        [(block(base), block([(1 - share) * length for length in base])) for share in shares]
    )


def half_of_pairs(pairs: list[Pair]) -> float:
    """Half the width of Student's interval of the pairs' own changes of p99, by numpy and scipy."""
    own = [
        math.log(pair.other.latency.quantiles([0.99])[0] / pair.base.latency.quantiles([0.99])[0])
        for pair in pairs
    ]
    signs = [1.0 if pair.base_first else -1.0 for pair in pairs]
    design = numpy.column_stack([numpy.ones(len(pairs)), signs])
    rest = own - design @ numpy.linalg.lstsq(design, numpy.array(own), rcond=None)[0]
    free = len(pairs) - 2
    inverse = numpy.linalg.inv(design.T @ design)[0, 0]
    return float(stats.t.ppf(0.975, free) * math.sqrt(rest @ rest / free * inverse))


def half_of(found: Difference) -> float:
    return (math.log1p(found.high) - math.log1p(found.low)) / 2


@given(st.lists(st.floats(-0.5, 0.9), min_size=FEWEST_PAIRS, max_size=12), st.integers(10, 60))
def test_the_interval_of_p99_is_no_narrower_than_that_of_the_pairs(shares, requests):
    pairs = cut(*shares, requests=requests)
    assert half_of(changes(pairs)["p99"]) >= half_of_pairs(pairs) * (1 - 1e-9)


def test_pairs_that_differ_make_a_wide_interval_and_pairs_that_agree_a_narrow_one():
    """The p99 of all four lies in the slowest pair, whichever other one is left out."""
    found = changes(cut(0.40, 0.24, 0.47, 0.43))["p99"]
    assert found.low < -0.43
    assert found.high > -0.24
    alike = changes(cut(0.40, 0.41, 0.40, 0.41))["p99"]
    assert -0.43 < alike.low < alike.high < -0.38


def queued(generator: numpy.random.Generator, least: bool, seconds: float = 8.0) -> list[float]:
    """Latencies of 30 requests a second to five instances of one worker, after a second to settle."""
    ends: list[list[float]] = [[] for _ in range(5)]
    lengths = []
    now = generator.exponential(1 / 30)
    while now < seconds + 1:
        ends = [[end for end in queue if end > now] for queue in ends]
        outstanding = numpy.array([len(queue) for queue in ends])
        chosen = generator.integers(5)
        if least:
            chosen = generator.choice(numpy.flatnonzero(outstanding == outstanding.min()))
        begun = max([now, *ends[chosen]])
        end = begun + 0.1
        ends[chosen].append(end)
        if now > 1:
            lengths.append(end - now)
        now += generator.exponential(1 / 30)
    return lengths


def true_change_of_queues() -> float:
    """What the routing changes of the p99 of :func:`queued`, from the simulator's long run."""
    random = Scenario(service=Constant(0.1), traffic=OpenLoop(30.0), instances=5, concurrency=1)
    least = random.with_(routing="LEAST_OUTSTANDING_REQUESTS")
    both = compare({"RANDOM": random, "LEAST": least}, requests=100_000, replications=4)
    return both.percentile_change("LEAST", 99.0).mean


def test_short_blocks_of_queues_hold_the_true_change_in_19_of_20_tests():
    """Late requests come in spells, so four pairs of eight seconds say little and must tell so."""
    generator = numpy.random.default_rng(20261129)
    true, count = true_change_of_queues(), 300 if BY_NIGHT else 60
    held = 0
    for _ in range(count):
        pairs = [
            (block(queued(generator, least=False)), block(queued(generator, least=True)))
            for _ in range(FEWEST_PAIRS)
        ]
        found = changes(in_turn(pairs))["p99"]
        held += found.low <= true <= found.high
    assert near(held / count, 0.95, count), held


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
