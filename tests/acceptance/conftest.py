"""A local AWS that serves the acceptance model, and what deploys into it without the CDK CLI."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from aws_cdk import App

from acceptance.app import IMAGE, TAG, build, stack_name
from acceptance.world import ONE_TRY, ROOT, World, target_of
from local_sagemaker import (
    DeploymentFailed,
    LocalAws,
    RuntimeOptions,
    delete_stack,
    deploy_template,
)
from local_sagemaker.model_servers import CommandModelServer
from low_latency_endpoint.plan.image_names import dlc_account

REGION = "us-east-1"
SPEED = 120.0
MODEL = {
    IMAGE[0]: CommandModelServer(
        (sys.executable, "-I", str(ROOT / "acceptance" / "model" / "serve.py"))
    )
}


def started() -> LocalAws:
    """A local AWS with a fast clock, ready for a run."""
    aws = LocalAws.start(
        region=REGION, model_servers=MODEL, runtime=RuntimeOptions(clock_speed=SPEED)
    )
    aws.add_image(f"{dlc_account(REGION)}.dkr.ecr.{REGION}.amazonaws.com/{':'.join(IMAGE)}")
    return aws


class WithoutCli:
    """Deploys the same app as the CDK CLI does, synthesised in this process."""

    def __init__(self, aws: LocalAws, folder: Path) -> None:
        self._aws, self._folder = aws, folder
        self._context = json.loads((ROOT / "cdk.json").read_text("utf-8"))["context"]

    def deploy(self, suffix: str, zones: list[str], variant: str) -> str:
        assembly = self._folder / f"{suffix}-{variant}"
        if not assembly.exists():
            assembly.mkdir(parents=True)
            app = App(outdir=str(assembly), context=self._context)
            build(
                app,
                suffix=suffix,
                zones=zones,
                variant=variant,
                account=self._aws.account,
                region=self._aws.region,
                folder=assembly,
            )
            app.synth()
        try:
            deploy_template(self._aws, assembly, stack_name(suffix), tags={TAG: suffix})
        except DeploymentFailed as failed:
            return failed.reason
        return ""

    def destroy(self, suffix: str, zones: list[str]) -> str:
        # Lambda keeps its network interfaces for half an hour, in which nobody measures anything.
        self._aws.set_clock_speed(5 * SPEED)
        try:
            delete_stack(self._aws, stack_name(suffix))
        except DeploymentFailed as failed:
            return failed.reason
        finally:
            self._aws.set_clock_speed(SPEED)
        return ""


@pytest.fixture(scope="session")
def aws() -> Iterator[LocalAws]:
    """One for all tests of this folder."""
    with started() as running:
        running.client("ssm").put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        yield running


@pytest.fixture(scope="session")
def world(aws: LocalAws, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The local AWS as the account under test."""

    def client(service: str) -> object:
        if service != "sagemaker-runtime":
            return aws.client(service)
        exports = aws.exports()
        return boto3.client(
            service,
            REGION,
            endpoint_url=aws.runtime_url(),
            config=ONE_TRY,
            aws_access_key_id=exports["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=exports["AWS_SECRET_ACCESS_KEY"],
        )

    folder = tmp_path_factory.mktemp("assemblies")
    return World(
        client, aws.account, REGION, target_of(aws.client("sts")), WithoutCli(aws, folder), SPEED
    )
