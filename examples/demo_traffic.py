"""The demo's calls and its faults: traffic, what is made of it, and what goes wrong on purpose."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from examples.demo_terminal import StepFailed, low_latency
from local_sagemaker import LocalAws
from local_sagemaker.model_servers.specifications import ServiceTime, SimulatedModelServer

# The model of the demo: fast, so that the whole life takes two to four minutes, with as many
# workers as the instance type has vCPUs, and slow in the first requests that an instance gets.
HEALTHY = SimulatedModelServer(
    service_time=ServiceTime.lognormal(p50=0.010, p99=0.025),
    concurrency=48,
    cpu_busy=4800,
    memory=40,
    cold_requests=50,
    cold_factor=5,
)
# Of the load test: so long, and at rates so low, that a machine with two busy cores keeps up.
STEADY = replace(HEALTHY, service_time=ServiceTime.lognormal(p50=0.040, p99=0.070), cold_requests=0)
# Full instances: fifteen times slower, and one request at a time.
FULL = replace(HEALTHY, service_time=ServiceTime.lognormal(p50=0.150, p99=0.250), concurrency=1)
# One of a variant's instances is thirty times slower than the others.
ONE_SLOW = replace(HEALTHY, slow_instances={0: 30.0})

# The runtime's clock runs so many times faster, and began in the past, where reports look.
CLOCK_SPEED = 30
TRAFFIC_SECONDS = 14  # seven minutes by that clock
CALLERS = 8


def endpoint_names(aws: LocalAws) -> list[str]:
    """The endpoints that are there."""
    found = aws.client("sagemaker").list_endpoints()["Endpoints"]
    return [endpoint["EndpointName"] for endpoint in found]


class Traffic(NamedTuple):
    """Requests that were answered, and when the last of them was, by the local AWS's clock."""

    requests: int
    until: datetime


def traffic(aws: LocalAws, seconds: float) -> Traffic:
    """Call every endpoint for some seconds, as fast as so many callers can."""
    names = endpoint_names(aws)
    ends = time.monotonic() + seconds

    def call(number: int) -> int:
        client = aws.client("sagemaker-runtime")
        answers = 0
        while time.monotonic() < ends:
            client.invoke_endpoint(
                EndpointName=names[number % len(names)],
                ContentType="application/json",
                Body=b'{"inputs": "I am super happy right now."}',
            )
            answers += 1
        return answers

    with ThreadPoolExecutor(CALLERS) as callers:
        total = sum(callers.map(call, range(CALLERS)))
    until = aws.runtime_time()
    aws.flush_metrics()
    return Traffic(total, until)


def diagnose(aws: LocalAws, until: datetime, *expected: str) -> None:
    """Diagnose every endpoint over the traffic sent until then; it must say what is the case."""
    minutes = TRAFFIC_SECONDS * CLOCK_SPEED // 60
    for name in endpoint_names(aws):
        said = low_latency(
            aws,
            "diagnose",
            name,
            "--since",
            f"{minutes}m",
            "--until",
            until.strftime("%Y-%m-%dT%H:%M:%SZ"),
        )
        if not any(words in said for words in expected):
            raise StepFailed(
                "the diagnosis does not say what was the case",
                said.splitlines(),
                f"Expected: {' or '.join(expected)}.",
            )


def lower_the_maximum(aws: LocalAws) -> int:
    """Lower every variant's maximum by hand to the instances it has; gives their number."""
    scaling, sagemaker = aws.client("application-autoscaling"), aws.client("sagemaker")
    number = 0
    for target in scaling.describe_scalable_targets(ServiceNamespace="sagemaker")[
        "ScalableTargets"
    ]:
        _, name, _, variant = target["ResourceId"].split("/")
        variants = sagemaker.describe_endpoint(EndpointName=name)["ProductionVariants"]
        (found,) = [v for v in variants if v["VariantName"] == variant]
        number = found["CurrentInstanceCount"]
        scaling.register_scalable_target(
            **{k: target[k] for k in ("ServiceNamespace", "ResourceId", "ScalableDimension")},
            MinCapacity=min(target["MinCapacity"], number),
            MaxCapacity=number,
        )
    return number


def warm_up_reports(aws: LocalAws) -> Iterator[dict[str, Any]]:
    """What the stack's warm-up functions have logged."""
    logs = aws.client("logs")
    for group in logs.describe_log_groups()["logGroups"]:
        for event in logs.filter_log_events(logGroupName=group["logGroupName"])["events"]:
            with contextlib.suppress(ValueError):
                for line in event["message"].splitlines():
                    entry = json.loads(line)
                    if entry.get("event") == "warm-up":
                        yield entry
