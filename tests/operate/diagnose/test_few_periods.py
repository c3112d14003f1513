"""An endpoint is healthy only where requests came for as long as a finding takes."""

from __future__ import annotations

from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis
from low_latency_endpoint.operate.diagnose.document import document

from .conftest import Run
from .scenarios import Scenario, constant

#: Of an alarm: period in seconds, datapoints to alarm, and evaluation periods; None is the default.
_SHAPES = [None, (60, 1, 1), (60, 2, 3), (60, 3, 3), (60, 3, 5), (60, 5, 5), (300, 1, 1)]
_SLOW: dict[str, dict[str, Any]] = {
    "ModelLatency": {"latency": lambda m, i: 400},
    "OverheadLatency": {"overhead": constant(90)},
}


def _asked_for(periods: int, shape: tuple[int, int, int] | None = None, **more: Any) -> Scenario:
    """An endpoint that is asked in so many minutes on end, the last ones of a short window."""
    names = ("Period", "DatapointsToAlarm", "EvaluationPeriods")
    values: dict[str, Any] = {
        "minutes": 8,
        "tps": lambda minute: 10 if minute >= 8 - periods else 0,
        "instances": constant(2),
        "cpu": constant(20),
        "planned": None,
        "scaling": None,
        "alarm": dict(zip(names, shape, strict=True)) if shape else {},
    }
    return Scenario(**(values | more))


def _reasons(made: Diagnosis) -> list[str]:
    return [each.why for each in made.unjudged]


def _text(made: Diagnosis) -> str:
    told = document(made)
    return " ".join([told.verdict, *(getattr(part, "text", "") for part in told.parts)])


@pytest.mark.parametrize("metric", _SLOW)
@pytest.mark.parametrize("shape", _SHAPES, ids=str)
@pytest.mark.parametrize("periods", range(1, 6))
def test_what_is_always_slow_is_never_healthy(
    periods: int, shape: tuple[int, int, int] | None, metric: str, run: Run
) -> None:
    made = run(_asked_for(periods, shape, **_SLOW[metric]))
    assert made.state in ("faulty", "not_judged")
    assert bool(made.findings) != bool(_reasons(made))
    assert "healthy" not in _text(made)


@pytest.mark.parametrize("shape", _SHAPES, ids=str)
@pytest.mark.parametrize("periods", range(1, 6))
def test_what_is_fast_is_healthy_where_as_many_slow_periods_were_a_finding(
    periods: int, shape: tuple[int, int, int] | None, run: Run
) -> None:
    made = run(_asked_for(periods, shape))
    slow = run(_asked_for(periods, shape, **_SLOW["ModelLatency"]))
    assert made.state == ("healthy" if slow.findings else "not_judged")


@pytest.mark.parametrize("metric", _SLOW)
@pytest.mark.parametrize("beside", [1, 2, 5])
def test_a_slow_minute_that_holds_most_requests_is_not_healthy(
    beside: int, metric: str, run: Run
) -> None:
    """A load test of a minute, with a few requests before it."""
    slowly: dict[str, Any] = {
        "ModelLatency": {"latency": lambda m, i: 400 if m == 7 else 40},
        "OverheadLatency": {"overhead": lambda m: 90 if m == 7 else 6},
    }[metric]
    made = run(_asked_for(0, tps=lambda m: 100 if m == 7 else m >= 7 - beside, **slowly))
    assert _reasons(made) == ["slow_too_shortly"]
    assert f"{metric} " in _text(made)


@pytest.mark.parametrize("slow", [0, 4])
def test_a_slow_minute_among_others_is_healthy(slow: int, run: Run) -> None:
    """As the alarms have it, which two of three minutes put on."""
    made = run(_asked_for(8, latency=lambda m, i: 400 if m == slow else 40))
    assert made.state == "healthy"


def test_a_few_periods_with_another_finding_say_that_latency_was_not_judged(run: Run) -> None:
    made = run(_asked_for(1, errors={"Invocation5XXErrors": constant(0.5)}))
    assert made.findings
    assert _reasons(made) == ["too_few_periods"]
