"""Schedule expressions, in rules of EventBridge and in scheduled actions, by API and in stacks.

Sources: EventBridge user guide, "Setting a schedule pattern": cron and rate expressions; Application
Auto Scaling API reference, PutScheduledAction.
"""

from __future__ import annotations

from typing import Any

import pytest
from hosting_site import Site
from signed_requests import refusal

from local_sagemaker import LocalAws

GOOD = [
    "rate(1 minute)",
    "rate(5 minutes)",
    "rate(1 hour)",
    "rate(14 days)",
    "cron(0 10 * * ? *)",
    "cron(15 12 ? * MON-FRI 2026-2030)",
    "cron(0/5 8-17 ? * mon-FRI *)",
    "cron(*/10 0,12 1,15 JAN,6 ? *)",
    "cron(0 9 L * ? *)",
    "cron(0 9 3W * ? *)",
    "cron(0 9 ? * 6#3 *)",
    "cron(0 9 ? * FRIL *)",
]
BAD = [
    "rate(1 minutes)",
    "rate(1 days)",
    "rate(5 minute)",
    "rate(2 hour)",
    "rate(0 minutes)",
    "rate(-5 minutes)",
    "rate(1.5 hours)",
    "rate(05 minutes)",
    "rate(5  minutes)",
    "rate( minutes)",
    "rate(5 seconds)",
    "rate(1 week)",
    "rate(5)",
    "rate()",
    "Rate(5 minutes)",
    "rate(5 minutes) ",
    "5 minutes",
    "cron(0 10 * *)",
    "cron(0 10 * * ?)",
    "cron(0 0 10 * * ? *)",
    "cron(0 10 * * * *)",
    "cron(0 10 ? * ? *)",
    "cron(0 10 1 * MON *)",
    "cron(? 10 * * ? *)",
    "cron(0 10 * ? MON *)",
    "cron(60 10 * * ? *)",
    "cron(0 24 * * ? *)",
    "cron(0 10 32 * ? *)",
    "cron(0 10 0 * ? *)",
    "cron(0 10 * 13 ? *)",
    "cron(0 10 ? * 8 *)",
    "cron(0 10 ? * 0 *)",
    "cron(0 10 * * ? 1969)",
    "cron(0 10 * * ? 2200)",
    "cron(0/0 10 * * ? *)",
    "cron(0/-5 10 * * ? *)",
    "cron(0 10 ? * 2#6 *)",
    "cron(0 10 ? * MONDAY *)",
    "cron(0 10 * JANUARY ? *)",
    "cron(L 10 * * ? *)",
    "cron(0 10 LW-3 * ? *)",
    "cron(0 10 40W * ? *)",
    "cron(0, 10 * * ? *)",
    "cron(\u0660 10 * * ? *)",
    "cron()",
    "cron 0 10 * * ? *",
]
ONCE = {
    "at(2027-01-31T17:00:00)": True,
    "at(2027-02-30T17:00:00)": False,
    "at(2027-01-31)": False,
    "at(2027-01-31T17:00:00Z)": False,
    "at(2027-01-31T17:00)": False,
    "at(tomorrow)": False,
}


@pytest.fixture
def variant(aws: LocalAws) -> dict[str, str]:
    """A variant that can be scaled."""
    name = Site(aws).endpoint()
    key = {
        "ServiceNamespace": "sagemaker",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
        "ResourceId": f"endpoint/{name}/variant/primary",
    }
    client = aws.client("application-autoscaling")
    client.register_scalable_target(**key, MinCapacity=1, MaxCapacity=2)
    return key


def rule(aws: LocalAws, variant: dict[str, str]) -> tuple[Any, dict[str, Any], str]:
    return aws.client("events").put_rule, {"Name": "r"}, "ScheduleExpression"


def action(aws: LocalAws, variant: dict[str, str]) -> tuple[Any, dict[str, Any], str]:
    put = aws.client("application-autoscaling").put_scheduled_action
    limits = {"ScalableTargetAction": {"MinCapacity": 1}}
    return put, {**variant, "ScheduledActionName": "a", **limits}, "Schedule"


@pytest.mark.parametrize("expression", GOOD)
@pytest.mark.parametrize("kind", [rule, action])
def test_an_expression_is_taken(aws, variant, kind, expression):
    put, request, name = kind(aws, variant)
    put(**request, **{name: expression})


@pytest.mark.parametrize("expression", BAD)
@pytest.mark.parametrize("kind", [rule, action])
def test_what_is_no_expression_is_refused(aws, variant, kind, expression):
    put, request, name = kind(aws, variant)
    code, message = refusal(put, **request, **{name: expression})
    assert code == "ValidationException"
    assert "is not valid" in message


@pytest.mark.parametrize(("expression", "good"), ONCE.items())
def test_only_scheduled_actions_run_once(aws, variant, expression, good):
    put, request, name = rule(aws, variant)
    assert refusal(put, **request, **{name: expression})[0] == "ValidationException"
    put, request, name = action(aws, variant)
    if good:
        put(**request, **{name: expression})
    else:
        assert refusal(put, **request, **{name: expression})[0] == "ValidationException"


def test_a_time_zone_is_one_of_ianas(aws, variant):
    put, request, _ = action(aws, variant)
    put(**request, Schedule="cron(0 9 * * ? *)", Timezone="Etc/GMT+9")
    code, _ = refusal(put, **request, Schedule="cron(0 9 * * ? *)", Timezone="Berlin")
    assert code == "ValidationException"


@pytest.mark.parametrize("expression", ["rate(1 minutes)", "cron(0 10 * *)", "cron(0 10 * * * *)"])
def test_a_stack_with_it_fails(stack, variant, expression):
    reason = stack.refusal("AWS::Events::Rule", {"ScheduleExpression": expression})
    assert "Parameter ScheduleExpression is not valid." in reason
    stack.delete()
    action = {"ScheduledActionName": "a", "Schedule": expression}
    action["ScalableTargetAction"] = {"MinCapacity": 1}
    target = {**variant, "MinCapacity": 1, "MaxCapacity": 2, "ScheduledActions": [action]}
    reason = stack.refusal("AWS::ApplicationAutoScaling::ScalableTarget", target)
    assert "is not valid" in reason
