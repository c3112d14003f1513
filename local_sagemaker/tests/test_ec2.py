"""AWS::EC2::* but VPC endpoints."""

from __future__ import annotations

import re
from typing import Any

import pytest
from botocore.exceptions import ClientError
from signed_requests import refusal
from stacks_under_test import resource_of

from local_sagemaker import LocalAws

VPC = {"VpcId": {"Ref": "Vpc"}}
SUBNET, GROUP = "AWS::EC2::Subnet", "AWS::EC2::SecurityGroup"


def tags(aws: Any, resource: str) -> dict[str, str]:
    found = aws.client("ec2").describe_tags(Filters=[{"Name": "resource-id", "Values": [resource]}])
    return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


def test_vpc(aws, stack):
    ec2 = aws.client("ec2")

    def switched_on(vpc_id: str) -> list[str]:
        names = ("enableDnsSupport", "enableDnsHostnames")
        found = [ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute=name) for name in names]
        return [
            name
            for name, attribute in zip(names, found, strict=True)
            if attribute[name[0].upper() + name[1:]]["Value"]
        ]

    wanted = ("VpcId", "CidrBlock", "DefaultSecurityGroup", "DefaultNetworkAcl")
    properties = {"CidrBlock": "10.1.0.0/16", "EnableDnsSupport": "true"}
    made = stack.deploy("AWS::EC2::VPC", properties, wanted)
    assert made.ref == made.attributes["VpcId"]
    assert made.attributes["CidrBlock"] == "10.1.0.0/16"
    assert made.attributes["DefaultSecurityGroup"].startswith("sg-")
    assert made.attributes["DefaultNetworkAcl"].startswith("acl-")
    assert switched_on(made.ref) == ["enableDnsSupport"]

    properties |= {"EnableDnsHostnames": "true", "Tags": [{"Key": "Name", "Value": "x"}]}
    assert stack.deploy("AWS::EC2::VPC", properties).ref == made.ref
    assert switched_on(made.ref) == ["enableDnsSupport", "enableDnsHostnames"]
    assert tags(aws, made.ref) == {"Name": "x"}

    replaced = stack.deploy("AWS::EC2::VPC", {**properties, "CidrBlock": "10.2.0.0/16"})
    assert replaced.ref != made.ref
    assert refusal(ec2.describe_vpcs, VpcIds=[made.ref])[0] == "InvalidVpcID.NotFound"


def test_subnet_by_zone_name_and_by_zone_id(aws, stack, vpc):
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    names = {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
    wanted = ("AvailabilityZone", "AvailabilityZoneId", "VpcId", "CidrBlock", "SubnetId")
    common = {**VPC, "CidrBlock": "10.0.1.0/24", "AvailabilityZoneId": "use1-az4"}
    by_id = stack.deploy(SUBNET, common, wanted, Vpc=vpc)
    place = {"AvailabilityZone": names["use1-az4"], "AvailabilityZoneId": "use1-az4"}
    there = {"CidrBlock": "10.0.1.0/24", "SubnetId": by_id.ref}
    assert by_id.attributes == {**place, **there, "VpcId": by_id.stack.resources["Vpc"]}

    public = {**common, "MapPublicIpOnLaunch": True}
    assert stack.deploy(SUBNET, public, Vpc=vpc).ref == by_id.ref
    (found,) = aws.client("ec2").describe_subnets(SubnetIds=[by_id.ref])["Subnets"]
    assert found["MapPublicIpOnLaunch"] is True

    moved = {**VPC, "CidrBlock": "10.0.2.0/24", "AvailabilityZone": "us-east-1b"}
    by_name = stack.deploy(SUBNET, moved, wanted, Vpc=vpc)
    assert by_name.ref != by_id.ref
    assert by_name.attributes["AvailabilityZone"] == "us-east-1b"
    assert names[by_name.attributes["AvailabilityZoneId"]] == "us-east-1b"


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ({"AvailabilityZoneId": "euw1-az1"}, r"\(euw1-az1\).* availabilityZoneId .*: use1-az6, "),
        ({"AvailabilityZoneId": "use1-az9"}, r"\(use1-az9\).* availabilityZoneId .*: use1-az6, "),
        ({"AvailabilityZone": "eu-west-1a"}, r"\(eu-west-1a\).* availabilityZone .*: us-east-1a, "),
    ],
)
def test_a_subnet_is_in_a_zone_of_its_own_region(stack, vpc, zone, words):
    """By parameter, as in a template that is deployed to the wrong region."""
    ((name, value),) = zone.items()
    it = resource_of(SUBNET, **VPC, CidrBlock="10.0.0.0/24", **{name: {"Ref": "Zone"}})
    template = {
        "Parameters": {"Zone": {"Type": "String", "Default": value}},
        "Resources": {"Vpc": vpc, "It": it},
    }
    failed = stack.template(template, expect_failure=True)
    assert re.search(words, failed.failure_reason or "")
    assert failed.status == "ROLLBACK_COMPLETE"


