"""AWS::ApplicationAutoScaling::*."""

from __future__ import annotations

from typing import Any

import pytest
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


def targets(aws: Any) -> list[dict[str, Any]]:
    return aws.client("application-autoscaling").describe_scalable_targets(
        ServiceNamespace="sagemaker"
    )["ScalableTargets"]


def actions(aws: Any) -> dict[str, dict[str, Any]]:
    found = aws.client("application-autoscaling").describe_scheduled_actions(
        ServiceNamespace="sagemaker"
    )["ScheduledActions"]
    return {action["ScheduledActionName"]: action for action in found}


def tags(aws: Any, target: dict[str, Any]) -> dict[str, str]:
    return aws.client("application-autoscaling").list_tags_for_resource(
        ResourceARN=target["ScalableTargetARN"]
    )["Tags"]


def test_scalable_target(aws, stack, endpoint):
    action = {
        "ScheduledActionName": "morning",
        "Schedule": "cron(0 6 * * ? *)",
        "Timezone": "Europe/Berlin",
        "ScalableTargetAction": {"MinCapacity": 6},
    }
    suspended = {"DynamicScalingInSuspended": True}
    tagged = target(
        ScheduledActions=[action],
        SuspendedState=suspended,
        Tags=[{"Key": "team", "Value": "nlp"}, {"Key": "stage", "Value": "test"}],
    )
    made = stack.deploy(TARGET, tagged, **endpoint)
    (found,) = targets(aws)
    assert tags(aws, found) == {"team": "nlp", "stage": "test"}
    assert (found["MinCapacity"], found["MaxCapacity"]) == (2, 8)
    assert found["SuspendedState"]["DynamicScalingInSuspended"] is True
    assert found["SuspendedState"]["DynamicScalingOutSuspended"] is False
    assert made.ref == f"{found['ResourceId']}|{found['ScalableDimension']}|sagemaker"
    assert actions(aws)["morning"]["Timezone"] == "Europe/Berlin"
    assert actions(aws)["morning"]["ScalableTargetAction"] == {"MinCapacity": 6}

    other = {**action, "ScheduledActionName": "evening"}
    retagged = target(
        MaxCapacity=12, ScheduledActions=[other], Tags=[{"Key": "team", "Value": "speech"}]
    )
    changed = stack.deploy(TARGET, retagged, **endpoint)
    (found,) = targets(aws)
    assert tags(aws, found) == {"team": "speech"}
    assert changed.ref == made.ref
    assert found["MaxCapacity"] == 12
    assert found["SuspendedState"]["DynamicScalingInSuspended"] is False
    assert set(actions(aws)) == {"evening"}

    replaced = stack.deploy(TARGET, target("w"), **endpoint)
    (found,) = targets(aws)
    assert found["ResourceId"].endswith("/variant/w")
    assert replaced.ref != made.ref
    assert actions(aws) == {}
    stack.delete()
    assert targets(aws) == []


def test_a_target_needs_its_variant_and_sound_limits(stack, endpoint):
    assert "does not name a production variant" in stack.refusal(
        TARGET, target("nowhere"), **endpoint
    )
    assert "Maximum capacity cannot be less" in stack.refusal(
        TARGET, target(MinCapacity=9), **endpoint
    )


def tracking(value: float, **more: Any) -> dict[str, Any]:
    return {
        "PolicyName": "invocations",
        "PolicyType": "TargetTrackingScaling",
        "ScalingTargetId": {"Ref": "Target"},
        "TargetTrackingScalingPolicyConfiguration": {
            "TargetValue": value,
            "ScaleInCooldown": 300,
            "ScaleOutCooldown": 30,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
            },
        },
        **more,
    }


def policies(aws: Any) -> list[dict[str, Any]]:
    return aws.client("application-autoscaling").describe_scaling_policies(
        ServiceNamespace="sagemaker"
    )["ScalingPolicies"]


def test_target_tracking_policy(aws, stack, endpoint):
    endpoint["Target"] = {"Type": TARGET, "Properties": target()}
    made = stack.deploy(POLICY, tracking(600), ("Arn",), **endpoint)
    (found,) = policies(aws)
    assert made.ref == made.attributes["Arn"] == found["PolicyARN"]
    configuration = found["TargetTrackingScalingPolicyConfiguration"]
    assert configuration == tracking(600.0)["TargetTrackingScalingPolicyConfiguration"]

    changed = stack.deploy(POLICY, tracking(700), **endpoint)
    (found,) = policies(aws)
    assert changed.ref == made.ref
    assert found["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 700

    # AWS takes another name with another metric only: see test_owned_names.py.
    by_concurrency = {
        "TargetValue": 4,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
        },
    }
    renamed = stack.deploy(
        POLICY,
        tracking(4, PolicyName="other", TargetTrackingScalingPolicyConfiguration=by_concurrency),
        **endpoint,
    )
    assert renamed.ref != made.ref
    assert [p["PolicyName"] for p in policies(aws)] == ["other"]
    stack.delete()
    assert policies(aws) == []


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
    (found,) = policies(aws)
    assert found["PolicyType"] == "StepScaling"
    assert found["StepScalingPolicyConfiguration"] == steps


def test_a_policy_needs_a_registered_target(aws):
    scaling = aws.client("application-autoscaling")
    with pytest.raises(scaling.exceptions.ObjectNotFoundException):
        scaling.put_scaling_policy(
            PolicyName="p",
            PolicyType="TargetTrackingScaling",
            ServiceNamespace="sagemaker",
            ResourceId="endpoint/none/variant/v",
            ScalableDimension="sagemaker:variant:DesiredInstanceCount",
            TargetTrackingScalingPolicyConfiguration={"TargetValue": 1.0},
        )
