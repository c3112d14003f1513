"""A pinned model's staging in the template: calls, their order, rights, and no secret."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_secretsmanager as secretsmanager

from low_latency_endpoint import ModelData, Safeguards, StagedModel
from low_latency_endpoint.errors import ConfigurationError
from low_latency_endpoint.plan.pinned_model import GB, PinnedFile, PinnedModel, staging_calls
from tests.refusals import refused

USE, FILES, CHECK = "Custom::HubModelUse", "Custom::HubModelFiles", "Custom::HubModelCheck"


def pin(*sizes: int, model: str = "acme/tiny", commit: str = "7" * 40) -> PinnedModel:
    files = tuple(PinnedFile(f"{n:04}.safetensors", size, "0" * 64) for n, size in enumerate(sizes))
    return PinnedModel(model=model, revision="main", commit=commit, files=files)


# ------------------------------------------------------------------------------------ which calls


def test_files_are_packed_in_order_into_calls_of_eight_gigabytes():
    calls = staging_calls(pin(*[3 * GB] * 5, 12 * GB, 1, 1))
    assert [[each.size for each in call] for call in calls] == [
        [3 * GB, 3 * GB],
        [3 * GB, 3 * GB],
        [3 * GB],
        [12 * GB],
        [1, 1],
    ]


def test_no_call_has_more_than_two_hundred_files_and_none_is_lost():
    pinned = pin(*[1] * 450)
    calls = staging_calls(pinned)
    assert [len(call) for call in calls] == [200, 200, 50]
    assert tuple(each for call in calls for each in call) == pinned.files


def test_a_file_that_takes_too_long_is_refused_where_nobody_can_have_staged_it(new_stack):
    pinned = pin(20 * GB + 1)
    with refused("LLE352", "low-latency stage"):
        StagedModel(new_stack(), "Tiny", pinned=pinned)
    stack = new_stack()
    StagedModel(stack, "Tiny", pinned=pinned, bucket=s3.Bucket(stack, "Bucket"))


def test_more_files_than_one_event_can_name_are_refused(stack):
    with pytest.raises(ConfigurationError, match="LLE399"):
        StagedModel(stack, "Tiny", pinned=pin(*[1] * 1001))


@pytest.mark.parametrize("endpoint", ["http://huggingface.co", "https://me:hunter2@hub", ""])
def test_a_hub_without_tls_is_refused_and_its_password_not_said(stack, endpoint):
    with pytest.raises(ConfigurationError, match="LLE359") as refused:
        StagedModel(stack, "Tiny", pinned=pin(1), hub_endpoint=endpoint)
    assert "hunter2" not in str(refused.value)


# --------------------------------------------------------------------------------------- template


def test_at_most_eight_calls_run_at_once_and_the_check_waits_for_all(stack, template_of):
    StagedModel(stack, "Tiny", pinned=pin(*[8 * GB] * 19))
    template = template_of(stack)
    calls = {int(each["Part"]): logical_id for logical_id, each in template.of_type(FILES).items()}
    use, check = template.only_id(USE), template.only_id(CHECK)
    assert len(calls) == 19
    for number, logical_id in calls.items():
        assert template.depends_on(logical_id) == [calls[number - 8] if number >= 8 else use]
    waits, seen = set(template.depends_on(check)), set()
    while waits:
        each = waits.pop()
        seen.add(each)
        waits |= set(template.depends_on(each)) & {*calls.values()}
    assert seen == set(calls.values())


def test_the_note_comes_after_the_rights_and_goes_before_them(stack, template_of):
    StagedModel(stack, "Tiny", pinned=pin(1))
    template = template_of(stack)
    before = {
        template["Resources"][logical_id]["Type"]
        for logical_id in template.depends_on(template.only_id(USE))
    }
    assert before == {"AWS::IAM::Policy", "AWS::S3::BucketPolicy"}


def test_a_model_waits_for_the_check_and_may_read_its_files_alone(stack, parts, template_of):
    pinned = pin(1)
    parts.serving(stack, data=ModelData.from_hugging_face(pinned))
    template = template_of(stack)
    source = template.container["ModelDataSource"]
    bucket = template.only_id("AWS::S3::Bucket")
    assert source["S3DataSource"] == {
        "CompressionType": "None",
        "S3DataType": "S3Prefix",
        "S3Uri": {
            "Fn::Join": [
                "",
                ["s3://", {"Fn::GetAtt": [template.only_id(CHECK), "Bucket"]}, f"/{pinned.prefix}"],
            ]
        },
    }
    reading = [
        statement
        for statement in template.model_rights
        if statement["Action"] in ("s3:GetObject", "s3:ListBucket")
    ]
    arn = {"Fn::GetAtt": [bucket, "Arn"]}
    assert reading == [
        {
            "Effect": "Allow",
            "Action": "s3:GetObject",
            "Resource": {"Fn::Join": ["", [arn, f"/{pinned.prefix}*"]]},
        },
        {
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": arn,
            "Condition": {"StringLike": {"s3:prefix": f"{pinned.prefix}*"}},
        },
    ]


def test_models_of_a_stack_share_function_and_bucket_and_the_same_commit_its_files(
    stack, parts, template_of
):
    for number, model in enumerate(["acme/tiny", "acme/tiny", "acme/other"]):
        data = ModelData.from_hugging_face(pin(1, model=model))
        parts.serving(stack, f"Model{number}", data=data)
    template = template_of(stack)
    assert len(template.of_type(USE)) == 2
    assert len(template.of_type("AWS::S3::Bucket")) == 1
    tokens = {json.dumps(each["ServiceToken"]) for each in template.of_type(FILES).values()}
    assert len(tokens) == 1


def test_two_lists_of_files_for_one_commit_lie_apart(stack, parts, template_of):
    for number, pinned in enumerate([pin(1), pin(1, 2)]):
        data = ModelData.from_hugging_face(pinned)
        parts.serving(stack, f"Model{number}", data=data)
    uses = template_of(stack).of_type(USE).values()
    assert len({each["FileList"] for each in uses}) == 2


def rights(template: Any) -> list[Any]:
    return [
        statement
        for policy in template.of_type("AWS::IAM::Policy").values()
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def test_the_function_may_touch_two_prefixes_of_the_bucket_and_nothing_else(stack, template_of):
    StagedModel(stack, "Tiny", pinned=pin(1))
    template = template_of(stack)
    arn = {"Fn::GetAtt": [template.only_id("AWS::S3::Bucket"), "Arn"]}
    below = [{"Fn::Join": ["", [arn, f"/{prefix}/*"]]} for prefix in ("hub", "users")]
    assert [(each["Action"], each["Resource"]) for each in rights(template)] == [
        (["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"], below),
        (["s3:ListBucket"], arn),
        (["s3:ListBucketMultipartUploads"], arn),
    ]
    assert rights(template)[1]["Condition"] == {"StringLike": {"s3:prefix": ["hub/*", "users/*"]}}


def test_the_token_is_a_secrets_arn_and_the_function_may_read_that_secret(stack, template_of):
    arn = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hf-AbCdEf"
    secret = secretsmanager.Secret.from_secret_complete_arn(stack, "Token", arn)
    StagedModel(stack, "Tiny", pinned=pin(1), token=secret)
    template = template_of(stack)
    assert template.only(FILES)["TokenSecretArn"] == arn
    (reading,) = [each for each in rights(template) if "secretsmanager" in each["Action"][0]]
    assert (reading["Action"], reading["Resource"]) == (["secretsmanager:GetSecretValue"], arn)


def test_the_bucket_is_private_encrypted_and_forgets_what_is_half_written(stack, template_of):
    key = kms.Key(stack, "Key", enable_key_rotation=True)
    Safeguards(encryption_key=key).apply_to(stack)
    StagedModel(stack, "Tiny", pinned=pin(1))
    template = template_of(stack)
    bucket = template.only("AWS::S3::Bucket")
    assert all(bucket["PublicAccessBlockConfiguration"].values())
    (rule,) = bucket["LifecycleConfiguration"]["Rules"]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert "ExpirationInDays" not in rule
    (encryption,) = bucket["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    arn = {"Fn::GetAtt": [template.only_id("AWS::KMS::Key"), "Arn"]}
    assert encryption["ServerSideEncryptionByDefault"]["KMSMasterKeyID"] == arn
    assert any(each["Resource"] == arn for each in rights(template))


@pytest.mark.parametrize(
    ("policy", "kept"), [(RemovalPolicy.DESTROY, "Delete"), (RemovalPolicy.RETAIN, "Retain")]
)
def test_retaining_keeps_the_bucket_and_the_note_that_keeps_the_files(
    stack, template_of, policy, kept
):
    StagedModel(stack, "Tiny", pinned=pin(1), removal_policy=policy)
    template = template_of(stack)
    for kind in (USE, "AWS::S3::Bucket"):
        assert template["Resources"][template.only_id(kind)]["DeletionPolicy"] == kept


def test_the_functions_code_is_the_package_and_imports_nothing_of_ours(stack):
    StagedModel(stack, "Tiny", pinned=pin(1))
    app = stack.node.root
    assert isinstance(app, cdk.App)
    assembly = app.synth()
    packages = list(cdk_folders(assembly.directory))
    assert [sorted(each) for each in packages] == [
        ["__init__.py", "addresses.py", "bucket.py", "handler.py", "hub.py"]
    ]
    for code in packages[0].values():
        assert "from .." not in code
        assert "low_latency_endpoint." not in code


def cdk_folders(directory: str) -> Any:
    from pathlib import Path

    for package in Path(directory).glob("asset.*/staging_function"):
        yield {each.name: each.read_text() for each in package.iterdir()}
