"""Advice with a number is one that the plan takes, and that fits what was seen."""

from __future__ import annotations

import re
from typing import Any

import pytest

from low_latency_endpoint.options.scaling import InstanceCounts, ScalingOptions
from low_latency_endpoint.options.throughput import MeasuredThroughput
from low_latency_endpoint.plan.endpoint_request import EndpointRequest
from low_latency_endpoint.plan.latency_plan import make_plan
from low_latency_endpoint.plan.serving import Serving

from .conftest import Run
from .faults import FAULTS, Fault, from_minute, saturated, up_to
from .scenarios import constant

_ZONES = ("use1-az1", "use1-az2")


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


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_the_plan_takes_every_number(fault: Fault) -> None:
    made = fault.diagnosed
    (variant,) = made.measurements.variants
    planned = made.measurements.plan
    for finding in made.findings:
        for change in finding.changes:
            assert "for 65 %" not in change.why
            if not re.fullmatch(r"[\d.]+", change.value):
                continue
            number = float(change.value)
            throughput, chosen = None, {}
            if change.key in ("throughput.tps_per_instance", "throughput.peak_tps"):
                peak = (planned and planned.peak_tps) or 600.0
                each = (planned and planned.tps_per_instance) or 200.0
                throughput = (
                    MeasuredThroughput(peak_tps=peak, tps_per_instance=number, safety_factor=0.65)
                    if change.key.endswith("instance")
                    else MeasuredThroughput(
                        peak_tps=number, tps_per_instance=each, safety_factor=0.65
                    )
                )
            elif change.key in ("instances.max", "instances.min"):
                held = variant.scaling.minimum if variant.scaling else None
                assert change.key == "instances.max" or number > (held or 0), change
                chosen = {"instances": InstanceCounts(max=int(number))}
            elif change.key == "scaling.concurrency_target":
                chosen = {
                    "scaling": ScalingOptions(metric="concurrency", concurrency_target=number)
                }
            plan = make_plan(
                EndpointRequest(
                    client_zones=_ZONES,
                    serving=Serving(instance_type=variant.instance_type),
                    throughput=throughput,
                    **chosen,
                )
            )
            assert plan.fleet.at_peak <= 4 * 16, "the most that the faults' scaling may start"
