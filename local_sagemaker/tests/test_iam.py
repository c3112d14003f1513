"""AWS::IAM::*."""

from __future__ import annotations

import json
from typing import Any

import pytest
from roles_under_test import allow
from roles_under_test import document as policy_of
from stacks_under_test import TRUST, resource_of

from local_sagemaker import DeploymentFailed

READ_ONLY = "arn:aws:iam::aws:policy/ReadOnlyAccess"
ADMIN = "arn:aws:iam::aws:policy/AdministratorAccess"


@pytest.fixture
def role() -> dict[str, Any]:
    """A role without any policy."""
    return resource_of("AWS::IAM::Role", AssumeRolePolicyDocument=TRUST)


def document(action: str) -> dict[str, Any]:
    return policy_of(allow(action))


def attached(aws: Any, role: str) -> list[str]:
    found = aws.client("iam").list_attached_role_policies(RoleName=role)["AttachedPolicies"]
    return sorted(policy["PolicyArn"] for policy in found)


def inline(aws: Any, role: str) -> dict[str, str]:
    iam = aws.client("iam")
    return {
        name: iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]["Statement"][0][
            "Action"
        ]
        for name in iam.list_role_policies(RoleName=role)["PolicyNames"]
    }


def test_role(aws, stack, role):
    policies = [{"PolicyName": "a", "PolicyDocument": document("s3:Get*")}]
    properties = {
        **role["Properties"],
        "Description": "for tests",
        "MaxSessionDuration": 7200,
        "ManagedPolicyArns": [ADMIN],
        "Policies": policies,
        "Tags": [{"Key": "k", "Value": "v"}],
    }
    made = stack.deploy("AWS::IAM::Role", properties, ("Arn", "RoleId"))
    found = aws.client("iam").get_role(RoleName=made.ref)["Role"]
    assert (made.attributes["Arn"], made.attributes["RoleId"]) == (found["Arn"], found["RoleId"])
    assert (found["Description"], found["MaxSessionDuration"]) == ("for tests", 7200)
    assert found["Tags"] == [{"Key": "k", "Value": "v"}]
    assert attached(aws, made.ref) == [ADMIN]
    assert inline(aws, made.ref) == {"a": "s3:Get*"}

    policies = [{"PolicyName": "b", "PolicyDocument": document("s3:Put*")}]
    less = {"ManagedPolicyArns": [READ_ONLY], "Policies": policies}
    assert stack.deploy("AWS::IAM::Role", {**role["Properties"], **less}).ref == made.ref
    found = aws.client("iam").get_role(RoleName=made.ref)["Role"]
    assert (found.get("Description", ""), found["MaxSessionDuration"]) == ("", 3600)
    assert found.get("Tags", []) == []
    assert attached(aws, made.ref) == [READ_ONLY]
    assert inline(aws, made.ref) == {"b": "s3:Put*"}

    renamed = stack.deploy("AWS::IAM::Role", {**role["Properties"], "RoleName": "named"})
    assert renamed.ref == "named"
    stack.delete()
    with pytest.raises(aws.client("iam").exceptions.NoSuchEntityException):
        aws.client("iam").get_role(RoleName="named")


def test_an_aws_managed_policy_must_exist(stack, role):
    properties = {**role["Properties"], "ManagedPolicyArns": [f"{ADMIN}Nope"]}
    assert "AdministratorAccessNope" in stack.refusal("AWS::IAM::Role", properties)


def test_policy(aws, stack, role):
    def policy(name: str, action: str, *roles: str) -> dict[str, Any]:
        references = [{"Ref": r} for r in roles]
        return {"PolicyName": name, "PolicyDocument": document(action), "Roles": references}

    others = {"One": role, "Two": role}
    made = stack.deploy("AWS::IAM::Policy", policy("p", "s3:Get*", "One"), **others)
    one, two = made.stack.resources["One"], made.stack.resources["Two"]
    assert inline(aws, one) == {"p": "s3:Get*"}
    stack.deploy("AWS::IAM::Policy", policy("p", "s3:Put*", "Two"), **others)
    assert inline(aws, one) == {}
    assert inline(aws, two) == {"p": "s3:Put*"}
    stack.deploy("AWS::IAM::Policy", policy("q", "s3:Put*", "Two"), **others)
    assert inline(aws, two) == {"q": "s3:Put*"}


def test_managed_policy(aws, stack, role):
    iam = aws.client("iam")

    def action(arn: str) -> str:
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        found = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]
        return found["Document"]["Statement"][0]["Action"]

    properties = {"PolicyDocument": document("s3:Get*"), "Roles": [{"Ref": "Role"}]}
    made = stack.deploy("AWS::IAM::ManagedPolicy", properties, ("PolicyArn",), Role=role)
    assert made.attributes["PolicyArn"] == made.ref
    assert action(made.ref) == "s3:Get*"
    assert attached(aws, made.stack.resources["Role"]) == [made.ref]
    for number in range(6):  # more updates than a policy keeps versions
        properties = {"PolicyDocument": document(f"s3:Put{number}")}
        assert stack.deploy("AWS::IAM::ManagedPolicy", properties, Role=role).ref == made.ref
    assert action(made.ref) == "s3:Put5"
    assert attached(aws, made.stack.resources["Role"]) == []
    stack.delete()
    with pytest.raises(iam.exceptions.NoSuchEntityException):
        iam.get_policy(PolicyArn=made.ref)


@pytest.mark.parametrize(
    ("kind", "holder", "of", "words"),
    [
        ("attached", "R", ADMIN, "must detach all policies first"),
        ("inline", "R", "p", "must delete policies first"),
        ("attached", "outside", "P", "policy attached to entities"),
    ],
)
def test_a_stack_removes_only_what_it_gave(aws, stack, role, kind, holder, of, words):
    """What others added keeps the role or the policy, by IAM's refusal. Seen, in this order:

    https://github.com/aws/aws-parallelcluster/issues/4031,
    https://github.com/convox/rack/issues/2672, https://github.com/gchq/sleeper/issues/3956.
    """
    iam, text = aws.client("iam"), document("s3:Get*")
    own = {
        "ManagedPolicyArns": [READ_ONLY, {"Ref": "P"}],
        "Policies": [{"PolicyName": "own", "PolicyDocument": text}],
    }
    made = stack.of(
        R=resource_of("AWS::IAM::Role", **role["Properties"], **own),
        P=resource_of("AWS::IAM::ManagedPolicy", PolicyDocument=text, Roles=[{"Ref": "Other"}]),
        Other=role,
    ).resources
    iam.create_role(RoleName="outside", AssumeRolePolicyDocument=json.dumps(TRUST))
    name, policy = (made.get(of_stack, of_stack) for of_stack in (holder, of))
    if kind == "attached":
        given = {"RoleName": name, "PolicyArn": policy}
        iam.attach_role_policy(**given)
    else:
        given = {"RoleName": name, "PolicyName": policy}
        iam.put_role_policy(**given, PolicyDocument=json.dumps(text))
    with pytest.raises(DeploymentFailed, match=words):
        stack.delete()
    assert (attached if kind == "attached" else inline)(aws, name)
    (iam.detach_role_policy if kind == "attached" else iam.delete_role_policy)(**given)
    stack.delete()
    iam.delete_role(RoleName="outside")
