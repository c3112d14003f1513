"""What a stack costs for an hour: instances by the plan's rules, prices by whoever stated them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from low_latency_endpoint.cli.cost_view import cost_parts
from low_latency_endpoint.facts.prices import list_prices
from low_latency_endpoint.facts.tables import rows
from low_latency_endpoint.plan.hourly_cost import MOMENTS, EndpointCost, StackCost
from low_latency_endpoint.plan.recorded_traffic import recording_of
from low_latency_endpoint.plan.scaling_pace import fleet_along
from low_latency_endpoint.plan.stack_minutes import UNSEEN, stack_minutes
from low_latency_endpoint.report.document import Sentence
from low_latency_endpoint.settings import (
    Settings,
    explain_variants,
    fleets_along,
    parse_settings,
    stack_cost,
)
from low_latency_endpoint.simulate import Shape, shape
from tests.settings.test_mistakes import SUBNETS, VPC
from tests.settings.test_what_synthesis_refuses import ADOPTED

# 1000 / (200 x 0.65) = 7.7: eight at peak, two zones, sixteen hold it while a zone has failed.
ENDPOINT: dict[str, Any] = {
    "containers": [{"image": {"uri": "example/image:1"}}],
    "instance_type": "ml.m5.12xlarge",
    "latency": {"p99": "200ms"},
    "throughput": {"peak_tps": 1000, "tps_per_instance": 200, "safety_factor": 0.65},
}
PRICE = {"ml.m5.12xlarge": 3.0}
EXISTING = yaml.safe_load(
    f"{{network: {{vpc_id: {VPC}, subnets: {SUBNETS}}}, private_link: {ADOPTED}}}"
)


def settings(
    *, shared: Mapping[str, Any] = {}, others: Mapping[str, Any] = {}, **endpoint: Any
) -> Settings:
    given = {
        "client_zones": {"ids": ["use1-az1", "use1-az2"]},
        "prices": PRICE,
        **shared,
        "endpoints": {"sentiment": {**ENDPOINT, **endpoint}, **others},
    }
    return parse_settings(yaml.safe_dump(given))


def cost(**given: Any) -> StackCost:
    return stack_cost(settings(**given))


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
        (EXISTING, 0),
    ],
)
def test_interface_endpoints_that_the_stack_makes_cost_in_each_zone(
    shared: dict[str, Any], zones: int
) -> None:
    found = cost(shared=shared)
    assert [each.per_hour for each in found.shared] == [zones] * bool(zones)
    assert sum(each.usd or 0 for each in found.shared) == pytest.approx(zones * 0.01)


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
    assert [each.item for each in found.left_out] == [
        "interface_endpoint",
        "alarm",
        "composite_alarm",
    ]
    assert found.without_price == ()
    assert found.usd("at_least") == 6.0
    given = cost(shared={**shared, "prices": {**PRICE, "interface_endpoint": 0.011}})
    assert given.usd("at_least") == 6.022


def test_the_costs_as_data_name_each_price_and_its_origin() -> None:
    shared = {"prices": {**PRICE, "interface_endpoint": 0.0123456}}
    found = cost(shared=shared).to_dict()
    (endpoint,) = found["endpoints"].values()
    assert endpoint["price"]["usd"] == 3.0
    assert endpoint["price"]["origin"]
    (link,) = found["shared"]
    assert link["price"]["usd"] == 0.0123456
    assert link["usd"] == 0.0247  # to a hundredth of a cent
    without = cost(shared={"prices": {}}).to_dict()
    assert [each["price"] for each in without["endpoints"].values()] == [None]


ALL_PRICES = {
    **PRICE,
    "custom_metric": 0.3,
    "alarm": 0.1,
    "composite_alarm": 0.5,
    "high_resolution_alarm": 0.3,
    "function_request": 0.0000002,
    "function_memory": 0.0000133334,
    "logs": 0.5,
}


def test_alarms_are_in_the_sum_by_the_metrics_that_they_look_at() -> None:
    """Watching: p99, overhead, error rate over 2, three utilizations, capacity over 2: 9.

    Rolling back: p99, error rate over 2: 3. Target tracking makes 2. One composite pages.
    """
    found = cost(shared={"prices": ALL_PRICES})
    assert found.left_out == ()
    alarms, composites = found.endpoints["sentiment"].others
    assert alarms.per_hour * 730 == pytest.approx(9 + 3 + 2)
    assert composites.per_hour * 730 == pytest.approx(1)
    # 14 x 0.1 / 730 and 0.5 / 730, each to a hundredth of a cent
    assert (alarms.usd, composites.usd) == (0.0019, 0.0007)
    assert found.usd("at_least") == pytest.approx(6 + 0.02 + 0.0019 + 0.0007)
    assert found.usd_per_month("at_least") == pytest.approx(6.0226 * 730)


def test_a_scaling_policy_on_requests_in_flight_has_alarms_of_high_resolution() -> None:
    found = cost(
        shared={"prices": ALL_PRICES}, scaling={"metric": "concurrency", "concurrency_target": 4}, throughput=None,
        instances={"min": 2, "max": 4},
    )  # fmt: skip
    items = {each.item: each.per_hour * 730 for each in found.endpoints["sentiment"].others}
    assert items["high_resolution_alarm"] == pytest.approx(2)
    assert items["alarm"] == pytest.approx(9 + 3)


def test_what_keeps_an_endpoint_warm_is_in_the_sum() -> None:
    """Each minute one function of 256 MiB decides, and one of 1,769 MiB sends: 120 an hour."""
    keeping = {"payload": {"text": "hello"}, "keep_warm": {"every": "1m"}}
    found = cost(shared={"prices": ALL_PRICES}, warm_up=keeping)
    items = {each.item: each for each in found.endpoints["sentiment"].others}
    assert items["function_request"].per_hour == 120
    # 60 x (256 + 1769) / 1024 GB for a second each
    assert items["function_memory"].per_hour == pytest.approx(118.652, abs=0.001)
    assert items["function_memory"].usd == pytest.approx(0.0016)
    assert items["logs"].per_hour == pytest.approx(120 * 1000 / 1e9)
    assert items["function_memory"].assumed == "each invocation takes 1 s"
    without = cost(shared={"prices": ALL_PRICES}, warm_up={"payload": {"text": "hello"}})
    assert {each.item for each in without.endpoints["sentiment"].others} == {
        "alarm",
        "composite_alarm",
    }


def test_a_canary_is_in_the_sum_as_aws_bills_it() -> None:
    """In two zones: 5 metrics each; each minute a function of 512 MiB each, 120 an hour.

    Alarms: three in each zone, and one over both zones: 8 metrics beside the 14 others. Two
    composites page. Each run sends 5 bytes twice, to both names.
    """
    found = cost(shared={"prices": ALL_PRICES}, canary={"payload": {"text": "hello"}})
    items = {each.item: each for each in found.endpoints["sentiment"].others}
    assert items["custom_metric"].per_hour * 730 == pytest.approx(10)
    assert items["custom_metric"].usd == pytest.approx(10 * 0.3 / 730, abs=5e-5)
    assert items["function_request"].per_hour == 120
    assert items["function_memory"].per_hour == 60  # for a second each
    assert items["alarm"].per_hour * 730 == pytest.approx(14 + 8)
    assert items["composite_alarm"].per_hour * 730 == pytest.approx(2)
    assert items["interface_endpoint_data"].per_hour == pytest.approx(240 * 5 / 1e9)
    a_month = (
        10 * 0.3 + 8 * 0.1 + 0.5 + 730 * (60 * 0.0000133334 + 120 * (0.0000002 + 1500e-9 * 0.5))
    )
    without = cost(shared={"prices": ALL_PRICES})
    more = found.usd_per_month("at_least") - without.usd_per_month("at_least")
    assert more == pytest.approx(a_month, abs=6 * 0.00005 * 730)  # to a hundredth of a cent an hour


def test_a_canary_that_compares_no_names_has_four_metrics_in_each_zone() -> None:
    link = {"private_dns": False}
    found = cost(
        shared={"prices": ALL_PRICES, "private_link": link}, canary={"payload": {"text": "hello"}}
    )
    items = {each.item: each for each in found.endpoints["sentiment"].others}
    assert items["custom_metric"].per_hour * 730 == pytest.approx(8)
    assert items["alarm"].per_hour * 730 == pytest.approx(14 + 2 * 2 + 2)


def test_a_million_requests_at_the_peak() -> None:
    """8 instances at 3 and two zones at 0.01 make 24.02 an hour, in which 3.6 million come."""
    assert cost().usd_per_million("sentiment") == pytest.approx(24.02 / 3.6, abs=1e-4)
    assert cost(throughput=None).usd_per_million("sentiment") is None
    assert cost(shared={"prices": {}}).usd_per_million("sentiment") is None


def test_requests_cost_their_way_through_the_interface_endpoint() -> None:
    """A million requests of 5 bytes are 0.005 GB; of half a megabyte 500 GB, at 0.01 each."""
    small = cost(warm_up={"payload": {"text": "hello"}}).usd_per_million("sentiment")
    assert small == pytest.approx(24.02 / 3.6 + 0.00005, abs=1e-4)
    large = cost(warm_up={"payload": {"text": "x" * 500_000}}).usd_per_million("sentiment")
    assert large == pytest.approx(24.02 / 3.6 + 5, abs=1e-4)


def test_several_endpoints_share_the_interface_endpoint_equally() -> None:
    other = {**ENDPOINT, "instance_type": "ml.c5.xlarge"}
    found = cost(shared={"prices": {**PRICE, "ml.c5.xlarge": 0.5}}, others={"mood": other})
    assert found.usd_per_million("sentiment") == pytest.approx(24.01 / 3.6, abs=1e-4)
    assert found.usd_per_million("mood") == pytest.approx(4.01 / 3.6, abs=1e-4)


def along(found: StackCost, shape: Shape, **endpoint: Any) -> Any:
    return found.along(fleets_along(settings(**endpoint), shape))


def test_a_month_along_a_recorded_day() -> None:
    """A CSV of requests in each minute: 12 hours at 1,000 a second, 12 hours at 200.

    An instance is held at 130 a second (200 x 0.65): 8 instances, then 2. They go when 15 minutes
    lay below 0.9 x 130 x 8: 735 minutes of 8 and 705 of 2. (735 x 8 + 705 x 2) / 1440 = 5.0625
    instances; x 3 + 0.02 = 15.2075 an hour, 11,101.48 a month of 730 hours, for 600 requests a
    second on average: 2.16 million an hour.
    """
    counts = [1000 * 60] * 720 + [200 * 60] * 720
    lines = "\n".join(f"{60 * minute},{count}" for minute, count in enumerate(counts))
    found = along(cost(), recording_of(lines, "monday").shape())
    assert found.usd_per_hour == pytest.approx(15.2075)
    assert found.usd_per_month == pytest.approx(15.2075 * 730, abs=0.005)
    assert found.requests_per_hour == pytest.approx(2_160_000)
    assert found.usd_per_million == pytest.approx(15.2075 / 2.16, abs=1e-4)


def test_along_a_day_a_fixed_fleet_costs_what_it_always_does() -> None:
    fixed = {"scaling": {"enabled": False}}
    found = along(cost(**fixed), shape("daily-wave"), **fixed)
    assert found.usd_per_hour == pytest.approx(24.02)


def test_along_a_day_requests_in_flight_are_not_guessed() -> None:
    tracked = {"scaling": {"metric": "concurrency", "concurrency_target": 4}}
    assert along(cost(**tracked), shape("daily-wave"), **tracked) is None
    assert along(cost(shared={"prices": {}}), shape("daily-wave")) is None


@pytest.mark.parametrize(
    ("levels", "counts"),
    [
        # Never below the minimum, never above the maximum.
        ([(1440, 1)], [2] * 24),
        ([(1440, 100_000)], [4] * 24),
        # A lull of 14 minutes takes none away; of 16 it does, for the one minute that is left.
        ([(2 * 3600, 40), (14 * 60, 1), (3600, 40)], [4] * 194),
        ([(2 * 3600, 40), (16 * 60, 1), (3600, 40)], [4] * 135 + [2] + [4] * 60),
        # A spike of two minutes adds none, as the alarm needs three; one of three minutes does, until
        # 15 minutes lay below 36.
        ([(3600, 15), (2 * 60, 40), (3600, 15)], [2] * 122),
        ([(3600, 15), (3 * 60, 40), (3600, 15)], [2] * 60 + [4] * 18 + [2] * 45),
        # At 0.95 of what three instances are held at, the fourth goes but no other.
        ([(3600, 40), (3600, 28.5)], [4] * 75 + [3] * 45),
        # Four are held at 40: above 36 all four stay, though three would be enough below 30.
        ([(3600, 40), (3600, 36.5)], [4] * 120),
    ],
)
def test_the_fleet_that_target_tracking_keeps(
    levels: list[tuple[float, float]], counts: list[int]
) -> None:
    found = fleet_along(levels, target_tps=10, minimum=2, maximum=4)
    assert (found.least, found.most) == (min(counts), max(counts))
    assert found.mean == pytest.approx(sum(counts) / len(counts))


def test_the_library_has_no_price_of_an_instance() -> None:
    """Until a page of AWS's with a date could be read: those of blogs disagree."""
    assert not [row["item"] for row in rows("list_prices") if row["item"].startswith("ml.")]


