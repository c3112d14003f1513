"""An app with any number of ``LowLatencyEndpoint``s that share one network and one PrivateLink.

Usage: python -m benchmarks.pattern_app [number of endpoints]

Prints the seconds that building and synthesising took, without the start of Python and Node.js.
"""

from __future__ import annotations

import json
import sys
import time

from aws_cdk import App, Duration, Environment, Stack

from low_latency_endpoint import (
    ClientZones,
    Container,
    ContainerImage,
    InstanceType,
    LatencyTarget,
    LowLatencyEndpoint,
    MeasuredThroughput,
    ModelData,
)

from .measure import peak_megabytes

#: The most that the plan of one endpoint below may run.
INSTANCES = 16


def main(count: int) -> None:
    """Build the app and synthesise it."""
    started = time.perf_counter()
    app = App()
    stack = Stack(app, "Benchmark", env=Environment(account="123456789012", region="us-east-1"))
    first: LowLatencyEndpoint | None = None
    for number in range(count):
        endpoint = LowLatencyEndpoint(
            stack,
            f"Sentiment{number}",
            client_zones=None if first else ClientZones.of_ids("use1-az1", "use1-az2"),
            containers=[
                Container(
                    image=ContainerImage.from_uri(
                        "123456789012.dkr.ecr.us-east-1.amazonaws.com/sentiment:1"
                    ),
                    data=ModelData.from_uri("s3://models/sentiment/model.tar.gz"),
                    environment={"HF_TASK": "text-classification"},
                )
            ],
            instance_type=InstanceType("ml.g5.xlarge"),
            latency=LatencyTarget(p99=Duration.millis(200)),
            throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65),
            network=first.network if first else None,
            # The one network has room for all fleets; a single endpoint plans its own.
            network_max_instances=None if first or count == 1 else INSTANCES * count,
            private_link=first.private_link if first else None,
        )
        first = first or endpoint
    built = time.perf_counter()
    app.synth()
    ended = time.perf_counter()
    print(json.dumps({"build": built - started, "synth": ended - built, "peak": peak_megabytes()}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
