"""Client zones taken from a VPC, also in the first run of an app, which knows no zones yet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aws_cdk import App, Fn
from aws_cdk import aws_ec2 as ec2

from low_latency_endpoint import ClientZones, RuntimePrivateLink, ZoneAlignedNetwork
from low_latency_endpoint.errors import ConfigurationError
from tests.refusals import refused

from .conftest import warnings_in
from .looked_up_vpc import FIRST_RUN, SECOND_RUN, looked_up

A, B, C = "us-east-1a", "us-east-1b", "us-east-1c"
ZONES = ClientZones.of_names(A, B)


def in_vpc(stack, vpc, zones, **given):
    return ZoneAlignedNetwork.in_vpc(stack, "Network", vpc=vpc, client_zones=zones, **given)


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
    stack = new_stack(context=FIRST_RUN)
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
    stack = new_stack(context=FIRST_RUN)
    vpc = ec2.Vpc(stack, "Vpc", max_azs=count)
    made = parts.pattern_in(stack, vpc, client_zones=zones(vpc))
    assert made.network.client_zones.zones == ("dummy1a", "dummy1b", "dummy1c")[:count]
    assert missing_of(stack) == ["availability-zones"]


def test_one_zone_is_one_zone_in_the_first_run_too(stack):
    vpc = ec2.Vpc(stack, "Vpc", max_azs=1)
    with refused("LLE103"):
        ClientZones.of_vpc(vpc)


def test_a_new_network_takes_the_zones_of_the_stack(new_stack, parts):
    stack = new_stack(context=FIRST_RUN)
    zones = ClientZones.of_names(*stack.availability_zones)
    made = ZoneAlignedNetwork(stack, "Network", client_zones=zones)
    RuntimePrivateLink(stack, "Link", network=made)
    parts.model(stack, network=made)
    assert len(made.subnets) == 3
    assert missing_of(stack) == ["availability-zones"]


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
    stack = new_stack(context=FIRST_RUN)
    vpc = looked_up(stack)
    network = in_vpc(stack, vpc, ClientZones.of_names(A, B, C), **given(vpc))
    assert len(network.subnets) == 3
    assert missing_of(stack) == ["vpc-provider"]


def test_a_pending_choice_is_not_ambiguous(new_stack, parts):
    """CDK's stand-in has isolated subnets and others."""
    stack = new_stack(context=FIRST_RUN)
    parts.pattern_in(stack, looked_up(stack), client_zones=ZONES)
    assert not warnings_in(stack, "ambiguousSubnets")
