"""The generator on an endpoint of the local AWS: known service times, a stall, streams."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import psutil
import pytest

from low_latency_endpoint.load_test.arrivals import ConstantArrivals, PoissonArrivals
from low_latency_endpoint.load_test.generator_process import GeneratorProcess
from low_latency_endpoint.load_test.steps import Step, StepResult, Target
from low_latency_endpoint.local_aws import LocalAws
from low_latency_endpoint.local_aws.model_servers import ServiceTime, SimulatedModelServer

from .servers import PAYLOADS, agree, serve_sentiment

TARGET = Target("sentiment", "us-east-1", timeout_seconds=20)
MANY = 1000  # workers of the simulated server: nothing waits for another
LAW = ServiceTime.lognormal(p50=0.5, p99=1.5)


@pytest.fixture(scope="module")
def aws() -> Iterator[LocalAws]:
    """A local AWS with one endpoint."""
    with LocalAws.start(
            region="us-east-1", model_servers={"*": SimulatedModelServer(LAW)}) as started:
        serve_sentiment(started, instances=1)
        yield started


def run(aws: LocalAws, server: SimulatedModelServer, step: Step,
        target: Target = TARGET) -> StepResult:
    """One step on the endpoint, with that model server behind it."""
    aws.set_model_servers({"*": server})
    with GeneratorProcess(target, PAYLOADS, environment=aws.environment()) as generator:
        return generator.run(step)


def injected(aws: LocalAws, number: int) -> tuple[StepResult, list[tuple[float, float]]]:
    """A run on an endpoint of its own, its percentiles beside the runtime's ModelLatency."""
    variant, name = f"primary-{number}", f"fresh-{number}"
    sagemaker = aws.client("sagemaker")
    sagemaker.create_endpoint_config(EndpointConfigName=name, ProductionVariants=[{
        "VariantName": variant, "InstanceType": "ml.c7i.xlarge", "ModelName": "model",
        "InitialInstanceCount": 1}])
    sagemaker.create_endpoint(EndpointName=name, EndpointConfigName=name)
    sagemaker.get_waiter("endpoint_in_service").wait(
        EndpointName=name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    result = run(aws, SimulatedModelServer(LAW, concurrency=MANY, seed=number),
                 Step("lognormal", 8, PoissonArrivals(150), seed=number),
                 replace(TARGET, endpoint_name=name))
    assert result.completed == result.intended > 1000
    return result, list(zip(model_latency(aws, name, variant),
                            result.latency.quantiles((0.5, 0.9, 0.95, 0.99)), strict=True))


def test_percentiles_are_those_that_were_injected(aws: LocalAws) -> None:
    agree(injected(aws, number) for number in range(3))


def model_latency(aws: LocalAws, endpoint: str, variant: str) -> list[float]:
    """p50, p90, p95 and p99 of ModelLatency in seconds."""
    aws.flush_metrics()
    now = aws.runtime_time()
    points = aws.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SageMaker", MetricName="ModelLatency", Period=86400,
        StartTime=now.replace(hour=0, minute=0, second=0, microsecond=0), EndTime=now,
        ExtendedStatistics=["p50", "p90", "p95", "p99"],
        Dimensions=[{"Name": "EndpointName", "Value": endpoint},
                    {"Name": "VariantName", "Value": variant}])["Datapoints"]
    (point,) = points
    return [point["ExtendedStatistics"][name] / 1e6 for name in ("p50", "p90", "p95", "p99")]


def test_a_stall_of_the_runtime_shows_in_the_tail(aws: LocalAws) -> None:
    """100 TPS, 20 ms, and for two seconds nobody answers: p99 is what callers waited."""
    (process,) = (one for one in psutil.Process().children(recursive=True)
                  if any(connection.laddr.port == aws.port
                         for connection in one.net_connections("tcp")
                         if connection.status == psutil.CONN_LISTEN))

    def stall() -> None:
        time.sleep(4)
        process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        process.send_signal(signal.SIGCONT)

    aws.set_model_servers(
        {"*": SimulatedModelServer(ServiceTime.constant(0.02), concurrency=MANY)})
    with GeneratorProcess(TARGET, PAYLOADS, environment=aws.environment()) as generator:
        staller = threading.Thread(target=stall)
        staller.start()
        result = generator.run(Step("stall", 12, ConstantArrivals(100)))
        staller.join()
    assert result.completed == result.intended == 1200
    assert result.latency.percentile(99) >= 1.8
    assert result.latency.percentile(50) < 0.2


def test_streams_give_the_time_to_the_first_part(aws: LocalAws) -> None:
    result = run(
        aws, SimulatedModelServer(ServiceTime.constant(0.8), concurrency=MANY, stream_chunks=4),
        Step("stream", 3, ConstantArrivals(20)), replace(TARGET, streaming=True))
    assert result.completed == 60
    assert result.first_byte is not None
    assert result.first_byte.count == 60
    assert result.first_byte.min >= 0.2
    assert result.first_byte.percentile(50) < 0.4
    assert result.latency.min >= 0.8


def test_failures_of_the_model_are_named(aws: LocalAws) -> None:
    result = run(aws, SimulatedModelServer(ServiceTime.constant(0.005), concurrency=MANY,
                                           failure_share=1.0),
                 Step("failures", 1, ConstantArrivals(20)))
    assert result.completed == 0
    assert result.errors == {"424 ModelError": 20}
