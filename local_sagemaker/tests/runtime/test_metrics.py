"""What CloudWatch has after requests whose number and fate the test knows."""

from __future__ import annotations

import time

import pytest
from botocore.exceptions import ClientError
from hosting_site import taking

from local_sagemaker.cloudwatch.metric_store import metric_key
from local_sagemaker.cloudwatch.state import state_at
from local_sagemaker.model_servers import LanguageModelServer, SimulatedModelServer
from local_sagemaker.runtime.meter import INVOCATIONS, Meter

UTILIZATION = "/aws/sagemaker/Endpoints"


def test_each_minute_has_the_requests_that_were_sent_in_it(served):
    here, name = served({"InitialInstanceCount": 4}, model=taking(0.0))
    here.to_full_minute()
    for count in (5, 0, 8):
        here.invoke_many(name, count)
        here.aws.advance(60)
    assert here.minutes(name, "Invocations", "Sum", 3) == [5, 0, 8]
    assert here.minutes(name, "InvocationsPerInstance", "Sum", 3) == [1.25, 0, 2]
    assert here.minutes(name, "ModelLatency", "SampleCount", 3) == [5, None, 8]


def test_requests_are_counted_however_many_latencies_they_have():
    """PutMetricData takes 150 values of a metric; what SageMaker itself publishes has no such limit."""
    place = ("111122223333", "us-east-1")
    dimensions = (("EndpointName", "many"), ("VariantName", "primary"))
    meter = Meter()
    for latency in range(400):
        meter.count(place, [dimensions], 0.0, 1, 200, latency, 10)
    meter.flush()
    named = [{"Name": name, "Value": value} for name, value in dimensions]
    for metric in ("Invocations", "ModelLatency", "OverheadLatency"):
        key = metric_key(INVOCATIONS, metric, named)
        samples = state_at(place).metrics.between(key, 0, 60, None)
        assert sum(sample.count for sample in samples) == 400, metric


def test_latencies_are_microseconds_and_add_up_to_less_than_the_caller_waits(served):
    here, name = served(model=taking(0.02, concurrency=4))
    here.invoke_many(name, 1)
    waited = []
    for _ in range(10):
        began = time.perf_counter()
        here.invoke(name)
        waited.append(time.perf_counter() - began)
    model = here.statistics(
        name, "ModelLatency", "Minimum", "Average", "SampleCount", "Sum", "p50", "p99"
    )
    overhead = here.statistics(name, "OverheadLatency", "Minimum", "Sum", "SampleCount")
    assert model["SampleCount"] == overhead["SampleCount"] == 11
    assert model["Minimum"] >= 20_000
    assert model["Minimum"] <= model["p50"] <= model["p99"]
    assert overhead["Minimum"] > 0
    assert here.statistics(name, "OverheadLatency", "p99") == {}
    # The first request was not timed here; the ten others are part of the sums.
    assert model["Sum"] - 20_000 > 200_000
    assert (model["Minimum"] + overhead["Minimum"]) / 1e6 < max(waited)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (500, ("Invocation5XXErrors", "Invocation4XXErrors")),
        (404, ("Invocation4XXErrors", "Invocation5XXErrors")),
    ],
)
def test_errors_by_kind_as_sum_and_as_share(served, status, expected):
    here, name = served()
    here.invoke_many(name, 6)
    here.aws.set_model_servers(
        {"model": SimulatedModelServer(failure_share=1.0, failure_status=status)}
    )
    for _ in range(2):
        with pytest.raises(ClientError):
            here.invoke(name)
    yes, no = expected
    assert here.statistics(name, yes, "Sum", "Average") == {"Sum": 2, "Average": 0.25}
    assert here.statistics(name, no, "Sum", "Average") == {"Sum": 0, "Average": 0}
    errors = here.statistics(name, "InvocationModelErrors", "Sum", "Average")
    assert errors == {"Sum": 2, "Average": 0.25}
    assert here.statistics(name, "Invocations", "Sum") == {"Sum": 8}


def test_what_names_no_endpoint_counts_nowhere(site):
    here = site()
    with pytest.raises(ClientError):
        here.invoke("nowhere")
    here.aws.flush_metrics()
    metrics = here.aws.client("cloudwatch").list_metrics(
        Namespace="AWS/SageMaker", Dimensions=[{"Name": "EndpointName", "Value": "nowhere"}]
    )["Metrics"]
    assert metrics == []


def test_concurrency_by_ten_seconds_is_the_busiest_moment_of_each_instance(served):
    here, name = served(model=taking(0.4, concurrency=2))
    here.aws.advance(10)
    here.invoke_many(name, 5, at_once=5)  # three of them queue in the container
    here.aws.advance(10)
    here.aws.advance(10)
    found = here.statistics(name, "ConcurrentRequestsPerModel", "Maximum", "Minimum")
    assert found == {"Maximum": 5, "Minimum": 0}


def test_utilization_is_what_the_model_server_tells(served):
    busy = taking(0.05, cpu_busy=400.0, memory=62.5)
    here, name = served(model=busy, MetricsConfig={"EnableEnhancedMetrics": False})
    here.aws.advance(60)
    idle = here.statistics(name, "CPUUtilization", "Average", namespace=UTILIZATION)
    here.invoke_many(name, 8)
    here.aws.advance(60)
    statistics = {
        metric: here.statistics(name, metric, "Maximum", namespace=UTILIZATION)["Maximum"]
        for metric in ("CPUUtilization", "MemoryUtilization")
    }
    assert idle == {"Average": 2.0}
    assert 100 < statistics["CPUUtilization"] <= 400
    assert statistics["MemoryUtilization"] == 62.5
    here.aws.set_model_servers({"model": LanguageModelServer()})
    with_gpu = here.endpoint()
    here.aws.advance(60)
    memory = here.statistics(with_gpu, "GPUMemoryUtilization", "Maximum", namespace=UTILIZATION)
    assert memory == {"Maximum": 92.0}


@pytest.mark.parametrize("enhanced", [False, True])
def test_dimensions_by_instance_only_with_enhanced_metrics(served, enhanced):
    here, name = served(MetricsConfig={"EnableEnhancedMetrics": enhanced})
    here.invoke(name)
    here.aws.advance(60)
    here.aws.flush_metrics()
    metrics = here.aws.client("cloudwatch").list_metrics(
        Dimensions=[{"Name": "EndpointName", "Value": name}]
    )["Metrics"]
    found = {(m["MetricName"], tuple(sorted(d["Name"] for d in m["Dimensions"]))) for m in metrics}
    base = ("EndpointName", "VariantName")
    assert ("Invocations", base) in found
    assert ("CPUUtilization", base) in found
    # AWS lists it for what counts requests, not for utilization.
    own = ("EndpointConfigName", *base)
    assert ("Invocations", own) in found
    assert not {"CPUUtilization", "ConcurrentRequestsPerModel"} & {
        metric for metric, names in found if names == own
    }
    more = {names for _, names in found if names not in (base, own)}
    by_instance = ("EndpointName", "InstanceId", "VariantName")
    by_zone = ("AvailabilityZone", "EndpointName", "InstanceType", "Region", "VariantName")
    assert more == ({by_instance, by_zone} if enhanced else {by_zone})
