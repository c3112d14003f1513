"""Each setting that a finding advises, applied alone to a file of the endpoint, is accepted and helps."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml

from low_latency_endpoint.operate.diagnose.findings import Finding, Remedy
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.settings import Settings, parse_settings, plan_endpoint

from .faults.fault import Fault
from .scenarios import Scenario
from .update_faults import ALL_FAULTS

_OF_THE_PLAN = ("instance_type", "instances", "scaling", "throughput", "routing")


def settings_file(scenario: Scenario) -> dict[str, Any]:
    """A settings file that has the scenario's endpoint, and states as much of it as may be stated."""
    planned, scaling = scenario.planned or {}, scenario.scaling
    count = round(scenario.instances(0))
    limits = scaling or {"min": count, "max": count}
    endpoint: dict[str, Any] = {
        "containers": [{"image": {"ecr": {"repository": "sentiment"}}}],
        "instance_type": scenario.instance_type,
        "latency": {"p99": "200ms"},
        "throughput": {
            "peak_tps": planned.get("peak TPS", 1600.0),
            "tps_per_instance": planned.get("TPS per instance", 200.0),
            "safety_factor": planned.get("safety factor", 0.65),
        },
        "instances": {"min": limits["min"], "initial": limits["min"], "max": limits["max"]},
        "deployment": {"all_at_once": {}, "rollback_on_alarms": False},
        "routing": (scenario.routing or "random").lower(),
    }
    if scenario.multi_model:
        models = {"multi_model": True, "data": {"s3": "s3://models/all/"}}
        endpoint["containers"][0].update(models)
    if scaling is None:
        endpoint["scaling"] = {"enabled": False, "keep_counts": False}
    elif "Concurrent" in scaling.get("metric", ""):
        endpoint["scaling"] = {"metric": "concurrency", "concurrency_target": scaling["target"]}
    elif "cooldown" in scaling:
        endpoint["scaling"] = {"scale_out_cooldown": f"{scaling['cooldown']}s"}
    return {"client_zones": {"ids": ["use1-az1", "use1-az2"]}, "endpoints": {"sentiment": endpoint}}


def applied(file: dict[str, Any], change: Remedy) -> dict[str, Any]:
    """The file with one change: its value is the whole of what stands there then."""
    changed = deepcopy(file)
    parts = change.key.split(".")
    place = changed if "stack-level" in change.why else changed["endpoints"]["sentiment"]
    for part in parts[:-1]:
        place = place.setdefault(part, {}) if not part.endswith("[]") else place[part[:-2]][0]
    place[parts[-1]] = yaml.safe_load(change.value)
    return changed


def read(file: dict[str, Any]) -> tuple[Settings, Plan]:
    settings = parse_settings(yaml.safe_dump(file))
    return settings, plan_endpoint(settings, "sentiment")


def advised(finding: Finding) -> list[Remedy]:
    """The changes with a value that can be typed: an ellipsis stands for what is to be measured."""
    return [c for c in finding.changes if c.value and not c.command and "..." not in c.value]


@pytest.mark.parametrize("fault", ALL_FAULTS, ids=str)
def test_each_advised_setting_is_accepted_alone_and_changes_the_plan(fault: Fault) -> None:
    file = settings_file(fault.scenario())
    settings, plan = read(file)
    for finding in fault.diagnosed.findings:
        for change in advised(finding):
            now, planned = read(applied(file, change))
            assert now != settings, change
            if change.key.split(".")[0] in _OF_THE_PLAN:
                assert planned != plan, change
