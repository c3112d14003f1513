"""A model of the Hub staged by real deployments into the local AWS."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager
from waiting import wait_for

from local_sagemaker import LocalAws, delete_stack, deploy_template, lambda_runner
from low_latency_endpoint import Container, Model, ModelData
from low_latency_endpoint.hosting.staged_model import StagedModel
from low_latency_endpoint.plan.pinned_model import PinnedModel
from tests.deploy.small_stacks import network_in, newest, stack_in, synthesised
from tests.hub_of_files import FakeHub, FakeModel

pytestmark = pytest.mark.realtime

MODEL, TOKEN = "acme/tiny", "hf_granted"
OTHER = "acme/other"
IMAGE = "123456789012.dkr.ecr.us-east-1.amazonaws.com/server:1"
FILES = {"config.json": b"{}", "model.safetensors": bytes(range(251)) * 150_000}
NEWER = {"config.json": b'{"newer": 1}', "model.safetensors": b"small"}


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    models = {
        MODEL: FakeModel(files=FILES, gated="manual", tokens=(TOKEN,)),
        OTHER: FakeModel(files={"config.json": b"[]"}),
    }
    with FakeHub(models) as running:
        yield running


class Site:
    """Stacks with the model in them, which share a bucket that is there before."""

    def __init__(self, aws: LocalAws, hub: FakeHub, folder: Path) -> None:
        self.aws, self.hub, self.folder = aws, hub, folder
        self.s3 = aws.client("s3")
        self.bucket = "given-models"
        self.s3.create_bucket(Bucket=self.bucket)
        secrets = aws.client("secretsmanager")
        self.secret = secrets.create_secret(Name="hf", SecretString=TOKEN)["ARN"]
        self.made: set[str] = set()

    def pinned(self, files: dict[str, bytes], model: str = MODEL) -> PinnedModel:
        return newest(self.hub, model, files)

    def deploy(
        self, pinned: PinnedModel, name: str = "Staged", *, given: bool = False, tag: str = ""
    ) -> Any:
        out = self.folder / f"{name}-{pinned.commit}-{tag}"
        stack = stack_in(out, name)
        network = network_in(stack)
        data = ModelData.from_hugging_face(
            pinned,
            bucket=s3.Bucket.from_bucket_name(stack, "Given", self.bucket) if given else None,
            token=secretsmanager.Secret.from_secret_complete_arn(stack, "Token", self.secret),
            hub_endpoint=self.hub.endpoint,
        )
        made = Container.from_uri(IMAGE, data=data, environment={"TAG": tag} if tag else {})
        Model(stack, "Model", network=network, network_isolation=True, containers=[made])
        self.made.add(name)
        return deploy_template(self.aws, synthesised(stack), name, expect_failure=True)

    def delete(self, name: str = "Staged") -> None:
        delete_stack(self.aws, name)
        self.made.discard(name)

    def uri(self) -> str:
        sagemaker = self.aws.client("sagemaker")
        (model,) = sagemaker.list_models()["Models"]
        found = sagemaker.describe_model(ModelName=model["ModelName"])["PrimaryContainer"]
        return str(found["ModelDataSource"]["S3DataSource"]["S3Uri"])

    def files(self, uri: str) -> dict[str, bytes]:
        bucket, _, prefix = uri.removeprefix("s3://").partition("/")
        found = self.s3.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
        return {
            each["Key"].removeprefix(prefix): self.s3.get_object(Bucket=bucket, Key=each["Key"])[
                "Body"
            ].read()
            for each in found
        }

    def buckets(self) -> set[str]:
        return {
            each["Name"]
            for each in self.s3.list_buckets()["Buckets"]
            if not each["Name"].startswith("cdk-")
        }


@pytest.fixture
def site(hub: FakeHub, tmp_path: Path) -> Iterator[Site]:
    with LocalAws.in_process(region="us-east-1") as aws:
        aws.reset()  # of what another one of this process may have
        here = Site(aws, hub, tmp_path)
        yield here
        for name in list(here.made):
            here.delete(name)


def test_a_model_is_staged_once_followed_to_another_commit_and_leaves_nothing(site):
    first = site.pinned(FILES)
    made = site.deploy(first)
    assert made.status == "CREATE_COMPLETE", made.failure_reason
    order = [
        (event["ResourceType"], event["ResourceStatus"])
        for event in made.events
        if event["ResourceType"] in ("Custom::HubModelCheck", "AWS::SageMaker::Model")
    ]
    assert order.index(("Custom::HubModelCheck", "CREATE_COMPLETE")) < order.index(
        ("AWS::SageMaker::Model", "CREATE_IN_PROGRESS")
    )
    old = site.uri()
    assert old.endswith(first.prefix)
    assert site.files(old) == FILES
    assert not any(each.with_token for each in site.hub.seen("cdn"))

    asked = len(site.hub.requests)
    again = site.deploy(first, tag="again")
    assert again.status == "UPDATE_COMPLETE", again.failure_reason
    assert len(site.hub.requests) == asked

    site.hub.commit(MODEL, NEWER)
    changed = site.deploy(site.pinned(NEWER))
    assert changed.status == "UPDATE_COMPLETE", changed.failure_reason
    assert site.uri() != old
    assert site.files(site.uri()) == NEWER
    assert site.files(old) == {}

    site.delete()
    assert site.buckets() == {site.bucket}


def test_two_models_of_a_stack_are_updated_and_removed_by_themselves(site):
    """They share the function, its role and the bucket."""

    def deploy(*pinned: PinnedModel) -> Any:
        out = site.folder / "-".join(each.commit[:8] for each in pinned)
        stack = stack_in(out, "Staged")
        secret = secretsmanager.Secret.from_secret_complete_arn(stack, "Token", site.secret)
        for each in pinned:
            StagedModel(
                stack,
                each.model.partition("/")[2],
                pinned=each,
                token=secret if each.model == MODEL else None,
                hub_endpoint=site.hub.endpoint,
            )
        site.made.add("Staged")
        return deploy_template(site.aws, synthesised(stack), "Staged")

    def staged() -> set[str]:
        (bucket,) = site.buckets() - {site.bucket}
        objects = site.s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        return {each["Key"].split("/")[3] for each in objects if "hub/" in each["Key"]}

    other = site.pinned({"config.json": b"[]"}, OTHER)
    first = site.pinned(FILES)
    deploy(first, other)
    assert staged() == {first.commit, other.commit}
    site.hub.commit(MODEL, NEWER)
    second = site.pinned(NEWER)
    deploy(second, other)
    assert staged() == {second.commit, other.commit}
    deploy(other)
    assert staged() == {other.commit}


def test_a_tampered_byte_fails_the_deployment_which_goes_back_and_leaves_nothing(site):
    first = site.pinned(FILES)
    site.deploy(first)
    old = site.uri()
    site.hub.commit(MODEL, NEWER)
    site.hub.tamper("model.safetensors")
    second = site.pinned(NEWER)
    failed = site.deploy(second)
    assert failed.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "LLE313: model.safetensors" in failed.failure_reason
    assert site.uri() == old
    assert site.files(old) == FILES
    assert site.files(old.replace(first.prefix, second.prefix)) == {}
    site.hub.tamper("model.safetensors", False)
    assert site.deploy(second, tag="mended").status == "UPDATE_COMPLETE"


def test_a_function_that_is_killed_in_the_middle_is_run_again_and_loses_nothing(site):
    site.hub.slow("model.safetensors", 8_000_000)
    pinned = site.pinned(FILES)
    outcome: list[Any] = []
    deploying = threading.Thread(
        target=lambda: outcome.append(site.deploy(pinned, given=True)), daemon=True
    )
    deploying.start()
    (upload,) = wait_for(lambda: site.s3.list_multipart_uploads(Bucket=site.bucket).get("Uploads"))
    half = {"Bucket": site.bucket, "Key": upload["Key"], "UploadId": upload["UploadId"]}
    wait_for(lambda: site.s3.list_parts(**half).get("Parts"))
    with lambda_runner._lock:
        running = list(lambda_runner._running)
    for process in running:
        process.hang_up()
    site.hub.slow("model.safetensors", 10**9)
    deploying.join(timeout=240)
    assert outcome[0].status == "CREATE_COMPLETE", outcome[0].failure_reason
    assert site.files(f"s3://{site.bucket}/{pinned.prefix}") == FILES
    # What the killed one had begun is gone.
    assert "Uploads" not in site.s3.list_multipart_uploads(Bucket=site.bucket)
    assert upload["Key"] == pinned.prefix + "model.safetensors"
    assert len(site.hub.seen("cdn")) == 2
