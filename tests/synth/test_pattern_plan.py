"""The pattern's plan says what is deployed: the numbers of the template, and no others."""

from __future__ import annotations

import json
from difflib import ndiff
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import CfnParameter, Duration, Stage
from aws_cdk.assertions import Template

from low_latency_endpoint import (
    Container,
    ContainerImage,
    InferenceAmi,
    InstanceType,
    LatencyTarget,
    LowLatencyEndpoint,
    MeasuredThroughput,
    ScalingOptions,
    VariantOptions,
)
from low_latency_endpoint.plan.decisions import values_in_template

from .conftest import make_stack, make_template

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


def explained(stack):
    """The explanations beside the template, once it is made: by endpoint and variant."""
    return json.loads(Path(Stage.of(stack).outdir, f"{stack.node.id}.plan.json").read_text())


def planned(stack):
    """The values of the one plan in a stack; the CDK leaves nulls out."""
    ((plan,),) = (of.values() for of in explained(stack).values())
    return {decision["name"]: decision.get("value") for decision in plan["decisions"]}


def in_metadata(template):
    """The plan as the endpoint's metadata has it: what commands read from an account."""
    endpoint = template["Resources"][template.only_id("AWS::SageMaker::Endpoint")]
    return endpoint["Metadata"]["LowLatencyEndpoint::Plan"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"scaling": ScalingOptions(metric="concurrency", concurrency_target=3)},
        {"scaling": ScalingOptions(invocations_target=70)},
        {"scaling": ScalingOptions(metric="concurrency", concurrency_target=3), "throughput": None},
        {
            "scaling": ScalingOptions(
                scale_in_cooldown=Duration.minutes(9), metric="concurrency", concurrency_target=2.5
            )
        },
    ],
)
def test_metric_target_cooldowns_and_range_are_those_deployed(pattern, stack, template_of, given):
    pattern(**given)
    template = template_of(stack)
    plan = planned(stack)
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
    plan = planned(stack)
    assert made.scaling is None
    assert tracked(template) == []
    assert plan["scaling_metric"] is None
    assert "scaling_target" not in plan
    variant = template.variant
    assert {plan["min_instances"], plan["max_instances"]} == {variant["InitialInstanceCount"]}


def test_a_concurrency_that_is_a_parameter(pattern, stack, template_of):
    given = CfnParameter(stack, "InFlight", type="Number").value_as_number
    pattern(scaling=ScalingOptions(metric="concurrency", concurrency_target=given))
    template = template_of(stack)
    assert tracked(template)[0][1] == planned(stack)["scaling_target"] == {"Ref": "InFlight"}
    assert in_metadata(template)["scaling_target"] == {"Ref": "InFlight"}


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
    assert variant["InferenceAmiVersion"] == planned(stack)["inference_ami"]
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


@pytest.mark.parametrize("stage", [False, True])
def test_explanations_are_beside_the_template(parts, fill, stage):
    app = cdk.App(analytics_reporting=False)
    stack = cdk.Stack(Stage(app, "Prod") if stage else app, "Serving")
    fill(stack, "two-patterns")
    template = Template.from_stack(stack)
    file = Path(Stage.of(stack).outdir, stack.template_file.replace(".template.", ".plan."))
    assert file.parent.name.startswith("assembly-Prod" if stage else "cdk.out")
    made = [each for each in stack.node.children if isinstance(each, LowLatencyEndpoint)]
    assert len(made) == 2
    found = json.loads(file.read_text())
    assert list(found) == [each.node.path for each in made]
    for each in made:
        told = found[each.node.path]["primary"]
        why = each.plan.explanation
        assert [one["rule"] for one in told["decisions"]] == [one.rule for one in why]
        assert told["warnings"] == list(why.warnings)
        assert why["routing_strategy"].note not in json.dumps(template.to_json())


def test_changed_options_change_few_lines_of_metadata(parts):
    """Issue 40: of 298 lines that ``cdk diff`` showed of three options two thirds explained."""

    def metadata(name, p99, peak):
        stack = make_stack()
        parts.pattern(
            stack,
            instance_type=InstanceType(name),
            latency=LatencyTarget(p99=Duration.millis(p99)),
            throughput=MeasuredThroughput(peak_tps=peak, tps_per_instance=200),
        )
        return json.dumps(in_metadata(make_template(stack)), indent=1).splitlines()

    before = metadata("ml.m5.12xlarge", 200, 1000)
    changed = [
        line
        for line in ndiff(before, metadata("ml.c6i.12xlarge", 150, 2000))
        if line.startswith(("+", "-"))
    ]
    keys = {line[1:].partition(":")[0].strip(' "') for line in changed}
    assert keys == {
        "instance_type",
        "ModelLatency p99",
        "OverheadLatency Average",
        "peak_tps",
        "max_instances",  # follows from the peak
    }
    assert len(changed) == 2 * len(keys)
    assert len(before) < 25


def test_plans_in_templates_of_before_are_read_the_same(pattern, stack, template_of):
    made = pattern()
    now = in_metadata(template_of(stack))
    whole = json.loads(made.plan.explanation.to_json())
    assert values_in_template(whole) == values_in_template(now) == now
