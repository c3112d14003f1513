"""Which of a VPC's subnets are meant, and whether S3 can be reached from them: said where unclear."""

from __future__ import annotations

import pytest
from aws_cdk import Acknowledgment, App, Environment, Stack, Validations
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Annotations, Match

from low_latency_endpoint import ClientZones, ZoneAlignedNetwork

from .conftest import Parts

A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
ZONES = ClientZones.of_names(A, B)
TIERS = [
    ec2.SubnetConfiguration(name="pub", subnet_type=ec2.SubnetType.PUBLIC),
    ec2.SubnetConfiguration(name="db", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED),
    ec2.SubnetConfiguration(name="app", subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
]
DATABASES = ec2.SubnetSelection(subnet_group_name="db")
SERVERS = ec2.SubnetSelection(subnet_group_name="app")


def tiered(stack, tiers=TIERS, **given):
    return ec2.Vpc(
        stack, "Vpc", availability_zones=[A, B], subnet_configuration=list(tiers), **given
    )


def warnings_of(stack, id):
    """Those that the CDK CLI finds in the assembly."""
    found = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp(f".*low-latency-endpoint:{id}.*")
    )
    return [str(message.entry.data) for message in found]


def names_of(network):
    return [subnet.node.id for subnet in network.subnets]


def imported(stack, **given):
    stated = {"private_subnet_ids": ["subnet-a", "subnet-b", "subnet-c"]}
    return Parts().vpc(stack, availability_zones=[A, B, C], **stated | given)


def in_vpc(stack, vpc, **given):
    return ZoneAlignedNetwork.in_vpc(stack, "Network", vpc=vpc, client_zones=ZONES, **given)


@pytest.mark.parametrize("taken", ["db", "app"])
def test_the_pattern_takes_a_selection(stack, parts, template_of, taken):
    vpc = tiered(stack)
    selection = ec2.SubnetSelection(subnet_group_name=taken)
    made = parts.pattern_in(stack, vpc, subnet_selection=selection)
    assert names_of(made.network) == [f"{taken}Subnet1", f"{taken}Subnet2"]
    assert not warnings_of(stack, "ambiguousSubnets")
    ids = [stack.resolve(subnet.subnet_id) for subnet in made.network.subnets]
    template = template_of(stack)
    assert template.only("AWS::EC2::VPCEndpoint")["SubnetIds"] == ids
    assert template.only("AWS::SageMaker::Model")["VpcConfig"]["Subnets"] == ids


def test_a_choice_among_groups_is_said(stack):
    network = in_vpc(stack, tiered(stack))
    assert names_of(network) == ["dbSubnet1", "dbSubnet2"]
    (warning,) = warnings_of(stack, "ambiguousSubnets")
    for said in (A, B, "db (isolated)", "app (with a way out)", "Those of db were taken"):
        assert said in warning
    assert 'subnet_selection=ec2.SubnetSelection(subnet_group_name="app")' in warning


def test_a_choice_among_groups_of_one_type_is_said(stack):
    first, second = (
        ec2.SubnetConfiguration(name=name, subnet_type=ec2.SubnetType.PRIVATE_ISOLATED)
        for name in ("data", "models")
    )
    in_vpc(stack, tiered(stack, [first, second]))
    (warning,) = warnings_of(stack, "ambiguousSubnets")
    assert "data (isolated), models (isolated)" in warning
    assert 'subnet_group_name="models"' in warning


def test_a_choice_among_subnets_of_one_group_is_said(stack):
    vpc = imported(stack, private_subnet_ids=[f"subnet-{n}{z}" for n in "12" for z in "abc"])
    in_vpc(stack, vpc)
    (warning,) = warnings_of(stack, "ambiguousSubnets")
    assert "subnets={zone: subnet}" in warning
    assert "subnet_selection=" not in warning


@pytest.mark.parametrize(
    "stated",
    [
        lambda vpc: {"subnet_selection": DATABASES},
        lambda vpc: {"subnets": dict(zip((A, B), vpc.isolated_subnets, strict=True))},
    ],
)
def test_what_is_stated_is_not_ambiguous(stack, stated):
    vpc = tiered(stack)
    assert names_of(in_vpc(stack, vpc, **stated(vpc))) == ["dbSubnet1", "dbSubnet2"]
    assert not warnings_of(stack, "ambiguousSubnets")


def test_one_subnet_in_each_client_zone_is_not_ambiguous(stack):
    in_vpc(stack, imported(stack))
    assert not warnings_of(stack, "ambiguousSubnets")


