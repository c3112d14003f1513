"""AWS::ApplicationAutoScaling::*."""

from __future__ import annotations

from typing import Any

import pytest
from signed_requests import refusal
from stacks_under_test import ENDPOINT, hosting, resource_of, variant
from stacks_under_test import endpoint as configured

TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"


@pytest.fixture
def endpoint(role) -> dict[str, Any]:
    """The resources of an endpoint with two variants."""
    variants = [variant(VariantName=name) for name in ("v", "w")]
    return {**hosting(role, variants), "Endpoint": resource_of(ENDPOINT, **configured())}


def target(variant: str = "v", **more: Any) -> dict[str, Any]:
    return {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "ResourceId": {"Fn::Sub": "endpoint/${Endpoint.EndpointName}/variant/" + variant},
        "MinCapacity": 2,
        "MaxCapacity": 8,
        **more,
    }


def scaling(aws: Any, what: str) -> list[dict[str, Any]]:
    """All of SageMaker's scalable targets, scheduled actions or scaling policies."""
    client = aws.client("application-autoscaling")
    found = getattr(client, f"describe_{what}")(ServiceNamespace="sagemaker")
    return found["".join(word.capitalize() for word in what.split("_"))]


def actions(aws: Any) -> dict[str, dict[str, Any]]:
    found = scaling(aws, "scheduled_actions")
    return {action["ScheduledActionName"]: action for action in found}


def tags(aws: Any, target: dict[str, Any]) -> dict[str, str]:
    client = aws.client("application-autoscaling")
    return client.list_tags_for_resource(ResourceARN=target["ScalableTargetARN"])["Tags"]


def test_scalable_target(aws, stack, endpoint):
    action = {
        "ScheduledActionName": "morning",
        "Schedule": "cron(0 6 * * ? *)",
        "Timezone": "Europe/Berlin",
        "ScalableTargetAction": {"MinCapacity": 6},
    }
    suspended = {"DynamicScalingInSuspended": True}
    labels = [{"Key": "team", "Value": "nlp"}, {"Key": "stage", "Value": "test"}]
    tagged = target(ScheduledActions=[action], SuspendedState=suspended, Tags=labels)
    made = stack.deploy(TARGET, tagged, **endpoint)
    (found,) = scaling(aws, "scalable_targets")
    assert tags(aws, found) == {"team": "nlp", "stage": "test"}
    assert (found["MinCapacity"], found["MaxCapacity"]) == (2, 8)
    assert found["SuspendedState"]["DynamicScalingInSuspended"] is True
    assert found["SuspendedState"]["DynamicScalingOutSuspended"] is False
    assert made.ref == f"{found['ResourceId']}|{found['ScalableDimension']}|sagemaker"
    assert actions(aws)["morning"]["Timezone"] == "Europe/Berlin"
    assert actions(aws)["morning"]["ScalableTargetAction"] == {"MinCapacity": 6}

    other = {**action, "ScheduledActionName": "evening"}
    labels = [{"Key": "team", "Value": "speech"}]
    retagged = target(MaxCapacity=12, ScheduledActions=[other], Tags=labels)
    changed = stack.deploy(TARGET, retagged, **endpoint)
    (found,) = scaling(aws, "scalable_targets")
    assert tags(aws, found) == {"team": "speech"}
    assert changed.ref == made.ref
    assert found["MaxCapacity"] == 12
    assert found["SuspendedState"]["DynamicScalingInSuspended"] is False
    assert set(actions(aws)) == {"evening"}

    replaced = stack.deploy(TARGET, target("w"), **endpoint)
    (found,) = scaling(aws, "scalable_targets")
    assert found["ResourceId"].endswith("/variant/w")
    assert replaced.ref != made.ref
    assert actions(aws) == {}
    stack.delete()
    assert scaling(aws, "scalable_targets") == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (target("nowhere"), "does not name a production variant"),
        (target(MinCapacity=9), "Maximum capacity cannot be less"),
    ],
)
def test_a_target_needs_its_variant_and_sound_limits(stack, endpoint, wrong, words):
    assert words in stack.refusal(TARGET, wrong, **endpoint)