def test_a_subnet_s_zone_is_given_once(aws):
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    zone = {"AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az6"}
    request = {"VpcId": vpc, "CidrBlock": "10.7.0.0/24", **zone}
    assert refusal(ec2.create_subnet, **request)[0] == "InvalidParameterCombination"
    ec2.delete_vpc(VpcId=vpc)


def test_a_subnet_without_a_zone_is_in_its_own_region():
    with LocalAws.in_process(region="eu-west-1") as elsewhere:
        ec2 = elsewhere.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.0.0/24")["Subnet"]
        assert made["AvailabilityZone"].startswith("eu-west-1")


def test_route_table_association_and_routes(aws, stack, vpc):
    ec2 = aws.client("ec2")
    route = {"RouteTableId": {"Ref": "Table"}, "DestinationCidrBlock": "0.0.0.0/0"}
    allocation = {"Fn::GetAtt": ["Address", "AllocationId"]}
    others: dict[str, Any] = {
        "Vpc": vpc,
        "Subnet": resource_of(SUBNET, **VPC, CidrBlock="10.0.1.0/24"),
        "Table": resource_of("AWS::EC2::RouteTable", **VPC),
        "Other": resource_of("AWS::EC2::RouteTable", **VPC),
        "Gateway": resource_of("AWS::EC2::InternetGateway"),
        "Attachment": resource_of(
            "AWS::EC2::VPCGatewayAttachment", **VPC, InternetGatewayId={"Ref": "Gateway"}
        ),
        "Address": resource_of("AWS::EC2::EIP", Domain="vpc"),
        "Nat": {
            **resource_of(
                "AWS::EC2::NatGateway", SubnetId={"Ref": "Subnet"}, AllocationId=allocation
            ),
            "DependsOn": "Attachment",
        },
    }

    def deploy(table: str, **target: Any) -> Any:
        association = {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": table}}
        kind = "AWS::EC2::SubnetRouteTableAssociation"
        way = {**resource_of("AWS::EC2::Route", **route, **target), "DependsOn": "Attachment"}
        return stack.deploy(kind, association, ("Id",), **others, Route=way)

    def table(name: str) -> tuple[list[str], dict[str, Any]]:
        """Give a table's subnets, and its route to everywhere."""
        (found,) = ec2.describe_route_tables(RouteTableIds=[ids[name]])["RouteTables"]
        subnets = [entry["SubnetId"] for entry in found["Associations"] if "SubnetId" in entry]
        ways = {way.get("DestinationCidrBlock"): way for way in found["Routes"]}
        return subnets, ways.get("0.0.0.0/0", {})

    made = deploy("Table", GatewayId={"Ref": "Gateway"})
    ids = made.stack.resources
    assert made.attributes["Id"] == made.ref
    subnets, way = table("Table")
    assert (subnets, way["GatewayId"]) == ([ids["Subnet"]], ids["Gateway"])
    found = ec2.describe_internet_gateways(InternetGatewayIds=[ids["Gateway"]])
    assert found["InternetGateways"][0]["Attachments"][0]["VpcId"] == ids["Vpc"]

    deploy("Other", NatGatewayId={"Ref": "Nat"})
    subnets, way = table("Table")
    assert (subnets, way["NatGatewayId"]) == ([], ids["Nat"])
    assert table("Other")[0] == [ids["Subnet"]]

    stack.delete()
    assert ec2.describe_addresses()["Addresses"] == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    gone = refusal(ec2.describe_route_tables, RouteTableIds=[ids["Table"]])
    assert gone[0] == "InvalidRouteTableID.NotFound"


def test_a_route_leads_to_its_own_network(aws):
    """EC2's words: https://github.com/aws/aws-cdk/issues/1140."""
    ec2 = aws.client("ec2")
    own, other = (ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"] for _ in range(2))
    table = ec2.create_route_table(VpcId=own)["RouteTable"]["RouteTableId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway}
    refused = (
        "InvalidParameterValue",
        (f"route table {table} and network gateway {gateway} belong to different networks"),
    )
    assert refusal(ec2.create_route, **route) == refused
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=other)
    assert refusal(ec2.create_route, **route) == refused
    ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=other)
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=own)
    ec2.create_route(**route)
    ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=own)
    assert refusal(ec2.replace_route, **route) == refused
    ec2.delete_route_table(RouteTableId=table)
    ec2.delete_internet_gateway(InternetGatewayId=gateway)
    for vpc in (own, other):
        ec2.delete_vpc(VpcId=vpc)


