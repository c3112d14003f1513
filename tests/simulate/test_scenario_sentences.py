"""Every input of a scenario is named: each field of each part changes what is said when it changes."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from low_latency_endpoint.cli.simulate import SimulationOptions
from low_latency_endpoint.plan.dispersion import Dispersion
from low_latency_endpoint.plan.traffic_shapes import Shape
from low_latency_endpoint.simulate import (
    ArrivalTrace,
    CapacityLimits,
    ClosedLoop,
    Constant,
    Empirical,
    Exponential,
    Lognormal,
    OpenLoop,
    Rollout,
    Scenario,
    ShapedLoop,
    TargetTracking,
    ZoneOutage,
)
from low_latency_endpoint.simulate.scenario_sentences import scenario_sentences, service_sentence
from low_latency_endpoint.simulate.service_laws import Gap, ServiceLaw, highest_percentile
from low_latency_endpoint.simulate.traffic import Traffic

SHAPE = Shape(
    "mine", "by hand", ((600.0, 0.5), (7200.0, 1.0)), recorded_peak=9.0, dispersion=Dispersion(1, 2)
)
TRAFFIC: list[Traffic] = [
    OpenLoop(10.0),
    ClosedLoop(5, think=Lognormal(1.0, 0.5)),
    ArrivalTrace((0.5, 1.0, 2.0)),
    ShapedLoop(10.0, SHAPE),
]
LAWS: list[ServiceLaw] = [
    Constant(0.1),
    Exponential(0.1),
    Lognormal(0.1, 0.5),
    Empirical((0.1, 0.2, 0.4)),
]
WHOLE = Scenario(
    service=Lognormal(0.1, 0.5),
    traffic=OpenLoop(10.0),
    instances=4,
    concurrency=2,
    slope=0.25,
    zones=3,
    scaling=TargetTracking(300.0, 2, 10, limits=(CapacityLimits(1200.0, 3, 7),)),
    deployment=Rollout(at=600.0, kind="rolling", bake_seconds=5.0),
    faults=(ZoneOutage(at=900.0),),
    latency_target=0.4,
)
SCENARIOS = [
    WHOLE,
    *(WHOLE.with_(traffic=traffic) for traffic in TRAFFIC),
    *(WHOLE.with_(service=law) for law in LAWS),
]

#: What a field of text can be, where not any text is allowed.
CHOICES = {"routing": "LEAST_OUTSTANDING_REQUESTS", "metric": "concurrency", "kind": "linear"}
#: Not inputs of an answer: when of a shape something befalls the fleet stands in `Scenario`, and the
#: times of single requests in `ArrivalTrace`; set times make limits of the begin.
NOT_INPUTS = {
    (Shape, name) for name in ("deploy_at", "zone_lost_at", "recorded_peak", "times", "begin")
}


def other(name: str, value: Any) -> Any:
    """Another value that the field takes."""
    if name in CHOICES:
        return CHOICES[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.25
    if isinstance(value, str):
        return value + " too"
    if name == "gap":
        return Gap(0.5, 1.0, 0.2, 0.4)
    if isinstance(value, Dispersion):
        return Dispersion(20.0, 2.0)
    if name == "levels":
        return (*value[:-1], (2 * value[-1][0], value[-1][1]))
    if isinstance(value, tuple) and all(isinstance(each, float) for each in value):
        return tuple(1.25 * each for each in value)
    if isinstance(value, tuple):
        return ()
    raise AssertionError(f"no other value for {name}: {value!r}")


def changes(part: Any) -> Iterator[tuple[str, Any]]:
    """The part with each of its fields changed, and each field of its parts."""
    for field in fields(part):
        value = getattr(part, field.name)
        if (type(part), field.name) in NOT_INPUTS:
            continue
        where = f"{type(part).__name__}.{field.name}"
        inner = value[0] if isinstance(value, tuple) and value and is_dataclass(value[0]) else value
        if is_dataclass(inner) and not isinstance(inner, Dispersion):
            for path, changed in changes(inner):
                whole = (changed,) if isinstance(value, tuple) else changed
                yield path, replace(part, **{field.name: whole})
        else:
            yield where, replace(part, **{field.name: other(field.name, value)})


CASES = {
    f"{number} {where}": (scenario, changed)
    for number, scenario in enumerate(SCENARIOS)
    for where, changed in changes(scenario)
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_no_input_changes_in_silence(case: tuple[Scenario, Scenario]) -> None:
    before, after = case
    assert scenario_sentences(before) != scenario_sentences(after)


def test_every_law_and_every_traffic_is_among_the_cases() -> None:
    for base, parts in ((ServiceLaw, LAWS), (Traffic, TRAFFIC)):
        kinds = {kind.__name__ for kind in base.__subclasses__()}
        assert kinds == {type(part).__name__ for part in parts}


@pytest.mark.parametrize("law", LAWS, ids=repr)
def test_the_law_has_its_name(law: ServiceLaw) -> None:
    names = {
        Constant: "each the same",
        Exponential: "exponential",
        Lognormal: "log-normal",
        Empirical: "measured",
    }
    assert names[type(law)] in service_sentence(law, (99.0,))


# --- how far another law can be off --------------------------------------------------------------


def test_the_bound_holds_for_any_two_times() -> None:
    """A law of two times: its percentile is the longer where more than 1 - q of requests take it."""
    chance = random.Random(1)
    for _ in range(2000):
        short = chance.uniform(0.0, 1.0)
        long = short + chance.expovariate(0.1)
        share = chance.random()
        mean = (1 - share) * short + share * long
        deviation = math.sqrt(share * (1 - share)) * (long - short)
        for percentile in (50.0, 90.0, 95.0, 99.0, 99.9):
            found = long if share > 1 - percentile / 100 else short
            bound = highest_percentile(mean, deviation / mean, percentile)
            assert found <= bound * (1 + 1e-9)


@pytest.mark.parametrize("percentile", [50.0, 95.0, 99.9])
def test_the_bound_is_reached(percentile: float) -> None:
    """Cantelli's own law: a share of 1 - q takes the longer time."""
    share = 1 - percentile / 100
    short = 1.0
    long = 3.0
    mean = (1 - share) * short + share * long
    deviation = math.sqrt(share * (1 - share)) * (long - short)
    assert highest_percentile(mean, deviation / mean, percentile) == pytest.approx(long)