@pytest.mark.parametrize("id", ["ambiguousSubnets", "noWayToS3"])
def test_both_warnings_can_be_acknowledged(new_stack, parts, id):
    left = []
    for acknowledged in (False, True):
        stack = new_stack()
        made = parts.pattern_in(stack, tiered(stack))
        if acknowledged:
            Validations.of(made).acknowledge(
                Acknowledgment(id=f"Annotation::low-latency-endpoint:{id}", reason="It is known.")
            )
        left.append(len(warnings_of(stack, id)))
    assert left == [1, 0]


# --- the way to S3 ---------------------------------------------------------------------------------
def gateway(stack, vpc, **given):
    vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3, **given)


def gateway_of_another_stack(stack, vpc):
    elsewhere = Stack(App.of(stack), "Elsewhere", env=stack_environment(stack))
    ec2.GatewayVpcEndpoint(
        elsewhere, "S3", vpc=vpc, service=ec2.GatewayVpcEndpointAwsService.S3, subnets=[DATABASES]
    )


def stack_environment(stack):
    return Environment(account=stack.account, region=stack.region)


def route(stack, vpc, **given):
    for index, subnet in enumerate(vpc.isolated_subnets):
        ec2.CfnRoute(
            stack, f"Out{index}", route_table_id=subnet.route_table.route_table_id, **given
        )


WAYS = {
    "a gateway endpoint that comes later": gateway,
    "one that another stack makes": gateway_of_another_stack,
    "an interface endpoint": lambda stack, vpc: vpc.add_interface_endpoint(
        "S3", service=ec2.InterfaceVpcEndpointAwsService.S3
    ),
    "a transit gateway": lambda stack, vpc: route(
        stack, vpc, destination_cidr_block="0.0.0.0/0", transit_gateway_id="tgw-1"
    ),
}
NO_WAYS = {
    "nothing": lambda stack, vpc: None,
    "an endpoint for other subnets": lambda stack, vpc: gateway(stack, vpc, subnets=[SERVERS]),
    "an endpoint of DynamoDB": lambda stack, vpc: vpc.add_gateway_endpoint(
        "Tables", service=ec2.GatewayVpcEndpointAwsService.DYNAMODB
    ),
    "a route to the office": lambda stack, vpc: route(
        stack, vpc, destination_cidr_block="10.9.0.0/16", transit_gateway_id="tgw-1"
    ),
    "an endpoint of another VPC": lambda stack, vpc: gateway(
        stack, ec2.Vpc(stack, "Other", availability_zones=[A, B], nat_gateways=1)
    ),
}


@pytest.mark.parametrize(
    ("later", "warned"),
    [pytest.param(later, False, id=name) for name, later in WAYS.items()]
    + [pytest.param(later, True, id=name) for name, later in NO_WAYS.items()],
)
def test_data_in_s3_needs_a_way_there(stack, parts, later, warned):
    vpc = tiered(stack)
    network = in_vpc(stack, vpc, subnet_selection=DATABASES)
    parts.model(stack, network=network)
    later(stack, vpc)
    found = warnings_of(stack, "noWayToS3")
    assert len(found) == warned
    if warned:
        assert "Serving/Vpc/dbSubnet1" in found[0]
        assert "network_isolation" in found[0]


def test_a_nat_gateway_is_a_way(stack, parts):
    parts.model(stack, network=in_vpc(stack, tiered(stack), subnet_selection=SERVERS))
    assert not warnings_of(stack, "noWayToS3")


def test_without_a_nat_gateway_subnets_with_a_way_out_have_none(stack, parts):
    vpc = tiered(stack, nat_gateways=0)
    parts.model(stack, network=in_vpc(stack, vpc, subnet_selection=SERVERS))
    assert len(warnings_of(stack, "noWayToS3")) == 1


def test_without_data_in_s3_no_way_is_needed(stack, parts):
    network = in_vpc(stack, tiered(stack), subnet_selection=DATABASES)
    parts.model(stack, network=network, containers=[parts.container(data=None)])
    assert not warnings_of(stack, "noWayToS3")


def test_what_a_container_reads_by_itself_needs_one(stack, parts):
    network = in_vpc(stack, tiered(stack), subnet_selection=DATABASES)
    container = parts.container(data=None, environment={"OPTION_MODEL_ID": "s3://models/llama/"})
    parts.model(stack, network=network, containers=[container])
    assert len(warnings_of(stack, "noWayToS3")) == 1


def test_nothing_is_said_of_routes_that_are_not_the_apps(stack, parts):
    vpc = imported(stack, isolated_subnet_ids=["subnet-a", "subnet-b", "subnet-c"])
    parts.model(stack, network=in_vpc(stack, vpc))
    assert not warnings_of(stack, "noWayToS3")
