"""Subnets that another account shares by RAM: what a participant sees of the VPC, and may do in it.

https://docs.aws.amazon.com/vpc/latest/userguide/vpc-share-limitations.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from roles_under_test import allow, document, give_role
from stacks_under_test import resource_of
from test_function_networks import CALLER, PROBE, World

from local_sagemaker import LocalAws, delete_stack, deploy_template

OWNER, PARTICIPANT, THIRD = "210987654321", "123456789012", "333333333333"
RUNTIME = "com.amazonaws.us-east-1.sagemaker.runtime"
RULE = [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}]
OPEN = [{**RULE[0], "IpRanges": [{"CidrIp": "10.0.0.0/16"}]}]
NAMES = ("Vpc", "Shared", "Kept", "Table", "Group", "Gateway", "Link", "Share")


def arn(subnet: str) -> dict[str, str]:
    return {"Fn::Sub": f"arn:aws:ec2:${{AWS::Region}}:${{AWS::AccountId}}:subnet/${{{subnet}}}"}


def owners(**share: Any) -> dict[str, Any]:
    """The owner's template: of two subnets one is shared."""
    vpc = {"VpcId": {"Ref": "Vpc"}}
    ec2 = "AWS::EC2::"
    tagged = [{"Key": "Name", "Value": "the owner's"}]
    resources = {
        "Vpc": resource_of(f"{ec2}VPC", CidrBlock="10.0.0.0/16", EnableDnsHostnames=True),
        "Shared": resource_of(
            f"{ec2}Subnet", CidrBlock="10.0.0.0/24", AvailabilityZone="us-east-1a", **vpc
        ),
        "Kept": resource_of(f"{ec2}Subnet", CidrBlock="10.0.1.0/24", **vpc),
        "Table": resource_of(f"{ec2}RouteTable", **vpc),
        "Group": resource_of(f"{ec2}SecurityGroup", GroupDescription="theirs", **vpc),
        "Gateway": resource_of(f"{ec2}InternetGateway"),
        "Attachment": resource_of(
            f"{ec2}VPCGatewayAttachment", InternetGatewayId={"Ref": "Gateway"}, **vpc
        ),
        "Link": resource_of(
            f"{ec2}VPCEndpoint",
            ServiceName=RUNTIME,
            VpcEndpointType="Interface",
            SubnetIds=[{"Ref": "Shared"}],
            SecurityGroupIds=[{"Ref": "Group"}],
            **vpc,
        ),
        "Share": resource_of(
            "AWS::RAM::ResourceShare",
            **{
                "Name": "subnets",
                "Principals": [PARTICIPANT],
                "ResourceArns": [arn("Shared")],
                **share,
            },
        ),
    }
    for name in ("Vpc", "Shared"):
        resources[name]["Properties"]["Tags"] = tagged
    outputs = {name: {"Value": {"Ref": name}} for name in NAMES}
    return {"Resources": resources, "Outputs": outputs}


@pytest.fixture
def owner(aws: LocalAws) -> Iterator[LocalAws]:
    yield aws.assume_role(f"arn:aws:iam::{OWNER}:role/OrganizationAccountAccessRole")
    aws.reset()


@pytest.fixture
def theirs(owner: LocalAws) -> SimpleNamespace:
    """What the owner has: the outputs of its stack, and what its VPC came with."""
    made = deploy_template(owner, owners(), "Network").outputs
    ec2 = owner.client("ec2")
    of_vpc = [{"Name": "vpc-id", "Values": [made["Vpc"]]}]
    default = [*of_vpc, {"Name": "group-name", "Values": ["default"]}]
    made["Default"] = ec2.describe_security_groups(Filters=default)["SecurityGroups"][0]["GroupId"]
    made["Acl"] = ec2.describe_network_acls(Filters=of_vpc)["NetworkAcls"][0]["NetworkAclId"]
    (card,) = ec2.describe_network_interfaces(Filters=of_vpc)["NetworkInterfaces"]
    made["Card"] = card["NetworkInterfaceId"]
    return SimpleNamespace(**made)


@pytest.fixture
def ec2(aws: LocalAws) -> Any:
    """The participant's client."""
    return aws.client("ec2")


# --- what it sees


