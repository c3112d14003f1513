"""Which subnets of a VPC a network takes, for zones by name and by ID, and the room in them for fleets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aws_cdk import App, CfnParameter, Environment, Fn, Stack
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import (
    ClientZones,
    DeploymentPolicy,
    InstanceCounts,
    RuntimePrivateLink,
    ZoneAlignedNetwork,
)
from low_latency_endpoint.errors import ConfigurationError
from tests.refusals import refused

from .conftest import ACKNOWLEDGED, Parts, warnings_after_synth, warnings_in
from .looked_up_vpc import SECOND_RUN, looked_up

A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
ZONES = ClientZones.of_names(A, B)


def in_vpc(stack, vpc, zones=ZONES, id="Network", **given):
    return ZoneAlignedNetwork.in_vpc(stack, id, vpc=vpc, client_zones=zones, **given)


def names_of(network):
    return [subnet.node.id for subnet in network.subnets]


# --- zones of a VPC --------------------------------------------------------------------------------
def test_the_zones_of_a_vpc_are_those_with_subnets_that_are_not_public(stack, parts):
    made = ec2.Vpc(stack, "Made", availability_zones=[B, A])
    assert ClientZones.of_vpc(made) == ClientZones.of_names(A, B)
    partly = parts.vpc(stack, public_subnet_ids=["subnet-1", "subnet-2"])
    assert ClientZones.of_vpc(partly).zones == (A, B)


def test_zones_that_are_tokens_are_to_be_named(new_stack):
    stack = new_stack(region=None)
    vpc = ec2.Vpc(stack, "Vpc")
    for zones in (
        lambda: ClientZones.of_vpc(vpc),
        lambda: ClientZones.of_names(*vpc.availability_zones),
    ):
        with pytest.raises(ConfigurationError) as raised:
            zones()
        assert raised.value.code in ("LLE102", "LLE152")
        assert "token" in raised.value.got
        assert "${Token" not in str(raised.value)
        assert 'ClientZones.of_names("us-east-1a"' in raised.value.fix


def test_zones_of_subnets_that_nobody_stated_are_to_be_named(stack, parts):
    """As for a VPC that is taken from another tool's state."""
    vpc = parts.vpc(stack, availability_zones=Fn.get_azs())
    with refused("LLE152"):
        ClientZones.of_vpc(vpc)


OF_VPC = pytest.mark.parametrize(
    "zones",
    [
        pytest.param(ClientZones.of_vpc, id="of_vpc"),
        pytest.param(
            lambda vpc: ClientZones.of_names(*vpc.availability_zones), id="availability_zones"
        ),
    ],
)


def missing_of(stack):
    manifest = json.loads((Path(App.of(stack).synth().directory) / "manifest.json").read_text())
    return [missing["provider"] for missing in manifest["missing"]]


@OF_VPC
def test_the_first_run_with_a_lookup_lets_the_cli_look_up(new_stack, parts, zones):
    stack = new_stack()
    vpc = looked_up(stack)
    made = parts.pattern_in(stack, vpc, client_zones=zones(vpc))
    assert made.network.client_zones.zones == ("dummy1a", "dummy1b")
    made.output_settings_for_callers()
    assert missing_of(stack) == ["vpc-provider"]


@OF_VPC
def test_the_second_run_has_the_zones_found(new_stack, parts, zones):
    stack = new_stack(context=SECOND_RUN)
    vpc = looked_up(stack)
    made = parts.pattern_in(stack, vpc, client_zones=zones(vpc))
    assert made.network.client_zones.zones == (A, B, C)
    assert names_of(made.network) == ["PrivateSubnet1", "PrivateSubnet2", "PrivateSubnet3"]


@OF_VPC
@pytest.mark.parametrize("count", [2, 3])
def test_the_first_run_of_a_new_vpc_lets_the_cli_look_up_its_zones(new_stack, parts, zones, count):
    stack = new_stack()
    vpc = ec2.Vpc(stack, "Vpc", max_azs=count)
    made = parts.pattern_in(stack, vpc, client_zones=zones(vpc))
    assert made.network.client_zones.zones == ("dummy1a", "dummy1b", "dummy1c")[:count]
    assert missing_of(stack) == ["availability-zones"]


def test_one_zone_is_one_zone_in_the_first_run_too(stack):
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    with refused("LLE103"):
        ClientZones.of_vpc(vpc)


