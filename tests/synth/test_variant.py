"""Production variants: every property lands where CloudFormation has it."""

from __future__ import annotations

import pytest
from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from low_latency_endpoint import (
    ContainerImage,
    CoreDump,
    DataCapture,
    InferenceAmi,
    InstancePool,
    InstanceType,
    RoutingStrategy,
)
from tests.refusals import refused

PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/reserved"

# What this library leaves out of CloudFormation's production variant, and why.
NOT_COVERED = {
    "ServerlessConfig": "serverless variants have cold starts and run in no VPC: no low latency",
    "ManagedInstanceScaling": "for inference components; real-time variants scale by "
    "Application Auto Scaling",
}


@pytest.fixture
def synthesised(stack, parts, template_of):
    """Synthesise one variant; returns its properties and the stack."""

    def synthesise(**given):
        parts.configuration(stack, variants=[parts.variant(stack, **given)])
        config = template_of(stack).only("AWS::SageMaker::EndpointConfig")
        (variant,) = config["ProductionVariants"]
        return variant

    return synthesise


def test_the_smallest_variant(synthesised, stack):
    variant = synthesised()
    model = variant.pop("ModelName")
    assert model["Fn::GetAtt"][1] == "ModelName"
    assert variant == {
        "VariantName": "primary",
        "InstanceType": "ml.m5.xlarge",
        "InitialInstanceCount": 2,
        "InitialVariantWeight": 1,
    }


EVERYTHING = {
    "name": "canary",
    "initial_instance_count": 3,
    "weight": 0.25,
    "routing": RoutingStrategy.LEAST_OUTSTANDING_REQUESTS,
    "startup_health_check_timeout": Duration.minutes(10),
    "model_data_download_timeout": Duration.minutes(20),
    "instance_provision_timeout": Duration.minutes(30),
    "volume_size_gib": 256,
    "ssm_access": True,
    "capacity_reservation_arn": PLAN,
    "instance_type": InstanceType("ml.g5.xlarge"),
    "inference_ami": InferenceAmi("al2-ami-sagemaker-inference-gpu-2"),
    "core_dump": CoreDump(s3="s3://dumps/cores"),
}
EXPECTED = {
    "VariantName": "canary",
    "InitialInstanceCount": 3,
    "InitialVariantWeight": 0.25,
    "InstanceType": "ml.g5.xlarge",
    "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
    "ContainerStartupHealthCheckTimeoutInSeconds": 600,
    "ModelDataDownloadTimeoutInSeconds": 1200,
    "VariantInstanceProvisionTimeoutInSeconds": 1800,
    "VolumeSizeInGB": 256,
    "EnableSSMAccess": True,
    "CapacityReservationConfig": {
        "CapacityReservationPreference": "capacity-reservations-only",
        "MlReservationArn": PLAN,
    },
    "InferenceAmiVersion": "al2-ami-sagemaker-inference-gpu-2",
    "CoreDumpConfig": {"DestinationS3Uri": "s3://dumps/cores"},
}


def test_every_property_where_cloudformation_has_it(synthesised):
    variant = synthesised(**EVERYTHING)
    del variant["ModelName"]
    assert variant == EXPECTED


def test_cloudformation_has_no_property_that_nobody_decided_about():
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema(
        "us-east-1", "AWS::SageMaker::EndpointConfig"
    ).schema
    known = {*EXPECTED, "ModelName", "InstancePools"}
    there = set(schema["definitions"]["ProductionVariant"]["properties"])
    assert there - known - set(NOT_COVERED) == set(), "decide: cover it, or say why not"
    assert known | set(NOT_COVERED) == there, "AWS took a property away"


def test_a_core_dumps_key(synthesised, stack):
    key = kms.Key.from_key_arn(
        stack, "Key", "arn:aws:kms:us-east-1:123456789012:key/0123abcd-0000-0000-0000-000000000000"
    )
    variant = synthesised(core_dump=CoreDump(s3="s3://dumps/cores", key=key))
    assert variant["CoreDumpConfig"]["KmsKeyId"] == key.key_arn