def test_a_participant_sees_the_owners_vpc_without_its_tags(ec2, theirs):
    (vpc,) = ec2.describe_vpcs(VpcIds=[theirs.Vpc])["Vpcs"]
    assert (vpc["OwnerId"], vpc.get("Tags", [])) == (OWNER, [])
    of_vpc = [{"Name": "vpc-id", "Values": [theirs.Vpc]}]
    (subnet,) = ec2.describe_subnets(Filters=of_vpc)["Subnets"]
    assert (subnet["SubnetId"], subnet["OwnerId"]) == (theirs.Shared, OWNER)
    assert subnet["SubnetArn"] == f"arn:aws:ec2:us-east-1:{OWNER}:subnet/{theirs.Shared}"
    assert (subnet["AvailabilityZoneId"], subnet.get("Tags", [])) == ("use1-az6", [])
    tables = ec2.describe_route_tables(Filters=of_vpc)["RouteTables"]
    assert {table["OwnerId"] for table in tables} == {OWNER}
    assert theirs.Table in [table["RouteTableId"] for table in tables]
    (acl,) = ec2.describe_network_acls(Filters=of_vpc)["NetworkAcls"]
    assert (acl["NetworkAclId"], acl["OwnerId"]) == (theirs.Acl, OWNER)
    (gateway,) = ec2.describe_internet_gateways(InternetGatewayIds=[theirs.Gateway])[
        "InternetGateways"
    ]
    assert gateway["OwnerId"] == OWNER


def test_what_a_participant_does_not_see(aws, ec2, theirs):
    of_vpc = [{"Name": "vpc-id", "Values": [theirs.Vpc]}]
    assert not ec2.describe_vpc_endpoints(Filters=of_vpc)["VpcEndpoints"]
    assert not ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"]
    assert not ec2.describe_network_interfaces(Filters=of_vpc)["NetworkInterfaces"]
    with pytest.raises(ClientError, match=r"InvalidSubnetID\.NotFound"):
        ec2.describe_subnets(SubnetIds=[theirs.Kept])
    assert aws.leftovers() == []


def test_it_sees_what_the_owner_makes_and_changes_later(ec2, owner, theirs):
    table = owner.client("ec2").create_route_table(VpcId=theirs.Vpc)["RouteTable"]["RouteTableId"]
    assert ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
    on = {"Value": True}
    owner.client("ec2").modify_subnet_attribute(SubnetId=theirs.Shared, MapPublicIpOnLaunch=on)
    (subnet,) = ec2.describe_subnets(SubnetIds=[theirs.Shared])["Subnets"]
    assert subnet["MapPublicIpOnLaunch"]


def test_shares_are_changed_and_deleted(aws, ec2, owner, theirs):
    third = aws.assume_role(f"arn:aws:iam::{THIRD}:role/OrganizationAccountAccessRole")

    def seen(by: Any) -> set[str]:
        of_vpc = [{"Name": "vpc-id", "Values": [theirs.Vpc]}]
        return {each["SubnetId"] for each in by.describe_subnets(Filters=of_vpc)["Subnets"]}

    assert seen(third.client("ec2")) == set()
    both = [arn("Shared"), arn("Kept")]
    deploy_template(owner, owners(Principals=[PARTICIPANT, THIRD], ResourceArns=both), "Network")
    assert seen(ec2) == seen(third.client("ec2")) == {theirs.Shared, theirs.Kept}
    deploy_template(owner, owners(Name="other", Principals=[THIRD]), "Network")
    assert (seen(ec2), seen(third.client("ec2"))) == (set(), {theirs.Shared})
    assert not ec2.describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [theirs.Vpc]}])["Vpcs"]
    delete_stack(owner, "Network")
    assert seen(third.client("ec2")) == set()


# --- what it may do


def test_groups_and_interfaces_of_its_own_keep_the_owner_from_deleting(ec2, owner, theirs):
    group = ec2.create_security_group(GroupName="mine", Description="x", VpcId=theirs.Vpc)[
        "GroupId"
    ]
    ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=OPEN)
    card = ec2.create_network_interface(SubnetId=theirs.Shared, Groups=[group])["NetworkInterface"]
    assert card["OwnerId"] == PARTICIPANT
    owners_ec2 = owner.client("ec2")
    owners_ec2.delete_vpc_endpoints(VpcEndpointIds=[theirs.Link])
    with pytest.raises(ClientError, match="DependencyViolation"):
        owners_ec2.delete_subnet(SubnetId=theirs.Shared)
    ec2.delete_network_interface(NetworkInterfaceId=card["NetworkInterfaceId"])
    owners_ec2.delete_subnet(SubnetId=theirs.Shared)
    owners_ec2.detach_internet_gateway(InternetGatewayId=theirs.Gateway, VpcId=theirs.Vpc)
    owners_ec2.delete_security_group(GroupId=theirs.Group)
    with pytest.raises(ClientError, match="DependencyViolation"):
        owners_ec2.delete_vpc(VpcId=theirs.Vpc)