def rules(aws: Any, group: str, direction: str) -> set[tuple[Any, ...]]:
    (found,) = aws.client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"]
    key = "IpPermissions" if direction == "ingress" else "IpPermissionsEgress"
    return {
        (rule["IpProtocol"], rule.get("FromPort"), peer)
        for rule in found[key]
        for peer in [
            *(entry["CidrIp"] for entry in rule["IpRanges"]),
            *(entry["GroupId"] for entry in rule["UserIdGroupPairs"]),
        ]
    }


def test_security_group_with_inline_rules(aws, stack, vpc):
    https = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "CidrIp": "10.0.0.0/16"}
    nothing = {"IpProtocol": "icmp", "FromPort": 252, "ToPort": 86, "CidrIp": "255.255.255.255/32"}
    properties = {
        "GroupDescription": "test",
        **VPC,
        "SecurityGroupEgress": [nothing],
        "SecurityGroupIngress": [https],
    }
    made = stack.deploy(GROUP, properties, ("GroupId", "VpcId"), Vpc=vpc)
    assert made.attributes == {"GroupId": made.ref, "VpcId": made.stack.resources["Vpc"]}
    assert rules(aws, made.ref, "ingress") == {("tcp", 443, "10.0.0.0/16")}
    assert rules(aws, made.ref, "egress") == {("icmp", 252, "255.255.255.255/32")}

    properties["SecurityGroupIngress"] = [{**https, "FromPort": 8443, "ToPort": 8443}]
    del properties["SecurityGroupEgress"]
    assert stack.deploy(GROUP, properties, Vpc=vpc).ref == made.ref
    assert rules(aws, made.ref, "ingress") == {("tcp", 8443, "10.0.0.0/16")}
    assert rules(aws, made.ref, "egress") == {("-1", None, "0.0.0.0/0")}

    assert stack.deploy(GROUP, {**properties, "GroupDescription": "x"}, Vpc=vpc).ref != made.ref


@pytest.mark.parametrize(
    ("kind", "direction", "peer"),
    [
        ("AWS::EC2::SecurityGroupIngress", "ingress", "Source"),
        ("AWS::EC2::SecurityGroupEgress", "egress", "Destination"),
    ],
)
def test_security_group_rules_of_their_own(aws, stack, vpc, kind, direction, peer):
    group = resource_of(GROUP, GroupDescription="x", **VPC)

    def of_port(port: int) -> set[tuple[Any, ...]]:
        """Deploy a rule for a port; gives the group's rules for the peer."""
        rule = {"GroupId": {"Ref": "Group"}, f"{peer}SecurityGroupId": {"Ref": "Peer"}}
        made = stack.deploy(
            kind,
            {**rule, "IpProtocol": "tcp", "FromPort": port, "ToPort": port},
            Vpc=vpc,
            Group=group,
            Peer=group,
        )
        ids = made.stack.resources
        assert made.ref.startswith("sgr-")
        found = rules(aws, ids["Group"], direction)
        return {rule[:2] for rule in found if rule[2] == ids["Peer"]}

    assert of_port(443) == {("tcp", 443)}
    assert of_port(80) == {("tcp", 80)}


