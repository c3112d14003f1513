"""From an empty folder, Python and the wheel to an endpoint that serves, with the CDK CLI."""

from __future__ import annotations

import json
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


class Folder:
    """A folder in which somebody types commands, with one Python and the local AWS."""

    def __init__(self, path: Path, python: Path, aws: LocalAws) -> None:
        self.path = path
        environment = aws.environment()
        environment.pop("PYTHONPATH", None)
        if str(python) == sys.executable:  # not the wheel's
            environment["PYTHONPATH"] = str(ROOT / "constructs")
        node = Path(sys.executable).parent
        folders = (python.parent, ROOT / "node_modules" / ".bin", node, os.environ["PATH"])
        self._environment = {**environment, "PATH": os.pathsep.join(map(str, folders))}

    def run(self, *command: str, **more: str) -> str:
        done = subprocess.run(
            command,
            cwd=self.path,
            env={**self._environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stdout)
        return done.stdout

    def test(self) -> None:
        """The test that comes with it: its first run keeps the template, the next compares."""
        command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
        for more in ({}, {"CI": "true"}):
            self.run(*command, **more, PYTHONPATH=str(ROOT / "constructs"))
        kept = (self.path / "tests" / "template.json").read_text(encoding="utf-8")
        assert "AWS::SageMaker::Endpoint" in kept


@pytest.mark.realtime  # builds the wheel, and deploys with the CDK CLI
def test_from_an_empty_folder_to_an_endpoint(
    their_python: Path, aws: LocalAws, tmp_path: Path
) -> None:
    folder = Folder(tmp_path, their_python, aws)
    folder.run(
        "low-latency", "init", "--model-data=s3://my-models/m.tar.gz", "--zones=use1-az1,use1-az2"
    )
    settings = load_settings(tmp_path / "endpoint.yaml")
    folder.test()
    list(stand_ins_for_images(aws, settings))
    with uploaded(aws, model_uris(settings)):
        folder.run("cdk", "bootstrap", "--no-notices", f"aws://{aws.account}/us-east-1")
        folder.run("cdk", "deploy", "--no-notices", "--require-approval", "never")
    sagemaker = aws.client("sagemaker")
    assert sagemaker.describe_endpoint(EndpointName="sentiment")["EndpointStatus"] == "InService"


@pytest.mark.realtime  # the CDK CLI looks a VPC up
def test_in_a_vpc_that_exists_what_was_looked_up_serves_the_test(
    aws: LocalAws, tmp_path: Path
) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    subnets = {
        ec2.create_subnet(VpcId=vpc, CidrBlock=block, AvailabilityZone=zone)["Subnet"]["SubnetId"]
        for block, zone in (("10.7.0.0/20", "us-east-1a"), ("10.7.16.0/20", "us-east-1b"))
    }
    folder = Folder(tmp_path, Path(sys.executable), aws)
    folder.run("low-latency", "init", "--model-data=s3://my-models/m.tar.gz", f"--vpc-id={vpc}")
    stated = load_settings(tmp_path / "endpoint.yaml")
    assert set((stated.network.subnets or {}).values()) == subnets
    folder.run("cdk", "synth", "--no-notices", "--quiet")
    folder.test()
    template = json.loads((tmp_path / "tests" / "template.json").read_text(encoding="utf-8"))
    (model,) = (
        each["Properties"]
        for each in template["Resources"].values()
        if each["Type"] == "AWS::SageMaker::Model"
    )
    assert set(model["VpcConfig"]["Subnets"]) == subnets
