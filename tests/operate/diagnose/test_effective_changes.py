"""No finding changes a setting that does nothing on the fleet that it is about: the plan decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from low_latency_endpoint.account.scaling import ScalingReading
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.operate.diagnose.effects import effective
from low_latency_endpoint.operate.diagnose.findings import KINDS, Finding, Remedy
from low_latency_endpoint.operate.diagnose.measurements import VariantReading
from low_latency_endpoint.operate.diagnose.tree import walk
from low_latency_endpoint.plan.plan import Plan
from tests.depth import sampled

from .conftest import Run
from .faults.endpoints import saturated
from .faults.fault import Fault, from_minute, slow, up_to
from .scenarios import Scenario, constant
from .test_advised_settings import applied, read, settings_file
from .test_tokens import CAUSES, measured
from .update_faults import ALL_FAULTS

_CONCURRENCY = "SageMakerVariantConcurrentRequestsPerModelHighResolution"

#: Scaling of a fleet of so many instances.
FLEETS: dict[str, Callable[[int], dict[str, Any] | None]] = {
    "fixed": lambda count: None,
    "with room to scale": lambda count: up_to(4 * count),
    "at its maximum": lambda count: up_to(count) | {"min": min(2, count)},
    "minimum and maximum the same": lambda count: up_to(count) | {"min": count},
    "scaled by concurrency": lambda count: up_to(4 * count, 4.0) | {"metric": _CONCURRENCY},
}
#: Another value of each setting that only some fleets have a use for.
_PROBES = {
    "instances.max": "64",
    "scaling.concurrency_target": "2",
    "scaling.scale_in_cooldown": "900s",
    "scaling.scale_out_cooldown": "30s",
    "throughput.peak_tps": "3000",
    "throughput.safety_factor": "0.4",
    "throughput.tps_per_instance": "150",
}
_ALWAYS = ("scaling.enabled",)


def _of_fleet(scenario: Scenario, fleet: str) -> Scenario:
    """The scenario with another fleet; no activity of a policy where there is none."""
    count = round(max(map(scenario.instances, range(scenario.minutes))))
    scaling = FLEETS[fleet](count)
    activities = scenario.activities if scaling else []
    return replace(scenario, scaling=scaling, activities=activities, stated=None)


def _acts(plan: Plan) -> tuple[Any, ...]:
    """What of a plan changes the running fleet: a range is nothing without a policy."""
    fleet = plan.fleet
    if plan.scaling is None:
        return (fleet.initial,)
    return plan.scaling, fleet.minimum, fleet.maximum


def _without_effect(file: dict[str, Any], changes: Iterable[Remedy]) -> list[str]:
    """The keys whose change alone, or beside a raised maximum, leaves the fleet as it is.

    The peak decides where no counts are stated.
    """
    advised = list(changes)
    if any(change.key == "instances.max" for change in advised):
        raised = applied(file, Remedy("instances.max", value=_PROBES["instances.max"]))
    else:
        raised = file
    idle = []
    for change in advised:
        if change.key not in _PROBES:
            continue
        before = file if change.key == "instances.max" else raised
        if change.key == "throughput.peak_tps":
            before = deepcopy(file)
            del before["endpoints"]["sentiment"]["instances"]
        probe = Remedy(change.key, value=_PROBES[change.key])
        try:
            after = read(applied(before, probe))[1]
        except ConfigurationError:
            idle.append(change.key)
            continue
        if _acts(after) == _acts(read(before)[1]):
            idle.append(change.key)
    return idle


def _check(findings: Iterable[Finding], file: dict[str, Any]) -> None:
    for finding in findings:
        for change in finding.changes:
            group = change.key.split(".")[0] in ("scaling", "throughput") and "." in change.key
            assert not group or change.key in (*_PROBES, *_ALWAYS), "a probe of each"
        assert _without_effect(file, finding.changes) == [], finding.id


@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.parametrize("fault", sampled(ALL_FAULTS, 6), ids=lambda fault: fault.name)
def test_no_finding_changes_what_does_nothing_there(fault: Fault, fleet: str, run: Run) -> None:
    scenario = _of_fleet(fault.scenario(), fleet)
    made = run(scenario, client_latency=fault.client_latency)
    _check(made.findings, settings_file(scenario))


def _reading(fleet: str, count: int = 2) -> ScalingReading:
    scaling = FLEETS[fleet](count)
    if scaling is None:
        return ScalingReading()
    metric = scaling.get("metric", "SageMakerVariantInvocationsPerInstance")
    return ScalingReading(scaling["min"], scaling["max"], metric, scaling["target"])


def _file(fleet: str) -> dict[str, Any]:
    count = constant(2)
    return settings_file(Scenario(instances=count, scaling=FLEETS[fleet](2), planned=None))


@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.parametrize("name", CAUSES)
def test_the_same_of_tokens(name: str, fleet: str) -> None:
    _, _, given = CAUSES[name]
    reading = measured(**given)
    (variant,) = reading.variants
    scaled = replace(variant, scaling=_reading(fleet))
    _check(walk(replace(reading, variants=(scaled,))), _file(fleet))


@pytest.mark.parametrize("fleet", FLEETS)
@pytest.mark.parametrize("cause", KINDS)
def test_the_same_of_each_row(cause: str, fleet: str) -> None:
    """Whatever leads to it: a row that a scenario of this fleet does not reach yet, too."""
    variant = VariantReading("primary", "ml.m5.xlarge", scaling=_reading(fleet))
    assert _without_effect(_file(fleet), effective(variant, KINDS[cause].changes)) == []


def test_what_could_not_be_read_may_have_an_effect() -> None:
    variant = VariantReading("primary", "ml.m5.xlarge", scaling=None)
    changes = KINDS["LLD101"].changes
    assert tuple(effective(variant, changes)) == changes


_FULL = {
    "instances": constant(1),
    "tps": from_minute(25, 100, 300),
    "in_flight": from_minute(25, 5, 60),
    "planned": None,
}
_FAILING = {"errors": {"Invocation5XXErrors": from_minute(25, 0, 0.3)}}


@pytest.mark.parametrize("slower", [True, False], ids=["slow", "fast"])
@pytest.mark.parametrize(
    ("scaling", "advice"),
    [
        (None, "instances: {min: 2, initial: 2, max: 4}"),
        (up_to(1) | {"min": 1}, "instances.max: 3"),
    ],
    ids=["does not scale", "at its maximum"],
)
def test_a_full_instance_that_fails_is_one_finding_with_a_number(
    scaling: dict[str, Any] | None, advice: str, slower: bool, run: Run
) -> None:
    """AWS's post on load testing: more instances, or a larger instance with a smaller fleet."""
    latency = slow(25, 60, 300 if slower else 40)
    scenario = saturated(scaling=scaling, latency=latency, **_FULL, **_FAILING)
    (finding,) = run(scenario).findings
    assert finding.id in (["LLD105", "LLD102"] if slower else ["LLD401"])
    changes = {change.text: change.why for change in finding.changes}
    assert advice in changes
    assert "such as ml.m5.24xlarge, in a smaller fleet" in changes["instance_type"]


def test_the_largest_type_of_a_family_has_no_larger_one(run: Run) -> None:
    larger = {"instance_type": "ml.m5.24xlarge", "scaling": None}
    (finding,) = run(saturated(**_FULL, **_FAILING, **larger)).findings
    changes = {change.key: change.why for change in finding.changes}
    assert "ml.m5.24xlarge is the largest of its family" in changes["instance_type"]
