"""Update policies as CloudFormation takes them."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

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
    ("kind", "given", "waits"),
    [
        ("canary", {"wait": "20m", "termination_wait": "10m"}, 1800),
        ("linear", {"step_percent": 30, "wait": "10m"}, 2400),
        ("rolling", {"batch_percent": 50, "wait": "10m"}, 1200),
    ],
)
def test_the_longest_time_exceeds_the_waits(kind, given, waits):
    make = partial(getattr(DeploymentPolicy, kind), **given)
    with refused("LLE521", allowed=f"more than the waits' {waits:,} seconds"):
        make(maximum_execution=timedelta(seconds=waits))
    assert make(maximum_execution=timedelta(seconds=waits + 1)).waits == timedelta(seconds=waits)
