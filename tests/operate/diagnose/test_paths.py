"""Findings about the callers' paths are dated by the runs of the canary that were bad."""

from __future__ import annotations

import random
from datetime import datetime

import pytest

from low_latency_endpoint.operate.diagnose.findings import Finding

from .conftest import Run
from .faults import watched
from .scenarios import END, MINUTE, Scenario

_METRICS = {
    "LLD802": ("CanaryConnectTime", 1.0, 35.0),
    "LLD803": ("CanaryUnreachable", 0.0, 1.0),
    "LLD804": ("CanaryOutOfZone", 0.0, 1.0),
}
_LENGTH = 40


def _bad_minutes(seed: int) -> set[int]:
    """A stretch of three minutes and up to four others, some of a single minute, at random."""
    chosen = random.Random(seed)
    lengths = [3, *chosen.choices([1, 1, 4, 12], k=chosen.randint(0, 4))]
    minutes: set[int] = set()
    for length in lengths:
        first = chosen.randrange(_LENGTH - length)
        minutes |= set(range(first, first + length))
    return minutes


def _finding(id: str, minutes: set[int], run: Run) -> Finding:
    metric, well, bad = _METRICS[id]
    zones = watched(**{metric: lambda minute: bad if minute in minutes else well})
    (finding,) = run(Scenario(minutes=_LENGTH, canary=zones)).findings
    assert finding.id == id
    return finding


def _at(minute: int) -> datetime:
    return END - (_LENGTH - minute) * MINUTE


@pytest.mark.parametrize("id", _METRICS)
@pytest.mark.parametrize("seed", range(12))
def test_dates_are_those_of_bad_runs(id: str, seed: int, run: Run) -> None:
    minutes = _bad_minutes(seed)
    for shown in _finding(id, minutes, run).evidence:
        assert shown.start in {_at(minute) for minute in minutes}
        assert shown.end in {_at(minute + 1) for minute in minutes}


@pytest.mark.parametrize("id", _METRICS)
def test_a_stretch_that_is_over(id: str, run: Run) -> None:
    """Twelve minutes of forty, and a single one before: that is in none of the dates."""
    finding = _finding(id, {2, *range(20, 32)}, run)
    assert finding.span == (_at(20), _at(32))
    (shown,) = finding.evidence
    assert "this ended at 03:52" in shown.text, "the window begins at 03:20"
    if id != "LLD802":
        assert "100 %" in shown.text


@pytest.mark.parametrize("id", _METRICS)
def test_a_stretch_that_lasts(id: str, run: Run) -> None:
    finding = _finding(id, set(range(25, _LENGTH)), run)
    assert finding.span == (_at(25), END)
    assert "ended" not in finding.evidence[0].text


@pytest.mark.parametrize("id", ["LLD803", "LLD804"])
def test_single_runs_all_over_the_window(id: str, run: Run) -> None:
    """Every tenth run, of 40: four stretches, of which three are shown."""
    finding = _finding(id, {5, 15, 25, 35}, run)
    assert [shown.start for shown in finding.evidence] == [_at(5), _at(15), _at(25), _at(35)]
    assert "and 1 shorter" in finding.evidence[-1].text


def test_single_slow_minutes_are_no_slow_path(run: Run) -> None:
    """The alarm takes two minutes in a row."""
    zones = watched(CanaryConnectTime=lambda minute: 35 if minute % 15 == 0 else 1)
    assert run(Scenario(minutes=_LENGTH, canary=zones)).findings == ()
