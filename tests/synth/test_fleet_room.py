"""The fleets of all endpoints fit the subnets that they share, where the blocks are known."""

from __future__ import annotations

import pytest
from aws_cdk import App, CfnParameter
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

from .conftest import warnings_in

A, B = "us-east-1a", "us-east-1b"
ZONES = ClientZones.of_names(A, B)


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


def in_vpc(stack, vpc, id="Network", **given):
    return ZoneAlignedNetwork.in_vpc(stack, id, vpc=vpc, client_zones=ZONES, **given)


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
    again = in_vpc(stack, vpc, "Again")
    no_room(lambda: endpoint(again, "Two", count=3))


def test_other_subnets_have_their_own_room(stack, endpoint):
    endpoint(in_vpc(stack, own_vpc(stack, 28)), count=3)
    endpoint(in_vpc(stack, own_vpc(stack, 28, "Other"), "Again"), "Two", count=3)


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
