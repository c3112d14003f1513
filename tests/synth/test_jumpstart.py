"""A model of JumpStart as a container: AWS's own bucket, its agreement, and rights on just that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from low_latency_endpoint import (
    Container,
    ContainerImage,
    EndpointConfiguration,
    InstancePool,
    InstanceType,
    JumpStartModel,
    LowLatencyEndpoint,
    ModelData,
    ProductionVariant,
)
from low_latency_endpoint.errors import ConfigurationError
from tests.jumpstart_catalogue import EMBEDDER, KEY, LLAMA, NEURON_KEY, written_jumpstart

PRIVATE = "jumpstart-private-cache-prod"


@pytest.fixture
def lock(tmp_path: Path) -> str:
    return written_jumpstart(tmp_path)


def llama_on(instance_type: str, lock: str, **given: Any) -> Container:
    return Container.from_jumpstart(
        LLAMA, lock=lock, accept_eula=True, instance_type=instance_type, **given
    )


def code_of(make: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        make()
    return caught.value.code


def warnings_in(stack) -> str:
    return json.dumps(
        [str(each.data) for node in stack.node.find_all() for each in node.node.metadata]
    )


def test_the_template_has_image_files_agreement_and_environment(
    stack, parts, template_of, lock
) -> None:
    container = llama_on("ml.g5.2xlarge", lock, environment={"OPTION_MAX_MODEL_LEN": "4096"})
    parts.model(stack, containers=[container])
    template = template_of(stack)
    model = template.only("AWS::SageMaker::Model")
    made = model["PrimaryContainer"]
    assert made["ModelDataSource"] == {
        "S3DataSource": {
            "S3Uri": f"s3://{PRIVATE}-us-east-1/{KEY}",
            "S3DataType": "S3Prefix",
            "CompressionType": "None",
            "ModelAccessConfig": {"AcceptEula": True},
        }
    }
    assert "djl-inference:0.29.0-lmi11.0.0-cu124" in json.dumps(made["Image"])
    assert made["Environment"] == {
        "HF_MODEL_ID": "/opt/ml/model",
        "SAGEMAKER_MODEL_SERVER_WORKERS": "1",
        "OPTION_MAX_MODEL_LEN": "4096",
    }
    assert model["EnableNetworkIsolation"] is True  # as JumpStart itself does
    assert "jumpStartRegion" not in warnings_in(stack)


def test_the_role_reads_exactly_the_prefix_and_the_gateway_lets_the_bucket_through(
    stack, parts, template_of, lock
) -> None:
    parts.model(stack, containers=[llama_on("ml.g5.2xlarge", lock)])
    template = template_of(stack)
    arn = {"Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":s3:::{PRIVATE}-us-east-1"]]}
    objects = {
        "Fn::Join": ["", ["arn:", {"Ref": "AWS::Partition"}, f":s3:::{PRIVATE}-us-east-1/{KEY}*"]]
    }
    of_s3 = [each for each in template.model_rights if "s3:" in json.dumps(each["Action"])]
    assert of_s3 == [
        {"Action": "s3:GetObject", "Effect": "Allow", "Resource": objects},
        {
            "Action": "s3:ListBucket",
            "Effect": "Allow",
            "Resource": arn,
            "Condition": {"StringLike": {"s3:prefix": f"{KEY}*"}},
        },
    ]
    [gateway] = [
        each
        for each in template.of_type("AWS::EC2::VPCEndpoint").values()
        if each.get("VpcEndpointType") == "Gateway"
    ]
    assert f":s3:::{PRIVATE}-us-east-1/*" in json.dumps(gateway["PolicyDocument"])


def test_on_inferentia_the_files_and_the_image_are_those_compiled_for_it(
    stack, parts, template_of, lock
) -> None:
    parts.model(stack, containers=[llama_on("ml.inf2.24xlarge", lock)])
    made = template_of(stack).only("AWS::SageMaker::Model")["PrimaryContainer"]
    assert made["ModelDataSource"]["S3DataSource"]["S3Uri"].endswith(NEURON_KEY)
    assert "neuronx-sdk2.19.1" in json.dumps(made["Image"])


def test_an_open_model_needs_no_agreement_and_has_none(stack, parts, template_of, lock) -> None:
    container = Container.from_jumpstart(EMBEDDER, lock=lock, instance_type="ml.c5.xlarge")
    parts.model(stack, containers=[container])
    model = template_of(stack).only("AWS::SageMaker::Model")
    made = model["PrimaryContainer"]
    assert made["ModelDataUrl"] == (
        f"s3://jumpstart-cache-prod-us-east-1/acme/{EMBEDDER}-1.10.0.tar.gz"
    )
    # In no registry that is known elsewhere: as it was read.
    assert made["Image"] == "683313688378.dkr.ecr.us-east-1.amazonaws.com/acme-serving:1.0-cpu-py3"
    assert model["EnableNetworkIsolation"] is False


def test_the_variant_waits_as_long_as_jumpstart_lets_it(stack, parts, template_of, lock) -> None:
    model = parts.model(stack, containers=[llama_on("ml.g5.2xlarge", lock)])
    variant = ProductionVariant(model=model, instance_type="ml.g5.2xlarge")
    EndpointConfiguration(stack, "Configuration", variants=[variant])
    [made] = template_of(stack).only("AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert made["ModelDataDownloadTimeoutInSeconds"] == 1200
    assert made["ContainerStartupHealthCheckTimeoutInSeconds"] == 900


def test_a_variant_on_a_type_that_is_served_otherwise_is_refused(stack, parts, lock) -> None:
    model = parts.model(stack, containers=[llama_on("ml.g5.2xlarge", lock)])
    variant = ProductionVariant(model=model, instance_type="ml.g5.12xlarge")
    assert (
        code_of(lambda: EndpointConfiguration(stack, "Configuration", variants=[variant]))
        == "LLE315"
    )


def test_the_endpoint_tells_the_type(stack, template_of, lock) -> None:
    LowLatencyEndpoint(
        stack,
        "Guard",
        client_zones=["use1-az1", "use1-az2"],
        containers=[Container.from_jumpstart(LLAMA, lock=lock, accept_eula=True)],
        instance_type="ml.g5.12xlarge",
    )
    made = template_of(stack).only("AWS::SageMaker::Model")["PrimaryContainer"]
    assert made["Environment"]["OPTION_TENSOR_PARALLEL_DEGREE"] == "4"


def test_an_agreement_that_is_not_accepted_is_named_with_where_it_is(lock) -> None:
    with pytest.raises(
        ConfigurationError, match=r"us-east-1\.amazonaws\.com/fmhMetadata/eula"
    ) as e:
        Container.from_jumpstart(LLAMA, lock=lock, instance_type="ml.g5.2xlarge")
    assert e.value.code == "LLE396"


def test_types_that_it_is_not_served_on_and_types_served_differently(stack, lock) -> None:
    assert code_of(lambda: llama_on("ml.m5.xlarge", lock)) == "LLE315"
    pools = [
        InstancePool(InstanceType("ml.g5.2xlarge"), 1),
        InstancePool(InstanceType("ml.g5.12xlarge"), 2),
    ]
    container = Container.from_jumpstart(LLAMA, lock=lock, accept_eula=True)
    assert (
        code_of(
            lambda: LowLatencyEndpoint(
                stack,
                "Guard",
                client_zones=["use1-az1", "use1-az2"],
                containers=[container],
                instance_type=pools,
            )
        )
        == "LLE314"
    )


def test_a_model_without_a_type_or_pin(stack, parts, lock) -> None:
    container = Container.from_jumpstart(LLAMA, lock=lock, accept_eula=True)
    assert code_of(lambda: parts.model(stack, containers=[container])) == "LLE314"
    assert code_of(lambda: JumpStartModel(model="acme-other", lock=lock).pinned) == "LLE344"
    assert code_of(lambda: JumpStartModel(model="a", lock=f"{lock}.no").pinned) == "LLE343"


def test_another_region_warns_and_one_without_jumpstart_is_refused(new_stack, parts, lock) -> None:
    elsewhere = new_stack(region="eu-west-1")
    zones = parts.network(elsewhere, client_zones=_zones("euw1-az1", "euw1-az2"))
    parts.model(elsewhere, network=zones, containers=[llama_on("ml.g5.2xlarge", lock)])
    assert "was pinned in us-east-1" in warnings_in(elsewhere)
    without = new_stack(region="us-iso-west-1")
    data = llama_on("ml.g5.2xlarge", lock).model_data
    assert code_of(lambda: data.bind(without)) == "LLE397"


def test_a_stack_without_a_region_reads_in_the_one_it_is_deployed_to(
    new_stack, parts, template_of, lock
) -> None:
    stack = new_stack(region=None)
    parts.model(stack, containers=[llama_on("ml.g5.2xlarge", lock)])
    made = template_of(stack).only("AWS::SageMaker::Model")["PrimaryContainer"]
    assert made["ModelDataSource"]["S3DataSource"]["S3Uri"] == {
        "Fn::Join": ["", [f"s3://{PRIVATE}-", {"Ref": "AWS::Region"}, f"/{KEY}"]]
    }


@pytest.mark.parametrize("beside", ["data", "model_package", "multi_model", "hugging_face"])
def test_it_is_alone(beside, lock) -> None:
    from low_latency_endpoint import HuggingFaceModel

    given = {
        "data": "s3://b/m.tar.gz",
        "model_package": "arn:aws:sagemaker:us-east-1:123456789012:model-package/m/1",
        "multi_model": True,
        "hugging_face": HuggingFaceModel(model="Qwen/Qwen3-8B", lock=lock),
    }[beside]
    model = JumpStartModel(model=LLAMA, lock=lock, accept_eula=True)
    assert code_of(lambda: Container(jumpstart=model, **{beside: given})) == "LLE368"


def test_data_of_ones_own_says_the_agreement(stack, parts, template_of) -> None:
    data = ModelData.from_uri(f"s3://{PRIVATE}-us-east-1/{KEY}model.tar.gz", accept_eula=True)
    parts.model(stack, containers=[parts.container(data=data)])
    made = template_of(stack).only("AWS::SageMaker::Model")["PrimaryContainer"]
    # ModelDataUrl has no place for it.
    assert made["ModelDataSource"]["S3DataSource"] == {
        "S3Uri": f"s3://{PRIVATE}-us-east-1/{KEY}model.tar.gz",
        "S3DataType": "S3Object",
        "CompressionType": "Gzip",
        "ModelAccessConfig": {"AcceptEula": True},
    }


@pytest.mark.parametrize(
    "given", [{"multi_model": True}, {"model_package": "fraud"}], ids=["many", "package"]
)
def test_an_agreement_that_would_be_lost_is_refused(given) -> None:
    data = ModelData.from_uri("s3://models/tenants/", accept_eula=True)
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/a:1")
    assert code_of(lambda: Container(image=image, data=data, **given)) == "LLE318"


def _zones(*ids: str):
    from low_latency_endpoint import ClientZones

    return ClientZones.of_ids(*ids)
