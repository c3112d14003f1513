"""Slow time windows: each its cause, and one cause is one finding however it comes and goes."""

from __future__ import annotations

import random
from datetime import datetime

import pytest

from low_latency_endpoint.operate.diagnose.tree import slow_windows
from low_latency_endpoint.operate.diagnose.view import VariantView

from .conftest import Run
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
        cpu=lambda m: used[m],
        tps=constant(700),
        latency=lambda m, i: 300,
        scaling={"min": 2, "max": 8, "target": 7800.0},
    )
    assert _ids(run, scenario) == ["LLD102"]


def test_the_way_up_to_full_instances_belongs_to_them(run: Run) -> None:
    scenario = Scenario(
        cpu=lambda m: min(97, 40 + m),
        tps=lambda m: 400 + 10 * m,
        planned=None,
        latency=lambda m, i: 40 if m < 32 else 120 + 5 * (m - 32),
        in_flight=constant(20),
        scaling={"min": 2, "max": 8, "target": 7800.0},
    )
    assert _minutes(run, scenario) == [(32, 59)]
    assert _ids(run, scenario) == ["LLD102"]


def test_few_requests_come_and_go_by_chance(run: Run) -> None:
    """With three requests a minute, slow ones lie apart: still one time window."""
    scenario = Scenario(
        tps=constant(0.05),
        instances=constant(2),
        cpu=constant(2),
        latency=lambda m, i: 300 if m % 20 < 7 else 40,
    )
    assert _minutes(run, scenario) == [(0, 46)]
    assert len(_ids(run, scenario)) == 1


def test_a_single_slow_minute_besides_is_no_window(run: Run) -> None:
    scenario = Scenario(latency=lambda m, i: 400 if m == 5 or 30 <= m < 40 else 40)
    assert _minutes(run, scenario) == [(30, 39)]


def test_windows_end_where_it_was_fast_for_a_while(run: Run) -> None:
    scenario = Scenario(
        latency=lambda m, i: 400 if 10 <= m < 15 or 18 <= m < 22 or 30 <= m < 35 else 40
    )
    assert _minutes(run, scenario) == [(10, 21), (30, 34)]


def test_full_instances_begin_a_window_of_their_own(run: Run) -> None:
    scenario = Scenario(cpu=lambda m: 97 if m >= 30 else 40, latency=lambda m, i: 300)
    assert _minutes(run, scenario) == [(0, 29), (30, 59)]


def test_a_short_dip_of_utilization_splits_nothing(run: Run) -> None:
    scenario = Scenario(cpu=lambda m: 40 if m in (20, 21) else 97, latency=lambda m, i: 300)
    assert _minutes(run, scenario) == [(0, 59)]
