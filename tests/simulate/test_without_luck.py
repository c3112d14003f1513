"""Times that do not vary: no luck to take out of a result, and an exact answer to compare it with.

Every law and every kind of traffic that there is takes part; a new one fails here until it does.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from operator import attrgetter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from low_latency_endpoint.load_test.search.bounds import half_width
from low_latency_endpoint.plan.traffic_shapes import Shape
from low_latency_endpoint.simulate import (
    ArrivalTrace,
    ClosedLoop,
    Constant,
    Empirical,
    Exponential,
    Lognormal,
    OpenLoop,
    Replication,
    Scenario,
    ShapedLoop,
    compare,
    simulate,
)
from low_latency_endpoint.simulate.compilation import loops
from low_latency_endpoint.simulate.estimates import ROUNDING, estimate
from low_latency_endpoint.simulate.replication import PERCENTILES
from low_latency_endpoint.simulate.service_laws import ServiceLaw
from low_latency_endpoint.simulate.traffic import Traffic
from low_latency_endpoint.simulate.workload import Law, Stream
from tests.depth import examples

pytest.importorskip("numba")

LEAST = "LEAST_OUTSTANDING_REQUESTS"
#: A percentile is as exact as the bins of its histogram, 1,024 for each doubling.
BIN = 1 / 1024

# Not 1 s: sums of it are exact, and hide what rounding does.
seconds = st.sampled_from([0.007, 0.013, 0.033, 0.0451]) | st.floats(0.0001, 20.0)
#: By law: how to state it so that each draw takes the same time.
CONSTANTS: dict[type[ServiceLaw], list[Callable[[float], ServiceLaw]]] = {
    Constant: [Constant],
    Lognormal: [lambda time: Lognormal(time, 0)],
    Empirical: [
        lambda time: Empirical((time, time)),
        lambda time: Empirical.of_samples([time] * 37),
        lambda time: Empirical.of_quantiles(dict.fromkeys((0, 0.5, 0.9, 0.99, 1), time)),
    ],
    Exponential: [],  # always varies
}
constants = [law for laws in CONSTANTS.values() for law in laws]
#: Traffic in which a single instance with one worker is never asked for more than it serves.
TRAFFIC: dict[type[Traffic], list[Callable[[float, float], Traffic]]] = {
    OpenLoop: [
        lambda time, load: OpenLoop(load / time),
        lambda time, load: OpenLoop(load / time, poisson=False),
    ],
    ClosedLoop: [
        lambda time, load: ClosedLoop(3),
        lambda time, load: ClosedLoop(2, Constant(time / load)),
        lambda time, load: ClosedLoop(2, Exponential(time / load)),
    ],
    ArrivalTrace: [
        lambda time, load: ArrivalTrace(tuple(number * time / load for number in range(2000)))
    ],
    ShapedLoop: [
        lambda time, load: ShapedLoop(load / time, Shape("flat", "", ((1000 * time, 1.0),))),
        lambda time, load: ShapedLoop(load / time, Shape("flat", "", ((1000 * time, 1.0),)), False),
    ],
}
traffics = [traffic for kinds in TRAFFIC.values() for traffic in kinds]


def names(classes: Iterable[type]) -> set[str]:
    return {one.__name__ for one in classes}


def test_every_law_and_every_traffic_takes_part() -> None:
    # By name: a class with slots is a second one beside the class that it is made from.
    assert names(CONSTANTS) == names(ServiceLaw.__subclasses__())
    assert names(TRAFFIC) == names(Traffic.__subclasses__())


laws = st.one_of(
    st.builds(lambda law, time: law(time), st.sampled_from(constants), seconds),
    st.builds(Exponential, seconds),
    st.builds(Lognormal, seconds, st.floats(0.001, 3.0)),
    st.builds(Empirical.of_samples, st.lists(seconds, min_size=2, max_size=20)),
)


@given(laws)
def test_a_law_varies_if_and_only_if_its_draws_differ(law: ServiceLaw) -> None:
    drawn = loops().same_float(0.0, 500)
    Law(loops(), law.parameters()).fill(Stream(loops(), 1, 0, "work"), drawn, 500)
    assert law.varies == (max(drawn) > min(drawn))


#: What is printed of a result, as its replications have it.
FIGURES: list[Callable[[Replication], float]] = [
    *(lambda run, rank=rank: run.percentiles[rank] for rank in PERCENTILES),  # type: ignore[misc]
    *map(attrgetter, ("mean", "waiting", "utilisation", "throughput", "in_system")),
]


@settings(max_examples=examples(150))
@given(
    st.sampled_from(constants),
    st.sampled_from(traffics),
    seconds,
    st.floats(0.05, 0.95),
    st.integers(1, 4),
    st.integers(1, 3),
    st.sampled_from(["RANDOM", LEAST]),
    st.integers(2, 12),
)
def test_a_constant_time_gives_what_its_replications_say(
    law: Callable[[float], ServiceLaw],
    traffic: Callable[[float, float], Traffic],
    time: float,
    load: float,
    instances: int,
    workers: int,
    routing: str,
    replications: int,
) -> None:
    """Whatever regression takes out of it, no figure leaves the values that it is made of.

    By more than the farthest of so many values can lie from their mean: root of n - 1 deviations.
    """
    scenario = Scenario(
        service=law(time),
        traffic=traffic(time, load * (instances * workers if traffic in TRAFFIC[OpenLoop] else 1)),
        instances=instances,
        concurrency=workers,
        routing=routing,
    )
    length = {} if isinstance(scenario.traffic, ShapedLoop) else {"requests": 1000}
    result = simulate(scenario, replications=replications, seed=3, **length)
    assert len(result.controls) <= isinstance(scenario.traffic, OpenLoop)
    for figure in FIGURES:
        values = [figure(run) for run in result.replications]
        middle = math.fsum(values) / len(values)
        deviation = math.sqrt(sum((value - middle) ** 2 for value in values) / len(values))
        farthest = math.sqrt(len(values) - 1) * deviation
        assert abs(result.estimate(figure).mean - middle) <= farthest + 1e-9 * middle
    assert result.percentile(50.0).mean >= time * (1 - BIN)
    assert result.mean.mean >= time * (1 - 1e-9)


@pytest.mark.parametrize("law", constants)
@given(time=seconds, load=st.floats(0.05, 0.95), instances=st.integers(1, 5))
@example(time=0.0451, load=0.75, instances=4)
@settings(max_examples=examples(8))
def test_without_a_queue_the_answer_is_the_constant(
    law: Callable[[float], ServiceLaw], time: float, load: float, instances: int
) -> None:
    """Even gaps with the least outstanding requests (D/D/n), and more workers than requests."""
    service = law(time)
    even = OpenLoop(load * instances / time, poisson=False)
    for scenario in (
        Scenario(service=service, traffic=even, instances=instances, routing=LEAST),
        Scenario(service=service, traffic=replace(even, poisson=True), concurrency=4096),
    ):
        result = simulate(scenario, requests=2000, replications=8)
        assert result.mean.mean == pytest.approx(time, rel=1e-9)
        assert result.waiting.mean == pytest.approx(0, abs=1e-9 * time)
        for rank in PERCENTILES:
            assert result.percentile(rank).mean == pytest.approx(time, rel=BIN)
            # Replications agree on their bin; the interval is not narrower than that.
            assert result.percentile(rank).holds(time)


@pytest.mark.parametrize("law", constants)
def test_users_of_a_constant_server_wait_for_each_other(law: Callable[[float], ServiceLaw]) -> None:
    """Three users of one worker: each request waits for the two others."""
    result = simulate(Scenario(service=law(0.013), traffic=ClosedLoop(3)), requests=2000)
    assert result.mean.mean == pytest.approx(3 * 0.013, rel=1e-6)
    assert result.percentile(99.9).mean == pytest.approx(3 * 0.013, rel=BIN)


def poisson_before_constant_times(load: float, share: float) -> float:
    """The latency, in service times, below which that share of M/D/1 lies (Erlang 1909)."""

    def waits_no_longer(time: float) -> float:
        terms = (
            (load * (k - time)) ** k / math.factorial(k) * math.exp(-load * (k - time))
            for k in range(int(time) + 1)
        )
        return (1 - load) * math.fsum(terms)

    low = 0.0
    high = 30.0  # beyond which the signs of the terms cost too many digits
    for _ in range(60):
        middle = (low + high) / 2
        if waits_no_longer(middle) < share:
            low = middle
        else:
            high = middle
    return 1 + low


@pytest.mark.parametrize("time", [0.007, 0.013, 0.033, 0.0451])
@pytest.mark.parametrize("law", constants)
def test_poisson_arrivals_and_constant_times(
    law: Callable[[float], ServiceLaw], time: float
) -> None:
    """M/D/1: RANDOM makes one of each of four instances. Pollaczek and Khinchine for the mean."""
    load = 0.6
    scenario = Scenario(service=law(time), traffic=OpenLoop(4 * load / time), instances=4)
    result = simulate(scenario, seed=7, confidence=0.999)
    assert len(result.controls) == 1  # of the gaps alone
    assert result.mean.holds(time * (1 + load / 2 / (1 - load)))
    assert result.mean.half_width < 0.01 * result.mean.mean
    for rank in (90.0, 99.0):
        exact = time * poisson_before_constant_times(load, rank / 100)
        found = result.percentile(rank)
        assert found.holds(exact)
        assert found.half_width < 0.02 * exact


def waits_behind_even_gaps(load: float, instances: int, count: int) -> list[float]:
    """Lindley's recursion, with Python's random numbers: even gaps that RANDOM shares out."""
    chance = random.Random(11)
    free = [0.0] * instances
    waits = []
    for number in range(count):
        arrives = number / (load * instances)
        server = chance.randrange(instances)
        begins = max(arrives, free[server])
        free[server] = begins + 1
        waits.append(begins - arrives)
    return sorted(waits[count // 10 :])


@pytest.mark.parametrize("time", [0.007, 0.013, 0.033, 0.0451])
@pytest.mark.parametrize("law", constants)
def test_routing_strategies_of_even_gaps_and_constant_times(
    law: Callable[[float], ServiceLaw], time: float
) -> None:
    """With the least outstanding requests nobody waits, so the change is known."""
    instances = 4
    waits = waits_behind_even_gaps(0.75, instances, 400_000)
    random_p99 = 1 + waits[int(0.99 * len(waits))]
    scenario = Scenario(
        service=law(time),
        traffic=OpenLoop(0.75 * instances / time, poisson=False),
        instances=instances,
    )
    both = compare({"RANDOM": scenario, LEAST: scenario.with_(routing=LEAST)}, requests=100_000)
    change = both.percentile_change(LEAST, 99.0)
    assert change.mean == pytest.approx(1 / random_p99 - 1, abs=0.02)
    assert change.half_width < 0.02


@settings(max_examples=examples(25))
@given(seconds, st.floats(-15, -4), st.booleans(), st.sampled_from(["RANDOM", LEAST]))
def test_a_time_that_hardly_varies_is_as_good_as_constant(
    time: float, digits: float, measured: bool, routing: str
) -> None:
    """Between a variation that rounding swallows and one that counts there is no gap."""
    spread = 10**digits
    law = Empirical((time, time * (1 + spread))) if measured else Lognormal(time, spread)
    constant = Scenario(
        service=Constant(time),
        traffic=OpenLoop(0.7 * 6 / time),
        instances=3,
        concurrency=2,
        routing=routing,
    )
    one, other = (
        simulate(scenario, requests=3000) for scenario in (constant, constant.with_(service=law))
    )
    for figure in FIGURES:
        exactly, nearly = one.estimate(figure), other.estimate(figure)
        plain = estimate([figure(run) for run in other.replications])
        near = (BIN + 10 * spread) * exactly.mean + 1e-9 * time
        assert abs(nearly.mean - exactly.mean) <= 3 * plain.half_width + near
        assert nearly.half_width <= 3 * plain.half_width + near


numbers = st.floats(-1e6, 1e6) | st.floats(-1e-9, 1e-9)


@settings(max_examples=examples(300))
@given(st.data(), st.integers(2, 20), st.integers(0, 2))
def test_no_estimate_leaves_its_values_by_more_than_a_value_could(
    data: st.DataObject, count: int, controls: int
) -> None:
    values = data.draw(st.lists(numbers, min_size=count, max_size=count))
    luck = st.lists(st.floats(-1, 1) | st.floats(-1e-15, 1e-15), min_size=count, max_size=count)
    found = estimate(values, controls=[data.draw(luck) for _ in range(controls)])
    middle = math.fsum(values) / count
    size = max(map(abs, values))
    # In units of the largest: squares of numbers of 1e-271 are 0.
    squares = math.fsum(((value - middle) / (size or 1)) ** 2 for value in values)
    farthest = size * math.sqrt((count - 1) / count * squares)
    assert abs(found.mean - middle) <= farthest * (1 + 1e-6) + 1e-9 * size
    assert found.half_width >= 0
    assert not (min(values) >= 0 > found.mean)


@given(st.lists(st.floats(0, 1e3), min_size=8, max_size=8), st.floats(-1e-10, 1e-10), st.data())
def test_a_control_of_rounding_alone_changes_nothing(
    values: list[float], size: float, data: st.DataObject
) -> None:
    offset = data.draw(st.floats(-1, 1))
    rounding = [offset + size * data.draw(st.floats(0, 1)) for _ in values]
    assert max(rounding) - min(rounding) <= ROUNDING
    assert estimate(values, controls=[rounding]) == estimate(values)


@given(seconds, st.integers(3, 40))
def test_blocks_of_a_load_test_that_are_alike_bound_their_mean(time: float, blocks: int) -> None:
    """Of equal means the deviations are rounding; as correlation it took the bound away."""
    assert half_width([time] * blocks, 0.01) == pytest.approx(0, abs=1e-9 * time)
