"""Policy documents that AWS refuses when they are stored, by each way that stores them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError
from roles_under_test import allow, document
from stacks_under_test import TRUST

POLICIES = yaml.safe_load((Path(__file__).parent / "data/endpoint-policies.yaml").read_text())


def refusal(call: Any, **parameters: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        call(**parameters)
    return refused.value.response["Error"]["Code"], refused.value.response["Error"]["Message"]


def full(statement: dict[str, Any]) -> dict[str, Any]:
    """A statement that lets all in, but for what is given; with an Effect it is given whole."""
    return statement if "Effect" in statement else {**allow("s3:*", Principal="*"), **statement}


@pytest.fixture
def network(aws: Any) -> Any:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    yield ec2, {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.s3"}
    ec2.delete_vpc(VpcId=vpc)


@pytest.mark.parametrize(
    ("named", "statement"), [*POLICIES["refused"], ("20480", {"Sid": "s" * 20_480})]
)
def test_endpoint_policies_that_ec2_refuses(network: Any, named: str, statement: Any) -> None:
    ec2, place = network
    whole = statement if isinstance(statement, str) else json.dumps(document(full(statement)))
    code, words = refusal(ec2.create_vpc_endpoint, **place, PolicyDocument=whole)
    assert code == "InvalidPolicyDocument"
    assert named in words
    link = ec2.create_vpc_endpoint(**place)["VpcEndpoint"]["VpcEndpointId"]
    changed = {"VpcEndpointId": link, "PolicyDocument": whole}
    assert refusal(ec2.modify_vpc_endpoint, **changed) == (code, words)
    ec2.delete_vpc_endpoints(VpcEndpointIds=[link])


def test_endpoint_policies_that_ec2_takes(network: Any) -> None:
    ec2, place = network
    text = json.dumps(document(*map(full, POLICIES["taken"])))
    link = ec2.create_vpc_endpoint(**place, PolicyDocument=text)["VpcEndpoint"]["VpcEndpointId"]
    ec2.delete_vpc_endpoints(VpcEndpointIds=[link])


INCOMPLETE = "arn:aws:sqs:us-east-1:123456789012"


def test_identities_may_have_incomplete_arns_and_sessions_not(aws: Any) -> None:
    """IAM user guide, "Identify AWS resources with ARNs", the note on incomplete ARNs."""
    iam, sts = aws.client("iam"), aws.client("sts")
    role = iam.create_role(RoleName="r", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"]
    text = json.dumps(document(allow("sqs:*", INCOMPLETE)))
    iam.put_role_policy(RoleName="r", PolicyName="p", PolicyDocument=text)
    session = {"RoleArn": role, "RoleSessionName": "session"}
    code, words = refusal(sts.assume_role, **session, Policy=text)
    assert (code, INCOMPLETE in words) == ("MalformedPolicyDocument", True)
    assert refusal(sts.assume_role, **session, Policy="{")[0] == "MalformedPolicyDocument"
    # "You can't use a variable to replace parts of the ARN before the fifth colon" ("Variables").
    text = json.dumps(document(allow("sqs:*", "arn:aws:sqs:*:${aws:PrincipalAccount}:q")))
    policy = {"RoleName": "r", "PolicyName": "p", "PolicyDocument": text}
    legacy = ("MalformedPolicyDocument", "The policy failed legacy parsing")
    assert refusal(iam.put_role_policy, **policy) == legacy
    managed = {"PolicyName": "p", "PolicyDocument": text}
    assert refusal(iam.create_policy, **managed) == legacy
    iam.delete_role_policy(RoleName="r", PolicyName="p")
    iam.delete_role(RoleName="r")


@pytest.mark.parametrize("resource", ["arn:aws:s3", "bucket/*", "arn:aws:s3::bucket"])
def test_a_bucket_has_no_policy_with_an_incomplete_arn(aws: Any, resource: str) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="documents")
    policy = {"Bucket": "documents", "Policy": json.dumps(document(full({"Resource": resource})))}
    invalid = ("MalformedPolicy", "Policy has invalid resource")
    assert refusal(s3.put_bucket_policy, **policy) == invalid
    assert refusal(s3.put_bucket_policy, **{**policy, "Policy": "x"})[0] == "MalformedPolicy"
    s3.delete_bucket(Bucket="documents")


IAM_ROLE = "arn:aws:iam::123456789012:role/kept"
SIZES = [
    ("create_role", 2_048),
    ("update_assume_role_policy", 2_048),
    ("put_role_policy", 10_240),
    ("put_user_policy", 2_048),
    ("put_group_policy", 5_120),
    ("create_policy", 6_144),
    ("create_policy_version", 6_144),
]
OF_IDENTITIES = [name for name, _ in SIZES[2:]]


@pytest.fixture
def store(aws: Any) -> Any:
    """Stores a document in IAM by the operation of a name."""
    iam = aws.client("iam")
    trust, text = json.dumps(TRUST), json.dumps(document(allow("s3:*")))
    iam.create_role(RoleName="kept", AssumeRolePolicyDocument=trust)
    iam.create_user(UserName="kept")
    iam.create_group(GroupName="kept")
    kept = iam.create_policy(PolicyName="kept", PolicyDocument=text)["Policy"]["Arn"]

    def call(operation: str, text: str) -> None:
        given: dict[str, Any] = {
            "create_role": {"RoleName": "new", "AssumeRolePolicyDocument": text},
            "update_assume_role_policy": {"RoleName": "kept", "PolicyDocument": text},
            "put_role_policy": {"RoleName": "kept", "PolicyName": "p", "PolicyDocument": text},
            "put_user_policy": {"UserName": "kept", "PolicyName": "p", "PolicyDocument": text},
            "put_group_policy": {"GroupName": "kept", "PolicyName": "p", "PolicyDocument": text},
            "create_policy": {"PolicyName": "new", "PolicyDocument": text},
            "create_policy_version": {"PolicyArn": kept, "PolicyDocument": text},
        }[operation]
        getattr(iam, operation)(**given)

    yield call
    for holder in ("Role", "User", "Group"):
        name = {f"{holder}Name": "kept"}
        for policy in getattr(iam, f"list_{holder.lower()}_policies")(**name)["PolicyNames"]:
            getattr(iam, f"delete_{holder.lower()}_policy")(**name, PolicyName=policy)
        getattr(iam, f"delete_{holder.lower()}")(**name)
    with contextlib.suppress(iam.exceptions.NoSuchEntityException):
        iam.delete_role(RoleName="new")
    for arn in (kept, kept.replace("kept", "new")):
        with contextlib.suppress(iam.exceptions.NoSuchEntityException):
            iam.delete_policy(PolicyArn=arn)


TRUSTED = TRUST["Statement"][0]


@pytest.mark.parametrize("operation", ["create_role", "update_assume_role_policy"])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"Resource": "*"}, "Has prohibited field Resource"),
        ({"NotResource": "*"}, "Has prohibited field Resource"),
        ({"Principal": None}, "Missing required field Principal"),
        ({"Principal": {"AWS": f"{IAM_ROLE}/no"}}, f'"AWS":"{IAM_ROLE}/no"'),
        ({"Principal": {"AWS": [IAM_ROLE, f"{IAM_ROLE[:-4]}*"]}}, "Invalid principal in policy"),
        ({"Principal": {"AWS": "arn:aws:iam::123456789012:user/no"}}, "Invalid principal"),
        ({"NotPrincipal": {"AWS": f"{IAM_ROLE}/no"}}, "Invalid principal in policy"),
        ({"Action": "s3:*"}, "AssumeRole policy may only specify STS AssumeRole actions"),
    ],
)
def test_trust_policies_that_iam_refuses(
    store: Any, operation: str, change: Any, words: str
) -> None:
    """IAM user guide, "AWS JSON policy elements: Principal", "Troubleshoot IAM policies"."""
    stated = {name: value for name, value in {**TRUSTED, **change}.items() if value}
    code, said = refusal(store, operation=operation, text=json.dumps(document(TRUSTED, stated)))
    assert (code, words in said) == ("MalformedPolicyDocument", True), said


@pytest.mark.parametrize("operation", ["create_role", "update_assume_role_policy"])
@pytest.mark.parametrize(
    "change",
    [
        *(
            {"Principal": {"AWS": name}}
            for name in (
                IAM_ROLE,
                "123456789012",
                "arn:aws:iam::123456789012:root",
                "arn:aws:sts::123456789012:assumed-role/kept/me",
                "arn:aws:iam::999999999999:role/of-an-account-that-is-not-used-here",
            )
        ),
        {"Principal": "*"},
        {"Action": ["sts:assumerole", "sts:TagSession", "sts:SetContext"]},
        {"Condition": {"NumericLessThan": {"aws:MultiFactorAuthAge": 3600}}},
    ],
)
def test_trust_policies_that_iam_takes(store: Any, operation: str, change: Any) -> None:
    """The same pages, and "Grammar of the IAM JSON policy language"; either version is one."""
    text = json.dumps({"Version": "2008-10-17", "Statement": {**TRUSTED, **change}})
    store(operation, text)


@pytest.mark.parametrize("operation", OF_IDENTITIES)
@pytest.mark.parametrize("element", ["Principal", "NotPrincipal"])
def test_an_identity_s_policy_names_no_principal(store: Any, operation: str, element: str) -> None:
    """IAM user guide, "AWS JSON policy elements: Principal": "in an identity-based policy"."""
    text = json.dumps(document(allow("s3:*"), allow("s3:*", **{element: "*"})))
    told = ("MalformedPolicyDocument", "Policy document should not specify a principal.")
    assert refusal(store, operation=operation, text=text) == told


@pytest.mark.parametrize(("operation", "largest"), SIZES)
def test_how_large_a_policy_is_without_white_space(
    aws: Any, store: Any, operation: str, largest: int
) -> None:
    """IAM user guide, "IAM and AWS STS quotas": inline policies count together."""
    statement = allow("s3:*") if operation in OF_IDENTITIES else TRUSTED
    if operation == "put_role_policy":
        other = json.dumps(document(allow("s3:*")))
        aws.client("iam").put_role_policy(RoleName="kept", PolicyName="o", PolicyDocument=other)
        largest -= len(other.replace(" ", ""))

    def text(size: int) -> str:
        bare = len(json.dumps(document({**statement, "Sid": ""}), separators=(",", ":")))
        return json.dumps(document({**statement, "Sid": "s" * (size - bare)}), indent=8)

    assert refusal(store, operation=operation, text=text(largest + 1))[0] == "LimitExceeded"
    store(operation, text(largest))


@pytest.mark.parametrize("holder", ["role", "user", "group", "boundary"])
def test_a_policy_that_somebody_has_is_not_deleted(aws: Any, store: Any, holder: str) -> None:
    """API reference, DeletePolicy; of a boundary, https://github.com/gruntwork-io/cloud-nuke/issues/972."""
    iam = aws.client("iam")
    store("create_policy", json.dumps(document(allow("s3:*"))))
    arn = "arn:aws:iam::123456789012:policy/new"
    attached = {"PolicyArn": arn, f"{holder.title()}Name": "kept"}
    if holder == "boundary":
        iam.put_role_permissions_boundary(RoleName="kept", PermissionsBoundary=arn)
    else:
        getattr(iam, f"attach_{holder}_policy")(**attached)
    told = ("DeleteConflict", "Cannot delete a policy attached to entities.")
    assert refusal(iam.delete_policy, PolicyArn=arn) == told
    if holder == "boundary":
        iam.delete_role_permissions_boundary(RoleName="kept")
    else:
        getattr(iam, f"detach_{holder}_policy")(**attached)
    iam.delete_policy(PolicyArn=arn)
