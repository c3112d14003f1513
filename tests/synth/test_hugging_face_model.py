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
from aws_cdk.assertions import Template

from low_latency_endpoint import (
    ClientZones,
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
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.pinned_model import PinnedFile
from tests.pinned_models import EMBEDDER, LLAMA, QWEN, written_lock

ZONES = ["use1-az1", "use1-az2"]


@pytest.fixture
def lock(tmp_path: Path) -> str:
    large = replace(
        QWEN, model="acme/large", files=(PinnedFile("a.safetensors", 15 * 10**9, "0" * 64),) * 1
    )
    return str(written_lock(tmp_path, QWEN, LLAMA, EMBEDDER, large))


def stack() -> cdk.Stack:
    env = cdk.Environment(account="123456789012", region="us-east-1")
    return cdk.Stack(cdk.App(), "Serving", env=env)


def network_in(scope: cdk.Stack) -> ZoneAlignedNetwork:
    return ZoneAlignedNetwork(scope, "Network", client_zones=ClientZones.of_ids(*ZONES))


def of_type(template: Template, kind: str) -> dict[str, Any]:
    return {
        key: each for key, each in template.to_json()["Resources"].items() if each["Type"] == kind
    }


def only(template: Template, kind: str) -> dict[str, Any]:
    [found] = of_type(template, f"AWS::SageMaker::{kind}").values()
    return found["Properties"]


def refused(code: str, act: object) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        act()  # type: ignore[operator]
    assert caught.value.code == code
    return caught.value


def endpoint(scope: cdk.Stack, container: Container, **given: Any) -> LowLatencyEndpoint:
    arguments = {"client_zones": ZONES, "instance_type": "ml.g6.2xlarge", **given}
    return LowLatencyEndpoint(scope, "Chat", containers=[container], **arguments)


def test_one_line_gives_image_files_environment_isolation_and_time_outs(lock: str) -> None:
    scope = stack()
    made = endpoint(scope, Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock))
    template = Template.from_stack(scope)
    model = only(template, "Model")
    assert model["EnableNetworkIsolation"] is True
    container = model["PrimaryContainer"]
    assert "/vllm:" in json.dumps(container["Image"])
    assert container["Environment"]["HF_HUB_OFFLINE"] == "1"
    assert container["Environment"]["SM_VLLM_MAX_MODEL_LEN"] == "27648"
    source = container["ModelDataSource"]["S3DataSource"]
    assert (source["S3DataType"], source["CompressionType"]) == ("S3Prefix", "None")
    assert json.dumps(source["S3Uri"]).count(f"hub/Qwen/Qwen3-8B/{'9' * 40}/") == 1
    [variant] = only(template, "EndpointConfig")["ProductionVariants"]
    assert variant["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert variant["ModelDataDownloadTimeoutInSeconds"] == 600  # of 16 GB: the least that is asked
    assert made.plan.request.hub_serving is not None


def test_the_model_waits_until_all_files_are_there(lock: str) -> None:
    scope = stack()
    endpoint(scope, Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock))
    template = Template.from_stack(scope)
    [check] = of_type(template, "Custom::HubModelCheck")
    assert check in json.dumps(only(template, "Model")["PrimaryContainer"])


def test_time_outs_follow_the_size_unless_they_are_stated(lock: str) -> None:
    # 60 GB at 100 MB/s are 600 s; as much again to spare
    big = replace(
        QWEN,
        model="acme/big",
        files=tuple(PinnedFile(f"{n}.safetensors", 15 * 10**9, "0" * 64) for n in range(4)),
    )
    path = str(written_lock(Path(lock).parent, big))
    found = []
    for given in ({}, {"model_data_download_timeout": cdk.Duration.minutes(50)}):
        scope = stack()
        container = Container.from_hugging_face("acme/big", lock=path)
        endpoint(scope, container, instance_type="ml.g6e.12xlarge", variant=VariantOptions(**given))
        [variant] = only(Template.from_stack(scope), "EndpointConfig")["ProductionVariants"]
        found.append(variant["ModelDataDownloadTimeoutInSeconds"])
    assert found == [1200, 3000]


