"""What was changed by hand comes first where it explains a fault, else below the faults.

What is deployed as it should be is not asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from low_latency_endpoint.operate.diagnose import diagnose
from low_latency_endpoint.operate.diagnose.diagnosis import Diagnosis
from low_latency_endpoint.operate.diagnose.findings import Finding
from tests.depth import sampled

from .account import FakeAccount
from .conftest import Run
from .faults.endpoints import saturated
from .faults.fault import Fault, up_to
from .scenarios import END, ENDPOINT, VARIANT, Scenario, constant
from .steady_faults import FAULTS

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
        (lambda a: a.targets[0].update(MinCapacity=5), "MinCapacity is 5", REVERT),
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
    failed, found = run(account).findings
    assert (failed.id, found.id) == ("LLD701", "LLD704")
    assert "SageMaker rolled the last update back: the container exited" in told(found)
    assert found.changes == ()


@pytest.mark.parametrize(
    ("scenario", "change", "asked"),
    [
        # Full at 8 instances, which somebody set; the template says 16, and 15 would do.
        (saturated(stated={"max": 16}), None, "instances.max"),
        # The template has fewer than are needed as well: the setting must change, too.
        (saturated(stated={"max": 12}), None, ""),
        (
            saturated(scaling={"min": 2, "max": 16, "target": 7800.0}, stated=AS_STATED),
            lambda a: a.targets.clear(),
            "scaling.enabled",
        ),
        (
            saturated(scaling={"min": 2, "max": 16, "target": 7800.0}, stated=AS_STATED),
            lambda a: a.targets[0].update(SuspendedState={"DynamicScalingOutSuspended": True}),
            "scaling.enabled",
        ),
        (
            saturated(scaling={"min": 2, "max": 16, "target": 90000.0}, stated={"target": 7800.0}),
            None,
            "throughput.",
        ),
    ],
)
def test_a_setting_that_is_deployed_as_advised_is_not_asked_for(
    scenario: Scenario, change: Change | None, asked: str, run: Run
) -> None:
    account = scenario.account()
    if change:
        change(account)
    made = run(account)
    by_hand = first(made)
    assert not by_hand.risk, "it is what brought the fault"
    changes = [each.text for found in made.findings[1:] for each in found.changes]
    if not asked:
        assert any(each.startswith("instances.max: 15") for each in changes)
        return
    assert not any(each.startswith(asked) for each in changes), changes
    others = " ".join(each.besides for each in made.findings[1:])
    assert "it was changed by hand, see LLD704." in others
    assert REVERT not in others, "one command, told once"


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


# ---------------------------------------------------------------------------- during an incident


def _reverts(found: Finding) -> bool:
    """Whether it has a command that puts back what differs from the template."""
    runs = [each.text for each in found.changes if each.command]
    return any(REVERT in text for text in (*runs, found.besides))


def _beside(fault: Fault, change: Change) -> tuple[Diagnosis, Diagnosis]:
    """A fault in an endpoint that is as its template states, and the same with a change by hand."""
    made = []
    for changed in (False, True):
        scenario = fault.scenario()
        scenario.stated = scenario.stated or AS_STATED
        account = scenario.account()
        if changed:
            change(account)
        made.append(
            diagnose(
                account,
                ENDPOINT,
                start=account.start,
                end=END,
                now=END,
                region="us-east-1",
                client_latency=fault.client_latency,
            )
        )
    return made[0], made[1]


def _minimum_raised(account: FakeAccount) -> None:
    account.template["Resources"]["Target"]["Properties"]["MinCapacity"] = 0


def _maximum_raised(account: FakeAccount) -> None:
    account.template["Resources"]["Target"]["Properties"]["MaxCapacity"] -= 1


def _scale_in_suspended(account: FakeAccount) -> None:
    account.targets[0]["SuspendedState"]["DynamicScalingInSuspended"] = True


def _silenced(account: FakeAccount) -> None:
    account.template["Resources"]["P99"]["Properties"] = {}
    account.alarms[0]["ActionsEnabled"] = False


WITH_SCALING = [fault for fault in FAULTS if fault.scenario().scaling and fault.scenario().planned]

AS_STATED_SO_FAR = [fault for fault in WITH_SCALING if fault.scenario().stated is None]


@pytest.mark.parametrize("fault", WITH_SCALING, ids=str)
def test_a_raised_minimum_is_never_first_nor_put_back(fault: Fault) -> None:
    """As the on-call page advises it: whatever the fault is, the measure against it stays."""
    before, made = _beside(fault, _minimum_raised)
    assert made.findings[0].id == before.findings[0].id
    by_hand = next(found for found in made.findings if found.id == "LLD704")
    assert "MinCapacity is" in told(by_hand)
    assert [found.id for found in made.findings if _reverts(found)] == []
    assert "may be yours, against what is found here" in by_hand.besides
    assert "--min-capacity" not in " ".join([by_hand.besides, *(c.text for c in by_hand.changes)])


@pytest.mark.parametrize("fault", sampled(AS_STATED_SO_FAR, 6), ids=str)
@pytest.mark.parametrize("change", [_maximum_raised, _scale_in_suspended])
def test_nor_is_anything_else_that_adds_capacity(fault: Fault, change: Change) -> None:
    before, made = _beside(fault, change)
    assert made.findings[0].id == before.findings[0].id
    assert [found.id for found in made.findings if _reverts(found)] == []
    assert "InSuspended=false" not in " ".join(found.besides for found in made.findings)


@pytest.mark.parametrize("fault", sampled(WITH_SCALING, 6), ids=str)
def test_a_change_that_explains_nothing_stands_below_the_faults(fault: Fault) -> None:
    before, made = _beside(fault, _silenced)
    assert made.findings[0].id == before.findings[0].id
    assert [found.risk for found in made.findings] == sorted(found.risk for found in made.findings)


def test_a_lowered_maximum_beside_a_raised_minimum_is_put_back_alone(run: Run) -> None:
    """A deployment that reverts drift would take the minimum back as well."""
    scenario = saturated(stated={"max": 16, "min": 1})
    by_hand, full = run(scenario).findings
    assert (by_hand.id, by_hand.risk, full.id) == ("LLD704", False, "LLD102")
    assert [each.text.partition(" is ")[0] for each in by_hand.evidence] == [
        "primary: MaxCapacity",
        "primary: MinCapacity",
    ]
    (command,) = by_hand.changes
    assert command.text.endswith("--max-capacity 16")
    assert "--min-capacity" not in f"{command.text} {by_hand.besides}"
    assert not any(_reverts(found) for found in (by_hand, full))


def test_a_lowered_maximum_explains_a_risk_too(run: Run) -> None:
    """The fleet is at its maximum, and above its target, while latency holds."""
    scenario = Scenario(tps=constant(1300), scaling=up_to(8), stated={"max": 16})
    by_hand, full = run(scenario).findings
    assert [(each.id, each.risk) for each in (by_hand, full)] == [
        ("LLD704", True),
        ("LLD102", True),
    ]
    assert _reverts(by_hand)


def test_without_a_fault_a_raised_minimum_is_put_back_as_before(run: Run) -> None:
    (found,) = run(Scenario(stated={"min": 1})).findings
    assert (found.id, found.risk) == ("LLD704", True)
    assert _reverts(found)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_the_command_is_printed_once(fault: Fault) -> None:
    assert sum(_reverts(found) for found in fault.diagnosed.findings) <= 1


def _another_serves(account: FakeAccount) -> None:
    account.endpoint["EndpointConfigName"] = "other"


@pytest.mark.parametrize(("minutes_ago", "explains"), [(20, True), (60 * 24, False)])
def test_another_configuration_explains_what_began_with_it(
    minutes_ago: int, explains: bool, run: Run
) -> None:
    account = Scenario(stated=AS_STATED, latency=lambda m, i: 40 if m < 40 else 300).account()
    _another_serves(account)
    account.endpoint["LastModifiedTime"] = END - timedelta(minutes=minutes_ago)
    made = run(account)
    assert (made.findings[0].id == "LLD704") is explains


# --------------------------------------------------------------------------------- what is deleted


@pytest.mark.parametrize(("deleted", "call"), [("EndpointConfig", "Config"), ("Model", "Model")])
def test_who_deleted_what_serves_is_cloudtrails_word(deleted: str, call: str, run: Run) -> None:
    scenario = Scenario(deleted=deleted, planned=None)
    account = scenario.account()
    name = "sentiment-config-2" if deleted == "EndpointConfig" else "sentiment-model"
    gone = event(30, "", **{f"{deleted[0].lower()}{deleted[1:]}Name": name})
    account.events = [gone | {"EventName": f"DeleteEndpoint{call}".replace("EndpointM", "M")}]
    (found,) = run(account).findings
    assert (found.id, found.risk) == ("LLD709", True)
    assert found.evidence[0].start == scenario.at(30)
    assert "by arn:aws:sts::1:assumed-role/Admin/jane" in told(found)
    assert "of that name again" in found.besides


def test_the_nights_maximum_by_day_is_a_drift_with_a_command_for_the_hour(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    noon = datetime(2026, 11, 30, 12, tzinfo=UTC)
    monkeypatch.setattr("low_latency_endpoint.account.drift.account_now", lambda: noon)
    account = Scenario(stated=AS_STATED).account()
    account.targets[0].update(MinCapacity=5, MaxCapacity=6)
    actions = [
        {
            "Schedule": f"cron(0 {hour} * * ? *)",
            "ScalableTargetAction": {"MinCapacity": least, "MaxCapacity": most},
        }
        for hour, least, most in ((23, 4, 6), (5, 5, 33))
    ]
    account.template["Resources"]["Target"]["Properties"].update(ScheduledActions=actions)
    (found,) = run(account).findings
    assert found.id == "LLD704"
    assert "MaxCapacity is 6, the template says 33" in told(found)
    assert "--max-capacity 33" in " ".join((*(each.text for each in found.changes), found.besides))
