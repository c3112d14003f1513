"""AWS::EC2::VPCEndpoint and AWS::Route53::*: what the library rests on."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from roles_under_test import allow, document
from stacks_under_test import resource_of

ENDPOINT = "AWS::EC2::VPCEndpoint"
SERVICE = "com.amazonaws.us-east-1.sagemaker.runtime"
NAME = "runtime.sagemaker.us-east-1.amazonaws.com"


@pytest.fixture
def network(vpc) -> dict[str, Any]:
    """A VPC, three subnets in two zones, a security group and a route table."""
    resources: dict[str, Any] = {"Vpc": vpc}
    for name, zone, block in (("B", "b", 2), ("A", "a", 1), ("A2", "a", 3)):
        resources[f"Subnet{name}"] = resource_of(
            "AWS::EC2::Subnet",
            VpcId={"Ref": "Vpc"},
            CidrBlock=f"10.0.{block}.0/24",
            AvailabilityZone=f"us-east-1{zone}",
        )
    group = resource_of("AWS::EC2::SecurityGroup", GroupDescription="x", VpcId={"Ref": "Vpc"})
    resources |= {"Group": group, "Group2": group}
    resources["Table"] = resource_of("AWS::EC2::RouteTable", VpcId={"Ref": "Vpc"})
    return resources


def interface(*subnets: str, **more: Any) -> dict[str, Any]:
    return {
        "VpcId": {"Ref": "Vpc"},
        "ServiceName": SERVICE,
        "VpcEndpointType": "Interface",
        "SubnetIds": [{"Ref": name} for name in subnets],
        "SecurityGroupIds": [{"Ref": "Group"}],
        "PrivateDnsEnabled": True,
        **more,
    }


def described(aws: Any, endpoint: str) -> dict[str, Any]:
    (found,) = aws.client("ec2").describe_vpc_endpoints(VpcEndpointIds=[endpoint])["VpcEndpoints"]
    return found


def test_interface_endpoint_names_as_aws_has_them(aws, stack, network):
    wanted = ("DnsEntries", "NetworkInterfaceIds", "Id")
    made = stack.deploy(ENDPOINT, interface("SubnetB", "SubnetA"), wanted, **network)
    entries = [entry.split(":") for entry in made.attributes["DnsEntries"].split(",")]
    names = [name for _, name in entries]
    base, tail = names[0].split(".", 1)
    assert re.fullmatch(rf"{made.ref}-[a-z0-9]+", base)
    assert tail == "runtime.sagemaker.us-east-1.vpce.amazonaws.com"
    zonal = {f"{base}-us-east-1a.{tail}", f"{base}-us-east-1b.{tail}"}
    assert (set(names[1:3]), names[3:]) == (zonal, [NAME, "runtime.sagemaker.us-east-1.api.aws"])
    assert all(re.fullmatch(r"Z[A-Z0-9]+", zone) for zone, _ in entries)
    found = described(aws, made.ref)
    assert [entry["DnsName"] for entry in found["DnsEntries"]] == names
    assert (found["PrivateDnsEnabled"], found["VpcEndpointType"]) == (True, "Interface")
    interfaces = made.attributes["NetworkInterfaceIds"].split(",")
    describe = aws.client("ec2").describe_network_interfaces
    cards = describe(NetworkInterfaceIds=interfaces)["NetworkInterfaces"]
    ids = made.stack.resources
    assert {card["SubnetId"] for card in cards} == {ids["SubnetA"], ids["SubnetB"]}
    assert {g["GroupId"] for card in cards for g in card["Groups"]} == {ids["Group"]}
    assert {card["PrivateIpAddress"].rpartition(".")[0] for card in cards} == {"10.0.1", "10.0.2"}


def test_interface_endpoint_update(aws, stack, network):
    policy = document(allow("sagemaker:InvokeEndpoint", Principal="*"))

    def deploy(*subnets: str, **more: Any) -> tuple[Any, dict[str, Any]]:
        made = stack.deploy(ENDPOINT, interface(*subnets, **more), ("DnsEntries",), **network)
        return made, described(aws, made.ref)

    made, found = deploy("SubnetA", PolicyDocument=policy)
    assert json.loads(found["PolicyDocument"]) == policy
    assert len(made.attributes["DnsEntries"].split(",")) == 4

    changed, found = deploy("SubnetA", "SubnetB", SecurityGroupIds=[{"Ref": "Group2"}])
    ids = changed.stack.resources
    assert changed.ref == made.ref
    assert len(changed.attributes["DnsEntries"].split(",")) == 5
    assert set(found["SubnetIds"]) == {ids["SubnetA"], ids["SubnetB"]}
    assert len(found["NetworkInterfaceIds"]) == 2
    assert [g["GroupId"] for g in found["Groups"]] == [ids["Group2"]]
    # No policy is AWS's own: everything is allowed.
    assert json.loads(found["PolicyDocument"])["Statement"][0]["Action"] == "*"

    off, found = deploy("SubnetB", PrivateDnsEnabled=False)
    assert (off.ref, found["PrivateDnsEnabled"]) == (made.ref, False)
    assert NAME not in off.attributes["DnsEntries"]
    assert found["SubnetIds"] == [ids["SubnetB"]]

    stack.delete()
    assert aws.client("ec2").describe_vpc_endpoints()["VpcEndpoints"] == []


def test_a_second_private_dns_name_in_one_vpc_conflicts(stack, network):
    network["First"] = {"Type": ENDPOINT, "Properties": interface("SubnetA")}
    reason = stack.refusal(ENDPOINT, interface("SubnetB"), **network)
    assert re.search(
        r"private-dns-enabled cannot be set because there is already a conflicting DNS domain for "
        r"runtime\.sagemaker\.us-east-1\.amazonaws\.com in the VPC vpc-[0-9a-f]+",
        reason,
    )
    stack.delete()
    allowed = interface("SubnetB", PrivateDnsEnabled=False)
    assert stack.deploy(ENDPOINT, allowed, **network).ref.startswith("vpce-")


def hosted_zone(*vpcs: str, name: str = NAME) -> dict[str, Any]:
    return resource_of(
        "AWS::Route53::HostedZone",
        Name=name,
        VPCs=[{"VPCId": {"Ref": vpc}, "VPCRegion": "us-east-1"} for vpc in vpcs],
    )


def test_private_dns_conflicts_with_a_hosted_zone_of_the_name(stack, network):
    later = {**network, "SubnetA": {**network["SubnetA"], "DependsOn": "Zone"}}
    reason = stack.refusal(ENDPOINT, interface("SubnetA"), Zone=hosted_zone("Vpc"), **later)
    assert "already a conflicting DNS domain for " + NAME in reason
    stack.delete()
    other = hosted_zone("Vpc", name="runtime.sagemaker.eu-west-1.amazonaws.com")
    assert stack.deploy(ENDPOINT, interface("SubnetA"), Zone=other, **network).ref


@pytest.mark.parametrize("taken", ["endpoint", "zone"])
def test_a_hosted_zone_conflicts_with_what_resolves_the_name_already(
    aws, stack, network, vpc, taken
):
    first = hosted_zone("Vpc")
    if taken == "endpoint":
        first = {"Type": ENDPOINT, "Properties": interface("SubnetA")}
    free = {**vpc, "Properties": {**vpc["Properties"], "CidrBlock": "10.9.0.0/16"}}
    others = {**network, "Free": free, "First": first}
    for vpcs in (["Vpc"], ["Free", "Vpc"]):  # created with the VPC, and associated afterwards
        zone = {**hosted_zone(*vpcs), "DependsOn": "First"}
        found = stack.of(**others, It=zone, expect_failure=True)
        assert re.search(
            r"The VPC vpc-[0-9a-f]+ in region us-east-1 has already been associated with the "
            r"hosted zone [A-Z0-9]+ with the same domain name",
            found.failure_reason,
        )
        stack.delete()
        assert aws.client("route53").list_hosted_zones()["HostedZones"] == []
    assert stack.of(**others, It=hosted_zone("Free")).status == "CREATE_COMPLETE"


def test_private_dns_needs_the_vpcs_dns(stack, network):
    network["Vpc"]["Properties"]["EnableDnsHostnames"] = False
    reason = stack.refusal(ENDPOINT, interface("SubnetA"), **network)
    assert "requires both enableDnsSupport and enableDnsHostnames" in reason


def test_one_subnet_per_zone(stack, network):
    reason = stack.refusal(ENDPOINT, interface("SubnetA", "SubnetA2"), **network)
    assert "Found another VPC endpoint subnet in the availability zone of subnet-" in reason


def test_gateway_endpoint(aws, stack, network):
    properties = {
        "VpcId": {"Ref": "Vpc"},
        "ServiceName": "com.amazonaws.us-east-1.s3",
        "RouteTableIds": [{"Ref": "Table"}],
    }
    made = stack.deploy(ENDPOINT, properties, **network)
    table = made.stack.resources["Table"]

    def gateways() -> list[str]:
        (found,) = aws.client("ec2").describe_route_tables(RouteTableIds=[table])["RouteTables"]
        return [r["GatewayId"] for r in found["Routes"] if r.get("DestinationPrefixListId")]

    assert described(aws, made.ref)["VpcEndpointType"] == "Gateway"
    assert gateways() == [made.ref]
    stack.deploy(ENDPOINT, {**properties, "RouteTableIds": []}, **network)
    assert gateways() == []


def test_private_zone_with_an_alias_record(aws, stack, vpc):
    route53 = aws.client("route53")
    others = {
        "Vpc": vpc,
        "Other": {**vpc, "Properties": {**vpc["Properties"], "CidrBlock": "10.9.0.0/16"}},
    }

    def of(name: str) -> dict[str, Any]:
        return {"VPCId": {"Ref": name}, "VPCRegion": {"Ref": "AWS::Region"}}

    record = resource_of(
        "AWS::Route53::RecordSet",
        HostedZoneId={"Ref": "It"},
        Name="runtime.test.",
        Type="A",
        AliasTarget={"HostedZoneId": "Z1234567890", "DNSName": "one.vpce.amazonaws.com"},
    )

    def target(zone: str) -> str:
        found = route53.list_resource_record_sets(HostedZoneId=zone)["ResourceRecordSets"]
        (alias,) = [r for r in found if "AliasTarget" in r]
        return alias["AliasTarget"]["DNSName"].rstrip(".")

    properties = {"Name": "test.", "VPCs": [of("Vpc")]}
    made = stack.deploy("AWS::Route53::HostedZone", properties, ("Id",), Record=record, **others)
    found = route53.get_hosted_zone(Id=made.ref)
    ids = made.stack.resources
    assert made.attributes["Id"] == made.ref
    assert found["HostedZone"]["Config"]["PrivateZone"] is True
    assert [v["VPCId"] for v in found["VPCs"]] == [ids["Vpc"]]
    assert ids["Record"] == "runtime.test."
    assert target(made.ref) == "one.vpce.amazonaws.com"

    record["Properties"]["AliasTarget"]["DNSName"] = "two.vpce.amazonaws.com"
    properties["VPCs"] = [of("Other")]
    properties["HostedZoneConfig"] = {"Comment": "changed"}
    changed = stack.deploy("AWS::Route53::HostedZone", properties, Record=record, **others)
    assert changed.ref == made.ref
    found = route53.get_hosted_zone(Id=made.ref)
    assert [v["VPCId"] for v in found["VPCs"]] == [ids["Other"]]
    assert found["HostedZone"]["Config"]["Comment"] == "changed"
    assert target(made.ref) == "two.vpce.amazonaws.com"
    stack.delete()
    assert route53.list_hosted_zones()["HostedZones"] == []


def test_plain_record(aws, stack, vpc):
    zone = resource_of(
        "AWS::Route53::HostedZone",
        Name="plain.test.",
        VPCs=[{"VPCId": {"Ref": "Vpc"}, "VPCRegion": "us-east-1"}],
    )
    properties = {
        "HostedZoneId": {"Ref": "Zone"},
        "Name": "a.plain.test.",
        "Type": "CNAME",
        "TTL": "60",
        "ResourceRecords": ["b.test"],
    }
    made = stack.deploy("AWS::Route53::RecordSet", properties, Zone=zone, Vpc=vpc)
    found = aws.client("route53").list_resource_record_sets(
        HostedZoneId=made.stack.resources["Zone"]
    )["ResourceRecordSets"]
    (record,) = [r for r in found if r["Type"] == "CNAME"]
    assert (record["TTL"], record["ResourceRecords"]) == (60, [{"Value": "b.test"}])
