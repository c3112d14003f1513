"""The same experiment simulated, and run for real in the local runtime, in three regimes.

Neither side knows of the other: the simulator draws events in a compiled loop; in the local
runtime real HTTP requests go through its listener and its routing to model servers that sleep.
What both share is the traffic, request for request, and the law of the service time.

Whoever sleeps in the runtime's loop, callers and model servers, sleeps on a clock that jumps to the
next timer once every socket is quiet. So the minutes pass in seconds, a busy machine makes no
request slower, and a run repeats itself: its chance is seeded. By the simulator's replications the
99th percentile of a run this long deviates by 3 % at most (one standard deviation) where 10 % are
allowed. In real time the same holds on a machine with nothing else to do, the hop of some 2 ms
taken into account (docs/explanation/simulation.md).
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hosting_site import Site
from jumping_loop import JumpingLoop

from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from low_latency_endpoint.load_test.engine.steps import Step, StepResult
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.simulate import (
    ArrivalTrace,
    ClosedLoop,
    Gamma,
    Scenario,
    SimulationResult,
    simulate,
)

from .jumping_generator import JumpingGenerator, jumping

MEAN, CV = 0.1, 0.3  # of the service time
SETTLE = 3.0  # from an empty system to the steady one; not counted on either side
RANDOM, LEAST = "RANDOM", "LEAST_OUTSTANDING_REQUESTS"


def poisson(rate: float, seconds: float, seed: int) -> ArrivalTrace:
    """Arrivals as a recorder would have written them down."""
    generator, moment, times = random.Random(seed), 0.0, []
    while (moment := moment + generator.expovariate(rate)) < seconds:
        times.append(moment)
    return ArrivalTrace(tuple(times))


def scenario(instances: int, routing: str, traffic: ArrivalTrace | ClosedLoop) -> Scenario:
    return Scenario(
        service=Gamma(mean=MEAN, cv=CV),
        traffic=traffic,
        instances=instances,
        concurrency=2,
        routing=routing,
    )


#: Light load where RANDOM still makes queues; heavy load that least-outstanding evens out; callers
#: that wait for their answers and keep every worker busy.
REGIMES = {
    "open, random, load 0.4": scenario(12, RANDOM, poisson(96, 80, seed=1)),
    "open, least outstanding, load 0.75": scenario(4, LEAST, poisson(60, 55, seed=2)),
    "closed, least outstanding, 16 users": scenario(4, LEAST, ClosedLoop(users=16)),
}
#: Each as long as chance needs to average out (test_the_experiment_is_long_enough_to_tell).
SECONDS = dict(zip(REGIMES, (80.0, 55.0, 25.0), strict=True))


@pytest.fixture(scope="module")
def measured() -> Iterator[dict[str, StepResult]]:
    """All regimes, one after the other, each on an endpoint of its own."""
    server = SimulatedModelServer(
        service_time=ServiceTime.gamma(mean=MEAN, variation=CV), concurrency=2, seed=1
    )
    with jumping(server) as (aws, loop):
        site = Site(aws)
        yield {name: run_for_real(site, loop, name) for name in REGIMES}
        site.delete()


def run_for_real(site: Site, loop: JumpingLoop, name: str) -> StepResult:
    regime, seconds = REGIMES[name], SECONDS[name]
    routing = {"RoutingStrategy": regime.routing}
    endpoint = site.endpoint({"InitialInstanceCount": regime.instances, "RoutingConfig": routing})
    traffic = regime.traffic
    load = (
        {"users": traffic.users}
        if isinstance(traffic, ClosedLoop)
        else {"arrivals": Recorded(traffic)}
    )
    step = Step(name, seconds, settle_seconds=SETTLE, **load)
    return JumpingGenerator(site.aws, loop, Target(endpoint, "us-east-1")).run(step)


@dataclass(frozen=True)
class Recorded:
    """The arrivals of a trace, for the load generator."""

    trace: ArrivalTrace

    def offsets(self, seconds: float, seed: int | None = None) -> tuple[float, ...]:
        return self.trace.seconds


@pytest.fixture(scope="module")
def simulated() -> dict[str, SimulationResult]:
    return {name: run_on_paper(regime, SECONDS[name]) for name, regime in REGIMES.items()}


def run_on_paper(regime: Scenario, seconds: float) -> SimulationResult:
    return simulate(regime, seconds=seconds, discard=SETTLE / seconds, replications=40)


@pytest.mark.parametrize("regime", REGIMES)
def test_median_and_99th_percentile_agree(regime, measured, simulated):
    real, paper = measured[regime], simulated[regime]
    assert real.latency.percentile(50) == pytest.approx(paper.percentile(50.0).mean, rel=0.05)
    assert real.latency.percentile(99) == pytest.approx(paper.percentile(99.0).mean, rel=0.10)


@pytest.mark.parametrize("regime", REGIMES)
def test_throughput_agrees(regime, measured, simulated):
    paper = simulated[regime].estimate(lambda run: run.requests / run.seconds)
    throughput = measured[regime].answered_in_time / (SECONDS[regime] - SETTLE)
    assert throughput == pytest.approx(paper.mean, rel=0.05)


@pytest.mark.parametrize("regime", REGIMES)
def test_the_experiment_is_long_enough_to_tell(regime, simulated):
    """Chance alone moves the percentiles by far less than the tolerance."""
    for percentile, allowed in ((50.0, 0.05), (99.0, 0.10)):
        found = [run.percentiles[percentile] for run in simulated[regime].replications]
        assert 3 * statistics.stdev(found) < allowed * statistics.mean(found)


def test_the_tolerance_tells_routings_apart(measured):
    """What RANDOM would have brought lies far outside it."""
    regime = "open, least outstanding, load 0.75"
    other = run_on_paper(REGIMES[regime].with_(routing=RANDOM), SECONDS[regime])
    assert other.percentile(99.0).mean > 1.5 * measured[regime].latency.percentile(99)
