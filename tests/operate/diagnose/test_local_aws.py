"""The whole way: metrics put into a deployed endpoint of the local AWS, read back by the CLI."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from botocore.exceptions import ClientError
from hosting_site import Site

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer
from local_sagemaker.runtime.options import RuntimeOptions
from low_latency_endpoint.operate.diagnose import thresholds
from tests.operate.conftest import NAME

from .conftest import Diagnosed

_MINUTES = 30


def _put(
    aws: LocalAws, end: datetime, *, milliseconds: list[float], cpu: float, requests: float
) -> None:
    """Half an hour of one-minute values: the same of 24 instances in each."""
    client = aws.client("cloudwatch")
    dimensions = [
        {"Name": "EndpointName", "Value": NAME},
        {"Name": "VariantName", "Value": "primary"},
    ]

    def put(namespace: str, metric: str, values: list[float], counts: list[float]) -> None:
        for start in range(1, _MINUTES + 1, 10):
            client.put_metric_data(
                Namespace=namespace,
                MetricData=[
                    {
                        "MetricName": metric,
                        "Dimensions": dimensions,
                        "Timestamp": end - timedelta(minutes=minute),
                        "Values": values,
                        "Counts": counts,
                    }
                    for minute in range(start, start + 10)
                ],
            )

    each = requests / len(milliseconds)
    latencies = [1000 * ms for ms in milliseconds]
    put("AWS/SageMaker", "ModelLatency", latencies, [each] * len(milliseconds))
    put("AWS/SageMaker", "OverheadLatency", [6000.0], [requests])
    put("AWS/SageMaker", "Invocations", [1.0], [requests])
    put("AWS/SageMaker", "InvocationsPerInstance", [1 / 24], [requests])
    put("/aws/sagemaker/Endpoints", "CPUUtilization", [48 * cpu], [24])


def test_the_shipped_stack(shipped: LocalAws, diagnosed: Diagnosed) -> None:
    end = datetime.now(UTC).replace(second=0, microsecond=0)
    _put(shipped, end, milliseconds=[30, 35, 40, 45, 60], cpu=45, requests=100_000)
    made = diagnosed(shipped, NAME)
    assert (made["findings"], made["unknown"]) == ([], [])
    model, overhead = made["latency_ms"]["primary"]
    assert (model["limit"], overhead["limit"]) == ("p99 160 ms", "Average 40 ms")
    assert (model["p50"], overhead["average"]) == (pytest.approx(40, rel=0.15), pytest.approx(6))

    end -= timedelta(hours=2)
    _put(shipped, end, milliseconds=[250, 300, 350, 400, 600], cpu=97, requests=228_000)
    made = diagnosed(shipped, NAME, "--until", end.isoformat())
    (finding,) = made["findings"]
    assert finding["id"] == "LLD102"
    words = " ".join(each["text"] for each in finding["evidence"])
    assert "all 24 instances that scaling allows" in words
    assert "up to 3,800 requests a second, planned for 1,000" in words  # by the stack's template
    assert {
        "key": "instances.max",
        "value": "43",  # 3,800 a second at 5,400 a minute each
        "why": "serves the load of this window at the scaling target",
    } in finding["changes"]


def test_a_cuda_13_image_on_the_default_driver(diagnosed: Diagnosed) -> None:
    """Twenty minutes old by a clock that stands still: Creating, and nothing logged."""
    options = RuntimeOptions(clock_speed=0, clock_start=time.time() - 1200)
    servers = {"vllm": SimulatedModelServer()}
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"
    with LocalAws.in_process(model_servers=servers, runtime=options) as aws:
        site = Site(aws)
        variant = {"ModelName": site.model(Image=image), "InstanceType": "ml.g6e.12xlarge"}
        endpoint = site.endpoint(variant, wait=False)
        (finding,) = diagnosed(aws, endpoint, by_the_wall=True)["findings"]
        assert finding["id"] == "LLD119"
        assert {
            "key": "inference_ami",
            "value": "al2023-ami-sagemaker-inference-gpu-4-1",
            "why": "a driver that supports the image's CUDA",
        } in finding["changes"]

        # The container ends by the machine's clock, and SageMaker gives up by the local AWS's.
        def ended(described: dict[str, str]) -> bool:
            aws.advance(300)
            return described["EndpointStatus"] == "Failed"

        site.until(endpoint, ended)
        site.delete()


def test_time_outs_count_as_aws_counts_them(
    diagnosed: Diagnosed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real requests that reach the time limit, which is shorter here: no 5XX, only model errors."""
    monkeypatch.setattr(thresholds, "TIME_LIMITS_MS", ((250, 2000),))
    options = RuntimeOptions(clock_speed=0, clock_start=time.time() - 7200, invocation_timeout=0.25)
    slow = SimulatedModelServer(service_time=ServiceTime.constant(2), concurrency=16)
    with LocalAws.in_process(model_servers={"*": slow}, runtime=options) as aws:
        site = Site(aws)
        endpoint = site.endpoint({}, wait=False)

        def in_service(described: dict[str, str]) -> bool:
            aws.advance(5)
            return described["EndpointStatus"] == "InService"

        site.until(endpoint, in_service)
        for _ in range(6):
            with pytest.raises(ClientError, match="timed out while waiting"):
                site.invoke_many(endpoint, 4, at_once=4)
            aws.advance(60)
        counted = [
            site.statistics(endpoint, metric, "Sum")["Sum"]
            for metric in ("Invocations", "Invocation5XXErrors", "InvocationModelErrors")
        ]
        assert counted == [24, 0, 24]
        until = aws.runtime_time().isoformat()
        (finding,) = diagnosed(aws, endpoint, "--until", until)["findings"]
        assert finding["id"] == "LLD405"
