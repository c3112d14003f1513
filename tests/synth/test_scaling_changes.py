"""Set times and steps of a plan, in the template: what Application Auto Scaling gets."""

from __future__ import annotations

import pytest
from aws_cdk import Duration

from low_latency_endpoint import (
    InstanceCounts,
    MeasuredThroughput,
    ScalingOptions,
    ScalingSchedule,
    ScalingSteps,
    StepUp,
)
from low_latency_endpoint.errors import ConfigurationError

TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
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
    assert endpoint.plan.addresses_per_subnet >= 160
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
    assert explanation["scheduled_range_2"].value == "at least 2 instances"
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
