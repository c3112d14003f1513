"""Scaling: policies, ranges, schedules, and what a change of it does."""

from __future__ import annotations

import pytest
from aws_cdk import Duration
from aws_cdk import aws_applicationautoscaling as appscaling

from low_latency_endpoint import (
    InstanceCounts,
    MeasuredThroughput,
    ScalingOptions,
    ScalingSchedule,
    ScalingSteps,
    StepUp,
)
from low_latency_endpoint.errors import ConfigurationError
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
            max_instances=10,
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
            "ScalableTargetAction": {"MinCapacity": 8, "MaxCapacity": 10},
        },
        {
            "ScheduledActionName": "night",
            "Schedule": "cron(0 22 * * ? *)",
            "ScalableTargetAction": {"MinCapacity": 2, "MaxCapacity": 4},
        },
    ]


def test_actions_that_leave_a_minimum_above_the_maximum_are_refused(scaling):
    """Whatever is stated first: at 7:30 the maximum is still the night's."""
    night = appscaling.Schedule.cron(hour="22", minute="0")
    scaling.on_schedule("night", schedule=night, min_instances=2, max_instances=4)
    with refused("LLE621", "at least 8 instances, and 2 to 4 before it"):
        scaling.on_schedule(
            "morning", schedule=appscaling.Schedule.cron(hour="7", minute="30"), min_instances=8
        )


def test_a_variant_is_a_target_once(endpoint, scaling):
    with refused("LLE623"):
        endpoint.scale("primary", min_instances=2, max_instances=10)


MORNING = ScalingSchedule(
    name="morning", cron="45 7 ? * MON-FRI *", time_zone="Europe/Berlin", min=8, max=40
)
NIGHT = ScalingSchedule(name="night", rate="1 day", min=2)


@pytest.fixture
def scaled(stack, parts):
    """The pattern with these scaling options, at a peak that needs ten instances."""

    def make(*, instances=None, **scaling):
        return parts.pattern(
            stack,
            "Scorer",
            throughput=MeasuredThroughput(peak_tps=1000, tps_per_instance=200),
            instances=instances,
            scaling=ScalingOptions(**scaling),
        )

    return make


def test_the_target_has_the_actions_as_they_are_stated(stack, scaled, template_of):
    scaled(schedule=[MORNING, NIGHT])
    target = template_of(stack).only(TARGET)
    assert (target["MinCapacity"], target["MaxCapacity"]) == (2, 20)
    assert target["ScheduledActions"] == [
        {
            "ScheduledActionName": "morning",
            "Schedule": "cron(45 7 ? * MON-FRI *)",
            "Timezone": "Europe/Berlin",
            "ScalableTargetAction": {"MinCapacity": 8, "MaxCapacity": 40},
        },
        {
            "ScheduledActionName": "night",
            "Schedule": "rate(1 day)",
            "ScalableTargetAction": {"MinCapacity": 2},
        },
    ]


def test_subnets_and_the_capacity_alarm_follow_the_largest_range(stack, scaled, template_of):
    endpoint = scaled(schedule=[MORNING])
    # Two addresses for each of 40 instances, twice for an update; 22 for AWS's, the link and spare.
    assert endpoint.plan.addresses.value >= 160
    assert endpoint.plan.largest_fleet == 40
    (alarm,) = (
        each
        for each in template_of(stack).of_type("AWS::CloudWatch::Alarm").values()
        if "all 40 instances" in each["AlarmDescription"]
    )
    assert alarm["Threshold"] == 39.5


def test_steps_stand_beside_target_tracking(stack, scaled, template_of):
    scaled(
        steps=ScalingSteps(
            adds=[StepUp(requests=8, add=2), StepUp(requests=16, add=4)],
            periods=2,
            cooldown=Duration.minutes(2),
        )
    )
    template = template_of(stack)
    kinds = {each["PolicyType"]: each for each in template.of_type(POLICY).values()}
    assert set(kinds) == {"TargetTrackingScaling", "StepScaling"}
    assert kinds["StepScaling"]["StepScalingPolicyConfiguration"] == {
        "AdjustmentType": "ChangeInCapacity",
        "Cooldown": 120,
        "MetricAggregationType": "Maximum",
        "StepAdjustments": [
            {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 8, "ScalingAdjustment": 2},
            {"MetricIntervalLowerBound": 8, "ScalingAdjustment": 4},
        ],
    }
    (policy,) = (
        name
        for name, each in template.of_type(POLICY).items()
        if each["PolicyType"] == "StepScaling"
    )
    (alarm,) = (
        each
        for each in template.of_type("AWS::CloudWatch::Alarm").values()
        if each.get("AlarmActions") == [{"Ref": policy}]
    )
    assert alarm["Threshold"] == 8
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Period"]) == (
        "ConcurrentRequestsPerModel",
        "Maximum",
        10,
    )
    assert alarm["EvaluationPeriods"] == 2


def test_steps_on_invocations_look_at_minutes(stack, scaled, template_of):
    scaled(steps=ScalingSteps(metric="invocations", adds=[StepUp(requests=9000, add=3)]))
    (alarm,) = (
        each
        for each in template_of(stack).of_type("AWS::CloudWatch::Alarm").values()
        if each["AlarmDescription"].startswith("Steps instances")
    )
    assert (alarm["MetricName"], alarm["Statistic"], alarm["Period"], alarm["Threshold"]) == (
        "InvocationsPerInstance",
        "Sum",
        60,
        9000,
    )


def test_the_plan_names_what_was_stated(scaled):
    explanation = scaled(
        schedule=[MORNING, NIGHT], steps=ScalingSteps(adds=[StepUp(requests=8, add=2)])
    ).plan.explanation
    first = explanation["scheduled_range_1"]
    assert first.value == "8 to 40 instances"
    assert first.inputs["when"] == "cron(45 7 ? * MON-FRI *)"
    # The night at any hour: before the first morning the maximum is 20.
    assert explanation["scheduled_range_2"].value == "2 to 40 instances"
    assert explanation["scheduled_range_2"].inputs["states"] == "at least 2 instances"
    assert explanation["scaling_steps"].value == "2 from 8 requests in flight per instance on"


def test_without_them_nothing_is_said_of_them(scaled):
    explanation = scaled().plan.explanation
    names = [decision.name for decision in explanation]
    assert not [name for name in names if "schedule" in name or "steps" in name]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"enabled": False, "schedule": [NIGHT]}, "LLE629"),
        ({"enabled": False, "steps": ScalingSteps(adds=[StepUp(requests=8, add=1)])}, "LLE629"),
        ({"instances": InstanceCounts(min=4, max=4), "schedule": [NIGHT]}, "LLE634"),
        (
            {
                "instances": InstanceCounts(min=10, max=10),
                "steps": ScalingSteps(adds=[StepUp(requests=8, add=1)]),
            },
            "LLE634",
        ),
        ({"schedule": [NIGHT, NIGHT]}, "LLE626"),
        ({"schedule": [ScalingSchedule(name="a", rate="1 day", min=21)]}, "LLE621"),
        ({"schedule": [ScalingSchedule(name="a", rate="1 day", max=1)]}, "LLE621"),
    ],
)
def test_what_cannot_be_is_refused(scaled, options, code):
    with pytest.raises(ConfigurationError, match=code):
        scaled(**options)


def test_a_policy_and_a_schedule_of_one_name_are_refused(scaled):
    named = ScalingSchedule(name="Invocations", rate="1 day", min=3)
    with pytest.raises(ConfigurationError, match="LLE626"):
        scaled(schedule=[named])
