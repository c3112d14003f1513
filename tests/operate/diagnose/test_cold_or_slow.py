"""A cold start gets better; a slow model does not, and a load is served as badly later."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Run
from .faults.fault import between, slow
from .scenarios import Scenario, constant
from .test_first_requests import _over_last

_CREATED, _WINDOW = 10, 60
_NEW: dict[str, Any] = {
    "minutes": _WINDOW,
    "created": _CREATED,
    "deployed": _CREATED,
    "instances": constant(1),
    "cpu": constant(15),
    "planned": None,
    "scaling": None,
}


def _asked_from(first: int, **more: Any) -> Scenario:
    """A new endpoint whose callers come from a minute on."""
    return Scenario(**(_NEW | {"tps": lambda minute: 2 if minute >= first else 0} | more))


@pytest.mark.parametrize("minutes", [5, 8, 12, 30])
@pytest.mark.parametrize("window", [1.0, 1.1, 1.5])
@pytest.mark.parametrize(
    "hardware", [{}, {"instance_type": "ml.g5.xlarge", "gpu": constant(60)}], ids=["CPU", "GPU"]
)
def test_a_model_that_is_slow_from_the_first_request_on_is_no_cold_start(
    minutes: int, window: float, hardware: dict[str, Any]
) -> None:
    """600 ms in each minute, of an endpoint that is young: whatever window one looks at."""
    first = _WINDOW - minutes
    scenario = _asked_from(first, latency=lambda m, i: 600, spread=0.05, **hardware)
    account = Scenario(**(vars(scenario) | {"created": first - 4, "deployed": first - 4})).account()
    findings = _over_last(account, round(minutes * window)).findings
    assert findings
    assert "LLD121" not in {finding.id for finding in findings}
    assert "LLD112" in {finding.id for finding in findings}


@pytest.mark.parametrize("start", ["creation", "deployment"])
@pytest.mark.parametrize("percent", [88, 99])
def test_a_cold_start_that_fills_the_instances_is_a_cold_start(
    start: str, percent: float, run: Run
) -> None:
    """Three minutes with 1.5 s more of work for each request, and then the same load in 50 ms."""
    first = 20
    young = start == "creation"
    scenario = _asked_from(
        first if young else 0,
        created=first - 2 if young else None,
        deployed=first - 2,
        latency=slow(first, first + 3, 1600),
        cpu=between(first, first + 3, percent, 12),
    )
    (finding,) = run(scenario).findings
    assert finding.id == "LLD121"
    assert finding.confidence == "high"


@pytest.mark.parametrize("later", [0.0, 0.5, 1.0])
def test_a_load_that_fills_new_instances_is_no_cold_start(later: float, run: Run) -> None:
    """It goes on as badly, or comes back to half: nothing served as much well."""
    first, end = 20, 30
    scenario = _asked_from(
        first,
        created=first - 2,
        deployed=first - 2,
        tps=lambda m: 0 if m < first else 20 if m < end else 20 * later,
        latency=lambda m, i: 1600 if first <= m and (m < end or later == 1) else 50,
        cpu=lambda m: 97 if first <= m and (m < end or later == 1) else 12,
    )
    (finding,) = run(scenario).findings
    assert finding.id == "LLD105"


@pytest.mark.parametrize("start", ["creation", "deployment"])
@pytest.mark.parametrize("later", [0.1, 0.33, 0.5, 0.7])
def test_errors_that_end_with_their_load_are_no_cold_start(
    start: str, later: float, run: Run
) -> None:
    """A fifth of 60 a second is refused at low CPU, right after a start: the post's second case."""
    first, end = 20, 22
    scenario = _asked_from(
        first,
        created=first - 2 if start == "creation" else None,
        deployed=first - 2,
        tps=lambda m: 0 if m < first else 60 if m < end else 60 * later,
        errors={"Invocation5XXErrors": lambda m: 0.2 if first <= m < end else 0},
    )
    (finding,) = run(scenario).findings
    assert finding.id == "LLD402"


def test_errors_that_end_at_the_same_load_are_a_cold_start(run: Run) -> None:
    first = 20
    errors = {"Invocation5XXErrors": between(first, first + 2, 0.2, 0)}
    scenario = _asked_from(
        first,
        created=first - 2,
        deployed=first - 2,
        tps=lambda m: 60 if m >= first else 0,
        errors=errors,
    )
    (finding,) = run(scenario).findings
    assert finding.id == "LLD408"