@pytest.mark.parametrize(
    ("routing", "config"),
    [
        (RoutingStrategy.RANDOM, {"RoutingStrategy": "RANDOM"}),
        (
            RoutingStrategy.LEAST_OUTSTANDING_REQUESTS,
            {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
        ),
        (
            RoutingStrategy.prefix_aware(prefix_length=4096, concurrency_threshold=16),
            {
                "RoutingStrategy": "PREFIX_AWARE",
                "PrefixAwareRoutingConfig": {"PrefixLength": 4096, "ConcurrencyThreshold": 16},
            },
        ),
    ],
)
def test_routing(synthesised, routing, config):
    assert synthesised(routing=routing)["RoutingConfig"] == config


def test_a_routing_strategy_that_aws_adds_later(new_stack, parts, template_of):
    # CDK's own rules do not know it either: only here they are off.
    stack = new_stack(context={"@aws-cdk/core:validateAgainstDefaultRules": False})
    variant = parts.variant(stack, routing=RoutingStrategy.custom("KV_AWARE"))
    parts.configuration(stack, variants=[variant])
    config = template_of(stack).only("AWS::SageMaker::EndpointConfig")
    assert config["ProductionVariants"][0]["RoutingConfig"] == {"RoutingStrategy": "KV_AWARE"}


def test_an_ami_that_aws_adds_later(new_stack, parts, template_of):
    stack = new_stack(context={"@aws-cdk/core:validateAgainstDefaultRules": False})
    ami = InferenceAmi.custom("al2030-ami-sagemaker-inference-gpu-9")
    parts.configuration(
        stack,
        variants=[
            parts.variant(stack, instance_type=InstanceType("ml.g5.xlarge"), inference_ami=ami)
        ],
    )
    config = template_of(stack).only("AWS::SageMaker::EndpointConfig")
    assert config["ProductionVariants"][0]["InferenceAmiVersion"] == ami.version


def test_a_weight_of_zero_is_stated(stack, parts, template_of):
    variants = [parts.variant(stack), parts.variant(stack, name="dark", weight=0)]
    parts.configuration(stack, variants=variants)
    config = template_of(stack).only("AWS::SageMaker::EndpointConfig")
    assert [variant["InitialVariantWeight"] for variant in config["ProductionVariants"]] == [1, 0]


def test_instance_pools_instead_of_a_type(synthesised):
    pools = [
        InstancePool(InstanceType("ml.m5.xlarge"), 1),
        InstancePool(InstanceType("ml.m6i.xlarge"), 2),
    ]
    variant = synthesised(instance_pools=pools)
    assert "InstanceType" not in variant
    assert variant["InstancePools"] == [
        {"InstanceType": "ml.m5.xlarge", "Priority": 1},
        {"InstanceType": "ml.m6i.xlarge", "Priority": 2},
    ]


def test_a_pool_with_a_model_of_its_own(stack, parts, template_of):
    compiled = parts.model(stack, "Compiled")
    pools = [
        InstancePool(InstanceType("ml.m5.xlarge"), 1),
        InstancePool(InstanceType("ml.m6i.xlarge"), 2, model=compiled),
    ]
    parts.configuration(
        stack,
        variants=[
            parts.variant(
                stack, instance_pools=pools, core_dump=CoreDump(s3="s3://dumps/sentiment")
            )
        ],
        data_capture=DataCapture(s3="s3://captured/sentiment"),
    )
    template = template_of(stack)
    variant = template.variant
    assert variant["InstancePools"][0] == {"InstanceType": "ml.m5.xlarge", "Priority": 1}
    assert variant["InstancePools"][1]["ModelNameOverride"] == stack.resolve(compiled.model_name)
    # Whichever model serves, it writes what it captures and dumps.
    written = {
        model["ExecutionRoleArn"]["Fn::GetAtt"][0]: ""
        for model in template.of_type("AWS::SageMaker::Model").values()
    }
    assert len(written) == 2
    for policy in template.model_policies.values():
        (role,) = policy["Roles"]
        written[role["Ref"]] += str(
            [
                statement["Resource"]
                for statement in policy["PolicyDocument"]["Statement"]
                if statement["Action"] == "s3:PutObject"
            ]
        )
    for resources in written.values():
        assert "captured/sentiment" in resources
        assert "dumps/sentiment" in resources


def test_the_image_of_a_pools_own_model_is_checked_against_its_type(stack, parts):
    gpu = parts.serving(
        stack,
        "Gpu",
        image=ContainerImage.from_dlc(
            "huggingface-pytorch-inference", "2.6.0-transformers4.51.3-gpu-py312-cu124-ubuntu22.04"
        ),
    )
    pools = [
        InstancePool(InstanceType("ml.g5.xlarge"), 1, model=gpu),
        InstancePool(InstanceType("ml.m5.xlarge"), 2),
    ]
    parts.configuration(stack, "Fits", variants=[parts.variant(stack, instance_pools=pools)])
    wrong = [InstancePool(InstanceType("ml.m5.xlarge"), 1, model=gpu)]
    variant = parts.variant(stack, name="wrong", instance_pools=wrong)
    with refused("LLE336"):
        parts.configuration(stack, "Wrong", variants=[variant])


def test_a_volume_beside_local_storage_is_a_warning(stack, parts):
    plain = parts.configuration(stack, variants=[parts.variant(stack, volume_size_gib=100)])
    local = parts.variant(
        stack, name="local", volume_size_gib=100, instance_type=InstanceType("ml.m5d.xlarge")
    )
    doubtful = parts.configuration(stack, "Doubtful", variants=[local])
    assert "volumeWithLocalStorage" not in str([e.data for e in plain.node.metadata])
    assert "volumeWithLocalStorage" in str([entry.data for entry in doubtful.node.metadata])


@pytest.mark.parametrize("property", ["EnableSSMAccess", "RoutingConfig", "VolumeSizeInGB"])
def test_what_is_not_asked_for_is_left_to_sagemaker(synthesised, property):
    assert property not in synthesised()


@pytest.mark.parametrize("timeout", [Duration.millis(90_500), Duration.seconds(59)])
def test_timeouts_are_whole_seconds_in_range(stack, parts, timeout):
    with refused("LLE406"):
        parts.configuration(
            stack, variants=[parts.variant(stack, startup_health_check_timeout=timeout)]
        )


def test_an_instance_type_that_aws_adds_later(stack, parts, template_of):
    parts.configuration(
        stack, variants=[parts.variant(stack, instance_type=InstanceType("ml.z99.large"))]
    )
    notes = [
        message.data
        for message in stack.node.find_child("Configuration").node.metadata
        if message.type == "aws:cdk:warning"
    ]
    assert len(notes) == 1
    assert "ml.z99.large is not in this version's table" in notes[0]
