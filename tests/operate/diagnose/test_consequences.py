"""Errors that a cause leads to never bring an advice of their own that contradicts the cause's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import Diagnosis
from low_latency_endpoint.operate.diagnose.findings import Finding
from low_latency_endpoint.operate.diagnose.saturated import SATURATED
from low_latency_endpoint.operate.diagnose.view import VariantView
from tests.depth import sampled

from .conftest import Run
from .faults.fault import Fault
from .scenarios import MINUTE, PerMinute, Scenario
from .update_faults import ALL_FAULTS

_SHARE = 0.1
#: What changes how much the fleet can serve: of this a consequence knows nothing.
_CAPACITY = ("capacity_reservation_arn", "instance_type", "instances", "routing", "scaling")
_CAPACITY += ("throughput",)


def _server_errors(share: PerMinute) -> dict[str, Any]:
    return {"errors": {"Invocation5XXErrors": share, "InvocationModelErrors": share}}


def _no_answers(share: PerMinute) -> dict[str, Any]:
    return {"errors": {"InvocationModelErrors": share}}


def _time_outs(share: PerMinute) -> dict[str, Any]:
    limit = lambda minute: 60_000 if share(minute) else 0  # noqa: E731
    return {**_no_answers(share), "longest_ms": limit}


_CONSEQUENCES = (_server_errors, _no_answers, _time_outs)


def _bad_minutes(fault: Fault) -> frozenset[int]:
    """The minutes of the scenario in which its variant was slow or full."""
    made = fault.diagnosed
    (variant,) = made.measurements.variants
    start = fault.scenario().start
    times = VariantView(made.measurements, variant).bad_times
    return frozenset(round((time - start) / MINUTE) for time in times)


def _with_consequence(
    fault: Fault, consequence: Callable[[PerMinute], dict[str, Any]]
) -> Scenario | None:
    """The fault's scenario with errors in its bad minutes; ``None`` where it has errors or none."""
    scenario, minutes = fault.scenario(), _bad_minutes(fault)
    if scenario.errors or len(minutes) < 3:
        return None
    return replace(scenario, **consequence(lambda m: _SHARE if m in minutes else 0))


def _of_capacity(finding: Finding) -> set[tuple[str, str]]:
    changes = [change for change in finding.changes if not change.command]
    return {(c.key, c.value) for c in changes if c.key.split(".")[0] in _CAPACITY}


def _words(made: Diagnosis) -> str:
    return " ".join(shown.text for finding in made.findings for shown in finding.evidence)


_PAIRS = [(f, c) for f in ALL_FAULTS for c in _CONSEQUENCES if _with_consequence(f, c)]


@pytest.mark.parametrize(
    ("fault", "consequence"),
    sampled(_PAIRS, 2),
    ids=lambda one: getattr(one, "name", None) or getattr(one, "__name__", None),
)
def test_no_errors_of_a_cause_are_advised_on_against_it(
    fault: Fault, consequence: Callable[[PerMinute], dict[str, Any]], run: Run
) -> None:
    scenario = _with_consequence(fault, consequence)
    assert scenario is not None
    before = fault.diagnosed.findings
    after = run(scenario, client_latency=fault.client_latency)
    known = {finding.id for finding in before}
    new = [finding for finding in after.findings if finding.id not in known]
    advised = set().union(*(_of_capacity(finding) for finding in before))
    for finding in new:
        assert _of_capacity(finding) <= advised, finding.id
    causes = [finding for finding in before if not finding.risk]
    if causes and all(SATURATED in finding.path for finding in causes):
        assert not new
        assert "errors" in _words(after), "they are evidence"
