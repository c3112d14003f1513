"""Advice with a number is one that the plan takes, and that fits what was seen."""

from __future__ import annotations

import re
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose.findings import Remedy
from low_latency_endpoint.plan.latency_plan import (
    EndpointRequest,
    MeasuredThroughput,
    ScalingOptions,
    make_plan,
)

from .conftest import Run
from .faults import FAULTS, Fault, from_minute
from .scenarios import Scenario

_ZONES = ("use1-az1", "use1-az2")


def _full(**more: Any) -> Scenario:
    """Full from minute 25 on, at the most that scaling may start."""
    values: dict[str, Any] = {
        "cpu": from_minute(25, 45, 97),
        "latency": lambda m, i: 40 if m < 25 else 300,
        "scaling": {"min": 2, "max": 8, "target": 7800.0},
    }
    return Scenario(**(values | more))


def _changes(run: Run, scenario: Scenario) -> dict[str, Remedy]:
    (finding,) = run(scenario).findings
    return {change.key: change for change in finding.changes}


def test_requests_that_do_not_fill_the_instances_give_no_number(run: Run) -> None:
    """14 invocations a minute of 0.3 s: 0.07 requests in work at once, while CPUs are full.

    As throughput of an instance it would ask for 1600 / (0.233 * 0.65), over ten thousand instances.
    """
    tps = 8 * 14 / 60
    for most in (8, 16):  # LLD102 at the maximum, LLD107 below it
        changes = _changes(
            run,
            _full(
                tps=lambda m: tps, scaling={"min": 2, "max": most, "target": 7800.0}, spread=0.01
            ),
        )
        throughput = changes["throughput.tps_per_instance"]
        assert throughput.value == ""
        assert "full at 0.233 a second where a load test found 200" in throughput.why
        if most == 8:
            assert changes["instances.max"].value == ""
            assert "0.07 requests in work" in changes["instances.max"].why
    unplanned = _changes(run, _full(tps=lambda m: tps, planned=None, spread=0.01))[
        "throughput.tps_per_instance"
    ]
    assert unplanned.value == ""
    assert "0.07 requests in work" in unplanned.why


def test_a_fleet_out_of_proportion_gives_no_number(run: Run) -> None:
    """A target of 60 a minute, and 400 requests a second: 400 instances, where 8 may be."""
    change = _changes(
        run, _full(tps=lambda m: 400, planned=None, scaling={"min": 2, "max": 8, "target": 60.0})
    )["instances.max"]
    assert change.value == ""
    assert "400 instances would follow, and 8 is the most there were or may be" in change.why
    assert "load test" in change.why


def test_a_full_processor_gives_a_lower_bound(run: Run) -> None:
    """8 instances at 97 %: 8 * 97 / 65, rounded up, is 12; how much more was wanted, nobody saw."""
    change = _changes(run, _full(tps=lambda m: 400, planned=None))["instances.max"]
    assert change.value == "12"
    assert "at least: full instances do not show all" in change.why


def test_the_load_of_the_window_is_no_lower_bound(run: Run) -> None:
    """1,900 a second at 7,800 a minute and instance: 14.6 instances."""
    change = _changes(
        run, _full(tps=from_minute(25, 600, 1900), in_flight=from_minute(25, 24, 570))
    )["instances.max"]
    assert (change.value, change.why) == ("15", "the load of this window at the scaling target")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_the_plan_takes_every_number(fault: Fault) -> None:
    made = fault.diagnosed()
    (variant,) = made.measurements.variants
    planned = made.measurements.plan
    for finding in made.findings:
        for change in finding.changes:
            assert "for 65 %" not in change.why
            if not re.fullmatch(r"[\d.]+", change.value):
                continue
            number = float(change.value)
            throughput, scaling = None, ScalingOptions()
            if change.key in ("throughput.tps_per_instance", "throughput.peak_tps"):
                peak = (planned and planned.peak_tps) or 600.0
                each = (planned and planned.tps_per_instance) or 200.0
                throughput = (
                    MeasuredThroughput(peak, number, 0.65)
                    if change.key.endswith("instance")
                    else MeasuredThroughput(number, each, 0.65)
                )
            elif change.key in ("instances.max", "instances.min"):
                scaling = ScalingOptions(max_instances=int(number))
            elif change.key == "scaling.concurrency_target":
                scaling = ScalingOptions(max_concurrency_per_instance=number)
            plan = make_plan(
                EndpointRequest(
                    client_zones=_ZONES,
                    instance_type=variant.instance_type,
                    throughput=throughput,
                    scaling=scaling,
                )
            )
            assert plan.fleet.at_peak <= 4 * 16, "the most that the faults' scaling may start"
