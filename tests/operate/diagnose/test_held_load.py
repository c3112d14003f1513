"""What full instances hold is what they answered: requests that fail raise no number."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Run
from .faults.endpoints import saturated
from .faults.fault import between, from_minute, slow, up_to
from .scenarios import Scenario, constant

_KINDS = ("Invocation5XXErrors", "InvocationModelErrors")


def _full_below_the_target(**more: Any) -> Scenario:
    """950 requests a second on 8 instances: 118.75 on each, 7,125 a minute of 7,800."""
    values = {"tps": from_minute(25, 400, 950), "scaling": up_to(16)}
    return saturated(**(values | more))


@pytest.mark.parametrize("kinds", [_KINDS[:1], _KINDS[1:], _KINDS])
@pytest.mark.parametrize("most", [16, 8])
@pytest.mark.parametrize("share", [0.0, 0.02, 0.0625, 0.1])
def test_the_target_follows_from_answers(
    kinds: tuple[str, ...], most: int, share: float, run: Run
) -> None:
    """Below the maximum (LLD107) and at it (LLD102)."""
    failing = dict.fromkeys(kinds, between(25, 60, share, 0.0))
    findings = run(_full_below_the_target(scaling=up_to(most), errors=failing)).findings
    (finding,) = [finding for finding in findings if finding.id in ("LLD102", "LLD107")]
    (change,) = [
        change for change in finding.changes if change.key == "throughput.tps_per_instance"
    ]
    assert float(change.value) == pytest.approx(118.75 * (1 - share), abs=0.5)


def test_nothing_was_answered(run: Run) -> None:
    failing = dict.fromkeys(_KINDS, between(25, 60, 1.0, 0.0))
    for finding in run(_full_below_the_target(errors=failing)).findings:
        for change in finding.changes:
            assert change.key != "throughput.tps_per_instance" or not change.value


def test_instances_until_the_target_is_measured(run: Run) -> None:
    """The ranker of 25 a second, asked for 80 on three instances; 1 of 16 times out."""
    scenario = Scenario(
        instance_type="ml.c7i.xlarge",
        tps=from_minute(30, 60, 80),
        instances=constant(3),
        cpu=from_minute(30, 78, 98),
        latency=slow(30, 60, 30_000),
        spread=0.1,
        in_flight=from_minute(30, 10, 2400),
        scaling={"min": 2, "max": 10, "target": 1800.0},
        errors={"InvocationModelErrors": between(30, 60, 0.0625, 0)},
        thresholds={("ModelLatency", "p99"): 320.0},
        planned={"peak TPS": 150.0, "TPS per instance": 60.0, "safety factor": 0.5},
    )
    (finding,) = run(scenario).findings
    assert finding.id == "LLD107"
    changes = {change.key: change for change in finding.changes}
    # 80 / 3 are 26.7 a second on each, of which 15 of 16 are answered: 25.
    assert "full at 25 a second" in changes["throughput.tps_per_instance"].why
    # 3 at 98 % are 4.5 at 65 %, which AWS advises.
    assert changes["instances"].value == "{min: 5, initial: 5, max: 10}"
    assert "at least" in changes["instances"].why


def test_one_more_where_the_utilization_asks_for_none(run: Run) -> None:
    """118 a second on each of 8, where a load test found 100; 8 at 55 % would be 7 at 65 %."""
    planned = {"peak TPS": 1600.0, "TPS per instance": 100.0, "safety factor": 0.65}
    scenario = _full_below_the_target(cpu=from_minute(25, 40, 55), planned=planned)
    (finding,) = run(scenario).findings
    changes = {change.key: change for change in finding.changes}
    assert finding.id == "LLD107"
    assert changes["instances"].value == "{min: 9, initial: 9, max: 16}"