def test_a_new_network_takes_the_zones_of_the_stack(new_stack, parts):
    stack = new_stack()
    zones = ClientZones.of_names(*stack.availability_zones)
    made = ZoneAlignedNetwork(stack, "Network", client_zones=zones)
    RuntimePrivateLink(stack, "Link", network=made)
    parts.model(stack, network=made)
    assert len(made.subnets) == 3
    assert missing_of(stack) == ["availability-zones"]


def test_a_vpc_that_has_no_subnet_is_refused_while_zones_are_looked_up(new_stack, parts):
    stack = new_stack()
    vpc = parts.vpc(stack, private_subnet_ids=None)
    with refused("LLE151", "dummy1a"):
        in_vpc(stack, vpc, ClientZones.of_names(*stack.availability_zones))


def test_zones_are_told_that_a_selection_has(stack, parts):
    public = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC)
    vpc = parts.vpc(stack, private_subnet_ids=None, public_subnet_ids=["subnet-1", "subnet-2"])
    with refused("LLE151", allowed=f"zones with a subnet that subnet_selection selects: {A}, {B}"):
        in_vpc(stack, vpc, ClientZones.of_names(A, C), subnet_selection=public)


@pytest.mark.parametrize(
    "given",
    [
        lambda vpc: {"subnet_selection": ec2.SubnetSelection(subnet_group_name="app")},
        lambda vpc: {"subnets": {}},
        lambda vpc: {"subnets": dict(zip((A, B, C), vpc.private_subnets, strict=False))},
    ],
    ids=["a group whose name is not known yet", "no subnets yet", "two of three subnets"],
)
def test_what_the_lookup_will_bring_is_not_missed_before(new_stack, given):
    stack = new_stack()
    vpc = looked_up(stack)
    network = in_vpc(stack, vpc, ClientZones.of_names(A, B, C), **given(vpc))
    assert len(network.subnets) == 3
    assert missing_of(stack) == ["vpc-provider"]


def test_a_pending_choice_is_not_ambiguous(new_stack, parts):
    """CDK's stand-in has isolated subnets and others."""
    stack = new_stack()
    parts.pattern_in(stack, looked_up(stack), client_zones=ZONES)
    assert not warnings_in(stack, "ambiguousSubnets")


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
    return warnings_after_synth(stack, f"low-latency-endpoint:{id}")


def imported(stack, **given):
    stated = {"private_subnet_ids": ["subnet-a", "subnet-b", "subnet-c"]}
    return Parts().vpc(stack, availability_zones=[A, B, C], **stated | given)


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


@ACKNOWLEDGED
@pytest.mark.parametrize("id", ["ambiguousSubnets", "noWayToS3"])
def test_both_warnings_can_be_acknowledged(new_stack, parts, id, acknowledge):
    left = []
    for acknowledged in (False, True):
        stack = new_stack()
        made = parts.pattern_in(stack, tiered(stack))
        if acknowledged:
            acknowledge(made, f"low-latency-endpoint:{id}")
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


@pytest.fixture
def endpoint(stack, parts):
    """An endpoint in a network, with this initial count of instances."""

    def make(network, id="One", count=2, **given):
        model = parts.model(stack, f"{id}Model", network=network)
        variant = parts.variant(stack, model=model, initial_instance_count=count)
        configuration = parts.configuration(stack, f"{id}Configuration", variants=[variant])
        return parts.endpoint(stack, id, configuration=configuration, **given)

    return make


def own_vpc(stack, mask, id="Vpc"):
    return ec2.Vpc(
        stack,
        id,
        availability_zones=[A, B],
        subnet_configuration=[
            ec2.SubnetConfiguration(
                name="isolated", subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=mask
            )
        ],
    )


def no_room(make):
    with pytest.raises(ConfigurationError, match="LLE157") as raised:
        make()
    return raised.value


def test_a_fleet_for_which_the_network_was_made(stack, parts, endpoint):
    network = parts.network(stack, max_instances=100)
    endpoint(network).scale("primary", min_instances=2, max_instances=60)
    endpoint(network, "Two").scale("primary", min_instances=2, max_instances=40)


def test_the_second_endpoint_finds_no_room(stack, parts, endpoint):
    network = parts.network(stack)
    endpoint(network).scale("primary", min_instances=2, max_instances=50)
    second = endpoint(network, "Two", count=8)  # 58 fit
    error = no_room(lambda: second.scale("primary", min_instances=2, max_instances=9))
    assert error.where == "Serving/Two"
    assert "59 instances" in error.got


