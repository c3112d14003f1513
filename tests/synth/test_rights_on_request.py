"""Rights that the model's role gets only when a feature needs them."""

from __future__ import annotations

import json

import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from low_latency_endpoint import CoreDump, DataCapture

from .conftest import by_action

KEY = "arn:aws:kms:us-east-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"


@pytest.fixture
def actions(new_stack, parts, template_of):
    """The statements by their actions, for a configuration's keyword arguments."""

    def build(core_dump=None, **options):
        stack = new_stack()
        dump = core_dump(stack) if callable(core_dump) else core_dump
        made = {name: make(stack) if callable(make) else make for name, make in options.items()}
        parts.configuration(stack, variants=[parts.variant(stack, core_dump=dump)], **made)
        return template_of(stack).granted

    return build


def test_nothing_may_be_written_by_default(actions):
    assert not [action for action in actions() if action.startswith(("s3:Put", "kms:"))]


def test_data_capture_may_write_to_its_destination_only(actions):
    statement = actions(data_capture=DataCapture(s3="s3://captured/sentiment"))["s3:PutObject"]
    assert json.dumps(statement["Resource"]).count("s3:::captured/sentiment/*") == 1


def test_core_dumps_may_be_written_to_their_bucket(actions):
    statement = actions(core_dump=CoreDump(s3="s3://dumps"))["s3:PutObject"]
    assert "s3:::dumps/*" in json.dumps(statement["Resource"])


def test_the_volume_key_may_be_used_for_the_instances_only(actions):
    found = actions(encryption_key=lambda stack: kms.Key.from_key_arn(stack, "Key", KEY))
    assert found["kms:CreateGrant"]["Condition"] == {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    assert "Condition" not in found["kms:DescribeKey"]
    assert all(found[action]["Resource"] == KEY for action in found if action.startswith("kms:"))


CAPTURED = "s3://captured/sentiment"


def key_of(stack):
    return kms.Key.from_key_arn(stack, "Key", KEY)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ({"encryption_key": key_of}, {"kms:CreateGrant", "kms:DescribeKey"}),
        (
            {"data_capture": lambda stack: DataCapture(s3=CAPTURED, key=key_of(stack))},
            {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"},
        ),
        (
            {"core_dump": lambda stack: CoreDump(s3="s3://dumps", key=key_of(stack))},
            {"kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"},
        ),
    ],
)
def test_each_use_of_a_key_has_its_own_actions_and_no_wildcards(actions, made, expected):
    found = actions(**made)
    assert {action for action in found if action.startswith("kms:")} == expected
    assert all(found[action]["Resource"] == KEY for action in expected)


@pytest.mark.parametrize("imported_role", [False, True], ids=["own role", "imported role"])
def test_nothing_uses_a_key_before_the_role_may(stack, parts, template_of, imported_role):
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    role = iam.Role.from_role_arn(stack, "Own", "arn:aws:iam::123456789012:role/hosting")
    model = parts.model(stack, role=role if imported_role else None)
    variant = parts.variant(stack, model=model, core_dump=CoreDump(s3="s3://dumps", key=key))
    parts.endpoint(
        stack,
        confirm_updates=False,
        configuration=parts.configuration(
            stack,
            variants=[variant],
            encryption_key=key,
            data_capture=DataCapture(s3=CAPTURED, key=key),
        ),
    )
    template = template_of(stack)
    # Policies before the model, whose name the configuration takes; the endpoint takes its.
    made = template.only_id("AWS::SageMaker::Model")
    configuration = template.only("AWS::SageMaker::EndpointConfig")
    assert configuration["ProductionVariants"][0]["ModelName"] == {
        "Fn::GetAtt": [made, "ModelName"]
    }
    arn = stack.resolve(key.key_arn)
    assert by_action(each for each in template.model_rights if each["Resource"] == arn).keys() == {
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey",
    }