def test_settings_and_constructs_give_the_same(lock: str, tmp_path: Path) -> None:
    (tmp_path / "endpoint.yaml").write_text(
        "client_zones: {ids: [use1-az1, use1-az2]}\n"
        "endpoints: {Chat: {hugging_face: {model: Qwen/Qwen3-8B, environment: {A: 1}}, "
        "instance_type: ml.g6.2xlarge}}\n"
    )
    env = cdk.Environment(account="123456789012", region="us-east-1")
    of_settings = LowLatencyEndpointStack.from_settings(
        cdk.App(), tmp_path / "endpoint.yaml", "Serving", env=env
    )
    scope = stack()
    container = Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock, environment={"A": "1"})
    endpoint(scope, container)
    both = [Template.from_stack(each) for each in (of_settings, scope)]
    environments = [only(each, "Model")["PrimaryContainer"]["Environment"] for each in both]
    assert environments[0] == environments[1]
    assert environments[0]["A"] == "1"


def test_settings_name_bucket_and_token(lock: str, tmp_path: Path) -> None:
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
    template = Template.from_stack(
        LowLatencyEndpointStack.from_settings(cdk.App(), tmp_path / "endpoint.yaml")
    )
    [copied] = {
        json.dumps(each["Properties"].get("TokenSecretArn"))
        for each in of_type(template, "Custom::HubModelFiles").values()
    }
    assert copied == json.dumps(arn)
    assert not of_type(template, "AWS::S3::Bucket")
    assert "our-models" in json.dumps(of_type(template, "Custom::HubModelCheck"))


def test_without_an_instance_type_a_model_says_what_is_missing(lock: str) -> None:
    scope = stack()
    container = Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock)
    error = refused(
        "LLE314", lambda: Model(scope, "Model", network=network_in(scope), containers=[container])
    )
    assert "instance_type" in error.fix


def test_a_variant_on_a_type_that_needs_another_container_is_refused(lock: str) -> None:
    scope = stack()
    container = Container.from_hugging_face(
        "Qwen/Qwen3-8B", lock=lock, instance_type=InstanceType("ml.g6e.xlarge")
    )
    model = Model(scope, "Model", network=network_in(scope), containers=[container])

    def configured(name: str) -> EndpointConfiguration:
        variant = ProductionVariant(model=model, instance_type=name)
        return EndpointConfiguration(scope, f"On-{name}", variants=[variant])

    configured("ml.g6e.xlarge")
    configured("ml.g6e.2xlarge")
    refused("LLE314", lambda: configured("ml.g6.2xlarge"))
    refused("LLE355", lambda: configured("ml.g4dn.xlarge"))


def test_pools_share_the_context_that_all_have_room_for(lock: str) -> None:
    scope = stack()
    endpoint(
        scope,
        Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock),
        instance_type=[
            InstancePool(InstanceType("ml.g6e.xlarge"), 1),
            InstancePool(InstanceType("ml.g6.2xlarge"), 2),
        ],
    )
    container = only(Template.from_stack(scope), "Model")["PrimaryContainer"]
    assert container["Environment"]["SM_VLLM_MAX_MODEL_LEN"] == "27648"


def test_a_challenger_is_another_model_of_the_hub(lock: str) -> None:
    scope = stack()
    other = Container.from_hugging_face(LLAMA.model, lock=lock, accept_license="llama3.1")
    endpoint(
        scope,
        Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock),
        variants=[FurtherVariant(name="b", containers=[other])],
    )
    template = Template.from_stack(scope)
    models = of_type(template, "AWS::SageMaker::Model")
    assert len(models) == 2
    assert len(of_type(template, "AWS::S3::Bucket")) == 1  # of both
    assert all(each["Properties"]["EnableNetworkIsolation"] for each in models.values())


