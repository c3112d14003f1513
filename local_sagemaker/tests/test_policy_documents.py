"""Policy documents that AWS refuses when they are stored, by each way that stores them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError
from roles_under_test import allow, document
from stacks_under_test import TRUST

ACCOUNT = "123456789012"


def refusal(call: Any, **parameters: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as refused:
        call(**parameters)
    return refused.value.response["Error"]["Code"], refused.value.response["Error"]["Message"]


def let(resource: str = "*", **more: Any) -> dict[str, Any]:
    return allow("s3:*", resource, Principal="*", **more)


def when(operator: str, key: str, value: Any) -> dict[str, Any]:
    return let(Condition={operator: {key: value}})


@pytest.fixture
def network(aws: Any) -> Any:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    yield ec2, {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.s3"}
    ec2.delete_vpc(VpcId=vpc)


REFUSED = {
    "position (1,2)": "{",
    "Principal": allow("s3:*"),
    "20480": let(Sid="s" * 20_480),
    # "You can't use wildcard characters (* or ?) or numeric condition operators with global context
    # keys that reference system-generated identifiers (for example, aws:PrincipalAccount or
    # aws:SourceVpc)."
    "vpc-*": when("StringLike", "aws:SourceVpc", "vpc-*"),
    "vpce-0123456789*": when("StringNotLike", "aws:sourcevpce", ["vpce-1", "vpce-0123456789*"]),
    "1111222233??": when("StringLikeIfExists", "aws:PrincipalAccount", "1111222233??"),
    "o-abcdefgh*": when("ForAnyValue:StringLike", "aws:ResourceOrgID", "o-abcdefgh*"),
    "111122223333": when("NumericLessThan", "aws:ResourceAccount", "111122223333"),
    # "When you use a string condition operator, you must use at least six consecutive characters
    # before or after each wildcard character."
    "team*": when("StringLike", "aws:PrincipalTag/team", "team*"),
    "abcdef*g?h": when("StringLike", "aws:PrincipalTag/team", "abcdef*g?h"),
    "value *": when("StringLike", "aws:UserAgent", "*"),
    # "The account portion of the ARN can include an account ID or a wildcard character, but not
    # both."
    "arn:aws:sqs:us-east-1:1234*:q": let("arn:aws:sqs:us-east-1:1234*:q"),
    "arn:aws:iam::12345678901?:role/x": when(
        "ArnLike", "aws:PrincipalArn", "arn:aws:iam::12345678901?:role/x"
    ),
}
TAKEN = [
    let(),
    let("arn:aws:s3:::models-*/*"),
    when("StringEquals", "aws:PrincipalAccount", ACCOUNT),
    when("StringEquals", "aws:ResourceAccount", "${aws:PrincipalAccount}"),
    when("StringLike", "aws:PrincipalTag/team", ["abcdef*", "*abcdef", "abcdef*?uvwxyz"]),
    when("StringLike", "aws:PrincipalTag/team", "${*}"),
    when("ArnLike", "aws:PrincipalArn", "arn:aws:iam::*:role/x*"),
    when("NumericLessThan", "aws:MultiFactorAuthAge", "10"),
]


@pytest.mark.parametrize(("named", "statement"), REFUSED.items())
def test_endpoint_policies_that_ec2_refuses(network: Any, named: str, statement: Any) -> None:
    """AWS PrivateLink guide, "Control access to VPC endpoints using endpoint policies"."""
    ec2, place = network
    text = statement if isinstance(statement, str) else json.dumps(document(statement))
    code, words = refusal(ec2.create_vpc_endpoint, **place, PolicyDocument=text)
    assert code == "InvalidPolicyDocument"
    assert named in words
    link = ec2.create_vpc_endpoint(**place)["VpcEndpoint"]["VpcEndpointId"]
    changed = {"VpcEndpointId": link, "PolicyDocument": text}
    assert refusal(ec2.modify_vpc_endpoint, **changed) == (code, words)
    ec2.delete_vpc_endpoints(VpcEndpointIds=[link])


def test_endpoint_policies_that_ec2_takes(network: Any) -> None:
    ec2, place = network
    text = json.dumps(document(*TAKEN))
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
    policy = {"Bucket": "documents", "Policy": json.dumps(document(let(resource)))}
    invalid = ("MalformedPolicy", "Policy has invalid resource")
    assert refusal(s3.put_bucket_policy, **policy) == invalid
    assert refusal(s3.put_bucket_policy, **{**policy, "Policy": "x"})[0] == "MalformedPolicy"
    s3.delete_bucket(Bucket="documents")
