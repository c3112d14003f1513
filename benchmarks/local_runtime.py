"""What the local runtime itself adds to a request: boto3 at a steady rate over kept connections.

The same caller at the same rate calls the same model server directly, in turns: the difference is
what stands between. boto3's own work (signing, parsing) is not the runtime's, so the caller that
counts has none; what boto3 sees is told beside it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from local_sagemaker import LocalAws
from local_sagemaker.model_servers import ServiceTime, SimulatedModelServer, tasks
from local_sagemaker.model_servers.specifications import to_document

from .measure import model_role, sized

GOAL_MS = 1.0
RATE = 200
SERVICE_MS = 5.0
_IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/bench:1"
_NAME = "bench"


@dataclass(frozen=True)
class Added:
    """Milliseconds that a request takes longer than the same one sent to the model directly."""

    requests: int
    rate: float
    p50: float
    p99: float
    direct_p50: float
    """Of the model server without the runtime."""
    told_average: float
    """OverheadLatency as the local CloudWatch has it."""
    boto3_p50: float
    """The same as p50 with boto3 as the caller, whose own work is in it."""


def deploy(aws: LocalAws, instances: int) -> None:
    """Create the endpoint and wait for it."""
    sagemaker = aws.client("sagemaker")
    sagemaker.create_model(
        ModelName=_NAME, ExecutionRoleArn=model_role(aws), PrimaryContainer={"Image": _IMAGE}
    )
    routing = {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    sagemaker.create_endpoint_config(
        EndpointConfigName=_NAME,
        ProductionVariants=[
            {
                "VariantName": "primary",
                "ModelName": _NAME,
                "InstanceType": "ml.c7i.xlarge",
                "RoutingConfig": routing,
                "InitialInstanceCount": instances,
            }
        ],
    )
    sagemaker.create_endpoint(EndpointName=_NAME, EndpointConfigName=_NAME)
    while sagemaker.describe_endpoint(EndpointName=_NAME)["EndpointStatus"] == "Creating":
        time.sleep(0.02)


def at_a_rate(call: Callable[[], None], rate: float, seconds: float, threads: int) -> list[float]:
    """Call at a steady rate; the seconds that each call took."""
    times: list[float] = []
    begin = time.perf_counter() + 0.2
    count = int(rate * seconds)

    def one(number: int) -> None:
        time.sleep(max(0.0, begin + number / rate - time.perf_counter()))
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(one, number) for number in range(count)]:
            done.result()
    return times


def percentile(values: list[float], share: float) -> float:
    """The value that a share of all others does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def raw_caller(url: str, path: str, key: str = "") -> Callable[[], None]:
    """Give a caller with a kept connection per thread and next to no work of its own."""
    kept = threading.local()
    headers = {"Content-Type": "application/json"}
    if key:  # whose and how old it is, is asked; the signature is not computed
        headers["X-Amz-Date"] = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers["Authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={key}/20260101/us-east-1/sagemaker/aws4_request, "
            f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}"
        )
    host = url.removeprefix("http://")

    def call() -> None:
        connection = getattr(kept, "connection", None)
        if connection is None:
            connection = kept.connection = http.client.HTTPConnection(host)
            connection.connect()
        connection.request("POST", path, b"{}", headers)
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"{path} answered {response.status}")

    return call


@contextlib.contextmanager
def directly(server: SimulatedModelServer) -> Iterator[str]:
    """Run the model server alone, in a process of its own; gives its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "SAGEMAKER_BIND_TO_PORT": str(port),
        "LOCAL_SIMULATION": json.dumps(to_document(server)),
    }
    with subprocess.Popen([sys.executable, "-m", tasks.__name__], env=environment) as process:
        try:
            for _ in range(200):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def told(aws: LocalAws, metric: str) -> float:
    """The average of a latency metric in milliseconds."""
    aws.flush_metrics()
    now = datetime.now(UTC)
    points: list[dict[str, Any]] = aws.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/SageMaker",
        MetricName=metric,
        Period=3600,
        Statistics=["Average"],
        Dimensions=[
            {"Name": "EndpointName", "Value": _NAME},
            {"Name": "VariantName", "Value": "primary"},
        ],
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(minutes=1),
    )["Datapoints"]
    return float(statistics.mean(point["Average"] for point in points)) / 1000.0


def measure(rate: float = RATE, seconds: float = 2.0, rounds: int = 5, threads: int = 8) -> Added:
    """Measure at a rate: the ways to the model take turns, so many seconds each."""
    server = SimulatedModelServer(
        service_time=ServiceTime.constant(SERVICE_MS / 1000.0), concurrency=16
    )
    with directly(server) as url, LocalAws.start(model_servers={"bench": server}) as aws:
        deploy(aws, instances=4)
        runtime = aws.client("sagemaker-runtime")

        def boto3_call() -> None:
            runtime.invoke_endpoint(EndpointName=_NAME, Body=b"{}")["Body"].read()

        callers = {
            "direct": raw_caller(url, "/invocations"),
            "runtime": raw_caller(
                aws.runtime_url(),
                f"/endpoints/{_NAME}/invocations",
                aws.exports()["AWS_ACCESS_KEY_ID"],
            ),
            "boto3": boto3_call,
        }
        times: dict[str, list[float]] = {name: [] for name in callers}
        for number in range(rounds + 1):
            for name, call in callers.items():
                found = at_a_rate(call, rate, seconds, threads)
                if number:  # the first round opens connections
                    times[name] += found
        overhead = told(aws, "OverheadLatency")
    p50 = {name: 1000.0 * statistics.median(values) for name, values in times.items()}
    p99 = {name: 1000.0 * percentile(values, 0.99) for name, values in times.items()}
    return Added(
        requests=len(times["runtime"]),
        rate=rate,
        p50=p50["runtime"] - p50["direct"],
        p99=p99["runtime"] - p99["direct"],
        direct_p50=p50["direct"],
        told_average=overhead,
        boto3_p50=p50["boto3"] - p50["direct"],
    )


def report(line: Callable[..., None], heading: Callable[[str], None]) -> None:
    """Measure and print, by the benchmarks' own functions."""
    found = measure(seconds=sized(2.0, 0.2), rounds=sized(5, 1))
    heading(f"The local runtime: {found.rate:g} requests per second, kept connections")
    line("the model server alone, p50", f"{found.direct_p50:.2f} ms")
    line("added by the runtime, p50", f"{found.p50:.2f} ms", f"below {GOAL_MS:g} ms")
    line("p99 against p99", f"{found.p99:+.2f} ms")
    line("OverheadLatency as its CloudWatch tells it, average", f"{found.told_average:.2f} ms")
    line("boto3 instead of bare sockets, p50 beyond the model alone", f"{found.boto3_p50:.2f} ms")


def main() -> int:
    """Run this benchmark alone."""
    report(
        lambda what, result, goal="": print(f"  {what:<58} {result:>12}   {goal}"),
        lambda text: print(f"\n{text}"),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
