"""Composite alarms: one that pages for several, within the length that CloudWatch takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from aws_cdk import CfnResource
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from ..plan.composite_rules import COMPOSITE_RULE_LENGTH, LONGEST_NAME, generated_name_length
from ..synthesis.construct_tree import alarm_name_of, path_of, stack_of
from ..synthesis.policy_documents import least_stack_name
from ..synthesis.template_values import masked, tokens


def is_on(alarm: cloudwatch.IAlarm) -> str:
    """That an alarm is on; by its name, which is shorter than its ARN."""
    return f'ALARM("{alarm_name_of(alarm)}")'


def any_of(rules: Sequence[str]) -> str:
    """That one of these is true."""
    return f"({' OR '.join(rules)})"


def all_of(rules: Sequence[str]) -> str:
    """That all of these are true."""
    return f"({' AND '.join(rules)})"


def composite_alarm(
    scope: Construct,
    id: str,
    *,
    rule: str,
    description: str,
    actions: Sequence[cloudwatch.IAlarmAction] = (),
    suppression: Mapping[str, Any] | None = None,
) -> cloudwatch.CompositeAlarm:
    """A composite alarm whose name CloudFormation makes: CDK's own is of the path alone."""
    made = cloudwatch.CompositeAlarm(
        scope,
        id,
        alarm_rule=cloudwatch.AlarmRule.from_string(rule),
        alarm_description=description,
        **(suppression or {}),
    )
    cast(CfnResource, made.node.default_child).add_property_deletion_override("AlarmName")
    for action in actions:
        made.add_alarm_action(action)
    _check_length(scope, id, rule)
    return made


def _check_length(scope: Construct, id: str, rule: str) -> None:
    longest = len(masked(rule)[0]) + len(tokens(rule)) * LONGEST_NAME
    if COMPOSITE_RULE_LENGTH.holds(longest):
        return
    stack = stack_of(scope)
    named = least_stack_name(stack)
    parts = stack.resolve(rule)
    texts = parts["Fn::Join"][1] if isinstance(parts, dict) else [parts]
    lengths = [
        len(text) if isinstance(text, str) else generated_name_length(named, len(text["Ref"]))
        for text in texts
    ]
    COMPOSITE_RULE_LENGTH.check(sum(lengths), f"{path_of(scope)}/{id}")
