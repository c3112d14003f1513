"""A VPC of the network's own: subnets where the callers are, no way to or from the internet."""

from __future__ import annotations

import ipaddress
from itertools import permutations

import pytest

from low_latency_endpoint import ClientZones

ZONES = ("use1-az1", "use1-az2", "use1-az4")


def subnets_by_zone(template):
    return {
        properties.get("AvailabilityZoneId") or properties["AvailabilityZone"]: (
            logical_id,
            properties,
        )
        for logical_id, properties in template.of_type("AWS::EC2::Subnet").items()
    }


def test_one_subnet_in_each_client_zone_by_id(stack, parts, template_of):
    parts.network(stack, client_zones=ClientZones.of_ids(*ZONES))
    subnets = template_of(stack).of_type("AWS::EC2::Subnet").values()
    assert sorted(subnet["AvailabilityZoneId"] for subnet in subnets) == sorted(ZONES)
    assert not any("AvailabilityZone" in subnet for subnet in subnets)


def test_one_subnet_in_each_client_zone_by_name(stack, parts, template_of):
    parts.network(stack, client_zones=ClientZones.of_names("us-east-1a", "us-east-1c"))
    subnets = template_of(stack).of_type("AWS::EC2::Subnet").values()
    assert sorted(subnet["AvailabilityZone"] for subnet in subnets) == ["us-east-1a", "us-east-1c"]
    assert not any("AvailabilityZoneId" in subnet for subnet in subnets)


def test_nothing_leads_to_the_internet(smallest):
    template = smallest("network")
    assert not template.types & {
        "AWS::EC2::EIP",
        "AWS::EC2::EgressOnlyInternetGateway",
        "AWS::EC2::InternetGateway",
        "AWS::EC2::NatGateway",
        "AWS::EC2::Route",
        "AWS::EC2::VPCGatewayAttachment",
        "AWS::EC2::TransitGatewayAttachment",
        "AWS::EC2::VPNGateway",
    }
    for subnet in template.of_type("AWS::EC2::Subnet").values():
        assert subnet["MapPublicIpOnLaunch"] is False


def test_private_dns_has_what_it_needs(stack, parts, template_of):
    network = parts.network(stack)
    vpc = template_of(stack).only("AWS::EC2::VPC")
    assert (vpc["EnableDnsSupport"], vpc["EnableDnsHostnames"]) == (True, True)
    assert network.dns_ready


def test_model_downloads_reach_s3_from_every_subnet(smallest):
    template = smallest("network")
    routes = {"Ref": template.only_id("AWS::EC2::RouteTable")}
    vpc = {"Ref": template.only_id("AWS::EC2::VPC")}
    gateway = template.only("AWS::EC2::VPCEndpoint")
    assert gateway["VpcEndpointType"] == "Gateway"
    assert gateway["ServiceName"] == {
        "Fn::Join": ["", ["com.amazonaws.", {"Ref": "AWS::Region"}, ".s3"]]
    }
    assert gateway["RouteTableIds"] == [routes]
    assert gateway["VpcId"] == template.only("AWS::EC2::RouteTable")["VpcId"] == vpc
    associations = template.of_type("AWS::EC2::SubnetRouteTableAssociation").values()
    assert all(association["RouteTableId"] == routes for association in associations)
    assert {association["SubnetId"]["Ref"] for association in associations} == set(
        template.of_type("AWS::EC2::Subnet")
    )


def test_models_let_nothing_in_and_only_https_out(stack, parts, template_of):
    network = parts.network(stack)
    template = template_of(stack)
    group = template.only("AWS::EC2::SecurityGroup")
    assert "SecurityGroupIngress" not in group
    assert not template.of_type("AWS::EC2::SecurityGroupIngress")
    (egress,) = group["SecurityGroupEgress"]
    assert (egress["IpProtocol"], egress["FromPort"], egress["ToPort"]) == ("tcp", 443, 443)
    assert stack.resolve(network.model_security_group.security_group_id) == {
        "Fn::GetAtt": [template.only_id("AWS::EC2::SecurityGroup"), "GroupId"]
    }


@pytest.mark.parametrize("order", list(permutations(ZONES)))
def test_the_order_of_the_zones_moves_nothing(new_stack, parts, template_of, order):
    stacks = [new_stack(), new_stack()]
    for stack, zones in zip(stacks, (ZONES, order), strict=True):
        parts.network(stack, client_zones=ClientZones.of_ids(*zones))
    assert template_of(stacks[0]) == template_of(stacks[1])


