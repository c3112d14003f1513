"""A measured law promises no shorter times than its file can: for any law and any file of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.simulate import Empirical, OpenLoop, Scenario, simulate
from low_latency_endpoint.simulate.load_test_result import load_test_result_of
from low_latency_endpoint.simulate.replication import PERCENTILES
from low_latency_endpoint.simulate.scenario_sentences import service_sentence

Quantile = Callable[[float], float]  # seconds by probability

FINEST = 0.0011  # a thousandth of the requests, and the step of a law's table
BASE = {
    "schema": "low-latency-endpoint/load-test-result/1",
    "source": "a test",
    "instances": 1,
    "rate": 55.0,
    "concurrency": 4,
}


def two_kinds(share: float, quick: float, slow: float) -> Quantile:
    """Requests of which a share is quick."""
    return lambda rank: quick if rank <= share else slow


def log_normal(median: float, deviation: float) -> Quantile:
    """Ends at a billionth from 0 and 1, as a measurement does."""
    inside = 1e-9
    normal = NormalDist()
    return lambda rank: (
        median * math.exp(deviation * normal.inv_cdf(min(max(rank, inside), 1 - inside)))
    )


LAWS = st.one_of(
    st.builds(two_kinds, st.floats(0.01, 0.9999), st.floats(0.001, 0.1), st.floats(0.1, 10.0)),
    st.builds(log_normal, st.floats(0.005, 1.0), st.floats(0.05, 2.0)),
)
FEW = st.lists(st.floats(0.0, 1.0).map(lambda rank: round(rank, 4)), max_size=30)
EQUAL = st.integers(1, 2000).map(lambda steps: [number / steps for number in range(steps + 1)])


def file_of(law: Quantile, ranks: list[float]) -> Empirical:
    """The law that is simulated where a file has these quantiles of a law."""
    quantiles = {str(rank): 1000 * law(rank) for rank in sorted({0.0, *ranks, 1.0})}
    content = {**BASE, "service_time_ms": {"quantiles": quantiles}}
    return load_test_result_of(content).service


@given(LAWS, st.one_of(FEW, EQUAL))
def test_no_percentile_is_below_what_the_file_can_tell(law: Quantile, ranks: list[float]) -> None:
    measured = file_of(law, ranks)
    for percentile in PERCENTILES:
        least = law(percentile / 100 - FINEST)
        assert measured.percentile(percentile) >= least * (1 - 1e-9)


@given(LAWS, st.integers(2, 3000))
def test_no_percentile_is_below_the_samples(law: Quantile, count: int) -> None:
    times = [law((number + 0.5) / count) for number in range(count)]
    measured = Empirical.of_samples(times)
    for percentile in PERCENTILES:
        rank = max(0.0, percentile / 100 - FINEST)
        at = max(0, math.ceil(rank * count) - 1)
        assert measured.percentile(percentile) >= times[at] * (1 - 1e-9)


@pytest.mark.parametrize(
    ("law", "ranks"),
    [
        (two_kinds(0.92, 0.015, 0.5), [0.5, 0.9, 0.99]),
        (two_kinds(0.985, 0.015, 0.5), [0.5, 0.9, 0.95, 0.98, 0.99]),
        (log_normal(0.02, 1.0), [0.5, 0.9, 0.99]),
        (log_normal(0.02, 1.0), [number / 50 for number in range(51)]),
    ],
)
def test_a_fleet_without_a_queue_has_no_lower_ones(law: Quantile, ranks: list[float]) -> None:
    """Simulated, where chance moves a rank by less than a thousandth more: 400,000 requests."""
    scenario = Scenario(
        service=file_of(law, ranks), traffic=OpenLoop(1.0), instances=4, concurrency=50
    )
    found = simulate(scenario, requests=100_000, replications=4)
    for percentile in (50.0, 90.0, 95.0, 99.0):
        least = law(percentile / 100 - FINEST - 0.001)
        assert found.percentile(percentile).high >= least


@given(st.floats(0.5, 0.98), st.floats(0.01, 0.02), st.floats(0.1, 1.0))
def test_a_fine_file_gives_the_true_mean(share: float, quick: float, slow: float) -> None:
    """A thousand steps leave one gap of 0.1 %, so a thousandth of the requests can be wrong."""
    measured = file_of(two_kinds(share, quick, slow), [number / 1000 for number in range(1001)])
    mean = share * quick + (1 - share) * slow
    assert measured.gap is None
    assert measured.mean_seconds == pytest.approx(mean, abs=FINEST * (slow - quick))


def test_what_the_file_leaves_open_is_said() -> None:
    """The file of job 06: 92 of 100 requests take 15 ms, the others half a second."""
    law = two_kinds(0.92, 0.015, 0.5)
    coarse = file_of(law, [0.5, 0.9, 0.99])
    assert coarse.percentile(95.0) == 0.5
    assert "between p90 (15 ms) and p99 (500 ms)" in service_sentence(coarse, (95.0,))
    fine = file_of(law, [number / 1000 for number in range(1001)])
    assert "nothing is known" not in service_sentence(fine, (95.0,))
    assert fine.percentile(95.0) == 0.5
