"""What was slow for a shorter time than a finding takes stands beside "healthy"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from low_latency_endpoint.cli.output import print_document
from low_latency_endpoint.operate.diagnose.document import document

from .conftest import Run
from .scenarios import Scenario, constant

_QUIET: dict[str, Any] = {
    "instances": constant(1),
    "tps": lambda m: 5 if m >= 22 else 0,
    "cpu": constant(50),
    "scaling": None,
    "planned": None,
}


def _slow_in(*minutes: int) -> Callable[[int, int], float]:
    return lambda minute, instance: 2000 if minute in minutes else 40


@pytest.fixture
def told(run: Run, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What is printed of an endpoint that is called healthy."""

    def told(**changed: Any) -> str:
        diagnosis = run(Scenario(**(_QUIET | changed)))
        assert diagnosis.findings == ()
        print_document(document(diagnosis))
        text = " ".join(capsys.readouterr().out.split())
        assert "the endpoint is healthy" in text
        return text.split("What happened")[0]

    return told


def test_a_cold_start_of_a_minute_is_told(told: Callable[..., str]) -> None:
    """Two minutes above a limit are an alarm; the first requests of all may take less."""
    text = told(created=20, deployed=20, latency=_slow_in(22))
    assert "ModelLatency p99 was above 160 ms in 1 of 38 periods, at worst 4," in text
    assert "within 10 minutes of the first requests" in text
    assert "a cold start" in text
    assert "warm_up" in text


@pytest.mark.parametrize("minutes", [(30,), (25, 40), (59,), (24, 34, 44, 54)])
def test_single_slow_minutes_are_told_without_a_cause(
    minutes: tuple[int, ...], told: Callable[..., str]
) -> None:
    text = told(latency=_slow_in(*minutes))
    assert f"p99 was above 160 ms in {len(minutes)} of 38 periods" in text
    assert "too short for a finding" in text
    assert "cold start" not in text


def test_a_minute_of_high_overhead_is_told(told: Callable[..., str]) -> None:
    text = told(overhead=lambda m: 300 if m == 40 else 6)
    assert "OverheadLatency Average was above 40 ms in 1 of 38 periods" in text


def test_nothing_is_told_of_an_endpoint_within_its_limits(told: Callable[..., str]) -> None:
    assert "above" not in told()
