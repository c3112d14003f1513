"""AWS::EC2::* but VPC endpoints."""

from __future__ import annotations

import re
from typing import Any

import pytest
from botocore.exceptions import ClientError
from stacks_under_test import resource_of

from local_sagemaker import LocalAws


def tags(aws: Any, resource: str) -> dict[str, str]:
    found = aws.client("ec2").describe_tags(Filters=[{"Name": "resource-id", "Values": [resource]}])
    return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


def test_vpc(aws, stack):
    ec2 = aws.client("ec2")

    def switches(vpc_id: str) -> tuple[bool, bool]:
        return tuple(
            ec2.describe_vpc_attribute(VpcId=vpc_id, Attribute=name)[name[0].upper() + name[1:]][
                "Value"
            ]
            for name in ("enableDnsSupport", "enableDnsHostnames")
        )

    wanted = ("VpcId", "CidrBlock", "DefaultSecurityGroup", "DefaultNetworkAcl")
    properties = {"CidrBlock": "10.1.0.0/16", "EnableDnsSupport": "true"}
    made = stack.deploy("AWS::EC2::VPC", properties, wanted)
    assert made.ref == made.attributes["VpcId"]
    assert made.attributes["CidrBlock"] == "10.1.0.0/16"
    assert made.attributes["DefaultSecurityGroup"].startswith("sg-")
    assert made.attributes["DefaultNetworkAcl"].startswith("acl-")
    assert switches(made.ref) == (True, False)

    properties |= {"EnableDnsHostnames": "true", "Tags": [{"Key": "Name", "Value": "x"}]}
    changed = stack.deploy("AWS::EC2::VPC", properties)
    assert changed.ref == made.ref
    assert switches(made.ref) == (True, True)
    assert tags(aws, made.ref) == {"Name": "x"}

    replaced = stack.deploy("AWS::EC2::VPC", {**properties, "CidrBlock": "10.2.0.0/16"})
    assert replaced.ref != made.ref
    with pytest.raises(ClientError, match="does not exist"):
        ec2.describe_vpcs(VpcIds=[made.ref])