def test_a_bimodal_service_lies_within_what_is_said() -> None:
    # 90 % take 20 ms and 10 % 400 ms: mean 58, standard deviation 0.3 x 380 = 114, so p95 is 400 ms.
    # The bound is 58 + 114 x sqrt(19) = 554.9 ms; log-normal p95 is 208 ms.
    sentence = service_sentence(Lognormal(0.058, 114 / 58), (95.0,))
    assert "p95 555 ms (here 208 ms)" in sentence
    assert "--from-load-test" in sentence


@pytest.mark.parametrize("law", LAWS[1:], ids=repr)
def test_percentiles_of_laws_are_those_of_their_draws(law: ServiceLaw) -> None:
    """Each law below its own percentile with that chance, by the closed form of its distribution."""
    below: dict[type[ServiceLaw], Callable[[float], float]] = {
        Exponential: lambda time: 1 - math.exp(-time / 0.1),
        # ln of the time is normal: mean ln 0.1 - s^2 / 2, and s^2 = ln 1.25
        Lognormal: lambda time: (
            0.5
            * math.erfc(
                -(math.log(time / 0.1) + math.log(1.25) / 2) / math.sqrt(2 * math.log(1.25))
            )
        ),
        # lines from 0.1 to 0.2 and from 0.2 to 0.4, of half the requests each
        Empirical: lambda time: 5 * (time - 0.1) if time < 0.2 else 0.5 + 2.5 * (time - 0.2),
    }
    for percentile in (1.0, 50.0, 99.0):
        assert below[type(law)](law.percentile(percentile)) == pytest.approx(percentile / 100)


# --- the options of the command ------------------------------------------------------------------

#: What an option is named by in the answer: a field of the scenario, or what else says it.
NAMED_BY = {
    "endpoint": "the document's title",
    "settings": "the JSON's settings",
    "compare_routing": "columns of both strategies",
    "traffic": "Shape",
    "traffic_from": "Shape and ArrivalTrace",
    "period": "Shape",
    "from_load_test": "Empirical",
    "tps": "OpenLoop.rate and ShapedLoop.peak_rate",
    "instances": "Scenario.instances",
    "routing": "Scenario.routing",
    "service_time": "Lognormal.mean",
    "variation": "Lognormal.cv",
    "concurrency": "Scenario.concurrency",
    "slope": "Scenario.slope",
    "instance_start": "TargetTracking.instance_seconds and Rollout.instance_seconds",
    "replications": "the sentence of the runs",
    "requests": "the sentence of the runs",
    "seed": "the sentence of the runs",
    "processes": "changes nothing: tests/simulate/test_same_results.py",
    "price": "the sentence of the cost",
    "json": "the form of the answer",
    "markdown": "the form of the answer",
    "html": "the form of the answer",
}


def test_every_option_is_named_by_something() -> None:
    assert {field.name for field in fields(SimulationOptions)} == set(NAMED_BY)
    parts = {type(part).__name__ for part in (*LAWS, *TRAFFIC, WHOLE, SHAPE)}
    parts |= {"TargetTracking", "Rollout", "ZoneOutage"}
    told = {where.split(" ")[1] for where in CASES}
    for words in NAMED_BY.values():
        for field in re.findall(r"([A-Z]\w+)\.\w+", words):
            assert field in parts
        for field in re.findall(r"[A-Z]\w+\.[a-z_]+", words):
            assert field in told, f"{field} is no input that is told"
