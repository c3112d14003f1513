"""A VPC whose subnets another account shares by AWS RAM: the owner's part, and a participant's.

https://docs.aws.amazon.com/vpc/latest/userguide/vpc-share-limitations.html: VPC endpoints and the
owner's security groups are the owner's; a participant makes interfaces and groups of its own.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import ClientZones, LoadTestFleet, RuntimePrivateLink, ZoneAlignedNetwork
from tests.refusals import refused

from .iam_decisions import allows
from .looked_up_vpc import KEY, SECOND_RUN, looked_up
from .team_apps import a_function

OWN, OWNER = "123456789012", "210987654321"
ZONES = ["us-east-1a", "us-east-1b"]
GROUP = "sg-0123456789abcdef0"


def imported(stack: Any) -> ec2.IVpc:
    return ec2.Vpc.from_vpc_attributes(
        stack,
        "Vpc",
        vpc_id="vpc-0123456789abcdef0",
        availability_zones=ZONES,
        private_subnet_ids=["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"],
    )


def shared(
    stack: Any, owner: str | None = OWNER, vpc: ec2.IVpc | None = None
) -> ZoneAlignedNetwork:
    return ZoneAlignedNetwork.in_vpc(
        stack,
        "Network",
        vpc=vpc or imported(stack),
        client_zones=ClientZones.of_names(*ZONES),
        owner=owner,
    )


def adopted(stack: Any, network: ZoneAlignedNetwork) -> RuntimePrivateLink:
    endpoint = ec2.InterfaceVpcEndpoint.from_interface_vpc_endpoint_attributes(
        stack,
        "Existing",
        vpc_endpoint_id="vpce-0123456789abcdef0",
        port=443,
        security_groups=[ec2.SecurityGroup.from_security_group_id(stack, "Group", GROUP)],
    )
    return RuntimePrivateLink.from_interface_endpoint(
        stack, "Link", network=network, interface_endpoint=endpoint
    )


def subnets_named(template: Any) -> set[str]:
    """The accounts of the subnets that the roles name."""
    text = json.dumps(template.of_type("AWS::IAM::Policy"))
    return {part.rpartition(":")[2] for part in text.split(":subnet/")[:-1]}


def test_a_participants_stack_takes_nothing_of_the_owners(stack, parts, template_of):
    network = shared(stack)
    link = adopted(stack, network)
    caller = a_function(stack, network.vpc)
    link.allow_from(caller)
    parts.pattern(stack, network=network, private_link=link, client_zones=None)
    template = template_of(stack)
    assert not template.of_type("AWS::EC2::VPCEndpoint")
    for rule in template.of_type("AWS::EC2::SecurityGroupIngress").values():
        assert rule["GroupId"] != GROUP
    assert subnets_named(template) == {OWNER}


def test_the_stacks_own_account_is_no_other_owner(stack, parts, template_of):
    parts.pattern(stack, network=shared(stack, owner=OWN), client_zones=None)
    assert OWNER not in json.dumps(template_of(stack))


@pytest.mark.parametrize("owner", [OWN, OWNER])
def test_the_owner_is_known_of_a_vpc_that_is_looked_up(new_stack, owner):
    found = {KEY: {**SECOND_RUN[KEY], "ownerAccountId": owner}}
    stack = new_stack(context=found)
    network = shared(stack, owner=None, vpc=looked_up(stack))
    assert network.owner == (None if owner == OWN else OWNER)


def test_a_stack_without_an_environment_takes_the_stated_owner_for_another(new_stack):
    assert shared(new_stack(region=None)).owner == OWNER


@pytest.mark.parametrize(
    "made",
    [
        lambda stack, network: RuntimePrivateLink(stack, "New", network=network),
        lambda stack, network: network.add_interface_endpoint(
            "Secrets", ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER
        ),
        lambda stack, network: LoadTestFleet(
            stack,
            "Fleet",
            network=network,
            private_link=adopted(stack, network),
            endpoint="sentiment",
        ),
    ],
)
def test_no_vpc_endpoint_is_made_in_it(stack, made):
    with refused("LLE223"):
        made(stack, shared(stack))


def test_the_pattern_says_that_the_owners_endpoint_is_needed(stack, parts):
    with refused("LLE223"):
        parts.pattern(stack, network=shared(stack), client_zones=None)


def test_an_owner_is_an_account(stack):
    with refused("LLE914"):
        shared(stack, owner="me")


# --- the owner's part


def policy(template: Any) -> dict[str, Any]:
    found: dict[str, Any] = template.only("AWS::EC2::VPCEndpoint")["PolicyDocument"]
    return found


def endpoint(account: str) -> str:
    return f"arn:aws:sagemaker:us-east-1:{account}:endpoint/ranking"


@pytest.mark.parametrize("narrow", [True, False])
def test_the_owner_lets_in_accounts(stack, template_of, narrow):
    network = shared(stack, owner=None)
    RuntimePrivateLink(
        stack, "Link", network=network, narrow_policy=narrow, accounts=[OWNER, "3" * 12]
    )
    made = policy(template_of(stack))
    for account in (OWN, OWNER, "3" * 12):
        theirs = {"aws_PrincipalAccount": account}
        assert allows(made, "sagemaker:InvokeEndpoint", endpoint(account), **theirs)
    guest = {"aws_PrincipalAccount": "4" * 12}
    assert not allows(made, "sagemaker:InvokeEndpoint", endpoint(OWNER), **guest)
    assert not allows(made, "sagemaker:InvokeEndpoint", endpoint("4" * 12), **guest)
    assert not allows(made, "sagemaker:DeleteEndpoint", endpoint(OWNER), aws_PrincipalAccount=OWNER)


def test_the_owner_lets_in_an_organization(stack, template_of):
    network = shared(stack, owner=None)
    RuntimePrivateLink(stack, "Link", network=network, organization="o-abcdefghij")
    made = policy(template_of(stack))
    ours = {"aws_PrincipalAccount": OWNER, "aws_PrincipalOrgID": "o-abcdefghij"}
    assert allows(made, "sagemaker:InvokeEndpoint", endpoint(OWNER), **ours)
    others = {"aws_PrincipalAccount": OWNER, "aws_PrincipalOrgID": "o-0000000000"}
    assert not allows(made, "sagemaker:InvokeEndpoint", endpoint(OWNER), **others)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        ("LLE914", {"accounts": ["me"]}),
        ("LLE224", {"organization": "r-abcd"}),
        ("LLE225", {"accounts": [OWNER], "endpoint_policy": False}),
        ("LLE225", {"organization": "o-abcdefghij", "fips": True}),
    ],
)
def test_whom_a_policy_cannot_let_in(stack, code, given):
    with refused(code):
        RuntimePrivateLink(stack, "Link", network=shared(stack, owner=None), **given)