def tracking(value: float, metric: str = "InvocationsPerInstance", **more: Any) -> dict[str, Any]:
    kind = {"PredefinedMetricType": f"SageMakerVariant{metric}"}
    return {
        "PolicyName": "invocations",
        "PolicyType": "TargetTrackingScaling",
        "ScalingTargetId": {"Ref": "Target"},
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": value,
            "ScaleInCooldown": 300,
            "ScaleOutCooldown": 30,
            "PredefinedMetricSpecification": kind,
        },
        **more,
    }


def test_target_tracking_policy(aws, stack, endpoint):
    endpoint["Target"] = {"Type": TARGET, "Properties": target()}
    made = stack.deploy(POLICY, tracking(600), ("Arn",), **endpoint)
    (found,) = scaling(aws, "scaling_policies")
    assert made.ref == made.attributes["Arn"] == found["PolicyARN"]
    configuration = found["TargetTrackingScalingPolicyConfiguration"]
    assert configuration == tracking(600.0)["TargetTrackingScalingPolicyConfiguration"]

    changed = stack.deploy(POLICY, tracking(700), **endpoint)
    (found,) = scaling(aws, "scaling_policies")
    assert changed.ref == made.ref
    assert found["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 700

    # AWS takes another name with another metric only: see test_owned_names.py.
    other = tracking(4, "ConcurrentRequestsPerModelHighResolution", PolicyName="other")
    assert stack.deploy(POLICY, other, **endpoint).ref != made.ref
    assert [p["PolicyName"] for p in scaling(aws, "scaling_policies")] == ["other"]
    stack.delete()
    assert scaling(aws, "scaling_policies") == []


def test_step_policy(aws, stack, endpoint):
    endpoint["Target"] = {"Type": TARGET, "Properties": target()}
    steps = {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": 60,
        "MetricAggregationType": "Maximum",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 2}],
    }
    properties = tracking(0, PolicyType="StepScaling", StepScalingPolicyConfiguration=steps)
    del properties["TargetTrackingScalingPolicyConfiguration"]
    stack.deploy(POLICY, properties, **endpoint)
    (found,) = scaling(aws, "scaling_policies")
    assert found["PolicyType"] == "StepScaling"
    assert found["StepScalingPolicyConfiguration"] == steps


def test_a_policy_needs_a_registered_target(aws):
    code, _ = refusal(
        aws.client("application-autoscaling").put_scaling_policy,
        PolicyName="p",
        PolicyType="TargetTrackingScaling",
        ServiceNamespace="sagemaker",
        ResourceId="endpoint/none/variant/v",
        ScalableDimension="sagemaker:variant:DesiredInstanceCount",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 1.0,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
            },
        },
    )
    assert code == "ObjectNotFoundException"


COPIES = {"PredefinedMetricType": "SageMakerInferenceComponentInvocationsPerCopy"}
PROCESSOR = {"PredefinedMetricType": "ECSServiceAverageCPUUtilization"}
OVERLAP = [
    {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 10, "ScalingAdjustment": 1},
    {"MetricIntervalLowerBound": 5, "ScalingAdjustment": 2},
]
STEPS = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": OVERLAP}


@pytest.mark.parametrize(
    ("kind", "configuration", "words"),
    [
        ("TargetTracking", {"TargetValue": 5, "PredefinedMetricSpecification": COPIES}, "only sup"),
        (
            "TargetTracking",
            {"TargetValue": 5, "PredefinedMetricSpecification": PROCESSOR},
            "only s",
        ),
        ("Step", STEPS, "cannot overlap or have a gap"),
    ],
)
def test_a_stack_meets_the_limits_of_documented_limits_yaml(
    stack, endpoint, kind, configuration, words
):
    endpoint["Target"] = {"Type": TARGET, "Properties": target()}
    policy = tracking(5, PolicyType=f"{kind}Scaling")
    del policy["TargetTrackingScalingPolicyConfiguration"]
    policy[f"{kind}ScalingPolicyConfiguration"] = configuration
    assert words in stack.refusal(POLICY, policy, **endpoint)
