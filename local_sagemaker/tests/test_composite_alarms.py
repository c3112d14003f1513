"""Composite alarms of the local AWS: rules, and actions held back."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import pytest
from alarms_under_test import MINUTE, NOON, TOPIC, described, put_alarm, set_state, state
from signed_requests import refusal

from local_sagemaker.cloudwatch.composite_alarms import RuleError, parse_rule


def child(client: Any, name: str) -> None:
    """An alarm that keeps whatever state it is given."""
    put_alarm(client, name, "none", TreatMissingData="ignore")
    set_state(client, name, "OK")


def composite(client: Any, name: str, rule: str, **more: Any) -> None:
    client.put_composite_alarm(AlarmName=name, AlarmRule=rule, **more)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("ALARM(on)", True),
        ("ALARM(off)", False),
        ("OK(off)", True),
        ('ALARM("on")', True),
        ("INSUFFICIENT_DATA(new)", True),
        ("OK(new) OR ALARM(new)", False),
        ("ALARM(on) AND ALARM(off)", False),
        ("ALARM(on) OR ALARM(off)", True),
        ("NOT ALARM(off)", True),
        ("NOT (ALARM(on) OR ALARM(off))", False),
        # AND binds tighter than OR.
        ("TRUE OR FALSE AND FALSE", True),
        ("(TRUE OR FALSE) AND FALSE", False),
        ("ALARM(arn:aws:cloudwatch:us-east-1:123456789012:alarm:on)", True),
        ('(ALARM("with space") OR ALARM("with (parentheses)"))', True),
    ],
)
def test_rules(aws, cloudwatch, rule, expected):
    for name in ("on", "off", "new", "with space", "with (parentheses)"):
        child(cloudwatch, name)
    set_state(cloudwatch, "on", "ALARM")
    set_state(cloudwatch, "new", "INSUFFICIENT_DATA")
    set_state(cloudwatch, "with (parentheses)", "ALARM")
    composite(cloudwatch, "it", rule)
    aws.evaluate_alarms(NOON)
    assert state(cloudwatch, "it") == ("ALARM" if expected else "OK")


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "ALARM",
        "ALARM(a",
        "alarm(a)",
        "ALARM(a) ALARM(b)",
        "ALARM(a) AND",
        "NOT",
        "(TRUE",
        "MAYBE",
        "ALARM(a), ALARM(b)",
        "ALARM(a)(TRUE)",
        "ALARM(a) == TRUE",
        "TRUE if FALSE else TRUE",
    ],
)
def test_rules_that_cannot_be_read(rule):
    with pytest.raises(RuleError):
        parse_rule(rule)


def test_composites_of_composites_follow_at_once(aws, cloudwatch):
    child(cloudwatch, "leaf")
    composite(cloudwatch, "zz", "ALARM(leaf)")
    composite(cloudwatch, "aa", "ALARM(zz)")
    set_state(cloudwatch, "leaf", "ALARM")
    assert state(cloudwatch, "aa") == "ALARM"
    assert "alarm:zz transitioned to ALARM at " in described(cloudwatch, "aa")["StateReason"]
    below = cloudwatch.describe_alarms(ChildrenOfAlarmName="aa")
    assert [a["AlarmName"] for a in below["CompositeAlarms"]] == ["zz"]
    above = cloudwatch.describe_alarms(ParentsOfAlarmName="leaf")
    assert [a["AlarmName"] for a in above["CompositeAlarms"]] == ["zz"]


def test_a_cycle_is_not_evaluated_and_stops_nothing_else(aws, cloudwatch):
    child(cloudwatch, "leaf")
    composite(cloudwatch, "a", "ALARM(leaf)")
    composite(cloudwatch, "b", "ALARM(a)")
    aws.evaluate_alarms(NOON)
    composite(cloudwatch, "a", "ALARM(b) OR ALARM(leaf)")
    composite(cloudwatch, "other", "ALARM(leaf)")
    set_state(cloudwatch, "leaf", "ALARM")
    states = {n: state(cloudwatch, n) for n in ("a", "b", "other")}
    assert states == {"a": "OK", "b": "OK", "other": "ALARM"}


def test_refusals(cloudwatch):
    it = partial(composite, client=cloudwatch, name="it")
    assert "alarms [gone] in the alarm rule" in refusal(it, rule="ALARM(gone)")[1]
    child(cloudwatch, "leaf")
    lacks = refusal(it, rule="ALARM(leaf)", ActionsSuppressor="leaf")[1]
    assert "ActionsSuppressorWaitPeriod" in lacks
    it(rule="ALARM(leaf)")
    assert "depending on it" in refusal(cloudwatch.delete_alarms, AlarmNames=["leaf"])[1]


BRIEFLY = {2: ("child", "ALARM"), 3: ("suppressor", "ALARM"), 6: ("suppressor", "OK")}
# "Suppressing composite alarm actions", examples 1 to 6: a wait of 2 and an extension of 3 units,
# here minutes. What happens at which minute; then at which minute which actions are taken, and
# what holds them back in between.
EXAMPLES: dict[str, tuple[dict[int, tuple[str, str]], dict[int, str], dict[int, str | None]]] = {
    "1: not suppressed after WaitPeriod": (
        {2: ("child", "ALARM")},
        {4: "ALARM"},
        {1: None, 2: "WaitPeriod", 3: "WaitPeriod", 4: None},
    ),
    "2: suppressed by alarm before WaitPeriod expires": (
        {2: ("child", "ALARM"), 3: ("suppressor", "ALARM")},
        {},
        {2: "WaitPeriod", 3: "Alarm", 4: "Alarm", 9: "Alarm"},
    ),
    "3: a change during WaitPeriod starts a new one": (
        {2: ("child", "ALARM"), 3: ("child", "OK")},
        {5: "OK"},
        {2: "WaitPeriod", 3: "WaitPeriod", 4: "WaitPeriod", 5: None},
    ),
    "4: suppressed by an alarm that is on already": (
        {1: ("suppressor", "ALARM"), 2: ("child", "ALARM")},
        {},
        {2: "Alarm", 4: "Alarm", 9: "Alarm"},
    ),
    "5: not suppressed after ExtensionPeriod": (
        BRIEFLY,
        {9: "ALARM"},
        {3: "Alarm", 5: "Alarm", 6: "ExtensionPeriod", 8: "ExtensionPeriod", 9: None},
    ),
    "6: a change during ExtensionPeriod starts a WaitPeriod": (
        {**BRIEFLY, 7: ("child", "OK")},
        {9: "OK"},
        {6: "ExtensionPeriod", 7: "WaitPeriod", 8: "WaitPeriod", 9: None},
    ),
    "nothing changed while suppressed, so nothing is done afterwards": (
        {2: ("suppressor", "ALARM"), 4: ("suppressor", "OK")},
        {},
        {2: "Alarm", 4: "ExtensionPeriod", 6: "ExtensionPeriod", 7: None},
    ),
}


@pytest.mark.parametrize(("events", "taken", "held"), EXAMPLES.values(), ids=EXAMPLES)
def test_suppression_by_aws_examples(aws, cloudwatch, events, taken, held):
    child(cloudwatch, "child")
    child(cloudwatch, "suppressor")
    held_back = {
        "ActionsSuppressor": "suppressor",
        "ActionsSuppressorWaitPeriod": 120,
        "ActionsSuppressorExtensionPeriod": 180,
    }
    composite(cloudwatch, "it", "ALARM(child)", **held_back)
    aws.evaluate_alarms(NOON - 9 * MINUTE)
    aws.evaluate_alarms(NOON)
    told = {"AlarmActions": [TOPIC], "OKActions": [TOPIC]}
    composite(cloudwatch, "it", "ALARM(child)", **held_back, **told)
    found_held = {}
    for minute in range(1, 15):
        aws.evaluate_alarms(NOON + minute * MINUTE)
        if minute in events:
            set_state(cloudwatch, *events[minute])
        found_held[minute] = described(cloudwatch, "it").get("ActionsSuppressedBy")
    assert {minute: found_held[minute] for minute in held} == held
    found = {
        datetime.strptime(entry["Time"], "%Y-%m-%dT%H:%M:%S.%f%z"): entry["StateValue"]
        for entry in aws.alarm_actions()
    }
    assert found == {NOON + minute * MINUTE: value for minute, value in taken.items()}


def test_another_suppressor_ends_the_wait(aws, cloudwatch):
    for name in ("child", "one", "two"):
        child(cloudwatch, name)
    periods = {"ActionsSuppressorWaitPeriod": 600, "ActionsSuppressorExtensionPeriod": 60}
    composite(cloudwatch, "it", "ALARM(child)", ActionsSuppressor="one", **periods)
    aws.evaluate_alarms(NOON)
    set_state(cloudwatch, "child", "ALARM")
    assert described(cloudwatch, "it")["ActionsSuppressedBy"] == "WaitPeriod"
    composite(cloudwatch, "it", "ALARM(child)", ActionsSuppressor="two", **periods)
    aws.evaluate_alarms(NOON + MINUTE)
    found = described(cloudwatch, "it")
    assert "ActionsSuppressedBy" not in found
    assert (found["ActionsSuppressor"], found["ActionsSuppressorWaitPeriod"]) == ("two", 600)


def test_leftovers_tell_of_both_kinds(aws, cloudwatch):
    child(cloudwatch, "leaf")
    composite(cloudwatch, "it", "ALARM(leaf)")
    assert {"cloudwatch: leaf", "cloudwatch: it"} <= set(aws.leftovers())
