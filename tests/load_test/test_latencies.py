"""The histogram of latencies: exact enough, exact to merge, cheap, readable by other tools."""

from __future__ import annotations

import json
import math
import random

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from low_latency_endpoint.load_test.engine.latencies import PERCENTS, LatencyHistogram

from .histograms import buckets

#: From a microsecond to an hour, as latencies are.
SECONDS = st.floats(1e-6, 3600, allow_nan=False)
SAMPLES = st.lists(SECONDS, min_size=1, max_size=200)


def nearest_rank(samples: list[float], percent: float) -> float:
    """A percentile straight from its definition."""
    ordered = sorted(samples)
    return ordered[max(1, math.ceil(round(percent * len(ordered) / 100, 9))) - 1]


@given(SAMPLES, st.sampled_from(PERCENTS))
def test_every_percentile_is_within_a_tenth_of_a_percent(
    samples: list[float], percent: float
) -> None:
    found = LatencyHistogram.of(samples).percentile(percent)
    assert found == pytest.approx(nearest_rank(samples, percent), rel=0.001, abs=1e-9)


@given(SAMPLES, st.integers(1, 5))
def test_parts_merge_to_what_the_whole_gives(samples: list[float], parts: int) -> None:
    whole = LatencyHistogram.of(samples)
    merged = LatencyHistogram.sum(
        LatencyHistogram.of(samples[part::parts]) for part in range(parts)
    )
    assert merged == whole
    assert merged.percentiles() == whole.percentiles()
    assert (merged.mean, merged.min, merged.max) == (whole.mean, whole.min, whole.max)


@given(st.lists(st.lists(SECONDS, max_size=20), max_size=6))
def test_what_is_left_without_each_is_the_sum_of_the_others(parts: list[list[float]]) -> None:
    histograms = [LatencyHistogram.of(samples) for samples in parts]
    for at, found in enumerate(LatencyHistogram.sums_without_each(histograms)):
        assert found == LatencyHistogram.sum(histograms[:at] + histograms[at + 1 :])


def test_one_that_is_there_twice_is_left_out_once() -> None:
    slow, fast = LatencyHistogram.of([9.0]), LatencyHistogram.of([0.1])
    _, without_slow, _ = LatencyHistogram.sums_without_each([fast, slow, slow])
    assert without_slow.max == 9.0


@given(st.lists(SECONDS, max_size=50))
def test_text_and_messages_lose_nothing(samples: list[float]) -> None:
    made = LatencyHistogram.of(samples)
    assert LatencyHistogram.decode(made.encode()) == made
    message = json.loads(json.dumps(made.to_counts()))
    assert LatencyHistogram.of_counts(message) == made


@settings(max_examples=30)
@given(SAMPLES)
def test_the_reference_implementation_reads_the_same_counts(samples: list[float]) -> None:
    theirs = HdrHistogram.decode(LatencyHistogram.of(samples).encode().split(";")[0])
    recorded = HdrHistogram(1, 3600 * 10**9, 3)
    for sample in samples:
        recorded.record_value(int(sample * 1e9))
    assert theirs.get_total_count() == len(samples)
    for percent in PERCENTS:
        assert theirs.get_value_at_percentile(percent) == recorded.get_value_at_percentile(percent)


def test_mean_and_extremes_are_exact() -> None:
    made = LatencyHistogram.of([0.1, 0.2, 0.6])
    assert made.mean == pytest.approx(0.3, abs=1e-9)
    assert (made.min, made.max) == (0.1, 0.6)


def test_no_percentile_passes_the_largest_sample() -> None:
    made = LatencyHistogram.of([1.0005] * 100)
    assert {one.seconds for one in made.percentiles()} == {1.0005}


def test_each_percentile_says_what_it_rests_on() -> None:
    found = {
        one.name: one
        for one in LatencyHistogram.of(number / 1000 for number in range(1, 1001)).percentiles()
    }
    assert list(found) == ["p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99"]
    assert [one.samples_beyond for one in found.values()] == [500, 250, 100, 50, 10, 1, 0]
    assert [one.reliable for one in found.values()] == [True] * 5 + [False] * 2


def test_an_empty_histogram_has_no_figures() -> None:
    made = LatencyHistogram()
    assert made.percentiles() == ()
    assert math.isnan(made.percentile(99))
    assert math.isnan(made.mean)
    assert math.isnan(made.max)


def test_what_no_latency_can_be_is_counted_at_the_ends() -> None:
    made = LatencyHistogram.of([-1.0, 0.0, 1e6])
    assert (made.count, made.min, made.max) == (3, 0.0, 3600.0)


def test_buckets_hold_all_samples_in_order() -> None:
    random.seed(3)
    samples = [random.lognormvariate(-3, 1) for _ in range(500)]
    rows = list(buckets(LatencyHistogram.of(samples)))
    assert sum(count for _, _, count in rows) == 500
    assert rows == sorted(rows)
    for low, high, count in rows:
        assert sum(low <= int(one * 1e9) / 1e9 < high for one in samples) == count


@pytest.mark.parametrize("text", ["", "x", "HISTF;1;2", "abc;1;1;1", "a;b;c;d"])
def test_other_text_is_no_histogram(text: str) -> None:
    with pytest.raises(ValueError, match="not an encoded latency histogram"):
        LatencyHistogram.decode(text)
