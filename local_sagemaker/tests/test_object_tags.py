"""Conditions on the tags of objects, which AmazonSageMakerFullAccess has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlencode

import pytest
from hosting_site import Site
from roles_under_test import HOSTING, allow, give_role, trust
from signed_requests import client_with, refusal

from local_sagemaker import LocalAws

MANAGED = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess"
OBJECT = {"Bucket": "models", "Key": "llama/model.tar.gz"}
Tag = Callable[[dict[str, str]], None]


@pytest.fixture
def tag(aws: LocalAws) -> Iterator[Tag]:
    """Make an object with these tags, in a bucket whose name has no "sagemaker"."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="models")

    def make(tags: dict[str, str]) -> None:
        s3.put_object(**OBJECT, Body=b"x", Tagging=urlencode(tags))

    yield make
    s3.delete_object(**OBJECT)
    s3.delete_bucket(Bucket="models")


@pytest.fixture
def settled(aws: LocalAws, tag: Tag) -> Iterator[Callable[[dict[str, str]], dict[str, Any]]]:
    """Create an endpoint of that object, with the managed policy and no other right to S3."""
    site, iam = Site(aws), aws.client("iam")

    def make(tags: dict[str, str]) -> dict[str, Any]:
        tag(tags)
        model = site.model(ModelDataUrl="s3://models/llama/model.tar.gz")
        give_role(
            aws, "models", *(right for right in HOSTING if "s3:GetObject" not in right["Action"])
        )
        iam.attach_role_policy(RoleName="models", PolicyArn=MANAGED)
        return dict(site.settled(site.endpoint({"ModelName": model}, wait=False)))

    yield make
    site.delete()
    iam.detach_role_policy(RoleName="models", PolicyArn=MANAGED)
    give_role(aws, "models", *HOSTING)


@pytest.mark.parametrize("tags", [{}, {"SageMaker": "false"}, {"Team": "true"}], ids=str)
def test_full_access_does_not_read_an_ordinary_bucket(tags, settled) -> None:
    """As at AWS: only what has "sagemaker" in its name, or a tag."""
    found = settled(tags)
    assert found["EndpointStatus"] == "Failed"
    assert found["FailureReason"].startswith("Could not access model data at s3://models/")


@pytest.mark.parametrize(
    "tags", [{"SageMaker": "True"}, {"servicecatalog:provisioning": "true"}], ids=str
)
def test_full_access_reads_what_is_tagged_for_it(tags, settled) -> None:
    assert settled(tags)["EndpointStatus"] == "InService"


@pytest.fixture
def caller(aws: LocalAws) -> Callable[[dict[str, Any]], Any]:
    """Give S3's client of somebody who has this statement alone."""

    def make(statement: dict[str, Any]) -> Any:
        arn = give_role(aws, "tag-reader", statement)
        me = {"AWS": f"arn:aws:iam::{aws.account}:root"}
        aws.client("iam").update_assume_role_policy(
            RoleName="tag-reader", PolicyDocument=json.dumps(trust(Principal=me))
        )
        given = aws.client("sts").assume_role(RoleArn=arn, RoleSessionName="me")["Credentials"]
        keys = (given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
        return client_with("s3", aws.url, *keys)

    return make


@pytest.mark.parametrize(
    ("operator", "tags", "allowed"),
    [
        ("StringEquals", {"Team": "a"}, True),
        ("StringEquals", {"Team": "b"}, False),
        ("StringEquals", {"Other": "a"}, False),
        ("StringEquals", {}, False),
        ("StringNotEquals", {}, True),
        ("StringEqualsIfExists", {}, True),
        ("StringEqualsIfExists", {"Team": "b"}, False),
    ],
)
def test_a_condition_on_a_tag(operator, tags, allowed, caller, tag) -> None:
    """IAM user guide: a key that is not there makes a positive operator false, a negated one true."""
    tag(tags)
    mine = caller(allow("s3:GetObject", Condition={operator: {"s3:ExistingObjectTag/Team": "a"}}))
    if allowed:
        assert mine.get_object(**OBJECT)["Body"].read() == b"x"
    else:
        assert refusal(mine.get_object, **OBJECT)[0] == "AccessDenied"


def test_tags_say_nothing_about_who_overwrites_an_object(caller, tag) -> None:
    """S3 does not support the key there: no judgment rather than a wrong one."""
    tag({"Team": "a"})
    condition = {"StringEquals": {"s3:ExistingObjectTag/Team": "a"}}
    mine = caller(allow(["s3:PutObject", "s3:DeleteObject"], Condition=condition))
    for ask in (partial(mine.put_object, Body=b"y"), mine.delete_object):
        assert "the condition key s3:existingobjecttag/team" in refusal(ask, **OBJECT)[1]
