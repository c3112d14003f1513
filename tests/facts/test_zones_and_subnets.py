"""Zones, subnet size, and blocks that stay where they are."""

from __future__ import annotations

import binascii
import ipaddress
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from low_latency_endpoint.facts.subnets import (
    addresses_per_subnet,
    check_fleet_fits,
    check_fleets_fit,
    check_fleets_fit_existing,
    network_blocks,
    plan_subnets,
    roomy_prefix_length,
    subnet_prefix_length,
    vpc_block,
)
from low_latency_endpoint.facts.zones import (
    check_zones_in_region,
    region_of_zone,
    zone_id_prefixes,
    zone_ordinal,
)
from tests.refusals import refused


@pytest.mark.parametrize(
    ("zone", "ordinal", "region"),
    [
        ("use1-az4", 3, "us-east-1"),
        ("us-east-1c", 2, "us-east-1"),
        ("apne1-az10", 9, "ap-northeast-1"),
        ("usgw1-az1", 0, "us-gov-west-1"),
        ("us-gov-west-1b", 1, "us-gov-west-1"),
        ("us-east-1-bos-1a", None, "us-east-1"),
        ("use1-bos1-az1", None, "us-east-1"),
        ("zzz9-az2", 1, None),
        ("zz-new-9a", 0, "zz-new-9"),
        ("use1-az0", None, "us-east-1"),
        ("us-east-1", None, None),
        ("", None, None),
        ("${Token[AWS.AvailabilityZone.3]}", None, None),
    ],
)
def test_place_and_region(zone: str, ordinal: int | None, region: str | None) -> None:
    assert zone_ordinal(zone) == ordinal
    assert region_of_zone(zone) == region


def test_prefixes_are_those_of_their_regions() -> None:
    # AWS builds the prefix from the Region's name: first part, first letters of the next, number
    for prefix, region in zone_id_prefixes().items():
        area, *_, number = region.split("-")
        assert prefix.startswith(area)
        assert prefix.endswith(number)
    assert len(set(zone_id_prefixes().values())) == len(zone_id_prefixes()) == 38


@pytest.mark.parametrize(
    ("region", "there", "not_there"),
    [
        ("us-east-1", ["use1-az1", "use1-az6", "us-east-1f"], ["use1-az7", "use1-az9", "use1-az0"]),
        ("us-east-1", ["use1-bos1-az1", "us-east-1-bos-1a"], ["us-east-1g", "us-east-1z"]),
        ("us-west-1", ["usw1-az1", "usw1-az2", "usw1-az3", "us-west-1c"], ["usw1-az4"]),
        ("ap-northeast-1", ["apne1-az4"], ["apne1-az5"]),
        ("cn-north-1", ["cnn1-az4", "cn-north-1e"], ["cnn1-az10"]),
        ("zz-new-9", ["zzz9-az9", "zz-new-9a"], []),
    ],
)
def test_zones_that_a_region_has(region: str, there: list[str], not_there: list[str]) -> None:
    """docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html"""
    check_zones_in_region(there, region)
    for zone in not_there:
        with refused("LLE110"):
            check_zones_in_region([zone], region)


def test_zones_of_another_region() -> None:
    check_zones_in_region(["use1-az1", "us-east-1b", "new1-az1"], "us-east-1")
    with refused("LLE110"):
        check_zones_in_region(["use1-az1", "euw1-az1"], "us-east-1")
    with refused("LLE110"):
        check_zones_in_region(["eu-west-1a"], "us-east-1")


@pytest.mark.parametrize(
    ("instances", "addresses", "prefix_length"),
    [
        (1, 26, 27),  # 2 x 1 x 2 + 5 + 1 + 16
        (2, 30, 27),
        (3, 34, 26),
        (16, 86, 25),
        (26, 126, 25),
        (27, 130, 24),
        (100, 422, 23),
        (16378, 65534, 16),
    ],
)
def test_subnet_size(instances: int, addresses: int, prefix_length: int) -> None:
    assert addresses_per_subnet(instances) == addresses
    assert subnet_prefix_length(addresses) == prefix_length
    assert roomy_prefix_length(addresses) == min(prefix_length, 24)


def test_subnet_size_without_interface_endpoint() -> None:
    assert addresses_per_subnet(2, interface_endpoint=False) == 2 * 2 * 2 + 5 + 16


