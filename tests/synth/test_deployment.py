"""Update policies as CloudFormation takes them."""

from __future__ import annotations

import pytest
from aws_cdk import Duration

from low_latency_endpoint import DeploymentPolicy, InstanceType
from tests.refusals import refused


def percent(value):
    return {"Type": "CAPACITY_PERCENT", "Value": value}


def blue_green(kind, wait, sizes=None, **more):
    routing = {"Type": kind, "WaitIntervalInSeconds": wait, **(sizes or {})}
    return {"BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing, **more}}


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (DeploymentPolicy.canary(), blue_green("CANARY", 300, {"CanarySize": percent(10)})),
        (
            DeploymentPolicy.canary(
                size_percent=50,
                wait=Duration.hours(1),
                termination_wait=Duration.minutes(2),
                maximum_execution=Duration.hours(8),
            ),
            blue_green(
                "CANARY",
                3600,
                {"CanarySize": percent(50)},
                TerminationWaitInSeconds=120,
                MaximumExecutionTimeoutInSeconds=28800,
            ),
        ),
        (
            DeploymentPolicy.canary(wait=Duration.seconds(0)),
            blue_green("CANARY", 0, {"CanarySize": percent(10)}),
        ),
        (
            DeploymentPolicy.linear(step_percent=20, wait=Duration.minutes(1)),
            blue_green("LINEAR", 60, {"LinearStepSize": percent(20)}),
        ),
        (DeploymentPolicy.all_at_once(), blue_green("ALL_AT_ONCE", 0)),
        (DeploymentPolicy.all_at_once(wait=Duration.minutes(10)), blue_green("ALL_AT_ONCE", 600)),
        (
            DeploymentPolicy.rolling(
                batch_percent=5, wait=Duration.minutes(1), maximum_execution=Duration.hours(2)
            ),
            {
                "RollingUpdatePolicy": {
                    "MaximumBatchSize": percent(5),
                    "WaitIntervalInSeconds": 60,
                    "MaximumExecutionTimeoutInSeconds": 7200,
                    # Absent it would be the whole fleet at once, for which there may be no room.
                    "RollbackMaximumBatchSize": percent(5),
                }
            },
        ),
    ],
)
def test_each_policy(stack, parts, template_of, policy, expected):
    parts.endpoint(stack, deployment=policy)
    assert template_of(stack).deployment == expected


def test_inf1_updates_all_at_once_by_default(stack, parts, template_of):
    variant = parts.variant(stack, instance_type=InstanceType("ml.inf1.xlarge"))
    parts.endpoint(stack, variants=[variant])
    deployment = template_of(stack).deployment
    routing = deployment["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]
    assert routing["Type"] == "ALL_AT_ONCE"


# What AWS adds up: waits between the shifts, and the wait before the old fleet ends.
@pytest.mark.parametrize(
    ("make", "waits"),
    [
        (
            lambda maximum: DeploymentPolicy.canary(
                wait=Duration.minutes(20),
                termination_wait=Duration.minutes(10),
                maximum_execution=maximum,
            ),
            1800,
        ),
        (
            lambda maximum: DeploymentPolicy.linear(
                step_percent=30, wait=Duration.minutes(10), maximum_execution=maximum
            ),
            2400,
        ),
        (
            lambda maximum: DeploymentPolicy.rolling(
                batch_percent=50, wait=Duration.minutes(10), maximum_execution=maximum
            ),
            1200,
        ),
    ],
)
def test_the_longest_time_exceeds_the_waits(stack, parts, template_of, make, waits):
    configuration = parts.configuration(stack)
    with refused("LLE521", allowed=f"more than {waits} seconds"):
        parts.endpoint(
            stack, "TooShort", configuration=configuration, deployment=make(Duration.seconds(waits))
        )
    parts.endpoint(stack, configuration=configuration, deployment=make(Duration.seconds(waits + 1)))