def test_the_plan_says_it_as_it_says_everything() -> None:
    plan = explain_variants(settings(), "sentiment")["sentiment"]
    found = plan["hourly_cost_in_an_update"]
    assert (found.value, found.unit) == (96.0, "USD per hour")
    assert found.inputs == {"instances": 32, "price of one": 3.0, "price is": "yours"}
    assert "two fleets" in found.rule
    assert found.source.startswith("https://aws.amazon.com/")
    unpriced = explain_variants(settings(shared={"prices": {}}), "sentiment")["sentiment"]
    assert unpriced["hourly_cost"].value_text == "not known"
    assert "hourly_cost_at_least" not in unpriced


@pytest.mark.parametrize("warm_up", [True, False])
def test_every_minute_is_marked_as_not_seen(warm_up: bool) -> None:
    create, delete = stack_minutes(functions=warm_up)
    assert UNSEEN in str(create)
    assert UNSEEN in str(delete)
    assert "roadmap/issues/1327" in str(delete)
    # Lambda keeps the interfaces of the warm-up's function.
    assert ("20 to 45" in str(delete)) == ("issues/392" in str(delete)) == warm_up


def printed(found: StackCost, one: Settings) -> str:
    return "\n".join(part.text for part in cost_parts(one, found) if isinstance(part, Sentence))


