"""A local AWS that serves the acceptance model, and what deploys into it without the CDK CLI."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from aws_cdk import App

from local_sagemaker import (
    DeploymentFailed,
    LocalAws,
    RuntimeOptions,
    delete_stack,
    deploy_template,
)
from local_sagemaker.model_servers import CommandModelServer
from low_latency_endpoint.facts.images import dlc_account, tei_accounts
from low_latency_endpoint.plan.serving_containers import serving_images
from tests.hub_of_files import FakeHub, FakeModel
from tools.acceptance.app import IMAGE, TAG, build, stack_name
from tools.acceptance.hub_model import HubModel
from tools.acceptance.world import ONE_TRY, ROOT, World, target_of

REGION = "us-east-1"
SPEED = 120.0
SERVER = CommandModelServer(
    (sys.executable, "-I", str(ROOT / "tools" / "acceptance" / "model" / "serve.py"))
)
(TEI,) = (each for each in serving_images() if (each.server, each.accelerator) == ("tei", None))
HUB_MODEL = "acme/tiny"
_FILES = {
    "config.json": json.dumps(
        {"architectures": ["BertModel"], "model_type": "bert", "max_position_embeddings": 512}
    ).encode(),
    "model.safetensors": (2).to_bytes(8, "little") + b"{}" + bytes(100_000),
    "tokenizer.json": b"{}",
}


def started() -> LocalAws:
    """A local AWS with a fast clock, ready for a run."""
    aws = LocalAws.start(
        region=REGION,
        model_servers={IMAGE[0]: SERVER, TEI.repository: SERVER},
        runtime=RuntimeOptions(clock_speed=SPEED),
    )
    for account, image in (
        (dlc_account(REGION), ":".join(IMAGE)),
        (tei_accounts()[REGION], f"{TEI.repository}:{TEI.tag}"),
    ):
        aws.add_image(f"{account}.dkr.ecr.{REGION}.amazonaws.com/{image}")
    return aws


@pytest.fixture(scope="session")
def hub() -> Iterator[FakeHub]:
    """A Hub with one small model, in two commits whose weights differ."""
    newer = {**_FILES, "model.safetensors": _FILES["model.safetensors"] + b"newer"}
    model = FakeModel(
        files=newer,
        history=(_FILES,),
        card={"license": "mit"},
        pipeline_tag="feature-extraction",
        library_name="sentence-transformers",
    )
    with FakeHub({HUB_MODEL: model}) as running:
        yield running


def two_commits(hub: FakeHub) -> tuple[str, str]:
    """The older and the newer commit of the Hub's model."""
    first, second = hub.repositories[HUB_MODEL].commits
    return first, second


class WithoutCli:
    """Deploys the same app as the CDK CLI does, synthesised in this process."""

    def __init__(self, aws: LocalAws, folder: Path, hub: HubModel) -> None:
        self._aws, self._folder, self._hub = aws, folder, hub
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
                hub=self._hub,
                account=self._aws.account,
                region=self._aws.region,
                folder=assembly,
            )
            app.synth()
            _wait_by_the_fast_clock(assembly / f"{stack_name(suffix, variant)}.template.json")
        try:
            deploy_template(self._aws, assembly, stack_name(suffix, variant), tags={TAG: suffix})
        except DeploymentFailed as failed:
            return failed.reason
        return ""

    def destroy(self, suffix: str, zones: list[str], variant: str) -> str:
        # Lambda keeps its network interfaces for half an hour, in which nobody measures anything.
        self._aws.set_clock_speed(5 * SPEED)
        try:
            delete_stack(self._aws, stack_name(suffix, variant))
        except DeploymentFailed as failed:
            return failed.reason
        finally:
            self._aws.set_clock_speed(SPEED)
        return ""


_WAITS = "WAIT, WAIT_FOR_OTHERS = 57 * 60, 20 * 60"


def _wait_by_the_fast_clock(template: Path) -> None:
    """Have the function that waits for interfaces do that by the local AWS's clock.

    Functions run by this machine's: for a model that goes while others stay in its security group
    it would wait 20 minutes here.
    """
    text = template.read_text("utf-8")
    assert (_WAITS in text) == ("Custom::DrainedInterfaces" in text)
    fast = f"WAIT, WAIT_FOR_OTHERS = 57 * 60, 20 * 60 / {SPEED}"
    template.write_text(text.replace(_WAITS, fast), "utf-8")


@pytest.fixture(scope="session")
def aws() -> Iterator[LocalAws]:
    """One for all tests of this folder."""
    with started() as running:
        running.client("ssm").put_parameter(
            Name="/cdk-bootstrap/hnb659fds/version", Value="30", Type="String"
        )
        yield running


@pytest.fixture(scope="session")
def model(hub: FakeHub, tmp_path_factory: pytest.TempPathFactory) -> HubModel:
    """The Hub's model as a run takes it."""
    locks = tmp_path_factory.mktemp("locks")
    return HubModel(HUB_MODEL, two_commits(hub), hub.endpoint, str(locks))


@pytest.fixture(scope="session")
def world(aws: LocalAws, model: HubModel, tmp_path_factory: pytest.TempPathFactory) -> World:
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
    deployer = WithoutCli(aws, folder, model)
    return World(client, aws.account, REGION, target_of(aws.client("sts")), deployer, SPEED)
