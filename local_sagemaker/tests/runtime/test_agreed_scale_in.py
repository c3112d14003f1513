"""All tracking policies that scale in have to be ready for it, whenever their alarms went off."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

import local_sagemaker.runtime.scaling as scaling_module
from local_sagemaker.runtime.scaling import TargetTracking

PLACE = ("123456789012", "us-east-1")
KEY = ("sagemaker", "endpoint/e/variant/v", "sagemaker:variant:DesiredInstanceCount")
BEGIN = 1200.0


def alarm(name, state, since):
    moment = datetime.fromtimestamp(since, UTC)
    outcome = {"StateTransitionedTimestamp": moment}
    return SimpleNamespace(name=name, state=state, settings={}, outcome=outcome)


def policy(name, *, only_out=False):
    configuration = {"TargetValue": 5.0, "DisableScaleIn": only_out}
    alarms = [f"high-{name}"] if only_out else [f"high-{name}", f"low-{name}"]
    return {
        "PolicyName": name,
        "PolicyARN": name,
        "TargetTrackingScalingPolicyConfiguration": configuration,
        "Alarms": [{"AlarmName": alarm} for alarm in alarms],
    }


def moves(monkeypatch, policies, low_alarms):
    """The capacities that an hour without load moves six instances to."""
    alarms = {f"high-{entry['PolicyName']}": alarm("high", "OK", 0.0) for entry in policies}
    for name, (state, since) in low_alarms.items():
        alarms[f"low-{name}"] = alarm("low", state, since)
    suspended = dict.fromkeys(
        ["DynamicScalingOutSuspended", "DynamicScalingInSuspended", "ScheduledScalingSuspended"],
        False,
    )
    target = {"MinCapacity": 1, "MaxCapacity": 9, "SuspendedState": suspended}
    state = SimpleNamespace(
        limits_set=set(),
        targets={KEY: target},
        policies={(KEY, entry["PolicyName"]): entry for entry in policies},
        actions={},
        activities=[],
    )
    monkeypatch.setattr(scaling_module, "scaling", lambda *place: state)
    monkeypatch.setattr(scaling_module, "state_at", lambda place: SimpleNamespace(alarms=alarms))
    monkeypatch.setattr(scaling_module, "_loads", lambda *_: [0.0])
    monkeypatch.setattr(scaling_module, "_capacity", lambda *_: 6)
    now = [BEGIN]
    wanted = []

    def move(place, resource, count, ended):
        wanted.append(count)
        return True

    tracking = TargetTracking(move, lambda: now[0])
    for tick in range(360):
        now[0] = BEGIN + 10.0 * tick
        tracking.act(PLACE, now[0])
    return wanted


@pytest.mark.parametrize("later", [0.0, 10.0, 30.0, 50.0])
def test_alarms_that_went_off_in_other_ticks_agree(monkeypatch, later):
    both = [policy("a"), policy("b")]
    low = {"a": ("ALARM", BEGIN), "b": ("ALARM", BEGIN + later)}
    assert moves(monkeypatch, both, low)[:1] == [1]


def test_one_that_is_not_ready_holds_the_others_back(monkeypatch):
    low = {"a": ("ALARM", BEGIN), "b": ("OK", BEGIN)}
    assert moves(monkeypatch, [policy("a"), policy("b")], low) == []


def test_one_that_only_scales_out_is_not_asked(monkeypatch):
    policies = [policy("a"), policy("b", only_out=True)]
    assert moves(monkeypatch, policies, {"a": ("ALARM", BEGIN)})[:1] == [1]
