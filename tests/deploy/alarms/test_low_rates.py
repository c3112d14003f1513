"""Alarms at six requests a minute, deployed and judged minute by minute.

Ten requests take two minutes, the period of the alarm on errors. The alarm on p99 judges six hours,
2,160 requests: 21.6 may be slower.
"""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import MINUTE
from .test_latency_alarms import errors, spread

ENDPOINTS = ("rare",)
ERRORS, P99 = "Invocation5XXErrors/Rate", "ModelLatency/p99"
A_MINUTE = 6


def minute(failed: int = 0, slow: int = 0) -> dict[str, Any]:
    """Six requests, of which so many fail or are slow."""
    latency = {"ModelLatency": spread((50_000, A_MINUTE - slow), (900_000, slow))}
    return errors("Invocation5XXErrors", failed, A_MINUTE) | latency


def minutes_until_on(world, key: str, data: list[dict[str, Any]]) -> list[int]:
    """The minutes after which the alarm was on."""
    start = next(world.times)
    seen = []
    world.publish("rare", *((start + n * MINUTE, each) for n, each in enumerate(data)))
    for number in range(1, len(data) + 1):
        world.aws.evaluate_alarms(start + number * MINUTE)
        if world.states("rare")[key] == "ALARM":
            seen.append(number)
    return seen


def test_the_alarms_are_as_long_as_ten_requests_take(world):
    names = world.names["rare"]
    alarms = {
        alarm["AlarmName"]: alarm
        for alarm in world.cloudwatch.describe_alarms(
            AlarmNames=[names[ERRORS], names[P99]], AlarmTypes=["MetricAlarm"]
        )["MetricAlarms"]
    }
    of_errors, of_p99 = alarms[names[ERRORS]], alarms[names[P99]]
    periods = {m["MetricStat"]["Period"] for m in of_errors["Metrics"] if "MetricStat" in m}
    assert (periods, of_errors["EvaluationPeriods"]) == ({120}, 3)
    assert (of_p99["Period"], of_p99["EvaluationPeriods"]) == (21_600, 1)


def test_a_request_that_fails_and_is_tried_again_pages_nobody(world):
    tried = [minute(), minute(failed=5), minute(), minute(), minute(), minute(), minute()]
    assert minutes_until_on(world, ERRORS, tried) == []


def test_an_outage_pages_within_three_periods(world):
    outage = [minute()] * 4 + [minute(failed=A_MINUTE)] * 6
    on = minutes_until_on(world, ERRORS, outage)
    # The third minute of the outage: six failures in each of two periods.
    assert on[0] == 4 + 3


@pytest.mark.parametrize(("slow_minutes", "pages"), [(3, False), (4, True)])
def test_p99_pages_for_one_percent_of_the_window(world, slow_minutes, pages):
    """18 slow requests of 2,160 are less than 1 %, 24 are more."""
    data = [minute()] * (360 - slow_minutes) + [minute(slow=A_MINUTE)] * slow_minutes
    start = next(world.times)
    world.publish("rare", *((start + n * MINUTE, each) for n, each in enumerate(data)))
    world.aws.evaluate_alarms(start + 360 * MINUTE)
    assert (world.states("rare")[P99] == "ALARM") is pages
