"""Every number of a scenario, and every option of `simulate`, moves something in the result.

A number that is accepted and changes nothing looks like a setting that was obeyed. The numbers are
found by looking at the classes, so that a new one is tried without a word here: the scenarios below
must contain it, and a change of it must show.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import typing
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import low_latency_endpoint.simulate as simulation
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.simulate import (
    ArrivalTrace,
    CapacityLimits,
    ClosedLoop,
    Constant,
    Empirical,
    Exponential,
    InstanceStart,
    Lognormal,
    OpenLoop,
    Rollout,
    Scenario,
    Shape,
    ShapedLoop,
    SimulationResult,
    TargetTracking,
    ZoneOutage,
    simulate,
)
from tests.refusals import refused

LEAST = "LEAST_OUTSTANDING_REQUESTS"

#: Three rises of equal size, so that the cooldown for scale-out holds the second one back; quiet
#: twice, so that the one for scale-in does too.
RISES = Shape(
    "rises",
    "",
    (
        (300.0, 0.25),
        (720.0, 0.5),
        (1200.0, 0.75),
        (2400.0, 1.0),
        (4200.0, 0.6),
        (4400.0, 0.45),
        (7200.0, 0.3),
    ),
)
SCALING = TargetTracking(
    60.0,
    minimum=2,
    maximum=9,
    scale_out_cooldown=130.0,
    instance_seconds=100.0,
    limits=(CapacityLimits(at=3000.0, minimum=3, maximum=7),),
)
OVER_TIME = Scenario(
    service=Constant(0.15),
    traffic=ShapedLoop(8.0, RISES, poisson=False),
    instances=2,
    concurrency=1,
    slope=0.1,
    zones=2,
    routing=LEAST,
    scaling=SCALING,
    latency_target=0.2,
)
STEADY = Scenario(
    service=Lognormal(0.05, 0.5),
    traffic=OpenLoop(40.0),
    instances=3,
    concurrency=2,
    slope=0.1,
    routing=LEAST,
    latency_target=0.1,
)
SCENARIOS = {
    "steady": STEADY,
    "exponential": replace(STEADY, service=Exponential(0.04)),
    "measured": replace(STEADY, service=Empirical((0.01, 0.02, 0.05, 0.2))),
    "users": replace(STEADY, traffic=ClosedLoop(8, think=Constant(0.1))),
    "trace": replace(STEADY, traffic=ArrivalTrace((0.1, 0.11, 0.12, 0.5, 0.9))),
    "over time": OVER_TIME,
    "on concurrency": replace(
        OVER_TIME,
        concurrency=8,
        service=Constant(0.4),
        scaling=TargetTracking.on_concurrency(
            1.0, 2, 9, scale_out_cooldown=130.0, instance_seconds=100.0
        ),
    ),
    "canary": replace(
        OVER_TIME,
        scaling=None,
        instances=6,
        deployment=Rollout(600.0, "canary", 0.3, 300.0, 200.0, 100.0),
    ),
    "rolling": replace(
        OVER_TIME,
        scaling=None,
        instances=6,
        deployment=Rollout(600.0, "rolling", 0.3, 300.0, instance_seconds=100.0),
    ),
    "quiet": replace(
        OVER_TIME,
        traffic=ShapedLoop(8.0, Shape("quiet", "", ((1500.0, 0.1), (3000.0, 0.05)))),
        instances=4,
        scaling=replace(SCALING, limits=()),
    ),
    "zone lost": replace(
        OVER_TIME, scaling=None, instances=6, faults=(ZoneOutage(600.0, 0, 20.0, 200.0),)
    ),
}


def run(scenario: Scenario, **options: Any) -> SimulationResult:
    """A short one: a number of requests, or the whole of traffic that changes."""
    steady = isinstance(scenario.traffic, (OpenLoop, ClosedLoop))
    length = {"requests": 2000} if steady and "seconds" not in options else {}
    return simulate(scenario, **({"replications": 2, "seed": 3} | length | options))


def numbers_of(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of each number within dataclasses and tuples."""
    if dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from numbers_of(getattr(value, field.name), (*place, field.name))
    elif isinstance(value, tuple):
        for index, part in enumerate(value):
            yield from numbers_of(part, (*place, index))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield place


def number_at(value: Any, place: tuple[Any, ...]) -> Any:
    for part in place:
        value = value[part] if isinstance(part, int) else getattr(value, part)
    return value


