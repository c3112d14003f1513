"""The numbers of the decision tables are the plan's, and the options that they name exist."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from low_latency_endpoint.plan.deployment_time import deployment_of, deployment_time
from low_latency_endpoint.plan.plan import Plan
from low_latency_endpoint.plan.plan_warnings import warnings_of
from low_latency_endpoint.settings import parse_settings, plan_endpoint

from .console_blocks import ROOT

PAGE = (ROOT / "docs" / "explanation" / "choices.md").read_text("utf-8")
TWELVE = {"min": 12, "initial": 12, "max": 12}
ZONES = {"0.45": 2, "0.6": 3}


def _rows(heading: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    section = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    assert section, heading
    lines = re.findall(r"^\| (.*) \|$", section[1], re.M)
    return [line.split(" | ") for line in lines[1:]]


def _planned(zones: int = 2, factor: float = 0.45, **changes: Any) -> Plan:
    """The plan of the settings that ship, with 1,000 TPS at the peak and 200 for an instance."""
    stated = yaml.safe_load((ROOT / "endpoint.yaml").read_text("utf-8"))
    stated["client_zones"] = {"ids": ["use1-az1", "use1-az2", "use1-az4"][:zones]}
    stated["endpoints"]["sentiment"]["throughput"]["safety_factor"] = factor
    stated["endpoints"]["sentiment"] |= changes
    return plan_endpoint(parse_settings(yaml.safe_dump(stated)), "sentiment")


@pytest.mark.parametrize(
    ("setting", "time", "instances"),
    [
        pytest.param(re.findall(r"`(\w+)`", row[0])[0], *row[1:3], id=row[0])
        for row in _rows("Which deployment strategy?")
    ],
)
def test_a_deployment_takes_the_time_and_instances_of_the_table(
    setting: str, time: str, instances: str
) -> None:
    plan = _planned(instances=TWELVE, deployment={setting: {}})
    text = deployment_time(plan)
    assert text
    assert text.text.startswith(f"about {time.replace('min', 'minutes')}")
    assert deployment_of(plan).instances_in_update(12) == int(instances)


@pytest.mark.parametrize(
    ("factor", "instances"),
    [
        pytest.param(row[0].partition(" ")[0], row[-1], id=row[0])
        for row in _rows("Which safety factor?")
    ],
)
def test_a_safety_factor_plans_the_instances_of_the_table(factor: str, instances: str) -> None:
    """The factors for a zone's loss end the warning about it, the larger ones do not."""
    plan = _planned(ZONES.get(factor, 2), float(factor))
    assert plan.fleet.at_peak == int(instances)
    warned = any(warning.id == "zone-outage" for warning in warnings_of(plan))
    assert warned is (factor not in ZONES)
