"""IAM's SimulatePrincipalPolicy says what a real request would be told."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from roles_under_test import allow, document, give_role
from signed_requests import refusal

from local_sagemaker import LocalAws

_numbers = itertools.count(1)
STATEMENTS = (
    allow("sagemaker:*Endpoint", "arn:aws:sagemaker:us-east-1:123456789012:endpoint/mine*"),
    allow("iam:PassRole", Condition={"StringEquals": {"iam:PassedToService": "a.amazonaws.com"}}),
    allow("s3:*"),
    {"Effect": "Deny", "Action": "s3:Delete*", "Resource": "*"},
)
ENDPOINT = "arn:aws:sagemaker:us-east-1:123456789012:endpoint/"


@pytest.fixture
def role(aws: Any) -> str:
    """A role with `STATEMENTS`."""
    return give_role(aws, f"simulated-{next(_numbers)}", *STATEMENTS)


def simulated(aws: Any, arn: str, action: str, *resources: str, **keys: str) -> dict[str, str]:
    """Decisions by resource."""
    answer = aws.client("iam").simulate_principal_policy(
        PolicySourceArn=arn,
        ActionNames=[action],
        ResourceArns=list(resources) or ["*"],
        ContextEntries=[
            {
                "ContextKeyName": name.replace("_", ":"),
                "ContextKeyType": "string",
                "ContextKeyValues": [value],
            }
            for name, value in keys.items()
        ],
    )
    assert not answer["IsTruncated"]
    return {each["EvalResourceName"]: each["EvalDecision"] for each in answer["EvaluationResults"]}


@pytest.mark.parametrize("account", ["123456789012", "210987654321"])
def test_each_action_is_judged_on_each_resource(aws, role, account):
    theirs = ENDPOINT.replace("123456789012", account) + "theirs"
    assert simulated(aws, role, "sagemaker:CreateEndpoint", f"{ENDPOINT}mine-1", theirs) == {
        f"{ENDPOINT}mine-1": "allowed",
        theirs: "implicitDeny",
    }


def test_a_denial_is_told_from_a_missing_right(aws, role):
    assert simulated(aws, role, "s3:GetObject") == {"*": "allowed"}
    assert simulated(aws, role, "s3:DeleteObject") == {"*": "explicitDeny"}
    assert simulated(aws, role, "sqs:SendMessage") == {"*": "implicitDeny"}


def test_a_condition_key_that_is_not_stated_is_missing(aws, role):
    stated = {"iam_PassedToService": "a.amazonaws.com"}
    assert simulated(aws, role, "iam:PassRole", **stated) == {"*": "allowed"}
    answer = aws.client("iam").simulate_principal_policy(
        PolicySourceArn=role, ActionNames=["iam:PassRole"]
    )
    (result,) = answer["EvaluationResults"]
    assert (result["EvalDecision"], result["EvalResourceName"]) == ("implicitDeny", "*")
    assert result["MissingContextValues"] == ["iam:passedtoservice"]


def test_a_boundary_limits(aws):
    iam, name = aws.client("iam"), f"bounded-{next(_numbers)}"
    boundary = iam.create_policy(
        PolicyName=name, PolicyDocument=json.dumps(document(allow("s3:Get*")))
    )["Policy"]["Arn"]
    arn = give_role(aws, name, allow("s3:*"))
    iam.put_role_permissions_boundary(RoleName=name, PermissionsBoundary=boundary)
    assert simulated(aws, arn, "s3:GetObject") == {"*": "allowed"}
    assert simulated(aws, arn, "s3:PutObject") == {"*": "implicitDeny"}


def test_a_user_and_who_has_the_keys_of_the_start(aws):
    iam, name = aws.client("iam"), f"dev-{next(_numbers)}"
    user = iam.create_user(UserName=name)["User"]["Arn"]
    assert simulated(aws, user, "s3:GetObject") == {"*": "implicitDeny"}
    iam.put_user_policy(
        UserName=name, PolicyName="p", PolicyDocument=json.dumps(document(allow("s3:*")))
    )
    assert simulated(aws, user, "s3:GetObject") == {"*": "allowed"}
    me = aws.client("sts").get_caller_identity()["Arn"]
    assert simulated(aws, me, "iam:CreateRole") == {"*": "allowed"}


def test_who_is_not_there_before_anything_of_iam_is():
    """Of the account's own principals it is known that there are none."""
    with LocalAws.in_process() as fresh:
        test_nobody_has_no_policies(fresh, "role/nobody")


@pytest.mark.parametrize("name", ["role/nobody", "user/nobody"])
def test_nobody_has_no_policies(aws, name):
    code, _ = refusal(
        aws.client("iam").simulate_principal_policy,
        PolicySourceArn=f"arn:aws:iam::123456789012:{name}",
        ActionNames=["s3:GetObject"],
    )
    assert code == "NoSuchEntity"


def test_what_is_not_simulated_is_refused(aws, role):
    code, message = refusal(
        aws.client("iam").simulate_principal_policy,
        PolicySourceArn=role,
        ActionNames=["s3:GetObject"],
        PolicyInputList=[json.dumps(document(allow("s3:*")))],
    )
    assert code == "InvalidAction"
    assert message.startswith("PolicyInputList is not emulated")


def test_results_come_by_the_page(aws, role):
    actions = [f"s3:Get{number}" for number in range(120)]
    given = {"PolicySourceArn": role, "ActionNames": actions}
    first = aws.client("iam").simulate_principal_policy(**given)
    assert (len(first["EvaluationResults"]), first["IsTruncated"]) == (100, True)
    pages = aws.client("iam").get_paginator("simulate_principal_policy").paginate(**given)
    names = [each["EvalActionName"] for page in pages for each in page["EvaluationResults"]]
    assert names == actions