@pytest.mark.parametrize(
    ("addresses", "prefix_length"),
    [(1, 28), (16, 28), (17, 27), (32, 27), (33, 26), (256, 24), (257, 23), (65536, 16)],
)
def test_prefix_length_at_the_edges(addresses: int, prefix_length: int) -> None:
    assert subnet_prefix_length(addresses) == prefix_length


def test_fleets_that_no_subnet_holds() -> None:
    with refused("LLE113"):
        subnet_prefix_length(65537)


@pytest.mark.parametrize("instances", [0, -1, 2.5, float("inf"), float("nan"), "3", None, True])
def test_instances_that_are_no_number(instances: int) -> None:
    with refused("LLE106"):
        addresses_per_subnet(instances)


# Two addresses an instance; 5 + 1 + 16 in each subnet besides.


def test_the_largest_fleet_in_a_subnet() -> None:
    check_fleet_fits(24, 58)  # 58 x 2 x 2 + 22 = 254 of 256
    with refused(
        "LLE113",
        got="59 instances, 258 addresses, in a /24 of 256",
        allowed="/23 or larger",
        where="Stack/Network",
    ):
        check_fleet_fits(24, 59, "Stack/Network")


def test_all_fleets_in_the_smallest_of_the_subnets() -> None:
    check_fleets_fit([24, 24], 60, 117)  # 117 x 2 + 22 = 256 of 256
    check_fleets_fit([24, 25], 30, 53)  # 128 of the /25's 128
    with refused(
        "LLE157",
        got="30 instances, 54 in updates, 130 addresses, in a /25 of 128",
        allowed="/24 or larger",
    ):
        check_fleets_fit([25, 24], 30, 54)


def test_all_fleets_in_existing_subnets() -> None:
    """A /28 has 16 - 5 - 1 = 10 addresses for instances."""
    assert check_fleets_fit_existing([28, 28], 3, 5) == ""  # all may be in one of them
    assert check_fleets_fit_existing([28, 24], 3, 6).startswith("the subnets (/28, /24) have room")
    assert "only when SageMaker spreads them" in check_fleets_fit_existing([28, 28], 5, 10)
    with refused(
        "LLE157", got="6 instances, 11 in updates, 22 addresses, in subnets of /28, /28"
    ) as error:
        check_fleets_fit_existing([28, 28], 6, 11)
    assert error.value.allowed.startswith("at most 20 addresses")


def test_a_networks_subnets_hold_the_fleet_or_are_refused() -> None:
    zones = ["use1-az1", "use1-az2"]
    assert network_blocks("10.0.0.0/16", zones, 59, 23) == network_blocks("10.0.0.0/16", zones, 59)
    assert network_blocks("10.0.0.0/16", zones, 2, 26)["use1-az2"] == "10.0.0.64/26"
    with refused("LLE113"):
        network_blocks("10.0.0.0/16", zones, 59, 24)


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ("10.0.0.0/255.255.0.0", "LLE111"),
        ("10.0.0.0", "LLE111"),
        (167772160, "LLE111"),
        ("10.0.0.0/15", "LLE104"),
        ("10.0.0.0/29", "LLE104"),
    ],
)
def test_blocks_that_no_vpc_has(block: str, code: str) -> None:
    with refused(code):
        vpc_block(block)
    assert [vpc_block(f"10.0.0.0/{length}").num_addresses for length in (16, 28)] == [65536, 16]


def test_blocks_follow_from_the_zones() -> None:
    assert plan_subnets("10.0.0.0/16", ["use1-az1", "use1-az2", "use1-az6"], 24) == {
        "use1-az1": "10.0.0.0/24",
        "use1-az2": "10.0.1.0/24",
        "use1-az6": "10.0.5.0/24",
    }
    assert plan_subnets("172.16.8.0/22", ["us-east-1d", "us-east-1a"], 24) == {
        "us-east-1d": "172.16.11.0/24",
        "us-east-1a": "172.16.8.0/24",
    }


def test_a_local_zones_block_is_in_the_upper_half_where_its_name_says() -> None:
    """A contract: another block would replace the subnet and what stands in it."""
    zones = ["use1-az1", "use1-bos1-az1"]
    place = 128 + binascii.crc32(b"use1-bos1-az1") % 128  # of 256 blocks
    assert plan_subnets("10.0.0.0/16", zones, 24) == {
        "use1-az1": "10.0.0.0/24",
        "use1-bos1-az1": f"10.0.{place}.0/24",
    }


