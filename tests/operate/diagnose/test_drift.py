"""What was changed by hand comes first, and what is deployed as it should be is not asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose.diagnosis import Diagnosis
from low_latency_endpoint.operate.diagnose.findings import Finding

from .account import FakeAccount
from .conftest import Run
from .faults import saturated
from .scenarios import ENDPOINT, VARIANT, Scenario, constant

Change = Callable[[FakeAccount], object]
REVERT = "npx cdk deploy --revert-drift"
AS_STATED: dict[str, Any] = {}


def first(made: Diagnosis) -> Finding:
    found = made.findings[0]
    assert found.id == "LLD704"
    return found


def told(found: Finding) -> str:
    return "\n".join(each.text for each in found.evidence)


@pytest.mark.parametrize(
    ("change", "words", "repair"),
    [
        (lambda a: a.targets[0].update(MinCapacity=10), "MinCapacity is 10", REVERT),
        (lambda a: a.targets.clear(), "not registered", REVERT),
        (
            lambda a: a.targets[0].update(SuspendedState={"DynamicScalingOutSuspended": True}),
            "suspended: DynamicScalingOutSuspended",
            "--suspended-state DynamicScalingOutSuspended=false",
        ),
        (
            lambda a: a.policies[0]["TargetTrackingScalingPolicyConfiguration"].update(
                TargetValue=9e4
            ),
            "TargetValue is 90000, the template says 7800",
            "put-scaling-policy",
        ),
        (
            lambda a: a.policies[0]["TargetTrackingScalingPolicyConfiguration"].update(
                ScaleOutCooldown=900
            ),
            "ScaleOutCooldown is 900, the template says 60",
            '"ScaleOutCooldown": 60',
        ),
        (lambda a: a.policies.clear(), "is missing", "put-scaling-policy"),
        (lambda a: a.alarms[0].update(Threshold=9e5), "Threshold is 900000", REVERT),
        (lambda a: a.alarms.pop(0), "ModelLatency-p99 is gone", REVERT),
        (lambda a: a.alarms[0].update(ActionsEnabled=False), "notifies nobody", "enable-alarm-act"),
        (
            lambda a: a.endpoint.update(EndpointConfigName="other"),
            "other serves, the stack has sentiment-config-2",
            REVERT,
        ),
        (
            lambda a: a.endpoint["ProductionVariants"][0].update(DesiredWeight=0.5),
            "primary: DesiredWeight is 0.5, the template says 1",
            "update-endpoint-weights-and-capacities",
        ),
    ],
)
def test_each_change_by_hand_is_told_first(
    change: Change, words: str, repair: str, run: Run
) -> None:
    account = Scenario(stated=AS_STATED).account()
    change(account)
    found = first(run(account))
    assert words in told(found)
    assert told(found).count("primary") <= 1, "the variant is named once"
    assert repair in " ".join((*(each.text for each in found.changes), found.besides))


@pytest.mark.parametrize(
    "change",
    [
        lambda a: None,
        lambda a: a.targets[0].update(SuspendedState={"DynamicScalingOutSuspended": False}),
        # Scaling has moved the count, and a deployment keeps it.
        lambda a: a.endpoint["ProductionVariants"][0].update(
            DesiredInstanceCount=12, CurrentInstanceCount=12
        ),
        # A set time's limits are stated.
        lambda a: (
            a.targets[0].update(MinCapacity=5),
            a.template["Resources"]["Target"]["Properties"].update(
                ScheduledActions=[{"ScalableTargetAction": {"MinCapacity": 5}}]
            ),
        ),
        # References are no literals.
        lambda a: a.template["Resources"]["Target"]["Properties"].update(
            MaxCapacity={"Ref": "Parameter"}
        ),
        # A deployment in progress changes all that.
        lambda a: (
            setattr(a, "stack_status", "UPDATE_IN_PROGRESS"),
            a.targets[0].update(MaxCapacity=1),
        ),
        lambda a: a.endpoint.update(EndpointConfigName="other", EndpointStatus="Updating"),
    ],
)
def test_what_is_no_drift(change: Change, run: Run) -> None:
    account = Scenario(stated=AS_STATED).account()
    change(account)
    assert run(account).findings == ()


def test_a_stack_that_is_being_updated_leaves_it_unknown(run: Run) -> None:
    account = Scenario(stated={"max": 20}).account()
    account.stack_status = "UPDATE_IN_PROGRESS"
    (unknown,) = run(account).measurements.unknown
    assert (unknown.what, unknown.why) == (
        "what was changed by hand",
        "Sentiment is UPDATE_IN_PROGRESS",
    )


def test_a_rollback_by_sagemaker_is_called_one(run: Run) -> None:
    account = Scenario(stated=AS_STATED).account()
    account.endpoint.update(EndpointConfigName="former", FailureReason="the container exited")
    found = first(run(account))
    assert "SageMaker rolled the last update back: the container exited" in told(found)
    assert found.changes == ()


@pytest.mark.parametrize(
    ("scenario", "change", "asked", "instead"),
    [
        # Full at 8 instances, which somebody set; the template says 16, and 15 would do.
        (saturated(stated={"max": 16}), None, "instances.max", REVERT),
        # The template has fewer than are needed as well: the setting must change, too.
        (saturated(stated={"max": 12}), None, "", ""),
        (
            saturated(scaling={"min": 2, "max": 16, "target": 7800.0}, stated=AS_STATED),
            lambda a: a.targets.clear(),
            "scaling.enabled",
            REVERT,
        ),
        (
            saturated(scaling={"min": 2, "max": 16, "target": 7800.0}, stated=AS_STATED),
            lambda a: a.targets[0].update(SuspendedState={"DynamicScalingOutSuspended": True}),
            "scaling.enabled",
            "see LLD704",
        ),
        (
            saturated(scaling={"min": 2, "max": 16, "target": 90000.0}, stated={"target": 7800.0}),
            None,
            "throughput.",
            "see LLD704",
        ),
    ],
)
def test_a_setting_that_is_deployed_as_advised_is_not_asked_for(
    scenario: Scenario, change: Change | None, asked: str, instead: str, run: Run
) -> None:
    account = scenario.account()
    if change:
        change(account)
    made = run(account)
    first(made)
    changes = [each.text for found in made.findings[1:] for each in found.changes]
    if not asked:
        assert any(each.startswith("instances.max: 15") for each in changes)
        return
    assert not any(each.startswith(asked) for each in changes), changes
    assert instead in changes


def test_a_setting_that_is_deployed_already_is_not_advised(run: Run) -> None:
    """Without drift, too: the container fails, alarms that roll back are there."""
    errors = {"Invocation5XXErrors": constant(0.05)}
    account = Scenario(stated=AS_STATED, errors=errors).account()
    (found,) = run(account).findings
    assert "deployment.rollback_on_alarms: true" in [each.text for each in found.changes]
    account.template["Resources"]["Endpoint"]["Properties"]["DeploymentConfig"] = {
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "a"}]}
    }
    (found,) = run(account).findings
    assert "deployment.rollback_on_alarms: true" not in [each.text for each in found.changes]


def event(minute: float, resource: str, **more: Any) -> dict[str, Any]:
    scenario = Scenario()
    user = {"arn": "arn:aws:sts::1:assumed-role/Admin/jane", **more.pop("user", {})}
    told = {"userIdentity": user, "requestParameters": {"resourceId": resource, **more}}
    return {
        "EventName": "RegisterScalableTarget",
        "EventTime": scenario.at(minute),
        "Username": "jane",
        "CloudTrailEvent": json.dumps(told),
    }


RESOURCE = f"endpoint/{ENDPOINT}/variant/{VARIANT}"


def test_when_and_by_whom_is_cloudtrails_word(run: Run) -> None:
    scenario = Scenario(stated={"max": 20})
    account = scenario.account()
    account.events = [
        event(50, RESOURCE, maxCapacity=16, user={"invokedBy": "cloudformation.amazonaws.com"}),
        event(45, "endpoint/another/variant/primary", maxCapacity=16),
        event(42, RESOURCE, suspendedState={"scheduledScalingSuspended": True}),
        event(40, RESOURCE, maxCapacity=16),
        event(10, RESOURCE, maxCapacity=3),
    ]
    (evidence,) = first(run(account)).evidence
    assert "RegisterScalableTarget by arn:aws:sts::1:assumed-role/Admin/jane" in evidence.text
    assert evidence.start == scenario.at(40)


def test_nobody_in_cloudtrail_is_said(run: Run) -> None:
    account = Scenario(stated={"max": 20}).account()
    assert "CloudTrail has no event for this change in 90 days" in told(first(run(account)))


def test_without_cloudtrail_the_service_may_tell_when(run: Run) -> None:
    from tests.fake_aws import REFUSED

    scenario = Scenario(stated={"max": 20})
    account = scenario.account()
    account.answers["cloudtrail.LookupEvents"] = REFUSED
    account.activities = [
        {
            **account.targets[0],
            "Cause": "maximum capacity was set to 16",
            "Description": "Setting desired instance count to 16.",
            "StartTime": scenario.at(33),
            "StatusCode": "Successful",
        }
    ]
    for key in ("MinCapacity", "MaxCapacity", "SuspendedState"):
        del account.activities[0][key]
    account.alarms[0].update(
        Threshold=9e5, AlarmConfigurationUpdatedTimestamp=scenario.at(20) - timedelta(days=3)
    )
    made = run(account)
    assert [each.start for each in first(made).evidence] == [
        scenario.at(33),
        scenario.at(20) - timedelta(days=3),
    ]
    assert "names nobody" not in told(first(made))
    assert "who changed it by hand" in [each.what for each in made.measurements.unknown]
