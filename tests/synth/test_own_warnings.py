"""Warnings of the library's own: about secrets, and about alarms that notify nobody."""

from __future__ import annotations

import json

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch_actions as cloudwatch_actions
from aws_cdk import aws_sns as sns

from .conftest import ACKNOWLEDGED, alarms_on, warnings_after_synth, warnings_in

VALUE = "x7Kq2mP9vL4sT8wZ1nB6"
SECRET = "low-latency-endpoint:secretInEnvironment:HF_TOKEN"
NOBODY = "low-latency-endpoint:alarmsNotifyNobody"


def test_a_secret_in_an_environment_warns_without_its_value(stack, parts):
    parts.serving(stack, environment={"HF_TOKEN": VALUE, "HF_TASK": "text-classification"})
    (warning,) = warnings_in(stack, "secretInEnvironment")
    assert "HF_TOKEN" in warning
    everything = json.dumps(
        [
            str(entry.data)
            for construct in stack.node.find_all()
            for entry in construct.node.metadata
        ]
    )
    assert VALUE not in everything


@pytest.mark.parametrize(
    "value",
    [
        "{{resolve:secretsmanager:hub:SecretString:token}}",
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf",
    ],
)
def test_where_a_secret_is_may_be_said(stack, parts, value):
    parts.serving(stack, environment={"HF_TOKEN": value})
    assert not warnings_in(stack, "secretInEnvironment")


def test_a_token_is_not_known(stack, parts):
    value = cdk.CfnParameter(stack, "Token", no_echo=True).value_as_string
    parts.serving(stack, environment={"HF_TOKEN": value})
    assert not warnings_in(stack, "secretInEnvironment")


@ACKNOWLEDGED
@pytest.mark.parametrize("warned", [SECRET, NOBODY])
def test_a_warning_that_is_wrong_is_acknowledged(new_stack, parts, warned, acknowledge):
    left = []
    for acknowledged in (False, True):
        stack = new_stack()
        model = parts.serving(stack, environment={"HF_TOKEN": VALUE})
        endpoint = parts.endpoint(stack, variants=[parts.variant(stack, model=model)])
        alarms = alarms_on(stack, endpoint, error_rate=0.01)
        if acknowledged:
            acknowledge(alarms if warned == NOBODY else model, warned)
        text = "notify nobody" if warned == NOBODY else "looks like a secret"
        left.append(len(warnings_after_synth(stack, text)))
    assert left == [1, 0]


def test_alarms_that_notify_nobody_warn(new_stack, parts):
    for actions, expected in (([], 1), (None, 0)):
        stack = new_stack()
        if actions is None:
            topic = sns.Topic.from_topic_arn(
                stack, "Topic", "arn:aws:sns:us-east-1:123456789012:on-call"
            )
            actions = [cloudwatch_actions.SnsAction(topic)]
        endpoint = parts.endpoint(stack)
        alarms_on(stack, endpoint, error_rate=0.01, actions=actions)
        # For rollback, which SageMaker acts on, nobody has to be notified.
        alarms_on(stack, endpoint, "Rollback", new_fleet_only=True, error_rate=0.01)
        assert len(warnings_in(stack, "alarmsNotifyNobody")) == expected
