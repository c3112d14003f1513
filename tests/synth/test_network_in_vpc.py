"""A VPC that exists: made in the app, imported, or looked up; one subnet for each client zone."""

from __future__ import annotations

import pytest
from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import ClientZones, RuntimePrivateLink, ZoneAlignedNetwork
from tests.refusals import refused

from .conftest import Parts
from .looked_up_vpc import SECOND_RUN, looked_up

A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
ZONES = ClientZones.of_names(A, B)
ISOLATED = ["subnet-isolated-a", "subnet-isolated-b", "subnet-isolated-c"]


def imported(stack, zones=(A, B, C), **given):
    private = [f"subnet-private-{zone[-1]}" for zone in zones]
    stated = {"availability_zones": list(zones), "private_subnet_ids": private}
    return Parts().vpc(stack, **stated | given)


def subnet_ids(network):
    return [subnet.subnet_id for subnet in network.subnets]


def in_vpc(stack, vpc, client_zones=ZONES, **given):
    return ZoneAlignedNetwork.in_vpc(stack, "Network", vpc=vpc, client_zones=client_zones, **given)


def test_a_vpc_made_in_the_same_app(stack, template_of):
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=[A, B, C])
    network = in_vpc(stack, vpc, ClientZones.of_names(C, A))
    chosen = [stack.resolve(subnet_id)["Ref"] for subnet_id in subnet_ids(network)]
    template = template_of(stack)
    subnets = template.of_type("AWS::EC2::Subnet")
    assert [subnets[subnet]["AvailabilityZone"] for subnet in chosen] == [C, A]
    assert not any(subnets[subnet]["MapPublicIpOnLaunch"] for subnet in chosen)
    assert network.vpc is vpc
    group = template.of_type("AWS::EC2::SecurityGroup")
    assert [properties["VpcId"] for properties in group.values()] == [stack.resolve(vpc.vpc_id)]


def test_only_a_network_that_made_its_vpc_owns_it(stack, parts):
    assert parts.network(stack, "New").own_vpc
    assert not in_vpc(stack, imported(stack)).own_vpc


def test_it_makes_nothing_but_the_models_security_group(stack, template_of):
    in_vpc(stack, imported(stack))
    assert template_of(stack).types == {"AWS::EC2::SecurityGroup"}


def test_a_vpc_imported_by_attributes(stack):
    network = in_vpc(stack, imported(stack), ClientZones.of_names(C, A))
    assert subnet_ids(network) == ["subnet-private-c", "subnet-private-a"]


def test_isolated_subnets_are_preferred_to_private_ones(stack):
    vpc = imported(stack, isolated_subnet_ids=ISOLATED)
    assert subnet_ids(in_vpc(stack, vpc)) == ISOLATED[:2]


def test_a_selection_narrows_the_choice(stack):
    vpc = imported(stack, isolated_subnet_ids=ISOLATED)
    private = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
    network = in_vpc(stack, vpc, subnet_selection=private)
    assert subnet_ids(network) == ["subnet-private-a", "subnet-private-b"]


def test_one_subnet_of_several_in_a_zone(stack):
    vpc = imported(stack, private_subnet_ids=[f"subnet-{n}{z}" for n in "12" for z in "abc"])
    chosen = subnet_ids(in_vpc(stack, vpc))
    assert len(chosen) == 2
    assert {name[-1] for name in chosen} == {"a", "b"}


def test_a_zone_without_a_subnet_names_both_sides(stack):
    with refused("LLE151", B, where="Serving/Network"):
        in_vpc(stack, imported(stack, zones=(A, C)))


def test_never_a_public_subnet(stack):
    public = ["subnet-a", "subnet-b", "subnet-c"]
    vpc = imported(stack, private_subnet_ids=None, public_subnet_ids=public)
    with refused("LLE151", allowed="zones with a subnet that is not public: -"):
        in_vpc(stack, vpc)


def test_a_vpc_whose_zones_are_tokens_needs_a_mapping(new_stack):
    stack = new_stack(region=None)
    vpc = ec2.Vpc(stack, "Vpc")  # its zones are Fn::GetAZs, chosen when it is deployed
    with refused("LLE152"):
        in_vpc(stack, vpc)
    first, second = vpc.private_subnets
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Mapped", vpc=vpc, client_zones=ZONES, subnets={A: second, B: first}
    )
    assert network.subnets == [second, first]


def test_zone_ids_need_a_mapping(stack):
    vpc = imported(stack)
    zones = ClientZones.of_ids("use1-az1", "use1-az2")
    with refused("LLE152", "use1-az1"):
        in_vpc(stack, vpc, zones)
    one, two, _ = vpc.private_subnets
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Mapped", vpc=vpc, client_zones=zones, subnets={"use1-az2": one, "use1-az1": two}
    )
    assert subnet_ids(network) == ["subnet-private-b", "subnet-private-a"]


def test_subnets_known_by_id_only(stack):
    given = {
        zone: ec2.Subnet.from_subnet_id(stack, f"Subnet-{zone}", f"subnet-{zone[-1]}")
        for zone in (A, B)
    }
    network = in_vpc(stack, imported(stack), subnets=given)
    assert subnet_ids(network) == ["subnet-a", "subnet-b"]
    # No zone names, so no zonal DNS names, but everything else works.
    assert RuntimePrivateLink(stack, "Link", network=network).zonal_dns_names == {}


@pytest.mark.parametrize("given", [(A,), (A, B, C), (A, C), ()])
def test_a_mapping_names_exactly_the_client_zones(stack, given):
    by_zone = dict(zip((A, B, C), imported(stack).private_subnets, strict=True))
    with refused("LLE153", allowed=f"one for each of {A}, {B}"):
        in_vpc(stack, imported(stack, id="Again"), subnets={zone: by_zone[zone] for zone in given})


def test_a_mapping_may_not_swap_zones(stack):
    vpc = imported(stack)
    first, second, _ = vpc.private_subnets
    with refused("LLE153", got=f"for {A} a subnet in {B}"):
        in_vpc(stack, vpc, subnets={A: second, B: first})


def test_dns_of_a_vpc_in_the_app_is_known(stack):
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=[A, B], enable_dns_hostnames=False)
    assert not in_vpc(stack, vpc).dns_ready


def test_the_second_run_chooses_the_subnets_found(new_stack, template_of):
    stack = new_stack(context=SECOND_RUN)
    network = in_vpc(stack, looked_up(stack), ClientZones.of_names(C, A))
    RuntimePrivateLink(stack, "Link", network=network)
    assert subnet_ids(network) == ["subnet-private-c", "subnet-private-a"]
    link = template_of(stack).only("AWS::EC2::VPCEndpoint")
    assert link["SubnetIds"] == ["subnet-private-c", "subnet-private-a"]
    assert link["VpcId"] == "vpc-0fedcba9876543210"


def test_a_found_vpc_without_the_zone_is_refused(new_stack):
    stack = new_stack(context=SECOND_RUN)
    with refused("LLE151", "us-east-1f"):
        in_vpc(stack, looked_up(stack), ClientZones.of_names(A, "us-east-1f"))


def test_a_vpc_id_that_another_stack_exports(stack, template_of):
    vpc = imported(stack, vpc_id=Fn.import_value("shared-vpc"))
    RuntimePrivateLink(stack, "Link", network=in_vpc(stack, vpc))
    link = template_of(stack).only("AWS::EC2::VPCEndpoint")
    assert link["VpcId"] == {"Fn::ImportValue": "shared-vpc"}