def changed(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    """A copy with another number at a place."""
    if not place:
        return new
    first, *rest = place
    if isinstance(first, int):
        inner = changed(value[first], tuple(rest), new)
        return (*value[:first], inner, *value[first + 1 :])
    return replace(value, **{first: changed(getattr(value, first), tuple(rest), new)})


def others(number: float) -> Iterator[float]:
    """Numbers to try instead: those near it first, of the same kind."""
    candidates = [number + 1, number - 1, number * 2, number / 2]
    if isinstance(number, float):
        candidates = [number * 1.3, number * 0.7, *candidates, number + 300]
    for candidate in candidates:
        if candidate >= 0:
            yield type(number)(candidate)


def moves(scenario: Scenario, place: tuple[Any, ...], before: SimulationResult) -> bool:
    """Whether the result is another one with some other number at a place."""
    for number in others(number_at(scenario, place)):
        try:
            other = changed(scenario, place, number)
        except ConfigurationError:
            continue
        if run(other).replications != before.replications:
            return True
    return False


#: Numbers of these classes are no part of a scenario, or are none that it reads; see the test of each.
APART = {
    (
        "InstanceStart",
        name,
    ): "its seconds are: test_each_phase_of_a_start_can_be_the_one_that_counts"
    for name in ("provision", "image_pull", "model_download", "container_start", "warm_up")
} | {
    ("Shape", "deploy_at"): "refused: test_a_shape_with_events_needs_them_in_the_scenario",
    ("Shape", "zone_lost_at"): "refused: test_a_shape_with_events_needs_them_in_the_scenario",
    (
        "Shape",
        "recorded_peak",
    ): "what a file's share of 1 was; the scenario states its own peak_rate",
    ("Shape", "times"): "refused in a ShapedLoop, LLS161: test_recorded_requests.py",
}
RESULTS = {"Comparison", "Estimate", "Replication", "SimulationResult"}


def owner(scenario: Scenario, place: tuple[Any, ...]) -> tuple[str, str]:
    """The class and field of a number; a number in a tuple is of the field that has the tuple."""
    fields = [index for index, part in enumerate(place) if isinstance(part, str)]
    last = fields[-1]
    return type(number_at(scenario, place[:last])).__name__, place[last]


def stated_numbers() -> set[tuple[str, str]]:
    """All fields of what a scenario is made of that hold numbers."""
    found = set()
    for name in set(simulation.__all__) - RESULTS:
        kind = getattr(simulation, name)
        if not dataclasses.is_dataclass(kind):
            continue
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            if re.search(r"\b(int|float)\b", str(hints[field.name])):
                found.add((name, field.name))
    return found


def test_each_number_of_a_scenario_moves_the_result_somewhere() -> None:
    """Where the rest of a scenario leaves one nothing to do, it moves another scenario."""
    moved = set()
    for scenario in SCENARIOS.values():
        before = run(scenario)
        assert run(scenario).replications == before.replications, "chance is the same"
        for place in numbers_of(scenario):
            if moves(scenario, place, before):
                moved.add(owner(scenario, place))
    assert stated_numbers() - moved == set(APART)


NUMBERS = [
    name
    for name, parameter in inspect.signature(simulate).parameters.items()
    if re.search(r"\b(int|float)\b", str(parameter.annotation))
]
OTHER_OPTIONS: dict[str, Any] = {
    "requests": 2500,
    "seconds": 90.0,
    "discard": 0.3,
    "window": 20.0,
    "replications": 3,
    "seed": 4,
    "confidence": 0.8,
}


@pytest.mark.parametrize("name", sorted(set(NUMBERS) - {"processes"}))
def test_each_option_of_simulate_moves_the_result(name: str) -> None:
    """Not `processes`, with which results are the same to the last bit (test_same_results.py)."""

    def told(**options: Any) -> str:
        found = run(STEADY, **options).to_dict()
        for echo in ("replications", "seed", "confidence"):
            del found[echo]
        return json.dumps(found, sort_keys=True)

    # A timeline needs a length in seconds.
    base: dict[str, Any] = {"seconds": 60.0} if name in ("seconds", "window") else {}
    assert told(**base) != told(**base | {name: OTHER_OPTIONS[name]})


def test_each_phase_of_a_start_can_be_the_one_that_counts() -> None:
    start = InstanceStart(10.0, 20.0, 30.0, 40.0, 50.0)
    for place in numbers_of(start):
        longer = changed(start, place, 100.0)
        assert longer.seconds > start.seconds, place


@pytest.mark.parametrize("event", ["deploy_at", "zone_lost_at"])
def test_a_shape_with_events_needs_them_in_the_scenario(event: str) -> None:
    """A shape only says when: without a deployment or an outage nothing would happen then."""
    shape = replace(RISES, **{event: 600.0})
    with refused("LLS170"):
        replace(OVER_TIME, traffic=ShapedLoop(8.0, shape))
    whole = replace(
        OVER_TIME,
        traffic=ShapedLoop(8.0, shape),
        deployment=Rollout(600.0),
        faults=(ZoneOutage(600.0),),
    )
    assert whole.traffic == ShapedLoop(8.0, shape)
