"""Advice with a number is one that the plan takes, and that fits what was seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from .conftest import Run
from .faults.endpoints import saturated
from .faults.fault import Fault, from_minute, slow, up_to
from .scenarios import Scenario, constant
from .steady_faults import FAULTS

# 14 invocations a minute of 0.3 s: 0.07 requests in work at once, while CPUs are full. As throughput
# of an instance it would ask for 1600 / (0.233 * 0.65), over ten thousand instances.
_FEW = {"tps": constant(8 * 14 / 60), "spread": 0.01}
_MUCH = {"tps": constant(400), "planned": None}


@pytest.mark.parametrize(
    ("key", "scenario", "value", "why"),
    [
        ("throughput.tps_per_instance", _FEW, "", "full at 0.233 a second where a load test found"),
        ("throughput.tps_per_instance", _FEW | {"scaling": up_to(16)}, "", "full at 0.233 a"),
        ("throughput.tps_per_instance", _FEW | {"planned": None}, "", "0.07 concurrent requests"),
        ("instances.max", _FEW, "", "0.07 concurrent requests"),
        # A target of 60 a minute, and 400 requests a second: 400 instances, where 8 may be.
        (
            "instances.max",
            _MUCH | {"scaling": up_to(8, 60.0)},
            "",
            "it leads to 400 instances, and the fleet had or may have 8 at most",
        ),
        # 8 * 97 / 65, rounded up, is 12; how much more was wanted, nobody saw.
        ("instances.max", _MUCH, "12", "at least: full instances do not show the whole demand"),
        # 1,900 a second at 7,800 a minute and instance: 14.6 instances.
        (
            "instances.max",
            {"in_flight": from_minute(25, 24, 570)},
            "15",
            "serves the load of this window at the scaling target",
        ),
    ],
)
def test_a_number_is_advised_where_it_follows(
    key: str, scenario: dict[str, Any], value: str, why: str, run: Run
) -> None:
    (finding,) = run(saturated(**({"in_flight": constant(24)} | scenario))).findings
    (change,) = [each for each in finding.changes if each.key == key]
    assert change.value == value
    assert why in change.why


#: What AWS may lack, what fits the driver, memory, disk and the network: and credits.
_OTHER_TYPE = {
    "LLD103": "activities failed",
    "LLD117": "memory at",
    "LLD124": "is the baseline of",
    "LLD118": "disk at",
    "LLD119": "no log group",
    "LLD120": "no log group",
    "LLD301": "models loaded",
    "LLD302": "download",
    "LLD701": "AWS says",  # that it has none of this type, or lets the account have no more
}
#: What tells that a larger, faster or second instance would have less to do.
_IN_USE = ("of the whole instance", "invocations per instance", "in flight on an instance")
_IN_USE += ("busy for", "busy, with", "requests in flight at once")
_INSTANCES = ("instances", "instances.min", "instances.max")
#: More instances because instances start, go away or differ: not because they are full.
_OF_THE_FLEET = ("LLD121", "LLD122", "LLD129", "LLD135", "LLD201", "LLD408", "LLD503")


def _evidence(finding: Any) -> str:
    return " ".join(shown.text for shown in finding.evidence)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_hardware_is_advised_with_what_shows_that_it_is_used(fault: Fault) -> None:
    for finding in fault.diagnosed.findings:
        keys = {change.key for change in finding.changes}
        said = _evidence(finding)
        if "instance_type" in keys and finding.id in _OTHER_TYPE:
            assert _OTHER_TYPE[finding.id] in said
        elif "instance_type" in keys:
            assert any(words in said for words in _IN_USE), finding.id
        if keys.intersection(_INSTANCES) and finding.id not in (*_OF_THE_FLEET, *_OTHER_TYPE):
            assert any(words in said for words in _IN_USE), finding.id


def _use(scenario: Scenario, minutes: range) -> float:
    """The most that CPU or GPU are used in these minutes, in percent of the instance."""
    used = [scenario.cpu, *([scenario.gpu] if scenario.gpu else [])]
    return max(sum(map(each, minutes)) / len(minutes) for each in used)


#: Kinds of instances, and by how much their processors may be used in vain.
_TYPES = ["ml.m5.xlarge", "ml.c6i.8xlarge", "ml.g5.xlarge", "ml.g5.12xlarge", "ml.inf2.xlarge"]
_RATES = {
    "the same rate": from_minute(25, 20, 20),
    "fewer requests": from_minute(25, 40, 2),
    "more requests": from_minute(25, 20, 24),
    "few requests": constant(0.1),
    "many requests": constant(300),
}


@pytest.mark.parametrize("since", [0, 25])
@pytest.mark.parametrize("rate", _RATES)
@pytest.mark.parametrize("instance_type", _TYPES)
def test_idle_processors_sell_no_hardware(
    instance_type: str, rate: str, since: int, run: Run
) -> None:
    """Requests that wait, at 3 % of CPU and GPU, for any load and however it began."""
    nvidia = "g5" in instance_type
    tps = _RATES[rate]
    scenario = Scenario(
        instance_type=instance_type,
        instances=constant(2),
        tps=tps,
        latency=slow(since, 60, 900),
        cpu=constant(3),
        gpu=constant(3) if nvidia else None,
        in_flight=lambda m: max(1, round(tps(m) * (0.9 if m >= since else 0.04))),
        planned=None,
        scaling=up_to(8, 1e6),
    )
    assert _use(scenario, range(60)) < 5
    made = run(scenario)
    assert made.findings
    for finding in made.findings:
        assert "instance_type" not in {change.key for change in finding.changes}, finding.id


@pytest.mark.parametrize("instance_type", _TYPES[:4])
@pytest.mark.parametrize("tps", [1.0, 20.0, 300.0])
def test_busy_processors_still_sell_it(instance_type: str, tps: float, run: Run) -> None:
    """The same where the processors take each request's time, and no fleet is full."""
    nvidia = "g5" in instance_type
    count = max(2, round(tps / 3))
    busy = 0.4 * tps / count
    scenario = Scenario(
        instance_type=instance_type,
        instances=constant(count),
        tps=constant(tps),
        latency=slow(0, 60, 400),
        cpu=constant(
            8 if nvidia else max(6.0, 100 * busy / {"ml.m5.xlarge": 4}.get(instance_type, 32))
        ),
        gpu=constant(max(8.0, 60 * busy / (4 if "12x" in instance_type else 1)))
        if nvidia
        else None,
        in_flight=constant(2 * count),
        planned=None,
        scaling=None,
    )
    (finding,) = run(scenario).findings
    assert finding.id == "LLD112"
    assert "instance_type" in {change.key for change in finding.changes}
    assert "busy for" in _evidence(finding)


