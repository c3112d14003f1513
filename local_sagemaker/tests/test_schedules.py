"""Scheduled rules run their functions when a test says so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from roles_under_test import HOSTING, allow, give_role
from stacks_under_test import zip_of

from local_sagemaker import LocalAws, LocalAwsError

KEEPS = """
import boto3, json
def handler(event, context):
    boto3.client("ssm").put_parameter(
        Name=context.function_name, Value=json.dumps(event), Type="String", Overwrite=True
    )
"""

MEETS = """
import pathlib, time
def handler(event, context):
    folder = pathlib.Path(event["folder"])
    (folder / context.function_name).touch()
    while len(list(folder.iterdir())) < 3:
        time.sleep(0.01)
"""


class Scheduled:
    """Functions, and rules that run them."""

    def __init__(self, aws: LocalAws) -> None:
        self.aws, self.events, self.lambda_ = aws, aws.client("events"), aws.client("lambda")
        rights = [*HOSTING, allow("ssm:PutParameter")]
        self.role = give_role(aws, "scheduled", *rights, services=("lambda",))

    def function(self, name: str, code: str = KEEPS) -> str:
        made = self.lambda_.create_function(
            FunctionName=name,
            Runtime="python3.12",
            Handler="index.handler",
            Timeout=60,
            Role=self.role,
            Code={"ZipFile": zip_of(code)},
        )
        return str(made["FunctionArn"])

    def rule(self, name: str, *arns: str, input: Any = None, **more: Any) -> str:
        given = {} if input is None else {"Input": json.dumps(input)}
        rule = {"ScheduleExpression": "rate(1 minute)", **more}
        made = self.events.put_rule(Name=name, **{k: v for k, v in rule.items() if v})
        targets = [{"Id": str(n), "Arn": arn, **given} for n, arn in enumerate(arns)]
        self.events.put_targets(Rule=name, Targets=targets)
        return str(made["RuleArn"])

    def allow(self, function: str, rule: str, principal: str = "events.amazonaws.com") -> None:
        self.lambda_.add_permission(
            FunctionName=function,
            StatementId="rule",
            Action="lambda:InvokeFunction",
            Principal=principal,
            SourceArn=rule,
        )

    def kept(self, function: str) -> Any:
        value = self.aws.client("ssm").get_parameter(Name=function)["Parameter"]["Value"]
        return json.loads(value)


@pytest.fixture
def scheduled(aws: LocalAws) -> Iterator[Scheduled]:
    aws.reset()
    yield Scheduled(aws)
    aws.reset()


def test_functions_get_the_rules_input_or_a_scheduled_event(scheduled):
    arns = [scheduled.function(name) for name in ("told", "untold")]
    rules = [scheduled.rule("one", arns[0], input={"a": 1}), scheduled.rule("two", arns[1])]
    for name, rule in zip(("told", "untold"), rules, strict=True):
        scheduled.allow(name, rule)
    scheduled.aws.advance(3600)
    assert sorted(scheduled.aws.run_schedules()) == ["told", "untold"]
    assert scheduled.kept("told") == {"a": 1}
    event = scheduled.kept("untold")
    assert (event["source"], event["detail-type"]) == ("aws.events", "Scheduled Event")
    assert event["resources"] == [rules[1]]
    assert event["time"][:15] == f"{scheduled.aws.runtime_time():%Y-%m-%dT%H:%M:%SZ}"[:15]


def test_only_enabled_scheduled_rules_run(scheduled):
    arn = scheduled.function("f")
    scheduled.allow("f", scheduled.rule("off", arn, State="DISABLED"))
    pattern = {"EventPattern": json.dumps({"source": ["mine"]})}
    scheduled.rule("pattern", arn, ScheduleExpression=None, **pattern)
    assert scheduled.aws.run_schedules() == []
    scheduled.events.enable_rule(Name="off")
    assert scheduled.aws.run_schedules() == ["f"]


@pytest.mark.parametrize(
    ("other", "principal"),
    [("rule/another", "events.amazonaws.com"), ("rule/its", "s3.amazonaws.com"), (None, "")],
    ids=["another rule's", "another service's", "none"],
)
def test_a_rule_without_its_permission_runs_nothing(scheduled, other, principal):
    rule = scheduled.rule("its", scheduled.function("f"), "arn:aws:sqs:us-east-1:123456789012:q")
    if other:
        scheduled.allow("f", rule.replace("rule/its", other), principal)
    assert scheduled.aws.run_schedules() == []
    if other:
        scheduled.lambda_.remove_permission(FunctionName="f", StatementId="rule")
    scheduled.allow("f", rule)
    assert scheduled.aws.run_schedules() == ["f"]


def test_a_rule_runs_as_often_as_it_is_told_but_not_what_is_deleted(scheduled):
    scheduled.allow("f", scheduled.rule("one", scheduled.function("f")))
    assert scheduled.aws.run_schedules() == scheduled.aws.run_schedules() == ["f"]
    scheduled.lambda_.delete_function(FunctionName="f")
    assert scheduled.aws.run_schedules() == []


def test_an_input_that_is_not_played_is_refused(scheduled):
    arn = scheduled.function("f")
    scheduled.allow("f", scheduled.rule("one", arn))
    target = {"Id": "0", "Arn": arn, "InputPath": "$.detail"}
    scheduled.events.put_targets(Rule="one", Targets=[target])
    with pytest.raises(LocalAwsError, match="InputPath of one is not emulated"):
        scheduled.aws.run_schedules()


def test_functions_run_at_the_same_time(scheduled, tmp_path):
    """Each waits for the other two: one after another none would end."""
    names = ["a", "b", "c"]
    arns = [scheduled.function(name, MEETS) for name in names]
    rule = scheduled.rule("all", *arns, input={"folder": str(tmp_path)})
    for name in names:
        scheduled.allow(name, rule)
    assert scheduled.aws.run_schedules() == names
    log = scheduled.aws.client("logs")
    for name in names:
        told = log.filter_log_events(logGroupName=f"/aws/lambda/{name}")["events"]
        assert not any("Task timed out" in event["message"] for event in told)
