"""A change of weights moves the load at once, and instances follow minutes later."""

from __future__ import annotations

import random
from typing import Any

import yaml

from low_latency_endpoint.change.comparison import review
from low_latency_endpoint.settings import parse_settings
from low_latency_endpoint.settings.variant_plans import planned_variants
from tests.depth import examples
from tests.plan.test_sizing_jobs import job

LOAD = {"peak_tps": 600, "tps_per_instance": 100, "safety_factor": 0.5}


def settings_of(weights: dict[str, float], **of_c: Any) -> Any:
    """Three variants; an instance of C holds 40 requests a second."""
    endpoint = {
        "variant_name": "A",
        "variant_weight": weights["A"],
        "variants": {
            "B": {"weight": weights["B"], "tps_per_instance": 100},
            "C": {"weight": weights["C"], "tps_per_instance": 40, **of_c},
        },
    }
    return parse_settings(yaml.safe_dump(job(LOAD, **endpoint)))


def gained(before: Any, after: Any) -> dict[str, str]:
    """The warnings about moved load, by variant."""
    texts = [text for _, text in review(before, after).warnings["gained"]]
    return {text.split(" ")[0]: text for text in texts if "as soon as the weights change" in text}


def test_c_gets_twice_as_much_and_keeps_three() -> None:
    """60 of 600 on 60 / 20 = 3; then 120 on three of 40 are 100 %, where 120 / 20 = 6 are planned."""
    before = settings_of({"A": 7, "B": 2, "C": 1})
    texts = gained(before, settings_of({"A": 5, "B": 3, "C": 2}))
    assert texts.keys() == {"B", "C"}
    assert texts["C"].startswith("C gets 120 requests per second at the peak")
    assert (
        "the 3 instances that run at the peak stay until scaling follows: 100 % of their limit"
        in texts["C"]
    )
    assert "Raise its minimum to 6 in a deployment before" in texts["C"]


def test_what_is_advised_ends_it() -> None:
    """Drawn weights: with the minimum raised before, the same change is no surprise."""
    rng = random.Random(59)
    said = 0
    for _ in range(examples(15)):
        before, after = ({name: rng.randint(1, 9) for name in "ABC"} for _ in range(2))
        texts = gained(settings_of(before), settings_of(after))
        plans = {each.variant: each.plan for each in planned_variants(settings_of(after))}
        former = {each.variant: each.plan for each in planned_variants(settings_of(before))}
        for name in "ABC":
            grows = after[name] / sum(after.values()) > before[name] / sum(before.values())
            lacks = former[name].usual.serving_at_peak < plans[name].fleet.at_peak
            assert (name in texts) is (grows and lacks), (before, after)
        if "C" in texts:
            said += 1
            raised = {"instances": {"min": plans["C"].fleet.at_peak}}
            assert "C" not in gained(settings_of(before, **raised), settings_of(after, **raised))
    assert said


def test_another_type_that_holds_less_starts_as_many_as_run() -> None:
    """600 of 100 each on 12 of 50 planned; of 80 each 12 hold 960: 62.5 %, where 15 are planned."""
    slower = {**LOAD, "tps_per_instance": 80}
    one, other, newer = (
        parse_settings(yaml.safe_dump(job(load, instance_type=name)))
        for load, name in (
            (LOAD, "ml.c7i.2xlarge"),
            (slower, "ml.c6i.2xlarge"),
            ({**LOAD, "tps_per_instance": 120}, "ml.c8i.2xlarge"),
        )
    )
    [text] = [text for _, text in review(one, other).warnings["gained"] if "after it" in text]
    assert "holds 80 requests per second after it, 100 before, and the 12 instances" in text
    assert "62.5 % of their limit. Raise its minimum to 15" in text
    assert not [text for _, text in review(one, newer).warnings["gained"] if "after it" in text]
    measured_again = parse_settings(yaml.safe_dump(job(slower, instance_type="ml.c7i.2xlarge")))
    gained_texts = review(one, measured_again).warnings["gained"]
    assert not [text for _, text in gained_texts if "after it" in text]
