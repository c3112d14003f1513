"""Tokens of prompts and answers: lengths as numbers or as distributions."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.options.load import TokenLengths, TokenTraffic
from tests.refusals import refused

TOKENS = st.integers(1, 200_000)


def drawn(lengths: TokenLengths, count: int = 200_000) -> list[float]:
    """Lengths drawn by Python's own lognormal generator, through the same two percentiles."""
    spread = math.log(lengths.p95 / lengths.p50) / statistics.NormalDist().inv_cdf(0.95)
    one = random.Random(18)
    return [one.lognormvariate(math.log(lengths.p50), spread) for _ in range(count)]


@pytest.mark.parametrize(("p50", "p95"), [(300, 1800), (128, 500), (50, 60)])
def test_the_mean_is_that_of_lengths_drawn_through_both_percentiles(p50: int, p95: int) -> None:
    lengths = TokenLengths(p50=p50, p95=p95)
    found = sorted(drawn(lengths))
    assert found[len(found) // 2] == pytest.approx(p50, rel=0.02)
    assert found[len(found) * 95 // 100] == pytest.approx(p95, rel=0.02)
    assert lengths.mean == pytest.approx(statistics.fmean(found), rel=0.02)
    # Of those in flight: each drawn as often as it is long.
    weighed = sum(each * each for each in found) / sum(found)
    assert lengths.mean_in_flight == pytest.approx(weighed, rel=0.06)


@given(length=TOKENS)
def test_a_distribution_of_one_length_is_that_number(length: int) -> None:
    one = TokenLengths(p50=length, p95=length)
    assert one.mean == one.mean_in_flight == pytest.approx(length)
    fixed = TokenTraffic(input=7, output=length)
    spread = TokenTraffic(input=7, output=one)
    assert fixed.held_tokens == 7 + length
    assert spread.held_tokens == pytest.approx(7 + length, abs=1)


@given(p50=TOKENS, more=st.integers(0, 100_000))
def test_longer_tails_hold_more(p50: int, more: int) -> None:
    lengths = TokenLengths(p50=p50, p95=p50 + more)
    assert p50 <= lengths.mean * (1 + 1e-9)
    assert lengths.mean <= lengths.mean_in_flight * (1 + 1e-9)


def test_in_words() -> None:
    traffic = TokenTraffic(input=1024, output=TokenLengths(p50=128, p95=500), shared_prefix=0.25)
    assert traffic.text == (
        "1,024 tokens in, 128 (p50) to 500 (p95) out, 25 % of the prompt shared"
    )
    assert (traffic.mean_input, traffic.long_input, traffic.long_output) == (1024.0, 1024, 500)


def test_a_long_length_below_the_median_is_refused() -> None:
    with refused("LLE894"):
        TokenLengths(p50=300, p95=299)
