"""README.md's examples of metrics: what reaches Powertools, OpenTelemetry and StatsD."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any

import pytest
from aws_lambda_powertools import Metrics
from botocore.exceptions import ClientError
from opentelemetry import metrics as opentelemetry_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from low_latency_client import CallRecord

from .test_readme import BLOCKS, aws, local, service

__all__ = ["aws", "service"]  # the fixtures

GOOD = {"EndpointName": "sentiment", "Body": b'{"inputs": "fine"}'}
MISSING = {"EndpointName": "no-such-endpoint", "Body": b"{}"}
Run = Callable[[str], dict[str, Any]]


@pytest.fixture
def run(service: Any) -> Run:
    """Run the block that uses a package, with one good call and one that fails."""

    def names_of(block_with: str, **replaced: str) -> dict[str, Any]:
        (block,) = [block for block in BLOCKS if block_with in block]
        for old, new in replaced.items():
            block = block.replace(old, new)
        names: dict[str, Any] = {}
        exec(compile(local(block, service), "README.md", "exec"), names)
        client = names["client"]
        client.invoke_endpoint(**GOOD)
        with pytest.raises(ClientError):
            client.invoke_endpoint(**MISSING)
        client.close()
        return names

    return names_of


def test_powertools_writes_both_metrics(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    Metrics().clear_metrics()  # all objects of the class share one set
    metrics = run("aws_lambda_powertools")["metrics"]
    metrics.flush_metrics()
    written = json.loads(capsys.readouterr().out.strip().splitlines()[-1])
    (of_namespace,) = written["_aws"]["CloudWatchMetrics"]
    assert of_namespace["Namespace"] == "Checkout"
    assert len(written["EndpointLatency"]) == 2
    assert all(0 < latency < 20_000 for latency in written["EndpointLatency"])
    assert written["EndpointErrors"] == [0, 1]


def test_opentelemetry_gets_a_histogram(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = InMemoryMetricReader()
    meters = MeterProvider(metric_readers=[reader])
    monkeypatch.setattr(opentelemetry_metrics, "get_meter", meters.get_meter)
    run("opentelemetry")
    data = reader.get_metrics_data()
    assert data is not None
    (metric,) = data.resource_metrics[0].scope_metrics[0].metrics
    assert (metric.name, metric.unit) == ("endpoint.call.duration", "s")
    attributes = [dict(point.attributes or {}) for point in metric.data.data_points]
    assert attributes == [
        {"endpoint": "sentiment", "variant": "primary"},
        {"endpoint": "no-such-endpoint", "variant": "", "error.type": "ValidationError"},
    ]
    meters.shutdown()


def test_statsd_gets_a_datagram_for_each_call(run: Run) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(20)
        port = server.getsockname()[1]
        run("statsd", **{"8125": str(port)})["statsd"].close()
        good, failed = (server.recv(1_000).decode() for _ in range(2))
    assert good.startswith("endpoint.sentiment.ok:")
    assert failed.startswith("endpoint.no-such-endpoint.ValidationError:")
    assert good.endswith("|ms")


def test_the_record_has_the_fields_that_the_readme_names() -> None:
    fields = set(CallRecord.__dataclass_fields__)
    assert fields == {
        "operation",
        "endpoint_name",
        "variant",
        "seconds",
        "retries",
        "status",
        "error",
    }