def test_flow_log(aws, stack, vpc, role):
    properties = {
        "ResourceType": "VPC",
        "ResourceId": {"Ref": "Vpc"},
        "TrafficType": "REJECT",
        "LogDestinationType": "cloud-watch-logs",
        "LogGroupName": {"Ref": "Group"},
        "DeliverLogsPermissionArn": {"Fn::GetAtt": ["Role", "Arn"]},
        "MaxAggregationInterval": 60,
    }
    group = resource_of("AWS::Logs::LogGroup")
    made = stack.deploy("AWS::EC2::FlowLog", properties, ("Id",), Vpc=vpc, Role=role, Group=group)
    (found,) = aws.client("ec2").describe_flow_logs(FlowLogIds=[made.ref])["FlowLogs"]
    assert found["TrafficType"] == "REJECT"
    assert found["ResourceId"] == made.stack.resources["Vpc"]
    assert found["MaxAggregationInterval"] == 60
    stack.delete()
    assert aws.client("ec2").describe_flow_logs()["FlowLogs"] == []


def test_what_a_vpc_and_a_group_are_used_by_keeps_them(aws):
    """botocore: DeleteSecurityGroup ("referenced by another security group"), DeleteVpc."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    used, using = (
        ec2.create_security_group(GroupName=name, Description="d", VpcId=vpc)["GroupId"]
        for name in ("used", "using")
    )
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
    of_itself = [{**rule, "UserIdGroupPairs": [{"GroupId": using}]}]
    of_other = [{**rule, "UserIdGroupPairs": [{"GroupId": used}]}]
    ec2.authorize_security_group_ingress(GroupId=using, IpPermissions=[*of_itself, *of_other])
    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_security_group(GroupId=used)
    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_vpc(VpcId=vpc)
    for group in (using, used):
        ec2.delete_security_group(GroupId=group)
    ec2.delete_vpc(VpcId=vpc)


@pytest.mark.parametrize(
    ("name", "code"), [("sg-mine", "InvalidParameterValue"), ("WEB", "InvalidGroup.Duplicate")]
)
def test_names_of_groups(aws, name, code):
    """botocore, CreateSecurityGroup: not like an ID, and case-insensitive in a VPC."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    made = ec2.create_security_group(GroupName="web", Description="d", VpcId=vpc)["GroupId"]
    try:
        with pytest.raises(ClientError, match=code):
            ec2.create_security_group(GroupName=name, Description="d", VpcId=vpc)
    finally:
        ec2.delete_security_group(GroupId=made)
        ec2.delete_vpc(VpcId=vpc)


