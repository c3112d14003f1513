"""Target tracking: from requests over metrics and alarms to instances."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from alarms_under_test import dimensions, put_alarm
from hosting_site import Scaled, taking

from local_sagemaker.model_servers import SimulatedModelServer
from local_sagemaker.runtime.scheduled_actions import is_due

PER_INSTANCE = "VariantInvocationsPerInstance"
CONCURRENT = "VariantConcurrentRequestsPerModelHighResolution"


class Tracked(Scaled):
    """An endpoint whose variant is scaled on invocations per instance."""

    def __init__(
        self,
        here: Any,
        *,
        least: int = 1,
        most: int = 10,
        instances: int = 1,
        target: float = 6.0,
        metric: str = PER_INSTANCE,
        start: float = 0.0,
        **policy: Any,
    ) -> None:
        self.name = here.endpoint({"InitialInstanceCount": instances}, wait=not start)
        here.aws.advance(start)
        here.settled(self.name)
        super().__init__(here, f"endpoint/{self.name}/variant/primary")
        self.register(least, most)
        self.answer = self.track(target, metric, **policy)

    def minute(self, requests: int) -> int:
        """Send requests, let a minute pass; the desired count after it."""
        self.here.invoke_many(self.name, requests, at_once=2)
        self.here.aws.advance(60)
        return self.desired

    @property
    def desired(self) -> int:
        return self.here.settled(self.name)["ProductionVariants"][0]["DesiredInstanceCount"]

    def suspend(self, what: str) -> None:
        suspended = {f"DynamicScaling{what}Suspended": True}
        self.scaling.register_scalable_target(**self.key, SuspendedState=suspended)


@pytest.fixture
def quick(site):
    """A local AWS whose model takes no time."""
    return site({"model": taking(0.0)})


def test_the_alarms_are_those_that_aws_makes(quick):
    tracked = Tracked(quick, target=100.0)
    names = [alarm["AlarmName"] for alarm in tracked.answer["Alarms"]]
    found = quick.aws.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"]
    high, low = sorted(found, key=lambda alarm: alarm["AlarmName"])
    assert high["AlarmName"].startswith(f"TargetTracking-{tracked.key['ResourceId']}-AlarmHigh-")
    assert (high["Threshold"], high["EvaluationPeriods"], high["Period"]) == (100.0, 3, 60)
    assert (low["Threshold"], low["EvaluationPeriods"], low["Period"]) == (90.0, 15, 60)
    assert high["MetricName"] == low["MetricName"] == "InvocationsPerInstance"
    assert high["AlarmActions"] == [tracked.answer["PolicyARN"]]
    tracked.scaling.delete_scaling_policy(**tracked.key, PolicyName="track")
    assert quick.aws.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"] == []


def test_out_after_three_minutes_in_proportion_and_in_after_fifteen(quick):
    tracked = Tracked(quick, target=6.0, ScaleInCooldown=0)
    assert [tracked.minute(18) for _ in range(2)] == [1, 1]
    assert tracked.minute(18) == 3  # 18 per instance, 6 wanted
    (activity,) = tracked.activities
    assert activity["StatusCode"] == "Successful"
    assert activity["Description"] == "Setting desired instance count to 3."
    assert "in state ALARM triggered policy track" in activity["Cause"]
    tracked.minute(18)  # the new ones take requests
    assert quick.minutes(tracked.name, "InvocationsPerInstance", "Sum", 1) == [pytest.approx(6.0)]
    # Silence: fourteen minutes are not enough, and the fifteenth brings it to the minimum.
    assert [tracked.minute(0) for _ in range(14)][-1] == 3
    assert tracked.minute(0) == 1
    assert len(tracked.activities) == 2


def test_the_cooldown_holds_a_scale_out_back_that_is_not_larger(quick):
    tracked = Tracked(quick, target=6.0, ScaleOutCooldown=230)
    assert [tracked.minute(12) for _ in range(3)] == [1, 1, 2]
    # One instance more, as before: above the target each minute, but the cooldown is almost four.
    assert [tracked.minute(18) for _ in range(3)] == [2, 2, 2]
    assert tracked.minute(18) == 3


def test_a_larger_scale_out_does_not_wait_for_the_cooldown(quick):
    tracked = Tracked(quick, target=6.0, ScaleOutCooldown=230)
    assert [tracked.minute(12) for _ in range(3)] == [1, 1, 2]
    assert tracked.minute(24) == 4  # two more, after one


def test_without_a_cooldown_a_policy_has_five_minutes(quick):
    tracked = Tracked(quick, target=6.0)
    assert [tracked.minute(12) for _ in range(3)] == [1, 1, 2]
    assert [tracked.minute(18) for _ in range(5)] == [2, 2, 2, 2, 2]
    assert tracked.minute(18) == 3


def test_a_scale_out_ends_the_cooldown_for_scale_in(quick):
    """As documented, only scale-in waits, and only for scale-in."""
    tracked = Tracked(quick, target=6.0, instances=3, ScaleInCooldown=3600, ScaleOutCooldown=0)
    assert [tracked.minute(12) for _ in range(15)][-1] == 2  # 4 of 6: below 5.4 with three
    assert [tracked.minute(18) for _ in range(3)][-1] == 3
    assert [tracked.minute(12) for _ in range(14)][-1] == 3
    assert tracked.minute(12) == 2


def test_a_minute_counts_the_instances_that_served_in_it(site):
    """24 a minute need four: not more because in the last minute only a part had four instances."""
    here = site({"model": taking(0.0)}, provision_time=90.0)
    tracked = Tracked(here, target=6.0, start=90.0, ScaleOutCooldown=0)
    found = []
    for _ in range(8):
        here.invoke_many(tracked.name, 12, at_once=2)
        here.aws.advance(30)
        here.invoke_many(tracked.name, 12, at_once=2)
        here.aws.advance(30)
        found.append(here.described(tracked.name)["ProductionVariants"][0]["DesiredInstanceCount"])
    assert found == [1, 1, 4, 4, 4, 4, 4, 4]


def test_limits_that_change_move_the_capacity_at_once(quick):
    tracked = Tracked(quick, target=6.0)
    tracked.scaling.register_scalable_target(**tracked.key, MinCapacity=3)
    quick.aws.advance(10)
    assert tracked.desired == 3
    tracked.scaling.register_scalable_target(**tracked.key, MinCapacity=1, MaxCapacity=2)
    quick.aws.advance(10)
    assert tracked.desired == 2  # although it has scaled out just now
    assert [activity["Cause"] for activity in tracked.activities] == [
        "maximum capacity was set to 2",
        "minimum capacity was set to 3",
    ]


@pytest.mark.parametrize("server", ["model", "other"])
def test_a_raised_minimum_needs_no_policy_no_load_and_no_model_server(quick, server):
    """User guide, "Scaling activities": limits that change begin an activity by themselves."""
    name = quick.endpoint({"ModelName": quick.model(server)})
    scaled = Scaled(quick, f"endpoint/{name}/variant/primary")
    counts = []
    for limits in ({"MinCapacity": 10, "MaxCapacity": 12}, {"MinCapacity": 2, "MaxCapacity": 3}):
        scaled.scaling.register_scalable_target(**scaled.key, **limits)
        quick.aws.advance(60)
        quick.settled(name)
        quick.aws.advance(60)
        counts.append(quick.settled(name)["ProductionVariants"][0]["CurrentInstanceCount"])
    assert counts == [10, 3]
    told = [(each["Cause"], each["StatusMessage"]) for each in scaled.activities]
    words = (
        "Successfully set desired instance count to {}. Change successfully fulfilled by sagemaker."
    )
    assert told == [
        ("maximum capacity was set to 3", words.format(3)),
        ("minimum capacity was set to 10", words.format(10)),
    ]


def test_a_capacity_that_somebody_else_changes_stays(quick):
    """Limits act when they are set: measured for DynamoDB, DDB-TABLE-315 of ack-api-quirks."""
    tracked = Tracked(quick, least=2, instances=2)
    quick.scale(tracked.name, 1)
    assert [tracked.minute(0) for _ in range(3)] == [1, 1, 1]
    tracked.scaling.register_scalable_target(**tracked.key)
    assert [tracked.minute(0) for _ in range(2)][-1] == 2


def test_suspended_schedules_set_nothing_and_suspended_policies_hold_no_limit(quick):
    tracked = Tracked(quick)
    at = quick.aws.runtime_time() + timedelta(minutes=1)
    tracked.scaling.put_scheduled_action(
        **tracked.key,
        ScheduledActionName="up",
        Schedule=f"at({at:%Y-%m-%dT%H:%M:%S})",
        ScalableTargetAction={"MinCapacity": 3},
    )
    suspended = dict.fromkeys(("DynamicScalingIn", "DynamicScalingOut", "ScheduledScaling"), True)
    state = {f"{name}Suspended": value for name, value in suspended.items()}
    tracked.scaling.register_scalable_target(**tracked.key, SuspendedState=state)
    assert [tracked.minute(0) for _ in range(3)][-1] == 1
    assert tracked.activities == []
    tracked.scaling.register_scalable_target(**tracked.key, MinCapacity=2)
    assert [tracked.minute(0) for _ in range(2)][-1] == 2


@pytest.mark.parametrize(("most", "expected"), [(4, 4), (50, 9)])
def test_not_beyond_the_maximum(quick, most, expected):
    tracked = Tracked(quick, target=2.0, most=most)
    assert [tracked.minute(18) for _ in range(3)][-1] == expected


def test_not_below_the_minimum(quick):
    tracked = Tracked(quick, least=2, instances=4, ScaleInCooldown=0)
    assert [tracked.minute(0) for _ in range(15)][-1] == 2


@pytest.mark.parametrize("how", ["policy", "suspended"])
def test_scaling_in_can_be_switched_off(quick, how):
    policy = {"DisableScaleIn": True} if how == "policy" else {}
    tracked = Tracked(quick, instances=3, ScaleInCooldown=0, **policy)
    if how == "suspended":
        tracked.suspend("In")
    assert [tracked.minute(0) for _ in range(17)][-1] == 3
    assert tracked.activities == []


def test_scaling_out_can_be_suspended(quick):
    tracked = Tracked(quick)
    tracked.suspend("Out")
    assert [tracked.minute(18) for _ in range(4)][-1] == 1


def test_steps_move_a_variant_by_how_far_its_alarm_is_breached(quick):
    name, cloudwatch = quick.endpoint(), quick.aws.client("cloudwatch")
    scaled = Scaled(quick, f"endpoint/{name}/variant/primary")
    scaled.register(1, 4)
    arn = scaled.step(
        {"MetricIntervalUpperBound": 0, "ScalingAdjustment": -1},
        {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 10, "ScalingAdjustment": 1},
        {"MetricIntervalLowerBound": 10, "ScalingAdjustment": 2},
        Cooldown=0,
    )
    for operator in ("GreaterThanThreshold", "LessThanThreshold"):
        put_alarm(
            cloudwatch,
            f"{name}-{operator}",
            "Invocations",
            AlarmActions=[arn],
            Namespace="AWS/SageMaker",
            Statistic="Sum",
            Dimensions=dimensions(EndpointName=name, VariantName="primary"),
            Threshold=5,
            ComparisonOperator=operator,
        )
    found = []
    for requests in (6, 20, 20, 0, 5, 0):
        quick.invoke_many(name, requests)
        quick.aws.advance(60)
        found.append(quick.settled(name)["ProductionVariants"][0]["DesiredInstanceCount"])
    assert found == [2, 4, 4, 3, 3, 2]
    done = cloudwatch.describe_alarm_history(
        AlarmName=f"{name}-GreaterThanThreshold", HistoryItemType="Action"
    )["AlarmHistoryItems"]
    assert {item["HistorySummary"] for item in done} == {f"Successfully executed action {arn}"}


def test_a_scheduled_action_moves_the_capacity_in_its_minute(quick):
    tracked = Tracked(quick, target=6.0)
    now = quick.aws.runtime_time()
    for name, minutes, limits in (("up", 2, (4, 10)), ("down", 3, (1, 2))):
        moment = now + timedelta(minutes=minutes)
        tracked.scaling.put_scheduled_action(
            **tracked.key,
            ScheduledActionName=name,
            Schedule=f"cron({moment.minute} {moment.hour} * * ? *)",
            ScalableTargetAction={"MinCapacity": limits[0], "MaxCapacity": limits[1]},
        )
    assert [tracked.minute(0) for _ in range(4)] == [1, 4, 2, 2]
    target = tracked.scaling.describe_scalable_targets(ServiceNamespace="sagemaker")
    (found,) = (
        each
        for each in target["ScalableTargets"]
        if each["ResourceId"] == tracked.key["ResourceId"]
    )
    assert (found["MinCapacity"], found["MaxCapacity"]) == (1, 2)
    assert [(each["Description"], each["Cause"]) for each in tracked.activities] == [
        ("Setting desired instance count to 2.", "maximum capacity was set to 2"),
        (
            "Setting min capacity to 1 and max capacity to 2",
            "scheduled action name down was triggered",
        ),
        ("Setting desired instance count to 4.", "minimum capacity was set to 4"),
        (
            "Setting min capacity to 4 and max capacity to 10",
            "scheduled action name up was triggered",
        ),
    ]


NOON = 1_800_014_400.0  # 15 January 2027, 12:00 UTC, a Friday


@pytest.mark.parametrize(
    ("schedule", "more", "due"),
    [
        ("at(2027-01-15T12:00:30)", {}, True),
        ("at(2027-01-15T12:01:00)", {}, False),
        ("at(2027-01-15T13:00:00)", {"Timezone": "Europe/Berlin"}, True),
        ("cron(0 12 ? * FRI *)", {}, True),
        ("cron(0 12 ? * FRI *)", {"Timezone": "Europe/Berlin"}, False),
        ("cron(0 13 15 JAN ? 2027)", {"Timezone": "Europe/Berlin"}, True),
        ("cron(0 12 * * ? *)", {"EndTime": NOON - 1}, False),
        ("cron(0 12 * * ? *)", {"StartTime": NOON + 60}, False),
        ("rate(5 minutes)", {"CreationTime": NOON - 590}, True),
        ("rate(5 minutes)", {"CreationTime": NOON - 230}, False),
        ("rate(1 day)", {"CreationTime": NOON - 86_400}, True),
    ],
)
def test_when_a_scheduled_action_is_due(schedule, more, due):
    assert is_due({"Schedule": schedule, **more}, NOON) is due


def test_in_a_cooldown_a_larger_step_adds_the_difference(quick):
    """AWS's example: two were added, so that of a step of three one is added."""
    name = quick.endpoint()
    scaled = Scaled(quick, f"endpoint/{name}/variant/primary")
    scaled.register(1, 9)
    arn = scaled.step(
        {"MetricIntervalLowerBound": 0, "MetricIntervalUpperBound": 10, "ScalingAdjustment": 2},
        {"MetricIntervalLowerBound": 10, "ScalingAdjustment": 3},
    )
    put_alarm(
        quick.aws.client("cloudwatch"),
        f"{name}-high",
        "Invocations",
        AlarmActions=[arn],
        Namespace="AWS/SageMaker",
        Statistic="Sum",
        Dimensions=dimensions(EndpointName=name, VariantName="primary"),
        Threshold=5,
        ComparisonOperator="GreaterThanThreshold",
    )
    found = []
    for requests in (6, 6, 20, 20, 20, 20, 20, 20, 20):
        quick.invoke_many(name, requests)
        quick.aws.advance(60)
        found.append(quick.settled(name)["ProductionVariants"][0]["DesiredInstanceCount"])
    # The cooldown of 300 s begins anew with the larger step; after it three more are added.
    assert found == [3, 3, 4, 4, 4, 4, 4, 4, 7]


