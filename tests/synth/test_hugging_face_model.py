"""A model of the Hub as a container: image, environment, files and time-outs follow from the lock."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager

from low_latency_endpoint import (
    Container,
    ContainerImage,
    EndpointConfiguration,
    FurtherVariant,
    HuggingFaceModel,
    InstancePool,
    InstanceType,
    LowLatencyEndpoint,
    LowLatencyEndpointStack,
    Model,
    ModelOptions,
    ProductionVariant,
    Safeguards,
    VariantOptions,
)
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.pinned_model import PinnedFile
from tests.pinned_models import EMBEDDER, LLAMA, QWEN, written_lock
from tests.refusals import refused

ZONES = ["use1-az1", "use1-az2"]


@pytest.fixture
def lock(tmp_path: Path) -> str:
    return str(written_lock(tmp_path, QWEN, LLAMA, EMBEDDER))


@pytest.fixture
def qwen(lock: str) -> Container:
    return Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock)


def endpoint(stack, container: Container, **given: Any) -> LowLatencyEndpoint:
    arguments = {"client_zones": ZONES, "instance_type": "ml.g6.2xlarge", **given}
    return LowLatencyEndpoint(stack, "Chat", containers=[container], **arguments)


def test_one_line_gives_image_files_environment_isolation_and_time_outs(stack, template_of, qwen):
    made = endpoint(stack, qwen)
    template = template_of(stack)
    model = template.only("AWS::SageMaker::Model")
    assert model["EnableNetworkIsolation"] is True
    container = model["PrimaryContainer"]
    assert "/vllm:" in json.dumps(container["Image"])
    assert container["Environment"]["HF_HUB_OFFLINE"] == "1"
    assert container["Environment"]["SM_VLLM_MAX_MODEL_LEN"] == "27648"
    source = container["ModelDataSource"]["S3DataSource"]
    assert (source["S3DataType"], source["CompressionType"]) == ("S3Prefix", "None")
    assert json.dumps(source["S3Uri"]).count(f"hub/Qwen/Qwen3-8B/{'9' * 40}/") == 1
    variant = template.variant
    assert variant["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert variant["ModelDataDownloadTimeoutInSeconds"] == 600  # of 16 GB: the least that is asked
    assert made.plan.request.serving.hub is not None


def test_the_model_waits_until_all_files_are_there(stack, template_of, qwen):
    endpoint(stack, qwen)
    template = template_of(stack)
    [check] = template.of_type("Custom::HubModelCheck")
    assert check in json.dumps(template.container)


def test_time_outs_follow_the_size_unless_they_are_stated(new_stack, template_of, lock):
    # 60 GB at 100 MB/s are 600 s; as much again to spare
    big = replace(
        QWEN,
        model="acme/big",
        files=tuple(PinnedFile(f"{n}.safetensors", 15 * 10**9, "0" * 64) for n in range(4)),
    )
    path = str(written_lock(Path(lock).parent, big))
    found = []
    for given in ({}, {"model_data_download_timeout": cdk.Duration.minutes(50)}):
        stack = new_stack()
        container = Container.from_hugging_face("acme/big", lock=path)
        endpoint(stack, container, instance_type="ml.g6e.12xlarge", variant=VariantOptions(**given))
        variant = template_of(stack).variant
        found.append(variant["ModelDataDownloadTimeoutInSeconds"])
    assert found == [1200, 3000]


def test_settings_and_constructs_give_the_same(new_stack, template_of, lock, tmp_path: Path):
    (tmp_path / "endpoint.yaml").write_text(
        "client_zones: {ids: [use1-az1, use1-az2]}\n"
        "endpoints: {Chat: {hugging_face: {model: Qwen/Qwen3-8B, environment: {A: 1}}, "
        "instance_type: ml.g6.2xlarge}}\n"
    )
    env = cdk.Environment(account="123456789012", region="us-east-1")
    of_settings = LowLatencyEndpointStack.from_settings(
        cdk.App(), tmp_path / "endpoint.yaml", "Serving", env=env
    )
    stack = new_stack()
    container = Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock, environment={"A": "1"})
    endpoint(stack, container)
    both = [template_of(each) for each in (of_settings, stack)]
    environments = [each.container["Environment"] for each in both]
    assert environments[0] == environments[1]
    assert environments[0]["A"] == "1"


def test_settings_name_bucket_and_token(template_of, lock, tmp_path: Path):
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-token-AbCdEf"
    (tmp_path / "endpoint.yaml").write_text(
        "client_zones: {ids: [use1-az1, use1-az2]}\n"
        "endpoints:\n"
        "  chat:\n"
        "    hugging_face:\n"
        "      model: meta-llama/Llama-3.1-8B-Instruct\n"
        "      accept_license: llama3.1\n"
        "      bucket: our-models\n"
        f"      token_secret_arn: {arn}\n"
        "    instance_type: ml.g6.2xlarge\n"
    )
    template = template_of(
        LowLatencyEndpointStack.from_settings(cdk.App(), tmp_path / "endpoint.yaml")
    )
    [copied] = {
        json.dumps(each.get("TokenSecretArn"))
        for each in template.of_type("Custom::HubModelFiles").values()
    }
    assert copied == json.dumps(arn)
    assert not template.of_type("AWS::S3::Bucket")
    assert "our-models" in json.dumps(template.of_type("Custom::HubModelCheck"))


def test_without_an_instance_type_a_model_says_what_is_missing(stack, parts, qwen):
    with refused("LLE314", "instance_type"):
        Model(stack, "Model", network=parts.network(stack), containers=[qwen])


def test_a_variant_on_a_type_that_needs_another_container_is_refused(stack, parts, lock):
    container = Container.from_hugging_face(
        "Qwen/Qwen3-8B", lock=lock, instance_type=InstanceType("ml.g6e.xlarge")
    )
    model = Model(stack, "Model", network=parts.network(stack), containers=[container])

    def configured(name: str) -> EndpointConfiguration:
        variant = ProductionVariant(model=model, instance_type=name)
        return EndpointConfiguration(stack, f"On-{name}", variants=[variant])

    configured("ml.g6e.xlarge")
    configured("ml.g6e.2xlarge")
    for name, code in (("ml.g6.2xlarge", "LLE314"), ("ml.g4dn.xlarge", "LLE355")):
        with refused(code):
            configured(name)


def test_pools_share_the_context_that_all_have_room_for(stack, template_of, qwen):
    endpoint(
        stack,
        qwen,
        instance_type=[
            InstancePool(InstanceType("ml.g6e.xlarge"), 1),
            InstancePool(InstanceType("ml.g6.2xlarge"), 2),
        ],
    )
    container = template_of(stack).container
    assert container["Environment"]["SM_VLLM_MAX_MODEL_LEN"] == "27648"


def test_a_challenger_is_another_model_of_the_hub(stack, template_of, lock, qwen):
    other = Container.from_hugging_face(LLAMA.model, lock=lock, accept_license="llama3.1")
    endpoint(stack, qwen, variants=[FurtherVariant(name="b", containers=[other])])
    template = template_of(stack)
    models = template.of_type("AWS::SageMaker::Model")
    assert len(models) == 2
    assert len(template.of_type("AWS::S3::Bucket")) == 1  # of both
    assert all(each["EnableNetworkIsolation"] for each in models.values())


def test_isolation_is_off_where_it_is_said_or_another_container_is_beside_it(
    new_stack, parts, template_of, lock
):
    hub = Container.from_hugging_face(EMBEDDER.model, lock=lock)
    other = Container(image=ContainerImage.from_uri("registry.example.com/ranker:1"))
    for containers, options in (
        ([hub], ModelOptions(network_isolation=False)),
        ([hub, other], None),
    ):
        stack = new_stack()
        parts.pattern(stack, containers=containers, instance_type="ml.c7i.xlarge", model=options)
        assert template_of(stack).only("AWS::SageMaker::Model")["EnableNetworkIsolation"] is False


def test_an_image_of_your_own_gets_the_files_and_stays_offline(stack, parts, template_of, lock):
    container = Container(
        image=ContainerImage.from_uri("registry.example.com/server:1"),
        hugging_face=HuggingFaceModel(model="Qwen/Qwen3-8B", lock=lock),
        environment={"TRANSFORMERS_OFFLINE": "0"},
    )
    Model(stack, "Model", network=parts.network(stack), containers=[container])
    made = template_of(stack).container
    assert made["Image"] == "registry.example.com/server:1"
    assert made["Environment"] == {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "0",
        "DO_NOT_TRACK": "1",
    }
    assert "ModelDataSource" in made


def test_text_embeddings_inference_lies_in_other_accounts(stack, template_of, lock):
    container = Container.from_hugging_face(EMBEDDER.model, lock=lock)
    endpoint(stack, container, instance_type="ml.c7i.xlarge")
    image = json.dumps(template_of(stack).container["Image"])
    assert "683313688378.dkr.ecr." in image  # sagemaker-core 2.27.0, huggingface-tei-cpu.json
    anywhere = cdk.Stack(cdk.App(), "Anywhere")
    with pytest.raises(ConfigurationError, match="LLE328"):
        endpoint(anywhere, container, instance_type="ml.c7i.xlarge")


@pytest.mark.parametrize(
    "given", [{"data": "s3://models/other/"}, {"model_package": "fraud"}, {"multi_model": True}]
)
def test_a_model_of_the_hub_comes_with_its_files(lock, given: dict[str, Any]):
    hub = HuggingFaceModel(model="Qwen/Qwen3-8B", lock=lock)
    with refused("LLE368"):
        Container(hugging_face=hub, **given)


def test_bucket_and_token_are_handed_to_the_deployment(stack, template_of, lock):
    bucket = s3.Bucket(stack, "Models")
    token = secretsmanager.Secret(stack, "Token")
    container = Container.from_hugging_face(
        LLAMA.model, lock=lock, accept_license="llama3.1", bucket=bucket, token=token
    )
    endpoint(stack, container)
    template = template_of(stack)
    [secret] = template.of_type("AWS::SecretsManager::Secret")
    for each in template.of_type("Custom::HubModelFiles").values():
        assert each["TokenSecretArn"] == {"Ref": secret}
    assert len(template.of_type("AWS::S3::Bucket")) == 1


def test_the_safeguards_of_the_endpoint_hold_for_what_is_staged(stack, template_of, qwen):
    key = kms.Key(stack, "Key")
    endpoint(stack, qwen, safeguards=Safeguards(encryption_key=key, log_retention_days=365))
    template = template_of(stack)
    [bucket] = template.of_type("AWS::S3::Bucket").values()
    [rule] = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    [log] = [
        each
        for name, each in template.of_type("AWS::Logs::LogGroup").items()
        if name.startswith("HubModelStaging")
    ]
    assert log["RetentionInDays"] == 365
    assert "KmsKeyId" in log