def test_subnet_by_zone_name_and_by_zone_id(aws, stack, vpc):
    zones = aws.client("ec2").describe_availability_zones()["AvailabilityZones"]
    names = {zone["ZoneId"]: zone["ZoneName"] for zone in zones}
    wanted = ("AvailabilityZone", "AvailabilityZoneId", "VpcId", "CidrBlock", "SubnetId")
    common = {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.1.0/24"}
    by_id = stack.deploy(
        "AWS::EC2::Subnet", {**common, "AvailabilityZoneId": "use1-az4"}, wanted, Vpc=vpc
    )
    assert by_id.attributes["AvailabilityZone"] == names["use1-az4"]
    assert by_id.attributes["AvailabilityZoneId"] == "use1-az4"
    assert by_id.attributes["CidrBlock"] == "10.0.1.0/24"
    assert by_id.attributes["SubnetId"] == by_id.ref

    public = {**common, "AvailabilityZoneId": "use1-az4", "MapPublicIpOnLaunch": True}
    assert stack.deploy("AWS::EC2::Subnet", public, Vpc=vpc).ref == by_id.ref
    (found,) = aws.client("ec2").describe_subnets(SubnetIds=[by_id.ref])["Subnets"]
    assert found["MapPublicIpOnLaunch"] is True

    moved = {**common, "CidrBlock": "10.0.2.0/24", "AvailabilityZone": "us-east-1b"}
    by_name = stack.deploy("AWS::EC2::Subnet", moved, wanted, Vpc=vpc)
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
    resource = {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.0.0.0/24", name: {"Ref": "Zone"}},
    }
    template = {
        "Parameters": {"Zone": {"Type": "String", "Default": value}},
        "Resources": {"Vpc": vpc, "It": resource},
    }
    failed = stack.template(template, expect_failure=True)
    assert re.search(words, failed.failure_reason or "")
    assert failed.status == "ROLLBACK_COMPLETE"


def test_a_subnet_s_zone_is_given_once(aws):
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
    zone = {"AvailabilityZone": "us-east-1a", "AvailabilityZoneId": "use1-az6"}
    with pytest.raises(ClientError, match="InvalidParameterCombination"):
        ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.0.0/24", **zone)
    ec2.delete_vpc(VpcId=vpc)


def test_a_subnet_without_a_zone_is_in_its_own_region():
    with LocalAws.in_process(region="eu-west-1") as elsewhere:
        ec2 = elsewhere.client("ec2")
        vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        made = ec2.create_subnet(VpcId=vpc, CidrBlock="10.7.0.0/24")["Subnet"]
        assert made["AvailabilityZone"].startswith("eu-west-1")


def test_route_table_association_and_routes(aws, stack, vpc):
    ec2 = aws.client("ec2")
    others: dict[str, Any] = {
        "Vpc": vpc,
        "Subnet": resource_of(
            "AWS::EC2::Subnet",
            VpcId={"Ref": "Vpc"},
            CidrBlock="10.0.1.0/24",
            AvailabilityZone="us-east-1a",
        ),
        "Table": resource_of("AWS::EC2::RouteTable", VpcId={"Ref": "Vpc"}),
        "Other": resource_of("AWS::EC2::RouteTable", VpcId={"Ref": "Vpc"}),
        "Gateway": resource_of("AWS::EC2::InternetGateway"),
        "Attachment": resource_of(
            "AWS::EC2::VPCGatewayAttachment",
            VpcId={"Ref": "Vpc"},
            InternetGatewayId={"Ref": "Gateway"},
        ),
        "Address": resource_of("AWS::EC2::EIP", Domain="vpc"),
        "Nat": resource_of(
            "AWS::EC2::NatGateway",
            SubnetId={"Ref": "Subnet"},
            AllocationId={"Fn::GetAtt": ["Address", "AllocationId"]},
        ),
        "Route": {
            "Type": "AWS::EC2::Route",
            "DependsOn": "Attachment",
            "Properties": {
                "RouteTableId": {"Ref": "Table"},
                "DestinationCidrBlock": "0.0.0.0/0",
                "GatewayId": {"Ref": "Gateway"},
            },
        },
    }

    def association(table: str) -> dict[str, Any]:
        return {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": table}}

    def subnets(table: str) -> list[str]:
        (found,) = ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"]
        return [entry["SubnetId"] for entry in found["Associations"] if "SubnetId" in entry]

    kind = "AWS::EC2::SubnetRouteTableAssociation"
    made = stack.deploy(kind, association("Table"), ("Id",), **others)
    ids = made.stack.resources
    assert made.attributes["Id"] == made.ref
    assert subnets(ids["Table"]) == [ids["Subnet"]]
    (table,) = ec2.describe_route_tables(RouteTableIds=[ids["Table"]])["RouteTables"]
    routes = {route.get("DestinationCidrBlock"): route for route in table["Routes"]}
    assert routes["0.0.0.0/0"]["GatewayId"] == ids["Gateway"]
    (gateway,) = ec2.describe_internet_gateways(InternetGatewayIds=[ids["Gateway"]])[
        "InternetGateways"
    ]
    assert gateway["Attachments"][0]["VpcId"] == ids["Vpc"]

    route = others["Route"]["Properties"]
    del route["GatewayId"]
    route["NatGatewayId"] = {"Ref": "Nat"}
    stack.deploy(kind, association("Other"), **others)
    assert subnets(ids["Table"]) == []
    assert subnets(ids["Other"]) == [ids["Subnet"]]
    (table,) = ec2.describe_route_tables(RouteTableIds=[ids["Table"]])["RouteTables"]
    routes = {route.get("DestinationCidrBlock"): route for route in table["Routes"]}
    assert routes["0.0.0.0/0"]["NatGatewayId"] == ids["Nat"]

    stack.delete()
    assert ec2.describe_addresses()["Addresses"] == []
    assert ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    with pytest.raises(ClientError):
        ec2.describe_route_tables(RouteTableIds=[ids["Table"]])


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
        "VpcId": {"Ref": "Vpc"},
        "SecurityGroupEgress": [nothing],
        "SecurityGroupIngress": [https],
    }
    made = stack.deploy("AWS::EC2::SecurityGroup", properties, ("GroupId", "VpcId"), Vpc=vpc)
    assert made.attributes["GroupId"] == made.ref
    assert made.attributes["VpcId"] == made.stack.resources["Vpc"]
    assert rules(aws, made.ref, "ingress") == {("tcp", 443, "10.0.0.0/16")}
    assert rules(aws, made.ref, "egress") == {("icmp", 252, "255.255.255.255/32")}

    properties["SecurityGroupIngress"] = [{**https, "FromPort": 8443, "ToPort": 8443}]
    del properties["SecurityGroupEgress"]
    changed = stack.deploy("AWS::EC2::SecurityGroup", properties, Vpc=vpc)
    assert changed.ref == made.ref
    assert rules(aws, made.ref, "ingress") == {("tcp", 8443, "10.0.0.0/16")}
    assert rules(aws, made.ref, "egress") == {("-1", None, "0.0.0.0/0")}

    replaced = stack.deploy(
        "AWS::EC2::SecurityGroup", {**properties, "GroupDescription": "new"}, Vpc=vpc
    )
    assert replaced.ref != made.ref


@pytest.mark.parametrize(
    ("kind", "direction", "peer"),
    [
        ("AWS::EC2::SecurityGroupIngress", "ingress", "Source"),
        ("AWS::EC2::SecurityGroupEgress", "egress", "Destination"),
    ],
)
def test_security_group_rules_of_their_own(aws, stack, vpc, kind, direction, peer):
    group = resource_of("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId={"Ref": "Vpc"})
    others = {"Vpc": vpc, "Group": group, "Peer": group}
    rule = {
        "GroupId": {"Ref": "Group"},
        "IpProtocol": "tcp",
        "FromPort": 443,
        "ToPort": 443,
        f"{peer}SecurityGroupId": {"Ref": "Peer"},
    }
    made = stack.deploy(kind, rule, ("Id",), **others)
    ids = made.stack.resources
    assert made.ref.startswith("sgr-")
    assert ("tcp", 443, ids["Peer"]) in rules(aws, ids["Group"], direction)

    stack.deploy(kind, {**rule, "FromPort": 80, "ToPort": 80}, **others)
    found = rules(aws, ids["Group"], direction)
    assert ("tcp", 80, ids["Peer"]) in found
    assert ("tcp", 443, ids["Peer"]) not in found


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