def test_tags_of_its_own(ec2, owner, theirs):
    ec2.create_tags(Resources=[theirs.Shared], Tags=[{"Key": "Name", "Value": "mine"}])
    named = [{"ResourceType": "vpc", "Tags": [{"Key": "peer", "Value": theirs.Vpc}]}]
    ec2.create_vpc(CidrBlock="10.9.0.0/16", TagSpecifications=named)
    (subnet,) = ec2.describe_subnets(SubnetIds=[theirs.Shared])["Subnets"]
    assert {"Key": "Name", "Value": "mine"} in subnet["Tags"]
    (subnet,) = owner.client("ec2").describe_subnets(SubnetIds=[theirs.Shared])["Subnets"]
    assert {"Key": "Name", "Value": "the owner's"} in subnet["Tags"]


REFUSED: dict[str, Callable[[Any], dict[str, Any]]] = {
    "associate_route_table": lambda t: {"RouteTableId": t.Table, "SubnetId": t.Shared},
    "attach_internet_gateway": lambda t: {"InternetGatewayId": t.Gateway, "VpcId": t.Vpc},
    "authorize_security_group_egress": lambda t: {"GroupId": t.Group, "IpPermissions": OPEN},
    "authorize_security_group_ingress": lambda t: {"GroupId": t.Group, "IpPermissions": OPEN},
    "create_flow_logs": lambda t: {
        "ResourceIds": [t.Shared],
        "ResourceType": "Subnet",
        "TrafficType": "ALL",
        "LogDestinationType": "s3",
        "LogDestination": "arn:aws:s3:::flows",
    },
    "create_nat_gateway": lambda t: {"SubnetId": t.Shared, "ConnectivityType": "private"},
    "create_network_acl": lambda t: {"VpcId": t.Vpc},
    "create_network_interface": lambda t: {"SubnetId": t.Shared},
    "create_route": lambda t: {
        "RouteTableId": t.Table,
        "DestinationCidrBlock": "0.0.0.0/0",
        "GatewayId": t.Gateway,
    },
    "create_route_table": lambda t: {"VpcId": t.Vpc},
    "create_subnet": lambda t: {"VpcId": t.Vpc, "CidrBlock": "10.0.9.0/24"},
    "create_vpc_endpoint": lambda t: {"VpcId": t.Vpc, "ServiceName": RUNTIME},
    "delete_network_acl": lambda t: {"NetworkAclId": t.Acl},
    "delete_network_interface": lambda t: {"NetworkInterfaceId": t.Card},
    "delete_route_table": lambda t: {"RouteTableId": t.Table},
    "delete_security_group": lambda t: {"GroupId": t.Group},
    "delete_subnet": lambda t: {"SubnetId": t.Shared},
    "delete_vpc": lambda t: {"VpcId": t.Vpc},
    "delete_vpc_endpoints": lambda t: {"VpcEndpointIds": [t.Link]},
    "detach_internet_gateway": lambda t: {"InternetGatewayId": t.Gateway, "VpcId": t.Vpc},
    "modify_subnet_attribute": lambda t: {
        "SubnetId": t.Shared,
        "MapPublicIpOnLaunch": {"Value": True},
    },
    "modify_vpc_attribute": lambda t: {"VpcId": t.Vpc, "EnableDnsHostnames": {"Value": False}},
    "modify_vpc_endpoint": lambda t: {"VpcEndpointId": t.Link, "ResetPolicy": True},
}


@pytest.mark.parametrize("operation", REFUSED)
def test_a_participant_changes_nothing_of_the_owners(ec2, theirs, operation):
    name = ec2.meta.method_to_api_mapping[operation]
    with pytest.raises(ClientError) as refused:
        getattr(ec2, operation)(**REFUSED[operation](theirs))
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert refused.value.response["Error"] == {
        "Code": "UnauthorizedOperation",
        "Message": f"You are not authorized to perform {name} operation. A subnet in this vpc is "
        "shared but the provided object is not owned by you",
    }


def test_the_owner_may(owner, theirs):
    codes = set()
    for operation, arguments in REFUSED.items():
        try:
            getattr(owner.client("ec2"), operation)(**arguments(theirs))
        except ClientError as error:
            codes.add(error.response["Error"]["Code"])
    assert "UnauthorizedOperation" not in codes


@pytest.mark.parametrize("group", ["Default", "Group"])
def test_no_interface_has_a_group_of_the_owners(ec2, theirs, group):
    with pytest.raises(ClientError, match="UnauthorizedOperation"):
        ec2.create_network_interface(SubnetId=theirs.Shared, Groups=[getattr(theirs, group)])


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        ("RouteTable", lambda t: {"VpcId": t.Vpc}),
        (
            "SecurityGroupIngress",
            lambda t: {"GroupId": t.Group, "CidrIp": "10.0.0.0/16", **RULE[0]},
        ),
        ("Subnet", lambda t: {"VpcId": t.Vpc, "CidrBlock": "10.0.9.0/24"}),
        ("SubnetRouteTableAssociation", lambda t: {"RouteTableId": t.Table, "SubnetId": t.Shared}),
        ("VPCEndpoint", lambda t: {"VpcId": t.Vpc, "ServiceName": RUNTIME}),
    ],
)
def test_nor_does_a_stack_of_a_participants(stack, theirs, kind, properties):
    refusal = stack.refusal(f"AWS::EC2::{kind}", properties(theirs))
    assert "A subnet in this vpc is shared but the provided object is not owned by you" in refusal


