"""From an empty folder, Python and the wheel to an endpoint that serves, with the CDK CLI."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.demo_surroundings import model_uris, stand_ins_for_images, uploaded
from local_sagemaker import LocalAws
from low_latency_endpoint.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def aws() -> Iterator[LocalAws]:
    with LocalAws.start(region="us-east-1") as aws:
        aws.set_clock_speed(300)
        yield aws


@pytest.mark.realtime  # builds the wheel, and deploys with the CDK CLI
def test_from_an_empty_folder_to_an_endpoint(
    their_python: Path, aws: LocalAws, tmp_path: Path
) -> None:
    environment = {
        **{name: value for name, value in aws.environment().items() if name != "PYTHONPATH"},
        "PATH": os.pathsep.join(
            [
                str(their_python.parent),
                str(ROOT / "node_modules" / ".bin"),
                str(Path(sys.executable).parent),  # node
                os.environ["PATH"],
            ]
        ),
    }

    def run(*command: str) -> str:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout)
        return done.stdout

    run("low-latency", "init", "--model-data=s3://my-models/m.tar.gz", "--zones=use1-az1,use1-az2")
    settings = load_settings(tmp_path / "endpoint.yaml")
    # The test that comes with it: its first run keeps the template, the next ones compare.
    tests = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
    run(*tests)
    assert "AWS::SageMaker::Endpoint" in (tmp_path / "tests" / "template.json").read_text("utf-8")
    run("env", "CI=true", *tests)

    list(stand_ins_for_images(aws, settings))
    with uploaded(aws, model_uris(settings)):
        run("cdk", "bootstrap", "--no-notices", f"aws://{aws.account}/us-east-1")
        run("cdk", "deploy", "--no-notices", "--require-approval", "never")
    sagemaker = aws.client("sagemaker")
    assert sagemaker.describe_endpoint(EndpointName="sentiment")["EndpointStatus"] == "InService"
