"""What an app names by an ARN or as an image is in the stack's Region; roles in its account."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from low_latency_endpoint import (
    AlarmOptions,
    ConfigurationOptions,
    ContainerImage,
    CoreDump,
    DataCapture,
    ModelData,
    ModelOptions,
    Safeguards,
    VariantOptions,
)
from tests.refusals import refused

KEY = "key/1234abcd-12ab-34cd-56ef-1234567890ab"
PLACES = {  # partition, Region and account, and the code where it is none of these
    ("aws", "us-east-1", "123456789012"): None,
    ("aws", "eu-west-1", "123456789012"): "LLE951",
    ("aws-cn", "us-east-1", "123456789012"): "LLE950",
}


def arn(place: tuple[str, str, str], service: str, resource: str) -> str:
    partition, region, account = place
    return f"arn:{partition}:{service}:{region}:{account}:{resource}"


def key(stack: Any, place: tuple[str, str, str]) -> kms.IKey:
    return kms.Key.from_key_arn(stack, "Key", arn(place, "kms", KEY))


def topic(stack: Any, place: tuple[str, str, str]) -> Any:
    found = sns.Topic.from_topic_arn(stack, "Topic", arn(place, "sns", "on-call"))
    return actions.SnsAction(found)


def repository(stack: Any, place: tuple[str, str, str]) -> ecr.IRepository:
    found: ecr.IRepository = ecr.Repository.from_repository_attributes(
        stack,
        "Repository",
        repository_arn=arn(place, "ecr", "repository/model"),
        repository_name="model",
    )
    return found


NAMED = {
    "an image": lambda stack, parts, place: {
        "containers": [
            parts.container(
                image=ContainerImage.from_uri(
                    f"{place[2]}.dkr.ecr.{place[1]}.amazonaws.com/model:1"
                )
            )
        ]
    },
    "a repository": lambda stack, parts, place: {
        "containers": [
            parts.container(image=ContainerImage.from_ecr_repository(repository(stack, place), "1"))
        ]
    },
    "a package": lambda stack, parts, place: {
        "containers": [
            parts.container(model_package=arn(place, "sagemaker", "model-package/churn/12"))
        ]
    },
    "the key of model data": lambda stack, parts, place: {
        "containers": [
            parts.container(
                data=ModelData.from_uri("s3://models/model.tar.gz", key=key(stack, place))
            )
        ]
    },
    "the key of volumes": lambda stack, parts, place: {
        "configuration": ConfigurationOptions(encryption_key=key(stack, place))
    },
    "the key of captured data": lambda stack, parts, place: {
        "configuration": ConfigurationOptions(
            data_capture=DataCapture(s3="s3://captured/", key=key(stack, place))
        )
    },
    "the key of core dumps": lambda stack, parts, place: {
        "variant": VariantOptions(core_dump=CoreDump(s3="s3://dumps/x", key=key(stack, place)))
    },
    "a reservation": lambda stack, parts, place: {
        "variant": VariantOptions(
            capacity_reservation_arn=arn(place, "sagemaker", "training-plan/mine")
        )
    },
    "a topic": lambda stack, parts, place: {"alarms": AlarmOptions(actions=[topic(stack, place)])},
    "the key of everything": lambda stack, parts, place: {
        "safeguards": Safeguards(kms_key_arn=arn(place, "kms", KEY))
    },
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("named", NAMED)
def test_where_things_are(stack, parts, named, place):
    code, given = PLACES[place], NAMED[named](stack, parts, place)
    if code == "LLE950" and named == "an image":
        return  # a URI has no partition of its own
    if code is None:
        parts.pattern(stack, **given)
        return
    with refused(code):
        parts.pattern(stack, **given)


@pytest.mark.parametrize("account", ["123456789012", "999999999999"])
@pytest.mark.parametrize("of", ["model", "functions", "flow logs"])
def test_roles_are_passed_in_their_own_account(stack, parts, of, account):
    """https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_use_passrole.html"""
    role = iam.Role.from_role_arn(stack, "Mine", f"arn:aws:iam::{account}:role/mine")
    given: dict[str, Any] = {
        "model": {"model": ModelOptions(role=role)},
        "functions": {"safeguards": Safeguards(function_role=role)},
        "flow logs": {"safeguards": Safeguards(flow_log_role=role)},
    }[of]
    if account == "123456789012":
        parts.pattern(stack, **given)
        return
    with refused("LLE952"):
        parts.pattern(stack, **given)


def test_topics_and_keys_of_another_account_are_shared(stack, parts):
    place = ("aws", "us-east-1", "999999999999")
    parts.pattern(
        stack,
        alarms=AlarmOptions(actions=[topic(stack, place)]),
        configuration=ConfigurationOptions(encryption_key=key(stack, place)),
    )


def test_of_a_stack_without_an_environment_nothing_is_known(new_stack, parts):
    stack = new_stack(region=None)
    place = ("aws", "eu-west-1", "999999999999")
    parts.pattern(stack, alarms=AlarmOptions(actions=[topic(stack, place)]))
