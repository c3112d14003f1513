"""Every number that is decided follows from the numbers among its inputs, by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint.plan.decisions import Decision
from low_latency_endpoint.settings import load_settings, parse_settings
from low_latency_endpoint.settings.variant_plans import planned_variants

from .test_scenarios_page import FILES
from .test_sizing_jobs import JOBS, job

ROOT = Path(__file__).parents[2]
Inputs = Mapping[str, Any]


def exact(inputs: Inputs, name: str) -> Fraction:
    return Fraction(repr(inputs[name]))


def held(i: Inputs) -> Fraction:
    """Of one instance, in requests per second."""
    cache = "TPS that its KV cache holds"
    return exact(i, cache if cache in i else "TPS per instance")


def counted(i: Inputs) -> Fraction:
    """Of one instance, less what is in reserve."""
    return min(held(i), exact(i, "TPS per instance") * exact(i, "safety factor"))


def peak(i: Inputs) -> int:
    if "peak TPS" not in i:
        return max(i["client zones"], 2)
    return max(math.ceil(exact(i, "peak TPS") / counted(i)), i["client zones"], 2)


def minimum(i: Inputs) -> int:
    if "initial instances" in i:
        return int(i["initial instances"])
    floor = max(i["client zones"], 2)
    if "for the rise" not in i:
        return floor
    limit, used = held(i), counted(i)
    jump = math.ceil(exact(i, "peak TPS") / (limit * exact(i, "share that counts as held")))
    if "jumps from TPS" in i:
        kept = math.ceil(exact(i, "jumps from TPS") / used)
        return max(floor, 1 if kept >= jump else jump)
    lag = exact(i, "scaling's lag in minutes")
    assert lag == 1 + Fraction(3, 2) + 2 * exact(i, "an instance's start in seconds") / 60
    if limit == used:
        return max(floor, jump)
    rise = math.ceil(exact(i, "rise in TPS per minute") * lag / (limit - used))
    return max(floor, min(jump, rise))


def maximum(i: Inputs) -> int:
    if "initial instances" in i:
        return int(i["initial instances"])
    most, zones = max(i["instances at peak"], i["minimum"], i["initial"]), i["client zones"]
    return max(math.ceil(most * 1.5), math.ceil(Fraction(most * zones, zones - 1)))


BY_HAND: dict[str, Callable[[Inputs], Any]] = {
    "addresses_per_subnet": lambda i: i["addresses of an instance"] * i["maximum instances"]
    * i["fleets"] + i["that AWS keeps"] + i["interface endpoint's"] + i["spare"],
    "instances_at_peak": peak,
    "min_instances": minimum,
    "initial_instances": lambda i: min(max(i["instances at peak"], i["minimum"]), i["maximum"]),
    "max_instances": maximum,
    "instances_left_by_zone_outage": lambda i: i["instances at peak"]
    - math.ceil(i["instances at peak"] / i["client zones"]),
    "scaling_target": lambda i: float(
        exact(i, "TPS per instance") * exact(i, "safety factor") * 60
        if "TPS per instance" in i
        else exact(i, "concurrency per instance") * exact(i, "safety factor")
        if i["room in the KV cache"] == "not known"
        else min(exact(i, "concurrency per instance") * exact(i, "safety factor"), i["room in the KV cache"])
    ),
    "scale_out_cooldown": lambda i: i["metric period in seconds"],
    "warm_up_requests": lambda i: min(10_000, math.ceil(
        (n := i["workers per instance"] * i["initial instances"]) * math.log(n / 0.001))),
    "caller_connections": lambda i: math.ceil(exact(i, "peak TPS") * seconds(i)),
    "copied_requests": lambda i: 100 * i["weight"] / i["the production variant's weight"],
    "share_of_requests": lambda i: 100 * i["weight"] / i["all weights"],
    "output_tokens_at_peak": lambda i: pytest.approx(i["peak TPS"] * i["mean output tokens"], rel=0.01),
    "output_tokens_per_instance": lambda i: pytest.approx(
        float(held(i)) * i["mean output tokens"], rel=0.01),
    "inter_token_floor": lambda i: round(
        i["bytes read"] / (i["GB per second of an accelerator"] * i["accelerators"] * 1e6), 2),
    "first_token_floor": lambda i: round(
        2 * i["parameters"] * i["tokens that no cache holds"]
        / (i["TFLOP/s of an accelerator"] * i["accelerators"] * 1e9), 2),
}  # fmt: skip
# What is a constant of AWS's or ours, named in the rule.
CONSTANT = {"caller_keepalive", "payload_limit", "response_time_limit", "scale_in_cooldown"}
# What follows from more than the plan's inputs say in numbers: the model's memory, and target lengths.
FROM_ELSEWHERE = {"concurrent_requests", "requests_in_kv_cache", "call_duration"}


def seconds(inputs: Inputs) -> Fraction:
    (text,) = [value for name, value in inputs.items() if name != "peak TPS"]
    number, unit = text.split()
    return Fraction(number.replace(",", "")) / {"ms": 1000, "s": 1}[unit]


def shipped() -> dict[str, Any]:
    found = {
        name: load_settings(ROOT / name) for name in ("endpoint.yaml", "examples/regulated.yaml")
    }
    for name, path in FILES.items():
        found[name] = load_settings(path)
    return found


@pytest.mark.parametrize("name", [*shipped(), "3 Monday", "5 twenty calls a day", "off"])
def test_a_number_follows_from_its_inputs(name: str) -> None:
    if name in JOBS:
        settings = parse_settings(str(JOBS[name][0]))
    elif name == "off":
        settings = parse_settings(str(job(scaling={"enabled": False})))
    else:
        settings = shipped()[name]
    checked = 0
    for variant in planned_variants(settings):
        for each in variant.plan.explanation:
            checked += followed(each)
    assert checked > 5


def followed(decision: Decision) -> int:
    value, name = decision.value, decision.name
    if isinstance(value, (str, list)) or value is None or decision.overridden or name in CONSTANT:
        return 0
    if name == "alarm_error_rate":
        budget = 1 - Fraction(repr(decision.inputs.get("objective", 0)))
        assert value == pytest.approx(min(1, float(Fraction("14.4") * budget * 100))), decision
        return 1
    if name == "alarm_slow_requests":
        budget = 100 * (1 - Fraction(repr(decision.inputs["objective"])))
        assert value == float(min(100, Fraction("14.4") * budget)), decision
        return 1
    if name.startswith("alarm_"):
        share = exact(decision.inputs, "target in ms") * exact(decision.inputs, "share")
        assert value in (float(share), float(share / 1000)), decision
        return 1
    if name in FROM_ELSEWHERE:
        return 0
    assert name in BY_HAND, f"add {name} to BY_HAND: its arithmetic, from the inputs that it shows"
    assert BY_HAND[name](decision.inputs) == value, decision
    return 1
