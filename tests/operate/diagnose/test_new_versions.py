"""What fills the instances at the same load since a deployment is the deployment's."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis, diagnose
from low_latency_endpoint.operate.diagnose.findings import Finding
from low_latency_endpoint.operate.diagnose.saturated import SATURATED
from low_latency_endpoint.operate.diagnose.view import VariantView

from .conftest import Run
from .faults.endpoints import saturated
from .faults.fault import Fault, from_minute, up_to
from .scenarios import ENDPOINT, MINUTE, Scenario, constant
from .steady_faults import FAULTS

_BEFORE = 5
"""Minutes of the window that are well, at least."""
_FULL = r"[CG]PU at \d+ % of the whole instance|requests in flight on an instance against a target"
"""What shows full instances: by their utilization, or by what waits."""


def _full_minutes(fault: Fault) -> list[int]:
    """When the variant was slow or full, where its instances were full."""
    made = fault.diagnosed
    if not any(SATURATED in finding.path or finding.id == "LLD401" for finding in made.findings):
        return []
    (variant,) = made.measurements.variants
    start = fault.scenario().start
    times = VariantView(made.measurements, variant).bad_times
    return [round((time - start) / MINUTE) for time in times]


def _fills_up_and_stays_full(fault: Fault) -> bool:
    minutes = _full_minutes(fault)
    scenario = fault.scenario()
    if not minutes or minutes[0] < _BEFORE or minutes[-1] < scenario.minutes - 1:
        return False
    return len(minutes) == minutes[-1] - minutes[0] + 1


FULL = [fault for fault in FAULTS if _fills_up_and_stays_full(fault)]


def _deployed(fault: Fault) -> tuple[Scenario, int]:
    """The scenario with a deployment as it fills up, and the minute of that."""
    first = _full_minutes(fault)[0]
    return replace(fault.scenario(), deployed=first), first


def _with_the_same_load(scenario: Scenario) -> Scenario:
    last = scenario.minutes - 1
    load = constant(scenario.tps(last))
    fleet = constant(scenario.instances(last))
    return replace(scenario, tps=load, instances=fleet)


def _rolls_back(finding: Finding) -> bool:
    return "roll back" in finding.besides.lower()


def _evidence(finding: Finding) -> str:
    return " ".join(evidence.text for evidence in finding.evidence)


def test_enough_faults_fill_the_instances() -> None:
    """One for each reason of full instances but those that need another beginning."""
    shown = {finding.id for fault in FULL for finding in fault.diagnosed.findings}
    assert {"LLD102", "LLD103", "LLD104", "LLD105", "LLD106", "LLD107", "LLD108"} <= shown
    assert {"LLD110", "LLD144", "LLD145", "LLD401"} <= shown


@pytest.mark.parametrize("fault", FULL, ids=str)
def test_full_since_a_deployment_at_the_same_load(fault: Fault, run: Run) -> None:
    scenario, first = _deployed(fault)
    scenario = _with_the_same_load(scenario)
    faults = [finding for finding in run(scenario).findings if not finding.risk]
    (cause,) = [finding for finding in faults if finding.id != "LLD704"]
    assert cause.id == ("LLD401" if fault.finding == "LLD401" else "LLD702")
    assert SATURATED in cause.path or cause.id == "LLD401"
    assert _rolls_back(cause)
    assert re.search(_FULL, _evidence(cause))
    assert cause.span is not None
    assert cause.span[0] == scenario.at(first)


@pytest.mark.parametrize("fault", FULL, ids=str)
def test_a_deployment_too_recent_to_judge_is_named(fault: Fault) -> None:
    """Ten minutes: a cold fleet may be full for so long."""
    scenario, first = _deployed(fault)
    made = _until(_with_the_same_load(scenario), first + 10)
    faults = [finding for finding in made.findings if not finding.risk]
    assert any(map(_rolls_back, faults)), [finding.id for finding in faults]
    assert "LLD702" not in {finding.id for finding in faults}


def _until(scenario: Scenario, minute: int) -> Diagnosis:
    """The diagnosis of the window's first minutes, when they were over."""
    end = scenario.at(minute)
    account = scenario.account()
    return diagnose(account, ENDPOINT, start=scenario.start, end=end, now=end, region="us-east-1")