def test_the_default_group_is_not_deleted(aws):
    """VPC user guide, "Default security groups for your VPCs"."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    of_vpc = [{"Name": "vpc-id", "Values": [vpc]}]
    (group,) = ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"]
    assert refusal(ec2.delete_security_group, GroupId=group["GroupId"])[0] == "CannotDelete"
    assert ec2.describe_security_groups(Filters=of_vpc)["SecurityGroups"] == [group]
    ec2.delete_vpc(VpcId=vpc)


@pytest.mark.parametrize("direction", ["ingress", "egress"])
def test_a_rule_names_a_group_of_its_own_or_a_peer_vpc(aws, direction):
    """VPC user guide, "Security group rules"; a rule that has become stale can go."""
    ec2 = aws.client("ec2")
    vpcs = [ec2.create_vpc(CidrBlock=f"10.{n}.0.0/16")["Vpc"]["VpcId"] for n in (20, 21)]
    groups = [
        ec2.create_security_group(GroupName="g", Description="d", VpcId=vpc)["GroupId"]
        for vpc in vpcs
    ]
    rule = {"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
    other = {**rule, "UserIdGroupPairs": [{"GroupId": groups[1]}]}
    given = {"GroupId": groups[0], "IpPermissions": [other]}
    authorize = getattr(ec2, f"authorize_security_group_{direction}")
    told = (
        "InvalidGroup.NotFound",
        "You have specified two resources that belong to different networks.",
    )
    peers = {"VpcId": vpcs[1], "PeerVpcId": vpcs[0]}
    peering = ec2.create_vpc_peering_connection(**peers)["VpcPeeringConnection"]
    identity = {"VpcPeeringConnectionId": peering["VpcPeeringConnectionId"]}
    assert refusal(authorize, **given) == told  # until the peering is accepted
    assert rules(aws, groups[0], "ingress") == set()
    ec2.accept_vpc_peering_connection(**identity)
    authorize(**given)
    ec2.delete_vpc_peering_connection(**identity)
    getattr(ec2, f"revoke_security_group_{direction}")(**given)
    assert refusal(authorize, **given) == told
    for group, vpc in zip(groups, vpcs, strict=True):
        ec2.delete_security_group(GroupId=group)
        ec2.delete_vpc(VpcId=vpc)


@pytest.mark.parametrize("direction", ["Ingress", "Egress"])
def test_a_rule_of_a_stack_that_no_network_has(stack, vpc, direction):
    """As by the API: a group of another VPC, and ports that end before they start."""
    peer = {"Ingress": "Source", "Egress": "Destination"}[direction]
    others = {
        "Vpc": vpc,
        "OtherVpc": vpc,
        "Group": resource_of(GROUP, GroupDescription="x", **VPC),
        "Other": resource_of(GROUP, GroupDescription="x", VpcId={"Ref": "OtherVpc"}),
    }
    rule = {"GroupId": {"Ref": "Group"}, "IpProtocol": "tcp", "FromPort": 443, "ToPort": 443}
    kind = f"{GROUP}{direction}"
    foreign = {**rule, f"{peer}SecurityGroupId": {"Ref": "Other"}}
    assert "different networks" in stack.refusal(kind, foreign, **others)
    stack.delete()
    backwards = {**rule, "FromPort": 444, "CidrIp": "10.0.0.0/16"}
    assert "InvalidParameterValue" in stack.refusal(kind, backwards, **others)


def test_a_route_table_has_one_gateway_endpoint_of_a_service(aws, stack, vpc):
    """PrivateLink guide, "Gateway endpoints"; EC2's words: https://github.com/eksctl-io/eksctl/issues/4377."""
    ec2 = aws.client("ec2")
    network = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    one, two = (
        ec2.create_route_table(VpcId=network)["RouteTable"]["RouteTableId"] for _ in range(2)
    )
    place = {"VpcId": network, "ServiceName": "com.amazonaws.us-east-1.s3"}

    def link(service: str, *tables: str) -> str:
        given = {**place, "ServiceName": f"com.amazonaws.us-east-1.{service}"}
        made = ec2.create_vpc_endpoint(**given, RouteTableIds=list(tables))
        return made["VpcEndpoint"]["VpcEndpointId"]

    links = [link("s3", one), link("dynamodb", one)]
    code, words = refusal(ec2.create_vpc_endpoint, **place, RouteTableIds=[two, one])
    assert (code, f"route table {one} already has a route" in words) == ("RouteAlreadyExists", True)
    links.append(link("s3", two))  # of the refused endpoint nothing is left
    changed = {"VpcEndpointId": links[-1], "AddRouteTableIds": [one]}
    assert refusal(ec2.modify_vpc_endpoint, **changed)[0] == "RouteAlreadyExists"
    ec2.delete_vpc_endpoints(VpcEndpointIds=links[:1])
    ec2.modify_vpc_endpoint(**changed)
    ec2.delete_vpc_endpoints(VpcEndpointIds=links[1:])
    for table in (one, two):
        ec2.delete_route_table(RouteTableId=table)
    ec2.delete_vpc(VpcId=network)

    stated = {**VPC, "ServiceName": place["ServiceName"], "RouteTableIds": [{"Ref": "Table"}]}
    first = resource_of("AWS::EC2::VPCEndpoint", **stated)
    table = resource_of("AWS::EC2::RouteTable", **VPC)
    kept = {"Vpc": vpc, "Table": table, "First": first}
    stack.of(**kept)
    failed = stack.of(**kept, Second=first, expect_failure=True)
    assert "RouteAlreadyExists" in str(failed.failure_reason)


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("Gateway", {"AddSecurityGroupIds": ["sg-1"]}),
        ("Gateway", {"AddSubnetIds": ["subnet-1"]}),
        ("Gateway", {"PrivateDnsEnabled": True}),
        ("Interface", {"AddRouteTableIds": ["rtb-1"]}),
    ],
)
def test_an_endpoint_is_not_changed_to_what_its_type_does_not_have(aws, kind, change):
    """API reference, ModifyVpcEndpoint: "(Interface endpoint)", "(Gateway endpoint)"."""
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    given = {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.s3", "VpcEndpointType": kind}
    link = ec2.create_vpc_endpoint(**given, PrivateDnsEnabled=False)["VpcEndpoint"]["VpcEndpointId"]
    modify = ec2.modify_vpc_endpoint
    assert refusal(modify, VpcEndpointId=link, **change)[0] == "InvalidParameter"
    modify(VpcEndpointId=link, PrivateDnsEnabled=False)
    ec2.delete_vpc_endpoints(VpcEndpointIds=[link])
    ec2.delete_vpc(VpcId=vpc)
