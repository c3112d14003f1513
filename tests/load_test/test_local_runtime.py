"""The generator on an endpoint of the local AWS: known service times, a stall, streams."""

from __future__ import annotations

import itertools
import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from low_latency_endpoint.load_test.engine.arrivals import ConstantArrivals, PoissonArrivals
from low_latency_endpoint.load_test.engine.generator_process import GeneratorProcess
from low_latency_endpoint.load_test.engine.steps import Step, StepResult
from low_latency_endpoint.load_test.engine.target import Target

from .agreement import PRECISION, Pairs, agree, pairs_of, percentile_of, with_stall
from .servers import PAYLOADS, make_endpoint, serve_sentiment

pytestmark = pytest.mark.realtime

TARGET = Target("sentiment", "us-east-1", timeout_seconds=20)
MANY = 1000  # workers of the simulated server: nothing waits for another
#: Long enough that 1 % is more than what the scheduler of a busy machine takes away.
#: A single constant time is test_open_loop.py's; the two values of the first are constant, too.
LAWS = {
    "bimodal": ServiceTime.empirical([1.0] * 17 + [2.5] * 3),
    "lognormal": ServiceTime.lognormal(p50=1.0, p99=3.0),
}
NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS with one endpoint."""
    with LocalAws.start(region="us-east-1", model_servers={"*": SimulatedModelServer()}) as started:
        serve_sentiment(started, instances=1)
        yield started


def run(
    aws: LocalAws, server: SimulatedModelServer, step: Step, target: Target = TARGET
) -> StepResult:
    """One step on the endpoint, with that model server behind it."""
    aws.set_model_servers({"*": server})
    with GeneratorProcess(target, PAYLOADS, environment=aws.environment()) as generator:
        return generator.run(step)


def fresh_endpoint(aws: LocalAws, number: int) -> Target:
    """An endpoint of its own, whose one instance has not drawn any service time."""
    name = f"fresh-{number}"
    make_endpoint(aws, name, {"InstanceType": "ml.c7i.xlarge", "InitialInstanceCount": 1})
    return replace(TARGET, endpoint_name=name)


def injected(aws: LocalAws, law: ServiceTime, longer: float) -> tuple[StepResult, Pairs]:
    """A run, its percentiles beside those of the service times that the server drew."""
    number = next(NUMBERS)
    server = SimulatedModelServer(law, concurrency=MANY, seed=number)
    aws.set_model_servers({"*": server})
    result = run(
        aws,
        server,
        Step("law", 5 * longer, PoissonArrivals(240), seed=number),
        fresh_endpoint(aws, number),
    )
    assert result.completed == result.intended > 1000
    draws = random.Random(f"{number}/0")  # as the first instance draws
    true = [law.draw(draws) for _ in range(result.intended)]
    return result, pairs_of(true, result.latency)


@pytest.mark.parametrize("name", LAWS)
def test_percentiles_are_those_that_were_injected(aws: LocalAws, name: str) -> None:
    agree(lambda longer: injected(aws, LAWS[name], longer))


STALL_SECONDS, SERVICE = 1.0, 0.02


def test_a_stall_of_the_runtime_is_in_every_percentile(aws: LocalAws) -> None:
    """200 TPS, 20 ms, and for a second nobody answers: callers wait from when they were due.

    Then a runtime of one core has 200 requests to see to, for longer than 1 % of their latency.
    So none may be lower than computed; how much higher is the machine's. The exact figures are
    those of a clock that jumps (tests/deploy/runtime/test_injected_latencies.py).
    """
    (process,) = (
        one
        for one in psutil.Process().children(recursive=True)
        if any(
            connection.laddr.port == aws.port
            for connection in one.net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        )
    )
    stood: list[float] = []

    def stall() -> None:
        time.sleep(3)  # the generator starts in one
        process.send_signal(signal.SIGSTOP)
        stood.append(time.time())
        time.sleep(STALL_SECONDS)
        stood.append(time.time())
        process.send_signal(signal.SIGCONT)

    aws.set_model_servers(
        {"*": SimulatedModelServer(ServiceTime.constant(SERVICE), concurrency=MANY)}
    )
    step = Step("stall", 6, ConstantArrivals(200))
    with GeneratorProcess(TARGET, PAYLOADS, environment=aws.environment()) as generator:
        staller = threading.Thread(target=stall)
        staller.start()
        result = generator.run(step)
        staller.join()
    assert result.completed == result.intended == result.latency.count == 1200
    met = with_stall(result.started_at, step, (stood[0], stood[1]), SERVICE)
    assert percentile_of(met, 99) > 0.8
    for true, measured in pairs_of(met, result.latency):
        assert measured > (1 - PRECISION) * true
    assert result.latency.percentile(50) < 0.5, "most came when it ran"


def test_streams_give_the_time_to_the_first_part(aws: LocalAws) -> None:
    result = run(
        aws,
        SimulatedModelServer(ServiceTime.constant(0.8), concurrency=MANY, stream_chunks=4),
        Step("stream", 3, ConstantArrivals(20)),
        replace(TARGET, streaming=True),
    )
    assert result.completed == 60
    assert result.first_byte is not None
    assert result.first_byte.count == 60
    assert result.first_byte.min >= 0.2
    # Three of the four parts, of 0.2 s each, are still to come then.
    assert result.latency.percentile(50) - result.first_byte.percentile(50) > 0.4
    assert result.latency.min >= 0.8


def test_failures_of_the_model_are_named(aws: LocalAws) -> None:
    result = run(
        aws,
        SimulatedModelServer(ServiceTime.constant(0.005), concurrency=MANY, failure_share=1.0),
        Step("failures", 1, ConstantArrivals(20)),
    )
    assert result.completed == 0
    assert result.errors == {"424 ModelError": 20}
