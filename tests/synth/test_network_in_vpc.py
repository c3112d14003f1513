"""A VPC that exists: made in the app, imported, or looked up; one subnet for each client zone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aws_cdk import App, Fn
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import ClientZones, RuntimePrivateLink, ZoneAlignedNetwork
from low_latency_endpoint.errors import ConfigurationError

A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
ZONES = ClientZones.of_names(A, B)


def imported(stack, *, id="Imported", vpc_id="vpc-0123456789abcdef0", zones=(A, B, C), **subnets):
    if not subnets:
        subnets = {"private_subnet_ids": [f"subnet-private-{zone[-1]}" for zone in zones]}
    return ec2.Vpc.from_vpc_attributes(
        stack, id, vpc_id=vpc_id, availability_zones=list(zones), **subnets
    )


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
    vpc = imported(
        stack,
        private_subnet_ids=["subnet-private-a", "subnet-private-b", "subnet-private-c"],
        isolated_subnet_ids=["subnet-isolated-a", "subnet-isolated-b", "subnet-isolated-c"],
    )
    assert subnet_ids(in_vpc(stack, vpc)) == ["subnet-isolated-a", "subnet-isolated-b"]


def test_a_selection_narrows_the_choice(stack):
    vpc = imported(
        stack,
        private_subnet_ids=["subnet-private-a", "subnet-private-b", "subnet-private-c"],
        isolated_subnet_ids=["subnet-isolated-a", "subnet-isolated-b", "subnet-isolated-c"],
    )
    private = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
    network = in_vpc(stack, vpc, subnet_selection=private)
    assert subnet_ids(network) == ["subnet-private-a", "subnet-private-b"]


def test_one_subnet_of_several_in_a_zone(stack):
    vpc = imported(stack, private_subnet_ids=[f"subnet-{n}{z}" for n in "12" for z in "abc"])
    chosen = subnet_ids(in_vpc(stack, vpc))
    assert len(chosen) == 2
    assert {name[-1] for name in chosen} == {"a", "b"}


def test_a_zone_without_a_subnet_names_both_sides(stack):
    vpc = imported(stack, zones=(A, C))
    with pytest.raises(ConfigurationError) as raised:
        in_vpc(stack, vpc)
    assert raised.value.code == "LLE151"
    assert B in raised.value.got
    assert raised.value.got.endswith(B)
    assert A in raised.value.allowed
    assert C in raised.value.allowed
    assert raised.value.where == "Serving/Network"


def test_never_a_public_subnet(stack):
    vpc = imported(stack, public_subnet_ids=["subnet-pub-a", "subnet-pub-b", "subnet-pub-c"])
    with pytest.raises(ConfigurationError) as raised:
        in_vpc(stack, vpc)
    assert raised.value.code == "LLE151"
    assert raised.value.allowed == "zones with a subnet that is not public: -"


def test_a_vpc_whose_zones_are_tokens_needs_a_mapping(new_stack):
    stack = new_stack(region=None)
    vpc = ec2.Vpc(stack, "Vpc")  # its zones are Fn::GetAZs, chosen when it is deployed
    with pytest.raises(ConfigurationError) as raised:
        in_vpc(stack, vpc)
    assert raised.value.code == "LLE152"
    first, second = vpc.private_subnets
    network = ZoneAlignedNetwork.in_vpc(
        stack, "Mapped", vpc=vpc, client_zones=ZONES, subnets={A: second, B: first}
    )
    assert network.subnets == [second, first]


def test_zone_ids_need_a_mapping(stack):
    vpc = imported(stack)
    zones = ClientZones.of_ids("use1-az1", "use1-az2")
    with pytest.raises(ConfigurationError) as raised:
        in_vpc(stack, vpc, zones)
    assert raised.value.code == "LLE152"
    assert "use1-az1" in raised.value.got
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
    with pytest.raises(ConfigurationError) as raised:
        in_vpc(stack, imported(stack, id="Again"), subnets={zone: by_zone[zone] for zone in given})
    assert raised.value.code == "LLE153"
    assert raised.value.allowed == f"one for each of {A}, {B}"


def test_a_mapping_may_not_swap_zones(stack):
    vpc = imported(stack)
    first, second, _ = vpc.private_subnets
    with pytest.raises(ConfigurationError) as raised:
        in_vpc(stack, vpc, subnets={A: second, B: first})
    assert raised.value.code == "LLE153"
    assert raised.value.got == f"for {A} a subnet in {B}"


def test_dns_of_a_vpc_in_the_app_is_known(stack):
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=[A, B], enable_dns_hostnames=False)
    assert not in_vpc(stack, vpc).dns_ready


LOOKUP = (
    "vpc-provider:account=123456789012:filter.vpc-id=vpc-0fedcba9876543210:region=us-east-1:"
    "returnAsymmetricSubnets=true"
)


def looked_up(stack):
    return ec2.Vpc.from_lookup(stack, "Found", vpc_id="vpc-0fedcba9876543210")


def found_vpc():
    def subnets(kind):
        return [
            {
                "subnetId": f"subnet-{kind}-{zone[-1]}",
                "cidr": f"10.0.{place}.0/24",
                "availabilityZone": zone,
                "routeTableId": f"rtb-{kind}",
            }
            for place, zone in enumerate((A, B, C))
        ]

    return {
        "vpcId": "vpc-0fedcba9876543210",
        "vpcCidrBlock": "10.0.0.0/16",
        "ownerAccountId": "123456789012",
        "availabilityZones": [],
        "subnetGroups": [
            {"name": "Public", "type": "Public", "subnets": subnets("public")},
            {"name": "Private", "type": "Private", "subnets": subnets("private")},
        ],
    }


def test_the_first_run_of_a_lookup_says_what_to_look_up(new_stack):
    # The CLI sets this, and validates once nothing is missing: CDK's stand-in is no valid VPC ID.
    stack = new_stack(context={"@aws-cdk/core:failSynthOnValidationErrors": False})
    network = in_vpc(stack, looked_up(stack), ClientZones.of_names(A, B, C))
    RuntimePrivateLink(stack, "Link", network=network)
    assert len(network.subnets) == 3
    manifest = json.loads((Path(App.of(stack).synth().directory) / "manifest.json").read_text())
    assert [missing["key"] for missing in manifest["missing"]] == [LOOKUP]


def test_the_second_run_chooses_the_subnets_found(new_stack, template_of):
    stack = new_stack(context={LOOKUP: found_vpc()})
    network = in_vpc(stack, looked_up(stack), ClientZones.of_names(C, A))
    RuntimePrivateLink(stack, "Link", network=network)
    assert subnet_ids(network) == ["subnet-private-c", "subnet-private-a"]
    link = template_of(stack).only("AWS::EC2::VPCEndpoint")
    assert link["SubnetIds"] == ["subnet-private-c", "subnet-private-a"]
    assert link["VpcId"] == "vpc-0fedcba9876543210"


def test_a_found_vpc_without_the_zone_is_refused(new_stack):
    stack = new_stack(context={LOOKUP: found_vpc()})
    with pytest.raises(ConfigurationError) as raised:
        in_vpc(stack, looked_up(stack), ClientZones.of_names(A, "us-east-1f"))
    assert raised.value.code == "LLE151"
    assert "us-east-1f" in raised.value.got


def test_a_vpc_id_that_another_stack_exports(stack, template_of):
    vpc = imported(stack, vpc_id=Fn.import_value("shared-vpc"))
    RuntimePrivateLink(stack, "Link", network=in_vpc(stack, vpc))
    link = template_of(stack).only("AWS::EC2::VPCEndpoint")
    assert link["VpcId"] == {"Fn::ImportValue": "shared-vpc"}