@pytest.mark.parametrize("fault", FULL, ids=str)
def test_more_load_is_not_the_deployment(fault: Fault, run: Run) -> None:
    """Twice the load of an instance, which began in the minute of a deployment."""
    scenario, first = _deployed(fault)
    scenario = _with_the_same_load(scenario)
    high = scenario.tps(0)
    risen = replace(scenario, tps=from_minute(first, high / 2, high))
    findings = run(risen).findings
    assert "LLD702" not in {finding.id for finding in findings}
    assert not any(map(_rolls_back, findings))


@pytest.mark.parametrize("early", [2, 3, 10])
def test_full_before_the_deployment_is_not_the_deployment(early: int, run: Run) -> None:
    scenario = saturated(tps=constant(600), deployed=25 + early)
    assert "LLD702" not in {finding.id for finding in run(scenario).findings}


def test_full_since_a_deployment_where_no_limit_is_stated(run: Run) -> None:
    """The CPU is full and requests take 7.5 times as long, but nobody says how long they may."""
    scenario = saturated(
        tps=constant(600), deployed=25, thresholds={}, planned=None, scaling=up_to(8)
    )
    (finding,) = run(scenario).findings
    assert (finding.id, finding.path[0]) == ("LLD702", SATURATED)
    assert "no period of full instances before" in _evidence(finding)


def _campaign(began: int, deployed: int, minutes: int) -> Scenario:
    """Load rises by three quarters, is served in time, and fills the instances of a new version."""
    return Scenario(
        minutes=minutes,
        deployed=deployed,
        instance_type="ml.c6i.xlarge",
        instances=constant(6),
        scaling={"min": 2, "max": 6, "target": 2400.0},
        planned=None,
        tps=from_minute(began, 240, 420),
        latency=lambda m, i: 640 if m >= deployed else 58 if m >= began else 45,
        cpu=lambda m: 93 if m >= deployed else 63 if m >= began else 36,
        in_flight=lambda m: 440 if m >= deployed else 40 if m >= began else 18,
    )


@pytest.mark.parametrize("calm", [0, 10, 30, 90])
def test_a_rise_before_the_deployment_is_not_taken_for_one_with_it(calm: int, run: Run) -> None:
    """However long the window is that begins before the rise: as much was served until the deployment."""
    made = run(_campaign(began=calm, deployed=calm + 18, minutes=calm + 50))
    assert [finding.id for finding in made.findings][:2] == ["LLD702", "LLD102"]


@pytest.mark.parametrize("served", [0, 2])
def test_a_rise_with_the_deployment_may_be_the_cause_itself(served: int, run: Run) -> None:
    """Nobody saw the former version serve as much for long."""
    made = run(_campaign(began=30 - served, deployed=30, minutes=80))
    assert [finding.id for finding in made.findings] == ["LLD102"]
    assert not _rolls_back(made.findings[0])


@pytest.mark.parametrize(("cpu", "queues"), [(12.0, True), (19.0, False)])
def test_a_version_with_fewer_workers_is_told_by_its_busy_processor(cpu, queues, run: Run) -> None:
    """One worker of 45 ms at 21 requests a second is busy for 95 %: 0.96 of eight CPUs, 430 ms each."""
    scenario = Scenario(
        deployed=20,
        instance_type="ml.c6i.2xlarge",
        instances=constant(4),
        scaling={"min": 4, "max": 12, "target": 3000.0},
        routing="RANDOM",
        planned=None,
        tps=constant(84),
        latency=lambda m, i: 430 if m >= 20 else 45,
        cpu=constant(cpu),
        in_flight=from_minute(20, 4, 44),
    )
    [finding] = run(scenario).findings
    assert finding.id == "LLD702"
    assert ("0.96 of 8 CPUs busy" in _evidence(finding)) is queues
    assert ("the new version may have fewer" in _evidence(finding)) is queues
    assert "as many at once as callers send" in finding.besides
