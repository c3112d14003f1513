"""Latency targets: units, order, and whatever people pass."""

from __future__ import annotations

from datetime import timedelta

import pytest

from low_latency_endpoint.options.latency_target import LatencyTarget
from tests.refusals import refused


class Duration:
    """Stands for CDK's Duration: anything with to_milliseconds()."""

    def __init__(self, milliseconds: float) -> None:
        self.milliseconds = milliseconds
        self.calls = 0

    def to_milliseconds(self, *, integral: bool) -> float:
        self.calls += 1
        return self.milliseconds


def ms(value: float) -> timedelta:
    return timedelta(milliseconds=value)


def test_statistics_as_cloudwatch_writes_them_in_order() -> None:
    target = LatencyTarget(
        p99_9=ms(90), p50=ms(10), average=ms(12), p99=ms(50), p90=ms(30), p95=ms(40)
    )
    assert list(target.milliseconds.items()) == [
        ("p50", 10),
        ("p90", 30),
        ("p95", 40),
        ("p99", 50),
        ("p99.9", 90),
        ("Average", 12),
    ]


def test_a_duration_is_asked_once() -> None:
    duration = Duration(200)
    target = LatencyTarget(p99=duration)
    assert target.milliseconds == {"p99": 200}
    assert duration.calls == 1


def test_below_a_millisecond() -> None:
    assert LatencyTarget(p99=timedelta(microseconds=7500)).milliseconds == {"p99": 7.5}


def test_equal_targets_are_equal_whatever_gave_them() -> None:
    assert LatencyTarget(p99=ms(200)) == LatencyTarget(p99=Duration(200))
    assert LatencyTarget(p99=ms(200)) != LatencyTarget(p95=ms(200))
    assert hash(LatencyTarget(p99=ms(200))) == hash(LatencyTarget(p99=Duration(200)))


def test_what_rules_ask_for() -> None:
    target = LatencyTarget(p90=ms(30), p99=ms(50), average=ms(12))
    assert target.tightest == ("Average", 12)
    assert target.slowest == ("p99", 50)
    assert target.typical == ("Average", 12)
    assert LatencyTarget(p50=ms(20), average=ms(12)).typical == ("p50", 20)
    assert LatencyTarget(p90=ms(20), p99=ms(40)).typical == ("p90", 20)


def test_the_same_time_for_two_percentiles_is_allowed() -> None:
    assert LatencyTarget(p50=ms(10), p99=ms(10)).milliseconds == {"p50": 10, "p99": 10}


def test_an_average_may_lie_above_a_percentile() -> None:
    LatencyTarget(p50=ms(10), average=ms(80))


@pytest.mark.parametrize(
    ("targets", "code"),
    [
        ({}, "LLE802"),
        ({"p99": 200}, "LLE801"),
        ({"p99": Duration(1e300)}, "LLE801"),
        ({"p50": ms(50), "p99": ms(49)}, "LLE803"),
        ({"p50": ms(50), "p99_9": ms(49)}, "LLE803"),
        ({"ttft_p50": ms(500), "ttft_p99": ms(499)}, "LLE803"),
        ({"itl_p90": ms(50), "itl_p95": ms(49)}, "LLE803"),
    ],
)
def test_refused(targets: dict[str, object], code: str) -> None:
    with refused(code):
        LatencyTarget(**targets)


def test_targets_on_tokens_stand_beside_those_of_whole_calls() -> None:
    target = LatencyTarget(
        p99=ms(9000), ttft_p99=ms(900), ttft_p95=ms(500), itl_p50=ms(30), itl_p95=ms(50)
    )
    assert target.milliseconds == {"p99": 9000}
    assert list(target.ttft_milliseconds.items()) == [("p95", 500), ("p99", 900)]
    assert list(target.itl_milliseconds.items()) == [("p50", 30), ("p95", 50)]
    assert target.of_tokens
    assert (target.typical_ttft, target.typical_itl) == (("p95", 500), ("p50", 30))
    assert target != LatencyTarget(p99=ms(9000))
    assert not LatencyTarget(p99=ms(9000)).of_tokens


def test_without_a_whole_call_there_is_no_shortest_longest_or_typical_one() -> None:
    target = LatencyTarget(ttft_p95=ms(500))
    assert target.milliseconds == target.itl_milliseconds == {}
    assert target.tightest is target.slowest is target.typical is target.typical_itl is None


def test_kinds_are_not_compared_with_each_other() -> None:
    """A first token may take longer than a whole call of another kind of request."""
    LatencyTarget(p50=ms(900), ttft_p95=ms(500), itl_p99=ms(100))


def test_keywords_only() -> None:
    with pytest.raises(TypeError):
        LatencyTarget(ms(1))
