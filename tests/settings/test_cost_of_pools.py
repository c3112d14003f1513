"""Instance pools in the cost: each amount at the price of the pool that it is about."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.change.file_review import FileReview
from low_latency_endpoint.change.verdict import breaches, limit_of
from low_latency_endpoint.cli import app
from low_latency_endpoint.cli.cost_view import cost_parts, total_line
from low_latency_endpoint.cli.simulate_report import SimulatedCost
from low_latency_endpoint.plan.hourly_cost import MOMENTS, StackCost
from low_latency_endpoint.report.document import Sentence, Table
from low_latency_endpoint.settings import (
    Settings,
    explain_variants,
    fleets_along,
    parse_settings,
    plan_endpoint,
    stack_cost,
)
from low_latency_endpoint.simulate import shape

TYPES = ["ml.g4dn.2xlarge", "ml.g5.2xlarge", "ml.g6.2xlarge", "ml.g6e.xlarge", "ml.g6e.4xlarge"]
LINK = 0.02  # two zones at 0.01, the only priced thing beside the instances
Pools = list[tuple[str, float]]  # type and TPS, the first is tried first


def document(pools: Pools, prices: dict[str, float], **endpoint: Any) -> str:
    """A settings file with these pools, sized for the slowest of them."""
    slowest, tps = min(pools, key=lambda pool: pool[1])
    stated = [
        {"instance_type": name, "priority": number, "tps_per_instance": held}
        for number, (name, held) in enumerate(pools, 1)
    ]
    throughput = {"peak_tps": 286, "tps_per_instance": tps, "safety_factor": 0.44}
    return yaml.safe_dump(
        {
            "client_zones": {"ids": ["use1-az1", "use1-az2"]},
            "prices": prices,
            "endpoints": {
                "detect": {
                    "containers": [{"image": {"uri": "example/image:1"}}],
                    "instance_type": slowest,
                    "latency": {"p99": "320ms"},
                    "throughput": {**throughput, "rise_tps_per_minute": 2.2},
                    "instance_pools": stated,
                    **endpoint,
                }
            },
        }
    )


def settings(pools: Pools, prices: dict[str, float], **endpoint: Any) -> Settings:
    return parse_settings(document(pools, prices, **endpoint))


JOB: Pools = [("ml.g6e.xlarge", 31.5), ("ml.g5.2xlarge", 21.7), ("ml.g4dn.2xlarge", 12.4)]
JOB_PRICES = {"ml.g6e.xlarge": 2.40, "ml.g5.2xlarge": 1.52, "ml.g4dn.2xlarge": 0.94}


def test_three_pools_the_dear_one_first() -> None:
    """By hand: 286 / (12.4 x 0.44) = 52.4: 53; 4 to 106; 4 x 0.94, 53, 106 and 212 x 2.40."""
    found = stack_cost(settings(JOB, JOB_PRICES)).endpoints["detect"]
    assert [found.usd(moment) for moment in MOMENTS] == [3.76, 127.20, 254.40, 508.80]
    assert [found.pool_text(moment) for moment in MOMENTS] == [
        "ml.g4dn.2xlarge, the cheapest pool",
        "ml.g6e.xlarge, the pool tried first",
        "ml.g6e.xlarge, the dearest pool",
        "ml.g6e.xlarge, the dearest pool",
    ]


def some_pools(random: Random) -> tuple[Pools, dict[str, float]]:
    names = random.sample(TYPES, random.randint(2, 5))
    prices = {name: random.choice([0.5, round(random.uniform(0.1, 80), 4)]) for name in names}
    return [(name, round(random.uniform(8, 60), 1)) for name in names], prices


def fleets(random: Random) -> dict[str, Any]:
    """What may change how many instances there are."""
    return random.choice(
        [
            {},
            {"scaling": {"enabled": False}},
            {"instances": {"min": 3, "max": 300}},
            {"deployment": {"rolling": {"batch_percent": 20}}},
        ]
    )


@pytest.mark.parametrize("seed", range(40))
def test_each_amount_is_the_count_times_the_price_of_its_pool(seed: int) -> None:
    random = Random(seed)
    pools, prices = some_pools(random)
    stated = settings(pools, prices, **fleets(random))
    cost = stack_cost(stated)
    found = cost.endpoints["detect"]
    first, dearest = prices[pools[0][0]], max(prices.values())
    expected = {
        "at_least": min(prices.values()),
        "at_first": first,
        "at_most": dearest,
        "in_an_update": dearest,
    }
    for moment, price in expected.items():
        usd = found.instances(moment) * price
        assert found.usd(moment) == pytest.approx(usd, abs=1e-4)
        assert cost.usd(moment) == pytest.approx(usd + LINK, abs=1e-3)
        assert prices[cost.to_dict()["endpoints"]["detect"][moment]["instance_type"]] == price
    amounts = [cost.usd(moment) or 0 for moment in MOMENTS]
    assert amounts == sorted(amounts)
    peak = plan_endpoint(stated, "detect").fleet.serving_at_peak
    serving = found.at_peak or 0
    assert serving in (peak, found.at_first)
    million = (serving * first + LINK) / (286 * 3600) * 1e6
    assert cost.usd_per_million("detect") == pytest.approx(million, rel=1e-5)
    along = fleets_along(stated, shape("daily-wave"))
    day, fleet = cost.along(along), along["detect"]
    assert day is not None
    assert fleet is not None
    assert day.usd_per_hour == pytest.approx(fleet.mean * first + LINK, rel=1e-4)


def said(stated: Settings, cost: StackCost) -> list[str]:
    """Every text that has an amount, each of which must name the pool that it counts."""
    parts = list(cost_parts(stated, cost, shape("daily-wave")))
    simulated = SimulatedCost(cost, "detect")
    (summary,) = (
        line.text for line in explain_variants(stated)["detect"].summary if line.title == "Cost"
    )
    sentences = [part.text for part in parts if isinstance(part, Sentence)]
    return [
        summary,
        total_line(cost),
        next(text for text in sentences if "a million requests cost" in text),
        next(text for text in sentences if text.startswith("Along")),
        simulated.sentence(7.0, 100.0, month=True),
    ]


@pytest.mark.parametrize("seed", range(20))
def test_every_text_names_the_pool_that_it_counts(seed: int) -> None:
    random = Random(seed)
    pools, prices = some_pools(random)
    stated = settings(pools, prices, **fleets(random))
    cost = stack_cost(stated)
    summary, *others = said(stated, cost)
    dearest = max(prices, key=lambda name: prices[name])
    for text in others:
        assert f"{pools[0][0]}, the pool tried first" in text
    counts = cost.endpoints["detect"]
    amounts = re.findall(r"([\d.,]+) (at \w+) on ([^,;]+), the ([\w ]+)", summary)
    assert [words for _, words, _, _ in amounts] == ["at least", "at first", "at most"]
    for amount, moment, name, words in amounts:
        usd = counts.instances(moment.replace(" ", "_")) * prices[name]
        assert float(amount.replace(",", "")) == pytest.approx(usd, abs=0.006)
        assert words.strip() in ("cheapest pool", "pool tried first", "dearest pool")
    if prices[dearest] > prices[pools[0][0]]:
        assert "the dearest pool, costs" in others[-1]


def test_the_table_has_what_each_pool_costs_alone() -> None:
    stated = settings(JOB, JOB_PRICES)
    (table,) = (each for each in cost_parts(stated, stack_cost(stated)) if isinstance(each, Table))
    rows = {str(row[0]): [*map(str, row[1:])] for row in table.rows}
    assert rows["detect: all of ml.g6e.xlarge"][2] == "106 x 2.4 = 254.40"
    assert rows["detect: all of ml.g5.2xlarge"][2] == "106 x 1.52 = 161.12"
    assert rows["detect: all of ml.g4dn.2xlarge"][2] == "106 x 0.94 = 99.64"


@pytest.mark.parametrize("unpriced", [*combinations(JOB_PRICES, 1), *combinations(JOB_PRICES, 2)])
def test_no_price_of_a_pool_is_guessed(unpriced: tuple[str, ...]) -> None:
    prices = {name: usd for name, usd in JOB_PRICES.items() if name not in unpriced}
    stated = settings(JOB, prices)
    cost = stack_cost(stated)
    assert set(cost.without_price) == set(unpriced)
    assert [cost.usd(moment) for moment in ("at_least", "at_most", "in_an_update")] == [None] * 3
    # 53 of ml.g6e.xlarge, which is tried first, and the interface endpoint.
    assert cost.usd("at_first") == (None if JOB[0][0] in unpriced else 127.22)
    texts = [part.text for part in cost_parts(stated, cost) if isinstance(part, Sentence)]
    summary = next(
        line.text for line in explain_variants(stated)["detect"].summary if line.title == "Cost"
    )
    for name in unpriced:
        assert any(name in text and "may be dearer" in text for text in texts)
        assert re.search(f"as .*{name}.* may be dearer.*--price {name}=USD", summary)
    assert "at most" not in summary
    decisions = explain_variants(stated)["detect"]
    assert decisions["hourly_cost"].value is None
    assert "hourly_cost_at_most" not in decisions


def test_without_any_price_nothing_is_said_to_be_dearer() -> None:
    summary = next(
        line.text
        for line in explain_variants(settings(JOB, {}))["detect"].summary
        if line.title == "Cost"
    )
    options = " ".join(f"--price {name}=USD" for name, _ in JOB)
    assert summary == f"not known: low-latency prices, or {options}"


def dearer(before: Settings, after: Settings) -> list[str]:
    file_review = FileReview.of("endpoint.yaml", review(before, after))
    return [text for _, text in breaches([file_review], [limit_of("cost-increase")])]


@pytest.mark.parametrize("seed", range(20))
def test_a_dearer_pool_is_an_increase_wherever_it_stands(seed: int) -> None:
    """One that is faster than the others, so that no number of instances changes."""
    random = Random(seed)
    pools, prices = some_pools(random)
    if len(pools) == len(TYPES):
        del prices[pools.pop()[0]]
    new = next(name for name in TYPES if name not in dict(pools))
    all_prices = {**prices, new: max(prices.values()) + 1}
    more = [*pools]
    more.insert(random.randint(0, len(pools)), (new, 100.0))
    before, after = settings(pools, all_prices), settings(more, all_prices)
    was, now = stack_cost(before), stack_cost(after)
    counts = [was.endpoints["detect"].instances(moment) for moment in MOMENTS]
    assert counts == [now.endpoints["detect"].instances(moment) for moment in MOMENTS]
    assert (now.usd("at_most") or 0) > (was.usd("at_most") or 0)
    assert any("at most" in text for text in dearer(before, after))
    assert not dearer(after, before)
    unpriced = dearer(settings(pools, prices), settings(more, prices))
    assert any(f"not known without prices of {new}" in text for text in unpriced)


def test_pools_in_another_order_are_an_increase_where_the_first_is_dearer() -> None:
    before, after = settings(JOB[::-1], JOB_PRICES), settings(JOB, JOB_PRICES)
    # 53 x 0.94 and 53 x 2.40, with the interface endpoint.
    # Along a day 29.33 on average are of the pool tried first too.
    assert dearer(before, after) == [
        "endpoint.yaml: at first 49.84 -> 127.22 US dollars per hour",
        "endpoint.yaml: along a day of traffic like daily-wave 27.59 -> 70.41 US dollars per hour",
    ]
    assert not dearer(after, before)


@pytest.mark.parametrize("raised", [name for name, _ in JOB])
@pytest.mark.parametrize("more", [1.0, 1.5])
@pytest.mark.parametrize("times", [1.4, 4])  # with 1.4 the slowest pool stays the slowest
def test_a_pool_said_to_hold_more_hides_no_larger_load(
    raised: str, more: float, times: float
) -> None:
    """Whatever pool is measured anew: the former results decide whether the change costs more."""
    pools = [(name, tps * times if name == raised else tps) for name, tps in JOB]
    throughput = {"peak_tps": 286 * more, "safety_factor": 0.44, "rise_tps_per_minute": 2.2}
    slowest = min(tps for _, tps in pools)
    stated = {**throughput, "tps_per_instance": slowest}
    before, after = settings(JOB, JOB_PRICES), settings(pools, JOB_PRICES, throughput=stated)
    found = dearer(before, after)
    # 1.5 x 286 / (12.4 x 0.44) = 78.6: 79 x 2.40 = 189.60, and the interface endpoint.
    at_first = [text for text in found if "at first 127.22 -> 189.62" in text]
    assert bool(at_first) == (more > 1)
    assert bool(found) == (more > 1)


def test_json_says_which_type_each_amount_counts(tmp_path: Path) -> None:
    file = tmp_path / "endpoint.yaml"
    file.write_text(document(JOB, JOB_PRICES), encoding="utf-8")
    arguments = ["plan", "--cost", "--json", "--settings", str(file), "--traffic", "daily-wave"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    data = json.loads(done.stdout)["cost"]
    detect = data["endpoints"]["detect"]
    assert [pool["instance_type"] for pool in detect["pools"]] == [name for name, _ in JOB]
    assert detect["at_most"] == {"instances": 106, "instance_type": JOB[0][0], "usd": 254.4}
    assert data["along"]["instance_types"] == {"detect": JOB[0][0]}
