"""Policy documents that AWS refuses when they are stored, by each way that stores them."""

from __future__ import annotations

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