@pytest.mark.parametrize(
    "zones", [ZONES[:2], ZONES[1:], (*ZONES, "use1-az6"), ("use1-az5", *ZONES, "use1-az3")]
)
def test_another_set_of_zones_leaves_the_kept_ones_alone(new_stack, parts, template_of, zones):
    stacks = [new_stack(), new_stack()]
    for stack, chosen in zip(stacks, (ZONES, zones), strict=True):
        parts.network(stack, client_zones=ClientZones.of_ids(*chosen))
    before, after = (template_of(stack) for stack in stacks)
    kept = set(ZONES) & set(zones)
    assert kept
    for zone in kept:
        assert subnets_by_zone(before)[zone] == subnets_by_zone(after)[zone]
    # CloudFormation replaces what changes its logical ID or its block: nothing else may move.
    for logical_id, resource in before["Resources"].items():
        if resource["Type"] not in ("AWS::EC2::Subnet", "AWS::EC2::SubnetRouteTableAssociation"):
            assert after["Resources"][logical_id] == resource


def test_subnets_stand_inside_the_vpc_and_apart(stack, parts, template_of):
    parts.network(stack, cidr="10.20.0.0/18", client_zones=ClientZones.of_ids(*ZONES))
    template = template_of(stack)
    assert template.only("AWS::EC2::VPC")["CidrBlock"] == "10.20.0.0/18"
    blocks = [
        ipaddress.IPv4Network(subnet["CidrBlock"])
        for subnet in template.of_type("AWS::EC2::Subnet").values()
    ]
    vpc = ipaddress.IPv4Network("10.20.0.0/18")
    assert all(block.subnet_of(vpc) for block in blocks)
    assert not any(one.overlaps(other) for one in blocks for other in blocks if one is not other)


@pytest.mark.parametrize(
    ("max_instances", "prefix_length"),
    [
        # 4 x instances + 5 reserved + 1 interface endpoint + 16 spare, never smaller than /24
        (None, 24),
        (1, 24),
        (58, 24),
        (59, 23),
        (122, 23),
        (123, 22),
        (500, 21),
    ],
)
def test_subnets_hold_two_fleets(stack, parts, template_of, max_instances, prefix_length):
    parts.network(stack, max_instances=max_instances)
    for subnet in template_of(stack).of_type("AWS::EC2::Subnet").values():
        assert subnet["CidrBlock"].endswith(f"/{prefix_length}")
        if max_instances:
            addresses = ipaddress.IPv4Network(subnet["CidrBlock"]).num_addresses
            blue_and_green = 2 * max_instances * 2  # two addresses for each instance
            assert addresses - 5 >= blue_and_green


def test_a_stated_subnet_size_wins(stack, parts, template_of):
    """Over the roomy default; one that the fleet does not fit is refused (LLE113)."""
    parts.network(stack, max_instances=2, subnet_prefix_length=27)
    for subnet in template_of(stack).of_type("AWS::EC2::Subnet").values():
        assert subnet["CidrBlock"].endswith("/27")


def test_other_constructs_can_use_it(stack, parts, template_of):
    network = parts.network(stack, client_zones=ClientZones.of_ids("use1-az2", "use1-az1"))
    template = template_of(stack)
    by_zone = subnets_by_zone(template)
    for zone, subnet in zip(network.client_zones.zones, network.subnets, strict=True):
        assert stack.resolve(subnet.subnet_id) == {"Ref": by_zone[zone][0]}
        assert network.subnet_of(zone) is subnet
        # The zone's name, which callers and zonal DNS names need, is only known once it exists.
        assert stack.resolve(subnet.availability_zone) == {
            "Fn::GetAtt": [by_zone[zone][0], "AvailabilityZone"]
        }
    assert stack.resolve(network.vpc.vpc_id) == {"Ref": template.only_id("AWS::EC2::VPC")}
    assert not network.vpc.public_subnets


def test_zones_follow_the_region_only_where_it_is_known(new_stack, parts, template_of):
    stack = new_stack(region=None)
    parts.network(stack, client_zones=ClientZones.of_ids("euw1-az1", "use1-az2"))
    assert len(template_of(stack).of_type("AWS::EC2::Subnet")) == 2