def test_isolation_is_off_where_it_is_said_or_another_container_is_beside_it(lock: str) -> None:
    hub = Container.from_hugging_face(EMBEDDER.model, lock=lock)
    other = Container(image=ContainerImage.from_uri("registry.example.com/ranker:1"))
    for containers, options in (
        ([hub], ModelOptions(network_isolation=False)),
        ([hub, other], None),
    ):
        scope = stack()
        LowLatencyEndpoint(
            scope,
            "Rank",
            client_zones=ZONES,
            containers=containers,
            instance_type="ml.c7i.xlarge",
            model=options,
        )
        assert only(Template.from_stack(scope), "Model")["EnableNetworkIsolation"] is False


def test_an_image_of_your_own_gets_the_files_and_stays_offline(lock: str) -> None:
    scope = stack()
    container = Container(
        image=ContainerImage.from_uri("registry.example.com/server:1"),
        hugging_face=HuggingFaceModel(model="Qwen/Qwen3-8B", lock=lock),
        environment={"TRANSFORMERS_OFFLINE": "0"},
    )
    Model(scope, "Model", network=network_in(scope), containers=[container])
    made = only(Template.from_stack(scope), "Model")["PrimaryContainer"]
    assert made["Image"] == "registry.example.com/server:1"
    assert made["Environment"] == {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "0",
        "DO_NOT_TRACK": "1",
    }
    assert "ModelDataSource" in made


def test_text_embeddings_inference_lies_in_other_accounts(lock: str) -> None:
    scope = stack()
    container = Container.from_hugging_face(EMBEDDER.model, lock=lock)
    endpoint(scope, container, instance_type="ml.c7i.xlarge")
    image = json.dumps(only(Template.from_stack(scope), "Model")["PrimaryContainer"]["Image"])
    assert "683313688378.dkr.ecr." in image  # sagemaker-core 2.27.0, huggingface-tei-cpu.json
    anywhere = cdk.Stack(cdk.App(), "Anywhere")
    refused("LLE328", lambda: endpoint(anywhere, container, instance_type="ml.c7i.xlarge"))


@pytest.mark.parametrize(
    "given", [{"data": "s3://models/other/"}, {"model_package": "fraud"}, {"multi_model": True}]
)
def test_a_model_of_the_hub_comes_with_its_files(lock: str, given: dict[str, Any]) -> None:
    hub = HuggingFaceModel(model="Qwen/Qwen3-8B", lock=lock)
    refused("LLE368", lambda: Container(hugging_face=hub, **given))


def test_bucket_and_token_are_handed_to_the_deployment(lock: str) -> None:
    scope = stack()
    bucket = s3.Bucket(scope, "Models")
    token = secretsmanager.Secret(scope, "Token")
    container = Container.from_hugging_face(
        LLAMA.model, lock=lock, accept_license="llama3.1", bucket=bucket, token=token
    )
    endpoint(scope, container)
    template = Template.from_stack(scope)
    [secret] = of_type(template, "AWS::SecretsManager::Secret")
    for each in of_type(template, "Custom::HubModelFiles").values():
        assert each["Properties"]["TokenSecretArn"] == {"Ref": secret}
    assert len(of_type(template, "AWS::S3::Bucket")) == 1


def test_the_safeguards_of_the_endpoint_hold_for_what_is_staged(lock: str) -> None:
    scope = stack()
    key = kms.Key(scope, "Key")
    endpoint(
        scope,
        Container.from_hugging_face("Qwen/Qwen3-8B", lock=lock),
        safeguards=Safeguards(encryption_key=key, log_retention_days=365),
    )
    template = Template.from_stack(scope)
    [bucket] = of_type(template, "AWS::S3::Bucket").values()
    [rule] = bucket["Properties"]["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule["ServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
    [log] = [
        each["Properties"]
        for name, each in of_type(template, "AWS::Logs::LogGroup").items()
        if name.startswith("HubModelStaging")
    ]
    assert log["RetentionInDays"] == 365
    assert "KmsKeyId" in log
