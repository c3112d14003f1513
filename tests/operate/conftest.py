"""The shipped settings file's stack, synthesised and deployed into a local AWS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from local_sagemaker import LocalAws, delete_stack, deploy_template

ROOT = Path(__file__).parents[2]
STACK = "LowLatencyEndpoint"
NAME = "sentiment"


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stack of endpoint.yaml, synthesised but for the warm-up.

    The warm-up really sends its thousands of requests; nothing here depends on it.
    """
    from aws_cdk import App, Environment

    from low_latency_endpoint import LowLatencyEndpointStack
    from low_latency_endpoint.settings import parse_settings

    data = yaml.safe_load((ROOT / "endpoint.yaml").read_text())
    sentiment = data["endpoints"]["sentiment"]
    sentiment |= {"endpoint_name": NAME, "warm_up": {**sentiment["warm_up"], "requests": 0}}
    folder = tmp_path_factory.mktemp("assembly")
    app = App(outdir=str(folder), context=json.loads((ROOT / "cdk.json").read_text())["context"])
    LowLatencyEndpointStack(
        app,
        STACK,
        settings=parse_settings(yaml.safe_dump(data)),
        env=Environment(account="123456789012", region="us-east-1"),
    )
    app.synth()
    return folder


# Once per module: a package's fixture lives on among the other tests of a worker, which reset the
# state that all in-process local AWSs share.
@pytest.fixture(scope="module")
def shipped(assembly: Path) -> Iterator[LocalAws]:
    """A local AWS that has the stack of endpoint.yaml."""
    # Every in-process local AWS of this process has the same state: leave none behind.
    with LocalAws.in_process(region="us-east-1") as aws:
        aws.reset()
        deploy_template(aws, assembly, STACK)
        yield aws
        delete_stack(aws, STACK)
        aws.reset()
