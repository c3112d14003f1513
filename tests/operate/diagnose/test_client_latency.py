"""What callers measured against what SageMaker did, in windows of which a part is slow."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from low_latency_endpoint.account.metrics import Series
from tests.depth import examples

from .steady_faults import FAULTS

START = datetime(2026, 11, 17, 3)
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[math.ceil(share * len(values)) - 1]


def drawn_minutes(rng: random.Random) -> list[list[float]]:
    """Latencies minute by minute; in some minutes both requests and latencies are several times more."""
    slow = rng.randint(0, 60)
    times = rng.choice([1.5, 4.0, 10.0])
    spread = rng.choice([0.1, 0.5, 1.0])
    minutes = []
    for minute in range(60):
        is_slow = minute < slow
        requests = rng.randint(20, 100) * (2 if is_slow else 1)
        scale = 100 * (times if is_slow else 1)
        minutes.append([scale * rng.lognormvariate(0, spread) for _ in range(requests)])
    return minutes


@pytest.mark.parametrize("statistic", SHARES)
def test_the_whole_windows_percentile_is_hardly_above_what_is_counted(statistic):
    """Periods above it have 1 % of the requests, and the others the share beyond the percentile."""
    rng = random.Random(59)
    share = SHARES[statistic]
    for _ in range(examples(60)):
        minutes = drawn_minutes(rng)
        times = [START + timedelta(minutes=minute) for minute in range(len(minutes))]
        periods = [quantile(values, share) for values in minutes]
        values = Series(dict(zip(times, periods, strict=True)))
        counts = Series(dict(zip(times, map(len, minutes), strict=True)))
        bound = values.weighted_percentile(counts, 0.99)
        together = [latency for minute in minutes for latency in minute]
        assert bound is not None
        assert quantile(together, share - 0.01) <= bound <= max(periods)


def test_the_weight_decides_and_not_the_number_of_periods():
    values = Series({START: 10.0, START + timedelta(minutes=1): 50.0})
    few = Series({START: 999.0, START + timedelta(minutes=1): 1.0})
    assert values.weighted_percentile(few, 0.99) == 10.0
    assert values.weighted_percentile(Series(), 0.99) == 50.0


@pytest.mark.parametrize("over", [10, 20, 30, 45, 60])
def test_a_slow_part_of_the_window_is_not_the_callers_path(over):
    """Callers measure what the slow minutes are, and 10 ms on the way; fast minutes stand beside."""
    [fault] = [
        fault
        for fault in FAULTS
        if fault.finding == "LLD704" and fault.name.startswith("somebody lowered")
    ]
    scenario = fault.scenario()
    median = max(scenario.latency(minute, 0) for minute in range(scenario.minutes))
    slowest = median * math.exp(2.33 * scenario.spread)
    said = replace(fault, client_latency={"p99": slowest + 10.0}).diagnosed_over(over)
    assert "LLD801" not in {finding.id for finding in said.findings}