def test_instances_that_do_not_scale_take_room_too(stack, parts, endpoint):
    network = parts.network(stack)
    endpoint(network, count=50)
    no_room(lambda: endpoint(network, "Two", count=50))


def test_a_schedule_raises_the_maximum(stack, parts, endpoint):
    scaling = endpoint(parts.network(stack)).scale("primary", min_instances=2, max_instances=50)
    rush = {"schedule": appscaling.Schedule.cron(hour="8")}
    scaling.on_schedule("more", **rush, max_instances=58)
    scaling.on_schedule("less", **rush, max_instances=10)
    no_room(lambda: scaling.on_schedule("most", **rush, max_instances=59))


def test_a_rolling_update_needs_room_for_one_batch_only(stack, parts, endpoint):
    rolling = DeploymentPolicy.rolling(batch_percent=10)
    endpoint(parts.network(stack), count=100, deployment=rolling)  # 110 x 2 + 22 of 256


def test_what_is_a_token_is_not_known_yet(stack, parts, endpoint):
    network = parts.network(stack)
    given = CfnParameter(stack, "Most", type="Number").value_as_number
    endpoint(network).scale("primary", min_instances=2, max_instances=given)


def test_a_vpc_of_the_app(stack, endpoint):
    endpoint(in_vpc(stack, own_vpc(stack, 24)), count=50)
    assert not warnings_in(stack, "subnetRoom")


def test_more_than_the_existing_subnets_hold_between_them(stack, endpoint):
    network = in_vpc(stack, own_vpc(stack, 28))
    error = no_room(lambda: endpoint(network, count=6))
    assert "24 addresses" in error.got
    assert "20" in error.allowed  # twice sixteen, less five that AWS keeps and one


def test_what_fits_when_spread_evenly_is_a_warning(stack, endpoint):
    network = in_vpc(stack, own_vpc(stack, 28))
    endpoint(network, count=2)
    assert not warnings_in(stack, "subnetRoom")  # 8 of 10 in one subnet
    endpoint(network, "Two", count=2)
    endpoint(network, "Three", count=1)
    assert len(warnings_in(stack, "subnetRoom")) == 1


def test_two_networks_in_the_same_subnets_share_the_room(stack, endpoint):
    vpc = own_vpc(stack, 28)
    endpoint(in_vpc(stack, vpc), count=3)
    again = in_vpc(stack, vpc, id="Again")
    no_room(lambda: endpoint(again, "Two", count=3))


def test_other_subnets_have_their_own_room(stack, endpoint):
    endpoint(in_vpc(stack, own_vpc(stack, 28)), count=3)
    endpoint(in_vpc(stack, own_vpc(stack, 28, "Other"), id="Again"), "Two", count=3)


def test_a_vpc_imported_with_its_blocks(stack, parts, endpoint):
    blocks = ["10.0.0.0/28", "10.0.0.16/28"]
    network = in_vpc(stack, parts.vpc(stack, private_subnet_ipv4_cidr_blocks=blocks))
    no_room(lambda: endpoint(network, count=50))


def test_subnets_without_a_known_block_take_any_fleet(stack, parts, endpoint):
    endpoint(parts.network_in(stack), count=5000)


def test_a_lookup_that_is_pending_takes_any_fleet(new_stack, parts):
    stack = new_stack(app=App())
    vpc = ec2.Vpc.from_lookup(stack, "Vpc", vpc_id="vpc-0123456789abcdef0")
    model = parts.model(stack, network=in_vpc(stack, vpc))
    parts.endpoint(stack, variants=[parts.variant(stack, model=model, initial_instance_count=5000)])


def test_the_pattern_makes_a_network_for_those_that_will_share_it(stack, parts, template_of):
    def make(id, **given):
        return parts.pattern(stack, id, instances=InstanceCounts(max=50, initial=50), **given)

    first = make("First", client_zones=ZONES, network_max_instances=100)
    assert isinstance(first.private_link, RuntimePrivateLink)
    make("Second", network=first.network, private_link=first.private_link)
    blocks = [
        subnet["CidrBlock"] for subnet in template_of(stack).of_type("AWS::EC2::Subnet").values()
    ]
    assert all(block.endswith("/23") for block in blocks)
