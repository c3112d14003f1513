"""Scaling: what Application Auto Scaling is told, and when."""

from __future__ import annotations

import pytest
from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling

from low_latency_endpoint.hosting.scaling import ScalingStep
from tests.refusals import refused

TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"


@pytest.fixture
def endpoint(stack, parts):
    return parts.endpoint(stack)


@pytest.fixture
def scaling(endpoint):
    return endpoint.scale("primary", min_instances=2, max_instances=10)


def test_the_target_waits_for_the_endpoint(stack, scaling, template_of):
    template = template_of(stack)
    target = template.only(TARGET)
    assert target["ServiceNamespace"] == "sagemaker"
    assert target["ScalableDimension"] == "sagemaker:variant:DesiredInstanceCount"
    assert (target["MinCapacity"], target["MaxCapacity"]) == (2, 10)
    assert target["ResourceId"] == {
        "Fn::Join": [
            "",
            [
                "endpoint/",
                # A reference, not the name as text: registered only once the endpoint is in service.
                {"Fn::GetAtt": [template.only_id("AWS::SageMaker::Endpoint"), "EndpointName"]},
                "/variant/primary",
            ],
        ]
    }
    assert "RoleARN" not in target  # the service-linked role


# AWS: SageMakerVariantInvocationsPerInstance = (MAX_RPS * SAFETY_FACTOR) * 60
@pytest.mark.parametrize(
    ("given", "target_value"),
    [
        ({"max_tps_per_instance": 200, "safety_factor": 0.65}, 7800),
        ({"max_tps_per_instance": 200, "safety_factor": 1.0}, 12000),
        ({"max_tps_per_instance": 200}, 6000),
        ({"max_tps_per_instance": 0.5, "safety_factor": 0.7}, 21),
    ],
)
def test_tracks_invocations_per_instance(stack, scaling, template_of, given, target_value):
    assert scaling.track_invocations(**given) is scaling
    template = template_of(stack)
    policy = template.only(POLICY)
    assert policy["PolicyType"] == "TargetTrackingScaling"
    assert policy["ScalingTargetId"] == {"Ref": template.only_id(TARGET)}
    assert policy["TargetTrackingScalingPolicyConfiguration"] == {
        "TargetValue": target_value,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
        },
    }


def test_cooldowns(stack, scaling, template_of):
    scaling.track_invocations(
        max_tps_per_instance=200,
        scale_in_cooldown=Duration.minutes(10),
        scale_out_cooldown=Duration.seconds(0),
        disable_scale_in=True,
    )
    configuration = template_of(stack).only(POLICY)["TargetTrackingScalingPolicyConfiguration"]
    assert configuration["ScaleInCooldown"] == 600
    assert configuration["ScaleOutCooldown"] == 0
    assert configuration["DisableScaleIn"] is True


def test_tracks_concurrency_at_high_resolution(stack, scaling, template_of):
    scaling.track_concurrency(max_concurrency_per_instance=5, scale_in_cooldown=Duration.minutes(1))
    assert template_of(stack).only(POLICY)["TargetTrackingScalingPolicyConfiguration"] == {
        "TargetValue": 5,
        "ScaleInCooldown": 60,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
        },
    }


def test_several_variants_and_policies(stack, parts, template_of):
    variants = [parts.variant(stack), parts.variant(stack, name="challenger")]
    endpoint = parts.endpoint(stack, variants=variants)
    first = endpoint.scale("primary", min_instances=2, max_instances=10)
    first.track_invocations(max_tps_per_instance=200)
    first.track_concurrency(max_concurrency_per_instance=4)
    endpoint.scale("challenger", min_instances=1, max_instances=2).track_invocations(
        max_tps_per_instance=50
    )
    template = template_of(stack)
    targets = {
        properties["ResourceId"]["Fn::Join"][1][-1]: logical_id
        for logical_id, properties in template.of_type(TARGET).items()
    }
    assert set(targets) == {"/variant/primary", "/variant/challenger"}
    policies = [
        (
            policy["ScalingTargetId"]["Ref"],
            policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"],
        )
        for policy in template.of_type(POLICY).values()
    ]
    assert sorted(policies) == sorted(
        [
            (targets["/variant/primary"], 6000),
            (targets["/variant/primary"], 4),
            (targets["/variant/challenger"], 1500),
        ]
    )


@pytest.mark.parametrize(
    ("scale_in", "operator", "change"),
    [(False, "GreaterThanOrEqualToThreshold", 2), (True, "LessThanOrEqualToThreshold", -1)],
)
def test_steps_on_a_metric(stack, endpoint, scaling, template_of, scale_in, operator, change):
    alarm = scaling.step_on_metric(
        "Slow",
        metric=endpoint.metric("ModelLatency", statistic="p99"),
        threshold=200_000,
        steps=[
            ScalingStep(lower=0, upper=50_000, change=change),
            ScalingStep(lower=50_000, change=2 * change),
        ],
        evaluation_periods=3,
        cooldown=Duration.minutes(2),
        scale_in=scale_in,
    )
    template = template_of(stack)
    policy = template.only(POLICY)
    assert policy["PolicyType"] == "StepScaling"
    steps = policy["StepScalingPolicyConfiguration"]
    assert (steps["AdjustmentType"], steps["Cooldown"]) == ("ChangeInCapacity", 120)
    assert steps["StepAdjustments"] == [
        {
            "MetricIntervalLowerBound": 0,
            "MetricIntervalUpperBound": 50_000,
            "ScalingAdjustment": change,
        },
        {"MetricIntervalLowerBound": 50_000, "ScalingAdjustment": 2 * change},
    ]
    watched = template.only("AWS::CloudWatch::Alarm")
    assert watched["AlarmActions"] == [{"Ref": template.only_id(POLICY)}]
    assert watched["ComparisonOperator"] == operator
    assert (watched["Threshold"], watched["EvaluationPeriods"]) == (200_000, 3)
    assert stack.resolve(alarm.alarm_name) == {"Ref": template.only_id("AWS::CloudWatch::Alarm")}


def test_schedules(stack, scaling, template_of):
    assert (
        scaling.on_schedule(
            "morning",
            schedule=appscaling.Schedule.cron(hour="7", minute="30"),
            min_instances=8,
            time_zone="Europe/Berlin",
        )
        is scaling
    )
    scaling.on_schedule(
        "night",
        schedule=appscaling.Schedule.cron(hour="22", minute="0"),
        min_instances=2,
        max_instances=4,
    )
    actions = template_of(stack).only(TARGET)["ScheduledActions"]
    assert actions == [
        {
            "ScheduledActionName": "morning",
            "Schedule": "cron(30 7 * * ? *)",
            "Timezone": "Europe/Berlin",
            "ScalableTargetAction": {"MinCapacity": 8},
        },
        {
            "ScheduledActionName": "night",
            "Schedule": "cron(0 22 * * ? *)",
            "ScalableTargetAction": {"MinCapacity": 2, "MaxCapacity": 4},
        },
    ]


def test_a_variant_is_a_target_once(endpoint, scaling):
    with refused("LLE623"):
        endpoint.scale("primary", min_instances=2, max_instances=10)