@pytest.mark.parametrize("account", [OWNER, PARTICIPANT])
def test_to_use_the_subnet_a_caller_needs_the_right_to_it_in_the_owners_account(
    aws, theirs, account
):
    vpc = {"ArnEquals": {"ec2:Vpc": f"arn:aws:ec2:us-east-1:{account}:vpc/{theirs.Vpc}"}}
    subnet = f"arn:aws:ec2:us-east-1:{account}:subnet/{theirs.Shared}"
    role = give_role(
        aws,
        "caller",
        allow("ec2:CreateNetworkInterface", subnet, Condition=vpc),
        allow("ec2:CreateNetworkInterface", "arn:aws:ec2:*:*:network-interface/*"),
        allow(
            ["ec2:CreateNetworkInterface", "ec2:CreateSecurityGroup"],
            "arn:aws:ec2:*:*:security-group/*",
        ),
        allow("ec2:CreateSecurityGroup", f"arn:aws:ec2:us-east-1:{OWNER}:vpc/{theirs.Vpc}"),
    )
    caller = aws.assume_role(role).client("ec2")
    of_vpc = {"GroupName": "mine", "Description": "x", "VpcId": theirs.Vpc}
    asked = {
        "SubnetId": theirs.Shared,
        "Groups": [caller.create_security_group(**of_vpc)["GroupId"]],
    }
    if account == OWNER:
        assert (
            caller.create_network_interface(**asked)["NetworkInterface"]["OwnerId"] == PARTICIPANT
        )
    else:
        with pytest.raises(ClientError, match=f"{OWNER}:subnet/{theirs.Shared}"):
            caller.create_network_interface(**asked)


def test_a_participants_function_reaches_the_owners_interface_endpoint(aws, ec2, owner, theirs):
    world = World(aws)
    group = ec2.create_security_group(GroupName="mine", Description="x", VpcId=theirs.Vpc)
    world.inside = group["GroupId"]
    world.function("guest", PROBE, theirs.Shared)
    links = owner.client("ec2").describe_vpc_endpoints(VpcEndpointIds=[theirs.Link])
    regional = links["VpcEndpoints"][0]["DnsEntries"][0]["DnsName"]
    (outside,) = world.probe(regional, by="guest", timeout=0.1)
    assert outside["error"] == "TimeoutError"
    owner.client("ec2").authorize_security_group_ingress(GroupId=theirs.Group, IpPermissions=OPEN)
    (within,) = world.probe(regional, by="guest")
    card = owner.client("ec2").describe_network_interfaces(NetworkInterfaceIds=[theirs.Card])
    assert within["addresses"] == [card["NetworkInterfaces"][0]["PrivateIpAddress"]]
    assert within["port"] == world.port("us-east-1a")

    world.function("caller", CALLER, theirs.Shared)
    assert "none" in world.run("caller", {})
    narrow = document(allow("sagemaker:DescribeEndpoint", Principal="*"))
    owner.client("ec2").modify_vpc_endpoint(
        VpcEndpointId=theirs.Link, PrivateDnsEnabled=True, PolicyDocument=json.dumps(narrow)
    )
    assert "no VPC endpoint policy allows" in world.run("caller", {})


# --- the other accounts


def test_each_account_is_its_own(aws, owner):
    me = owner.client("sts").get_caller_identity()
    role = f"arn:aws:sts::{OWNER}:assumed-role/OrganizationAccountAccessRole/local-sagemaker"
    assert (me["Account"], me["Arn"]) == (OWNER, role)
    assert owner.exports()["CDK_DEFAULT_ACCOUNT"] == OWNER
    template = {"Resources": {"Topic": resource_of("AWS::SNS::Topic")}}
    made = deploy_template(owner, template, "Mine")
    assert made.resources["Topic"].split(":")[4] == made.id.split(":")[4] == OWNER
    with pytest.raises(ClientError, match="does not exist"):
        aws.client("cloudformation").describe_stacks(StackName="Mine")
    assert not aws.client("sns").list_topics()["Topics"]


def test_this_account_has_no_role_of_an_organizations(aws):
    with pytest.raises(ClientError, match="AccessDenied"):
        aws.assume_role(f"arn:aws:iam::{PARTICIPANT}:role/OrganizationAccountAccessRole")