@pytest.mark.parametrize("percent", [6, 15, 40, 60, 75])
@pytest.mark.parametrize("every", [1, 2, 10])
@pytest.mark.parametrize("instance_type", _TYPES)
def test_processors_that_work_for_something_else_sell_no_hardware(
    instance_type: str, every: int, percent: float, run: Run
) -> None:
    """A request of 438 ms from time to time, beside which the processors are as busy without one."""
    scenario = Scenario(
        instance_type=instance_type,
        instances=constant(1),
        tps=lambda m: 1 / 60 if m % every == 0 else 0,
        latency=slow(0, 60, 438),
        cpu=constant(percent),
        gpu=constant(percent) if "g5" in instance_type else None,
        in_flight=constant(1),
        planned=None,
        scaling=None,
    )
    for finding in run(scenario).findings:
        assert "instance_type" not in {change.key for change in finding.changes}, finding.id
        assert "busy for" not in _evidence(finding)


@pytest.mark.parametrize("quiet", [45.0, 3.0])
def test_what_is_busy_without_requests_is_not_busy_for_them(quiet: float, run: Run) -> None:
    """Batches that could use every processor, and minutes between them that tell whether they do."""
    scenario = Scenario(
        instance_type="ml.m5.xlarge",
        instances=constant(1),
        tps=lambda m: 3 if m % 4 < 2 else 0,
        latency=slow(0, 60, 438),
        cpu=lambda m: 48 if m % 4 < 2 else quiet,
        in_flight=constant(3),
        planned=None,
        scaling=None,
    )
    (finding,) = run(scenario).findings
    keys = {change.key for change in finding.changes}
    assert ("instance_type" in keys) == (quiet < 5)


_WAITS = [fault for fault in FAULTS if fault.finding in ("LLD111", "LLD112")]


@pytest.mark.parametrize("routing", ["RANDOM", "LEAST_OUTSTANDING_REQUESTS"])
@pytest.mark.parametrize("fault", _WAITS, ids=str)
def test_random_routing_is_named_where_requests_may_wait(
    fault: Fault, routing: str, run: Run
) -> None:
    """CloudWatch does not tell the model's own time from a wait behind another request."""
    scenario = replace(fault.scenario(), routing=routing)
    found = [finding for finding in run(scenario).findings if finding.id == fault.finding]
    several = min(map(scenario.instances, range(scenario.minutes))) > 1
    for finding in found:
        named = [change for change in finding.changes if change.key == "routing"]
        assert bool(named) == (several and routing == "RANDOM")
        assert all("compare-routing" in change.why for change in named)
