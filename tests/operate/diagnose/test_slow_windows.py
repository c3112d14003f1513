"""Slow time windows: each its cause, and one cause is one finding however it comes and goes."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime

import pytest

from low_latency_endpoint.operate.diagnose.tree import slow_windows
from low_latency_endpoint.operate.diagnose.view import VariantView

from .conftest import Run
from .faults.endpoints import SINGLE
from .faults.fault import from_minute, up_to
from .scenarios import Scenario, constant


def _ids(run: Run, scenario: Scenario) -> list[str]:
    return [finding.id for finding in run(scenario).findings]


def _minutes(run: Run, scenario: Scenario) -> list[tuple[int, int]]:
    """First and last minute of each time window."""
    m = run(scenario).measurements
    view = VariantView(m, m.variants[0])

    def minute(time: datetime) -> int:
        return round((time - m.start).total_seconds() / 60)

    return [(minute(part[0]), minute(part[-1])) for part in slow_windows(view, view.slow_times)]


@pytest.mark.parametrize("seed", range(6))
def test_latency_around_its_threshold_is_one_finding(seed: int, run: Run) -> None:
    chosen = random.Random(seed)
    medians = [chosen.choice([60, 70, 90, 100]) for _ in range(120)]
    scenario = Scenario(minutes=120, cpu=constant(30), latency=lambda m, i: medians[m])
    assert _ids(run, scenario) == ["LLD112"]


@pytest.mark.parametrize("seed", range(6))
def test_utilization_around_its_limit_is_one_finding(seed: int, run: Run) -> None:
    chosen = random.Random(seed)
    used = [chosen.uniform(76, 100) for _ in range(60)]
    scenario = Scenario(
        cpu=lambda m: used[m], tps=constant(700), latency=lambda m, i: 300, scaling=up_to(8)
    )
    assert _ids(run, scenario) == ["LLD102"]


def slow_in(*windows: range) -> Callable[[int, int], float]:
    return lambda m, i: 400 if any(m in each for each in windows) else 40


WINDOWS = {
    "the way up to full instances belongs to them": (
        [(32, 59)],
        ["LLD102"],
        {
            "cpu": lambda m: min(97, 40 + m),
            "tps": lambda m: 400 + 10 * m,
            "planned": None,
            "latency": lambda m, i: 40 if m < 32 else 120 + 5 * (m - 32),
            "in_flight": constant(20),
            "scaling": up_to(8),
        },
    ),
    # With three requests a minute, slow ones lie apart: still one time window.
    "few requests come and go by chance": (
        [(0, 46)],
        ["LLD127"],
        {
            "tps": constant(0.05),
            "instances": constant(2),
            "cpu": constant(2),
            "latency": lambda m, i: 300 if m % 20 < 7 else 40,
        },
    ),
    "a single slow minute besides is no window": (
        [(30, 39)],
        ["LLD127"],
        {"latency": slow_in(range(5, 6), range(30, 40))},
    ),
    "windows end where it was fast for a while": (
        [(10, 21), (30, 34)],
        ["LLD127"],
        {"latency": slow_in(range(10, 15), range(18, 22), range(30, 35))},
    ),
    "full instances begin a window of their own": (
        [(0, 29), (30, 59)],
        ["LLD107", "LLD112"],
        {"cpu": from_minute(30, 40, 97), "latency": lambda m, i: 300},
    ),
    "a short dip of utilization splits nothing": (
        [(0, 59)],
        ["LLD107"],
        {"cpu": lambda m: 40 if m in (20, 21) else 97, "latency": lambda m, i: 300},
    ),
}


OF_P99 = {
    "LLD132": Scenario(
        minutes=120,
        tps=lambda m: 0 if 30 <= m < 70 else 300,
        cpu=constant(20),
        latency=lambda m, i: 500 if 70 <= m < 76 and i == 0 else 40,
    ),
    "LLD136": Scenario(minutes=120, latency=lambda m, i: 400 if m in SINGLE and i == 0 else 40),
}


@pytest.mark.parametrize("order", [("p50", "p99"), ("p99", "p50")])
@pytest.mark.parametrize("cause", OF_P99)
def test_a_cause_shows_whatever_the_order_of_the_targets(
    cause: str, order: tuple[str, ...], run: Run
) -> None:
    """One instance of eight is slow, which p99 shows and p50 does not."""
    targets = {statistic: {"p50": 150.0, "p99": 200.0}[statistic] for statistic in order}
    (found,) = run(OF_P99[cause], targets=targets).findings
    assert found.id == cause
    assert "p99 " in found.evidence[1].text


@pytest.mark.parametrize("name", WINDOWS)
def test_time_windows(name: str, run: Run) -> None:
    windows, ids, values = WINDOWS[name]
    scenario = Scenario(**values)
    assert _minutes(run, scenario) == windows
    assert _ids(run, scenario) == ids