def test_a_local_zone_whose_place_is_taken_takes_the_next() -> None:
    """Two blocks, and the upper one is use1-az2's."""
    zones = ["use1-bos1-az1", "use1-az2"]
    assert plan_subnets("10.0.0.0/16", zones, 17) == {
        "use1-bos1-az1": "10.0.0.0/17",
        "use1-az2": "10.0.128.0/17",
    }


def test_a_zone_past_the_end_takes_a_free_block() -> None:
    planned = plan_subnets("10.0.0.0/26", ["use1-az1", "use1-az6"], 27)
    assert planned == {"use1-az1": "10.0.0.0/27", "use1-az6": "10.0.0.32/27"}


@pytest.mark.parametrize(
    ("cidr", "zones", "prefix_length", "code"),
    [
        ("10.0.0.0/16", ["use1-az1"], 33, "LLE112"),
        ("10.0.0.1/16", ["use1-az1"], 24, "LLE111"),
        ("10.0.0.0/33", ["use1-az1"], 24, "LLE111"),
        ("fd00::/56", ["use1-az1"], 64, "LLE111"),
        ("office", ["use1-az1"], 24, "LLE111"),
        (None, ["use1-az1"], 24, "LLE111"),
        ("10.0.0.0/24", ["use1-az1", "use1-az2", "use1-az3"], 25, "LLE112"),
        ("10.0.0.0/24", ["use1-az1"], 23, "LLE112"),
        ("10.0.0.0/16", ["use1-az1", "use1-az1"], 24, "LLE107"),
    ],
)
def test_blocks_that_cannot_be(cidr: str, zones: list[str], prefix_length: int, code: str) -> None:
    with refused(code):
        plan_subnets(cidr, zones, prefix_length)


ids = st.integers(1, 8).map("use1-az{}".format)
local = st.sampled_from(["use1-bos1-az1", "use1-chi1-az1", "us-east-1-bos-1a", "${Token[A.1]}"])
zone_sets = st.sets(ids, min_size=1, max_size=8)
mixed_sets = st.sets(
    st.one_of(ids, st.sampled_from("abcdef").map("us-east-1{}".format), local),
    min_size=1,
    max_size=10,
)


@given(mixed_sets, st.integers(16, 26), st.integers(16, 28), st.randoms())
def test_blocks_are_disjoint_inside_the_vpc_and_deaf_to_order(zones, vpc_length, length, random):
    zones = sorted(zones)
    random.shuffle(zones)
    if length < vpc_length or len(zones) > 2 ** (length - vpc_length):
        with refused("LLE112"):
            plan_subnets(f"10.32.0.0/{vpc_length}", zones, length)
        return
    planned = plan_subnets(f"10.32.0.0/{vpc_length}", zones, length)
    assert list(planned) == zones
    blocks = sorted(ipaddress.IPv4Network(block) for block in planned.values())
    vpc = ipaddress.IPv4Network(f"10.32.0.0/{vpc_length}")
    assert all(block.prefixlen == length and block.subnet_of(vpc) for block in blocks)
    assert not any(a.overlaps(b) for a, b in pairwise(blocks))
    assert planned == plan_subnets(f"10.32.0.0/{vpc_length}", sorted(zones), length)


@given(zone_sets, zone_sets, st.integers(19, 28))
def test_adding_and_removing_zones_moves_no_block(zones, others, length):
    before = plan_subnets("10.0.0.0/16", sorted(zones), length)
    after = plan_subnets("10.0.0.0/16", sorted(others, reverse=True), length)
    assert {zone: before[zone] for zone in zones & others} == {
        zone: after[zone] for zone in zones & others
    }


@given(zone_sets, st.sampled_from(["use1-bos1-az1", "us-east-1-bos-1a"]))
def test_one_local_zone_stays_too(zones, zone):
    alone = plan_subnets("10.0.0.0/16", [zone], 24)[zone]
    assert plan_subnets("10.0.0.0/16", [*sorted(zones), zone], 24)[zone] == alone


@given(st.integers(1, 16378))
def test_the_subnet_holds_two_fleets(instances):
    length = subnet_prefix_length(addresses_per_subnet(instances))
    assert 2 ** (32 - length) - 5 - 1 >= 2 * 2 * instances
