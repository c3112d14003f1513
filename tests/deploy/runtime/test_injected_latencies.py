"""Known service times and a stall, through the local runtime: every percentile comes out.

Callers and model servers sleep on a clock that jumps (see :mod:`.jumping_loop`): a busy machine
makes no request slower, and what a caller waits is what was injected and nothing else. The same
laws in real time, sent by the load generator's own processes: tests/load_test.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hosting_site import Site
from jumping_loop import JumpingLoop

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from local_sagemaker.model_servers.simulated import Simulation
from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals, PoissonArrivals
from low_latency_endpoint.load_test.engine.steps import Step, StepResult
from low_latency_endpoint.load_test.engine.target import Target
from low_latency_endpoint.load_test.search.bounds import quantile_bounds
from tests.depth import sampled
from tests.load_test.agreement import percentile_of

from .jumping_generator import JumpingGenerator, jumping

MANY = 1000  # workers: nothing waits for another
# More requests than are ever under way; each needs four of the 1,024 files that a user may open.
WARM_UP = 180
RESOLUTION = 0.001
SEED = 5
LOGNORMAL = ServiceTime.lognormal(p50=0.2, p99=0.6)
LAWS = {
    "constant": ServiceTime.constant(0.2),
    "bimodal": ServiceTime.empirical([0.2] * 95 + [1.0] * 5),
    "lognormal": LOGNORMAL,
}


@dataclass(frozen=True)
class Place:
    """A local AWS whose clock jumps."""

    aws: LocalAws
    loop: JumpingLoop

    def run(self, server: SimulatedModelServer, step: Step) -> StepResult:
        """A step on an endpoint of its own with one instance of that server."""
        self.aws.set_model_servers({"model": server})
        endpoint = Site(self.aws).endpoint()
        target = Target(endpoint, "us-east-1")
        try:
            return JumpingGenerator(self.aws, self.loop, target, warm_up=WARM_UP).run(step)
        finally:  # its connections are open files
            self.aws.client("sagemaker").delete_endpoint(EndpointName=endpoint)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with jumping(SimulatedModelServer()) as (aws, loop):
        yield Place(aws, loop)


def agree(result: StepResult, true: list[float]) -> None:
    """Every percentile of p50 to p99.99 within 1 % or the timer's resolution."""
    assert result.completed == result.intended == len(true)
    pairs = [
        (percentile_of(true, one.percent), one.seconds) for one in result.latency.percentiles()
    ]
    wrong = [
        f"{found:.5f} not {expected:.5f}"
        for expected, found in pairs
        if abs(found - expected) > max(0.01 * expected, RESOLUTION)
    ]
    assert len(pairs) == 7
    assert not wrong


@pytest.mark.parametrize("name", sampled(LAWS, 3))
def test_every_percentile_is_that_of_the_service_times_drawn(place: Place, name: str) -> None:
    law = LAWS[name]
    server = SimulatedModelServer(law, concurrency=MANY, seed=SEED)
    # Five thousand requests tell a law of many values from another; of one value or two, it takes
    # fewer: each percentile is held against the draws themselves.
    seconds = 20 if law is LOGNORMAL else 10
    result = place.run(server, Step(name, seconds, PoissonArrivals(250), seed=3))
    draws = random.Random(f"{SEED}/0")  # as the first instance draws
    times = [law.draw(draws) for _ in range(WARM_UP + result.intended)]
    agree(result, times[WARM_UP:])
    assert result.send_lag.max < RESOLUTION
    if law is LOGNORMAL:  # what was asked for, as closely as so many samples can tell
        for quantile, wanted in ((0.5, 0.2), (0.99, 0.6)):
            bounds = quantile_bounds(result.latency, quantile, 0.999)
            assert bounds.low <= wanted <= bounds.high
            assert bounds.high / bounds.low < 1.25


STALL = 4.005, 6.005  # since the first request; between two of them
SERVICE = 0.02


def stood_still(moment: float) -> float:
    """When an instance that stands still goes on."""
    return STALL[1] if STALL[0] <= moment < STALL[1] else moment


def test_a_stall_is_in_every_percentile_as_callers_met_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """80 a second, 20 ms each, and for two seconds the instance neither begins nor answers."""
    work, clock = Simulation._work, place.loop.time
    first: list[float] = []

    async def stalling(simulation: Simulation, share: float = 1.0) -> None:
        if place.loop.jumps:  # after the warm-up
            first.append(clock())
        else:
            await work(simulation, share)
            return
        await asyncio.sleep(stood_still(clock() - first[0]) + first[0] - clock())
        await work(simulation, share)
        await asyncio.sleep(stood_still(clock() - first[0]) + first[0] - clock())

    monkeypatch.setattr(Simulation, "_work", stalling)
    server = SimulatedModelServer(ServiceTime.constant(SERVICE), concurrency=MANY)
    step = Step("stall", 12, ConstantArrivals(80))
    result = place.run(server, step)
    due = list(step.arrivals.offsets(step.seconds)) if step.arrivals else []
    agree(
        result,
        [stood_still(stood_still(at) + SERVICE) - at for at in (one - due[0] for one in due)],
    )
    assert result.latency.percentile(99) > 1.8
