"""The pattern's plan says what is deployed: the numbers of the template, and no others."""

from __future__ import annotations

import pytest
from aws_cdk import CfnParameter, Duration

from low_latency_endpoint import (
    Container,
    ContainerImage,
    InferenceAmi,
    InstanceType,
    MeasuredThroughput,
    ScalingOptions,
    VariantOptions,
)

METRIC = "PredefinedMetricSpecification"


@pytest.fixture
def pattern(stack, parts):
    measured = MeasuredThroughput(peak_tps=1000, tps_per_instance=200, safety_factor=0.65)
    stated = {"throughput": measured, "instance_type": InstanceType("ml.m5.12xlarge")}
    return lambda **given: parts.pattern(stack, **stated | given)


def tracked(template):
    return [
        (
            policy[METRIC]["PredefinedMetricType"],
            policy["TargetValue"],
            policy["ScaleOutCooldown"],
            policy["ScaleInCooldown"],
        )
        for policy in (
            given["TargetTrackingScalingPolicyConfiguration"]
            for given in template.of_type("AWS::ApplicationAutoScaling::ScalingPolicy").values()
        )
    ]


def planned(template):
    """The plan as the endpoint's metadata has it; the CDK leaves nulls out."""
    endpoint = template["Resources"][template.only_id("AWS::SageMaker::Endpoint")]
    decisions = endpoint["Metadata"]["LowLatencyEndpoint::Plan"]["decisions"]
    return {decision["name"]: decision.get("value") for decision in decisions}


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"scaling": ScalingOptions(max_concurrency_per_instance=3)},
        {"scaling": ScalingOptions(target_invocations_per_instance=70)},
        {"scaling": ScalingOptions(max_concurrency_per_instance=3), "throughput": None},
        {
            "scaling": ScalingOptions(
                scale_in_cooldown=Duration.minutes(9), max_concurrency_per_instance=2.5
            )
        },
    ],
)
def test_metric_target_cooldowns_and_range_are_those_deployed(pattern, stack, template_of, given):
    pattern(**given)
    template = template_of(stack)
    plan = planned(template)
    assert tracked(template) == [
        (
            plan["scaling_metric"],
            plan["scaling_target"],
            plan["scale_out_cooldown"],
            plan["scale_in_cooldown"],
        )
    ]
    target = template.only("AWS::ApplicationAutoScaling::ScalableTarget")
    assert (target["MinCapacity"], target["MaxCapacity"]) == (
        plan["min_instances"],
        plan["max_instances"],
    )


def test_without_scaling_no_policy_is_planned_and_none_is_made(pattern, stack, template_of):
    made = pattern(scaling=ScalingOptions(enabled=False))
    template = template_of(stack)
    plan = planned(template)
    assert made.scaling is None
    assert tracked(template) == []
    assert plan["scaling_metric"] is None
    assert "scaling_target" not in plan
    variant = template.variant
    assert {plan["min_instances"], plan["max_instances"]} == {variant["InitialInstanceCount"]}


def test_a_concurrency_that_is_a_parameter(pattern, stack, template_of):
    given = CfnParameter(stack, "InFlight", type="Number").value_as_number
    pattern(scaling=ScalingOptions(max_concurrency_per_instance=given))
    template = template_of(stack)
    assert tracked(template)[0][1] == planned(template)["scaling_target"] == {"Ref": "InFlight"}


@pytest.mark.parametrize("given", [None, InferenceAmi("al2023-ami-sagemaker-inference-gpu-4-1")])
def test_the_ami_that_is_planned_is_deployed(pattern, parts, stack, template_of, given):
    image = ContainerImage.from_dlc("vllm", "0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker")
    pattern(
        instance_type=InstanceType("ml.g6e.12xlarge"),
        variant=VariantOptions(inference_ami=given),
        containers=[parts.container(image=image)],
    )
    template = template_of(stack)
    variant = template.variant
    assert variant["InferenceAmiVersion"] == planned(template)["inference_ami"]
    assert variant["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"


@pytest.mark.parametrize(
    ("name", "rolls_back"), [("ml.inf1.xlarge", False), ("ml.inf2.xlarge", True)]
)
def test_inf1_takes_no_deployment_guardrails(stack, pattern, template_of, name, rolls_back):
    """https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-exclusions.html"""
    image = ContainerImage.from_uri("123456789012.dkr.ecr.us-east-1.amazonaws.com/own:1")
    pattern(instance_type=InstanceType(name), containers=[Container(image=image)])
    deployment = template_of(stack).deployment
    routing = deployment["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]["Type"]
    assert ("AutoRollbackConfiguration" in deployment) is rolls_back
    assert routing == ("CANARY" if rolls_back else "ALL_AT_ONCE")
