"""The endpoint configuration: variants, key, data capture, metrics, and images that fit."""

from __future__ import annotations

import pytest
from aws_cdk import Duration
from aws_cdk import aws_kms as kms

from low_latency_endpoint import (
    ContainerImage,
    DataCapture,
    InferenceAmi,
    InstancePool,
    InstanceType,
    MetricsPublishing,
)
from tests.refusals import refused

from .conftest import warnings_in

KEY = "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-0000-0000-000000000000"


@pytest.fixture
def key(stack):
    return kms.Key.from_key_arn(stack, "Key", KEY)


@pytest.fixture
def synthesised(stack, parts, template_of):
    def synthesise(**given):
        parts.configuration(stack, **given)
        return template_of(stack).only("AWS::SageMaker::EndpointConfig")

    return synthesise


def test_holds_nothing_that_was_not_asked_for(synthesised):
    # No name either: CloudFormation replaces the configuration on every change, and a fixed name
    # would be taken.
    assert set(synthesised()) == {"ProductionVariants"}


def test_several_variants_in_order(stack, parts, synthesised):
    names = ["primary", "challenger", "dark"]
    config = synthesised(variants=[parts.variant(stack, name=name) for name in names])
    assert [variant["VariantName"] for variant in config["ProductionVariants"]] == names


def test_a_key_for_the_storage_volumes(synthesised, key):
    assert synthesised(encryption_key=key)["KmsKeyId"] == KEY


def test_a_key_with_local_storage_is_the_users_to_decide(stack, parts, key, template_of):
    variants = [parts.variant(stack, instance_type=InstanceType("ml.g5.xlarge"))]
    with refused("LLE424", "250 GB"):
        parts.configuration(stack, "Refused", variants=variants, encryption_key=key)
    parts.configuration(
        stack, variants=variants, encryption_key=key, kms_key_with_local_storage=True
    )
    configs = template_of(stack).of_type("AWS::SageMaker::EndpointConfig").values()
    assert [config.get("KmsKeyId") for config in configs] == [KEY]


def test_data_capture(synthesised, key):
    stated = {"sampling_percentage": 3, "capture": ["input"], "csv_content_types": ["text/csv"]}
    config = synthesised(data_capture=DataCapture(s3="s3://captured/sentiment", key=key, **stated))
    assert config["DataCaptureConfig"] == {
        "EnableCapture": True,
        "InitialSamplingPercentage": 3,
        "DestinationS3Uri": "s3://captured/sentiment",
        "KmsKeyId": KEY,
        "CaptureOptions": [{"CaptureMode": "Input"}],
        "CaptureContentTypeHeader": {"CsvContentTypes": ["text/csv"]},
    }


def test_data_capture_by_default_and_a_key_by_its_arn(synthesised):
    capture = synthesised(data_capture=DataCapture(s3="s3://captured", kms_key_arn=KEY))
    assert capture["DataCaptureConfig"] == {
        "EnableCapture": True,
        "InitialSamplingPercentage": 10,
        "DestinationS3Uri": "s3://captured",
        "KmsKeyId": KEY,
        "CaptureOptions": [{"CaptureMode": "Input"}, {"CaptureMode": "Output"}],
    }


def test_metrics(synthesised):
    metrics = MetricsPublishing(enhanced=True, publish_frequency=Duration.seconds(10))
    assert synthesised(metrics=metrics)["MetricsConfig"] == {
        "EnableEnhancedMetrics": True,
        "EnableDetailedObservability": True,
        "MetricPublishFrequencyInSeconds": 10,
    }


def with_image(stack, parts, repository, tag, type, ami=None):
    image = ContainerImage.from_dlc(repository, tag)
    model = parts.serving(stack, image=image)
    variant = parts.variant(
        stack,
        model=model,
        instance_type=InstanceType(type),
        inference_ami=InferenceAmi(ami) if ami else None,
    )
    return parts.configuration(stack, variants=[variant])


