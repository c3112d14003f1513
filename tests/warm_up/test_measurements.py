"""Percentiles, targets, and when a zone is settled."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.warm_up.warm_up_function.measurements import Zone, meets, percentile


@pytest.mark.parametrize(
    ("percent", "expected"), [(50, 50), (90, 90), (99, 99), (99.9, 100), (100, 100), (0, 1)]
)
def test_nearest_rank_of_one_to_a_hundred(percent, expected):
    assert percentile([*range(100, 0, -1)], percent) == expected


def test_a_rank_is_not_pushed_up_by_binary_fractions():
    # 99.9 / 100 * 1000 is 999.0000000000001
    assert percentile([*range(1, 1001)], 99.9) == 999


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0, 100))
def test_a_percentile_is_one_of_the_values_and_covers_its_share(values, percent):
    found = percentile(values, percent)
    assert found in values
    share = sum(value <= found for value in values) / len(values)
    assert share >= percent / 100 - 1e-9


def test_every_statistic_of_the_target_must_hold():
    times = [10.0] * 9 + [100.0]
    assert meets(times, {"p50": 10})
    assert meets(times, {"p50": 10, "p90": 10, "p99": 100, "Average": 19})
    assert not meets(times, {"p50": 10, "p99": 99.9})
    assert not meets(times, {"Average": 18.9})


def test_of_fifty_requests_a_p99_tolerates_none_and_of_a_hundred_one():
    assert not meets([10.0] * 49 + [500.0], {"p99": 200})
    assert meets([10.0] * 99 + [500.0], {"p99": 200})


def zone_of(*times, keep=3):
    zone = Zone()
    for taken in times:
        zone.add(taken, keep, "" if taken is not None else "it broke")
    return zone


def test_keeps_the_first_and_the_last():
    zone = zone_of(9, None, 7, 6, 5, keep=2)
    assert (zone.sent, zone.failed, zone.error) == (5, 1, "it broke")
    assert (zone.first, zone.last) == ([9, None], [6, 5])


@pytest.mark.parametrize(
    ("times", "requests", "target", "settled"),
    [
        ([5, 5, 5], 3, {}, True),
        ([5, 5], 3, {}, False),  # too few
        ([5], 1, {}, True),  # fewer asked for than are kept
        ([5, 5, None], 3, {}, False),  # the last failed
        ([None, 5, 5, 5], 3, {}, True),  # the failure is further back than the window
        ([None, None], 2, {}, False),
        ([5, 5], 1, {"p99": 10}, False),  # a target needs the whole window
        ([5, 5, 5], 1, {"p99": 10}, True),
        ([50, 5, 5, 5], 1, {"p99": 10}, True),
        ([5, 50, 5, 5], 1, {"p99": 10}, False),
        (
            [5, None, 5],
            1,
            {"p50": 10},
            False,
        ),  # a failure is no fast answer, whatever the statistic
    ],
)
def test_settled(times, requests, target, settled):
    assert zone_of(*times).settled(requests, 3, target) is settled


def test_reports_the_times_of_what_succeeded():
    report = zone_of(30, None, 10, 20).report()
    assert report == {
        "requests": 4,
        "failed": 1,
        "error": "it broke",
        "first": {"p50": 10, "p90": 30, "p99": 30},
        "last": {"p50": 10, "p90": 20, "p99": 20},
    }
    assert zone_of(None).report()["last"] == {}
