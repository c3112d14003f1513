"""An app with one ``LowLatencyEndpoint``.

Prints the seconds that building and synthesising took, without the start of Python and Node.js.
"""

from __future__ import annotations

import json
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


def main() -> None:
    """Build the app and synthesise it."""
    started = time.perf_counter()
    app = App()
    LowLatencyEndpoint(
        Stack(app, "Benchmark", env=Environment(account="123456789012", region="us-east-1")),
        "Sentiment",
        client_zones=ClientZones.of_ids("use1-az1", "use1-az2"),
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
    )
    built = time.perf_counter()
    app.synth()
    ended = time.perf_counter()
    print(json.dumps({"build": built - started, "synth": ended - built, "peak": peak_megabytes()}))


if __name__ == "__main__":
    main()
