"""What a stack costs for an hour: instances by the plan's rules, prices by whoever stated them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from low_latency_endpoint.plan.hourly_cost import MOMENTS, EndpointCost, StackCost
from low_latency_endpoint.plan.prices import list_prices
from low_latency_endpoint.plan.stack_minutes import UNSEEN, stack_minutes
from low_latency_endpoint.plan.tables import rows
from low_latency_endpoint.settings import explain_endpoint, parse_settings, stack_cost

# 1000 / (200 x 0.65) = 7.7: eight at peak, two zones, sixteen hold it while a zone has failed.
ENDPOINT: dict[str, Any] = {
    "containers": [{"image": {"uri": "example/image:1"}}],
    "instance_type": "ml.m5.12xlarge",
    "latency": {"p99": "200ms"},
    "throughput": {"peak_tps": 1000, "tps_per_instance": 200, "safety_factor": 0.65},
}
PRICE = {"ml.m5.12xlarge": 3.0}


def cost(
    *, shared: Mapping[str, Any] = {}, others: Mapping[str, Any] = {}, **endpoint: Any
) -> StackCost:
    given = {
        "client_zones": {"ids": ["use1-az1", "use1-az2"]},
        "prices": PRICE,
        **shared,
        "endpoints": {"sentiment": {**ENDPOINT, **endpoint}, **others},
    }
    return stack_cost(parse_settings(yaml.safe_dump(given)))


def instances(found: EndpointCost) -> list[int]:
    return [found.instances(moment) for moment in MOMENTS]


def test_least_first_most_and_two_fleets_of_a_blue_green_update() -> None:
    found = cost()
    assert instances(found.endpoints["sentiment"]) == [2, 8, 16, 32]
    # The interface endpoint: 0.01 in each of the two zones.
    assert [found.usd(moment) for moment in MOMENTS] == [6.02, 24.02, 48.02, 96.02]


@pytest.mark.parametrize(("batch", "in_an_update"), [(25, 20), (10, 18), (5, 17)])
def test_a_rolling_update_costs_the_fleet_and_a_batch(batch: int, in_an_update: int) -> None:
    found = cost(deployment={"rolling": {"batch_percent": batch}}).endpoints["sentiment"]
    assert instances(found) == [2, 8, 16, in_an_update]


@pytest.mark.parametrize(
    "endpoint", [{"scaling": {"enabled": False}}, {"instances": {"min": 8, "max": 8}}]
)
def test_what_does_not_scale_costs_the_same_at_all_hours(endpoint: dict[str, Any]) -> None:
    assert instances(cost(**endpoint).endpoints["sentiment"]) == [8, 8, 8, 16]


def test_without_a_measured_throughput_nothing_scales() -> None:
    found = cost(throughput=None)
    assert instances(found.endpoints["sentiment"]) == [2, 2, 2, 4]


@pytest.mark.parametrize(
    ("shared", "zones"),
    [
        ({}, 2),
        ({"private_link": {"sagemaker_api": True}}, 4),
        ({"client_zones": {"ids": ["use1-az1", "use1-az2", "use1-az4"]}}, 3),
        (
            {
                "network": {
                    "vpc_id": "vpc-0123456789abcdef0",
                    "subnets": {
                        "use1-az1": "subnet-0123456789abcdef0",
                        "use1-az2": "subnet-0123456789abcdef1",
                    },
                },
                "private_link": {
                    "interface_endpoint_id": "vpce-0123456789abcdef0",
                    "security_group_id": "sg-0123456789abcdef0",
                },
            },
            0,
        ),
    ],
)
def test_interface_endpoints_that_the_stack_makes_cost_in_each_zone(
    shared: dict[str, Any], zones: int
) -> None:
    found = cost(shared=shared)
    assert found.endpoint_zones == zones
    assert found.link_usd == pytest.approx(zones * 0.01)


def test_endpoints_add_up_and_share_the_interface_endpoint() -> None:
    other = {**ENDPOINT, "instance_type": "ml.c5.xlarge", "instances": {"min": 3, "max": 16}}
    found = cost(shared={"prices": {**PRICE, "ml.c5.xlarge": 0.5}}, others={"mood": other})
    assert found.usd("at_least") == 2 * 3 + 3 * 0.5 + 0.02
    assert found.usd("in_an_update") == 32 * 3.5 + 0.02


def test_no_price_is_guessed() -> None:
    found = cost(shared={"prices": {"ml.m5.24xlarge": 6.0}})
    assert found.without_price == ("ml.m5.12xlarge",)
    assert [found.usd(moment) for moment in MOMENTS] == [None] * 4
    assert instances(found.endpoints["sentiment"]) == [2, 8, 16, 32]  # known all the same


def test_a_price_of_another_region_is_not_taken() -> None:
    assert set(list_prices("eu-west-1")) == set()
    shared = {"client_zones": {"ids": ["euw1-az1", "euw1-az2"]}}
    found = cost(shared=shared)
    assert (found.without_price, found.link_usd) == (("interface_endpoint",), None)
    assert found.usd("at_least") == 6.0
    given = cost(shared={**shared, "prices": {**PRICE, "interface_endpoint": 0.011}})
    assert given.usd("at_least") == 6.022


def test_without_interface_endpoints_their_price_is_not_missed() -> None:
    found = StackCost(endpoints=cost().endpoints, endpoint_zones=0, zone_price=None)
    assert (found.link_usd, found.without_price) == (0.0, ())
    assert found.usd("at_least") == 6.0


def test_the_costs_as_data_name_each_price_and_its_origin() -> None:
    shared = {"prices": {**PRICE, "interface_endpoint": 0.0123456}}
    found = cost(shared=shared).to_dict()
    (endpoint,) = found["endpoints"].values()
    assert endpoint["price"]["usd"] == 3.0
    assert endpoint["price"]["origin"]
    assert found["interface_endpoints"]["price"]["usd"] == 0.0123456
    assert found["interface_endpoints"]["usd"] == 0.0247  # to a hundredth of a cent
    without = cost(shared={"prices": {}}).to_dict()
    assert [each["price"] for each in without["endpoints"].values()] == [None]


def test_the_library_has_no_price_of_an_instance() -> None:
    """Until a page of AWS's with a date could be read: those of blogs disagree."""
    assert not [row["item"] for row in rows("list_prices") if row["item"].startswith("ml.")]