def test_what_no_amount_has_is_said_whatever_else_is_unknown() -> None:
    for prices in (PRICE, {}):
        one = settings(shared={"prices": prices})
        found = stack_cost(one)
        assert found.left_out
        said = printed(found, one)
        assert all(item.text in said.split("Not in these amounts")[1] for item in found.left_out)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_what_no_amount_has_is_summed_over_endpoints(count: int) -> None:
    """Each kind once: an endpoint kept warm, with a canary, has 22 metrics in two composites.

    Its functions run 120 times an hour to keep warm, and 120 times for the canary.
    """
    own = {
        "warm_up": {"payload": {"text": "hello"}, "keep_warm": {"every": "1m"}},
        "canary": {"payload": {"text": "hello"}},
    }
    others = {f"other-{number}": {**ENDPOINT, **own} for number in range(count - 1)}
    one = settings(others=others, **own)
    left_out = stack_cost(one).left_out
    kinds = [(item.item, item.what) for item in left_out]
    assert len(set(kinds)) == len(kinds)
    texts = {item.text for item in left_out}
    assert texts >= {
        f"{22 * count} metrics in alarms",
        f"{2 * count} composite alarms",
        f"{120 * count} invocations to keep warm",
        f"{120 * count} invocations of the canary",
    }
    assert all(text in printed(stack_cost(one), one) for text in texts)


def test_a_share_of_the_rest_is_called_so() -> None:
    one = settings()
    assert ", with the rest of the stack" in printed(stack_cost(one), one)
    two = settings(others={"mood": ENDPOINT})
    assert printed(stack_cost(two), two).count(", with its share of the rest of the stack") == 2


def test_what_costs_little_is_not_nothing() -> None:
    """A request of 5 bytes: a GB of them are 200 million."""
    one = settings(
        shared={"prices": ALL_PRICES},
        throughput={"peak_tps": 0.1, "tps_per_instance": 200, "safety_factor": 0.65},
        warm_up={"payload": {"text": "hello"}},
    )
    said = printed(stack_cost(one), one)
    assert "0.0000 US" not in said
    assert "less than 0.0001 US dollars" in said