def test_the_ten_second_metric_scales_out_within_half_a_minute(site):
    here = site({"model": taking(0.1, concurrency=8)})
    tracked = Tracked(here, metric=CONCURRENT, target=2.0)
    found = []
    for _ in range(3):
        here.invoke_many(tracked.name, 6, at_once=6)
        here.aws.advance(10)
        found.append(tracked.desired)
    assert found == [1, 1, 3]


def test_an_instance_that_does_not_start_fails_the_activity(quick):
    tracked = Tracked(quick, target=6.0)
    quick.invoke_many(tracked.name, 18)
    for _ in range(2):
        quick.aws.advance(60)
        quick.invoke_many(tracked.name, 18)
    quick.aws.set_model_servers({"model": SimulatedModelServer(ping_status=500)})
    quick.aws.advance(60)
    assert quick.described(tracked.name)["EndpointStatus"] == "Updating"
    (activity,) = tracked.activities
    assert activity["StatusCode"] == "InProgress"
    quick.aws.advance(300)
    assert tracked.desired == 1
    (activity,) = tracked.activities
    assert activity["StatusCode"] == "Failed"
    assert "did not pass the ping health check" in activity["StatusMessage"]


def test_on_a_fast_clock_it_happens_by_itself(site):
    here = site({"model": taking(0.0)}, clock_speed=240.0)
    tracked = Tracked(here, target=2.0, most=3)  # so that a busy machine asks for enough
    for _ in range(200):
        here.invoke_many(tracked.name, 50, at_once=2)
        if tracked.desired == 3:
            break
    assert tracked.desired == 3
    here.until(tracked.name, lambda d: d["ProductionVariants"][0]["DesiredInstanceCount"] == 1)
