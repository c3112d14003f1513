"""A gated model of JumpStart, pinned from a bucket of its form, deployed and called."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import aws_cdk as cdk
import pytest
from botocore.exceptions import ClientError

from local_sagemaker import LocalAws, RuntimeOptions, delete_stack, deploy_template
from local_sagemaker.model_servers import handlers_model_server
from low_latency_endpoint import (
    ClientZones,
    Container,
    Endpoint,
    EndpointConfiguration,
    Model,
    ProductionVariant,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.hugging_face.jumpstart_catalogue import bucket_reader, pin_jumpstart
from low_latency_endpoint.hugging_face.lock_file import write_lock
from tests.jumpstart_catalogue import KEY, LLAMA, documents

pytestmark = pytest.mark.realtime
REGION = "us-east-1"
PUBLIC, PRIVATE = f"jumpstart-cache-prod-{REGION}", f"jumpstart-private-cache-prod-{REGION}"
# Answers with what lies below /opt/ml/model, and nothing else.
SCRIPT = """\
import pathlib

def model_fn(model_dir):
    return (pathlib.Path(model_dir) / "weights" / "part-1").read_bytes()

def transform_fn(model, body, content_type, accept):
    return model + body
"""


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[LocalAws]:
    script = tmp_path / "inference.py"
    script.write_text(SCRIPT)
    options = RuntimeOptions(interfaces_stay=0)
    servers = {"*": handlers_model_server(script)}
    with LocalAws.in_process(region=REGION, model_servers=servers, runtime=options) as running:
        s3 = running.client("s3")
        for bucket in (PUBLIC, PRIVATE):
            s3.create_bucket(Bucket=bucket)
        for key, body in documents().items():
            s3.put_object(Bucket=PUBLIC, Key=key, Body=body)
        s3.put_object(Bucket=PRIVATE, Key=f"{KEY}weights/part-1", Body=b"weights of ")
        yield running


def test_a_gated_model_is_pinned_deployed_and_called(
    aws: LocalAws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in aws.exports().items():
        monkeypatch.setenv(name, value)
    lock = tmp_path / "models.lock.yaml"
    write_lock(lock, jumpstart=[pin_jumpstart(bucket_reader(REGION), LLAMA, REGION).model])

    app = cdk.App(outdir=str(tmp_path / "assembly"), analytics_reporting=False)
    stack = cdk.Stack(app, "Guard", env=cdk.Environment(account=aws.account, region=REGION))
    network = ZoneAlignedNetwork(
        stack, "Network", client_zones=ClientZones.of_ids("use1-az1", "use1-az2")
    )
    container = Container.from_jumpstart(
        LLAMA, lock=str(lock), accept_eula=True, instance_type="ml.g5.2xlarge"
    )
    model = Model(stack, "Model", network=network, containers=[container])
    variant = ProductionVariant(
        model=model, instance_type="ml.g5.2xlarge", initial_instance_count=1
    )
    configuration = EndpointConfiguration(stack, "Configuration", variants=[variant])
    Endpoint(stack, "Endpoint", configuration=configuration, endpoint_name="guard")
    app.synth()
    deploy_template(aws, tmp_path / "assembly", "Guard")
    answer = aws.client("sagemaker-runtime").invoke_endpoint(EndpointName="guard", Body=b"a llama")
    assert answer["Body"].read() == b"weights of a llama"
    delete_stack(aws, "Guard")


@pytest.mark.parametrize("agreement", [{}, {"ModelAccessConfig": {"AcceptEula": False}}])
def test_without_the_agreement_sagemaker_makes_no_model(
    aws: LocalAws, agreement: dict[str, object]
) -> None:
    source = {
        "S3Uri": f"s3://{PRIVATE}/{KEY}",
        "S3DataType": "S3Prefix",
        "CompressionType": "None",
        **agreement,
    }
    with pytest.raises(ClientError, match="AcceptEula value must be explicitly defined as True"):
        aws.client("sagemaker").create_model(
            ModelName="guard",
            ExecutionRoleArn=f"arn:aws:iam::{aws.account}:role/any",
            PrimaryContainer={
                "Image": f"{aws.account}.dkr.ecr.{REGION}.amazonaws.com/guard:1",
                "ModelDataSource": {"S3DataSource": source},
            },
        )
    assert aws.client("sagemaker").list_models()["Models"] == []