def test_the_plan_says_it_as_it_says_everything() -> None:
    given = {
        "client_zones": {"ids": ["use1-az1", "use1-az2"]},
        "prices": PRICE,
        "endpoints": {"sentiment": ENDPOINT},
    }
    plan = explain_endpoint(parse_settings(yaml.safe_dump(given)), "sentiment")
    found = plan["hourly_cost_in_an_update"]
    assert (found.value, found.unit) == (96.0, "USD per hour")
    assert found.inputs == {"instances": 32, "price of one": 3.0, "price is": "yours"}
    assert "two fleets" in found.rule
    assert found.source.startswith("https://aws.amazon.com/")
    del given["prices"]
    unpriced = explain_endpoint(parse_settings(yaml.safe_dump(given)), "sentiment")
    assert unpriced["hourly_cost"].value_text == "not known"
    assert "hourly_cost_at_least" not in unpriced


@pytest.mark.parametrize("warm_up", [True, False])
def test_every_minute_is_marked_as_not_seen(warm_up: bool) -> None:
    create, delete = stack_minutes(warm_up=warm_up)
    assert UNSEEN in str(create)
    assert UNSEEN in str(delete)
    assert "roadmap/issues/1327" in str(delete)
    # Lambda keeps the interfaces of the warm-up's function.
    assert ("20 to 45" in str(delete)) == ("issues/392" in str(delete)) == warm_up
