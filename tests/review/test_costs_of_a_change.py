"""``cost-increase`` rests on what was agreed on before, not on what the change says of itself."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest
import yaml

from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.change.file_review import FileReview
from low_latency_endpoint.change.verdict import breaches, limit_of
from low_latency_endpoint.facts.prices import priced_items
from low_latency_endpoint.settings import Settings, parse_settings
from tests.depth import examples

from .conftest import SHIPPED

TYPES = ("ml.m5.12xlarge", "ml.m5.24xlarge", "ml.g5.xlarge", "ml.c5.4xlarge")
THROUGHPUT = {"peak_tps": 1000, "tps_per_instance": 200, "rise_tps_per_minute": 10}
ZONES_BY_REGION = {
    "eu-west-1": {"ids": ["euw1-az1", "euw1-az2"]},
    "us-east-1": SHIPPED["client_zones"],
}
Values = dict[str, Any]


def base(prices: dict[str, float], **endpoint: Any) -> Values:
    """The settings that ship, with prices, and without what stands beside the instances."""
    values = deepcopy(SHIPPED)
    values["prices"] = prices
    values["endpoints"]["sentiment"] |= {"throughput": dict(THROUGHPUT), **endpoint}
    return values


def read(values: Values) -> Settings:
    return parse_settings(yaml.safe_dump(values, sort_keys=False))


def dearer(before: Values | None, after: Values, limit: str = "cost-increase=5") -> list[str]:
    """Why the check fails; nothing where it passes."""
    now = read(after)
    file_review = (
        FileReview("endpoint.yaml", None, now, is_new=True)
        if before is None
        else FileReview.of("endpoint.yaml", review(read(before), now))
    )
    return [text for _, text in breaches([file_review], [limit_of(limit)])]


def sentiment(values: Values) -> Values:
    found: Values = values["endpoints"]["sentiment"]
    return found


def of_type(name: str) -> Callable[[Values], None]:
    return lambda values: sentiment(values).update(instance_type=name)


def new_endpoint(values: Values) -> None:
    values["endpoints"]["mood"] = {**deepcopy(sentiment(values)), "endpoint_name": "mood"}
    del values["endpoints"]["mood"]["throughput"]


def renamed_endpoint(values: Values) -> None:
    values["endpoints"] = {"mood": {**sentiment(values), "endpoint_name": "mood"}}


def another_region(values: Values) -> None:
    values.update(region="eu-west-1", client_zones=ZONES_BY_REGION["eu-west-1"])


def variant(values: Values) -> None:
    sentiment(values)["variants"] = {"challenger": {"instance_type": TYPES[2]}}


def more_peak(values: Values) -> None:
    sentiment(values)["throughput"]["peak_tps"] *= 3


def more_at_least(values: Values) -> None:
    sentiment(values)["instances"] = {"min": 7}


def schedule(values: Values) -> None:
    ranges = {"name": "day", "cron": "0 8 ? * MON-FRI *", "min": 12, "max": 40}
    sentiment(values).setdefault("scaling", {})["schedule"] = [ranges]


def canary(values: Values) -> None:
    sentiment(values)["canary"] = {"payload": {"data": {"inputs": "I like you."}}}


def second_interface(values: Values) -> None:
    values["private_link"] = {"sagemaker_api": True}


def alarm(values: Values) -> None:
    sentiment(values)["alarms"] = {"zone_imbalance": 1.5}


CHANGES: tuple[Callable[[Values], None], ...] = (
    *map(of_type, TYPES[1:]),
    *(new_endpoint, renamed_endpoint, another_region, variant, more_peak, more_at_least),
    *(schedule, canary, second_interface, alarm),
)

ITEMS = (*TYPES, *priced_items())


def some_prices(random: Random, share: float) -> dict[str, float]:
    """Prices of some items: of nothing at all, very low, or very high."""
    chosen = [item for item in ITEMS if random.random() < share]
    return {item: random.choice([0.0, 0.0001, 0.01, 3.0, 5000.0]) for item in chosen}


def changed(values: Values, random: Random) -> Values:
    """One to three changes together."""
    after = deepcopy(values)
    for change in random.sample(CHANGES, random.randint(1, 3)):
        if "sentiment" in after["endpoints"]:
            change(after)
    return after


@pytest.mark.parametrize("seed", range(examples(30)))
def test_prices_that_the_change_states_never_change_the_verdict(seed: int) -> None:
    random = Random(seed)
    before = base(some_prices(random, 0.6))
    after = changed(before, random)
    for former in (before, None):  # a new file has no former prices at all
        verdicts = []
        for _ in range(3):
            after["prices"] = some_prices(random, random.random())
            verdicts.append(dearer(former, after))
        assert verdicts[0] == verdicts[1] == verdicts[2]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__qualname__)
def test_what_the_base_has_no_price_of_is_not_known(change: Callable[[Values], None]) -> None:
    """Whatever is billed more, and whatever the change says that it costs."""
    before = base({TYPES[0]: 2.0})
    after = deepcopy(before)
    change(after)
    after["prices"] = dict.fromkeys(ITEMS, 0.0001)
    found = dearer(before, after, "cost-increase")
    assert found
    # More of what has a price: the type of the base, and what AWS's list in the library has.
    if change not in (more_peak, more_at_least, schedule, second_interface):
        assert any("is not known without" in text for text in found), found


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__qualname__)
def test_what_goes_away_is_no_increase(change: Callable[[Values], None]) -> None:
    """The same changes the other way round, where only the quantities fall."""
    after = base({TYPES[0]: 2.0})
    before = deepcopy(after)
    change(before)
    # Without a variant the first one needs more instances, and in another place of everything.
    others = [variant, renamed_endpoint, another_region, *CHANGES[: len(TYPES) - 1]]
    if change not in others:
        assert dearer(before, after) == []


def test_prices_of_the_base_hold_in_its_region_only() -> None:
    before = base(dict.fromkeys(ITEMS, 2.0))
    after = deepcopy(before)
    another_region(after)
    after["prices"] = dict.fromkeys(ITEMS, 0.01)
    (found,) = dearer(before, after)
    assert f"is not known without prices of {TYPES[0]}" in found


RESULTS: dict[str, Callable[[Values, float], None]] = {
    "the first variant's": lambda values, tps: sentiment(values)["throughput"].update(
        tps_per_instance=tps
    ),
    "another variant's": lambda values, tps: sentiment(values)["variants"]["other"].update(
        tps_per_instance=tps
    ),
}


@pytest.mark.parametrize("of", RESULTS)
@pytest.mark.parametrize("tps", [201.0, 400.0, 2000.0, 100_000.0])
def test_no_load_test_result_of_the_change_hides_a_higher_peak(of: str, tps: float) -> None:
    other = {"instance_type": TYPES[2], "tps_per_instance": 100, "weight": 1}
    before = base(dict.fromkeys(ITEMS, 2.0), variants={"other": other})
    after = deepcopy(before)
    sentiment(after)["throughput"]["peak_tps"] = 10_000
    honest = dearer(before, after)
    assert any("at most" in text for text in honest)
    RESULTS[of](after, tps)
    found = dearer(before, after)
    assert any("with the former load-test result" in text for text in found)


def test_a_result_of_the_change_for_another_type_is_not_known() -> None:
    """Both types have a price: how many of the new one are needed, only the change says."""
    before = base(dict.fromkeys(ITEMS, 2.0))
    after = deepcopy(before)
    of_type(TYPES[1])(after)
    sentiment(after)["throughput"] |= {"peak_tps": 10_000, "tps_per_instance": 100_000}
    found = dearer(before, after)
    assert found == [
        "endpoint.yaml: what it costs is not known without a former load-test result of one "
        f"{TYPES[1]} for sentiment"
    ]


def test_a_renamed_endpoint_has_no_former_result() -> None:
    before = base(dict.fromkeys(ITEMS, 2.0))
    after = deepcopy(before)
    renamed_endpoint(after)
    after["endpoints"]["mood"]["throughput"] |= {"peak_tps": 10_000, "tps_per_instance": 100_000}
    assert any(f"{TYPES[0]} for mood" in text for text in dearer(before, after))


def test_a_first_result_hides_nothing() -> None:
    """The fleet was stated before: with fewer instances the stack costs less, whoever measured."""
    before = base(dict.fromkeys(ITEMS, 2.0), instances={"min": 20, "max": 60})
    del sentiment(before)["throughput"]
    after = base(dict.fromkeys(ITEMS, 2.0))
    assert dearer(before, after) == []


def day_long(values: Values) -> None:
    """The maximum for all of a day but a minute."""
    up = {"name": "up", "cron": "1 0 * * ? *", "min": 40}
    down = {"name": "down", "cron": "0 0 * * ? *", "min": 2}
    sentiment(values)["scaling"] = {"schedule": [up, down]}


def scaling(**options: Any) -> Callable[[Values], None]:
    return lambda values: sentiment(values).update(scaling=options)


def day_not_known(values: Values) -> None:
    """Set times of two zones are left out along a day."""
    day_long(values)
    sentiment(values)["scaling"]["schedule"][0]["time_zone"] = "Europe/Paris"


def longer_peak(values: Values) -> None:
    day = {"tps": 1000, "from": "00:05", "to": "00:00"}
    sentiment(values)["throughput"] |= {"peaks": {"day": day}}


def disks(values: Values) -> None:
    sentiment(values)["volume_size_gib"] = 512


def capture(values: Values) -> None:
    sentiment(values)["data_capture"] = {"s3": "s3://bucket-x/c/", "sampling_percentage": 100}


#: What changes none of the three fleets: at least, at first and at most.
LONGER: dict[str, Callable[[Values], None]] = {
    "a schedule": day_long,
    "a schedule that no day counts": day_not_known,
    "a lower target": scaling(invocations_target=60),
    "a cooldown": scaling(scale_in_cooldown="24h"),
    "a longer peak": longer_peak,
    "disks": disks,
    "data capture": capture,
}


@pytest.mark.parametrize("how", LONGER)
@pytest.mark.parametrize("priced", [True, False])
def test_more_hours_of_a_fleet_and_what_has_no_price_cost_more(how: str, priced: bool) -> None:
    """All three fleets are as before; what is billed in between is more."""
    fleet = {"min": 2, "initial": 10, "max": 40}
    prices = dict.fromkeys(ITEMS, 2.0) if priced else {}
    before = base(prices, instances=fleet)
    after = deepcopy(before)
    LONGER[how](after)
    assert dearer(before, after)
    if how not in ("a schedule that no day counts", "a schedule", "a longer peak"):
        assert dearer(after, before) == []


ELSEWHERE: dict[str, tuple[Values, Values]] = {
    "stack_name": ({}, {"stack_name": "Other"}),
    "account": ({"account": "123456789012"}, {"account": "210987654321"}),
}


@pytest.mark.parametrize("of", ELSEWHERE)
@pytest.mark.parametrize("priced", [True, False])
def test_another_stack_costs_what_both_cost(of: str, priced: bool) -> None:
    """The former one stays until somebody deletes it."""
    was, now = ELSEWHERE[of]
    prices = dict.fromkeys(ITEMS, 2.0) if priced else {}
    before = {**base(prices), **was}
    sentiment(before).pop("endpoint_name", None)
    after = {**deepcopy(before), **now}
    file_review = FileReview.of("endpoint.yaml", review(read(before), read(after)))
    costs = file_review.costs
    for moment in ("at_least", "at_first", "at_most"):
        usd = [cost.usd(moment) for cost in costs]
        assert usd[1] == (pytest.approx(2 * (usd[0] or 0)) if priced else None)
    assert dearer(before, after, "cost-increase=90")
    assert bool(dearer(before, after, "cost-increase=101")) == (not priced)
    assert dearer(before, {**before, "tags": {"a": "b"}}) == []


def test_another_region_has_its_own_prices_beside_the_former_stack() -> None:
    before = base(dict.fromkeys(ITEMS, 2.0))
    after = deepcopy(before)
    another_region(after)
    _, both = FileReview.of("endpoint.yaml", review(read(before), read(after))).costs
    assert both.without_price == (TYPES[0],)
    assert len(both.endpoints) == 2


def test_a_deleted_file_deletes_no_stack() -> None:
    file_review = FileReview("a.yaml", read(base({TYPES[0]: 2.0})), None, is_deleted=True)
    was, now = file_review.costs
    assert was.usd("at_most") == now.usd("at_most") != 0


def test_without_any_change_nothing_costs_more() -> None:
    for prices in ({}, {TYPES[0]: 2.0}, dict.fromkeys(ITEMS, 2.0)):
        assert dearer(base(prices), base(prices)) == []


def steps(at: int, add: int) -> Callable[[Values], None]:
    adds = [{"requests": at, "add": add}]
    return scaling(steps={"metric": "invocations", "adds": adds, "cooldown": "1s"})


def in_flight(target: float) -> Callable[[Values], None]:
    return scaling(metric="concurrency", concurrency_target=target)


def quieter(values: Values) -> None:
    """Fewer requests, and a target that has many more instances for what comes today."""
    sentiment(values)["throughput"] |= {"peak_tps": 20, "safety_factor": 0.02}


def quieter_and_weaker(values: Values) -> None:
    """The same, told as a result and as a load: each alone costs no more."""
    sentiment(values)["throughput"] |= {
        "peak_tps": 40,
        "tps_per_instance": 8,
        "rise_tps_per_minute": 1,
    }


#: Before and after, with the same range of instances.
SCALED_OTHERWISE: dict[str, tuple[Callable[[Values], None], Callable[[Values], None]]] = {
    "sooner steps": (steps(100_000, 1), steps(1, 22)),
    "other targets": (in_flight(8), in_flight(0.5)),
    "another metric": (scaling(invocations_target=9000), in_flight(0.5)),
    "a stated load": (lambda values: None, quieter),
    "a stated load and result": (lambda values: None, quieter_and_weaker),
}


def more_of_one(values: Values) -> None:
    sentiment(values)["throughput"]["safety_factor"] = 0.02


def no_steps_and_more(values: Values) -> None:
    del sentiment(values)["scaling"]
    more_of_one(values)


def beside_one_in_flight(values: Values) -> None:
    """Another endpoint, whose day nobody knows."""
    other = {**deepcopy(sentiment(values)), "endpoint_name": "other"}
    other["scaling"] = {"metric": "concurrency", "concurrency_target": 4}
    values["endpoints"]["other"] = other


def half_in_flight(values: Values) -> None:
    """Half of the fleet moves to a variant that stands at its maximum."""
    sentiment(values)["instances"] = {"min": 1, "initial": 5, "max": 20}
    tiny = {"metric": "concurrency", "concurrency_target": 0.01}
    further = {"weight": 0.01, "instances": {"min": 1, "initial": 5, "max": 20}, "scaling": tiny}
    sentiment(values)["variants"] = {"further": further}


def weighed(weight: float) -> Callable[[Values], None]:
    def change(values: Values) -> None:
        sentiment(values)["scaling"] = {"metric": "concurrency", "concurrency_target": 4}
        fleet = {"min": 2, "initial": 10, "max": 40}
        sentiment(values)["variants"] = {
            "large": {"instance_type": TYPES[1], "weight": weight, "instances": fleet}
        }

    return change


def unmeasured(values: Values) -> None:
    del sentiment(values)["throughput"]
    sentiment(values)["scaling"] = {"invocations_target": 6000}


def measured_weakly(values: Values) -> None:
    sentiment(values)["throughput"] = {"peak_tps": 0.01, "tps_per_instance": 1}
    sentiment(values)["scaling"] = {"invocations_target": 0.5}


SCALED_OTHERWISE |= {
    "a day that becomes known": (steps(100_000, 1), no_steps_and_more),
    "one endpoint beside another": (beside_one_in_flight, more_of_one),
    "a variant on requests in flight": (lambda values: None, half_in_flight),
    "a larger share of one": (weighed(0.001), weighed(1000)),
    "a first measurement": (unmeasured, measured_weakly),
}


def test_capturing_answers_beside_requests_costs_more() -> None:
    before = base({})
    capture(before)
    sentiment(before)["data_capture"]["capture"] = ["input"]
    after = deepcopy(before)
    sentiment(after)["data_capture"]["capture"] = ["input", "output"]
    assert any("output: 0 -> 100 %" in text for text in dearer(before, after))
    assert dearer(after, before) == []


@pytest.mark.parametrize("how", SCALED_OTHERWISE)
def test_who_scales_otherwise_within_a_range_is_asked(how: str) -> None:
    """What the change says of its load, or what no day counts, passes for nothing."""
    was, now = SCALED_OTHERWISE[how]
    before = base(dict.fromkeys(ITEMS, 2.0), instances={"min": 2, "initial": 10, "max": 40})
    was(before)
    after = deepcopy(before)
    now(after)
    assert dearer(before, after)
    assert dearer(before, before) == []


def test_a_smaller_load_with_a_smaller_fleet_costs_no_more() -> None:
    before = base(dict.fromkeys(ITEMS, 2.0), instances={"min": 4, "initial": 10, "max": 40})
    after = deepcopy(before)
    sentiment(after)["throughput"]["peak_tps"] = 500
    sentiment(after)["instances"] = {"min": 2, "initial": 5, "max": 20}
    assert dearer(before, after) == []