def test_an_image_that_fits_is_no_finding(stack, parts):
    configuration = with_image(
        stack,
        parts,
        "pytorch-inference",
        "2.6.0-gpu-py312-cu124-ubuntu22.04-sagemaker",
        "ml.g5.xlarge",
        "al2-ami-sagemaker-inference-gpu-3-1",
    )
    assert warnings_in(configuration) == []


def test_what_is_only_suspicious_is_a_warning(stack, parts):
    configuration = with_image(
        stack, parts, "pytorch-inference", "2.6.0-cpu-py312-ubuntu22.04-sagemaker", "ml.g5.xlarge"
    )
    (warning,) = warnings_in(configuration)
    assert "would stand idle" in warning
    assert "low-latency-endpoint:image:primary" in warning  # the ID to acknowledge it by


def test_an_image_that_cannot_run_is_an_error_with_its_place(stack, parts):
    with refused("LLE336", where="Serving/Configuration, variant primary"):
        with_image(
            stack,
            parts,
            "pytorch-inference",
            "2.6.0-gpu-py312-cu124-ubuntu22.04-sagemaker",
            "ml.m5.xlarge",
        )


VLLM = "0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"
CUDA_13_AMI = "al2023-ami-sagemaker-inference-gpu-4-1"


class TestCuda13:
    """SageMaker's SDK gives such images an AMI on these families; see facts/images.py."""

    @pytest.mark.parametrize(
        ("tag", "type", "given", "there"),
        [
            (VLLM, "ml.g6e.12xlarge", None, CUDA_13_AMI),
            (VLLM, "ml.g6e.12xlarge", CUDA_13_AMI, CUDA_13_AMI),
            (VLLM, "ml.g7.2xlarge", None, None),
            ("0.9.0-gpu-py312-cu128-ubuntu24.04", "ml.g6e.12xlarge", None, None),
        ],
    )
    def test_the_ami_of_a_variant(self, stack, parts, template_of, tag, type, given, there):
        with_image(stack, parts, "vllm", tag, type, given)
        variant = template_of(stack).variant
        assert variant.get("InferenceAmiVersion") == there

    def test_a_choice_wins_where_it_may(self, stack, parts, template_of):
        model = parts.serving(stack, image=ContainerImage.from_dlc("vllm", VLLM))
        variant = parts.variant(
            stack,
            model=model,
            instance_type=InstanceType("ml.g6e.xlarge"),
            inference_ami=InferenceAmi.custom("al2030-gpu-9"),
        )
        assert variant.inference_ami_version == "al2030-gpu-9"

    def test_other_families_only_warn(self, stack, parts):
        (warning,) = warnings_in(with_image(stack, parts, "vllm", VLLM, "ml.g7.2xlarge"))
        assert "stays Creating" in warning
        assert "low-latency-endpoint:image:primary" in warning

    def test_pools_take_one_ami_if_it_fits_all(self, stack, parts):
        model = parts.serving(stack, image=ContainerImage.from_dlc("vllm", VLLM))
        neuron = parts.serving(
            stack,
            "Neuron",
            image=ContainerImage.from_dlc("djl-inference", "0.29.0-neuronx-sdk2.19.1"),
        )
        g6e, g7e, inf2 = (
            InstanceType(f"ml.{name}") for name in ("g6e.2xlarge", "g7e.2xlarge", "inf2.xlarge")
        )
        fitting = parts.variant(
            stack,
            model=model,
            instance_type=None,
            instance_pools=[InstancePool(g7e, 1), InstancePool(g6e, 2)],
        )
        assert fitting.inference_ami_version == CUDA_13_AMI
        mixed = parts.variant(
            stack,
            model=model,
            instance_type=None,
            instance_pools=[InstancePool(g6e, 1), InstancePool(inf2, 2, model=neuron)],
        )
        configuration = parts.configuration(stack, variants=[mixed])
        assert mixed.inference_ami_version is None
        assert ["stays Creating" in text for text in warnings_in(configuration)] == [True]
