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

import asyncio
import math
import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import boto3
import pytest
from hosting_site import Site
from jumping_loop import JumpingLoop

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_client.async_client import AsyncRuntimeClient
from low_latency_endpoint.simulate import (
    ArrivalTrace,
    ClosedLoop,
    Lognormal,
    Scenario,
    SimulationResult,
    simulate,
)

MEAN, CV = 0.1, 0.3  # of the service time
SIGMA = math.sqrt(math.log(1 + CV**2))
MEDIAN = MEAN * math.exp(-(SIGMA**2) / 2)  # of the lognormal law with that mean
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
        service=Lognormal(MEAN, CV),
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


@dataclass(frozen=True)
class Measured:
    """Client latencies in seconds, sorted, of the calls begun after the settling."""

    latencies: list[float]
    throughput: float

    def percentile(self, percent: float) -> float:
        return self.latencies[int(percent / 100 * len(self.latencies))]


@pytest.fixture(scope="module")
def measured() -> Iterator[dict[str, Measured]]:
    """All regimes, one after the other, each on an endpoint of its own."""
    server = SimulatedModelServer(
        service_time=ServiceTime.lognormal(p50=MEDIAN, p99=MEDIAN * math.exp(2.3263 * SIGMA)),
        concurrency=2,
        seed=1,
    )
    loop = JumpingLoop()
    with LocalAws.in_process(
        model_servers={"model": server}, runtime=RuntimeOptions(clock_speed=0.0, seed=1)
    ) as aws:
        loop.become_the_runtimes(aws)
        site = Site(aws)
        yield {name: run_for_real(aws, site, loop, name) for name in REGIMES}
        site.delete()


def run_for_real(aws: LocalAws, site: Site, loop: JumpingLoop, name: str) -> Measured:
    regime = REGIMES[name]
    endpoint = site.endpoint(
        {
            "InitialInstanceCount": regime.instances,
            "RoutingConfig": {"RoutingStrategy": regime.routing},
        }
    )
    environment = aws.environment()
    session = boto3.Session(
        environment["AWS_ACCESS_KEY_ID"],
        environment["AWS_SECRET_ACCESS_KEY"],
        region_name=environment["AWS_REGION"],
    )

    url = aws.runtime_url()

    async def call_all() -> Measured:
        async with AsyncRuntimeClient(
            session=session,
            url=url,
            concurrency=1000,
            latency_target=timedelta(seconds=30),
            connect_timeout=timedelta(seconds=60),
            retries=0,
        ) as client:
            loop.jump_from_now_on(True)
            try:
                return await call(client, endpoint, regime.traffic, SECONDS[name], loop.time)
            finally:
                loop.jump_from_now_on(False)

    return asyncio.run_coroutine_threadsafe(call_all(), loop).result(300)


async def call(
    client: AsyncRuntimeClient,
    endpoint: str,
    traffic: ArrivalTrace | ClosedLoop,
    seconds: float,
    clock: Callable[[], float],
) -> Measured:
    calls: list[tuple[float, float]] = []  # begun, ended
    begin = clock()

    async def one() -> None:
        begun = clock() - begin
        await client.invoke_endpoint(EndpointName=endpoint, Body=b"{}")
        calls.append((begun, clock() - begin))

    async def user() -> None:
        while clock() - begin < seconds:
            await one()

    async with asyncio.TaskGroup() as group:
        if isinstance(traffic, ClosedLoop):
            for _ in range(traffic.users):
                group.create_task(user())
        else:
            for offset in traffic.seconds:
                await asyncio.sleep(begin + offset - clock())
                group.create_task(one())
    counted = sorted(ended - begun for begun, ended in calls if begun >= SETTLE)
    within = sum(SETTLE <= ended < seconds for _, ended in calls)
    return Measured(counted, within / (seconds - SETTLE))


@pytest.fixture(scope="module")
def simulated() -> dict[str, SimulationResult]:
    return {name: run_on_paper(regime, SECONDS[name]) for name, regime in REGIMES.items()}


def run_on_paper(regime: Scenario, seconds: float) -> SimulationResult:
    return simulate(regime, seconds=seconds, discard=SETTLE / seconds, replications=40)


@pytest.mark.parametrize("regime", REGIMES)
def test_median_and_99th_percentile_agree(regime, measured, simulated):
    real, paper = measured[regime], simulated[regime]
    assert real.percentile(50) == pytest.approx(paper.percentile(50.0).mean, rel=0.05)
    assert real.percentile(99) == pytest.approx(paper.percentile(99.0).mean, rel=0.10)


@pytest.mark.parametrize("regime", REGIMES)
def test_throughput_agrees(regime, measured, simulated):
    paper = simulated[regime].estimate(lambda run: run.requests / run.seconds)
    assert measured[regime].throughput == pytest.approx(paper.mean, rel=0.05)


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
    assert other.percentile(99.0).mean > 1.5 * measured[regime].percentile(99)
